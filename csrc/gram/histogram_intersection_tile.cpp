#include "gram/histogram_intersection_tile.hpp"

#include <type_traits>

#include "common/lanes.hpp"

namespace kernelcore {
namespace {

// Pairs of rows whose sums stay in registers: as many as the instruction set has room for.
constexpr std::size_t kRowsX = 4;
constexpr std::size_t kRowsY = kVectorBytes == 64 ? 4 : 2;

// Numbers >= 0 are ordered like their bits read as signed integers (-0.0 comes out lowest).
// Processors that add floats on few of their units compare integers on the others.
template <class T>
inline Vector<T> smaller(Vector<T> a, Vector<T> b) {
  if constexpr (std::is_same_v<T, float>) {
    using Bits = Vector<std::int32_t>;
    return reinterpret_cast<Vector<T>>(
        minimum<std::int32_t>(reinterpret_cast<Bits>(a), reinterpret_cast<Bits>(b)));
  } else if constexpr (std::is_same_v<T, double> && kVectorBytes == 64) {
    using Bits = Vector<std::int64_t>;
    return reinterpret_cast<Vector<T>>(
        minimum<std::int64_t>(reinterpret_cast<Bits>(a), reinterpret_cast<Bits>(b)));
  } else {
    return minimum<T>(a, b);
  }
}

// What a pair of vectors adds to the sums. Bytes add their differences: see tile_of_bytes().
template <class Acc, class T>
inline void add_pair(Vector<Acc>& sum, Vector<T> a, Vector<T> b) {
  if constexpr (sizeof(T) == 1) {
    sum += differences_of_eight(a, b);
  } else if constexpr (sizeof(T) == sizeof(Acc)) {
    sum += smaller<T>(a, b);
  } else {  // both halves of each wide lane: no shuffle, and no lane order to keep
    static_assert(sizeof(Acc) == 2 * sizeof(T));
    constexpr int kBits = 8 * sizeof(T);
    const auto wide = reinterpret_cast<Vector<Acc>>(smaller<T>(a, b));
    sum += (wide & ((Acc{1} << kBits) - 1)) + (wide >> kBits);
  }
}

// Adds the lanes of a group in a tree whose shape does not depend on the vector width: halves
// onto each other, down to one lane.
template <class Acc, std::size_t kBytes = kGroupBytes>
inline Acc add_up(const Acc* stored) {
  if constexpr (kBytes == sizeof(Acc)) {
    return *stored;
  } else {
    typedef Acc Half __attribute__((vector_size(kBytes / 2)));
    Half low, high;
    std::memcpy(&low, stored, sizeof low);
    std::memcpy(&high, stored + kBytes / 2 / sizeof(Acc), sizeof high);
    low += high;
    Acc halved[kBytes / 2 / sizeof(Acc)];
    std::memcpy(halved, &low, sizeof low);
    return add_up<Acc, kBytes / 2>(halved);
  }
}

// Not inlined: a compiler that sees the halves keeps the sums of the loop before in memory.
template <std::size_t kNx, std::size_t kNy, class Acc, class Sum>
__attribute__((noinline)) void add_groups(const Acc (&groups)[kNx][kNy][kGroup<Acc>], Sum* sums,
                                          std::size_t sums_stride) {
  for (std::size_t i = 0; i < kNx; ++i) {
    for (std::size_t j = 0; j < kNy; ++j) {
      sums[i * sums_stride + j] += static_cast<Sum>(add_up<Acc>(groups[i][j]));
    }
  }
}

template <class Acc, std::size_t kNx, std::size_t kNy, class T>
inline void add_vector(const T* const (&x)[kNx], const T* const (&y)[kNy], std::size_t bin,
                       Vector<Acc> (&acc)[kNx][kNy]) {
  Vector<T> values[kNy];
#pragma GCC unroll 4
  for (std::size_t j = 0; j < kNy; ++j) values[j] = load(y[j] + bin);
#pragma GCC unroll 4
  for (std::size_t i = 0; i < kNx; ++i) {
    const Vector<T> value = load_into_register(x[i] + bin);
#pragma GCC unroll 4
    for (std::size_t j = 0; j < kNy; ++j) {
      add_pair<Acc, T>(acc[i][j], value, values[j]);
    }
  }
}

template <std::size_t kNx, std::size_t kNy, class Acc, class T, class Sum>
void intersect(const T* x, std::size_t x_stride, const T* y, std::size_t y_stride,
               std::size_t n_bins, Sum* sums, std::size_t sums_stride) {
  const T* x_rows[kNx];
  const T* y_rows[kNy];
#pragma GCC unroll 4
  for (std::size_t i = 0; i < kNx; ++i) x_rows[i] = x + i * x_stride;
#pragma GCC unroll 4
  for (std::size_t j = 0; j < kNy; ++j) y_rows[j] = y + j * y_stride;

  const std::size_t n_whole = n_bins / kGroup<T> * kGroup<T>;
  T x_rest[kNx][kGroup<T>] = {};  // the rest, padded with zeros, which add nothing
  T y_rest[kNy][kGroup<T>] = {};
  const T* x_rests[kNx];
  const T* y_rests[kNy];
  const std::size_t n_bytes = (n_bins - n_whole) * sizeof(T);
#pragma GCC unroll 4
  for (std::size_t i = 0; i < kNx; ++i) {
    std::memcpy(x_rest[i], x_rows[i] + n_whole, n_bytes);
    x_rests[i] = x_rest[i];
  }
#pragma GCC unroll 4
  for (std::size_t j = 0; j < kNy; ++j) {
    std::memcpy(y_rest[j], y_rows[j] + n_whole, n_bytes);
    y_rests[j] = y_rest[j];
  }

  // One part of every group at a time: its sums have the registers for themselves. They stay
  // there only if every loop over rows is unrolled.
  alignas(kGroupBytes) Acc groups[kNx][kNy][kGroup<Acc>];
  for (std::size_t part = 0; part < kPartsPerGroup; ++part) {
    const std::size_t first = part * kLanes<T>;
    Vector<Acc> acc[kNx][kNy] = {};
    for (std::size_t bin = first; bin < n_whole; bin += kGroup<T>) {
      add_vector<Acc>(x_rows, y_rows, bin, acc);
    }
    if (n_bytes > 0) add_vector<Acc>(x_rests, y_rests, first, acc);
#pragma GCC unroll 4
    for (std::size_t i = 0; i < kNx; ++i) {
#pragma GCC unroll 4
      for (std::size_t j = 0; j < kNy; ++j) {
        std::memcpy(&groups[i][j][part * kLanes<Acc>], &acc[i][j], kVectorBytes);
      }
    }
  }
  add_groups<kNx, kNy>(groups, sums, sums_stride);
}

// Asks for one of `n_shares` shares of the block that follows: while a block is summed, the
// next one arrives in the second-level cache.
template <class T>
inline void prefetch_next(const T* row, std::size_t n_bins, std::size_t share,
                          std::size_t n_shares) {
  const char* next = reinterpret_cast<const char*>(row + n_bins);
  const std::size_t end = kBlockBytes * (share + 1) / n_shares;
  for (std::size_t at = kBlockBytes * share / n_shares; at < end; at += kGroupBytes) {
    __builtin_prefetch(next + at, 0, 2);
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
      for (std::size_t row = 0; row < kRowsX; ++row) {
        prefetch_next(x_rows + row * x_stride, n_bins, j / kRowsY, n_y / kRowsY);
      }
      for (std::size_t row = j; row < j + kRowsY; ++row) {
        prefetch_next(y + row * y_stride, n_bins, i / kRowsX, n_x / kRowsX);
      }
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

// min(x, y) = (x + y - |x - y|) / 2, and processors add up differences of bytes in one step.
void tile_of_bytes(const std::uint8_t* x, std::size_t x_stride, std::size_t n_x,
                   const std::uint8_t* y, std::size_t y_stride, std::size_t n_y,
                   std::size_t n_bins, std::uint64_t* sums, std::size_t sums_stride) {
  const std::uint8_t nothing[kBlockBytes] = {};
  std::uint64_t masses_x[kTileRows] = {}, masses_y[kTileCols] = {};
  std::uint64_t differences[kTileRows * kTileCols] = {};
  tile<std::uint64_t>(x, x_stride, n_x, nothing, 0, 1, n_bins, masses_x, 1);
  tile<std::uint64_t>(y, y_stride, n_y, nothing, 0, 1, n_bins, masses_y, 1);
  tile<std::uint64_t>(x, x_stride, n_x, y, y_stride, n_y, n_bins, differences, kTileCols);
  for (std::size_t i = 0; i < n_x; ++i) {
    for (std::size_t j = 0; j < n_y; ++j) {
      sums[i * sums_stride + j] +=
          (masses_x[i] + masses_y[j] - differences[i * kTileCols + j]) / 2;
    }
  }
}

}  // namespace

namespace KERNELCORE_ISA {

IntersectionTiles intersection_tiles() {
  return {tile<float>,         tile<double>,        tile_of_bytes,      tile<std::uint16_t>,
          tile<std::uint32_t>, tile<std::uint32_t>, tile<std::uint64_t>};
}

}  // namespace KERNELCORE_ISA
}  // namespace kernelcore
