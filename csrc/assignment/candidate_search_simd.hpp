// The alternating tree of a large problem. Most columns of a row are too far away for any
// shortest path: the first relaxation of a row lists its candidates, the columns with the least
// c - v. Later ones relax these alone. The others are read only if they might be as near as the
// nearest known column. Column duals never rise meanwhile, so bounds on the others stay valid.
// For assignment_simd.cpp alone. Like common/simd.hpp, all of it has internal linkage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "assignment/assignment_simd.hpp"
#include "assignment/dense_search_simd.hpp"
#include "common/simd.hpp"

namespace kernelcore {
namespace {

// The same interface as DenseSearch. kBounded: some costs may exceed `highest`.
template <class T, bool kBounded>
class CandidateSearch {
 public:
  using State = AssignmentState<T>;
  using Index = typename State::Index;

  explicit CandidateSearch(State& state)
      : chunks(state.n_cols),
        s_(state),
        row_dual_(state.row_dual),
        col_dual_(state.col_dual),
        distance_(state.distance),
        parent_(state.parent),
        col_state_(state.col_state) {}

  const Chunks<T, 0> chunks;

  // Rows point into the caller's memory and have no padding.
  Vector<T> costs_at(std::size_t row, std::size_t j) const {
    const T* const costs = s_.rows[row] + j;
    if (j + kLanes<T> <= s_.n_cols) return bounded(load(costs) * s_.sign);
    T rest[kLanes<T>];
    store(rest, splat(s_.sign * kInfinity<T>));
    std::memcpy(rest, costs, (s_.n_cols - j) * sizeof(T));
    return bounded(load(rest) * s_.sign);
  }

  void spend(std::size_t work) const { s_.worker->spend(work); }

  void start_at(std::size_t row) {
    start();
    relax_from(row, 0);
  }
  void start_at_free_rows() {
    start();
    relax_from_free_rows(0);
  }

  void relax_from(std::size_t row, T distance) {
    const typename State::Candidates candidates = s_.candidates[row];
    if (candidates.n_cols == 0) return relax_whole_row(row, distance);
    const T dual = row_dual_[row] - distance;
    const std::int32_t* const cols = s_.candidate_cols + row * kMaxCandidates;
    const T* const costs = s_.candidate_costs + row * kMaxCandidates;
    for (std::size_t k = 0; k < candidates.n_cols; ++k) {
      const std::int32_t col = cols[k];
      const T d = (costs[k] - dual) - col_dual_[col];
      if (d < distance_[col]) {
        distance_[col] = d;
        parent_[col] = static_cast<Index>(row);
      }
    }
    const T bound = candidates.outside_bound - dual;
    s_.partial_rows[n_partial_++] = {static_cast<std::int32_t>(row), distance, bound};
    outside_bound_ = bound < outside_bound_ ? bound : outside_bound_;
  }

  void relax_from_free_rows(T distance) {
    relax(
        s_.pair_dual - distance, [&](std::size_t j) { return load(s_.best_free_cost + j); },
        [&](std::size_t j) { return load(s_.best_free_row + j); });
  }

  // Completes partial rows until none of them can have a column as near as the nearest known
  // one. A free column at exactly the bound will do: it needs not be the only one.
  T lowest_distance() {
    for (;;) {
      const T lowest = chunks.lowest([&](std::size_t j) { return load(distance_ + j); });
      if (lowest < outside_bound_ || n_partial_ == 0) return lowest;
      if (lowest == outside_bound_) {
        bool is_free;
        column_at(lowest, is_free);
        if (is_free) return lowest;
      }
      complete_rows_within(lowest);
    }
  }

  std::size_t column_at(T distance, bool& is_free) const {
    const auto is_there = [&](std::size_t j) { return load(distance_ + j) == distance; };
    const std::size_t first = chunks.find(is_there);
    const std::size_t free =
        chunks.find([&](std::size_t j) { return is_there(j) & load(col_state_ + j); }, first);
    is_free = free != kNone;
    return is_free ? free : first;
  }

  void add_to_tree(std::size_t col, T distance) {
    s_.tree[n_tree_++] = {static_cast<std::int32_t>(col), distance};
    distance_[col] = std::numeric_limits<T>::quiet_NaN();  // neither less nor equal
  }

  T last_distance() const { return n_tree_ > 0 ? s_.tree[n_tree_ - 1].distance : 0; }

  void update_duals(T shortest) {
    for (std::size_t k = 0; k < n_tree_; ++k) {
      const typename State::ColumnAt at = s_.tree[k];
      col_dual_[at.col] -= shortest - at.distance;
      row_dual_[s_.row_of_col[at.col]] += shortest - at.distance;
    }
  }

