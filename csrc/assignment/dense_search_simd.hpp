// The alternating tree of a search, and of a small problem: every relaxation reads a whole row.
// For assignment_simd.cpp alone. Like common/simd.hpp, all of it has internal linkage.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

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

  // Takes value = body(j, value) for each vector, and returns the last value. It stays in a
  // register; what a lambda captures by reference is stored in every step.
  template <class Value, class Body>
  Value fold(Value value, const Body& body) const {
    for (std::size_t k = 0; k < n_chunks_; ++k) value = body(k * kLanes<T>, value);
    return value;
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

  // The first column where the mask is set.
  template <class MaskAt>
  std::size_t find(const MaskAt& mask_at) const {
    return find_block(mask_at, [](std::size_t j, std::uint64_t bits) {
      return bits != 0 ? j + first_bit(bits) : kNone;
    });
  }

  // Calls find_in(j, bits), with a bit of the mask for each of 64 columns from j on, until it
  // returns a column.
  template <class MaskAt, class FindIn>
  std::size_t find_block(const MaskAt& mask_at, const FindIn& find_in) const {
    for (std::size_t j = 0; j < n_chunks_ * kLanes<T>; j += 64) {
      const std::size_t col = find_in(j, bits_from(j, mask_at));
      if (col != kNone) return col;
    }
    return kNone;
  }

  // A bit for each of 64 columns. Has no branch: no processor can predict where the mask is
  // set.
  template <class MaskAt>
  std::uint64_t bits_from(std::size_t first, const MaskAt& mask_at) const {
    const std::size_t n =
        n_chunks_ * kLanes<T> - first < 64 ? n_chunks_ * kLanes<T> - first : 64;
    std::uint64_t bits = 0;
    for (std::size_t k = 0; k < n; k += kLanes<T>) {
      bits |= static_cast<std::uint64_t>(mask_bits<T>(mask_at(first + k))) << k;
    }
    return bits;
  }

 private:
  const std::size_t n_chunks_;
};

// The state of a column; kFree has all bits set, so that it is a mask.
template <class T>
struct ColumnState {
  using Index = typename AssignmentState<T>::Index;
  static constexpr Index kFree = -1, kMatched = 0;
};

// What all searches share. A column joins the tree with its distance, and the row that is
// matched with it is relaxed later. From then on its distance is NaN: neither less than another
// one nor equal to it.
template <class T, std::size_t kChunks>
class SearchTree {
 public:
  using State = AssignmentState<T>;
  using Index = typename State::Index;

  explicit SearchTree(State& state)
      : chunks(state.n_cols),
        s_(state),
        row_dual_(state.row_dual),
        col_dual_(state.col_dual),
        distance_(state.distance),
        parent_(state.parent),
        col_state_(state.col_state) {}

  const Chunks<T, kChunks> chunks;

  // The first free column where the mask is set.
  template <class MaskAt>
  std::size_t find_free(const MaskAt& mask_at) const {
    return chunks.find(
        [=, is_free = free_at()](std::size_t j) { return mask_at(j) & is_free(j); });
  }

  // The first free column within this distance, which is the least; kNone if none is free: then
  // all of them have joined the tree.
  std::size_t add_columns_within(T distance) {
    return chunks.find_block(
        [=, at = distance_](std::size_t j) { return load(at + j) <= distance; },
        [&](std::size_t j, std::uint64_t bits) {
          if (bits == 0) return kNone;
          const std::uint64_t free = bits & chunks.bits_from(j, free_at());
          if (free != 0) return j + first_bit(free);
          for (; bits != 0; bits &= bits - 1) add_to_tree(j + first_bit(bits), distance);
          return kNone;
        });
  }

  std::size_t n_in_tree() const { return n_tree_; }
  std::size_t row_in_tree(std::size_t k) const {
    return static_cast<std::size_t>(s_.row_of_col[s_.tree[k].col]);
  }

  T last_distance() const { return n_tree_ > 0 ? s_.tree[n_tree_ - 1].distance : 0; }

  // Moves the duals of the tree up to distance `shortest`.
  void update_duals(T shortest) {
    for (std::size_t k = 0; k < n_tree_; ++k) {
      const typename State::ColumnAt at = s_.tree[k];
      put(col_dual_, at.col, col_dual_[at.col] - (shortest - at.distance));
      row_dual_[s_.row_of_col[at.col]] += shortest - at.distance;
    }
  }

  void set_matched(std::size_t col) { put(col_state_, col, ColumnState<T>::kMatched); }

