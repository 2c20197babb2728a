// Rows that store their non-zero values alone, and an index of such rows by bin.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "common/groups.hpp"
#include "common/ragged_view.hpp"
#include "common/worker.hpp"

namespace kernelcore {

template <class T>
struct SparseRows {
  RaggedView<std::int32_t> bins;  // of the values of each row; below n_bins
  const T* counts;                // the values
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
  Groups<Entry<T>> by_bin;

  InvertedIndex(const SparseRows<T>& Y, Worker& worker) : n_rows(Y.bins.n_rows) {
    check_fits<std::int32_t>(Y.bins.n_rows, "rows");
    by_bin = grouped<Entry<T>>(Y.n_bins, [&](const auto& add) {
      for (std::size_t row = 0; row < Y.bins.n_rows; ++row) {
        worker.spend(kWorkPerEntry * Y.bins.size(row));
        for (auto bin = Y.bins.begin(row); bin != Y.bins.end(row); ++bin) {
          add(*bin, {static_cast<std::int32_t>(row), Y.counts[bin - Y.bins.values]});
        }
      }
    });
  }

  std::size_t size(std::int32_t bin) const { return by_bin.size(bin); }

  // Calls visit(entry) for the entries of a bin with a row in [row_begin, row_end), the last
  // one first; returns their number.
  template <class Visit>
  std::size_t visit(std::int32_t bin, std::size_t row_begin, std::size_t row_end,
                    const Visit& visit) const {
    const Entry<T>* const first = by_bin.begin(bin);
    const Entry<T>* end = by_bin.end(bin);
    if (row_end < n_rows) {
      end = std::lower_bound(first, end, row_end, [](const Entry<T>& entry, std::size_t row) {
        return static_cast<std::size_t>(entry.row) < row;
      });
    }
    const Entry<T>* entry = end;
    // Compares one row for four entries: visits do little else.
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

 private:
  static constexpr std::size_t kWorkPerEntry = 3;
};

}  // namespace kernelcore
