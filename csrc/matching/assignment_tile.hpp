// The inner loops of assignment.cpp, compiled once per instruction set.
//
// A problem is minimised and has no more rows than columns: the caller negates and transposes.
// With c the costs, u and v the duals of rows and columns and d that of a link,
//
//     c[i][j] - (u[i] + v[j]) >= 0, and = 0 for links
//
// holds whenever a function returns. After begin() and grow() also v <= 0, and = 0 for free
// columns, u <= d, and = d for free rows: no as many links are cheaper than these.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "common/isa.hpp"

namespace kernelcore {

// What belongs to columns has room for whole vectors of kVectorRoom values: costs are infinite
// beyond the last column.
constexpr std::size_t kVectorRoom = 16;

template <class T>
struct AssignmentState {
  using Index = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;

  struct Visit {
    std::int32_t col;
    T distance;
  };

  const T* const* rows;
  std::size_t n_rows;
  std::size_t n_cols;

  T* row_dual;
  T* col_dual;
  T link_dual;
  std::int32_t* col_of_row;  // -1 where there is none
  std::int32_t* row_of_col;  // of columns that are not free
  std::size_t n_links;

  // Rows without a link, in the order in which they are served: after begin(), cheapest first.
  std::int32_t* free_rows;
  std::size_t n_free;

  bool is_greedy;  // each link so far is the cheapest of its row

  // The free row that is cheapest for each column, -1 where there is none. Unused while greedy.
  T* best_cost;
  Index* best_row;

  // A search for the shortest path to a free column.
  T* distance;      // of each column
  Index* parent;    // the row before it on its path
  Index* standing;  // of each column: free, taken or visited
  Visit* visits;    // n_rows of them
};

template <class T>
struct AssignmentTile {
  // Copies costs, times `sign`, to whole vectors filled up with infinity; reads no further
  // than `end`. Tells whether each of them lies between -limit and limit.
  bool (*load)(const T* from, const T* end, std::size_t n_cols, T sign, T limit, T* to);

  // Links all rows that want different columns, then serves up to n_rows free ones. Every row
  // has a link in the end, or the first free one cannot have any.
  void (*begin_all)(AssignmentState<T>& state);
  void (*serve)(AssignmentState<T>& state, std::size_t n_rows);

  // No links, then one after another until there are n_links of them, or none is left that
  // adds `limit` or less to the cost. Between the two, `visits` holds the cheapest column of
  // each row, the first of equals.
  void (*begin)(AssignmentState<T>& state);
  void (*grow)(AssignmentState<T>& state, std::size_t n_links, T limit);

  // The cheapest free row of each column.
  void (*find_best_rows)(AssignmentState<T>& state);
};

struct AssignmentTiles {
  AssignmentTile<float> f32;
  AssignmentTile<double> f64;
};

KERNELCORE_DECLARE_TILES(AssignmentTiles, assignment_tiles)

}  // namespace kernelcore
