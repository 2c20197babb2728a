// Copies, transposition and checks of costs for assignment_simd.cpp. Like common/simd.hpp, all
// of it has internal linkage.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>

#include "common/matrix_view.hpp"
#include "common/simd.hpp"
#include "common/worker.hpp"

namespace kernelcore {
namespace {

template <class T>
constexpr T kInfinity = std::numeric_limits<T>::infinity();

// A vector of the first n values, and zeros behind them.
template <class T>
inline Vector<T> load_first(const T* from, std::size_t n) {
  T values[kLanes<T>] = {};
  std::memcpy(values, from, n * sizeof(T));
  return load(values);
}

template <class T>
inline void store_transposed(Vector<T> (&square)[kLanes<T>], T* to, std::size_t width,
                             std::size_t n_cols) {
  transpose<T>(square);
#pragma GCC unroll 16
  for (std::size_t k = 0; k < kLanes<T>; ++k) {
    if (k < n_cols) store(to + k * width, square[k]);
  }
}

// Transposes the square that begins at `from`. At the edges of the costs only n_rows of its
// rows and n_cols of its columns exist. Prefetches the square below.
template <class T>
inline void transpose_square(const T* from, const T* end, std::size_t stride,
                             std::size_t n_rows, std::size_t n_cols, T* to, std::size_t width) {
  constexpr std::size_t kN = kLanes<T>;
  const auto size = static_cast<std::size_t>(end - from);
  if (n_rows >= kN && (kN - 1) * stride + kN <= size) {
    Vector<T> square[kN];
#pragma GCC unroll 16
    for (std::size_t k = 0; k < kN; ++k) {
      square[k] = load(from + k * stride);
      prefetch(from, (k + kN) * stride);
    }
    store_transposed(square, to, width, n_cols);
  } else {
    Vector<T> square[kN] = {};
    for (std::size_t k = 0; k < std::min(kN, n_rows); ++k) {
      square[k] = load_first(from + k * stride, std::min(kN, size - k * stride));
    }
    store_transposed(square, to, width, n_cols);
  }
}

// Transposes costs into rows that are `width` apart, rounded_to_vectors() of their length; what
// then stands behind each row means nothing. Reads no further than `end`. Takes some columns at
// a time: as many rows of the result stay in the cache, and are in few pages.
template <class T>
void transpose_costs(MatrixView<const T> costs, const T* end, T* to, std::size_t width,
                     Worker& worker) {
  constexpr std::size_t kN = kLanes<T>, kColumns = 64;
  for (std::size_t first = 0; first < costs.n_cols; first += kColumns) {
    const std::size_t last = std::min(first + kColumns, costs.n_cols);
    for (std::size_t i = 0; i < costs.n_rows; i += kN) {
      worker.spend(kN * kColumns);
      for (std::size_t j = first; j < last; j += kN) {
        transpose_square(costs.row(i) + j, end, costs.stride, costs.n_rows - i,
                         costs.n_cols - j, to + j * width + i, width);
      }
    }
  }
}

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
    const bool is_whole = static_cast<std::size_t>(end - from) >= j + kStep;
    const Vector<T> costs =
        (is_whole ? load(from + j) : load_first(from + j, n_cols - j)) * sign;
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
