// Rows of which most values are 0, and the same rows by their bins.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/ragged_view.hpp"
#include "common/worker.hpp"

namespace kernelcore {

template <class T>
struct SparseRows {
  RaggedView<std::int32_t> bins;  // those that a row has, each below n_bins
  const T* counts;                // what is in them
  std::size_t n_bins;

  bool is(const SparseRows& other) const {
    return counts == other.counts && bins.n_rows == other.bins.n_rows;
  }
};

template <class T>
struct Entry {
  std::int32_t row;
  T value;
};

// The entries of each bin by ascending row.
template <class T>
struct InvertedIndex {
  std::size_t n_rows;
  std::vector<std::size_t> starts;
  std::vector<Entry<T>> entries;

  InvertedIndex(const SparseRows<T>& Y, Worker& worker)
      : n_rows(Y.bins.n_rows), starts(Y.n_bins + 1), entries(Y.bins.n_values()) {
    check_fits<std::int32_t>(Y.bins.n_rows, "rows");
    const auto first = Y.bins.values;
    for (std::size_t row = 0; row < Y.bins.n_rows; ++row) {
      worker.spend(Y.bins.size(row));
      for (auto bin = Y.bins.begin(row); bin != Y.bins.end(row); ++bin) ++starts[*bin];
    }
    std::size_t end = 0;
    for (std::size_t& start : starts) start = end += start;
    for (std::size_t row = Y.bins.n_rows; row-- > 0;) {
      worker.spend(4 * Y.bins.size(row));
      for (auto bin = Y.bins.end(row); bin != Y.bins.begin(row);) {
        --bin;
        entries[--starts[*bin]] = {static_cast<std::int32_t>(row), Y.counts[bin - first]};
      }
    }
  }

  std::size_t size(std::int32_t bin) const { return starts[bin + 1] - starts[bin]; }

  // Calls visit(entry) for the entries of a bin whose rows lie in [row_begin, row_end), the
  // last one first; returns how many there are.
  template <class Visit>
  std::size_t visit(std::int32_t bin, std::size_t row_begin, std::size_t row_end,
                    const Visit& visit) const {
    const Entry<T>* const first = entries.data() + starts[bin];
    const Entry<T>* end = entries.data() + starts[bin + 1];
    if (row_end < n_rows) {
      end = std::lower_bound(first, end, row_end, [](const Entry<T>& entry, std::size_t row) {
        return static_cast<std::size_t>(entry.row) < row;
      });
    }
    const Entry<T>* entry = end;
    // One look at a row for four entries: there is little else to do for each.
    while (entry - first >= 4 && static_cast<std::size_t>(entry[-4].row) >= row_begin) {
      visit(entry[-1]);
      visit(entry[-2]);
      visit(entry[-3]);
      visit(entry[-4]);
      entry -= 4;
    }
    while (entry != first && static_cast<std::size_t>(entry[-1].row) >= row_begin) {
      visit(*--entry);
    }
    return static_cast<std::size_t>(end - entry);
  }
};

}  // namespace kernelcore