  void set_matched(std::size_t col) { col_state_[col] = ColumnState<T>::kMatched; }

 private:
  // Columns are dealt to buckets in turn. Candidates lie below the median of the 32 bucket
  // minima: about 22 columns where costs are random.
  static constexpr std::size_t kBuckets = 32;

  Vector<T> bounded(Vector<T> costs) const {
    if constexpr (!kBounded) return costs;
    return select(costs > s_.highest, splat(kInfinity<T>), costs);
  }

  void start() {
    s_.n_saved += n_partial_;
    n_tree_ = n_partial_ = 0;
    outside_bound_ = kInfinity<T>;
    chunks.each([&](std::size_t j) { store(distance_ + j, splat(kInfinity<T>)); });
  }

  template <class CostsAt, class RowsAt>
  void relax(T dual, const CostsAt& costs_at, const RowsAt& rows_at) {
    chunks.each([&](std::size_t j) {
      const Vector<T> d = (costs_at(j) - dual) - load(col_dual_ + j);
      const Vector<T> before = load(distance_ + j);
      const Mask<T> shorter = d < before;
      store(distance_ + j, select(shorter, d, before));
      store(parent_ + j, select(shorter, rows_at(j), load(parent_ + j)));
    });
  }

  void complete_rows_within(T distance) {
    std::size_t n_kept = 0;
    outside_bound_ = kInfinity<T>;
    for (std::size_t k = 0; k < n_partial_; ++k) {
      const typename State::PartialRow partial = s_.partial_rows[k];
      if (partial.outside_bound <= distance) {
        relax_whole_row(static_cast<std::size_t>(partial.row), partial.distance);
      } else {
        s_.partial_rows[n_kept++] = partial;
        outside_bound_ =
            partial.outside_bound < outside_bound_ ? partial.outside_bound : outside_bound_;
      }
    }
    n_partial_ = n_kept;
  }

  void relax_whole_row(std::size_t row, T distance) {
    spend(s_.n_cols);
    relax(
        row_dual_[row] - distance, [&](std::size_t j) { return costs_at(row, j); },
        [&](std::size_t) { return splat(static_cast<Index>(row)); });
    // Lists candidates only as long as lists save about as many reads as they cost.
    s_.candidates[row].n_cols = 0;
    if (s_.n_listed > s_.n_rows + s_.n_saved) return;
    ++s_.n_listed;
    list_candidates(row);
  }

  void list_candidates(std::size_t row) {
    const auto reduced_at = [&](std::size_t j) {
      return costs_at(row, j) - load(col_dual_ + j);
    };
    alignas(kVectorBytes) T lowest[kBuckets];
    for (T& bucket : lowest) bucket = kInfinity<T>;
    chunks.each([&](std::size_t j) {
      T* const bucket = lowest + j % kBuckets;
      store(bucket, minimum<T>(load(bucket), reduced_at(j)));
    });
    T bound = median_of(lowest);
    std::int32_t* const cols = s_.candidate_cols + row * kMaxCandidates;
    T* const costs = s_.candidate_costs + row * kMaxCandidates;
    std::size_t n = 0;
    chunks.each([&](std::size_t j) {
      const Vector<T> reduced = reduced_at(j);
      std::uint64_t bits = mask_bits<T>(reduced < bound);
      for (; bits != 0; bits &= bits - 1) {
        const std::size_t col = j + first_bit(bits);
        if (n == kMaxCandidates) {
          bound = minimum_of(bound, reduced[first_bit(bits)]);
          continue;
        }
        cols[n] = static_cast<std::int32_t>(col);
        costs[n] = s_.rows[row][col] * s_.sign;
        ++n;
      }
    });
    s_.candidates[row] = {static_cast<std::uint32_t>(n), bound};
  }

  static T minimum_of(T a, T b) { return a < b ? a : b; }

  static T median_of(const T* values) {
    T sorted[kBuckets];
    for (std::size_t k = 0; k < kBuckets; ++k) {
      std::size_t at = k;
      for (; at > 0 && sorted[at - 1] > values[k]; --at) sorted[at] = sorted[at - 1];
      sorted[at] = values[k];
    }
    return sorted[kBuckets / 2];
  }

  State& s_;
  T* const row_dual_;
  T* const col_dual_;
  T* const distance_;
  Index* const parent_;
  Index* const col_state_;
  std::size_t n_tree_ = 0;
  std::size_t n_partial_ = 0;
  T outside_bound_ = kInfinity<T>;  // the least of all partial rows
};

}  // namespace
}  // namespace kernelcore
