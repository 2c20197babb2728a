// Shortest paths to all columns of a large problem. Most of a row is too dear to be on any of
// them: the first path that comes to a row notes its near columns, later ones go to those, and
// to the rest only where a path might be as short as the nearest column that is known. Column
// duals never rise meanwhile, so that what was far is at least as far. For assignment_tile.cpp
// alone: like common/lanes.hpp, all of it has internal linkage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "common/lane_search.hpp"
#include "matching/assignment_tile.hpp"
#include "matching/paths_tile.hpp"

namespace kernelcore {
namespace {

// The same interface as Paths. kBounded: some costs may be more than `highest`.
template <class T, bool kBounded>
class LazyPaths {
 public:
  using State = AssignmentState<T>;
  using Index = typename State::Index;
  static constexpr bool kIsShort = false;

  explicit LazyPaths(State& state)
      : chunks(state.n_cols),
        s_(state),
        row_dual_(state.row_dual),
        col_dual_(state.col_dual),
        distance_(state.distance),
        parent_(state.parent),
        standing_(state.standing) {}

  const Chunks<T, 0> chunks;

  // Rows lie where the caller has them: they end where the columns do.
  Vector<T> costs_at(std::size_t row, std::size_t j) const {
    const T* const costs = s_.rows[row] + j;
    if (j + kLanes<T> <= s_.n_cols) return allowed(load(costs) * s_.sign);
    T rest[kLanes<T>];
    store(rest, broadcast(s_.sign * kInfinity<T>));
    std::memcpy(rest, costs, (s_.n_cols - j) * sizeof(T));
    return allowed(load(rest) * s_.sign);
  }

  void start_from(std::size_t row) {
    start();
    reach_from(row, 0);
  }
  void start_from_free_rows() {
    start();
    reach_from_free_rows(0);
  }

  void reach_from(std::size_t row, T distance) {
    const typename State::Near near = s_.near[row];
    if (near.n_cols == 0) return read(row, distance);
    const T dual = row_dual_[row] - distance;
    const std::int32_t* const cols = s_.near_cols + row * kNearRoom;
    const T* const costs = s_.near_costs + row * kNearRoom;
    for (std::size_t k = 0; k < near.n_cols; ++k) {
      const std::int32_t col = cols[k];
      const T d = (costs[k] - dual) - col_dual_[col];
      if (d < distance_[col]) {
        distance_[col] = d;
        parent_[col] = static_cast<Index>(row);
      }
    }
    const T beyond = near.beyond - dual;
    s_.unread[n_unread_++] = {static_cast<std::int32_t>(row), distance, beyond};
    bound_ = beyond < bound_ ? beyond : bound_;
  }

  void reach_from_free_rows(T distance) {
    relax(
        s_.link_dual - distance, [&](std::size_t j) { return load(s_.best_cost + j); },
        [&](std::size_t j) { return load(s_.best_row + j); });
  }

  // Reads the rest of rows until no unknown path is as short; one that ends at a free column
  // need not be the only one.
  T nearest() {
    for (;;) {
      const T nearest = chunks.lowest([&](std::size_t j) { return load(distance_ + j); });
      if (nearest < bound_ || n_unread_ == 0) return nearest;
      if (nearest == bound_) {
        bool is_free;
        column_at(nearest, is_free);
        if (is_free) return nearest;
      }
      read_within(nearest);
    }
  }

  std::size_t column_at(T distance, bool& is_free) const {
    const auto is_there = [&](std::size_t j) { return load(distance_ + j) == distance; };
    const std::size_t first = chunks.find(is_there);
    const std::size_t free =
        chunks.find([&](std::size_t j) { return is_there(j) & load(standing_ + j); }, first);
    is_free = free != kNone;
    return is_free ? free : first;
  }

  void visit(std::size_t col, T distance) {
    s_.visits[n_visits_++] = {static_cast<std::int32_t>(col), distance};
    distance_[col] = std::numeric_limits<T>::quiet_NaN();  // neither less nor equal
  }

  T last_distance() const { return n_visits_ > 0 ? s_.visits[n_visits_ - 1].distance : 0; }

  void update_duals(T shortest) {
    for (std::size_t k = 0; k < n_visits_; ++k) {
      const typename State::Visit visit = s_.visits[k];
      col_dual_[visit.col] -= shortest - visit.distance;
      row_dual_[s_.row_of_col[visit.col]] += shortest - visit.distance;
    }
  }

