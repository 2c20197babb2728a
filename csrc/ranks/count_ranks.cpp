#include "ranks/count_ranks.hpp"

#include <algorithm>
#include <atomic>
#include <limits>
#include <stdexcept>
#include <vector>

#include "common/parallel.hpp"
#include "ranks/count_ranks_simd.hpp"
#include "ranks/dot_products.hpp"

namespace kernelcore {
namespace {

// The scores of a block fit the second-level cache, the counts of its columns the first.
constexpr std::size_t kBlockRows = 64;
constexpr std::size_t kBlockCols = 1024;

// Columns whose counts one task adds up, and scores that are counted in a unit of work.
constexpr std::size_t kStripCols = std::size_t{1} << 20;
constexpr std::size_t kScoresPerUnit = 4;

// Counts of one thread for the columns: greater, tied and tied before, one after another.
template <class T>
using ColumnCounts = std::vector<LaneInt<T>>;

std::size_t clamp(std::int64_t index, std::size_t size) {
  return static_cast<std::size_t>(
      std::clamp(index, std::int64_t{0}, static_cast<std::int64_t>(size)));
}

// Counts of all queries, to which blocks of scores are added in any order.
template <class T>
class RankCounter {
 public:
  RankCounter(std::size_t m, std::size_t n, RankQueries<T> rows, RankQueries<T> columns,
              std::size_t n_workers)
      : m_(m),
        n_(n),
        rows_(rows),
        columns_(columns),
        ordered_(rows.tied_before != nullptr || columns.tied_before != nullptr),
        by_worker_(n_workers) {
    KC_ASSERT(rows.gold != nullptr || rows.n_layers * m == 0);
    KC_ASSERT(columns.gold != nullptr || columns.n_layers * n == 0);
    if (columns.n_layers > 0 && m > std::numeric_limits<LaneInt<T>>::max()) {
      throw std::invalid_argument("there are more rows than a column can count");
    }
    std::int64_t* const totals[] = {rows.greater, rows.tied, rows.tied_before};
    for (std::size_t k = 0; k < n_kinds(); ++k) std::fill_n(totals[k], rows.n_layers * m, 0);
  }

  std::size_t n_strips() const { return (n_counts() + kStripCols - 1) / kStripCols; }

  // Counts in the scores of some rows, which no other worker counts in, and columns, of which
  // the first ones are given.
  void add(MatrixView<const T> scores, std::size_t row, std::size_t column, Worker& worker) {
    ColumnCounts<T>& own = by_worker_[worker.index()];
    if (own.empty()) own.resize(n_kinds() * n_counts());
    LaneInt<T>* const counts = own.data();
    for (std::size_t first = 0; first < scores.n_cols; first += kBlockCols) {
      const std::size_t n_cols = std::min(kBlockCols, scores.n_cols - first);
      for (std::size_t layer = 0; layer < std::max(rows_.n_layers, columns_.n_layers);
           ++layer) {
        worker.spend(scores.n_rows * n_cols / kScoresPerUnit);
        const bool by_row = layer < rows_.n_layers, by_column = layer < columns_.n_layers;
        const std::size_t q = layer * m_ + row, r = layer * n_ + column + first;
        CountJob<T> job{scores.data + first, scores.stride, scores.n_rows, n_cols, {}, {}};
        if (by_row) job.rows = {rows_.gold + q, rows_.greater + q, rows_.tied + q};
        if (by_column) job.columns = {columns_.gold + r, counts + r, counts + n_counts() + r};
        const auto count = !by_column ? kernel_.rows : !by_row ? kernel_.columns : kernel_.both;
        if (count(job)) has_nan_ = true;
      }
    }
    if (ordered_) add_tied_before(scores, row, column, counts + 2 * n_counts(), worker);
  }

  // Adds up the counts of the columns. Returns whether a score was NaN.
  bool finish(Crew& crew) {
    std::int64_t* const totals[] = {columns_.greater, columns_.tied, columns_.tied_before};
    crew.parallel_for(n_strips(), [&](std::size_t strip, Worker&) {
      const std::size_t begin = strip * kStripCols;
      const std::size_t end = std::min(begin + kStripCols, n_counts());
      for (std::size_t k = 0; k < n_kinds(); ++k) {
        std::fill(totals[k] + begin, totals[k] + end, 0);
        for (const ColumnCounts<T>& counts : by_worker_) {
          if (counts.empty()) continue;
          for (std::size_t j = begin; j < end; ++j) totals[k][j] += counts[k * n_counts() + j];
        }
      }
    });
    return has_nan_;
  }

