#include <algorithm>
#include <type_traits>

#include "common/gram_tile.hpp"
#include "common/parallel.hpp"
#include "common/task_tiles.hpp"
#include "gram/histogram_intersection.hpp"

namespace kernelcore {
namespace {

template <class T>
struct Entry {
  std::int32_t row;
  T value;
};

// The entries of each bin by ascending row.
template <class T>
struct InvertedIndex {
  std::vector<std::size_t> starts;
  std::vector<Entry<T>> entries;

  InvertedIndex(const SparseRows<T>& Y, Worker& worker)
      : starts(Y.n_bins + 1), entries(Y.bins.n_values()) {
    check_fits<std::int32_t>(Y.bins.n_rows, "rows");
    const auto first = Y.bins.values;
    for (std::size_t row = 0; row < Y.bins.n_rows; ++row) {
      worker.spend(Y.bins.size(row));
      for (auto bin = Y.bins.begin(row); bin != Y.bins.end(row); ++bin) ++starts[*bin];
    }
    std::size_t end = 0;
    for (std::size_t& start : starts) start = end += start;
    for (std::size_t row = Y.bins.n_rows; row-- > 0;) {
      worker.spend(4 * Y.bins.size(row));
      for (auto bin = Y.bins.end(row); bin != Y.bins.begin(row);) {
        --bin;
        entries[--starts[*bin]] = {static_cast<std::int32_t>(row), Y.counts[bin - first]};
      }
    }
  }

  std::size_t size(std::int32_t bin) const { return starts[bin + 1] - starts[bin]; }
};

}  // namespace

template <class T, class Out>
void sparse_intersection(const SparseRows<T>& X, const SparseRows<T>& Y, MatrixView<Out> K,
                         std::size_t n_threads, Monitor& monitor) {
  using Sum = std::conditional_t<std::is_floating_point_v<T>, double, std::uint64_t>;
  const bool symmetric = X.counts == Y.counts && X.bins.n_rows == Y.bins.n_rows;
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
      Sum* const row_sums = sums.data() + i * block.n_cols();
      std::copy_n(K.row(row) + block.col_begin, block.n_cols(), row_sums);
      for (auto bin = X.bins.begin(row); bin != X.bins.end(row); ++bin) {
        const T count = X.counts[bin - X.bins.values];
        const Entry<T>* const first = index.entries.data() + index.starts[*bin];
        const Entry<T>* entry = index.entries.data() + index.starts[*bin + 1];
        worker.spend(1 + static_cast<std::size_t>(entry - first));
        if (block.col_end < Y.bins.n_rows) {
          entry = std::lower_bound(first, entry, block.col_end, [](const auto& e, auto col) {
            return static_cast<std::size_t>(e.row) < col;
          });
        }
        // Backwards: a symmetric matrix needs only the rows behind.
        while (entry != first) {
          --entry;
          const auto col = static_cast<std::size_t>(entry->row);
          if (col < block.col_begin) break;
          row_sums[col - block.col_begin] += static_cast<Sum>(std::min(count, entry->value));
        }
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
