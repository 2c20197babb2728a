// Copies and checks of costs for assignment_simd.cpp. Like common/simd.hpp, all of it has
// internal linkage.
#pragma once

#include <cstddef>
#include <cstring>
#include <limits>

#include "common/simd.hpp"

namespace kernelcore {
namespace {

template <class T>
constexpr T kInfinity = std::numeric_limits<T>::infinity();

template <class T>
bool load_costs(const T* from, const T* end, std::size_t n_cols, T sign, T limit, T* to) {
  constexpr std::size_t kStep = kLanes<T>;
  Mask<T> bad = {};
  std::size_t j = 0;
  for (; j + kStep <= n_cols; j += kStep) {
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

template <class T>
bool are_plain(const T* costs, std::size_t n_cols, T limit) {
  constexpr std::size_t kStep = kLanes<T>;
  Mask<T> good = ~Mask<T>{};
  std::size_t j = 0;
  for (; j + kStep <= n_cols; j += kStep) {
    const Vector<T> here = load(costs + j);
    good &= (here > -limit) & (here < limit);
  }
  bool all = mask_bits<T>(~good) == 0;
  for (; j < n_cols; ++j) all &= costs[j] > -limit && costs[j] < limit;
  return all;
}

}  // namespace
}  // namespace kernelcore
