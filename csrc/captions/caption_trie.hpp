// A trie of captions, flattened into steps: words that captions share at their beginning are
// read once. The captions 0 = a b c and 1 = a b d become three steps:
//
//     words  from_slot  to_slot  finished captions
//     a b        0         1     none
//     c          1         2     0
//     d          1         2     1
//
// A slot keeps the state of a reader at a node; slot 0 is the state before any word. Slots are
// numbered by the depth of the node: a later branch overwrites the slot of an earlier one.
// Steps come in batches of few different symbols, so that a reader can prepare a table of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/ragged_view.hpp"
#include "common/worker.hpp"

namespace kernelcore {

struct CaptionTrie {
  // Reads words from the state in from_slot, and leaves the new state in to_slot.
  struct Step {
    std::uint32_t first_word;  // of `words`
    std::uint32_t n_words;
    std::uint32_t from_slot;
    std::uint32_t to_slot;
    std::uint32_t first_finished;  // of `finished`: captions that end after these words
    std::uint32_t n_finished;
    bool is_leaf;  // no step starts from the new state
  };

  struct Batch {
    std::size_t first_step, n_steps;
    std::vector<std::uint32_t> symbols;  // ascending; `words` are places in it
  };

  std::vector<Step> steps;
  std::vector<std::uint32_t> words;
  std::vector<std::uint32_t> finished;
  std::vector<Batch> batches;
  std::size_t n_slots = 0;
};

// Captions first .. last - 1 in lexicographic order, empty ones first, equal ones as they
// stand. std::length_error if their numbers do not fit 32 bits.
std::vector<std::uint32_t> sorted_captions(const RaggedView<std::int32_t>& captions,
                                           std::size_t first, std::size_t last, Worker& worker);

// Builds one trie after another, in memory of its own.
class TrieBuilder {
 public:
  // block_size consecutive symbols below n_blocked enter a batch together: a reader may load
  // them as one vector.
  TrieBuilder(std::size_t n_symbols, std::size_t n_blocked, std::size_t block_size)
      : n_blocked_(n_blocked),
        block_size_(block_size),
        place_of_(check_fits<std::int32_t>(n_symbols, "symbols"), -1) {}

  // The trie of some captions, given in lexicographic order; empty ones are left out. A batch
  // has no more than max_symbols, or one block of them. Of the branches of a node, leaves come
  // first, short ones before long ones: steps of one kind follow one another.
  // std::length_error if the words are too many for 32 bits. Valid until the next call.
  const CaptionTrie& build(const RaggedView<std::int32_t>& captions,
                           const std::vector<std::uint32_t>& sorted, std::size_t max_symbols,
                           Worker& worker);

  // The same of captions first .. last - 1 as they stand, without looking for what they share:
  // quick to build, and slower to read.
  const CaptionTrie& build_unshared(const RaggedView<std::int32_t>& captions, std::size_t first,
                                    std::size_t last, std::size_t max_symbols, Worker& worker);

  // Calls visit(place_of) with the place of each symbol in the batch, or -1.
  template <class Visit>
  void with_places(const CaptionTrie::Batch& batch, const Visit& visit) {
    for (std::size_t k = 0; k < batch.symbols.size(); ++k) {
      place_of_[batch.symbols[k]] = static_cast<std::int32_t>(k);
    }
    visit(place_of_);
    for (const std::uint32_t symbol : batch.symbols) place_of_[symbol] = -1;
  }

 private:
  class Walk;

  void begin(std::size_t max_symbols);
  const CaptionTrie& end();
  void begin_batch();
  void end_batch();
  // Adds the steps of an edge: `n_words` words, from the node at `level` to one at level + 1.
  void add_edge(const std::int32_t* words, std::size_t n_words, std::size_t level,
                std::size_t first_finished, bool is_leaf);
  void hold(std::size_t symbol);

  const std::size_t n_blocked_;
  const std::size_t block_size_;
  CaptionTrie trie_;
  std::vector<std::int32_t> place_of_;  // of each symbol in the present batch, or -1
  std::size_t max_symbols_ = 0;
  std::size_t first_word_ = 0;  // of the present batch
};

}  // namespace kernelcore
