#include "matching/assignment_tile.hpp"

#include "common/lane_search.hpp"
#include "matching/load_costs_tile.hpp"

namespace kernelcore {
namespace {

constexpr std::size_t kNone = static_cast<std::size_t>(-1);

// kChunks: vectors of a row, 0 if that is not known to the compiler.
template <class T, std::size_t kChunks>
class Solver {
 public:
  using State = AssignmentState<T>;
  using Index = typename State::Index;

  explicit Solver(State& state)
      : s_(state),
        rows_(state.rows),
        n_rows_(state.n_rows),
        n_chunks_(kChunks != 0 ? kChunks : chunks_of(state.n_cols)),
        row_dual_(state.row_dual),
        col_dual_(state.col_dual),
        col_of_row_(state.col_of_row),
        row_of_col_(state.row_of_col),
        distance_(state.distance),
        parent_(state.parent),
        standing_(state.standing) {}

  static std::size_t chunks_of(std::size_t n_cols) {
    return (n_cols + kLanes<T> - 1) / kLanes<T>;
  }

  void row_minimum(const T* costs, T& cost, std::int32_t& col) const {
    Vector<T> lowest = broadcast(kInfinity<T>);
    each_chunk([&](std::size_t j) { lowest = minimum<T>(lowest, load(costs + j)); });
    cost = lowest_of<T>(lowest);
    std::size_t first = kNone;
    find([&](std::size_t j) { return load(costs + j) == cost; }, first);
    col = static_cast<std::int32_t>(first);
  }

  void begin_all() {
    clear();
    std::int32_t* const wanted = s_.free_rows;
    for (std::size_t i = 0; i < n_rows_; ++i) {
      row_minimum(rows_[i], row_dual_[i], wanted[i]);
      if (row_dual_[i] == kInfinity<T>) {  // it will be served in vain
        row_dual_[i] = 0;
        wanted[i] = -1;
      }
    }
    for (std::size_t j = 0; j < n_chunks_ * kLanes<T>; ++j) row_of_col_[j] = -1;
    for (std::size_t i = 0; i < n_rows_; ++i) {
      const std::int32_t col = wanted[i];
      const bool takes_it = col >= 0 && row_of_col_[col] < 0;
      if (takes_it) {
        row_of_col_[col] = static_cast<std::int32_t>(i);
        col_of_row_[i] = col;
      }
      s_.free_rows[s_.n_free] = static_cast<std::int32_t>(i);  // at or before `wanted[i]`
      s_.n_free += !takes_it;
    }
    s_.n_links = n_rows_ - s_.n_free;
    for (std::size_t j = 0; j < n_chunks_ * kLanes<T>; ++j) {
      standing_[j] = row_of_col_[j] < 0 ? kFree : kTaken;
    }
    // Where no column stays free, its dual may rise: searches are shorter then.
    if (s_.n_rows == s_.n_cols && s_.n_free > 0) raise_columns();
  }

  void serve(std::size_t n_rows) {
    std::size_t n_served = 0;
    while (n_served < n_rows && n_served < s_.n_free) {
      const std::size_t root = s_.free_rows[n_served];
      const T* const costs = rows_[root];
      const T u = row_dual_[root];
      Vector<T> lowest = broadcast(kInfinity<T>);
      each_chunk([&](std::size_t j) {
        const Vector<T> d = (load(costs + j) - u) - load(col_dual_ + j);
        store(distance_ + j, d);
        store(parent_ + j, broadcast(static_cast<Index>(root)));
        lowest = minimum<T>(lowest, d);
      });
      T shortest = lowest_of<T>(lowest);
      const std::size_t end = search(shortest, kInfinity<T>);
      if (end == kNone) shortest = last_distance();
      update_duals(shortest);
      row_dual_[root] += shortest;
      if (end == kNone) break;
      augment(end);
      ++n_served;
    }
    s_.n_free -= n_served;
    for (std::size_t k = 0; k < s_.n_free; ++k) s_.free_rows[k] = s_.free_rows[n_served + k];
  }

