// Sequences with their common prefixes stored once, as a list of edges to walk in order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/ragged_view.hpp"
#include "common/worker.hpp"

namespace kernelcore {

struct PrefixTree {
  // The words between two nodes. Whoever walks the edges in order, and keeps what is known at
  // each level above the present one, visits every prefix once: an edge starts from the node
  // that was reached last at its `level` and reaches one at `level` + 1.
  struct Edge {
    const std::int32_t* words;
    std::size_t n_words;
    std::size_t level;
    std::size_t first_end;  // the sequences that end here are ends[first_end .. + n_ends]
    std::size_t n_ends;
    bool leaf;  // no edge starts from the node reached
  };
  std::vector<Edge> edges;
  std::vector<std::uint32_t> ends;
  std::size_t n_levels = 0;
};

// Rows first .. last - 1 in lexicographic order, empty ones first, equal ones as they stand.
// std::length_error if their numbers do not fit 32 bits.
std::vector<std::uint32_t> sorted_rows(const RaggedView<std::int32_t>& rows, std::size_t first,
                                       std::size_t last, Worker& worker);

// The tree of some rows given in lexicographic order; empty rows are left out. Sisters that are
// leaves come first, the shorter before the longer, so that a walk meets edges of one kind
// in runs.
PrefixTree grow_prefix_tree(const RaggedView<std::int32_t>& rows,
                            const std::vector<std::uint32_t>& sorted, Worker& worker);

}  // namespace kernelcore
