#include "matching/assignment_tile.hpp"

#include "common/lane_search.hpp"
#include "matching/lazy_paths_tile.hpp"
#include "matching/load_costs_tile.hpp"
#include "matching/paths_tile.hpp"

namespace kernelcore {
namespace {

template <class T, class Paths>
class Solver {
 public:
  using State = AssignmentState<T>;
  using Index = typename State::Index;

  explicit Solver(State& state)
      : s_(state),
        paths_(state),
        n_rows_(state.n_rows),
        row_dual_(state.row_dual),
        col_dual_(state.col_dual),
        col_of_row_(state.col_of_row),
        row_of_col_(state.row_of_col),
        standing_(state.standing) {}

  void begin() {
    each_chunk([&](std::size_t j) {
      store(col_dual_ + j, Vector<T>{});
      store(standing_ + j, broadcast(Standing<T>::kFree));
      for (std::size_t lane = 0; lane < kLanes<T>; ++lane) row_of_col_[j + lane] = -1;
    });
    for (std::size_t i = 0; i < n_rows_; ++i) {
      col_of_row_[i] = -1;
      row_dual_[i] = 0;
      s_.free_rows[i] = static_cast<std::int32_t>(i);
      spend(s_.n_cols);
      row_minimum(i, s_.visits[i].distance, s_.visits[i].col);
      if (s_.is_large) s_.near[i].n_cols = 0;
    }
    s_.n_links = s_.n_waiting = s_.n_noted = s_.n_spared = 0;
    s_.n_free = n_rows_;
    s_.link_dual = 0;
    s_.is_greedy = true;
    s_.knows_best = false;
  }

  void link(std::size_t n_links) {
    s_.is_greedy = false;
    for (std::size_t k = 0; k < n_links; ++k) {
      const std::int32_t row = s_.free_rows[k];
      const typename State::Visit wanted = s_.visits[row];
      // A row that has no column will be served in vain.
      row_dual_[row] = wanted.distance < kInfinity<T> ? wanted.distance : T{0};
      if (wanted.distance < kInfinity<T> && row_of_col_[wanted.col] < 0) {
        connect(row, wanted.col);
        ++s_.n_links;
      } else {
        s_.waiting_rows[s_.n_waiting++] = row;
      }
      s_.link_dual = row_dual_[row];
    }
    each_chunk([&](std::size_t first) {
      for (std::size_t j = first; j < first + kLanes<T>; ++j) {
        standing_[j] = row_of_col_[j] < 0 ? Standing<T>::kFree : Standing<T>::kTaken;
      }
    });
    drop_first(s_.free_rows, s_.n_free, n_links);
    set_free_duals();
    // Where no column stays free, its dual may rise: searches are shorter then.
    if (n_links == s_.n_cols && s_.n_waiting > 0) raise_columns();
  }

  void serve() {
    std::size_t n_served = 0;
    for (; n_served < s_.n_waiting; ++n_served) {
      const std::size_t root = s_.waiting_rows[n_served];
      paths_.start_from(root);
      was_free_ = false;
      swap_distance_ = kInfinity<T>;
      if (s_.n_free > 0) may_swap(root, 0);
      T shortest;
      const std::size_t end = search(shortest, kInfinity<T>);
      if (end == kNone) {
        update_duals(paths_.last_distance());  // forgets the visits
        break;
      }
      update_duals(shortest);
      row_dual_[root] += shortest;
      augment(end, root);
    }
    drop_first(s_.waiting_rows, s_.n_waiting, n_served);
    set_free_duals();
  }

  void find_best_rows() {
    each_chunk([&](std::size_t j) {
      store(s_.best_cost + j, broadcast(kInfinity<T>));
      store(s_.best_row + j, broadcast(Index{-1}));
    });
    for (std::size_t k = 0; k < s_.n_free; ++k) offer(s_.free_rows[k]);
    s_.knows_best = true;
  }

  void grow(std::size_t n_links, T limit) {
    if (s_.is_greedy) link_greedily(n_links, limit);
    while (s_.n_links < n_links) {
      if (!s_.knows_best) find_best_rows();
      paths_.start_from_free_rows();
      was_free_ = true;
      swap_distance_ = kInfinity<T>;
      free_distance_ = 0;
      T shortest;
      const std::size_t end = search(shortest, limit - s_.link_dual);
      if (end == kNone) {  // the duals may go as far as the limit, or the last visit
        update_duals(limit < kInfinity<T> ? limit - s_.link_dual : paths_.last_distance());
        break;
      }
      update_duals(shortest);
      leave(augment(end, kNone));
    }
    set_free_duals();
  }

