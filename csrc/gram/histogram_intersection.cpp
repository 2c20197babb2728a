#include "gram/histogram_intersection.hpp"

#include <algorithm>
#include <limits>
#include <type_traits>

#include "common/parallel.hpp"
#include "gram/histogram_intersection_tile.hpp"

namespace kernelcore {
namespace {

template <class T>
using SumOf = std::conditional_t<std::is_floating_point_v<T>, double, std::uint64_t>;

template <class T>
constexpr std::size_t kBlock = kBlockBytes / sizeof(T);

// Largest sum of one block of one row: what a lane may have to hold.
template <class T>
std::uint64_t largest_block_mass(MatrixView<const T> X, const std::vector<Segment>& segments) {
  using Mass = std::conditional_t<sizeof(T) == 2, std::uint32_t, std::uint64_t>;
  Mass largest = 0;
  for (std::size_t i = 0; i < X.n_rows; ++i) {
    for (const Segment& segment : segments) {
      for (std::size_t begin = segment.begin; begin < segment.end; begin += kBlock<T>) {
        const std::size_t end = std::min(begin + kBlock<T>, segment.end);
        Mass mass = 0;
        for (std::size_t bin = begin; bin < end; ++bin) mass += X(i, bin);
        largest = std::max(largest, mass);
      }
    }
  }
  return largest;
}

template <class T>
IntersectionTile<T, SumOf<T>> choose_tile(MatrixView<const T> X, MatrixView<const T> Y,
                                          const std::vector<Segment>& segments) {
  const IntersectionTiles tiles = KERNELCORE_ACTIVE_TILES(intersection_tiles);
  if constexpr (std::is_same_v<T, float>) {
    return tiles.f32;
  } else if constexpr (std::is_same_v<T, double>) {
    return tiles.f64;
  } else if constexpr (std::is_same_v<T, std::uint8_t>) {
    return tiles.u8;
  } else {
    constexpr std::uint64_t kMax = std::numeric_limits<T>::max();
    const bool narrow = largest_block_mass(X, segments) <= kMax ||
                        (X.data != Y.data && largest_block_mass(Y, segments) <= kMax);
    if constexpr (std::is_same_v<T, std::uint16_t>) {
      return narrow ? tiles.u16_narrow : tiles.u16_wide;
    } else {
      return narrow ? tiles.u32_narrow : tiles.u32_wide;
    }
  }
}

struct TileRange {
  std::size_t row_begin, row_end, col_begin, col_end;
};

// The tiles of K, or of its upper triangle (those of the diagonal included).
std::vector<TileRange> cut(std::size_t n_rows, std::size_t n_cols, bool symmetric) {
  std::vector<TileRange> tiles;
  for (std::size_t row = 0; row < n_rows; row += kTileRows) {
    const std::size_t first = symmetric ? row / kTileCols * kTileCols : 0;
    for (std::size_t col = first; col < n_cols; col += kTileCols) {
      tiles.push_back(
          {row, std::min(row + kTileRows, n_rows), col, std::min(col + kTileCols, n_cols)});
    }
  }
  return tiles;
}

template <class T, class Out, class Total>
void gram(MatrixView<const T> X, MatrixView<const T> Y, const std::vector<Segment>& segments,
          bool symmetric, MatrixView<Out> K, std::size_t n_threads, Monitor& monitor) {
  using Sum = SumOf<T>;
  const auto tile = choose_tile(X, Y, segments);
  const std::vector<TileRange> tiles = cut(X.n_rows, Y.n_rows, symmetric);

  parallel_for(tiles.size(), n_threads, monitor, [&](std::size_t task, std::size_t) {
    const TileRange& range = tiles[task];
    const std::size_t n_rows = range.row_end - range.row_begin;
    const std::size_t n_cols = range.col_end - range.col_begin;
    Total totals[kTileRows * kTileCols] = {};
    for (const Segment& segment : segments) {
      Sum sums[kTileRows * kTileCols] = {};
      for (std::size_t begin = segment.begin; begin < segment.end; begin += kBlock<T>) {
        tile(X.row(range.row_begin) + begin, X.stride, n_rows, Y.row(range.col_begin) + begin,
             Y.stride, n_cols, std::min(kBlock<T>, segment.end - begin), sums, kTileCols);
      }
      const Total weight = static_cast<Total>(segment.weight);
      for (std::size_t k = 0; k < kTileRows * kTileCols; ++k) {
        totals[k] += weight * static_cast<Total>(sums[k]);
      }
    }
    for (std::size_t i = 0; i < n_rows; ++i) {
      for (std::size_t j = 0; j < n_cols; ++j) {
        const std::size_t row = range.row_begin + i;
        const std::size_t col = range.col_begin + j;
        if (symmetric && col < row) continue;  // another tile, or this one, mirrors it
        const Out value = static_cast<Out>(totals[i * kTileCols + j]);
        K(row, col) = value;
        if (symmetric) K(col, row) = value;
      }
    }
  });
}

}  // namespace

template <class T, class Out>
void histogram_intersection(MatrixView<const T> X, MatrixView<const T> Y, MatrixView<Out> K,
                            std::size_t n_threads, Monitor& monitor) {
  const bool symmetric = X.data == Y.data && X.n_rows == Y.n_rows;
  gram<T, Out, SumOf<T>>(X, Y, {{0, X.n_cols, 1.0}}, symmetric, K, n_threads, monitor);
}

template <class T, class Out>
void segmented_intersection(MatrixView<const T> X, MatrixView<const T> Y,
                            const std::vector<Segment>& segments, bool symmetric,
                            MatrixView<Out> K, std::size_t n_threads, Monitor& monitor) {
  gram<T, Out, double>(X, Y, segments, symmetric, K, n_threads, monitor);
}

#define KERNELCORE_INSTANTIATE(T, Out)                                                   \
  template void histogram_intersection<T, Out>(MatrixView<const T>, MatrixView<const T>, \
                                               MatrixView<Out>, std::size_t, Monitor&);
KERNELCORE_INSTANTIATE(float, float)
KERNELCORE_INSTANTIATE(double, double)
KERNELCORE_INSTANTIATE(std::uint8_t, std::uint64_t)
KERNELCORE_INSTANTIATE(std::uint16_t, std::uint64_t)
KERNELCORE_INSTANTIATE(std::uint32_t, std::uint64_t)
#undef KERNELCORE_INSTANTIATE

#define KERNELCORE_INSTANTIATE(T, Out)                                                   \
  template void segmented_intersection<T, Out>(MatrixView<const T>, MatrixView<const T>, \
                                               const std::vector<Segment>&, bool,        \
                                               MatrixView<Out>, std::size_t, Monitor&);
KERNELCORE_INSTANTIATE(float, float)
KERNELCORE_INSTANTIATE(double, double)
KERNELCORE_INSTANTIATE(std::uint16_t, float)
KERNELCORE_INSTANTIATE(std::uint16_t, double)
KERNELCORE_INSTANTIATE(std::uint32_t, float)
KERNELCORE_INSTANTIATE(std::uint32_t, double)
#undef KERNELCORE_INSTANTIATE

}  // namespace kernelcore
