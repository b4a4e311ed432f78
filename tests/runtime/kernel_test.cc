// The contraction kernels against plain loops, bit for bit, for every instruction set of the host.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "runtime/kernels/contract_f32.h"
#include "runtime/kernels/contraction.h"

namespace dla::runtime {
namespace {

using Dims = std::vector<ContractionDim>;

int64_t Pick(std::mt19937* random, int64_t low, int64_t high) {
  return std::uniform_int_distribution<int64_t>(low, high)(*random);
}

int64_t CountOf(const Dims& dims) {
  int64_t count = 1;
  for (const auto& dim : dims) count *= dim.length;
  return count;
}

// Offset of flat point i (last dimension fastest).
int64_t OffsetOf(const Dims& dims, int64_t ContractionDim::*stride, int64_t i) {
  int64_t offset = 0;
  for (size_t d = dims.size(); d-- > 0;) {
    offset += i % dims[d].length * dims[d].*stride;
    i /= dims[d].length;
  }
  return offset;
}

int64_t Span(const std::vector<Dims>& all, int64_t ContractionDim::*stride) {
  int64_t span = 1;
  for (const Dims& dims : all) {
    for (const auto& dim : dims) span += (dim.length - 1) * dim.*stride;
  }
  return span;
}

struct Case {
  Contraction contraction;
  std::vector<float> input, weight, panels, output;
};

// Random extents and strides; weights dense and as panels; outputs with gaps between rows.
Case RandomCase(std::mt19937* random) {
  Case c;
  Contraction& k = c.contraction;
  const auto dims = [random](Dims* list, int64_t most, int64_t longest) {
    for (int64_t n = Pick(random, 0, most); n > 0; --n) {
      list->push_back({.length = Pick(random, 1, longest)});
    }
  };
  dims(&k.groups, 1, 3);
  dims(&k.pixels, 3, 9);
  dims(&k.channels, 2, Pick(random, 1, 9));
  dims(&k.depth, 3, 6);
  int64_t output_stride = 1;
  for (Dims* list : {&k.pixels, &k.channels, &k.groups}) {
    for (size_t d = list->size(); d-- > 0;) {
      (*list)[d].output_stride = output_stride;
      output_stride *= (*list)[d].length;
      output_stride += Pick(random, 0, 2);
    }
  }
  int64_t weight_stride = 1;
  for (Dims* list : {&k.depth, &k.channels, &k.groups}) {
    for (size_t d = list->size(); d-- > 0;) {
      (*list)[d].weight_stride = weight_stride;
      weight_stride *= (*list)[d].length;
    }
  }
  for (Dims* list : {&k.groups, &k.pixels, &k.depth}) {
    for (auto& dim : *list) dim.input_stride = Pick(random, 1, 12);
  }
  if (!k.pixels.empty() && Pick(random, 0, 1) == 0) k.pixels.back().input_stride = 1;
  std::uniform_real_distribution<float> values(-1, 1);
  const auto fill = [&](std::vector<float>* v, int64_t count) {
    for (int64_t i = 0; i < count; ++i) v->push_back(values(*random));
  };
  const std::vector<Dims> all = {k.groups, k.pixels, k.channels, k.depth};
  fill(&c.input, Span(all, &ContractionDim::input_stride));
  fill(&c.weight, Span(all, &ContractionDim::weight_stride));
  fill(&c.output, Span(all, &ContractionDim::output_stride));
  const int64_t channels = CountOf(k.channels);
  const int64_t depth = CountOf(k.depth);
  for (int64_t g = 0; g < CountOf(k.groups); ++g) {
    for (int64_t m = 0; m < channels; m += 16) {
      for (int64_t d = 0; d < depth; ++d) {
        for (int64_t j = m; j < std::min(m + 16, channels); ++j) {
          c.panels.push_back(c.weight[static_cast<size_t>((g * channels + j) * depth + d)]);
        }
      }
    }
  }
  return c;
}

std::vector<float> Expected(const Case& c) {
  const Contraction& k = c.contraction;
  std::vector<float> output = c.output;
  for (int64_t g = 0; g < CountOf(k.groups); ++g) {
    for (int64_t p = 0; p < CountOf(k.pixels); ++p) {
      for (int64_t m = 0; m < CountOf(k.channels); ++m) {
        const auto offset = [&](int64_t ContractionDim::*stride, int64_t d) {
          return static_cast<size_t>(OffsetOf(k.groups, stride, g) + OffsetOf(k.pixels, stride, p) +
                                     OffsetOf(k.channels, stride, m) +
                                     OffsetOf(k.depth, stride, d));
        };
        float& sum = output[offset(&ContractionDim::output_stride, 0)];
        for (int64_t first = 0; first < CountOf(k.depth); first += kSummedRun) {
          float run = 0;
          for (int64_t d = first; d < std::min(first + kSummedRun, CountOf(k.depth)); ++d) {
            run += c.input[offset(&ContractionDim::input_stride, d)] *
                   c.weight[offset(&ContractionDim::weight_stride, d)];
          }
          sum += run;
        }
      }
    }
  }
  return output;
}

// Bytes at an odd address, as a scratchpad without alignment may have them; nothing lies behind.
class Misaligned {
 public:
  explicit Misaligned(const std::vector<float>& values) : bytes_(values.size() * 4 + 1) {
    std::memcpy(data(), values.data(), values.size() * 4);
  }
  uint8_t* data() { return bytes_.data() + 1; }
  std::vector<float> Values() {
    std::vector<float> values((bytes_.size() - 1) / 4);
    std::memcpy(values.data(), data(), values.size() * 4);
    return values;
  }