 private:
  // Problems of few columns are over before there is a reason to look.
  void spend(std::size_t work) const {
    if constexpr (!Paths::kIsShort) s_.worker->spend(work);
  }

  template <class Body>
  void each_chunk(const Body& body) const {
    paths_.chunks.each(body);
  }

  static void drop_first(std::int32_t* rows, std::size_t& n_rows, std::size_t n_dropped) {
    n_rows -= n_dropped;
    for (std::size_t k = 0; k < n_rows; ++k) rows[k] = rows[n_dropped + k];
  }

  void connect(std::size_t row, std::size_t col) {
    row_of_col_[col] = static_cast<std::int32_t>(row);
    col_of_row_[row] = static_cast<std::int32_t>(col);
  }

  void row_minimum(std::size_t row, T& cost, std::int32_t& col) const {
    cost = paths_.chunks.lowest([&](std::size_t j) { return paths_.costs_at(row, j); });
    col = static_cast<std::int32_t>(
        paths_.chunks.find([&](std::size_t j) { return paths_.costs_at(row, j) == cost; }));
  }

  // Row by row: down the rows, each vector of a large problem would be a cache miss.
  void raise_columns() {
    each_chunk([&](std::size_t j) { store(col_dual_ + j, broadcast(kInfinity<T>)); });
    for (std::size_t i = 0; i < n_rows_; ++i) {
      spend(s_.n_cols);
      each_chunk([&](std::size_t j) {
        const Vector<T> reduced = paths_.costs_at(i, j) - row_dual_[i];
        store(col_dual_ + j, minimum<T>(load(col_dual_ + j), reduced));
      });
    }
    each_chunk([&](std::size_t j) {
      const Vector<T> lowest = load(col_dual_ + j);
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
      if (!is_cheap || standing_[wanted.col] != Standing<T>::kFree) break;
      connect(row, wanted.col);
      paths_.take(wanted.col);
      row_dual_[row] = s_.link_dual = wanted.distance;
      ++s_.n_links;
      ++n_served;
    }
    drop_first(s_.free_rows, s_.n_free, n_served);
    if (s_.n_links < n_links) s_.is_greedy = false;
  }

  // A linked row may also give up its column and become free: then a free row, which is as far
  // as this one after the rise of its dual to theirs, takes its place.
  void may_swap(std::size_t row, T distance) {
    const T swapped = distance + (s_.link_dual - row_dual_[row]);
    if (swapped < swap_distance_) {
      swap_distance_ = swapped;
      swap_row_ = row;
    }
  }

  // Visits columns in ascending distance until one is free, and returns it; of equals, free
  // columns go first and lower ones before higher. kNone if there is none as near as `limit`.
  std::size_t search(T& shortest, T limit) {
    const bool may_free = s_.n_free > 0 && !was_free_;
    for (;;) {
      spend(s_.n_cols);
      shortest = paths_.nearest();
      if (swap_distance_ < shortest) {
        if (!s_.knows_best) find_best_rows();
        paths_.reach_from_free_rows(swap_distance_);
        was_free_ = true;
        free_distance_ = swap_distance_;
        swap_distance_ = kInfinity<T>;
        continue;
      }
      if (!(shortest <= limit && shortest < kInfinity<T>)) return kNone;
      bool is_free;
      const std::size_t col = paths_.column_at(shortest, is_free);
      if (is_free) return col;
      paths_.visit(col, shortest);
      const auto row = static_cast<std::size_t>(row_of_col_[col]);
      paths_.reach_from(row, shortest);
      if (may_free && !was_free_) may_swap(row, shortest);
    }
  }

  void update_duals(T shortest) {
    paths_.update_duals(shortest);
    if (was_free_) s_.link_dual += shortest - free_distance_;
  }

  // Links along the path to a free column; returns the row that was free.
  std::size_t augment(std::size_t col, std::size_t root) {
    ++s_.n_links;
    paths_.take(col);
    for (;;) {
      auto row = static_cast<std::size_t>(s_.parent[col]);
      std::int32_t before = col_of_row_[row];
      connect(row, col);
      if (before < 0 && row != root && root != kNone) {
        leave(row);
        row = swap_row_;
        s_.free_rows[s_.n_free++] = static_cast<std::int32_t>(row);
        offer(row);
        before = col_of_row_[row];
        col_of_row_[row] = -1;
      }
      if (before < 0) return row;
      col = static_cast<std::size_t>(before);
    }
  }

  // Takes the row where it is the cheapest free one; of equals, the one that came first.
  void offer(std::size_t row) {
    spend(s_.n_cols);
    each_chunk([&](std::size_t j) {
      const Vector<T> cost = paths_.costs_at(row, j), best = load(s_.best_cost + j);
      const Mask<T> cheaper = cost < best;
      store(s_.best_cost + j, cheaper ? cost : best);
      store(s_.best_row + j,
            cheaper ? broadcast(static_cast<Index>(row)) : load(s_.best_row + j));
    });
  }

  // The row is no longer free.
  void leave(std::size_t row) {
    row_dual_[row] = s_.link_dual;
    std::size_t k = 0;
    while (static_cast<std::size_t>(s_.free_rows[k]) != row) ++k;
    for (--s_.n_free; k < s_.n_free; ++k) s_.free_rows[k] = s_.free_rows[k + 1];
    each_chunk([&](std::size_t j) {
      if (lane_bits<T>(load(s_.best_row + j) == static_cast<Index>(row)) != 0) {
        find_best(j);
      }
    });
  }

  // No row is cheaper than the one that was best before: the first that is as cheap will do.
  void find_best(std::size_t j) {
    spend(s_.n_free);
    const Vector<T> before = load(s_.best_cost + j);
    Vector<T> best = broadcast(kInfinity<T>);
    Vector<Index> best_row = broadcast(Index{-1});
    for (std::size_t k = 0; k < s_.n_free; ++k) {
      const std::size_t row = s_.free_rows[k];
      const Vector<T> cost = paths_.costs_at(row, j);
      const Mask<T> cheaper = cost < best;
      best = cheaper ? cost : best;
      best_row = cheaper ? broadcast(static_cast<Index>(row)) : best_row;
      if (lane_bits<T>(best > before) == 0) break;
    }
    store(s_.best_cost + j, best);
    store(s_.best_row + j, best_row);
  }

  void set_free_duals() {
    for (std::size_t k = 0; k < s_.n_free; ++k) row_dual_[s_.free_rows[k]] = s_.link_dual;
  }

  State& s_;
  Paths paths_;
  const std::size_t n_rows_;
  T* const row_dual_;
  T* const col_dual_;
  std::int32_t* const col_of_row_;
  std::int32_t* const row_of_col_;
  Index* const standing_;

  // Of one search: the nearest row that may give up its link, and the free rows.
  T swap_distance_ = kInfinity<T>;
  std::size_t swap_row_ = kNone;
  bool was_free_ = false;
  T free_distance_ = 0;
};

template <class T, class Call>
inline void with_solver(AssignmentState<T>& state, const Call& call) {
  if (state.is_large) {
    return state.highest < kInfinity<T> ? call(Solver<T, LazyPaths<T, true>>(state))
                                        : call(Solver<T, LazyPaths<T, false>>(state));
  }
  switch (Chunks<T, 0>::chunks_of(state.n_cols)) {
    case 1:
      return call(Solver<T, Paths<T, 1>>(state));
    case 2:
      return call(Solver<T, Paths<T, 2>>(state));
    case 3:
      return call(Solver<T, Paths<T, 3>>(state));
    case 4:
      return call(Solver<T, Paths<T, 4>>(state));
    default:
      return call(Solver<T, Paths<T, 0>>(state));
  }
}

template <class T>
AssignmentTile<T> tile() {
  using State = AssignmentState<T>;
  AssignmentTile<T> tile;
  tile.load = load_costs<T>;
  tile.are_plain = are_plain<T>;
  tile.begin = [](State& state) { with_solver<T>(state, [](auto solver) { solver.begin(); }); };
  tile.link = [](State& state, std::size_t n_links) {
    with_solver<T>(state, [&](auto solver) { solver.link(n_links); });
  };
  tile.serve = [](State& state) { with_solver<T>(state, [](auto solver) { solver.serve(); }); };
  tile.grow = [](State& state, std::size_t n_links, T limit) {
    with_solver<T>(state, [&](auto solver) { solver.grow(n_links, limit); });
  };
  tile.find_best_rows = [](State& state) {
    with_solver<T>(state, [](auto solver) { solver.find_best_rows(); });
  };
  return tile;
}

}  // namespace

namespace KERNELCORE_ISA {

AssignmentTiles assignment_tiles() { return {tile<float>(), tile<double>()}; }

}  // namespace KERNELCORE_ISA
}  // namespace kernelcore