  void begin() {
    clear();
    each_chunk([&](std::size_t j) { store(standing_ + j, broadcast(kFree)); });
    for (std::size_t i = 0; i < n_rows_; ++i) {
      row_minimum(rows_[i], s_.visits[i].distance, s_.visits[i].col);
      std::size_t k = i;
      for (; k > 0 && s_.visits[s_.free_rows[k - 1]].distance > s_.visits[i].distance; --k) {
        s_.free_rows[k] = s_.free_rows[k - 1];
      }
      s_.free_rows[k] = static_cast<std::int32_t>(i);
    }
    s_.n_free = n_rows_;
    s_.is_greedy = true;
  }

  void find_best_rows() {
    each_chunk([&](std::size_t j) { find_best(j); });
  }

  void grow(std::size_t n_links, T limit) {
    if (s_.is_greedy) link_greedily(n_links, limit);
    while (s_.n_links < n_links) {
      const T link_dual = s_.link_dual;
      Vector<T> lowest = broadcast(kInfinity<T>);
      each_chunk([&](std::size_t j) {
        const Vector<T> d = (load(s_.best_cost + j) - link_dual) - load(col_dual_ + j);
        store(distance_ + j, d);
        store(parent_ + j, load(s_.best_row + j));
        lowest = minimum<T>(lowest, d);
      });
      T shortest = lowest_of<T>(lowest);
      const std::size_t end = search(shortest, limit - link_dual);
      if (end == kNone) {  // the duals may go as far as the limit, or the last visit
        shortest = limit < kInfinity<T> ? limit - link_dual : last_distance();
        update_duals(shortest);
        s_.link_dual += shortest;
        break;
      }
      update_duals(shortest);
      s_.link_dual += shortest;
      const std::size_t root = augment(end);
      row_dual_[root] = s_.link_dual;
      leave(root);
    }
    for (std::size_t k = 0; k < s_.n_free; ++k) row_dual_[s_.free_rows[k]] = s_.link_dual;
  }

 private:
  static constexpr Index kFree = -1, kTaken = 0, kVisited = 1;  // all bits of a free one

  template <class Body>
  void each_chunk(const Body& body) const {
    for (std::size_t k = 0; k < n_chunks_; ++k) body(k * kLanes<T>);
  }

  // The first column where the mask is set. Up to 64 columns are looked through without a
  // branch: nobody could predict where it is.
  template <class MaskAt>
  bool find(const MaskAt& mask_at, std::size_t& col) const {
    constexpr std::size_t kBlock = 64 / kLanes<T>;
    for (std::size_t first = 0; first < n_chunks_; first += kBlock) {
      const std::size_t j = first * kLanes<T>;
      const std::size_t n = n_chunks_ - first < kBlock ? n_chunks_ - first : kBlock;
      std::uint64_t bits = 0;
      for (std::size_t k = 0; k < n; ++k) {
        const std::uint64_t lanes = lane_bits<T>(mask_at(j + k * kLanes<T>));
        bits |= lanes << (k * kLanes<T>);
      }
      if (bits != 0) {
        col = j + first_bit(bits);
        return true;
      }
    }
    return false;
  }

  void clear() {
    each_chunk([&](std::size_t j) { store(col_dual_ + j, Vector<T>{}); });
    for (std::size_t i = 0; i < n_rows_; ++i) {
      col_of_row_[i] = -1;
      row_dual_[i] = 0;
    }
    s_.n_links = 0;
    s_.n_free = 0;
    s_.link_dual = 0;
  }

  void raise_columns() {
    each_chunk([&](std::size_t j) {
      Vector<T> lowest = broadcast(kInfinity<T>);
      for (std::size_t i = 0; i < n_rows_; ++i) {
        lowest = minimum<T>(lowest, load(rows_[i] + j) - row_dual_[i]);
      }
      store(col_dual_ + j, lowest < kInfinity<T> ? lowest : Vector<T>{});
    });
  }

