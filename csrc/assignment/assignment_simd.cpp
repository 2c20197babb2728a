#include "assignment/assignment_simd.hpp"

#include "assignment/candidate_search_simd.hpp"
#include "assignment/dense_search_simd.hpp"
#include "assignment/free_rows_simd.hpp"
#include "assignment/load_costs_simd.hpp"
#include "common/simd.hpp"

namespace kernelcore {
namespace {

// Of so few columns a search takes no longer than what would save it.
constexpr std::size_t kFewColumns = 32;

// How often a row may take a column, for each row without one: what remains then is a price
// war, which a search ends sooner.
constexpr std::size_t kReductions = 2;

// The functions of AssignmentKernel, on the alternating tree of a Search.
template <class T, class Search>
class Matcher {
 public:
  using State = AssignmentState<T>;
  using Index = typename State::Index;

  explicit Matcher(State& state)
      : s_(state),
        search_(state),
        free_(state),
        n_rows_(state.n_rows),
        row_dual_(state.row_dual),
        col_dual_(state.col_dual),
        col_of_row_(state.col_of_row),
        row_of_col_(state.row_of_col),
        col_state_(state.col_state) {}

  bool load_problem(MatrixView<const T> costs, const T* end, T sign, T limit, T* to) {
    bool are_plain = true;
    for (std::size_t i = 0; i < n_rows_; ++i) {
      const T* const from = costs.row(i);
      if (s_.is_large) {
        find_cheapest(i, lowest_of_row(from, s_.n_cols, costs.stride, sign, limit, are_plain));
      } else {
        are_plain &= load_costs(from, end, s_.n_cols, costs.stride, sign, limit, to);
        to += rounded_to_vectors(s_.n_cols);
        find_cheapest(i, search_.chunks.lowest(search_.costs_of(i)));
      }
    }
    return are_plain;
  }

  void find_cheapest() {
    for (std::size_t i = 0; i < n_rows_; ++i) {
      find_cheapest(i, search_.chunks.lowest(search_.costs_of(i)));
    }
  }

  void begin() {
    all_columns_free();
    each_chunk([&](std::size_t j) {
      store(col_dual_ + j, Vector<T>{});
      for (std::size_t lane = 0; lane < kLanes<T>; ++lane) row_of_col_[j + lane] = -1;
    });
    for (std::size_t i = 0; i < n_rows_; ++i) {
      col_of_row_[i] = -1;
      row_dual_[i] = 0;
      s_.free_rows[i] = static_cast<std::int32_t>(i);
      if (s_.is_large) s_.candidates[i] = {0, s_.n_cols > n_rows_ ? -kInfinity<T> : 0};
    }
    s_.n_matched = s_.n_pending = s_.n_listed = s_.n_saved = 0;
    s_.n_free = n_rows_;
    s_.pair_dual = 0;
    s_.is_greedy = true;
    s_.knows_best_free = false;
  }

  void match_cheapest(std::size_t n) {
    s_.is_greedy = false;
    for (std::size_t k = 0; k < n; ++k) {
      const std::int32_t row = s_.free_rows[k];
      const typename State::ColumnAt best = s_.cheapest[row];
      // A row without a column becomes pending: augment_pending() finds no path from it.
      row_dual_[row] = best.distance < kInfinity<T> ? best.distance : T{0};
      if (best.distance < kInfinity<T> && row_of_col_[best.col] < 0) {
        match(row, best.col);
        ++s_.n_matched;
      } else {
        s_.pending_rows[s_.n_pending++] = row;
      }
      s_.pair_dual = row_dual_[row];
    }
    each_chunk([&](std::size_t first) {
      for (std::size_t j = first; j < first + kLanes<T>; ++j) {
        col_state_[j] = row_of_col_[j] < 0 ? ColumnState<T>::kFree : ColumnState<T>::kMatched;
      }
    });
    free_.drop_first(n);
    free_.set_duals();
    // If no column stays free, column duals may be positive: shorter searches.
    if (n == s_.n_cols && s_.n_pending > 0) raise_column_duals();
  }

