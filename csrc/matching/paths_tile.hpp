// Shortest paths to all columns of a problem that is small enough to be read as a whole at
// every step. For assignment_tile.cpp alone: like common/lanes.hpp, all of it has internal
// linkage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "common/lane_search.hpp"
#include "matching/assignment_tile.hpp"

namespace kernelcore {
namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

template <class T>
constexpr T kInfinity = std::numeric_limits<T>::infinity();

// The vectors of a row; kChunks of them, 0 if that is not known to the compiler.
template <class T, std::size_t kChunks>
class Chunks {
 public:
  static std::size_t chunks_of(std::size_t n_cols) {
    return (n_cols + kLanes<T> - 1) / kLanes<T>;
  }

  explicit Chunks(std::size_t n_cols) : n_chunks_(kChunks != 0 ? kChunks : chunks_of(n_cols)) {}

  template <class Body>
  void each(const Body& body) const {
    for (std::size_t k = 0; k < n_chunks_; ++k) body(k * kLanes<T>);
  }

  // The least of all lanes; NaN is passed over. Several vectors at a time: one would wait for
  // the one before it.
  template <class LanesAt>
  T lowest(const LanesAt& lanes_at) const {
    constexpr std::size_t kAtOnce = kChunks != 0 ? 1 : 4;
    Vector<T> lowest[kAtOnce];
    for (Vector<T>& each : lowest) each = broadcast(kInfinity<T>);
    std::size_t k = 0;
    for (; k + kAtOnce <= n_chunks_; k += kAtOnce) {
      for (std::size_t a = 0; a < kAtOnce; ++a) {
        lowest[a] = minimum<T>(lanes_at((k + a) * kLanes<T>), lowest[a]);
      }
    }
    for (; k < n_chunks_; ++k) {
      lowest[0] = minimum<T>(lanes_at(k * kLanes<T>), lowest[0]);
    }
    for (std::size_t a = 1; a < kAtOnce; ++a) lowest[0] = minimum<T>(lowest[a], lowest[0]);
    return lowest_of<T>(lowest[0]);
  }

  // The first column, from some block of 64 on, where the mask is set. Up to 64 columns are
  // looked through without a branch: nobody could predict where it is.
  template <class MaskAt>
  std::size_t find(const MaskAt& mask_at, std::size_t from = 0) const {
    constexpr std::size_t kBlock = 64 / kLanes<T>;
    for (std::size_t first = from / 64 * kBlock; first < n_chunks_; first += kBlock) {
      const std::size_t j = first * kLanes<T>;
      const std::size_t n = n_chunks_ - first < kBlock ? n_chunks_ - first : kBlock;
      std::uint64_t bits = 0;
      for (std::size_t k = 0; k < n; ++k) {
        const std::uint64_t lanes = lane_bits<T>(mask_at(j + k * kLanes<T>));
        bits |= lanes << (k * kLanes<T>);
      }
      if (bits != 0) return j + first_bit(bits);
    }
    return kNone;
  }

 private:
  const std::size_t n_chunks_;
};

// What a search for paths keeps of each column: free, taken or, where the paths of a small
// problem pass, visited.
template <class T>
struct Standing {
  using Index = typename AssignmentState<T>::Index;
  static constexpr Index kFree = -1, kTaken = 0, kVisited = 1;  // all bits of a free one
};

template <class T, std::size_t kChunks>
class Paths {
 public:
  using State = AssignmentState<T>;
  using Index = typename State::Index;
  static constexpr bool kIsShort = kChunks != 0;

  explicit Paths(State& state)
      : chunks(state.n_cols),
        s_(state),
        row_dual_(state.row_dual),
        col_dual_(state.col_dual),
        distance_(state.distance),
        parent_(state.parent),
        standing_(state.standing) {}

  const Chunks<T, kChunks> chunks;

  Vector<T> costs_at(std::size_t row, std::size_t j) const { return load(s_.rows[row] + j); }

  // A new search, from a row or from all free rows.
  void start_from(std::size_t row) { start(row_dual_[row], costs_of(row), always(row)); }
  void start_from_free_rows() { start(s_.link_dual, best_costs(), best_rows()); }

  // Paths go on from a row, or from all free rows, which lie so far away.
  void reach_from(std::size_t row, T distance) {
    relax(row_dual_[row] - distance, costs_of(row), always(row));
  }
  void reach_from_free_rows(T distance) {
    relax(s_.link_dual - distance, best_costs(), best_rows());
  }