  void take(std::size_t col) { standing_[col] = Standing<T>::kTaken; }

 private:
  // Columns are dealt out to so many hands; the near ones cost less than the lowest card of a
  // hand in the middle: about kHands * log 2 where costs are random.
  static constexpr std::size_t kHands = 32;

  Vector<T> allowed(Vector<T> costs) const {
    if constexpr (!kBounded) return costs;
    return costs > s_.highest ? broadcast(kInfinity<T>) : costs;
  }

  void start() {
    s_.n_spared += n_unread_;
    n_visits_ = n_unread_ = 0;
    bound_ = kInfinity<T>;
    chunks.each([&](std::size_t j) { store(distance_ + j, broadcast(kInfinity<T>)); });
  }

  template <class CostsAt, class RowsAt>
  void relax(T dual, const CostsAt& costs_at, const RowsAt& rows_at) {
    chunks.each([&](std::size_t j) {
      const Vector<T> d = (costs_at(j) - dual) - load(col_dual_ + j);
      const Vector<T> before = load(distance_ + j);
      const Mask<T> shorter = d < before;
      store(distance_ + j, shorter ? d : before);
      store(parent_ + j, shorter ? rows_at(j) : load(parent_ + j));
    });
  }

  void read_within(T distance) {
    std::size_t n_kept = 0;
    bound_ = kInfinity<T>;
    for (std::size_t k = 0; k < n_unread_; ++k) {
      const typename State::Unread unread = s_.unread[k];
      if (unread.beyond <= distance) {
        read(static_cast<std::size_t>(unread.row), unread.distance);
      } else {
        s_.unread[n_kept++] = unread;
        bound_ = unread.beyond < bound_ ? unread.beyond : bound_;
      }
    }
    n_unread_ = n_kept;
  }

  void read(std::size_t row, T distance) {
    s_.worker->spend(s_.n_cols);
    relax(
        row_dual_[row] - distance, [&](std::size_t j) { return costs_at(row, j); },
        [&](std::size_t) { return broadcast(static_cast<Index>(row)); });
    // Where notes do not pay, no more are made.
    s_.near[row].n_cols = 0;
    if (s_.n_noted > s_.n_rows + s_.n_spared) return;
    ++s_.n_noted;
    note_near_columns(row);
  }

  void note_near_columns(std::size_t row) {
    const auto reduced_at = [&](std::size_t j) {
      return costs_at(row, j) - load(col_dual_ + j);
    };
    alignas(kVectorBytes) T lowest[kHands];
    for (T& hand : lowest) hand = kInfinity<T>;
    chunks.each([&](std::size_t j) {
      T* const hand = lowest + j % kHands;
      store(hand, minimum<T>(load(hand), reduced_at(j)));
    });
    T beyond = median_of(lowest);
    std::int32_t* const cols = s_.near_cols + row * kNearRoom;
    T* const costs = s_.near_costs + row * kNearRoom;
    std::size_t n = 0;
    chunks.each([&](std::size_t j) {
      const Vector<T> reduced = reduced_at(j);
      std::uint64_t bits = lane_bits<T>(reduced < beyond);
      for (; bits != 0; bits &= bits - 1) {
        const std::size_t col = j + first_bit(bits);
        if (n == kNearRoom) {
          beyond = minimum_of(beyond, reduced[first_bit(bits)]);
          continue;
        }
        cols[n] = static_cast<std::int32_t>(col);
        costs[n] = s_.rows[row][col] * s_.sign;
        ++n;
      }
    });
    s_.near[row] = {static_cast<std::uint32_t>(n), beyond};
  }

  static T minimum_of(T a, T b) { return a < b ? a : b; }

  static T median_of(const T* values) {
    T sorted[kHands];
    for (std::size_t k = 0; k < kHands; ++k) {
      std::size_t at = k;
      for (; at > 0 && sorted[at - 1] > values[k]; --at) sorted[at] = sorted[at - 1];
      sorted[at] = values[k];
    }
    return sorted[kHands / 2];
  }

  State& s_;
  T* const row_dual_;
  T* const col_dual_;
  T* const distance_;
  Index* const parent_;
  Index* const standing_;
  std::size_t n_visits_ = 0;
  std::size_t n_unread_ = 0;
  T bound_ = kInfinity<T>;
};

}  // namespace
}  // namespace kernelcore