  void augment_pending() {
    if (s_.n_free == 0 && s_.n_cols > kFewColumns) reduce_rows();
    std::size_t n_done = 0;
    for (; n_done < s_.n_pending; ++n_done) {
      const std::size_t root = s_.pending_rows[n_done];
      search_.start_at(root);
      holds_free_rows_ = false;
      freeing_distance_ = kInfinity<T>;
      if (s_.n_free > 0) consider_freeing(root, 0);
      T shortest;
      const std::size_t end = grow_tree(shortest, kInfinity<T>);
      if (end == kNone) {
        update_duals(search_.last_distance());  // empties the tree
        break;
      }
      update_duals(shortest);
      row_dual_[root] += shortest;
      augment(end, root);
    }
    s_.n_pending -= n_done;
    for (std::size_t k = 0; k < s_.n_pending; ++k) {
      s_.pending_rows[k] = s_.pending_rows[n_done + k];
    }
    free_.set_duals();
  }

  void find_best_free_rows() { free_.find_best(search_); }

  void augment_until(std::size_t n, T limit) {
    if (s_.is_greedy) match_greedily(n, limit);
    while (s_.n_matched < n) {
      if (!s_.knows_best_free) free_.find_best(search_);
      search_.start_at_free_rows();
      holds_free_rows_ = true;
      freeing_distance_ = kInfinity<T>;
      free_rows_distance_ = 0;
      T shortest;
      const std::size_t end = grow_tree(shortest, limit - s_.pair_dual);
      if (end == kNone) {  // the duals may move up to the limit, or else to the last column
        update_duals(limit < kInfinity<T> ? limit - s_.pair_dual : search_.last_distance());
        break;
      }
      update_duals(shortest);
      free_.remove(search_, augment(end, kNone));
    }
    free_.set_duals();
  }

 private:
  template <class Body>
  void each_chunk(const Body& body) const {
    search_.chunks.each(body);
  }

  void all_columns_free() {
    each_chunk(
        [to = col_state_](std::size_t j) { store(to + j, splat(ColumnState<T>::kFree)); });
  }

  void match(std::size_t row, std::size_t col) {
    row_of_col_[col] = static_cast<std::int32_t>(row);
    col_of_row_[row] = static_cast<std::int32_t>(col);
  }

  void find_cheapest(std::size_t row, T lowest) {
    search_.spend(s_.n_cols);
    const auto is_lowest = [lowest, costs_at = search_.costs_of(row)](std::size_t j) {
      return costs_at(j) == lowest;
    };
    s_.cheapest[row].distance = lowest;
    std::size_t col = kNone;
    if (s_.is_large && n_rows_ == s_.n_cols) {  // while the row is near
      if (row == 0) all_columns_free();
      lower_columns(row);
      col = search_.find_free(is_lowest);
      if (col != kNone) search_.set_matched(col);
    }
    if (col == kNone) col = search_.chunks.find(is_lowest);
    s_.cheapest[row].col = static_cast<std::int32_t>(col);
  }

  // min over rows of c[i][j] - u[i] for u of their cheapest columns, in the memory of
  // distances. Row by row: down the rows, each vector of a large problem would be a cache miss.
  void lower_columns(std::size_t row) {
    const T cost = s_.cheapest[row].distance, dual = cost < kInfinity<T> ? cost : 0;
    each_chunk([=, costs_at = search_.costs_of(row), to = s_.distance](std::size_t j) {
      const Vector<T> before = row == 0 ? splat(kInfinity<T>) : load(to + j);
      store(to + j, minimum<T>(before, costs_at(j) - dual));
    });
  }

  void raise_column_duals() {
    for (std::size_t i = 0; i < n_rows_ && !s_.is_large; ++i) {
      search_.spend(s_.n_cols);
      lower_columns(i);
    }
    each_chunk([lowest = s_.distance, to = col_dual_](std::size_t j) {
      const Vector<T> dual = load(lowest + j);
      store(to + j, select(dual < kInfinity<T>, dual, Vector<T>{}));
    });
  }

  // Augmenting row reduction of Jonker and Volgenant: a pending row takes its cheapest column,
  // whose dual falls until the second cheapest is as near, and the row that had it looks for
  // another one. The rows that remain pending need a search.
  void reduce_rows() {
    std::size_t n_left = 0, n_steps = kReductions * s_.n_pending;
    for (std::size_t k = 0; k < s_.n_pending; ++k) {
      std::int32_t row = s_.pending_rows[k];
      while (row >= 0) {
        const std::int32_t replaced = n_steps > 0 ? take_cheapest(row) : row;
        if (replaced == row) {
          s_.pending_rows[n_left++] = row;
          break;
        }
        --n_steps;
        row = replaced;
      }
    }
    s_.n_pending = n_left;
  }

