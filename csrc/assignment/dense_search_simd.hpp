// The alternating tree of a small problem: every relaxation reads a whole row. For
// assignment_simd.cpp alone. Like common/simd.hpp, all of it has internal linkage.
#pragma once

#include <cstddef>
#include <cstdint>

#include "assignment/assignment_simd.hpp"
#include "assignment/load_costs_simd.hpp"
#include "common/simd.hpp"

namespace kernelcore {
namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

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

  // The smallest of all lanes; NaN is passed over. Takes several vectors at a time, because
  // each minimum has to wait for the one before it.
  template <class LanesAt>
  T lowest(const LanesAt& lanes_at) const {
    constexpr std::size_t kAtOnce = kChunks != 0 ? 1 : 4;
    Vector<T> lowest[kAtOnce];
    for (Vector<T>& each : lowest) each = splat(kInfinity<T>);
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

  // The first column where the mask is set, from the block of 64 columns that holds `from` on.
  // Has no branch within a block: the place cannot be predicted.
  template <class MaskAt>
  std::size_t find(const MaskAt& mask_at, std::size_t from = 0) const {
    constexpr std::size_t kBlock = 64 / kLanes<T>;
    for (std::size_t first = from / 64 * kBlock; first < n_chunks_; first += kBlock) {
      const std::size_t j = first * kLanes<T>;
      const std::size_t n = n_chunks_ - first < kBlock ? n_chunks_ - first : kBlock;
      std::uint64_t bits = 0;
      for (std::size_t k = 0; k < n; ++k) {
        const std::uint64_t lanes = mask_bits<T>(mask_at(j + k * kLanes<T>));
        bits |= lanes << (k * kLanes<T>);
      }
      if (bits != 0) return j + first_bit(bits);
    }
    return kNone;
  }

 private:
  const std::size_t n_chunks_;
};

// The state of a column in a search. kFree has all bits set, so that it is a mask.
// CandidateSearch marks columns of the tree by a distance of NaN instead of kInTree.
template <class T>
struct ColumnState {
  using Index = typename AssignmentState<T>::Index;
  static constexpr Index kFree = -1, kMatched = 0, kInTree = 1;
};

template <class T, std::size_t kChunks>
class DenseSearch {
 public:
  using State = AssignmentState<T>;
  using Index = typename State::Index;

  explicit DenseSearch(State& state)
      : chunks(state.n_cols),
        s_(state),
        row_dual_(state.row_dual),
        col_dual_(state.col_dual),
        distance_(state.distance),
        parent_(state.parent),
        col_state_(state.col_state) {}

  const Chunks<T, kChunks> chunks;

  Vector<T> costs_at(std::size_t row, std::size_t j) const { return load(s_.rows[row] + j); }

  // Tells the worker. Problems of few columns end before its next look at the monitor is due.
  void spend(std::size_t work) const {
    if constexpr (kChunks == 0) s_.worker->spend(work);
  }

  // A new tree, rooted in one row or in all free rows.
  void start_at(std::size_t row) { start(row_dual_[row], costs_of(row), always(row)); }
  void start_at_free_rows() { start(s_.pair_dual, best_free_costs(), best_free_rows()); }

  // Relaxes the columns of a row, or of all free rows, whose own distance is given.
  void relax_from(std::size_t row, T distance) {
    relax(row_dual_[row] - distance, costs_of(row), always(row));
  }
  void relax_from_free_rows(T distance) {
    relax(s_.pair_dual - distance, best_free_costs(), best_free_rows());
  }

  // The least distance of the columns outside the tree.
  T lowest_distance() const { return lowest_distance_; }

  // The first free column outside the tree at this distance, else the first column there.
  std::size_t column_at(T distance, bool& is_free) const {
    const auto is_there = [&](std::size_t j) {
      return (load(distance_ + j) == distance) & (load(col_state_ + j) != kInTree);
    };
    const std::size_t col =
        chunks.find([&](std::size_t j) { return is_there(j) & load(col_state_ + j); });
    is_free = col != kNone;
    return is_free ? col : chunks.find(is_there);
  }

