#include "matching/assignment.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <type_traits>
#include <vector>

#include "common/parallel.hpp"

namespace kernelcore {
namespace {

// A task should end soon enough for Ctrl-C, and be long enough to be worth its start.
constexpr std::size_t kTaskCosts = std::size_t{1} << 15;
constexpr std::size_t kPauseWork = std::size_t{1} << 24;

template <class T>
constexpr T kInfinity = std::numeric_limits<T>::infinity();

template <class T>
AssignmentTile<T> active_tile() {
  const AssignmentTiles tiles = KERNELCORE_ACTIVE_TILES(assignment_tiles);
  if constexpr (std::is_same_v<T, float>) {
    return tiles.f32;
  } else {
    return tiles.f64;
  }
}

std::size_t rounded_up(std::size_t n) {
  return std::max<std::size_t>(1, (n + kVectorRoom - 1) / kVectorRoom) * kVectorRoom;
}

// Paths of so many links, and the duals, stay finite for costs below this.
template <class T>
T largest_safe(std::size_t n_rows) {
  return std::numeric_limits<T>::max() / (8 * static_cast<T>(n_rows + 1));
}

template <class T>
MatrixView<const T> transpose(MatrixView<const T> matrix, T* to) {
  for (std::size_t j = 0; j < matrix.n_cols; ++j) {
    for (std::size_t i = 0; i < matrix.n_rows; ++i) to[j * matrix.n_rows + i] = matrix(i, j);
  }
  return {to, matrix.n_cols, matrix.n_rows};
}

// Consecutive problems of about equal work: task t has [ends[t], ends[t + 1]).
template <class T>
std::vector<std::size_t> cut(const MatricesView<T>& problems) {
  std::vector<std::size_t> ends = {0};
  std::size_t work = 0;
  for (std::size_t b = 0; b < problems.n_matrices; ++b) {
    work += 64 + static_cast<std::size_t>(problems.offsets[b + 1] - problems.offsets[b]);
    if (work >= kTaskCosts || b + 1 == problems.n_matrices) {
      ends.push_back(b + 1);
      work = 0;
    }
  }
  return ends;
}

template <class T>
void write_links(const AssignmentSolver<T>& solver, MatrixView<const T> costs, std::size_t b,
                 const AssignmentLinks& links) {
  std::int64_t at = links.link_offsets[b];
  double total = 0;
  solver.each_link([&](std::size_t row, std::size_t col) {
    links.rows[at] = static_cast<std::int64_t>(row);
    links.cols[at] = static_cast<std::int64_t>(col);
    total += static_cast<double>(costs(row, col));
    ++at;
  });
  links.n_links[b] = at - links.link_offsets[b];
  links.totals[b] = total;
}

}  // namespace

template <class T>
AssignmentSolver<T>::AssignmentSolver() : tile_(active_tile<T>()) {
  reserve(0, 0);
}

template <class T>
void AssignmentSolver<T>::reserve(std::size_t n_rows, std::size_t n_cols) {
  state_.n_rows = n_rows;
  state_.n_cols = n_cols;
  width_ = rounded_up(n_cols);
  if (n_rows <= capacity_rows_ && width_ <= capacity_cols_) return;
  capacity_rows_ = std::max(n_rows, capacity_rows_);
  capacity_cols_ = std::max(width_, capacity_cols_);
  const std::size_t rows = rounded_up(capacity_rows_), cols = capacity_cols_;
  T* values = values_.with_room_for(3 * cols + rows);
  state_.col_dual = values;
  state_.distance = values + cols;
  state_.best_cost = values + 2 * cols;
  state_.row_dual = values + 3 * cols;
  auto* indices = indices_.with_room_for(3 * cols);
  state_.parent = indices;
  state_.standing = indices + cols;
  state_.best_row = indices + 2 * cols;
  std::int32_t* links = links_.with_room_for(cols + 3 * rows);
  state_.row_of_col = links;
  state_.col_of_row = links + cols;
  state_.free_rows = links + cols + rows;
  state_.waiting_rows = links + cols + 2 * rows;
  state_.visits = visits_.with_room_for(rows);
  rows_.with_room_for(rows);
}

template <class T>
bool AssignmentSolver<T>::load(MatrixView<const T> costs, const T* end, bool maximize) {
  is_transposed_ = costs.n_rows > costs.n_cols;
  sign_ = maximize ? T{-1} : T{1};
  scale_ = 1;
  if (is_transposed_) {
    T* to = transposed_.with_room_for(costs.n_rows * costs.n_cols);
    costs = transpose(costs, to);
    end = to + costs.n_rows * costs.n_cols;
  }
  reserve(costs.n_rows, costs.n_cols);
  state_.is_large = costs.n_cols >= kLargeRow;
  state_.sign = state_.is_large ? sign_ : T{1};
  T* to = state_.is_large ? nullptr : costs_.with_room_for(costs.n_rows * width_);
  const T** rows = rows_.with_room_for(costs.n_rows);
  const T limit = largest_safe<T>(costs.n_rows);
  bool is_plain = true;
  for (std::size_t i = 0; i < costs.n_rows; ++i) {
    if (state_.is_large) {
      rows[i] = costs.row(i);
      is_plain &= tile_.are_plain(rows[i], costs.n_cols, limit);
    } else {
      rows[i] = to;
      is_plain &= tile_.load(costs.row(i), end, costs.n_cols, sign_, limit, to);
      to += width_;
    }
  }
  state_.rows = rows;
  if (state_.is_large) reserve_large();
  return is_plain || check_and_scale();
}

template <class T>
void AssignmentSolver<T>::reserve_large() {
  near_.resize(std::max(near_.size(), state_.n_rows));
  unread_.resize(std::max(unread_.size(), state_.n_rows + 1));
  near_cols_.resize(std::max(near_cols_.size(), state_.n_rows * kNearRoom));
  near_costs_.resize(near_cols_.size());
  state_.near = near_.data();
  state_.unread = unread_.data();
  state_.near_cols = near_cols_.data();
  state_.near_costs = near_costs_.data();
}

// Large costs that have to be changed.
template <class T>
void AssignmentSolver<T>::copy_rows() {
  if (!state_.is_large) return;
  T* to = costs_.with_room_for(state_.n_rows * width_);
  const T** rows = rows_.with_room_for(state_.n_rows);
  for (std::size_t i = 0; i < state_.n_rows; ++i, to += width_) {
    tile_.load(rows[i], rows[i] + state_.n_cols, state_.n_cols, state_.sign, T{0}, to);
    rows[i] = to;
  }
  state_.sign = 1;
}

template <class T>
bool AssignmentSolver<T>::check_and_scale() {
  copy_rows();
  T* const begin = costs_.with_room_for(0);
  T largest = 0;
  for (std::size_t i = 0; i < state_.n_rows; ++i) {
    for (std::size_t j = 0; j < state_.n_cols; ++j) {
      const T cost = begin[i * width_ + j];
      if (!(cost > -kInfinity<T>)) return false;
      if (cost < kInfinity<T>) largest = std::max(largest, std::abs(cost));
    }
  }
  const T limit = largest_safe<T>(state_.n_rows);
  while (largest * scale_ >= limit) scale_ /= 2;
  if (scale_ != 1) {
    for (std::size_t at = 0; at < state_.n_rows * width_; ++at) begin[at] *= scale_;
  }
  return true;
}

template <class T>
void AssignmentSolver<T>::attach(const T* const* rows, std::size_t n_rows, std::size_t n_cols) {
  is_transposed_ = false;
  sign_ = scale_ = state_.sign = 1;
  state_.is_large = false;
  reserve(n_rows, n_cols);
  state_.rows = rows;
}

template <class T>
void AssignmentSolver<T>::forbid_beyond(double threshold) {
  copy_rows();
  const T limit = static_cast<T>(threshold) * sign_ * scale_;
  T* const begin = costs_.with_room_for(0);
  for (std::size_t at = 0; at < state_.n_rows * width_; ++at) {
    if (begin[at] > limit) begin[at] = kInfinity<T>;
  }
}

template <class T>
void AssignmentSolver<T>::find_best(std::int32_t* col_of_row, std::int32_t* row_of_col) {
  if (is_transposed_) std::swap(col_of_row, row_of_col);
  tile_.begin(state_);
  for (std::size_t i = 0; i < state_.n_rows; ++i) {
    col_of_row[i] = state_.visits[i].col;
  }
  tile_.find_best_rows(state_);
  std::copy_n(state_.best_row, state_.n_cols, row_of_col);
}

// Links to make between two pauses.
template <class T>
std::size_t AssignmentSolver<T>::step() const {
  const std::size_t n_costs = state_.n_rows * state_.n_cols;
  return std::max<std::size_t>(1, kPauseWork / std::max<std::size_t>(1, n_costs));
}

template <class T>
void AssignmentSolver<T>::link(std::size_t n_links, const Pause& pause) {
  tile_.begin(state_);
  if (n_links < state_.n_rows) sort_rows();
  tile_.link(state_, n_links);
  while (state_.n_waiting > 0) {
    const std::size_t n_waiting = state_.n_waiting;
    tile_.serve(state_, step());
    pause();
    if (state_.n_waiting == n_waiting) {  // so many cannot be had: how many can?
      begin();
      return grow(n_links, sign_ * HUGE_VAL, pause);
    }
  }
}

template <class T>
void AssignmentSolver<T>::begin() {
  tile_.begin(state_);
  sort_rows();
}

// Cheapest first.
template <class T>
void AssignmentSolver<T>::sort_rows() {
  const auto* const visits = state_.visits;
  std::sort(state_.free_rows, state_.free_rows + state_.n_rows,
            [&](std::int32_t a, std::int32_t b) {
              const T x = visits[a].distance, y = visits[b].distance;
              return x < y || (x == y && a < b);
            });
}

template <class T>
void AssignmentSolver<T>::grow(std::size_t n_links, double threshold, const Pause& pause) {
  const T limit = static_cast<T>(threshold) * sign_ * scale_;
  if (limit == -kInfinity<T>) return;  // nothing is worth a link
  while (state_.n_links < n_links) {
    const std::size_t next = std::min(n_links, state_.n_links + step());
    tile_.grow(state_, next, limit);
    if (state_.n_links < next) break;
    pause();
  }
}

template <class T>
void AssignmentSolver<T>::write_duals(T* rows, T* cols, T& link) {
  // After link_all() the duals may have any sign where no column is free, and there is no
  // free row to say what a link is worth: the highest ones become 0.
  const std::size_t n = state_.n_rows, m = state_.n_cols;
  T* const u = state_.row_dual;
  T* const v = state_.col_dual;
  if (state_.n_links == n && n > 0) {
    const T highest = n == m ? *std::max_element(v, v + m) : T{0};
    for (std::size_t j = 0; j < m; ++j) v[j] -= highest;
    for (std::size_t i = 0; i < n; ++i) u[i] += highest;
    state_.link_dual = *std::max_element(u, u + n);
  }
  const T unit = sign_ / scale_;
  link = state_.link_dual * unit;
  for (std::size_t i = 0; i < n; ++i) {
    (is_transposed_ ? cols : rows)[i] = (u[i] - state_.link_dual) * unit;
  }
  for (std::size_t j = 0; j < m; ++j) (is_transposed_ ? rows : cols)[j] = v[j] * unit;
}

template class AssignmentSolver<float>;
template class AssignmentSolver<double>;

template <class T>
void linear_assignments(const MatricesView<T>& problems, const AssignmentOptions& options,
                        const AssignmentLinks& links, const AssignmentDuals<T>& duals,
                        std::size_t n_threads, Monitor& monitor) {
  std::vector<std::unique_ptr<AssignmentSolver<T>>> solvers(n_threads);
  const std::vector<std::size_t> ends = cut(problems);
  const std::size_t n_tasks = ends.size() - 1;
  parallel_for(n_tasks, n_threads, monitor, [&](std::size_t task, std::size_t worker) {
    if (!solvers[worker]) solvers[worker] = std::make_unique<AssignmentSolver<T>>();
    AssignmentSolver<T>& solver = *solvers[worker];
    const auto pause = [&] {  // the monitor hears the calling thread alone
      if (worker == 0 && !monitor.keep_going(task, n_tasks)) throw Cancelled();
    };
    for (std::size_t b = ends[task]; b < ends[task + 1]; ++b) {
      const MatrixView<const T> costs = problems[b];
      if (!solver.load(costs, problems.end(), options.maximize)) {
        links.n_links[b] = kInvalid;
        continue;
      }
      const std::size_t shorter = std::min(costs.n_rows, costs.n_cols);
      const std::size_t n_links = std::min(options.n_links, shorter);
      if (options.at_most && options.threshold != (options.maximize ? -HUGE_VAL : HUGE_VAL)) {
        solver.forbid_beyond(options.threshold);
        solver.begin();
        solver.grow(n_links, options.threshold, pause);
      } else {
        solver.link(n_links, pause);
      }
      write_links(solver, costs, b, links);
      if (duals.links != nullptr) {
        solver.write_duals(duals.rows + duals.row_offsets[b], duals.cols + duals.col_offsets[b],
                           duals.links[b]);
      }
    }
  });
}

template <class T>
void k_cardinality_assignments(MatrixView<const T> costs, bool maximize, std::size_t max_k,
                               const AssignmentLinks& links, Monitor& monitor) {
  std::fill_n(links.n_links, max_k, 0);
  AssignmentSolver<T> solver;
  if (!solver.load(costs, costs.data + costs.n_rows * costs.n_cols, maximize)) {
    std::fill_n(links.n_links, max_k, kInvalid);
    return;
  }
  solver.begin();
  for (std::size_t k = 1; k <= max_k; ++k) {
    solver.grow(k, maximize ? -HUGE_VAL : HUGE_VAL, [] {});
    if (!monitor.keep_going(k, max_k)) throw Cancelled();
    if (solver.n_links() < k) return;
    write_links(solver, costs, k - 1, links);
  }
}

#define KERNELCORE_INSTANTIATE(T)                                                        \
  template void linear_assignments<T>(const MatricesView<T>&, const AssignmentOptions&,  \
                                      const AssignmentLinks&, const AssignmentDuals<T>&, \
                                      std::size_t, Monitor&);                            \
  template void k_cardinality_assignments<T>(MatrixView<const T>, bool, std::size_t,     \
                                             const AssignmentLinks&, Monitor&);
KERNELCORE_INSTANTIATE(float)
KERNELCORE_INSTANTIATE(double)
#undef KERNELCORE_INSTANTIATE

}  // namespace kernelcore