  // While the cheapest rows want different columns, no as many links can cost less.
  void link_greedily(std::size_t n_links, T limit) {
    std::size_t n_served = 0;
    while (s_.n_links < n_links) {
      const std::size_t row = s_.free_rows[n_served];
      const typename State::Visit wanted = s_.visits[row];
      const bool is_cheap = wanted.distance <= limit && wanted.distance < kInfinity<T>;
      if (!is_cheap || standing_[wanted.col] != kFree) break;
      set_standing(wanted.col, kTaken);
      row_of_col_[wanted.col] = static_cast<std::int32_t>(row);
      col_of_row_[row] = wanted.col;
      row_dual_[row] = s_.link_dual = wanted.distance;
      ++s_.n_links;
      ++n_served;
    }
    s_.n_free -= n_served;
    for (std::size_t k = 0; k < s_.n_free; ++k) s_.free_rows[k] = s_.free_rows[n_served + k];
    if (s_.n_links < n_links) {
      s_.is_greedy = false;
      find_best_rows();
    }
  }

  // A vector that was stored in part is slow to load: short rows are stored as a whole.
  void set_standing(std::size_t col, Index standing) {
    if constexpr (kChunks == 0) {
      standing_[col] = standing;
    } else {
      each_chunk([&](std::size_t j) {
        const Mask<T> here = counting<Index>() == static_cast<Index>(col - j);
        store(standing_ + j, here ? broadcast(standing) : load(standing_ + j));
      });
    }
  }

  // Visits columns in ascending distance until one is free; `shortest` is the distance of the
  // nearest one before, and of the last one after. Of equals, free columns go first and lower
  // ones before higher. kNone if there is none as near as `limit`.
  std::size_t search(T& shortest, T limit) {
    n_visits_ = 0;
    while (shortest <= limit && shortest < kInfinity<T>) {
      const auto nearest = [&](std::size_t j) {
        return (load(distance_ + j) == shortest) & (load(standing_ + j) != kVisited);
      };
      std::size_t col = kNone;
      if (find([&](std::size_t j) { return nearest(j) & load(standing_ + j); }, col))
        return col;
      find(nearest, col);
      s_.visits[n_visits_++] = {static_cast<std::int32_t>(col), shortest};
      set_standing(col, kVisited);
      shortest = reach_from(static_cast<std::size_t>(row_of_col_[col]), shortest);
    }
    return kNone;
  }

  // Shortens paths by going on from a row that lies so far away; returns the distance of the
  // nearest column that was not visited.
  T reach_from(std::size_t row, T distance) {
    const T* const costs = rows_[row];
    const T u = row_dual_[row] - distance;
    Vector<T> lowest = broadcast(kInfinity<T>);
    each_chunk([&](std::size_t j) {
      const Vector<T> d = (load(costs + j) - u) - load(col_dual_ + j);
      const Vector<T> before = load(distance_ + j);
      const Mask<T> open = load(standing_ + j) != kVisited;
      const Mask<T> shorter = (d < before) & open;
      const Vector<T> now = shorter ? d : before;
      store(distance_ + j, now);
      store(parent_ + j, shorter ? broadcast(static_cast<Index>(row)) : load(parent_ + j));
      lowest = open ? minimum<T>(lowest, now) : lowest;
    });
    return lowest_of<T>(lowest);
  }

  T last_distance() const { return n_visits_ > 0 ? s_.visits[n_visits_ - 1].distance : 0; }

  void update_duals(T shortest) {
    if (n_visits_ == 0) return;
    each_chunk([&](std::size_t j) {
      const Vector<T> dual = load(col_dual_ + j);
      const Vector<Index> standing = load(standing_ + j);
      const Mask<T> visited = standing == kVisited;
      store(col_dual_ + j, visited ? dual - (shortest - load(distance_ + j)) : dual);
      store(standing_ + j, visited ? broadcast(kTaken) : standing);
    });
    for (std::size_t k = 0; k < n_visits_; ++k) {
      row_dual_[row_of_col_[s_.visits[k].col]] += shortest - s_.visits[k].distance;
    }
  }

