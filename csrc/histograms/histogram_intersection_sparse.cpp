#include <algorithm>
#include <type_traits>

#include "common/gram_tile.hpp"
#include "common/parallel.hpp"
#include "common/sparse_rows.hpp"
#include "common/task_tiles.hpp"
#include "histograms/histogram_intersection.hpp"

namespace kernelcore {
template <class T, class Out>
void sparse_intersection(const SparseRows<T>& X, const SparseRows<T>& Y, MatrixView<Out> K,
                         std::size_t n_threads, Monitor& monitor) {
  using Sum = std::conditional_t<std::is_floating_point_v<T>, double, std::uint64_t>;
  const bool symmetric = X.is(Y);
  KC_ASSERT(X.bins.is_valid(X.n_bins) && Y.bins.is_valid(Y.n_bins) && X.n_bins == Y.n_bins);
  KC_ASSERT(K.n_rows == X.bins.n_rows && K.n_cols == Y.bins.n_rows);
  Crew crew(n_threads, monitor);
  const InvertedIndex<T> index(Y, crew.caller());
  const auto n_shared = [&](std::size_t row) {  // bins, with all rows of Y
    std::size_t n = Y.bins.n_rows;
    for (auto bin = X.bins.begin(row); bin != X.bins.end(row); ++bin) n += index.size(*bin);
    crew.caller().spend(X.bins.size(row));
    return static_cast<double>(n);
  };
  const std::vector<TileRange> blocks =
      cut_tiles(X.bins.n_rows, Y.bins.n_rows, symmetric, 1, n_shared,
                [&](std::size_t) { return 1 / static_cast<double>(Y.bins.n_rows); });

  crew.parallel_for(blocks.size(), [&](std::size_t task, Worker& worker) {
    const TileRange& block = blocks[task];
    std::vector<Sum> sums(block.n_rows() * block.n_cols());
    for (std::size_t i = 0; i < block.n_rows(); ++i) {
      const std::size_t row = block.row_begin + i;
      // Of a symmetric matrix, the columns from the diagonal on.
      const std::size_t first_col =
          symmetric ? std::max(row, block.col_begin) : block.col_begin;
      Sum* const row_sums = sums.data() + i * block.n_cols();
      std::copy_n(K.row(row) + block.col_begin, block.n_cols(), row_sums);
      for (auto bin = X.bins.begin(row); bin != X.bins.end(row); ++bin) {
        const T count = X.counts[bin - X.bins.values];
        const std::size_t n =
            index.visit(*bin, first_col, block.col_end, [&](const auto& entry) {
              row_sums[static_cast<std::size_t>(entry.row) - block.col_begin] +=
                  static_cast<Sum>(std::min(count, entry.value));
            });
        worker.spend(1 + n);
      }
    }
    write_tile(sums.data(), 1, block, symmetric, K, worker);
  });
}

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
