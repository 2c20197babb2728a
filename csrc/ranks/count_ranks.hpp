// Counts of the candidates that stand before, or level with, the gold one of each query, for
// queries that are rows, columns, or both in one pass.
//
//     greater[q] = |{ c : scores[q, c] > gold[q] }|
//     tied[q]    = |{ c : scores[q, c] = gold[q] }|
//
// Input    scores (m, n); per query the score of its best gold candidate and, where
//          tied_before is asked for, the index of the first gold candidate with that score,
//          which may lie outside [0, n): the scores may be a part of a larger matrix. A query
//          may have several gold scores: layer 0 holds the first gold score of every query,
//          layer 1 the second one, and so on, infinity where a query has fewer.
// Output   the counts (gold candidates too), fully overwritten; tied_before holds the tied
//          candidates of smaller index. Returns whether a score is NaN.
// Cost     one pass over the scores in memory order, for rows and columns alike, and one in the
//          cache for each further layer; no sort. Per thread, two integers (three with
//          tied_before) of the width of a score for each query that is a column.
// Order    integer counts: nothing depends on an order.
// Threads  one task counts in a block of rows: a row has one writer, columns are counted by
//          each thread apart and added up at the end, some columns in each task.
// Python   holds no Python object: call it with the GIL released.
// Errors   Cancelled if the monitor stops the call; std::invalid_argument if such an integer
//          could not hold the number of rows. Shapes are checked once, in
//          kernelcore/evaluation/ranks.py.
// Source   the definition of competition ranks.
// Same as  kernelcore/reference/evaluation.py::gold_ranks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/matrix_view.hpp"
#include "common/monitor.hpp"

namespace kernelcore {

// Queries of one direction and their counts. gold is null if there are none in this direction;
// tied_before is null if the order of tied candidates does not matter.
template <class T>
struct RankQueries {
  std::size_t n_layers;  // of gold scores and counts, one after another
  const T* gold;
  const std::int64_t* first_gold;
  std::int64_t* greater;
  std::int64_t* tied;
  std::int64_t* tied_before;
};

template <class T>  // float or double
bool count_ranks(MatrixView<const T> scores, RankQueries<T> rows, RankQueries<T> columns,
                 std::size_t n_threads, Monitor& monitor);

// The same for the scores of dot_products(left, right), tile by tile: they are never all in
// memory.
template <class T>
void count_ranks_of_products(MatrixView<const T> left, MatrixView<const T> right,
                             RankQueries<T> rows, RankQueries<T> columns, std::size_t n_threads,
                             Monitor& monitor);

}  // namespace kernelcore
