// Loops over arrays of values.
#pragma once

#include <cstdint>

namespace dla::runtime {

template <typename A, typename T, typename F>
void Map(const A* a, int64_t count, T* to, F f) {
  for (int64_t i = 0; i < count; ++i) to[i] = f(a[i]);
}

template <typename A, typename T, typename F>
void Map2(const A* a, const A* b, int64_t count, T* to, F f) {
  for (int64_t i = 0; i < count; ++i) to[i] = f(a[i], b[i]);
}

}  // namespace dla::runtime
