#include "histograms/histogram_intersection.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <type_traits>

#include "common/aligned_buffer.hpp"
#include "common/gram_tile.hpp"
#include "common/parallel.hpp"
#include "common/task_tiles.hpp"
#include "histograms/divide_rows_simd.hpp"
#include "histograms/histogram_intersection_simd.hpp"

namespace kernelcore {
namespace {

template <class T>
using SumOf = std::conditional_t<std::is_floating_point_v<T>, double, std::uint64_t>;

template <class T>
constexpr std::size_t kBlock = kBlockBytes / sizeof(T);

// Bins that are compared, or copied, in a unit of work.
constexpr std::size_t kBinsPerUnit = 16;

// Largest sum that one lane may have to hold at the end of a block of a row.
template <class T>
std::uint64_t largest_lane_mass(MatrixView<const T> X, const std::vector<Segment>& segments,
                                Worker& worker) {
  using Mass = std::conditional_t<sizeof(T) == 2, std::uint32_t, std::uint64_t>;
  Mass largest = 0;
  for (std::size_t i = 0; i < X.n_rows; ++i) {
    worker.spend(X.n_cols / kBinsPerUnit);
    for (const Segment& segment : segments) {
      for (std::size_t begin = segment.begin; begin < segment.end; begin += kBlock<T>) {
        const T* const bins = X.row(i) + begin;
        const std::size_t n_bins = std::min(kBlock<T>, segment.end - begin);
        const std::size_t n_whole = n_bins / kGroup<T> * kGroup<T>;
        Mass lanes[kGroup<T>] = {};
        for (std::size_t group = 0; group < n_whole; group += kGroup<T>) {
          for (std::size_t lane = 0; lane < kGroup<T>; ++lane)
            lanes[lane] += bins[group + lane];
        }
        for (std::size_t bin = n_whole; bin < n_bins; ++bin) lanes[bin - n_whole] += bins[bin];
        largest = std::max(largest, *std::max_element(lanes, lanes + kGroup<T>));
      }
    }
  }
  return largest;
}

template <class T>
IntersectionKernel<T, SumOf<T>> choose_kernel(MatrixView<const T> X, MatrixView<const T> Y,
                                              const std::vector<Segment>& segments,
                                              Worker& worker) {
  const IntersectionKernels kernels = KERNELCORE_DISPATCH(intersection_kernels);
  if constexpr (std::is_same_v<T, float>) {
    return kernels.f32;
  } else if constexpr (std::is_same_v<T, double>) {
    return kernels.f64;
  } else if constexpr (std::is_same_v<T, std::uint8_t>) {
    return kernels.u8_differences;
  } else {
    constexpr std::uint64_t kMax = std::numeric_limits<T>::max();
    const bool narrow = largest_lane_mass(X, segments, worker) <= kMax ||
                        (X.data != Y.data && largest_lane_mass(Y, segments, worker) <= kMax);
    if constexpr (std::is_same_v<T, std::uint16_t>) {
      return narrow ? kernels.u16_narrow : kernels.u16_wide;
    } else {
      return narrow ? kernels.u32_narrow : kernels.u32_wide;
    }
  }
}

// Sums of the rows of bytes: min(x, y) = (x + y - |x - y|) / 2, and processors add up
// differences of bytes in one step.
template <class T>
std::vector<std::uint64_t> masses_of_bytes(MatrixView<const T> X, Worker& worker) {
  std::vector<std::uint64_t> masses;
  if constexpr (sizeof(T) == 1) {
    for (std::size_t i = 0; i < X.n_rows; ++i) {
      worker.spend(X.n_cols / kBinsPerUnit);
      std::uint64_t mass = 0;
      for (std::size_t begin = 0; begin < X.n_cols; begin += kBlock<T>) {
        const T* const end = X.row(i) + std::min(begin + kBlock<T>, X.n_cols);
        mass += std::accumulate(X.row(i) + begin, end, std::uint32_t{0});
      }
      masses.push_back(mass);
    }
  }
  return masses;
}

// Copies rows into panels: see kPanelRows. The last panel is filled up with the last row.
// Returns the number of groups.
template <class T>
std::size_t pack(const T* rows, std::size_t stride, std::size_t n_rows, std::size_t n_bins,
                 T* panels) {
  const std::size_t n_whole = n_bins / kGroup<T>;
  const std::size_t n_groups = (n_bins + kGroup<T> - 1) / kGroup<T>;
  for (std::size_t panel = 0; panel < n_rows; panel += kPanelRows) {
    for (std::size_t i = 0; i < kPanelRows; ++i) {
      const T* from = rows + std::min(panel + i, n_rows - 1) * stride;
      T* to = panels + (panel * n_groups + i) * kGroup<T>;
      for (std::size_t group = 0; group < n_whole; ++group) {
        std::memcpy(to, from, kGroupBytes);
        from += kGroup<T>;
        to += kPanelRows * kGroup<T>;
      }
      if (n_whole < n_groups) {
        std::memset(to, 0, kGroupBytes);
        std::memcpy(to, from, n_bins % kGroup<T> * sizeof(T));
      }
    }
  }
  return n_groups;
}

// Columns are copied once for all rows of a tile. So tiles are high, as long as every thread
// has a few of them and none takes longer than a task should. Their height has no effect on the
// result.
constexpr std::size_t kMinTileRows = 32;
constexpr std::size_t kMaxTileRows = 256;
constexpr std::size_t kTilesPerThread = 4;

std::size_t tile_height(std::size_t n_rows, std::size_t n_cols, std::size_t n_bins,
                        std::size_t n_threads) {
  const std::size_t n_wide = (n_cols + kTileCols - 1) / kTileCols;
  const double row_work = static_cast<double>(kTileCols * n_bins + 1) / kBinsPerUnit;
  const std::size_t rows = std::min(n_rows * n_wide / (kTilesPerThread * n_threads),
                                    static_cast<std::size_t>(kTaskWork / row_work));
  return std::clamp(rows / kPanelRows * kPanelRows, kMinTileRows, kMaxTileRows);
}

// The tiles of K, or of its upper triangle (those of the diagonal included).
std::vector<TileRange> cut(std::size_t n_rows, std::size_t n_cols, std::size_t height,
                           bool symmetric) {
  std::vector<TileRange> tiles;
  for (std::size_t row = 0; row < n_rows; row += height) {
    const std::size_t first = symmetric ? row / kTileCols * kTileCols : 0;
    for (std::size_t col = first; col < n_cols; col += kTileCols) {
      tiles.push_back(
          {row, std::min(row + height, n_rows), col, std::min(col + kTileCols, n_cols)});
    }
  }
  return tiles;
}

// Memory of a thread.
template <class T, class Total>
struct Workspace {
  AlignedBuffer<T> x, y;
  std::vector<SumOf<T>> sums;
  std::vector<Total> totals;
};

template <class T, class Total, class Intersect>
void add_block(MatrixView<const T> X, MatrixView<const T> Y, const TileRange& tile,
               std::size_t begin, std::size_t n_bins, bool symmetric, Intersect intersect,
               Workspace<T, Total>& workspace, Worker& worker) {
  T* const x = workspace.x.with_room_for(kPanelRows * kBlock<T>);
  T* const y = workspace.y.with_room_for(kTileCols * kBlock<T>);
  const std::size_t n_groups =
      pack(Y.row(tile.col_begin) + begin, Y.stride, tile.n_cols(), n_bins, y);
  worker.spend(tile.n_cols() * n_bins / kBinsPerUnit);
  for (std::size_t row = tile.row_begin; row < tile.row_end; row += kPanelRows) {
    // Panels left of the diagonal are mirrored ones.
    const std::size_t left = symmetric && row > tile.col_begin ? row - tile.col_begin : 0;
    if (left >= tile.n_cols()) break;
    const std::size_t first = left / kPanelRows * kPanelRows;
    const std::size_t n_y = (tile.n_cols() - first + kPanelRows - 1) / kPanelRows;
    const T* const bins = X.row(row) + begin;
    pack(bins, X.stride, std::min(kPanelRows, tile.row_end - row), n_bins, x);
    const std::size_t row_bytes = X.stride * sizeof(T);
    intersect({x, y + first * n_groups * kGroup<T>, n_y, n_groups,
               reinterpret_cast<std::uintptr_t>(bins) + kPanelRows * row_bytes, row_bytes},
              workspace.sums.data() + (row - tile.row_begin) * kTileCols + first);
    worker.spend(kPanelRows * kPanelRows * n_y * n_bins / kBinsPerUnit);
  }
}

template <class T, class Out, class Total>
void gram(MatrixView<const T> X, MatrixView<const T> Y, const std::vector<Segment>& segments,
          bool symmetric, MatrixView<Out> K, std::size_t n_threads, Monitor& monitor) {
  Crew crew(n_threads, monitor);
  const auto intersect = choose_kernel(X, Y, segments, crew.caller());
  const auto masses_X = masses_of_bytes(X, crew.caller());
  const auto masses_Y = masses_of_bytes(Y, crew.caller());
  const std::size_t height = tile_height(X.n_rows, Y.n_rows, X.n_cols, n_threads);
  const std::vector<TileRange> tiles = cut(X.n_rows, Y.n_rows, height, symmetric);
  std::vector<Workspace<T, Total>> workspaces(n_threads);

  crew.parallel_for(tiles.size(), [&](std::size_t task, Worker& worker) {
    const TileRange& tile = tiles[task];
    auto& workspace = workspaces[worker.index()];
    auto& sums = workspace.sums;
    auto& totals = workspace.totals;
    totals.assign(height * kTileCols, Total{});
    for (const Segment& segment : segments) {
      sums.assign(height * kTileCols, SumOf<T>{});
      for (std::size_t begin = segment.begin; begin < segment.end; begin += kBlock<T>) {
        const std::size_t n_bins = std::min(kBlock<T>, segment.end - begin);
        add_block(X, Y, tile, begin, n_bins, symmetric, intersect, workspace, worker);
      }
      const Total weight = static_cast<Total>(segment.weight);
      for (std::size_t k = 0; k < totals.size(); ++k) {
        totals[k] += weight * static_cast<Total>(sums[k]);
      }
    }
    for (std::size_t row = tile.row_begin; row < tile.row_end; ++row) {
      const Total* const row_totals = totals.data() + (row - tile.row_begin) * kTileCols;
      const std::size_t first = symmetric ? std::max(row, tile.col_begin) : tile.col_begin;
      for (std::size_t col = first; col < tile.col_end; ++col) {
        Total total = row_totals[col - tile.col_begin];
        if constexpr (sizeof(T) == 1) total = (masses_X[row] + masses_Y[col] - total) / 2;
        K(row, col) = static_cast<Out>(total);
      }
    }
    if (symmetric) mirror_tile(tile, 1, K, worker);
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

template <class Held, class Out>
void divide_by_masses(MatrixView<Out> K, const double* masses_X, const double* masses_Y,
                      Ratio ratio, std::size_t n_threads, Monitor& monitor) {
  static_assert(sizeof(Held) == sizeof(Out));
  const auto kernels = of_type<Out>(KERNELCORE_DISPATCH(divide_kernels));
  const auto divide = ratio == Ratio::kToUnion ? kernels.by_union : kernels.by_mean;
  Crew crew(n_threads, monitor);
  std::vector<std::vector<double>> workspaces(n_threads);
  crew.parallel_for(K.n_rows, [&](std::size_t row, Worker& worker) {
    std::vector<double>& sums = workspaces[worker.index()];
    sums.resize(K.n_cols);
    for (std::size_t col = 0; col < K.n_cols; ++col) {
      Held sum;
      std::memcpy(&sum, K.row(row) + col, sizeof(Held));
      sums[col] = static_cast<double>(sum);
    }
    divide(sums.data(), K.n_cols, masses_X[row], masses_Y, K.row(row));
    worker.spend(K.n_cols);
  });
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

template void divide_by_masses<float, float>(MatrixView<float>, const double*, const double*,
                                             Ratio, std::size_t, Monitor&);
template void divide_by_masses<double, double>(MatrixView<double>, const double*, const double*,
                                               Ratio, std::size_t, Monitor&);
template void divide_by_masses<std::uint64_t, double>(MatrixView<double>, const double*,
                                                      const double*, Ratio, std::size_t,
                                                      Monitor&);

}  // namespace kernelcore
