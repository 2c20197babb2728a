#include "ranks/dot_products_simd.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "common/simd.hpp"

namespace kernelcore {
namespace {

// Sums that are kept in registers, beside the vectors that are multiplied.
constexpr std::size_t kRows = kVectorBytes == 64 ? 12 : kVectorBytes == 32 ? 6 : 4;
constexpr std::size_t kVectors = 2;
template <class T>
constexpr std::size_t kCols = kVectors * kLanes<T>;
static_assert(kRowGroup % kRows == 0);

// packed[k, i] = rows[i, k], and 0 where there is no row.
template <std::size_t kN, class T>
void pack_group(const T* rows, std::size_t stride, std::size_t n, std::size_t depth,
                T* packed) {
  std::size_t k = 0;
  if constexpr (kN % kLanes<T> == 0) {
    for (; n == kN && k + kLanes<T> <= depth; k += kLanes<T>) {
      for (std::size_t i = 0; i < kN; i += kLanes<T>) {
        Vector<T> square[kLanes<T>];
        for (std::size_t lane = 0; lane < kLanes<T>; ++lane) {
          square[lane] = load(rows + (i + lane) * stride + k);
        }
        transpose<T>(square);
        for (std::size_t lane = 0; lane < kLanes<T>; ++lane) {
          store(packed + (k + lane) * kN + i, square[lane]);
        }
      }
    }
  }
  for (; k < depth; ++k) {
    for (std::size_t i = 0; i < kN; ++i)
      packed[k * kN + i] = i < n ? rows[i * stride + k] : T{};
  }
}

template <class T>
void pack(const T* rows, std::size_t stride, std::size_t n_rows, std::size_t depth, T* packed) {
  for (std::size_t i = 0; i < n_rows; i += kRows) {
    const std::size_t n = std::min(kRows, n_rows - i);
    pack_group<kRows>(rows + i * stride, stride, n, depth, packed + i * depth);
  }
}

// Adds the products of kRows rows and kCols columns. Components follow each other in each sum,
// so that it depends on its two rows alone.
template <class T>
void multiply_group(const T* rows, const T* columns, std::size_t depth, bool is_first, T* out,
                    std::size_t stride) {
  Vector<T> sums[kRows][kVectors] = {};
  if (!is_first) {
#pragma GCC unroll 12
    for (std::size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
      for (std::size_t v = 0; v < kVectors; ++v) {
        sums[i][v] = load(out + i * stride + v * kLanes<T>);
      }
    }
  }
  for (std::size_t k = 0; k < depth; ++k) {
    const Vector<T> x[kVectors] = {load(columns), load(columns + kLanes<T>)};
#pragma GCC unroll 12
    for (std::size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
      for (std::size_t v = 0; v < kVectors; ++v) {
        sums[i][v] = add_products<T>(sums[i][v], splat(rows[i]), x[v]);
      }
    }
    rows += kRows;
    columns += kCols<T>;
  }
#pragma GCC unroll 12
  for (std::size_t i = 0; i < kRows; ++i) {
#pragma GCC unroll 2
    for (std::size_t v = 0; v < kVectors; ++v) {
      store(out + i * stride + v * kLanes<T>, sums[i][v]);
    }
  }
}

// The same where fewer rows or columns are left.
template <class T>
void multiply_edge(const T* rows, const T* columns, std::size_t n_rows, std::size_t n_cols,
                   std::size_t depth, bool is_first, T* out, std::size_t stride) {
  T whole[kRows * kCols<T>] = {};
  for (std::size_t i = 0; i < n_rows; ++i) {
    if (!is_first) std::copy_n(out + i * stride, n_cols, whole + i * kCols<T>);
  }
  multiply_group(rows, columns, depth, false, whole, kCols<T>);
  for (std::size_t i = 0; i < n_rows; ++i) {
    std::copy_n(whole + i * kCols<T>, n_cols, out + i * stride);
  }
}

template <class T>
void multiply(const ProductTile<T>& tile) {
  const auto [left, n_left, right, right_stride, n_right, depth, is_first, out, out_stride] =
      tile;
  alignas(64) T columns[kCols<T> * kProductDepth<T>];  // stay in the first-level cache
  for (std::size_t j = 0; j < n_right; j += kCols<T>) {
    const std::size_t n_cols = std::min(kCols<T>, n_right - j);
    pack_group<kCols<T>>(right + j * right_stride, right_stride, n_cols, depth, columns);
    for (std::size_t i = 0; i < n_left; i += kRows) {
      const std::size_t n_rows = std::min(kRows, n_left - i);
      T* to = out + i * out_stride + j;
      if (n_rows == kRows && n_cols == kCols<T>) {
        multiply_group(left + i * depth, columns, depth, is_first, to, out_stride);
      } else {
        multiply_edge(left + i * depth, columns, n_rows, n_cols, depth, is_first, to,
                      out_stride);
      }
    }
  }
}

// Several at once, as each sum waits for its last addition.
template <class T>
void multiply_pairs(const T* left, const T* right, const std::int64_t* row_of, std::size_t n,
                    std::size_t depth, T* out) {
  constexpr std::size_t kPairs = 8;
  for (std::size_t first = 0; first < n; first += kPairs) {
    const T* a[kPairs];
    const T* b[kPairs];
    T sums[kPairs] = {};
    for (std::size_t p = 0; p < kPairs; ++p) {
      const std::size_t j = std::min(first + p, n - 1);
      a[p] = left + static_cast<std::size_t>(row_of[j]) * depth;
      b[p] = right + j * depth;
    }
    for (std::size_t k = 0; k < depth; ++k) {
      for (std::size_t p = 0; p < kPairs; ++p) {
        sums[p] = add_product(sums[p], a[p][k], b[p][k]);
      }
    }
    std::copy_n(sums, std::min(kPairs, n - first), out + first);
  }
}

// Sums of every 16th component: their order is the same for every width of a vector.
constexpr std::size_t kSums = 16;

template <class T>
using Half = typename VectorOf<T, kLanes<double> * sizeof(T)>::type;

template <class T>
Vector<double> widened(const T* from) {
  return __builtin_convertvector(load<T, sizeof(Half<T>)>(from), Vector<double>);
}

template <class T>
double sum_of_squares(const T* row, std::size_t depth, double factor) {
  constexpr std::size_t kN = kLanes<double>;
  Vector<double> sums[kSums / kN] = {};
  std::size_t k = 0;
  for (; k + kSums <= depth; k += kSums) {
    for (std::size_t v = 0; v < kSums / kN; ++v) {
      const Vector<double> x = widened(row + k + v * kN) * factor;
      sums[v] = add_products<double>(sums[v], x, x);
    }
  }
  double parts[kSums], total = 0;
  std::memcpy(parts, sums, sizeof parts);
  for (; k < depth; ++k) {
    const double x = row[k] * factor;
    parts[k % kSums] = add_product(parts[k % kSums], x, x);
  }
  for (const double part : parts) total += part;
  return total;
}

// A power of two that keeps the squares of a row in the range of double; those of float32 need
// none.
template <class T>
double factor_of(const T* row, std::size_t depth) {
  constexpr int kHighest = 1000;
  if constexpr (sizeof(T) == 4) return 1;
  T largest = 0;
  for (std::size_t k = 0; k < depth; ++k) largest = std::max(largest, std::abs(row[k]));
  int exponent = 0;
  std::frexp(largest, &exponent);
  return std::ldexp(1.0, std::min(-exponent, kHighest));
}

template <class T>
bool unit_rows(const T* rows, std::size_t n, std::size_t depth, T* out) {
  constexpr std::size_t kN = kLanes<double>;
  for (; n > 0; --n, rows += depth, out += depth) {
    const double factor = factor_of(rows, depth);
    const double total = sum_of_squares(rows, depth, factor);
    if (!std::isfinite(total)) return false;
    const double length = total > 0 ? std::sqrt(total) : 1.0;
    std::size_t k = 0;
    for (; k + kN <= depth; k += kN) {
      const Vector<double> x = widened(rows + k) * factor / length;
      store(out + k, __builtin_convertvector(x, Half<T>));
    }
    for (; k < depth; ++k) out[k] = static_cast<T>(rows[k] * factor / length);
  }
  return true;
}

template <class T>
ProductKernel<T> product_kernel() {
  return {pack<T>, multiply<T>, multiply_pairs<T>, unit_rows<T>};
}

}  // namespace

namespace KERNELCORE_ISA {

ProductKernels product_kernels() { return {product_kernel<float>(), product_kernel<double>()}; }

}  // namespace KERNELCORE_ISA
}  // namespace kernelcore