  // Links along the path to a free column; returns the row that was free.
  std::size_t augment(std::size_t col) {
    ++s_.n_links;
    set_standing(col, kTaken);
    for (;;) {
      const std::size_t row = static_cast<std::size_t>(parent_[col]);
      const std::int32_t before = col_of_row_[row];
      row_of_col_[col] = static_cast<std::int32_t>(row);
      col_of_row_[row] = static_cast<std::int32_t>(col);
      if (before < 0) return row;
      col = static_cast<std::size_t>(before);
    }
  }

  // Of equally cheap rows, the one that is free first.
  void find_best(std::size_t j) {
    Vector<T> best = broadcast(kInfinity<T>);
    Vector<Index> best_row = broadcast(Index{-1});
    for (std::size_t k = 0; k < s_.n_free; ++k) {
      const std::size_t row = s_.free_rows[k];
      const Vector<T> cost = load(rows_[row] + j);
      const Mask<T> cheaper = cost < best;
      best = cheaper ? cost : best;
      best_row = cheaper ? broadcast(static_cast<Index>(row)) : best_row;
    }
    store(s_.best_cost + j, best);
    store(s_.best_row + j, best_row);
  }

  // The row is no longer free.
  void leave(std::size_t row) {
    std::size_t k = 0;
    while (static_cast<std::size_t>(s_.free_rows[k]) != row) ++k;
    for (--s_.n_free; k < s_.n_free; ++k) s_.free_rows[k] = s_.free_rows[k + 1];
    each_chunk([&](std::size_t j) {
      if (lane_bits<T>(load(s_.best_row + j) == static_cast<Index>(row)) != 0) {
        find_best(j);
      }
    });
  }

  State& s_;
  const T* const* const rows_;
  const std::size_t n_rows_;
  const std::size_t n_chunks_;
  T* const row_dual_;
  T* const col_dual_;
  std::int32_t* const col_of_row_;
  std::int32_t* const row_of_col_;
  T* const distance_;
  Index* const parent_;
  Index* const standing_;
  std::size_t n_visits_ = 0;
};

template <class T, class Call>
inline void with_solver(AssignmentState<T>& state, const Call& call) {
  switch (Solver<T, 0>::chunks_of(state.n_cols)) {
    case 1:
      return call(Solver<T, 1>(state));
    case 2:
      return call(Solver<T, 2>(state));
    case 3:
      return call(Solver<T, 3>(state));
    case 4:
      return call(Solver<T, 4>(state));
    default:
      return call(Solver<T, 0>(state));
  }
}

template <class T>
AssignmentTile<T> tile() {
  AssignmentTile<T> tile;
  tile.load = load_costs<T>;
  tile.begin_all = [](AssignmentState<T>& state) {
    with_solver<T>(state, [](auto solver) { solver.begin_all(); });
  };
  tile.serve = [](AssignmentState<T>& state, std::size_t n_rows) {
    with_solver<T>(state, [&](auto solver) { solver.serve(n_rows); });
  };
  tile.begin = [](AssignmentState<T>& state) {
    with_solver<T>(state, [](auto solver) { solver.begin(); });
  };
  tile.find_best_rows = [](AssignmentState<T>& state) {
    with_solver<T>(state, [](auto solver) { solver.find_best_rows(); });
  };
  tile.grow = [](AssignmentState<T>& state, std::size_t n_links, T limit) {
    with_solver<T>(state, [&](auto solver) { solver.grow(n_links, limit); });
  };
  return tile;
}

}  // namespace

namespace KERNELCORE_ISA {

AssignmentTiles assignment_tiles() { return {tile<float>(), tile<double>()}; }

}  // namespace KERNELCORE_ISA
}  // namespace kernelcore
