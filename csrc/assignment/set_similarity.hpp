// Similarity of two sets, from the similarities of their elements.
//
//     DC[a, b] = mean over rows of their maximum + mean over columns of theirs
//     TK[a, b] = the same over the k greatest row maxima and the k greatest column maxima
//     AP[a, b] = mean over the k pairs, of different rows and columns, with the greatest sum
//
// Input    S (n, m), finite, cut into sets of consecutive rows and of consecutive columns, none
//          of them empty; k for each pair of sets, no more than the smaller one has.
// Output   a similarity for each pair of sets; on request the entries of S that it averages,
//          through which its gradient flows: for DC those of rows, then of columns; for TK the
//          same, greatest first; for AP in ascending order of rows.
// Cost     n m for DC and TK, that of the assignments for AP.
// Order    the selected entries are added in double, as they are listed, and rounded once. Of
//          equal entries the first is selected.
// Threads  one task computes some pairs, those of one set of rows or of many: every element
//          has one writer.
// Python   holds no Python object: call it with the GIL released.
// Errors   Cancelled if the monitor stops the call; std::length_error for a set of 2^31 rows
//          or columns, or more. All else is checked once, in
//          kernelcore/matching/set_similarity.py.
// Source   J. Hessel, L. Lee & D. Mimno, Unsupervised discovery of multimodal links in
//          multi-image, multi-sentence documents, EMNLP 2019.
// Same as  kernelcore/reference/matching.py::set_similarity.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/matrix_view.hpp"
#include "common/monitor.hpp"

namespace kernelcore {

enum class SetSimilarity { kDense, kTopK, kAssignment };

// Consecutive rows or columns.
struct SetsView {
  const std::int64_t* offsets;  // n_sets + 1 of them
  std::size_t n_sets;

  std::size_t begin(std::size_t set) const { return static_cast<std::size_t>(offsets[set]); }
  std::size_t size(std::size_t set) const {
    return static_cast<std::size_t>(offsets[set + 1] - offsets[set]);
  }
};

// Rows and columns of S, those of pair p = a * n_col_sets + b from offsets[p] on. Or nulls.
struct SelectedEntries {
  const std::int64_t* offsets = nullptr;
  std::int64_t* rows = nullptr;
  std::int64_t* cols = nullptr;
};

// `bounds` holds the k of each pair. T: float or double.
template <class T>
void set_similarity(MatrixView<const T> S, const SetsView& row_sets, const SetsView& col_sets,
                    SetSimilarity kind, MatrixView<const std::int64_t> bounds,
                    MatrixView<T> out, const SelectedEntries& selected, std::size_t n_threads,
                    Monitor& monitor);

}  // namespace kernelcore
