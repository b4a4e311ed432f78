// A PE array stepped register by register, cycle by cycle: shows that the fold formulas of
// machine/timing.h are the cycles that such an array takes and the elements that it exchanges with
// the scratchpads, and that it computes the product.
//
// Every PE has registers for what passes through it; in one cycle it reads its neighbours'
// registers of the cycle before and writes its own. Rows and columns that a fold does not use
// carry zeros, so that the array's size, not the used part of it, sets the skew.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "machine/timing.h"
#include "tests/random_pick.h"

namespace dla::machine {
namespace {

using Matrix = std::vector<std::vector<int64_t>>;

Matrix Zeros(int64_t rows, int64_t cols) {
  return Matrix(static_cast<size_t>(rows), std::vector<int64_t>(static_cast<size_t>(cols)));
}

int64_t& At(Matrix& m, int64_t i, int64_t j) {
  return m[static_cast<size_t>(i)][static_cast<size_t>(j)];
}
// Zero outside the matrix.
int64_t Get(const Matrix& m, int64_t i, int64_t j) {
  if (i < 0 || j < 0 || i >= static_cast<int64_t>(m.size())) return 0;
  const auto& row = m[static_cast<size_t>(i)];
  return j < static_cast<int64_t>(row.size()) ? row[static_cast<size_t>(j)] : 0;
}

// Output stationary: a (rows x K) enters from the left, b (K x cols) from the top, row i and column
// i delayed by i cycles; each PE sums what meets in it. Returns the cycles until the last PE has
// seen its last pair.
int64_t StepOutputStationary(const Array& array, const Matrix& a, const Matrix& b, int64_t depth,
                             Matrix* sums) {
  Matrix left = Zeros(array.rows, array.cols);  // a's and b's registers
  Matrix top = left;
  *sums = left;
  int64_t last_use = 0;
  for (int64_t cycle = 0; cycle < depth + array.rows + array.cols + 5; ++cycle) {
    Matrix next_left = left;
    Matrix next_top = top;
    for (int64_t i = 0; i < array.rows; ++i) {
      for (int64_t j = 0; j < array.cols; ++j) {
        At(next_left, i, j) = j == 0 ? Get(a, i, cycle - i) : At(left, i, j - 1);
        At(next_top, i, j) = i == 0 ? Get(b, cycle - j, j) : At(top, i - 1, j);
        At(*sums, i, j) += At(next_left, i, j) * At(next_top, i, j);
        const int64_t k = cycle - i - j;  // which pair meets here now
        if (k >= 0 && k < depth) last_use = cycle;
      }
    }
    left = next_left;
    top = next_top;
  }
  return last_use + 1;
}

// Weight stationary: w (rows x cols) is shifted in from the top, one row a cycle; then x (streamed
// x rows) enters from the left, element k delayed by k cycles, and sums move down. out (streamed x
// cols) += x * w. Input stationary is the same with the operands exchanged.
int64_t StepStationary(const Array& array, const Matrix& w, const Matrix& x, int64_t streamed,
                       Matrix* out) {
  Matrix held = Zeros(array.rows, array.cols);
  int64_t cycles = 0;
  for (; cycles < array.rows; ++cycles) {
    Matrix next = held;
    for (int64_t i = 0; i < array.rows; ++i) {
      for (int64_t j = 0; j < array.cols; ++j) {
        At(next, i, j) = i == 0 ? Get(w, array.rows - 1 - cycles, j) : At(held, i - 1, j);
      }
    }
    held = next;
  }
  Matrix left = Zeros(array.rows, array.cols);
  Matrix sums = left;
  int64_t last_use = 0;
  for (int64_t cycle = 0; cycle < streamed + array.rows + array.cols + 5; ++cycle) {
    Matrix next_left = left;
    Matrix next_sums = sums;
    for (int64_t i = 0; i < array.rows; ++i) {
      for (int64_t j = 0; j < array.cols; ++j) {
        At(next_left, i, j) = j == 0 ? Get(x, cycle - i, i) : At(left, i, j - 1);
        const int64_t above = i == 0 ? 0 : At(sums, i - 1, j);
        At(next_sums, i, j) = above + At(next_left, i, j) * At(held, i, j);
      }
    }
    left = next_left;
    sums = next_sums;
    for (int64_t j = 0; j < array.cols; ++j) {  // what leaves the last row in this cycle
      const int64_t p = cycle - (array.rows - 1) - j;
      if (p < 0 || p >= streamed) continue;
      last_use = cycle;
      if (j < static_cast<int64_t>((*out)[0].size())) At(*out, p, j) += At(sums, array.rows - 1, j);
    }
  }
  return cycles + last_use + 1;
}

// Spatial: w (rows x cols) is held; each cycle one position of x (streamed x rows) is broadcast,
// its element k to all PEs of row k, and a tree below each column sums the products of the cycle.
// out (streamed x cols) += x * w.
int64_t StepSpatial(const Array& array, const Matrix& w, const Matrix& x, int64_t streamed,
                    Matrix* out) {
  int64_t cycle = 0;
  for (; cycle < streamed; ++cycle) {
    for (int64_t j = 0; j < array.cols; ++j) {
      int64_t sum = 0;
      for (int64_t i = 0; i < array.rows; ++i) sum += Get(x, cycle, i) * Get(w, i, j);
      At(*out, cycle, j) += sum;
    }
  }
  return cycle;
}

Matrix Block(const Matrix& m, int64_t i, int64_t rows, int64_t j, int64_t cols) {
  Matrix block = Zeros(rows, cols);
  for (int64_t a = 0; a < rows; ++a) {
    for (int64_t b = 0; b < cols; ++b) At(block, a, b) = Get(m, i + a, j + b);
  }
  return block;
}

Matrix Transposed(const Matrix& m, int64_t rows, int64_t cols) {
  Matrix t = Zeros(cols, rows);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j) At(t, j, i) = Get(m, i, j);
  }
  return t;
}