  void add_to_tree(std::size_t col, T distance) {
    s_.tree[n_tree_++] = {static_cast<std::int32_t>(col), distance};
    set_state(col, kInTree);
  }

  T last_distance() const { return n_tree_ > 0 ? s_.tree[n_tree_ - 1].distance : 0; }

  // Moves the duals of the tree up to distance `shortest`, and empties it.
  void update_duals(T shortest) {
    if (n_tree_ == 0) return;
    chunks.each([&](std::size_t j) {
      const Vector<T> dual = load(col_dual_ + j);
      const Vector<Index> state = load(col_state_ + j);
      const Mask<T> in_tree = state == kInTree;
      store(col_dual_ + j, select(in_tree, dual - (shortest - load(distance_ + j)), dual));
      store(col_state_ + j, select(in_tree, splat(kMatched), state));
    });
    for (std::size_t k = 0; k < n_tree_; ++k) {
      row_dual_[s_.row_of_col[s_.tree[k].col]] += shortest - s_.tree[k].distance;
    }
  }

  void set_matched(std::size_t col) { set_state(col, kMatched); }

 private:
  static constexpr Index kMatched = ColumnState<T>::kMatched, kInTree = ColumnState<T>::kInTree;

  auto costs_of(std::size_t row) const {
    return [costs = s_.rows[row]](std::size_t j) { return load(costs + j); };
  }
  auto best_free_costs() const {
    return [this](std::size_t j) { return load(s_.best_free_cost + j); };
  }
  static auto always(std::size_t row) {
    return [row](std::size_t) { return splat(static_cast<Index>(row)); };
  }
  auto best_free_rows() const {
    return [this](std::size_t j) { return load(s_.best_free_row + j); };
  }

  template <class CostsAt, class RowsAt>
  void start(T dual, const CostsAt& costs_at, const RowsAt& rows_at) {
    n_tree_ = 0;
    Vector<T> lowest = splat(kInfinity<T>);
    chunks.each([&](std::size_t j) {
      const Vector<T> d = (costs_at(j) - dual) - load(col_dual_ + j);
      store(distance_ + j, d);
      store(parent_ + j, rows_at(j));
      lowest = minimum<T>(lowest, d);
    });
    lowest_distance_ = lowest_of<T>(lowest);
  }

  template <class CostsAt, class RowsAt>
  void relax(T dual, const CostsAt& costs_at, const RowsAt& rows_at) {
    Vector<T> lowest = splat(kInfinity<T>);
    chunks.each([&](std::size_t j) {
      const Vector<T> d = (costs_at(j) - dual) - load(col_dual_ + j);
      const Vector<T> before = load(distance_ + j);
      const Mask<T> outside = load(col_state_ + j) != kInTree;
      const Mask<T> shorter = (d < before) & outside;
      const Vector<T> now = select(shorter, d, before);
      store(distance_ + j, now);
      store(parent_ + j, select(shorter, rows_at(j), load(parent_ + j)));
      lowest = select(outside, minimum<T>(lowest, now), lowest);
    });
    lowest_distance_ = lowest_of<T>(lowest);
  }

  // Stores whole vectors of a short row: loading a vector soon after a part of it was stored is
  // slow.
  void set_state(std::size_t col, Index state) {
    if constexpr (kChunks == 0) {
      col_state_[col] = state;
    } else {
      chunks.each([&](std::size_t j) {
        const Mask<T> here = lane_numbers<Index>() == static_cast<Index>(col - j);
        store(col_state_ + j, select(here, splat(state), load(col_state_ + j)));
      });
    }
  }

  State& s_;
  T* const row_dual_;
  T* const col_dual_;
  T* const distance_;
  Index* const parent_;
  Index* const col_state_;
  T lowest_distance_ = kInfinity<T>;
  std::size_t n_tree_ = 0;
};

}  // namespace
}  // namespace kernelcore
