// A walk through a prefix tree in batches that meet few different symbols each.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/prefix_tree.hpp"
#include "common/ragged_view.hpp"

namespace kernelcore {

// Words to read one after another, starting from what was known at `from` and leaving what is
// known then at `to`. Slot 0 knows nothing; a slot is used again once nobody needs it.
struct WalkStep {
  std::uint32_t first_word;
  std::uint32_t n_words;
  std::uint32_t from;
  std::uint32_t to;
  std::uint32_t first_end;  // the sequences that are then complete: ends[first_end .. + n_ends]
  std::uint32_t n_ends;
  bool leaf;  // nothing starts from there
};

class PrefixWalk {
 public:
  struct Batch {
    std::size_t first_step, n_steps;
    std::vector<std::uint32_t> symbols;  // ascending; the steps' words are places in it
  };

  // Of the symbols below n_blocked, block_size neighbours come together: who reads a dense
  // matrix by vectors has use for them.
  PrefixWalk(std::size_t n_symbols, std::size_t n_blocked, std::size_t block_size)
      : n_blocked_(n_blocked),
        block_size_(block_size),
        place_of_(check_fits<std::int32_t>(n_symbols, "symbols"), -1) {}

  // Plans to walk through some rows, given in lexicographic order, with no more than
  // max_symbols in a batch, or one block of them. std::length_error if their words are too
  // many to be numbered by 32 bits.
  void plan(const RaggedView<std::int32_t>& rows, const std::vector<std::uint32_t>& sorted,
            std::size_t max_symbols, Worker& worker);

  const std::vector<Batch>& batches() const { return batches_; }
  const WalkStep* steps() const { return steps_.data(); }
  const std::uint32_t* words() const { return words_.data(); }
  const std::vector<std::uint32_t>& ends() const { return ends_; }
  std::size_t n_slots() const { return n_slots_; }

  // Calls visit(place_of) with the place of each symbol within the batch, or -1.
  template <class Visit>
  void with_places(const Batch& batch, const Visit& visit) {
    for (std::size_t k = 0; k < batch.symbols.size(); ++k) {
      place_of_[batch.symbols[k]] = static_cast<std::int32_t>(k);
    }
    visit(place_of_);
    for (const std::uint32_t symbol : batch.symbols) place_of_[symbol] = -1;
  }

 private:
  void begin_batch();
  void end_batch();
  void add_edge(const PrefixTree::Edge& edge, std::size_t max_symbols);
  void hold(std::size_t symbol);

  const std::size_t n_blocked_;
  const std::size_t block_size_;
  std::vector<WalkStep> steps_;
  std::vector<std::uint32_t> words_;
  std::vector<std::uint32_t> ends_;
  std::vector<Batch> batches_;
  std::vector<std::int32_t> place_of_;
  std::size_t n_slots_ = 0;
  std::size_t first_word_ = 0;  // of the batch
};

}  // namespace kernelcore
