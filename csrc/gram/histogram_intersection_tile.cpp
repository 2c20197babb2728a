#include "gram/histogram_intersection_tile.hpp"

#include <type_traits>

#include "common/lanes.hpp"

namespace kernelcore {
namespace {

// Pairs of rows whose sums stay in registers: as many as the instruction set has room for.
constexpr std::size_t kRowsX = kVectorBytes == 16 ? 1 : kVectorBytes == 32 ? 2 : 4;
constexpr std::size_t kRowsY = kVectorBytes == 64 ? 4 : 2;

template <class T, class Acc>
inline void add_lanes(Vector<Acc>& sum, Vector<T> values) {
  if constexpr (sizeof(T) == sizeof(Acc)) {
    sum += values;
  } else {  // both halves of each wide lane: no shuffle, and no lane order to keep
    static_assert(sizeof(Acc) == 2 * sizeof(T));
    constexpr int kBits = 8 * sizeof(T);
    const auto wide = reinterpret_cast<Vector<Acc>>(values);
    sum += (wide & ((Acc{1} << kBits) - 1)) + (wide >> kBits);
  }
}

// Adds the lanes of a group in a tree whose shape does not depend on the vector width.
template <class Acc, class Sum>
inline Sum add_up(const Vector<Acc>* parts) {
  constexpr std::size_t kCount = kGroup<Acc>;
  // Floats keep their precision inside a block; integers may outgrow their lanes here.
  using Lane = std::conditional_t<std::is_floating_point_v<Acc>, Acc, Sum>;
  Acc stored[kCount];
  std::memcpy(stored, parts, sizeof stored);
  Lane lanes[kCount];
  for (std::size_t lane = 0; lane < kCount; ++lane) lanes[lane] = stored[lane];
  for (std::size_t half = kCount / 2; half > 0; half /= 2) {
    for (std::size_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return static_cast<Sum>(lanes[0]);
}

template <class Acc, std::size_t kNx, std::size_t kNy, class T>
inline void add_group(const T* const (&x)[kNx], const T* const (&y)[kNy], std::size_t bin,
                      Vector<Acc> (&acc)[kNx][kNy][kPartsPerGroup]) {
  for (std::size_t part = 0; part < kPartsPerGroup; ++part) {
    const std::size_t at = bin + part * kLanes<T>;
    Vector<T> values[kNy];
    for (std::size_t j = 0; j < kNy; ++j) values[j] = load(y[j] + at);
    for (std::size_t i = 0; i < kNx; ++i) {
      const Vector<T> value = load(x[i] + at);
      for (std::size_t j = 0; j < kNy; ++j) {
        add_lanes<T, Acc>(acc[i][j][part], minimum<T>(value, values[j]));
      }
    }
  }
}

template <std::size_t kNx, std::size_t kNy, class Acc, class T, class Sum>
void intersect(const T* x, std::size_t x_stride, const T* y, std::size_t y_stride,
               std::size_t n_bins, Sum* sums, std::size_t sums_stride) {
  const T* x_rows[kNx];
  const T* y_rows[kNy];
  for (std::size_t i = 0; i < kNx; ++i) x_rows[i] = x + i * x_stride;
  for (std::size_t j = 0; j < kNy; ++j) y_rows[j] = y + j * y_stride;

  Vector<Acc> acc[kNx][kNy][kPartsPerGroup] = {};
  std::size_t bin = 0;
  for (; bin + kGroup<T> <= n_bins; bin += kGroup<T>) add_group<Acc>(x_rows, y_rows, bin, acc);
  if (bin < n_bins) {  // the rest, padded with zeros, which add nothing
    T x_rest[kNx][kGroup<T>] = {};
    T y_rest[kNy][kGroup<T>] = {};
    const std::size_t n_bytes = (n_bins - bin) * sizeof(T);
    for (std::size_t i = 0; i < kNx; ++i) {
      std::memcpy(x_rest[i], x_rows[i] + bin, n_bytes);
      x_rows[i] = x_rest[i];
    }
    for (std::size_t j = 0; j < kNy; ++j) {
      std::memcpy(y_rest[j], y_rows[j] + bin, n_bytes);
      y_rows[j] = y_rest[j];
    }
    add_group<Acc>(x_rows, y_rows, 0, acc);
  }
  for (std::size_t i = 0; i < kNx; ++i) {
    for (std::size_t j = 0; j < kNy; ++j) {
      sums[i * sums_stride + j] += add_up<Acc, Sum>(acc[i][j]);
    }
  }
}

// Every pair's sum is formed in the same order whether its rows are blocked or left over.
template <class Acc, class T, class Sum>
void tile(const T* x, std::size_t x_stride, std::size_t n_x, const T* y, std::size_t y_stride,
          std::size_t n_y, std::size_t n_bins, Sum* sums, std::size_t sums_stride) {
  std::size_t i = 0;
  for (; i + kRowsX <= n_x; i += kRowsX) {
    const T* x_rows = x + i * x_stride;
    std::size_t j = 0;
    for (; j + kRowsY <= n_y; j += kRowsY) {
      intersect<kRowsX, kRowsY, Acc>(x_rows, x_stride, y + j * y_stride, y_stride, n_bins,
                                     sums + i * sums_stride + j, sums_stride);
    }
    for (; j < n_y; ++j) {
      intersect<kRowsX, 1, Acc>(x_rows, x_stride, y + j * y_stride, y_stride, n_bins,
                                sums + i * sums_stride + j, sums_stride);
    }
  }
  for (; i < n_x; ++i) {
    for (std::size_t j = 0; j < n_y; ++j) {
      intersect<1, 1, Acc>(x + i * x_stride, x_stride, y + j * y_stride, y_stride, n_bins,
                           sums + i * sums_stride + j, sums_stride);
    }
  }
}

}  // namespace

namespace KERNELCORE_ISA {

IntersectionTiles intersection_tiles() {
  return {tile<float>,         tile<double>,        tile<std::uint16_t>, tile<std::uint16_t>,
          tile<std::uint32_t>, tile<std::uint32_t>, tile<std::uint64_t>};
}

}  // namespace KERNELCORE_ISA
}  // namespace kernelcore
