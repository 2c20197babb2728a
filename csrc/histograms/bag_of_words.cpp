#include "histograms/bag_of_words.hpp"

#include <algorithm>
#include <vector>

#include "common/gram_tile.hpp"
#include "common/parallel.hpp"
#include "common/task_tiles.hpp"
#include "histograms/bag_of_words_simd.hpp"

namespace kernelcore {
namespace {

// The term of a shared word with values x and y. A struct, so that it is inlined into the loop
// over all rows that have the word.
struct Cosine {
  double shared(std::int32_t, double x, double y) const { return x * y; }
};

struct F1 {
  const double* weights;
  double shared(std::int32_t word, double x, double y) const {
    return weights[word] * std::min(x, y);
  }
};

template <class Similarity>
std::vector<double> own_sums(const SparseRows<double>& rows, const Similarity& similarity,
                             Worker& worker) {
  std::vector<double> sums(rows.bins.n_rows, 0.0);
  for (std::size_t row = 0; row < rows.bins.n_rows; ++row) {
    worker.spend(1 + rows.bins.size(row));
    for (auto word = rows.bins.begin(row); word != rows.bins.end(row); ++word) {
      const double value = rows.counts[word - rows.bins.values];
      sums[row] += similarity.shared(*word, value, value);
    }
  }
  return sums;
}

// Mirrors the part of a tile beyond the diagonal.
template <class Out>
void mirror_tile(const TileRange& tile, Mirror<Out> mirror, MatrixView<Out> K, Worker& worker) {
  // The first write to a page of 2 MiB may make the system fill it with zeros.
  constexpr std::size_t kCols = 16, kWorkPerPage = 20'000;
  const std::size_t beyond = std::clamp(tile.row_end, tile.col_begin, tile.col_end);
  for (std::size_t row = tile.row_begin; row < tile.row_end; ++row) {
    for (std::size_t col = std::max(row + 1, tile.col_begin); col < beyond; ++col) {
      K(col, row) = K(row, col);
    }
  }
  for (std::size_t col = beyond; col < tile.col_end; col += kCols) {
    mirror(K.row(tile.row_begin) + col, tile.n_rows(), std::min(kCols, tile.col_end - col),
           K.row(col) + tile.row_begin, K.stride);
    worker.spend(kCols * kWorkPerPage);
  }
}

template <class Similarity, class Out>
void gram(const SparseRows<double>& X, const SparseRows<double>& Y,
          const Similarity& similarity, DivideRow<Out> divide, Mirror<Out> mirror,
          MatrixView<Out> K, std::size_t n_threads, Monitor& monitor) {
  KC_ASSERT(X.bins.is_valid(X.n_bins) && Y.bins.is_valid(Y.n_bins) && X.n_bins == Y.n_bins);
  KC_ASSERT(K.n_rows == X.bins.n_rows && K.n_cols == Y.bins.n_rows);
  const bool symmetric = X.is(Y);
  Crew crew(n_threads, monitor);
  const InvertedIndex<double> index(Y, crew.caller());
  const std::vector<double> own_X = own_sums(X, similarity, crew.caller());
  const std::vector<double> own_Y = own_sums(Y, similarity, crew.caller());
  const auto n_shared = [&](std::size_t row) {  // words, with all rows of Y
    std::size_t n = 4 * Y.bins.n_rows;
    for (auto word = X.bins.begin(row); word != X.bins.end(row); ++word) n += index.size(*word);
    crew.caller().spend(X.bins.size(row));
    return static_cast<double>(n);
  };
  const std::vector<TileRange> tiles =
      cut_tiles(X.bins.n_rows, Y.bins.n_rows, symmetric, 1, n_shared,
                [&](std::size_t) { return 1 / static_cast<double>(Y.bins.n_rows); });

  // The sums of one row at a time: they stay in a first-level cache.
  std::vector<std::vector<double>> workspaces(std::max<std::size_t>(1, n_threads));
  crew.parallel_for(tiles.size(), [&](std::size_t task, Worker& worker) {
    const TileRange& tile = tiles[task];
    std::vector<double>& sums = workspaces[worker.index()];
    for (std::size_t row = tile.row_begin; row < tile.row_end; ++row) {
      // Of a symmetric matrix, the columns from the diagonal on.
      const std::size_t first = symmetric ? std::max(row, tile.col_begin) : tile.col_begin;
      if (first >= tile.col_end) break;
      sums.assign(tile.col_end - first, 0.0);
      double* const row_sums = sums.data();
      for (auto word = X.bins.begin(row); word != X.bins.end(row); ++word) {
        const double value = X.counts[word - X.bins.values];
        const std::size_t n = index.visit(*word, first, tile.col_end, [&](const auto& entry) {
          row_sums[static_cast<std::size_t>(entry.row) - first] +=
              similarity.shared(*word, value, entry.value);
        });
        worker.spend(1 + n);
      }
      divide(row_sums, sums.size(), own_X[row], own_Y.data() + first, K.row(row) + first);
      worker.spend(5 * tile.n_cols());
    }
    if (symmetric) mirror_tile(tile, mirror, K, worker);
  });
}

}  // namespace

template <class Out>
void bag_of_words(const SparseRows<double>& X, const SparseRows<double>& Y, MatrixView<Out> K,
                  std::size_t n_threads, Monitor& monitor) {
  const auto kernels = of_type<Out>(KERNELCORE_DISPATCH(bag_kernels));
  gram(X, Y, Cosine{}, kernels.by_root, kernels.mirror, K, n_threads, monitor);
}

template <class Out>
void bag_of_words_f1(const SparseRows<double>& X, const SparseRows<double>& Y,
                     const double* weights, MatrixView<Out> K, std::size_t n_threads,
                     Monitor& monitor) {
  const auto kernels = of_type<Out>(KERNELCORE_DISPATCH(bag_kernels));
  gram(X, Y, F1{weights}, kernels.by_mean, kernels.mirror, K, n_threads, monitor);
}

#define KERNELCORE_INSTANTIATE(Out)                                                        \
  template void bag_of_words<Out>(const SparseRows<double>&, const SparseRows<double>&,    \
                                  MatrixView<Out>, std::size_t, Monitor&);                 \
  template void bag_of_words_f1<Out>(const SparseRows<double>&, const SparseRows<double>&, \
                                     const double*, MatrixView<Out>, std::size_t, Monitor&);
KERNELCORE_INSTANTIATE(float)
KERNELCORE_INSTANTIATE(double)
#undef KERNELCORE_INSTANTIATE

}  // namespace kernelcore