  // Returns the row that loses its column, -1 if the column was free, or `row` if the duals
  // cannot tell which column it should have. A free column comes first among equals.
  std::int32_t take_cheapest(std::int32_t row) {
    search_.spend(s_.n_cols);
    const auto reduced = [costs_at = search_.costs_of(row), dual = col_dual_](std::size_t j) {
      return costs_at(j) - load(dual + j);
    };
    struct Lanes {
      Vector<T> lowest, second;
    };
    const Vector<T> infinite = splat(kInfinity<T>);
    const auto [lowest_lanes, second_lanes] =
        search_.chunks.fold(Lanes{infinite, infinite}, [=](std::size_t j, Lanes before) {
          const Vector<T> here = reduced(j);
          const Vector<T> higher = select(here > before.lowest, here, before.lowest);
          return Lanes{minimum<T>(before.lowest, here), minimum<T>(before.second, higher)};
        });
    const T lowest = lowest_of<T>(lowest_lanes);
    const Mask<T> is_lowest = lowest_lanes == lowest;
    const std::uint64_t at = mask_bits<T>(is_lowest);
    const Vector<T> others =
        select(is_lowest, second_lanes, minimum<T>(second_lanes, lowest_lanes));
    const T second = (at & (at - 1)) != 0 ? lowest : lowest_of<T>(others);
    if (!(second < kInfinity<T>)) return row;
    const auto is_cheapest = [=](std::size_t j) { return reduced(j) == lowest; };
    std::size_t col = search_.chunks.find(is_cheapest);
    std::int32_t replaced = row_of_col_[col];
    const T price = col_dual_[col] - (second - lowest);
    if (!(price < col_dual_[col])) {
      col = search_.find_free(is_cheapest);
      if (col == kNone) return row;
      replaced = -1;
    } else {
      col_dual_[col] = price;
    }
    row_dual_[row] = second;
    match(static_cast<std::size_t>(row), col);
    if (replaced < 0) {
      search_.set_matched(col);
      ++s_.n_matched;
    } else {
      col_of_row_[replaced] = -1;
    }
    return replaced;
  }

  // As long as the cheapest rows have different cheapest columns, no set of as many pairs costs
  // less than theirs.
  void match_greedily(std::size_t n, T limit) {
    std::size_t n_done = 0;
    while (s_.n_matched < n) {
      const std::size_t row = s_.free_rows[n_done];
      const typename State::ColumnAt best = s_.cheapest[row];
      const bool is_cheap = best.distance <= limit && best.distance < kInfinity<T>;
      if (!is_cheap || col_state_[best.col] != ColumnState<T>::kFree) break;
      match(row, best.col);
      search_.set_matched(best.col);
      row_dual_[row] = s_.pair_dual = best.distance;
      ++s_.n_matched;
      ++n_done;
    }
    free_.drop_first(n_done);
    if (s_.n_matched < n) s_.is_greedy = false;
  }

  // An alternating path may also end at a row of the tree, which becomes free: a free row
  // replaces it. That costs what it takes to raise the row's dual to d.
  void consider_freeing(std::size_t row, T distance) {
    const T freed = distance + (s_.pair_dual - row_dual_[row]);
    if (freed < freeing_distance_) {
      freeing_distance_ = freed;
      row_to_free_ = row;
    }
  }

  // Adds columns in ascending distance until one is free, and returns it. kNone if none is
  // within `limit`.
  std::size_t grow_tree(T& shortest, T limit) {
    const bool may_free = s_.n_free > 0 && !holds_free_rows_;
    std::size_t n_relaxed = 0;
    for (;;) {
      search_.spend(s_.n_cols);
      if (n_relaxed == search_.n_in_tree()) {
        shortest = search_.lowest_distance();
        if (freeing_distance_ < shortest) {
          if (!s_.knows_best_free) free_.find_best(search_);
          search_.relax_from_free_rows(freeing_distance_);
          holds_free_rows_ = true;
          free_rows_distance_ = freeing_distance_;
          freeing_distance_ = kInfinity<T>;
          continue;
        }
        if (!(shortest <= limit && shortest < kInfinity<T>)) return kNone;
        const std::size_t col = search_.add_columns_within(shortest);
        if (col != kNone) return col;
      }
      const std::size_t row = search_.row_in_tree(n_relaxed++);
      const std::size_t col = search_.relax_from(row, shortest);
      if (col != kNone) return col;
      if (may_free && !holds_free_rows_) consider_freeing(row, shortest);
    }
  }

