// The alternating tree of a large problem. Most columns of a row are too far away for any
// shortest path: a relaxation of a row lists its candidates, the columns with the least c - v,
// and later ones relax these alone. The other columns are read only if they might be as near as
// the nearest known one. Column duals never rise meanwhile, so bounds on the others stay valid.
// Where columns outnumber rows, most rows are relaxed once: there the second relaxation lists.
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
class CandidateSearch : public SearchTree<T, 0> {
 public:
  using Tree = SearchTree<T, 0>;
  using State = typename Tree::State;
  using Tree::chunks;
  using Tree::Tree;

  // Rows point into the caller's memory and have no padding.
  auto costs_of(std::size_t row) const {
    return [costs = s_.rows[row], n_cols = s_.n_cols, sign = s_.sign,
            highest = s_.highest](std::size_t j) {
      Vector<T> lanes;
      if (j + kLanes<T> <= n_cols) {
        lanes = load(costs + j) * sign;
      } else {
        T rest[kLanes<T>];
        store(rest, splat(sign * kInfinity<T>));
        std::memcpy(rest, costs + j, (n_cols - j) * sizeof(T));
        lanes = load(rest) * sign;
      }
      if constexpr (!kBounded) return lanes;
      return select(lanes > highest, splat(kInfinity<T>), lanes);
    };
  }

  void spend(std::size_t work) const { s_.worker->spend(work); }

  void start_at(std::size_t row) {
    start();
    relax(row, 0, -kInfinity<T>);
  }
  void start_at_free_rows() {
    start();
    relax_from_free_rows(0);
  }

  // Returns a free column that is no farther than the row, else kNone: then all others that are
  // no farther have joined the tree.
  std::size_t relax_from(std::size_t row, T distance) { return relax(row, distance, distance); }

  void relax_from_free_rows(T distance) {
    Tree::relax(s_.pair_dual - distance, Tree::best_free_costs(), Tree::best_free_rows());
  }

  // Completes partial rows until none of them can have a column as near as the nearest known
  // one. A free column at exactly the bound will do: it needs not be the only one.
  T lowest_distance() {
    for (;;) {
      const auto distances = [at = s_.distance](std::size_t j) { return load(at + j); };
      const T lowest = chunks.lowest(distances);
      if (lowest < outside_bound_ || n_partial_ == 0) return lowest;
      const auto is_lowest = [=](std::size_t j) { return distances(j) == lowest; };
      if (lowest == outside_bound_ && Tree::find_free(is_lowest) != kNone) return lowest;
      complete_rows_within(lowest);
    }
  }

 private:
  using Tree::s_;

  // Columns are dealt to buckets in turn. Candidates lie below a median of the 32 bucket
  // minima: about 22 columns where costs are random.
  static constexpr std::size_t kBuckets = 32;

  void start() {
    s_.n_saved += n_partial_;
    Tree::n_tree_ = n_partial_ = 0;
    outside_bound_ = kInfinity<T>;
    chunks.each([to = s_.distance](std::size_t j) { store(to + j, splat(kInfinity<T>)); });
  }

  // Returns a free column within `reach`, or kNone.
  std::size_t relax(std::size_t row, T distance, T reach) {
    const typename State::Candidates candidates = s_.candidates[row];
    if (candidates.n_cols == 0) {
      const T lowest = relax_whole_row(row, distance);
      return lowest <= reach ? Tree::add_columns_within(reach) : kNone;
    }
    const T dual = s_.row_dual[row] - distance;
    const std::int32_t* const cols = s_.candidate_cols + row * kMaxCandidates;
    const T* const costs = s_.candidate_costs + row * kMaxCandidates;
    for (std::size_t k = 0; k < candidates.n_cols; ++k) {
      const auto col = static_cast<std::size_t>(cols[k]);
      const T d = (costs[k] - dual) - s_.col_dual[col];
      if (!(d < s_.distance[col])) continue;
      s_.distance[col] = d;
      s_.parent[col] = static_cast<typename State::Index>(row);
      if (!(d <= reach)) continue;
      if (s_.col_state[col] == ColumnState<T>::kFree) return col;
      Tree::add_to_tree(col, reach);
    }
    const T bound = candidates.outside_bound - dual;
    s_.partial_rows[n_partial_++] = {static_cast<std::int32_t>(row), distance, bound};
    outside_bound_ = bound < outside_bound_ ? bound : outside_bound_;
    return kNone;
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

  // Returns the least distance outside the tree.
  T relax_whole_row(std::size_t row, T distance) {
    spend(s_.n_cols);
    const T dual = s_.row_dual[row] - distance;
    const T lowest = lowest_of<T>(Tree::relax(dual, costs_of(row), Tree::always(row)));
    // Lists candidates only as long as lists save about as many reads as they cost.
    // begin() marks the rows of such problems.
    const bool is_first = s_.candidates[row].outside_bound == -kInfinity<T>;
    s_.candidates[row] = {0, 0};
    if (is_first || s_.n_listed > s_.n_rows + s_.n_saved) return lowest;
    ++s_.n_listed;
    list_candidates(row);
    return lowest;
  }

  void list_candidates(std::size_t row) {
    const auto reduced_at = [costs_at = costs_of(row), dual = s_.col_dual](std::size_t j) {
      return costs_at(j) - load(dual + j);
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

  // A value that about half of the others are below; sorting takes longer than the rest.
  static T median_of(const T* values) {
    std::size_t best = 0, n_best = 0;
    for (std::size_t k = 0; k < kBuckets; ++k) {
      std::size_t n_below = 0;
      for (std::size_t other = 0; other < kBuckets; other += kLanes<T>) {
        const std::uint64_t below = mask_bits<T>(load(values + other) < values[k]);
        n_below += static_cast<std::size_t>(__builtin_popcountll(below));
      }
      if (n_below > kBuckets / 8 * 5) continue;
      if (n_below >= n_best) best = k, n_best = n_below;
      if (n_best >= kBuckets / 8 * 3) break;
    }
    return values[best];
  }

  std::size_t n_partial_ = 0;
  T outside_bound_ = kInfinity<T>;  // the least of all partial rows
};

}  // namespace
}  // namespace kernelcore
