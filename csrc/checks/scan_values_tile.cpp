#include "checks/scan_values_tile.hpp"

#include <type_traits>

#include "common/lanes.hpp"

namespace kernelcore {
namespace {

#define UNROLL _Pragma("GCC unroll 16")

// Vectors that are taken at once: their minima wait for nothing but memory.
constexpr std::size_t kVectors = 4;

template <class T>
inline T lower(T a, T b) {
  return b < a ? b : a;
}

template <class T>
inline T higher(T a, T b) {
  return b > a ? b : a;
}

template <class T>
inline Vector<T> maximum(Vector<T> a, Vector<T> b) {
  return a < b ? b : a;
}

template <class T>
inline Vector<T> all_lanes(T value) {
  Vector<T> lanes;
  for (std::size_t lane = 0; lane < kLanes<T>; ++lane) lanes[lane] = value;
  return lanes;
}

// What becomes NaN, and stays so, as soon as x is not finite.
template <class X>
inline X trace_of(X x) {
  return x - x;
}

template <class T>
void scan_run(const T* values, std::size_t n, Seen<T>& seen) {
  constexpr std::size_t kStep = kVectors * kLanes<T>;
  Vector<T> smallest[kVectors], largest[kVectors], sum[kVectors] = {};
  for (std::size_t v = 0; v < kVectors; ++v) {
    smallest[v] = all_lanes(seen.smallest);
    largest[v] = all_lanes(seen.largest);
  }
  std::size_t k = 0;
  for (; k + kStep <= n; k += kStep) {
    for (std::size_t v = 0; v < kVectors; ++v) {
      const Vector<T> x = load(values + k + v * kLanes<T>);
      smallest[v] = minimum<T>(smallest[v], x);
      largest[v] = maximum<T>(largest[v], x);
      if constexpr (std::is_floating_point_v<T>) sum[v] += trace_of(x);
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
    if constexpr (std::is_floating_point_v<T>) seen.sum += trace_of(values[k]);
  }
}

// The lanes of two vectors in turn: a0 b0 a1 b1 ... of their first or of their second halves.
template <class T>
inline Vector<T> zip_first(Vector<T> a, Vector<T> b) {
  if constexpr (kLanes<T> == 2) return __builtin_shufflevector(a, b, 0, 2);
  if constexpr (kLanes<T> == 4) return __builtin_shufflevector(a, b, 0, 4, 1, 5);
  if constexpr (kLanes<T> == 8) return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
  if constexpr (kLanes<T> == 16) {
    return __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7,
                                   23);
  }
}

template <class T>
inline Vector<T> zip_second(Vector<T> a, Vector<T> b) {
  if constexpr (kLanes<T> == 2) return __builtin_shufflevector(a, b, 1, 3);
  if constexpr (kLanes<T> == 4) return __builtin_shufflevector(a, b, 2, 6, 3, 7);
  if constexpr (kLanes<T> == 8)
    return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
  if constexpr (kLanes<T> == 16) {
    return __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30,
                                   15, 31);
  }
}

// Transposes a square of as many rows as a vector has lanes. Each round doubles the elements of
// a column that stand side by side, as each shuffle of a pack of cards does.
template <class T>
inline void transpose(Vector<T> (&rows)[kLanes<T>]) {
  constexpr std::size_t kN = kLanes<T>;
  UNROLL for (std::size_t round = 1; round < kN; round *= 2) {
    Vector<T> zipped[kN];
    UNROLL for (std::size_t k = 0; k < kN / 2; ++k) {
      zipped[2 * k] = zip_first<T>(rows[k], rows[k + kN / 2]);
      zipped[2 * k + 1] = zip_second<T>(rows[k], rows[k + kN / 2]);
    }
    UNROLL for (std::size_t k = 0; k < kN; ++k) rows[k] = zipped[k];
  }
}

template <class T>
void compare_mirror(const T* piece, const T* mirror, std::size_t stride, std::size_t n_rows,
                    std::size_t n_cols, Seen<T>& seen) {
  constexpr std::size_t kN = kLanes<T>;
  const std::size_t whole_rows = n_rows / kN * kN, whole_cols = n_cols / kN * kN;
  Vector<T> smallest = all_lanes(seen.smallest), largest = all_lanes(seen.largest);
  Vector<T> gap = all_lanes(seen.gap), sum = {};
  for (std::size_t i = 0; i < whole_rows; i += kN) {
    for (std::size_t j = 0; j < whole_cols; j += kN) {
      Vector<T> rows[kN];
      UNROLL for (std::size_t k = 0; k < kN; ++k) rows[k] = load(mirror + (j + k) * stride + i);
      transpose<T>(rows);
      UNROLL for (std::size_t k = 0; k < kN; ++k) {
        const Vector<T> x = load(piece + (i + k) * stride + j), y = rows[k];
        const Vector<T> low = minimum<T>(x, y), high = maximum<T>(x, y);
        smallest = minimum<T>(smallest, low);
        largest = maximum<T>(largest, high);
        const Vector<T> difference = high - low;
        gap = maximum<T>(gap, difference);
        sum += trace_of(x) + trace_of(y);
      }
    }
  }
  for (std::size_t lane = 0; lane < kN; ++lane) {
    seen.smallest = lower(seen.smallest, T{smallest[lane]});
    seen.largest = higher(seen.largest, T{largest[lane]});
    seen.gap = higher(seen.gap, T{gap[lane]});
    seen.sum += sum[lane];
  }
  for (std::size_t i = 0; i < n_rows; ++i) {
    for (std::size_t j = i < whole_rows ? whole_cols : 0; j < n_cols; ++j) {
      const T x = piece[i * stride + j], y = mirror[j * stride + i];
      const T low = lower(x, y), high = higher(x, y);
      seen.smallest = lower(seen.smallest, low);
      seen.largest = higher(seen.largest, high);
      seen.gap = higher(seen.gap, high - low);
      seen.sum += trace_of(x) + trace_of(y);
    }
  }
}

}  // namespace

namespace KERNELCORE_ISA {

ScanTiles scan_tiles() {
  return {scan_run<float>,         scan_run<double>,        scan_run<std::uint8_t>,
          scan_run<std::uint16_t>, scan_run<std::uint32_t>, compare_mirror<float>,
          compare_mirror<double>};
}

}  // namespace KERNELCORE_ISA
}  // namespace kernelcore
