#include "histograms/sparse_gram.hpp"

#include <algorithm>
#include <type_traits>
#include <vector>

#include "common/gram_tile.hpp"
#include "common/parallel.hpp"
#include "common/task_tiles.hpp"
#include "histograms/divide_rows_simd.hpp"

namespace kernelcore {
namespace {

// Each row of K, or its part from the diagonal on: begin(row, first, sums) sets its sums, of
// the columns from `first` on; every shared word adds term(word, x, y); end(row, first, sums)
// writes them to K.
template <class Sum, class T, class Out, class Begin, class Term, class End>
void gram(const SparseRows<T>& X, const SparseRows<T>& Y, MatrixView<Out> K, Crew& crew,
          const Begin& begin, const Term& term, const End& end) {
  KC_ASSERT(X.bins.is_valid(X.n_bins) && Y.bins.is_valid(Y.n_bins) && X.n_bins == Y.n_bins);
  KC_ASSERT(K.n_rows == X.bins.n_rows && K.n_cols == Y.bins.n_rows);
  const bool symmetric = X.is(Y);
  const InvertedIndex<T> index(Y, crew.caller());
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
  std::vector<std::vector<Sum>> workspaces(crew.n_threads());
  crew.parallel_for(tiles.size(), [&](std::size_t task, Worker& worker) {
    const TileRange& tile = tiles[task];
    std::vector<Sum>& sums = workspaces[worker.index()];
    for (std::size_t row = tile.row_begin; row < tile.row_end; ++row) {
      const std::size_t first = symmetric ? std::max(row, tile.col_begin) : tile.col_begin;
      if (first >= tile.col_end) break;
      sums.resize(tile.col_end - first);
      begin(row, first, sums);
      Sum* const row_sums = sums.data();
      for (auto word = X.bins.begin(row); word != X.bins.end(row); ++word) {
        const T value = X.counts[word - X.bins.values];
        const std::size_t n = index.visit(*word, first, tile.col_end, [&](const auto& entry) {
          row_sums[static_cast<std::size_t>(entry.row) - first] +=
              term(*word, value, entry.value);
        });
        worker.spend(1 + n);
      }
      end(row, first, sums);
      worker.spend(5 * tile.n_cols());
    }
    if (symmetric) mirror_tile(tile, 1, K, worker);
  });
}

template <class Term>
std::vector<double> own_sums(const SparseRows<double>& rows, const Term& term, Worker& worker) {
  KC_ASSERT(rows.bins.is_valid(rows.n_bins));
  std::vector<double> sums(rows.bins.n_rows, 0.0);
  for (std::size_t row = 0; row < rows.bins.n_rows; ++row) {
    worker.spend(1 + rows.bins.size(row));
    for (auto word = rows.bins.begin(row); word != rows.bins.end(row); ++word) {
      const double value = rows.counts[word - rows.bins.values];
      sums[row] += term(*word, value, value);
    }
  }
  return sums;
}

// The sums of terms, divided by a mean of those of the two rows with themselves.
template <class Out, class Term>
void normalized_gram(const SparseRows<double>& X, const SparseRows<double>& Y,
                     MatrixView<Out> K, std::size_t n_threads, Monitor& monitor,
                     const Term& term, DivideRow<Out> divide) {
  Crew crew(n_threads, monitor);
  const std::vector<double> own_X = own_sums(X, term, crew.caller());
  const std::vector<double> own_Y = own_sums(Y, term, crew.caller());
  gram<double>(
      X, Y, K, crew,
      [](std::size_t, std::size_t, auto& sums) { std::fill(sums.begin(), sums.end(), 0.0); },
      term,
      [&](std::size_t row, std::size_t first, const auto& sums) {
        divide(sums.data(), sums.size(), own_X[row], own_Y.data() + first, K.row(row) + first);
      });
}

}  // namespace

template <class Out>
void bag_of_words(const SparseRows<double>& X, const SparseRows<double>& Y, MatrixView<Out> K,
                  std::size_t n_threads, Monitor& monitor) {
  normalized_gram(
      X, Y, K, n_threads, monitor, [](std::int32_t, double x, double y) { return x * y; },
      of_type<Out>(KERNELCORE_DISPATCH(divide_kernels)).by_root);
}

template <class Out>
void bag_of_words_f1(const SparseRows<double>& X, const SparseRows<double>& Y,
                     const double* weights, MatrixView<Out> K, std::size_t n_threads,
                     Monitor& monitor) {
  normalized_gram(
      X, Y, K, n_threads, monitor,
      [weights](std::int32_t word, double x, double y) {
        return weights[word] * std::min(x, y);
      },
      of_type<Out>(KERNELCORE_DISPATCH(divide_kernels)).by_mean);
}

template <class T, class Out>
void sparse_intersection(const SparseRows<T>& X, const SparseRows<T>& Y, MatrixView<Out> K,
                         std::size_t n_threads, Monitor& monitor) {
  using Sum = std::conditional_t<std::is_floating_point_v<T>, double, std::uint64_t>;
  Crew crew(n_threads, monitor);
  gram<Sum>(
      X, Y, K, crew,
      [&](std::size_t row, std::size_t first, std::vector<Sum>& sums) {
        std::copy_n(K.row(row) + first, sums.size(), sums.begin());
      },
      [](std::int32_t, T x, T y) { return static_cast<Sum>(std::min(x, y)); },
      [&](std::size_t row, std::size_t first, const std::vector<Sum>& sums) {
        std::transform(sums.begin(), sums.end(), K.row(row) + first,
                       [](Sum sum) { return static_cast<Out>(sum); });
      });
}

#define KERNELCORE_INSTANTIATE(Out)                                                        \
  template void bag_of_words<Out>(const SparseRows<double>&, const SparseRows<double>&,    \
                                  MatrixView<Out>, std::size_t, Monitor&);                 \
  template void bag_of_words_f1<Out>(const SparseRows<double>&, const SparseRows<double>&, \
                                     const double*, MatrixView<Out>, std::size_t, Monitor&);
KERNELCORE_INSTANTIATE(float)
KERNELCORE_INSTANTIATE(double)
#undef KERNELCORE_INSTANTIATE

#define KERNELCORE_INSTANTIATE(T, Out)                                                  \
  template void sparse_intersection<T, Out>(const SparseRows<T>&, const SparseRows<T>&, \
                                            MatrixView<Out>, std::size_t, Monitor&);
KERNELCORE_INSTANTIATE(float, float)
KERNELCORE_INSTANTIATE(double, double)
KERNELCORE_INSTANTIATE(std::uint8_t, std::uint64_t)
KERNELCORE_INSTANTIATE(std::uint16_t, std::uint64_t)
KERNELCORE_INSTANTIATE(std::uint32_t, std::uint64_t)
#undef KERNELCORE_INSTANTIATE

}  // namespace kernelcore