 private:
  std::vector<uint8_t> bytes_;
};

TEST(ContractF32, EqualsPlainLoopsBitForBitOnEveryInstructionSet) {
  ContractionWorkspace workspace;
  for (uint32_t seed = 1; seed <= 500; ++seed) {
    std::mt19937 random(seed);
    Case c = RandomCase(&random);
    const std::vector<float> expected = Expected(c);
    Misaligned input(c.input);
    Misaligned weight(c.weight);
    Misaligned panels(c.panels);
    for (const Isa isa : {Isa::kBaseline, Isa::kAvx2, Isa::kAvx512}) {
      if (!HostHas(isa)) continue;
      for (const bool as_panels : {false, true}) {
        SCOPED_TRACE(testing::Message() << "seed " << seed << " isa " << static_cast<int>(isa)
                                        << " panels " << as_panels);
        Misaligned output(c.output);
        Contraction k = c.contraction;
        k.input = input.data();
        k.weight = as_panels ? panels.data() : weight.data();
        k.weight_panels = as_panels;
        k.accumulator = output.data();
        ContractF32(k, &workspace, isa);
        ASSERT_EQ(output.Values(), expected);
      }
    }
  }
}

// Sums of 4,608 products (512 channels, 3x3) are off by a third of what one product after the other
// would be, in the root of the mean square over 200 sums.
TEST(ContractF32, LongSumsLoseLessThanOneProductAfterTheOther) {
  std::mt19937 random(1);
  std::normal_distribution<float> values(0, 1);
  constexpr size_t kLength = 4608;
  double squares = 0, plain_squares = 0;
  ContractionWorkspace workspace;
  for (int sum = 0; sum < 200; ++sum) {
    std::vector<float> input(kLength), weight(kLength);
    double exact = 0;
    float plain = 0, output = 0;
    for (size_t i = 0; i < kLength; ++i) {
      input[i] = std::abs(values(random));
      weight[i] = values(random);
      exact += static_cast<double>(input[i]) * weight[i];
      plain += input[i] * weight[i];
    }
    Contraction c;
    c.depth = {{.length = kLength, .input_stride = 1, .weight_stride = 1}};
    c.input = reinterpret_cast<const uint8_t*>(input.data());
    c.weight = reinterpret_cast<const uint8_t*>(weight.data());
    c.accumulator = reinterpret_cast<uint8_t*>(&output);
    ContractF32(c, &workspace);
    squares += (output - exact) * (output - exact);
    plain_squares += (plain - exact) * (plain - exact);
  }
  EXPECT_LT(std::sqrt(squares), std::sqrt(plain_squares) / 3);
}

}  // namespace
}  // namespace dla::runtime
