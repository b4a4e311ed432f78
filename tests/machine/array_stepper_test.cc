// The fold formulas of machine/timing.h against a stepper that moves operands through the array PE
// by PE, cycle by cycle. The stepper knows nothing of formulas: it feeds skewed streams into the
// edges and counts cycles until the last PE has worked and the last result has left.
#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "machine/timing.h"

namespace dla::machine {
namespace {

// Output stationary: PE (r, c) keeps a sum; operand k of row r enters at the left edge in cycle
// k + r and moves right, operand k of column c enters at the top in cycle k + c and moves down. A
// fold of a full array (idle PEs pass data on like the others) ends when the PE in the far corner
// has seen all of its `depth` pairs.
int64_t StepOutputStationary(int64_t rows, int64_t cols, int64_t depth) {
  const auto at = [cols](int64_t r, int64_t c) { return static_cast<size_t>(r * cols + c); };
  std::vector<int64_t> left(static_cast<size_t>(rows * cols), -1), top = left;  // k of the operand
  std::vector<int64_t> seen(static_cast<size_t>(rows * cols), 0);
  for (int64_t cycle = 0;; ++cycle) {
    for (int64_t r = rows; r-- > 0;) {
      for (int64_t c = cols; c-- > 0;) {
        const int64_t from_edge_left = cycle - r, from_edge_top = cycle - c;
        left[at(r, c)] =
            c > 0 ? left[at(r, c - 1)]
                  : (from_edge_left >= 0 && from_edge_left < depth ? from_edge_left : -1);
        top[at(r, c)] = r > 0 ? top[at(r - 1, c)]
                              : (from_edge_top >= 0 && from_edge_top < depth ? from_edge_top : -1);
      }
    }
    for (size_t pe = 0; pe < seen.size(); ++pe) {
      EXPECT_EQ(left[pe], top[pe]);  // the skew makes partners meet
      if (left[pe] >= 0) ++seen[pe];
    }
    if (seen.back() == depth) {
      for (const int64_t count : seen) EXPECT_EQ(count, depth);
      return cycle + 1;
    }
  }
}

// Weight (input) stationary: the stationary operand is shifted in from the top, one row a cycle,
// `rows` cycles. Then position p of row r enters at the left edge in cycle p + r and moves right;
// partial sums move down one row a cycle. The fold ends when the sum of the last position has left
// the bottom of the last column.
int64_t StepStationary(int64_t rows, int64_t cols, int64_t streamed) {
  int64_t cycle = 0;
  for (int64_t shifted = 0; shifted < rows; ++shifted) ++cycle;
  const auto at = [cols](int64_t r, int64_t c) { return static_cast<size_t>(r * cols + c); };
  std::vector<int64_t> moving(static_cast<size_t>(rows * cols), -1);
  std::vector<int64_t> sums(static_cast<size_t>(rows * cols), -1);  // position of the sum at a PE
  int64_t finished = 0;
  for (int64_t step = 0;; ++step) {
    ++cycle;
    for (int64_t r = rows; r-- > 0;) {
      for (int64_t c = cols; c-- > 0;) {
        const int64_t entering = step - r;
        moving[at(r, c)] =
            c > 0 ? moving[at(r, c - 1)] : (entering >= 0 && entering < streamed ? entering : -1);
        const int64_t above = r > 0 ? sums[at(r - 1, c)] : moving[at(r, c)];
        EXPECT_EQ(above, moving[at(r, c)]);  // the sum meets the position that it belongs to
        sums[at(r, c)] = moving[at(r, c)];
      }
    }
    if (sums[at(rows - 1, cols - 1)] >= 0) ++finished;
    if (finished == streamed) return cycle;
  }
}

TEST(ArrayStepper, OneFoldOfEveryDataflow) {
  for (int64_t rows = 1; rows <= 6; ++rows) {
    for (int64_t cols = 1; cols <= 6; ++cols) {
      for (int64_t length = 1; length <= 9; ++length) {
        Array array{.rows = rows, .cols = cols, .dataflow = Dataflow::kOutputStationary};
        const Rational one;
        EXPECT_EQ(ArrayCycles(array, one, {1, rows, cols, length}),
                  StepOutputStationary(rows, cols, length));
        array.dataflow = Dataflow::kWeightStationary;
        EXPECT_EQ(ArrayCycles(array, one, {1, length, cols, rows}),
                  StepStationary(rows, cols, length));
        array.dataflow = Dataflow::kInputStationary;
        EXPECT_EQ(ArrayCycles(array, one, {1, cols, length, rows}),
                  StepStationary(rows, cols, length));
        array.dataflow = Dataflow::kSpatial;  // no skew: broadcasts and adder trees
        EXPECT_EQ(ArrayCycles(array, one, {1, length, cols, rows}), length);
      }
    }
  }
}

// Folds are cut from the extents one by one.
TEST(ArrayStepper, FoldsAreCounted) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 300; ++round) {
    const auto pick = [&](uint64_t most) { return static_cast<int64_t>(1 + random() % most); };
    const Array array{.rows = pick(5), .cols = pick(5), .dataflow = Dataflow::kOutputStationary};
    const ArrayExtents e{pick(3), pick(12), pick(12), pick(9)};
    int64_t cycles = 0;
    for (int64_t g = 0; g < e.groups; ++g) {
      for (int64_t p = 0; p < e.pixels; p += array.rows) {
        for (int64_t m = 0; m < e.channels; m += array.cols) {
          cycles += StepOutputStationary(array.rows, array.cols, e.depth);
        }
      }
    }
    EXPECT_EQ(ArrayCycles(array, {}, e), cycles);
  }
}

// What an output-stationary array reads and writes, element by element.
TEST(ArrayStepper, OutputStationaryAccesses) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 300; ++round) {
    const auto pick = [&](uint64_t most) { return static_cast<int64_t>(1 + random() % most); };
    const Array array{.rows = pick(5), .cols = pick(5), .dataflow = Dataflow::kOutputStationary};
    const ArrayExtents e{pick(2), pick(12), pick(12), pick(9)};
    ArrayAccesses counted;
    for (int64_t g = 0; g < e.groups; ++g) {
      for (int64_t p = 0; p < e.pixels; p += array.rows) {
        for (int64_t m = 0; m < e.channels; m += array.cols) {
          const int64_t rows_used = std::min(array.rows, e.pixels - p);
          const int64_t cols_used = std::min(array.cols, e.channels - m);
          for (int64_t k = 0; k < e.depth; ++k) {
            counted.input_reads += rows_used;
            counted.weight_reads += cols_used;
          }
          counted.partial_writes += rows_used * cols_used;
        }
      }
    }
    const ArrayAccesses plain = CountArrayAccesses(array, e, false);
    EXPECT_EQ(plain.input_reads, counted.input_reads);
    EXPECT_EQ(plain.weight_reads, counted.weight_reads);
    EXPECT_EQ(plain.partial_writes, counted.partial_writes);
    EXPECT_EQ(plain.partial_reads, 0);
    EXPECT_EQ(CountArrayAccesses(array, e, true).partial_reads, counted.partial_writes);
  }
}

}  // namespace
}  // namespace dla::machine
