// The inner loops of assignment.cpp, compiled once per instruction set.
//
// A problem is minimised and has no more rows than columns: the caller negates and transposes.
// With c the costs, u and v the duals of rows and columns and d that of a link,
//
//     c[i][j] - (u[i] + v[j]) >= 0, and = 0 for links
//
// holds whenever a function returns. After begin(), grow() and the end of serve(), unless all
// rows of a square have links, also v <= 0, and = 0 for free columns, u <= d, and = d for free
// rows: no as many links are cheaper than these.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "common/isa.hpp"
#include "common/worker.hpp"

namespace kernelcore {

// What belongs to columns has room for whole vectors of kVectorRoom values: costs are infinite
// beyond the last column.
constexpr std::size_t kVectorRoom = 16;

// Rows of so many columns are used where they are, and are not read as a whole at every step.
constexpr std::size_t kLargeRow = 256;

// Columns of a row that are noted as near, at most.
constexpr std::size_t kNearRoom = 48;

template <class T>
struct AssignmentState {
  using Index = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;

  struct Visit {
    std::int32_t col;
    T distance;
  };

  // Whole vectors, or, where `is_large`, n_cols values in the caller's memory: costs are these
  // times `sign`, infinite where that is more than `highest`.
  const T* const* rows;
  bool is_large;
  T sign;  // times a power of two that keeps sums finite
  T highest;
  std::size_t n_rows;
  std::size_t n_cols;

  Worker* worker;  // whose work it is

  T* row_dual;
  T* col_dual;
  T link_dual;
  std::int32_t* col_of_row;  // -1 where there is none
  std::int32_t* row_of_col;  // of columns that are not free
  std::size_t n_links;

  // Rows that wait for serve(), and rows without a link.
  std::int32_t* waiting_rows;
  std::size_t n_waiting;
  std::int32_t* free_rows;
  std::size_t n_free;

  bool is_greedy;  // each link so far is the cheapest of its row

  // The free row that is cheapest for each column, -1 where there is none. Unknown before the
  // first search that asks for it.
  bool knows_best;
  T* best_cost;
  Index* best_row;

  // A search for the shortest path to a free column.
  T* distance;      // of each column
  Index* parent;    // the row before it on its path
  Index* standing;  // of each column: free, taken or visited
  Visit* visits;    // n_rows of them

  // Of a large problem, near_cols[i * kNearRoom + k] and their costs: all other columns of row
  // i cost `beyond` or more, less their duals. No columns: unknown.
  struct Near {
    std::uint32_t n_cols;
    T beyond;
  };
  Near* near;
  std::int32_t* near_cols;
  T* near_costs;

  // Rows that a search has come to, but read in part: the rest is as far as `beyond`.
  struct Unread {
    std::int32_t row;
    T distance, beyond;
  };
  Unread* unread;
  std::size_t n_noted, n_spared;  // how often a row was noted, and was read in part alone
};

template <class T>
struct AssignmentTile {
  // Copies costs, times `sign`, to whole vectors filled up with infinity; reads no further
  // than `end`. Tells whether each of them lies between -limit and limit.
  bool (*load)(const T* from, const T* end, std::size_t n_cols, T sign, T limit, T* to);

  // The check alone.
  bool (*are_plain)(const T* costs, std::size_t n_cols, T limit);

  // The cheapest column of each row, the first of equals, into `visits`; no links.
  void (*begin)(AssignmentState<T>& state);

  // After begin(), and after `free_rows` were sorted by that cost if n_links < n_rows: links
  // the first n_links rows, as far as they want different columns. Then serves those that wait.
  // There are n_links links when none is waiting any more; if one cannot have any, it and those
  // behind it still wait, and duals prove nothing.
  void (*link)(AssignmentState<T>& state, std::size_t n_links);
  void (*serve)(AssignmentState<T>& state);

  // After begin() and the same order of rows: one link after another until there are n_links of
  // them, or none is left that adds `limit` or less to the cost.
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
