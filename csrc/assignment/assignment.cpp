#include "assignment/assignment.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "common/parallel.hpp"
#include "common/ragged_view.hpp"

namespace kernelcore {
namespace {

// A task has at least this number of costs: it is worth its start.
constexpr std::size_t kTaskCosts = std::size_t{1} << 15;

template <class T>
constexpr T kInfinity = std::numeric_limits<T>::infinity();

// Sums along paths through this number of rows, and the duals, stay finite for costs below
// this.
template <class T>
T largest_safe(std::size_t n_rows) {
  return std::numeric_limits<T>::max() / (8 * static_cast<T>(n_rows + 1));
}

// Consecutive problems of about equal work: task t has [ends[t], ends[t + 1]).
template <class T>
std::vector<std::size_t> cut(const std::vector<AssignmentProblem<T>>& problems) {
  std::vector<std::size_t> ends = {0};
  std::size_t work = 0;
  for (std::size_t b = 0; b < problems.size(); ++b) {
    const MatrixView<const T>& costs = problems[b].costs;
    work += 64 + costs.n_rows * costs.stride;
    if (work >= kTaskCosts || b + 1 == problems.size()) {
      ends.push_back(b + 1);
      work = 0;
    }
  }
  return ends;
}

template <class T>
void write_pairs(const AssignmentSolver<T>& solver, MatrixView<const T> costs, std::size_t b,
                 const MatchedPairs& pairs) {
  std::int64_t at = pairs.offsets[b];
  double total = 0;
  solver.each_pair([&](std::size_t row, std::size_t col) {
    pairs.rows[at] = static_cast<std::int64_t>(row);
    pairs.cols[at] = static_cast<std::int64_t>(col);
    total += static_cast<double>(costs(row, col));
    ++at;
  });
  pairs.n_pairs[b] = at - pairs.offsets[b];
  pairs.totals[b] = total;
}

}  // namespace

template <class T>
AssignmentSolver<T>::AssignmentSolver(Worker& worker)
    : kernel_(of_type<T>(KERNELCORE_DISPATCH(assignment_kernels))) {
  state_.worker = &worker;
}

template <class T>
void AssignmentSolver<T>::reserve(std::size_t n_rows, std::size_t n_cols) {
  state_.n_rows = n_rows;
  state_.n_cols = n_cols;
  width_ = rounded_to_vectors(std::max<std::size_t>(1, n_cols));
  if (n_rows <= capacity_rows_ && width_ <= capacity_cols_) return;
  capacity_rows_ = std::max(n_rows, capacity_rows_);
  capacity_cols_ = std::max(width_, capacity_cols_);
  const std::size_t rows = rounded_to_vectors(std::max<std::size_t>(1, capacity_rows_)),
                    cols = capacity_cols_;
  T* values = values_.with_room_for(3 * cols + rows);
  state_.col_dual = values;
  state_.distance = values + cols;
  state_.best_free_cost = values + 2 * cols;
  state_.row_dual = values + 3 * cols;
  auto* indices = indices_.with_room_for(3 * cols);
  state_.parent = indices;
  state_.col_state = indices + cols;
  state_.best_free_row = indices + 2 * cols;
  std::int32_t* pairs = pairs_.with_room_for(cols + 3 * rows);
  state_.row_of_col = pairs;
  state_.col_of_row = pairs + cols;
  state_.free_rows = pairs + cols + rows;
  state_.pending_rows = pairs + cols + 2 * rows;
  state_.tree = tree_.with_room_for(2 * rows);
  state_.cheapest = state_.tree + rows;
  rows_.with_room_for(rows);
}

template <class T>
bool AssignmentSolver<T>::load(MatrixView<const T> costs, const T* end, bool maximize) {
  check_fits<std::int32_t>(costs.n_rows, "rows of costs");
  check_fits<std::int32_t>(costs.n_cols, "columns of costs");
  is_transposed_ = costs.n_rows > costs.n_cols;
  sign_ = maximize ? T{-1} : T{1};
  scale_ = 1;
  if (is_transposed_) {
    reserve(costs.n_cols, costs.n_rows);
    const std::size_t size = costs.n_cols * width_;
    T* const to = costs_.with_room_for(size);
    kernel_.transpose(costs, end, to, width_, *state_.worker);
    costs = {to, costs.n_cols, costs.n_rows, width_};
    end = to + size;
  } else {
    reserve(costs.n_rows, costs.n_cols);
  }
  state_.is_large = costs.n_rows * costs.n_cols * sizeof(T) > kLargeBytes;
  state_.sign = state_.is_large ? sign_ : T{1};
  state_.highest = kInfinity<T>;
  // Transposed costs stand there already: they are checked in place.
  T* const to = state_.is_large ? nullptr : costs_.with_room_for(costs.n_rows * width_);
  const T** rows = rows_.with_room_for(costs.n_rows);
  for (std::size_t i = 0; i < costs.n_rows; ++i) {
    rows[i] = state_.is_large ? costs.row(i) : to + i * width_;
  }
  state_.rows = rows;
  if (state_.is_large) reserve_large();
  const T limit = largest_safe<T>(costs.n_rows);
  return kernel_.load(state_, costs, end, sign_, limit, to) || check_and_scale();
}

template <class T>
void AssignmentSolver<T>::reserve_large() {
  state_.candidates = candidates_.with_room_for(state_.n_rows);
  state_.partial_rows = partial_rows_.with_room_for(state_.n_rows + 1);
  state_.candidate_cols = candidate_cols_.with_room_for(state_.n_rows * kMaxCandidates);
  state_.candidate_costs = candidate_costs_.with_room_for(state_.n_rows * kMaxCandidates);
}

// Large problems are not copied: their costs are scaled whenever they are read.
template <class T>
bool AssignmentSolver<T>::check_and_scale() {
  T largest = 0;
  for (std::size_t i = 0; i < state_.n_rows; ++i) {
    state_.worker->spend(state_.n_cols);
    for (std::size_t j = 0; j < state_.n_cols; ++j) {
      const T cost = state_.rows[i][j] * state_.sign;
      if (!(cost > -kInfinity<T>)) return false;
      if (cost < kInfinity<T>) largest = std::max(largest, std::abs(cost));
    }
  }
  const T limit = largest_safe<T>(state_.n_rows);
  while (largest * scale_ >= limit) scale_ /= 2;
  if (scale_ == 1) return true;
  if (state_.is_large) {
    state_.sign *= scale_;
  } else {
    T* const begin = costs_.data();
    for (std::size_t at = 0; at < state_.n_rows * width_; ++at) begin[at] *= scale_;
  }
  kernel_.find_cheapest(state_);
  return true;
}

template <class T>
void AssignmentSolver<T>::attach(const T* const* rows, std::size_t n_rows, std::size_t n_cols) {
  KC_ASSERT(n_rows <= n_cols);
  is_transposed_ = false;
  sign_ = scale_ = state_.sign = 1;
  state_.is_large = false;
  reserve(n_rows, n_cols);
  state_.rows = rows;
  kernel_.find_cheapest(state_);
}

template <class T>
void AssignmentSolver<T>::forbid_beyond(double threshold) {
  state_.highest = static_cast<T>(threshold) * sign_ * scale_;
  for (std::size_t i = 0; i < state_.n_rows; ++i) {
    if (state_.cheapest[i].distance > state_.highest) state_.cheapest[i] = {0, kInfinity<T>};
  }
  if (state_.is_large) return;
  T* const begin = costs_.data();
  for (std::size_t at = 0; at < state_.n_rows * width_; ++at) {
    if (begin[at] > state_.highest) begin[at] = kInfinity<T>;
  }
}

template <class T>
void AssignmentSolver<T>::find_best(std::int32_t* col_of_row, std::int32_t* row_of_col) {
  if (is_transposed_) std::swap(col_of_row, row_of_col);
  kernel_.begin(state_);
  for (std::size_t i = 0; i < state_.n_rows; ++i) {
    std::int32_t col = state_.is_large ? 0 : state_.cheapest[i].col;  // the first of equals
    while (state_.rows[i][col] * state_.sign != state_.cheapest[i].distance) ++col;
    col_of_row[i] = col;
  }
  kernel_.find_best_free_rows(state_);
  std::copy_n(state_.best_free_row, state_.n_cols, row_of_col);
}

template <class T>
void AssignmentSolver<T>::match(std::size_t n) {
  kernel_.begin(state_);
  if (n < state_.n_rows) sort_rows();
  kernel_.match_cheapest(state_, n);
  if (state_.n_pending == 0) return;
  kernel_.augment_pending(state_);
  if (state_.n_pending == 0) return;
  begin();  // n pairs cannot be had: find the largest number that can
  augment_until(n, sign_ * HUGE_VAL);
}

template <class T>
void AssignmentSolver<T>::begin() {
  kernel_.begin(state_);
  sort_rows();
}

// Cheapest first.
template <class T>
void AssignmentSolver<T>::sort_rows() {
  const auto* const cheapest = state_.cheapest;
  std::sort(state_.free_rows, state_.free_rows + state_.n_rows,
            [&](std::int32_t a, std::int32_t b) {
              const T x = cheapest[a].distance, y = cheapest[b].distance;
              return x < y || (x == y && a < b);
            });
}

template <class T>
void AssignmentSolver<T>::augment_until(std::size_t n, double threshold) {
  const T limit = static_cast<T>(threshold) * sign_ * scale_;
  if (limit == -kInfinity<T>) return;  // no pair is worth its cost
  if (state_.n_matched < n) kernel_.augment_until(state_, n, limit);
}

template <class T>
void AssignmentSolver<T>::write_duals(T* rows, T* cols, T& pair) {
  // Where no row is free, d is not determined: it becomes the highest row dual. Where no column
  // is free either, column duals may have any sign: the highest one becomes 0.
  const std::size_t n = state_.n_rows, m = state_.n_cols;
  T* const u = state_.row_dual;
  T* const v = state_.col_dual;
  if (state_.n_matched == n && n > 0) {
    const T highest = n == m ? *std::max_element(v, v + m) : T{0};
    for (std::size_t j = 0; j < m; ++j) v[j] -= highest;
    for (std::size_t i = 0; i < n; ++i) u[i] += highest;
    state_.pair_dual = *std::max_element(u, u + n);
  }
  const T unit = sign_ / scale_;
  pair = state_.pair_dual * unit;
  for (std::size_t i = 0; i < n; ++i) {
    (is_transposed_ ? cols : rows)[i] = (u[i] - state_.pair_dual) * unit;
  }
  for (std::size_t j = 0; j < m; ++j) (is_transposed_ ? rows : cols)[j] = v[j] * unit;
}

template class AssignmentSolver<float>;
template class AssignmentSolver<double>;

template <class T>
void linear_assignments(const std::vector<AssignmentProblem<T>>& problems,
                        const AssignmentOptions& options, const MatchedPairs& pairs,
                        AssignmentDuals<T>* duals, std::size_t n_threads, Monitor& monitor) {
  KC_ASSERT(are_offsets(pairs.offsets, problems.size(),
                        static_cast<std::size_t>(pairs.offsets[problems.size()])));
  PerWorker<AssignmentSolver<T>> solvers(n_threads);
  const std::vector<std::size_t> ends = cut(problems);
  Crew crew(n_threads, monitor);
  crew.parallel_for(ends.size() - 1, [&](std::size_t task, Worker& worker) {
    AssignmentSolver<T>& solver = solvers.of(worker);
    for (std::size_t b = ends[task]; b < ends[task + 1]; ++b) {
      const auto& [costs, end] = problems[b];
      if (!solver.load(costs, end, options.maximize)) {
        pairs.n_pairs[b] = kInvalid;
        continue;
      }
      const std::size_t shorter = std::min(costs.n_rows, costs.n_cols);
      const std::size_t n_pairs = std::min(options.n_pairs, shorter);
      if (options.at_most && options.threshold != (options.maximize ? -HUGE_VAL : HUGE_VAL)) {
        solver.forbid_beyond(options.threshold);
        solver.begin();
        solver.augment_until(n_pairs, options.threshold);
      } else {
        solver.match(n_pairs);
      }
      write_pairs(solver, costs, b, pairs);
      if (duals != nullptr) solver.write_duals(duals[b].rows, duals[b].cols, duals[b].pair);
    }
  });
}

template <class T>
void k_cardinality_assignments(MatrixView<const T> costs, bool maximize, std::size_t max_k,
                               const MatchedPairs& pairs, Monitor& monitor) {
  std::fill_n(pairs.n_pairs, max_k, 0);
  Crew crew(1, monitor);
  crew.expect(max_k);
  AssignmentSolver<T> solver(crew.caller());
  if (!solver.load(costs, costs.data + costs.n_rows * costs.n_cols, maximize)) {
    std::fill_n(pairs.n_pairs, max_k, kInvalid);
    return;
  }
  solver.begin();
  // One thread takes the tasks in this order.
  crew.parallel_for(max_k, [&](std::size_t task, Worker&) {
    if (solver.n_matched() < task) return;  // the problem before had no solution
    solver.augment_until(task + 1, maximize ? -HUGE_VAL : HUGE_VAL);
    if (solver.n_matched() > task) write_pairs(solver, costs, task, pairs);
  });
}

#define KERNELCORE_INSTANTIATE(T)                                                    \
  template void linear_assignments<T>(const std::vector<AssignmentProblem<T>>&,      \
                                      const AssignmentOptions&, const MatchedPairs&, \
                                      AssignmentDuals<T>*, std::size_t, Monitor&);   \
  template void k_cardinality_assignments<T>(MatrixView<const T>, bool, std::size_t, \
                                             const MatchedPairs&, Monitor&);
KERNELCORE_INSTANTIATE(float)
KERNELCORE_INSTANTIATE(double)
#undef KERNELCORE_INSTANTIATE

}  // namespace kernelcore