 private:
  std::size_t n_kinds() const { return ordered_ ? 3 : 2; }
  std::size_t n_counts() const { return columns_.n_layers * n_; }  // of columns, of one kind

  void add_tied_before(MatrixView<const T> scores, std::size_t row, std::size_t column,
                       LaneInt<T>* by_column, Worker& worker) {
    const auto first_row = static_cast<std::int64_t>(row);
    const auto first_column = static_cast<std::int64_t>(column);
    for (std::size_t i = 0; i < scores.n_rows; ++i) {
      worker.spend(scores.n_cols * (rows_.n_layers + columns_.n_layers));
      const T* own = scores.row(i);
      for (std::size_t q = row + i; q < rows_.n_layers * m_; q += m_) {
        const std::size_t end = clamp(rows_.first_gold[q] - first_column, scores.n_cols);
        rows_.tied_before[q] += std::count(own, own + end, rows_.gold[q]);
      }
      const std::int64_t here = first_row + static_cast<std::int64_t>(i);
      for (std::size_t first = column; first < n_counts(); first += n_) {
        for (std::size_t j = 0; j < scores.n_cols; ++j) {
          const bool is_before = here < columns_.first_gold[first + j];
          by_column[first + j] += is_before && own[j] == columns_.gold[first + j];
        }
      }
    }
  }

  const std::size_t m_, n_;
  const RankQueries<T> rows_, columns_;
  const bool ordered_;
  const CountKernel<T> kernel_ = of_type<T>(KERNELCORE_DISPATCH(count_kernels));
  std::vector<ColumnCounts<T>> by_worker_;
  std::atomic<bool> has_nan_{false};
};

}  // namespace

template <class T>
bool count_ranks(MatrixView<const T> scores, RankQueries<T> rows, RankQueries<T> columns,
                 std::size_t n_threads, Monitor& monitor) {
  const std::size_t n_blocks = (scores.n_rows + kBlockRows - 1) / kBlockRows;
  Crew crew(n_threads, monitor);
  RankCounter<T> counter(scores.n_rows, scores.n_cols, rows, columns, crew.n_threads());
  crew.expect(n_blocks + counter.n_strips());
  crew.parallel_for(n_blocks, [&](std::size_t block, Worker& worker) {
    const std::size_t begin = block * kBlockRows;
    const std::size_t n_rows = std::min(kBlockRows, scores.n_rows - begin);
    counter.add({scores.row(begin), n_rows, scores.n_cols, scores.stride}, begin, 0, worker);
  });
  return counter.finish(crew);
}

template <class T>
void count_ranks_of_products(MatrixView<const T> left, MatrixView<const T> right,
                             RankQueries<T> rows, RankQueries<T> columns, std::size_t n_threads,
                             Monitor& monitor) {
  Crew crew(n_threads, monitor);
  RankCounter<T> counter(left.n_rows, right.n_rows, rows, columns, crew.n_threads());
  const auto count = [&](MatrixView<const T> tile, std::size_t i, std::size_t j,
                         Worker& worker) {
    for (std::size_t row = 0; row < tile.n_rows; row += kBlockRows) {
      const std::size_t n_rows = std::min(kBlockRows, tile.n_rows - row);
      counter.add({tile.row(row), n_rows, tile.n_cols, tile.stride}, i + row, j, worker);
    }
  };
  for_each_product_tile<T>(left, right, crew, count);
  counter.finish(crew);
}

template bool count_ranks<float>(MatrixView<const float>, RankQueries<float>,
                                 RankQueries<float>, std::size_t, Monitor&);
template bool count_ranks<double>(MatrixView<const double>, RankQueries<double>,
                                  RankQueries<double>, std::size_t, Monitor&);
template void count_ranks_of_products<float>(MatrixView<const float>, MatrixView<const float>,
                                             RankQueries<float>, RankQueries<float>,
                                             std::size_t, Monitor&);
template void count_ranks_of_products<double>(MatrixView<const double>,
                                              MatrixView<const double>, RankQueries<double>,
                                              RankQueries<double>, std::size_t, Monitor&);

}  // namespace kernelcore
