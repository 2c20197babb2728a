// Copies and checks of costs for assignment_simd.cpp. Like common/simd.hpp, all of it has
// internal linkage.
#pragma once

#include <cstddef>
#include <cstring>
#include <limits>

#include "common/matrix_view.hpp"
#include "common/simd.hpp"

namespace kernelcore {
namespace {

template <class T>
constexpr T kInfinity = std::numeric_limits<T>::infinity();

// load_costs() and lowest_of_row() fetch the next row, a stride behind, while they read a row:
// most of the time is the way from memory.
template <class T>
bool load_costs(const T* from, const T* end, std::size_t n_cols, std::size_t stride, T sign,
                T limit, T* to) {
  constexpr std::size_t kStep = kLanes<T>;
  Mask<T> bad = {};
  std::size_t j = 0;
  for (; j + kStep <= n_cols; j += kStep) {
    prefetch(from + stride, j);
    const Vector<T> costs = load(from + j) * sign;
    bad |= ~((costs > -limit) & (costs < limit));
    store(to + j, costs);
  }
  if (j < n_cols) {
    Vector<T> costs;
    if (static_cast<std::size_t>(end - from) >= j + kStep) {
      costs = load(from + j) * sign;
    } else {
      T rest[kStep] = {};
      std::memcpy(rest, from + j, (n_cols - j) * sizeof(T));
      costs = load(rest) * sign;
    }
    const Mask<T> inside = lane_numbers<LaneInt<T>>() < static_cast<LaneInt<T>>(n_cols - j);
    bad |= ~((costs > -limit) & (costs < limit)) & inside;
    store(to + j, select(inside, costs, splat(kInfinity<T>)));
  }
  return mask_bits<T>(bad) == 0;
}

// The least cost of a row that is not copied. One vector at a time is faster than memory.
template <class T>
T lowest_of_row(const T* costs, std::size_t n_cols, std::size_t stride, T sign, T limit,
                bool& are_plain) {
  constexpr std::size_t kStep = kLanes<T>;
  Vector<T> lowest = splat(kInfinity<T>);
  Mask<T> good = ~Mask<T>{};
  std::size_t j = 0;
  for (; j + kStep <= n_cols; j += kStep) {
    prefetch(costs + stride, j);
    const Vector<T> here = load(costs + j) * sign;
    good &= (here > -limit) & (here < limit);
    lowest = minimum<T>(here, lowest);
  }
  are_plain &= mask_bits<T>(~good) == 0;
  T least = lowest_of<T>(lowest);
  for (; j < n_cols; ++j) {
    const T cost = costs[j] * sign;
    are_plain &= cost > -limit && cost < limit;
    least = cost < least ? cost : least;
  }
  return least;
}

}  // namespace
}  // namespace kernelcore