// Rows and columns of the array that a fold beginning at (i, j) uses.
struct Used {
  int64_t rows, cols;
};

// What a fold reads and writes besides the stationary operand, which the array holds: `is_new`,
// these sums are not accumulated to anything.
void CountFold(const Array& array, const Used& used, int64_t streamed, bool is_new,
               ArrayAccesses* a) {
  const int64_t held = used.rows * used.cols;
  const bool by_output = array.dataflow == Dataflow::kOutputStationary;
  const int64_t outputs = by_output ? held : streamed * used.cols;
  a->partial_writes += outputs;
  if (!is_new) a->partial_reads += outputs;
  if (by_output) {
    a->input_reads += used.rows * streamed;
    a->weight_reads += used.cols * streamed;
  } else if (array.dataflow == Dataflow::kInputStationary) {
    a->input_reads += held;
    a->weight_reads += used.rows * streamed;
  } else {
    a->weight_reads += held;
    a->input_reads += used.rows * streamed;
  }
}

// The product x (pixels x depth) * w (depth x channels) in folds; adds up the cycles.
int64_t StepProduct(const Array& array, const Matrix& x, const Matrix& w, const ArrayExtents& e,
                    bool accumulate, Matrix* product, ArrayAccesses* accesses) {
  int64_t cycles = 0;
  *product = Zeros(e.pixels, e.channels);
  const bool by_output = array.dataflow == Dataflow::kOutputStationary;
  const bool by_input = array.dataflow == Dataflow::kInputStationary;
  const int64_t rows_extent = by_output ? e.pixels : e.depth;
  const int64_t cols_extent = by_input ? e.pixels : e.channels;
  for (int64_t i = 0; i < rows_extent; i += array.rows) {
    for (int64_t j = 0; j < cols_extent; j += array.cols) {
      const Used used = {std::min(array.rows, rows_extent - i),
                         std::min(array.cols, cols_extent - j)};
      if (by_output) {
        CountFold(array, used, e.depth, !accumulate, accesses);
        Matrix sums;
        cycles += StepOutputStationary(array, Block(x, i, array.rows, 0, e.depth),
                                       Block(w, 0, e.depth, j, array.cols), e.depth, &sums);
        for (int64_t a = 0; a < array.rows && i + a < e.pixels; ++a) {
          for (int64_t b = 0; b < array.cols && j + b < e.channels; ++b) {
            At(*product, i + a, j + b) = At(sums, a, b);
          }
        }
        continue;
      }
      // Streamed: pixels past stationary weights, or channels past stationary input.
      const int64_t streamed = by_input ? e.channels : e.pixels;
      const Matrix held =
          by_input ? Transposed(Block(x, j, array.cols, i, array.rows), array.cols, array.rows)
                   : Block(w, i, array.rows, j, array.cols);
      const Matrix passing =
          by_input ? Transposed(Block(w, i, array.rows, 0, streamed), array.rows, streamed)
                   : Block(x, 0, streamed, i, array.rows);
      CountFold(array, used, streamed, !accumulate && i == 0, accesses);
      Matrix out = Zeros(streamed, array.cols);
      cycles += array.dataflow == Dataflow::kSpatial
                    ? StepSpatial(array, held, passing, streamed, &out)
                    : StepStationary(array, held, passing, streamed, &out);
      for (int64_t s = 0; s < streamed; ++s) {
        for (int64_t b = 0; b < array.cols && j + b < cols_extent; ++b) {
          (by_input ? At(*product, j + b, s) : At(*product, s, j + b)) += At(out, s, b);
        }
      }
    }
  }
  return cycles;
}

