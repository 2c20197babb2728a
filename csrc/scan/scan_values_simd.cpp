#include "scan/scan_values_simd.hpp"

#include <type_traits>

#include "common/matrix_view.hpp"
#include "common/simd.hpp"

namespace kernelcore {
namespace {

// Vectors at once: their minima do not wait for one another.
constexpr std::size_t kVectors = 4;

template <class T>
inline T lower(T a, T b) {
  return b < a ? b : a;
}

template <class T>
inline T higher(T a, T b) {
  return b > a ? b : a;
}

// Adds 0 for a finite x, else NaN: the sum stays 0 as long as all x are finite.
template <class X>
inline void add_zero_or_nan(X x, X& sum) {
  sum += x * 0;
}

template <class T>
void scan_run(const T* values, std::size_t n, Seen<T>& seen) {
  constexpr std::size_t kStep = kVectors * kLanes<T>;
  Vector<T> smallest[kVectors], largest[kVectors], sum[kVectors] = {};
  for (std::size_t v = 0; v < kVectors; ++v) {
    smallest[v] = splat(seen.smallest);
    largest[v] = splat(seen.largest);
  }
  std::size_t k = 0;
  for (; k + kStep <= n; k += kStep) {
    for (std::size_t v = 0; v < kVectors; ++v) {
      const Vector<T> x = load(values + k + v * kLanes<T>);
      smallest[v] = minimum<T>(smallest[v], x);
      largest[v] = maximum<T>(largest[v], x);
      if constexpr (std::is_floating_point_v<T>) add_zero_or_nan(x, sum[v]);
    }
  }
  for (std::size_t v = 0; v < kVectors; ++v) {
    for (std::size_t lane = 0; lane < kLanes<T>; ++lane) {
      seen.smallest = lower(seen.smallest, T{smallest[v][lane]});
      seen.largest = higher(seen.largest, T{largest[v][lane]});
      seen.sum += sum[v][lane];
    }
  }
  for (; k < n; ++k) {
    seen.smallest = lower(seen.smallest, values[k]);
    seen.largest = higher(seen.largest, values[k]);
    if constexpr (std::is_floating_point_v<T>) add_zero_or_nan(values[k], seen.sum);
  }
}

template <class T>
void compare_mirror(const T* piece, const T* mirror, std::size_t stride, std::size_t n_rows,
                    std::size_t n_cols, Seen<T>& seen) {
  constexpr std::size_t kN = kLanes<T>;
  const std::size_t whole_rows = n_rows / kN * kN, whole_cols = n_cols / kN * kN;
  Vector<T> smallest = splat(seen.smallest), largest = splat(seen.largest);
  Vector<T> gap = splat(seen.gap), sum = {}, sum_of_mirror = {};
  for (std::size_t i = 0; i < whole_rows; i += kN) {
    for (std::size_t j = 0; j < whole_cols; j += kN) {
      Vector<T> rows[kN];
#pragma GCC unroll 16
      for (std::size_t k = 0; k < kN; ++k) {
        rows[k] = load(mirror + (j + k) * stride + i);
        prefetch(mirror, (j + k + kScanSide) * stride + i);
        prefetch(piece, (i + k) * stride + j + kScanSide);
      }
      transpose<T>(rows);
#pragma GCC unroll 16
      for (std::size_t k = 0; k < kN; ++k) {
        const Vector<T> x = load(piece + (i + k) * stride + j), y = rows[k];
        // Not maximum(x, y): one comparison for both is two blends more.
        const Vector<T> low = minimum<T>(x, y), high = maximum<T>(y, x);
        smallest = minimum<T>(smallest, low);
        largest = maximum<T>(largest, high);
        gap = maximum<T>(gap, high - low);
        add_zero_or_nan(x, sum);
        add_zero_or_nan(y, sum_of_mirror);
      }
    }
  }
  for (std::size_t lane = 0; lane < kN; ++lane) {
    seen.smallest = lower(seen.smallest, T{smallest[lane]});
    seen.largest = higher(seen.largest, T{largest[lane]});
    seen.gap = higher(seen.gap, T{gap[lane]});
    seen.sum += sum[lane] + sum_of_mirror[lane];
  }
  for (std::size_t i = 0; i < n_rows; ++i) {
    for (std::size_t j = i < whole_rows ? whole_cols : 0; j < n_cols; ++j) {
      const T x = piece[i * stride + j], y = mirror[j * stride + i];
      const T low = lower(x, y), high = higher(x, y);
      seen.smallest = lower(seen.smallest, low);
      seen.largest = higher(seen.largest, high);
      seen.gap = higher(seen.gap, high - low);
      add_zero_or_nan(x, seen.sum);
      add_zero_or_nan(y, seen.sum);
    }
  }
}

}  // namespace

namespace KERNELCORE_ISA {

ScanKernels scan_kernels() {
  return {scan_run<float>,         scan_run<double>,        scan_run<std::uint8_t>,
          scan_run<std::uint16_t>, scan_run<std::uint32_t>, compare_mirror<float>,
          compare_mirror<double>};
}

}  // namespace KERNELCORE_ISA
}  // namespace kernelcore
