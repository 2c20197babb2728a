#include "assignment/set_similarity.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "assignment/assignment.hpp"
#include "common/parallel.hpp"
#include "common/ragged_view.hpp"

namespace kernelcore {
namespace {

// Work of a task, so that it is worth its start; and of a pair of sets, however small.
constexpr std::size_t kTaskWork = std::size_t{1} << 20;
constexpr std::size_t kPairWork = 200;

// Work for each comparison of a sort: both entries may be cache misses.
constexpr std::size_t kWorkPerComparison = 50;

template <class T>
class SetPair {
 public:
  explicit SetPair(Worker& worker) : worker_(worker), solver_(worker) {}

  // Selects entries; returns their mean (for DC and TK the sum of two means).
  double compare(MatrixView<const T> block, const T* end, SetSimilarity kind, std::size_t k) {
    entries_.clear();
    solver_.load(block, end, true);
    if (kind == SetSimilarity::kAssignment) {
      solver_.match(k);
      solver_.each_pair([&](std::size_t i, std::size_t j) { entries_.push_back({i, j}); });
      return mean(block, 0);
    }
    col_of_row_.resize(block.n_rows);
    row_of_col_.resize(block.n_cols);
    solver_.find_best(col_of_row_.data(), row_of_col_.data());
    for (std::size_t i = 0; i < block.n_rows; ++i) {
      entries_.push_back({i, static_cast<std::size_t>(col_of_row_[i])});
    }
    if (kind == SetSimilarity::kTopK) keep_greatest(block, 0, k);
    const std::size_t n_of_rows = entries_.size();
    const double of_rows = mean(block, 0);
    for (std::size_t j = 0; j < block.n_cols; ++j) {
      entries_.push_back({static_cast<std::size_t>(row_of_col_[j]), j});
    }
    if (kind == SetSimilarity::kTopK) keep_greatest(block, n_of_rows, k);
    return of_rows + mean(block, n_of_rows);
  }

  struct Entry {
    std::size_t row, col;
  };
  const std::vector<Entry>& entries() const { return entries_; }

 private:
  double mean(MatrixView<const T> block, std::size_t first) const {
    double sum = 0;
    for (std::size_t e = first; e < entries_.size(); ++e) {
      sum += static_cast<double>(block(entries_[e].row, entries_[e].col));
    }
    return sum / static_cast<double>(entries_.size() - first);
  }

  void keep_greatest(MatrixView<const T> block, std::size_t first, std::size_t k) {
    const auto begin = entries_.begin() + static_cast<std::ptrdiff_t>(first);
    std::stable_sort(begin, entries_.end(), [&](const Entry& a, const Entry& b) {
      worker_.spend(kWorkPerComparison);
      return block(a.row, a.col) > block(b.row, b.col);
    });
    entries_.resize(first + k);
  }

  Worker& worker_;
  AssignmentSolver<T> solver_;
  std::vector<std::int32_t> col_of_row_, row_of_col_;
  std::vector<Entry> entries_;
};

// Consecutive pairs of sets: task t has [ends[t], ends[t + 1]) of a * n_col_sets + b.
std::vector<std::size_t> cut(const SetsView& row_sets, const SetsView& col_sets,
                             SetSimilarity kind) {
  std::vector<std::size_t> ends = {0};
  std::size_t work = 0;
  for (std::size_t a = 0; a < row_sets.n_sets; ++a) {
    for (std::size_t b = 0; b < col_sets.n_sets; ++b) {
      const std::size_t n = row_sets.size(a), m = col_sets.size(b);
      // An assignment takes some passes over the block.
      work += kPairWork + n * m * (kind == SetSimilarity::kAssignment ? 4 : 1);
      const std::size_t end = a * col_sets.n_sets + b + 1;
      if (work >= kTaskWork || end == row_sets.n_sets * col_sets.n_sets) {
        ends.push_back(end);
        work = 0;
      }
    }
  }
  return ends;
}

}  // namespace

template <class T>
void set_similarity(MatrixView<const T> S, const SetsView& row_sets, const SetsView& col_sets,
                    SetSimilarity kind, MatrixView<const std::int64_t> bounds,
                    MatrixView<T> out, const SelectedEntries& selected, std::size_t n_threads,
                    Monitor& monitor) {
  KC_ASSERT(are_offsets(row_sets.offsets, row_sets.n_sets, S.n_rows));
  KC_ASSERT(are_offsets(col_sets.offsets, col_sets.n_sets, S.n_cols));
  const T* const end = S.data + S.n_rows * S.stride;
  PerWorker<SetPair<T>> pairs(n_threads);
  const std::vector<std::size_t> ends = cut(row_sets, col_sets, kind);
  Crew crew(n_threads, monitor);
  crew.parallel_for(ends.size() - 1, [&](std::size_t task, Worker& worker) {
    SetPair<T>& pair = pairs.of(worker);
    for (std::size_t p = ends[task]; p < ends[task + 1]; ++p) {
      const std::size_t a = p / col_sets.n_sets, b = p % col_sets.n_sets;
      const std::size_t first_row = row_sets.begin(a), first_col = col_sets.begin(b);
      const MatrixView<const T> block(S.row(first_row) + first_col, row_sets.size(a),
                                      col_sets.size(b), S.stride);
      const auto k = static_cast<std::size_t>(bounds(a, b));
      out(a, b) = static_cast<T>(pair.compare(block, end, kind, k));
      if (selected.offsets == nullptr) continue;
      std::int64_t at = selected.offsets[p];
      for (const auto& entry : pair.entries()) {
        selected.rows[at] = static_cast<std::int64_t>(first_row + entry.row);
        selected.cols[at] = static_cast<std::int64_t>(first_col + entry.col);
        ++at;
      }
    }
  });
}

#define KERNELCORE_INSTANTIATE(T)                                                        \
  template void set_similarity<T>(MatrixView<const T>, const SetsView&, const SetsView&, \
                                  SetSimilarity, MatrixView<const std::int64_t>,         \
                                  MatrixView<T>, const SelectedEntries&, std::size_t,    \
                                  Monitor&);
KERNELCORE_INSTANTIATE(float)
KERNELCORE_INSTANTIATE(double)
#undef KERNELCORE_INSTANTIATE

}  // namespace kernelcore