  // Distance of the nearest column that was not visited.
  T nearest() const { return nearest_; }

  // A column so far away: the first free one, or else the first one.
  std::size_t column_at(T distance, bool& is_free) const {
    const auto is_there = [&](std::size_t j) {
      return (load(distance_ + j) == distance) & (load(standing_ + j) != kVisited);
    };
    const std::size_t col =
        chunks.find([&](std::size_t j) { return is_there(j) & load(standing_ + j); });
    is_free = col != kNone;
    return is_free ? col : chunks.find(is_there);
  }

  void visit(std::size_t col, T distance) {
    s_.visits[n_visits_++] = {static_cast<std::int32_t>(col), distance};
    set_standing(col, kVisited);
  }

  T last_distance() const { return n_visits_ > 0 ? s_.visits[n_visits_ - 1].distance : 0; }

  // A free column was found at distance `shortest`, or nothing nearer.
  void update_duals(T shortest) {
    if (n_visits_ == 0) return;
    chunks.each([&](std::size_t j) {
      const Vector<T> dual = load(col_dual_ + j);
      const Vector<Index> standing = load(standing_ + j);
      const Mask<T> visited = standing == kVisited;
      store(col_dual_ + j, visited ? dual - (shortest - load(distance_ + j)) : dual);
      store(standing_ + j, visited ? broadcast(kTaken) : standing);
    });
    for (std::size_t k = 0; k < n_visits_; ++k) {
      row_dual_[s_.row_of_col[s_.visits[k].col]] += shortest - s_.visits[k].distance;
    }
  }

  void take(std::size_t col) { set_standing(col, kTaken); }

 private:
  static constexpr Index kFree = Standing<T>::kFree, kTaken = Standing<T>::kTaken,
                         kVisited = Standing<T>::kVisited;

  auto costs_of(std::size_t row) const {
    return [costs = s_.rows[row]](std::size_t j) { return load(costs + j); };
  }
  auto best_costs() const {
    return [this](std::size_t j) { return load(s_.best_cost + j); };
  }
  static auto always(std::size_t row) {
    return [row](std::size_t) { return broadcast(static_cast<Index>(row)); };
  }
  auto best_rows() const {
    return [this](std::size_t j) { return load(s_.best_row + j); };
  }

  template <class CostsAt, class RowsAt>
  void start(T dual, const CostsAt& costs_at, const RowsAt& rows_at) {
    n_visits_ = 0;
    Vector<T> lowest = broadcast(kInfinity<T>);
    chunks.each([&](std::size_t j) {
      const Vector<T> d = (costs_at(j) - dual) - load(col_dual_ + j);
      store(distance_ + j, d);
      store(parent_ + j, rows_at(j));
      lowest = minimum<T>(lowest, d);
    });
    nearest_ = lowest_of<T>(lowest);
  }

  template <class CostsAt, class RowsAt>
  void relax(T dual, const CostsAt& costs_at, const RowsAt& rows_at) {
    Vector<T> lowest = broadcast(kInfinity<T>);
    chunks.each([&](std::size_t j) {
      const Vector<T> d = (costs_at(j) - dual) - load(col_dual_ + j);
      const Vector<T> before = load(distance_ + j);
      const Mask<T> open = load(standing_ + j) != kVisited;
      const Mask<T> shorter = (d < before) & open;
      const Vector<T> now = shorter ? d : before;
      store(distance_ + j, now);
      store(parent_ + j, shorter ? rows_at(j) : load(parent_ + j));
      lowest = open ? minimum<T>(lowest, now) : lowest;
    });
    nearest_ = lowest_of<T>(lowest);
  }

  // A vector that was stored in part is slow to load: short rows are stored as a whole.
  void set_standing(std::size_t col, Index standing) {
    if constexpr (kChunks == 0) {
      standing_[col] = standing;
    } else {
      chunks.each([&](std::size_t j) {
        const Mask<T> here = counting<Index>() == static_cast<Index>(col - j);
        store(standing_ + j, here ? broadcast(standing) : load(standing_ + j));
      });
    }
  }

  State& s_;
  T* const row_dual_;
  T* const col_dual_;
  T* const distance_;
  Index* const parent_;
  Index* const standing_;
  T nearest_ = kInfinity<T>;
  std::size_t n_visits_ = 0;
};

}  // namespace
}  // namespace kernelcore
