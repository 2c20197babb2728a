// The free rows of a problem, and the cheapest of them for each column. For assignment_simd.cpp
// alone. Like common/simd.hpp, all of it has internal linkage.
#pragma once

#include <cstddef>
#include <cstdint>

#include "assignment/assignment_simd.hpp"
#include "assignment/load_costs_simd.hpp"
#include "common/simd.hpp"

namespace kernelcore {
namespace {

template <class T, class Search>
class FreeRows {
 public:
  using State = AssignmentState<T>;
  using Index = typename State::Index;

  explicit FreeRows(State& state) : s_(state) {}

  // Finds the cheapest free row of each column.
  void find_best(const Search& search) {
    search.chunks.each([&](std::size_t j) {
      store(s_.best_free_cost + j, splat(kInfinity<T>));
      store(s_.best_free_row + j, splat(Index{-1}));
    });
    for (std::size_t k = 0; k < s_.n_free; ++k) compare(search, s_.free_rows[k]);
    s_.knows_best_free = true;
  }

  void add(const Search& search, std::size_t row) {
    s_.free_rows[s_.n_free++] = static_cast<std::int32_t>(row);
    compare(search, row);
  }

  void remove(const Search& search, std::size_t row) {
    s_.row_dual[row] = s_.pair_dual;
    std::size_t k = 0;
    while (static_cast<std::size_t>(s_.free_rows[k]) != row) ++k;
    for (--s_.n_free; k < s_.n_free; ++k) s_.free_rows[k] = s_.free_rows[k + 1];
    search.chunks.each([&](std::size_t j) {
      if (mask_bits<T>(load(s_.best_free_row + j) == static_cast<Index>(row)) != 0) {
        find_best_of(search, j);
      }
    });
  }

  // Removes the first rows before the cheapest free rows are known.
  void drop_first(std::size_t n) {
    s_.n_free -= n;
    for (std::size_t k = 0; k < s_.n_free; ++k) s_.free_rows[k] = s_.free_rows[n + k];
  }

  void set_duals() {
    for (std::size_t k = 0; k < s_.n_free; ++k) s_.row_dual[s_.free_rows[k]] = s_.pair_dual;
  }

 private:
  // The row becomes the best one where it is cheaper than the others; of equals, the first one
  // stays.
  void compare(const Search& search, std::size_t row) {
    search.spend(s_.n_cols);
    search.chunks.each([=, costs_at = search.costs_of(row), best_cost = s_.best_free_cost,
                        best_row = s_.best_free_row](std::size_t j) {
      const Vector<T> cost = costs_at(j), best = load(best_cost + j);
      const Mask<T> cheaper = cost < best;
      store(best_cost + j, select(cheaper, cost, best));
      store(best_row + j, select(cheaper, splat(static_cast<Index>(row)), load(best_row + j)));
    });
  }

  // Of a vector of columns. No row is cheaper than the best one before: the first that is as
  // cheap ends the loop.
  void find_best_of(const Search& search, std::size_t j) {
    search.spend(s_.n_free);
    const Vector<T> before = load(s_.best_free_cost + j);
    Vector<T> best = splat(kInfinity<T>);
    Vector<Index> best_row = splat(Index{-1});
    for (std::size_t k = 0; k < s_.n_free; ++k) {
      const std::size_t row = s_.free_rows[k];
      const Vector<T> cost = search.costs_of(row)(j);
      const Mask<T> cheaper = cost < best;
      best = select(cheaper, cost, best);
      best_row = select(cheaper, splat(static_cast<Index>(row)), best_row);
      if (mask_bits<T>(best > before) == 0) break;
    }
    store(s_.best_free_cost + j, best);
    store(s_.best_free_row + j, best_row);
  }

  State& s_;
};

}  // namespace
}  // namespace kernelcore