  void update_duals(T shortest) {
    search_.update_duals(shortest);
    if (holds_free_rows_) s_.pair_dual += shortest - free_rows_distance_;
  }

  // Matches along the path that ends at a free column; returns the row that was free.
  std::size_t augment(std::size_t col, std::size_t root) {
    ++s_.n_matched;
    search_.set_matched(col);
    for (;;) {
      auto row = static_cast<std::size_t>(s_.parent[col]);
      std::int32_t before = col_of_row_[row];
      match(row, col);
      if (before < 0 && row != root && root != kNone) {
        free_.remove(search_, row);
        row = row_to_free_;
        free_.add(search_, row);
        before = col_of_row_[row];
        col_of_row_[row] = -1;
      }
      if (before < 0) return row;
      col = static_cast<std::size_t>(before);
    }
  }

  State& s_;
  Search search_;
  FreeRows<T, Search> free_;
  const std::size_t n_rows_;
  T* const row_dual_;
  T* const col_dual_;
  std::int32_t* const col_of_row_;
  std::int32_t* const row_of_col_;
  Index* const col_state_;

  // Of the present tree: the row that is freed at the least distance, and whether the free rows
  // belong to the tree.
  T freeing_distance_ = kInfinity<T>;
  std::size_t row_to_free_ = kNone;
  bool holds_free_rows_ = false;
  T free_rows_distance_ = 0;
};

template <class T, class Call>
inline void with_matcher(AssignmentState<T>& state, const Call& call) {
  if (state.is_large) {
    return state.highest < kInfinity<T> ? call(Matcher<T, CandidateSearch<T, true>>(state))
                                        : call(Matcher<T, CandidateSearch<T, false>>(state));
  }
  switch (Chunks<T, 0>::chunks_of(state.n_cols)) {
    case 1:
      return call(Matcher<T, DenseSearch<T, 1>>(state));
    case 2:
      return call(Matcher<T, DenseSearch<T, 2>>(state));
    case 3:
      return call(Matcher<T, DenseSearch<T, 3>>(state));
    case 4:
      return call(Matcher<T, DenseSearch<T, 4>>(state));
    default:
      return call(Matcher<T, DenseSearch<T, 0>>(state));
  }
}

template <class T>
AssignmentKernel<T> kernel() {
  using State = AssignmentState<T>;
  AssignmentKernel<T> kernel;
  kernel.transpose = transpose_costs<T>;
  kernel.load = [](State& state, MatrixView<const T> costs, const T* end, T sign, T limit,
                   T* to) {
    bool is_plain = false;
    with_matcher<T>(state, [&](auto matcher) {
      is_plain = matcher.load_problem(costs, end, sign, limit, to);
    });
    return is_plain;
  };
  kernel.find_cheapest = [](State& state) {
    with_matcher<T>(state, [](auto matcher) { matcher.find_cheapest(); });
  };
  kernel.begin = [](State& state) {
    with_matcher<T>(state, [](auto matcher) { matcher.begin(); });
  };
  kernel.match_cheapest = [](State& state, std::size_t n) {
    with_matcher<T>(state, [&](auto matcher) { matcher.match_cheapest(n); });
  };
  kernel.augment_pending = [](State& state) {
    with_matcher<T>(state, [](auto matcher) { matcher.augment_pending(); });
  };
  kernel.augment_until = [](State& state, std::size_t n, T limit) {
    with_matcher<T>(state, [&](auto matcher) { matcher.augment_until(n, limit); });
  };
  kernel.find_best_free_rows = [](State& state) {
    with_matcher<T>(state, [](auto matcher) { matcher.find_best_free_rows(); });
  };
  return kernel;
}

}  // namespace

namespace KERNELCORE_ISA {

AssignmentKernels assignment_kernels() { return {kernel<float>(), kernel<double>()}; }

}  // namespace KERNELCORE_ISA
}  // namespace kernelcore
