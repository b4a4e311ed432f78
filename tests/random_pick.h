// Numbers of property tests, in a sequence that is the same everywhere.
#pragma once

#include <cstdint>
#include <random>

namespace dla {

// pick(low, high): a whole number from low to high, both possible. It draws one number of `random`.
class RandomPick {
 public:
  explicit RandomPick(std::mt19937* random) : random_(*random) {}

  int64_t operator()(int64_t low, int64_t high) const {
    return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1));
  }

 private:
  std::mt19937& random_;
};

}  // namespace dla
