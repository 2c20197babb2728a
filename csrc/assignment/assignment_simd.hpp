// The inner loops of assignment.cpp, compiled once per instruction set.
//
// A problem is minimised and has no more rows than columns: the caller negates and transposes.
// With costs c, row duals u, column duals v and the dual d of the number of pairs, two sets of
// conditions matter:
//
//     FEASIBLE   c[i][j] - u[i] - v[j] >= 0 for all pairs, and = 0 for matched ones
//     OPTIMAL    FEASIBLE, and  v <= 0, = 0 for free columns,  u <= d, = d for free rows:
//                a proof that no set of as many pairs costs less
//
// Every row is free, pending or matched: match_cheapest() makes rows pending if it could not
// match them. The functions may follow one another in this order:
//
//     function                 after                       then holds
//     -----------------------  --------------------------  ------------------------------------
//     begin                    load or find_cheapest       all rows and columns free, duals 0
//     find_best_free_rows      begin                       the cheapest free row of each column
//     match_cheapest(n)        begin; sorting if n <       FEASIBLE; n rows matched or pending
//                              n_rows
//     augment_pending          match_cheapest              OPTIMAL with n pairs; or rows stay
//                                                          pending: n pairs cannot be had, and
//                                                          the duals prove nothing
//     augment_until(n, limit)  begin and sorting, or       OPTIMAL with n pairs; or with fewer,
//                              augment_until, a smaller n  as no other can be had that adds
//                                                          `limit` or less to the sum
//
// "Sorting": free_rows ascend by the cost of their cheapest column. Where no row is free, d is
// not determined; where no column is free either, v may have any sign.
// AssignmentSolver::write_duals() then shifts them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/isa.hpp"
#include "common/matrix_view.hpp"
#include "common/worker.hpp"

namespace kernelcore {

// Arrays over columns have room for whole vectors of kVectorRoom values: costs beyond the last
// column are infinite.
constexpr std::size_t kVectorRoom = 16;

constexpr std::size_t rounded_to_vectors(std::size_t n) {
  return (n + kVectorRoom - 1) / kVectorRoom * kVectorRoom;
}

// A problem of more bytes is large: its costs stay in the caller's memory, and searches look at
// a few candidates of each row first. Smaller ones stay in the cache of a core.
constexpr std::size_t kLargeBytes = std::size_t{1} << 20;

// Candidates of a row, at most.
constexpr std::size_t kMaxCandidates = 48;

template <class T>
struct AssignmentState {
  using Index = LaneInt<T>;

  // Of a small problem whole vectors. Of a large one n_cols values in the caller's memory:
  // costs are these times `sign`, and infinite where that exceeds `highest`.
  const T* const* rows;
  bool is_large;
  T sign;  // times a power of two that keeps sums finite
  T highest;
  std::size_t n_rows;
  std::size_t n_cols;

  Worker* worker;  // of the thread that solves the problem

  T* row_dual;
  T* col_dual;
  T pair_dual;               // d
  std::int32_t* col_of_row;  // -1 unless the row is matched
  std::int32_t* row_of_col;  // of matched columns
  std::size_t n_matched;

  std::int32_t* pending_rows;
  std::size_t n_pending;
  std::int32_t* free_rows;
  std::size_t n_free;

  bool is_greedy;  // each row so far is matched with its cheapest column

  struct ColumnAt {
    std::int32_t col;
    T distance;
  };
  // Of each row its cheapest column: of equals the first, or in a large square the first that
  // is no other row's, if there is one.
  ColumnAt* cheapest;

  // The cheapest free row of each column, -1 where there is none; computed by the first search
  // that needs it.
  bool knows_best_free;
  T* best_free_cost;
  Index* best_free_row;

  // The search for a shortest augmenting path grows an alternating tree.
  T* distance;       // of each column
  Index* parent;     // of each column: the row before it on its path
  Index* col_state;  // of each column: see ColumnState
  ColumnAt* tree;    // columns of the tree, in ascending distance: room for n_rows

  // Of a large problem: columns candidate_cols[i * kMaxCandidates + k] of row i and their
  // costs. All its other columns have c - v >= outside_bound. n_cols = 0: not listed,
  // and not at the next relaxation either if outside_bound = -infinity.
  struct Candidates {
    std::uint32_t n_cols;
    T outside_bound;
  };
  Candidates* candidates;
  std::int32_t* candidate_cols;
  T* candidate_costs;

  // A row of the tree whose candidates alone were relaxed. All its other columns are at least
  // outside_bound away.
  struct PartialRow {
    std::int32_t row;
    T distance, outside_bound;
  };
  PartialRow* partial_rows;
  std::size_t n_listed;  // how often the candidates of a row were listed
  std::size_t n_saved;   // how often the other columns of a row were never read
};

template <class T>
struct AssignmentKernel {
  // Writes transposed costs into rows `width` apart, whole vectors; reads no further than
  // `end`.
  void (*transpose)(MatrixView<const T> costs, const T* end, T* to, std::size_t width,
                    Worker& worker);

  // Copies costs, times `sign`, to whole vectors filled up with infinity, unless the problem is
  // large; `to` may be where they are. Reads no further than `end`. Finds `cheapest`. Returns
  // whether each cost lies between -limit and limit.
  bool (*load)(AssignmentState<T>& state, MatrixView<const T> costs, const T* end, T sign,
               T limit, T* to);

  // Finds `cheapest` of costs that were not loaded, or have changed since.
  void (*find_cheapest)(AssignmentState<T>& state);

  // Frees all rows and columns.
  void (*begin)(AssignmentState<T>& state);

  // Matches the first n free rows with their cheapest columns, as far as these differ; the
  // others become pending.
  void (*match_cheapest)(AssignmentState<T>& state, std::size_t n);

  // Matches each pending row, by its cheapest columns as long as their duals tell which, then
  // along a shortest augmenting path.
  void (*augment_pending)(AssignmentState<T>& state);

  // Adds one pair after another along the shortest augmenting path from any free row, until
  // there are n of them, or none can be had that adds `limit` or less to the sum.
  void (*augment_until)(AssignmentState<T>& state, std::size_t n, T limit);

  void (*find_best_free_rows)(AssignmentState<T>& state);
};

struct AssignmentKernels {
  AssignmentKernel<float> f32;
  AssignmentKernel<double> f64;
};

KERNELCORE_DECLARE_PER_ISA(AssignmentKernels, assignment_kernels)

}  // namespace kernelcore
