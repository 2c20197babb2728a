#include "ranks/count_ranks.hpp"

#include <algorithm>
#include <atomic>
#include <vector>

#include "common/parallel.hpp"
#include "ranks/count_ranks_simd.hpp"

namespace kernelcore {
namespace {

// The scores of a block fit the second-level cache, the counts of its columns the first.
constexpr std::size_t kBlockRows = 64;
constexpr std::size_t kBlockCols = 1024;

// Columns whose counts one task adds up, and scores that are counted in a unit of work.
constexpr std::size_t kStripCols = std::size_t{1} << 20;
constexpr std::size_t kScoresPerUnit = 4;

// Counts of one thread for the columns: greater, tied and tied before, one after another.
using ColumnCounts = std::vector<std::int64_t>;

std::size_t clamp(std::int64_t index, std::size_t size) {
  return static_cast<std::size_t>(
      std::clamp(index, std::int64_t{0}, static_cast<std::int64_t>(size)));
}

template <class T>
void count_tied_before(MatrixView<const T> scores, std::size_t row_begin, std::size_t row_end,
                       RankQueries<T> rows, RankQueries<T> columns, std::int64_t* by_column,
                       Worker& worker) {
  for (std::size_t i = row_begin; i < row_end; ++i) {
    worker.spend(scores.n_cols * (rows.n_layers + columns.n_layers));
    const T* row = scores.row(i);
    for (std::size_t q = i; q < rows.n_layers * scores.n_rows; q += scores.n_rows) {
      rows.tied_before[q] =
          std::count(row, row + clamp(rows.first_gold[q], scores.n_cols), rows.gold[q]);
    }
    for (std::size_t first = 0; first < columns.n_layers * scores.n_cols;
         first += scores.n_cols) {
      for (std::size_t j = 0; j < scores.n_cols; ++j) {
        const bool is_before = static_cast<std::int64_t>(i) < columns.first_gold[first + j];
        by_column[first + j] += is_before && row[j] == columns.gold[first + j];
      }
    }
  }
}

}  // namespace

template <class T>
bool count_ranks(MatrixView<const T> scores, RankQueries<T> rows, RankQueries<T> columns,
                 std::size_t n_threads, Monitor& monitor) {
  const std::size_t m = scores.n_rows, n = scores.n_cols;
  KC_ASSERT(rows.gold != nullptr || rows.n_layers * m == 0);
  KC_ASSERT(columns.gold != nullptr || columns.n_layers * n == 0);
  const bool ordered = rows.tied_before != nullptr || columns.tied_before != nullptr;
  const std::size_t n_layers = std::max(rows.n_layers, columns.n_layers);
  const std::size_t n_blocks = (m + kBlockRows - 1) / kBlockRows;
  const std::size_t n_workers = std::max<std::size_t>(1, std::min(n_threads, n_blocks));
  const std::size_t n_kinds = ordered ? 3 : 2;
  const std::size_t n_counts = columns.n_layers * n;  // of the columns, of one kind
  std::vector<ColumnCounts> by_worker(n_workers, ColumnCounts(n_kinds * n_counts));
  const CountKernel<T> kernel = of_type<T>(KERNELCORE_DISPATCH(count_kernels));
  std::atomic<bool> has_nan{false};

  Crew crew(n_workers, monitor);
  const std::size_t n_strips = (n_counts + kStripCols - 1) / kStripCols;
  crew.expect(n_blocks + n_strips);
  crew.parallel_for(n_blocks, [&](std::size_t block, Worker& worker) {
    const std::size_t begin = block * kBlockRows;
    const std::size_t end = std::min(begin + kBlockRows, m);
    std::int64_t* counts = by_worker[worker.index()].data();
    for (std::size_t layer = 0; layer < rows.n_layers; ++layer) {
      std::fill(rows.greater + layer * m + begin, rows.greater + layer * m + end, 0);
      std::fill(rows.tied + layer * m + begin, rows.tied + layer * m + end, 0);
    }
    for (std::size_t first = 0; first < n; first += kBlockCols) {
      const std::size_t n_cols = std::min(kBlockCols, n - first);
      for (std::size_t layer = 0; layer < n_layers; ++layer) {
        worker.spend((end - begin) * n_cols / kScoresPerUnit);
        const bool by_row = layer < rows.n_layers, by_column = layer < columns.n_layers;
        const std::size_t row = layer * m + begin, column = layer * n + first;
        LaneInt<T> greater[kBlockCols] = {};
        LaneInt<T> tied[kBlockCols] = {};
        CountJob<T> job{scores.row(begin) + first, scores.stride, end - begin, n_cols, {}, {}};
        if (by_row) job.rows = {rows.gold + row, rows.greater + row, rows.tied + row};
        if (by_column) job.columns = {columns.gold + column, greater, tied};
        const auto count = !by_column ? kernel.rows : !by_row ? kernel.columns : kernel.both;
        if (count(job)) has_nan = true;
        for (std::size_t j = 0; by_column && j < n_cols; ++j) {
          counts[column + j] += greater[j];
          counts[n_counts + column + j] += tied[j];
        }
      }
    }
    if (ordered) {
      count_tied_before(scores, begin, end, rows, columns, counts + 2 * n_counts, worker);
    }
  });

  std::int64_t* const totals[] = {columns.greater, columns.tied, columns.tied_before};
  crew.parallel_for(n_strips, [&](std::size_t strip, Worker&) {
    const std::size_t begin = strip * kStripCols, end = std::min(begin + kStripCols, n_counts);
    for (std::size_t k = 0; k < n_kinds; ++k) {
      std::fill(totals[k] + begin, totals[k] + end, 0);
      for (const ColumnCounts& counts : by_worker) {
        for (std::size_t j = begin; j < end; ++j) totals[k][j] += counts[k * n_counts + j];
      }
    }
  });
  return has_nan;
}

template bool count_ranks<float>(MatrixView<const float>, RankQueries<float>,
                                 RankQueries<float>, std::size_t, Monitor&);
template bool count_ranks<double>(MatrixView<const double>, RankQueries<double>,
                                  RankQueries<double>, std::size_t, Monitor&);

}  // namespace kernelcore