 protected:
  // Costs and rows of the edges to columns j and following, from rows of this dual. Returns
  // the least distances outside the tree.
  template <class CostsAt, class RowsAt>
  Vector<T> relax(T dual, const CostsAt& costs_at, const RowsAt& rows_at) {
    const auto body = [=, col_dual = col_dual_, distance = distance_, parent = parent_](
                          std::size_t j, Vector<T> lowest) {
      const Vector<T> d = (costs_at(j) - dual) - load(col_dual + j);
      const Vector<T> before = load(distance + j);
      const Mask<T> shorter = d < before;
      const Vector<T> now = select(shorter, d, before);
      store(distance + j, now);
      store(parent + j, select(shorter, rows_at(j), load(parent + j)));
      return minimum<T>(now, lowest);
    };
    return chunks.fold(splat(kInfinity<T>), body);
  }

  void add_to_tree(std::size_t col, T distance) {
    s_.tree[n_tree_++] = {static_cast<std::int32_t>(col), distance};
    put(distance_, col, std::numeric_limits<T>::quiet_NaN());
  }

  auto free_at() const {
    return [states = col_state_](std::size_t j) { return load(states + j); };
  }
  static auto always(std::size_t row) {
    return [row](std::size_t) { return splat(static_cast<Index>(row)); };
  }
  auto best_free_costs() const {
    return [costs = s_.best_free_cost](std::size_t j) { return load(costs + j); };
  }
  auto best_free_rows() const {
    return [rows = s_.best_free_row](std::size_t j) { return load(rows + j); };
  }

  State& s_;
  T* const row_dual_;
  T* const col_dual_;
  T* const distance_;
  Index* const parent_;
  Index* const col_state_;
  std::size_t n_tree_ = 0;

 private:
  // Stores whole vectors of a short row: loading a vector soon after a part of it was stored is
  // slow.
  template <class Value>
  void put(Value* to, std::size_t col, Value value) {
    if constexpr (kChunks == 0) {
      to[col] = value;
    } else {
      chunks.each([=](std::size_t j) {
        const Mask<T> here = lane_numbers<Index>() == static_cast<Index>(col - j);
        store(to + j, select(here, splat(value), load(to + j)));
      });
    }
  }
};

template <class T, std::size_t kChunks>
class DenseSearch : public SearchTree<T, kChunks> {
 public:
  using Tree = SearchTree<T, kChunks>;
  using Tree::chunks;
  using Tree::Tree;

  auto costs_of(std::size_t row) const {
    return [costs = s_.rows[row]](std::size_t j) { return load(costs + j); };
  }

  // Tells the worker. Problems of few columns end before its next look at the monitor is due.
  void spend(std::size_t work) const {
    if constexpr (kChunks == 0) s_.worker->spend(work);
  }

  // A new tree, rooted in one row or in all free rows.
  void start_at(std::size_t row) { start(s_.row_dual[row], costs_of(row), Tree::always(row)); }
  void start_at_free_rows() {
    start(s_.pair_dual, Tree::best_free_costs(), Tree::best_free_rows());
  }

  // Relaxes the columns of a row, or of all free rows, whose own distance is given. No column
  // is returned: whether one is no farther takes as long to find out as the next relaxation.
  std::size_t relax_from(std::size_t row, T distance) {
    const T dual = s_.row_dual[row] - distance;
    lowest_distance_ = lowest_of<T>(Tree::relax(dual, costs_of(row), Tree::always(row)));
    return kNone;
  }
  void relax_from_free_rows(T distance) {
    lowest_distance_ = lowest_of<T>(
        Tree::relax(s_.pair_dual - distance, Tree::best_free_costs(), Tree::best_free_rows()));
  }

  // The least distance of the columns outside the tree.
  T lowest_distance() const { return lowest_distance_; }

 private:
  using Tree::s_;

  template <class CostsAt, class RowsAt>
  void start(T dual, const CostsAt& costs_at, const RowsAt& rows_at) {
    Tree::n_tree_ = 0;
    const auto body = [=, col_dual = s_.col_dual, distance = s_.distance, parent = s_.parent](
                          std::size_t j, Vector<T> lowest) {
      const Vector<T> d = (costs_at(j) - dual) - load(col_dual + j);
      store(distance + j, d);
      store(parent + j, rows_at(j));
      return minimum<T>(lowest, d);
    };
    lowest_distance_ = lowest_of<T>(chunks.fold(splat(kInfinity<T>), body));
  }

  T lowest_distance_ = kInfinity<T>;
};

}  // namespace
}  // namespace kernelcore