Matrix RandomMatrix(std::mt19937* random, int64_t rows, int64_t cols) {
  Matrix m = Zeros(rows, cols);
  for (auto& row : m) {
    for (int64_t& value : row) value = std::uniform_int_distribution<int64_t>(-9, 9)(*random);
  }
  return m;
}

TEST(ArrayStepper, FoldFormulasAreTheCyclesOfASteppedArray) {
  for (uint32_t seed = 1; seed <= 150; ++seed) {
    std::mt19937 random(seed);
    const RandomPick pick(&random);
    Array array;
    array.rows = pick(1, 6);
    array.cols = pick(1, 6);
    const ArrayExtents e = {.pixels = pick(1, 14), .channels = pick(1, 14), .depth = pick(1, 14)};
    const Matrix x = RandomMatrix(&random, e.pixels, e.depth);
    const Matrix w = RandomMatrix(&random, e.depth, e.channels);
    Matrix expected = Zeros(e.pixels, e.channels);
    for (int64_t p = 0; p < e.pixels; ++p) {
      for (int64_t m = 0; m < e.channels; ++m) {
        for (int64_t k = 0; k < e.depth; ++k) At(expected, p, m) += Get(x, p, k) * Get(w, k, m);
      }
    }
    for (const Dataflow dataflow : {Dataflow::kOutputStationary, Dataflow::kWeightStationary,
                                    Dataflow::kInputStationary, Dataflow::kSpatial}) {
      array.dataflow = dataflow;
      SCOPED_TRACE(testing::Message()
                   << "seed " << seed << " dataflow " << static_cast<int>(dataflow));
      for (const bool accumulate : {false, true}) {
        Matrix product;
        ArrayAccesses counted;
        EXPECT_EQ(StepProduct(array, x, w, e, accumulate, &product, &counted),
                  ArrayCycles(array, {1, 1}, e));
        EXPECT_EQ(product, expected);
        const ArrayAccesses formula = CountArrayAccesses(array, e, accumulate);
        EXPECT_EQ(formula.input_reads, counted.input_reads);
        EXPECT_EQ(formula.weight_reads, counted.weight_reads);
        EXPECT_EQ(formula.partial_reads, counted.partial_reads);
        EXPECT_EQ(formula.partial_writes, counted.partial_writes);
      }
    }
  }
}

TEST(ArrayStepper, RatesStretchTheStreamedLengthAndNotTheSkew) {
  Array array;
  array.rows = 4;
  array.cols = 3;
  const ArrayExtents e = {.groups = 2, .pixels = 5, .channels = 3, .depth = 7};
  // Two folds of rows, two groups; ceil(7 * 4) and ceil(7 / 2) streamed cycles, skew 5.
  EXPECT_EQ(ArrayCycles(array, {1, 4}, e), 2 * 2 * (28 + 5));
  EXPECT_EQ(ArrayCycles(array, {2, 1}, e), 2 * 2 * (4 + 5));
}

}  // namespace
}  // namespace dla::machine
