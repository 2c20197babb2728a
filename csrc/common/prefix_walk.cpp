#include "common/prefix_walk.hpp"

#include <algorithm>
#include <utility>

namespace kernelcore {
namespace {

constexpr std::size_t kWorkPerWord = 4;

}  // namespace

void PrefixWalk::plan(const RaggedView<std::int32_t>& rows,
                      const std::vector<std::uint32_t>& sorted, std::size_t max_symbols,
                      Worker& worker) {
  PrefixTree tree = grow_prefix_tree(rows, sorted, worker);
  steps_.clear();
  words_.clear();
  batches_.clear();
  n_slots_ = tree.n_levels + 1;
  begin_batch();
  for (const PrefixTree::Edge& edge : tree.edges) {
    worker.spend(kWorkPerWord * (1 + edge.n_words));
    add_edge(edge, max_symbols);
  }
  check_fits<std::uint32_t>(words_.size(), "words");
  end_batch();
  ends_ = std::move(tree.ends);
}

void PrefixWalk::begin_batch() {
  batches_.push_back({steps_.size(), 0, {}});
  first_word_ = words_.size();
}

void PrefixWalk::end_batch() {
  Batch& batch = batches_.back();
  batch.n_steps = steps_.size() - batch.first_step;
  std::sort(batch.symbols.begin(), batch.symbols.end());
  with_places(batch, [this](const std::vector<std::int32_t>& place_of) {
    for (std::size_t k = first_word_; k < words_.size(); ++k) {
      words_[k] = static_cast<std::uint32_t>(place_of[words_[k]]);
    }
  });
}

void PrefixWalk::add_edge(const PrefixTree::Edge& edge, std::size_t max_symbols) {
  auto from = static_cast<std::uint32_t>(edge.level);
  const std::uint32_t to = from + 1;
  auto first_word = static_cast<std::uint32_t>(words_.size());
  const auto n_words = [&] { return static_cast<std::uint32_t>(words_.size()) - first_word; };
  for (const std::int32_t* word = edge.words; word != edge.words + edge.n_words; ++word) {
    const auto symbol = static_cast<std::size_t>(*word);
    KC_ASSERT(symbol < place_of_.size());
    if (place_of_[symbol] < 0) {
      const std::size_t n_held = batches_.back().symbols.size();
      if (n_held > 0 && n_held + block_size_ > max_symbols) {
        // The edge goes on in the next batch, from where it has come.
        if (n_words() > 0) {
          steps_.push_back({first_word, n_words(), from, to, 0, 0, false});
          from = to;
        }
        end_batch();
        begin_batch();
        first_word = static_cast<std::uint32_t>(words_.size());
      }
      hold(symbol);
    }
    words_.push_back(static_cast<std::uint32_t>(symbol));
  }
  steps_.push_back({first_word, n_words(), from, to, static_cast<std::uint32_t>(edge.first_end),
                    static_cast<std::uint32_t>(edge.n_ends), edge.leaf});
}

void PrefixWalk::hold(std::size_t symbol) {
  const bool blocked = symbol < n_blocked_;
  const std::size_t first = blocked ? symbol - symbol % block_size_ : symbol;
  const std::size_t last = blocked ? std::min(first + block_size_, n_blocked_) : symbol + 1;
  for (std::size_t held = first; held < last; ++held) {
    KC_ASSERT(held < place_of_.size());
    place_of_[held] = 0;
    batches_.back().symbols.push_back(static_cast<std::uint32_t>(held));
  }
}

}  // namespace kernelcore
