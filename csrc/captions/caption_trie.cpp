#include "captions/caption_trie.hpp"

#include <algorithm>
#include <tuple>

namespace kernelcore {
namespace {

// Of a worker.
constexpr std::size_t kWorkPerBranch = 50;
constexpr std::size_t kWorkPerComparison = 16;
constexpr std::size_t kWorkPerWord = 4;

// The first words of a caption as one number: most comparisons of a sort need no more.
class Heads {
 public:
  Heads(const RaggedView<std::int32_t>& captions, std::size_t first, std::size_t last,
        Worker& worker)
      : captions_(captions) {
    std::int64_t largest = 0;
    for (std::size_t k = first; k < last; ++k) {
      worker.spend(kWorkPerWord * (1 + captions.size(k)));
      for (const std::int32_t* word = captions.begin(k); word != captions.end(k); ++word) {
        largest = std::max<std::int64_t>(largest, *word);
      }
    }
    while (((largest + 1) >> n_bits_) > 0) ++n_bits_;
    n_words_ = 64 / n_bits_;
  }

  // 0 stands for no word: a caption comes before those that go on.
  std::uint64_t of(std::size_t caption) const {
    std::uint64_t head = 0;
    const std::size_t n_words = captions_.size(caption);
    for (std::size_t k = 0; k < n_words_; ++k) {
      head <<= n_bits_;
      if (k < n_words) head |= static_cast<std::uint64_t>(captions_.begin(caption)[k]) + 1;
    }
    return head;
  }

  const std::int32_t* end_of(std::size_t caption) const {
    return captions_.begin(caption) + std::min(n_words_, captions_.size(caption));
  }

 private:
  const RaggedView<std::int32_t>& captions_;
  std::size_t n_bits_ = 1;
  std::size_t n_words_ = 0;
};

}  // namespace

// Visits the nodes of the trie depth first, and adds the edge that leads to each.
class TrieBuilder::Walk {
 public:
  Walk(const RaggedView<std::int32_t>& captions, const std::vector<std::uint32_t>& sorted,
       TrieBuilder& builder, Worker& worker)
      : captions_(captions), sorted_(sorted), builder_(builder), worker_(worker) {}

  // Explicit stack: recursion depth would be the length of the longest chain of prefixes.
  void run() {
    std::size_t first = 0;
    while (first < sorted_.size() && captions_.size(sorted_[first]) == 0) ++first;
    pending_.push_back({first, sorted_.size(), 0, 0, 0});
    while (!pending_.empty()) {
      const Branch branch = pending_.back();
      pending_.pop_back();
      worker_.spend(kWorkPerBranch + 4 * (branch.last - branch.first) + branch.n_shared -
                    branch.n_before);
      std::size_t first_child = branch.first;
      if (branch.n_shared > 0) first_child = add_edge(branch);
      if (first_child < branch.last) split(first_child, branch);
    }
  }

 private:
  // Captions first .. last - 1 of sorted_ share n_shared words, n_before of them with their
  // parent node.
  struct Branch {
    std::size_t first, last, n_before, n_shared, level;
  };

  std::int32_t word(std::size_t k, std::size_t depth) const {
    return captions_.begin(sorted_[k])[depth];
  }

  // Returns the first caption that goes on beyond the new node.
  std::size_t add_edge(const Branch& branch) {
    std::vector<std::uint32_t>& finished = builder_.trie_.finished;
    const std::size_t first_finished = finished.size();
    std::size_t k = branch.first;
    for (; k < branch.last && captions_.size(sorted_[k]) == branch.n_shared; ++k) {
      finished.push_back(sorted_[k]);
    }
    const std::size_t n_words = branch.n_shared - branch.n_before;
    worker_.spend(kWorkPerWord * (1 + n_words));
    builder_.add_edge(captions_.begin(sorted_[branch.first]) + branch.n_before, n_words,
                      branch.level - 1, first_finished, k == branch.last);
    return k;
  }

  void split(std::size_t first, const Branch& parent) {
    children_.clear();
    for (std::size_t k = first; k < parent.last;) {
      std::size_t last = k + 1;
      while (last < parent.last && word(last, parent.n_shared) == word(k, parent.n_shared)) {
        ++last;
      }
      // Captions are sorted: all of a run share the words that its first and last one share.
      const std::size_t length =
          std::min(captions_.size(sorted_[k]), captions_.size(sorted_[last - 1]));
      std::size_t n_shared = parent.n_shared + 1;
      while (n_shared < length && word(k, n_shared) == word(last - 1, n_shared)) ++n_shared;
      children_.push_back({k, last, parent.n_shared, n_shared, parent.level + 1});
      k = last;
    }
    const auto is_branching = [this](const Branch& child) {
      return captions_.size(sorted_[child.last - 1]) > child.n_shared;
    };
    // In reverse: the last one is visited first.
    std::sort(children_.begin(), children_.end(), [&](const Branch& a, const Branch& b) {
      return std::make_tuple(is_branching(a), a.n_shared, a.first) >
             std::make_tuple(is_branching(b), b.n_shared, b.first);
    });
    pending_.insert(pending_.end(), children_.begin(), children_.end());
  }

  const RaggedView<std::int32_t>& captions_;
  const std::vector<std::uint32_t>& sorted_;
  TrieBuilder& builder_;
  Worker& worker_;
  std::vector<Branch> pending_;
  std::vector<Branch> children_;
};

std::vector<std::uint32_t> sorted_captions(const RaggedView<std::int32_t>& captions,
                                           std::size_t first, std::size_t last,
                                           Worker& worker) {
  check_fits<std::uint32_t>(last, "captions");
  const Heads heads(captions, first, last, worker);
  struct Entry {
    std::uint64_t head;
    std::uint32_t caption;
  };
  std::vector<Entry> entries(last - first);
  for (std::size_t k = 0; k < entries.size(); ++k) {
    worker.spend(kWorkPerComparison);
    const auto caption = static_cast<std::uint32_t>(first + k);
    entries[k] = {heads.of(caption), caption};
  }
  std::stable_sort(entries.begin(), entries.end(), [&](const Entry& a, const Entry& b) {
    worker.spend(kWorkPerComparison);
    if (a.head != b.head) return a.head < b.head;
    return std::lexicographical_compare(heads.end_of(a.caption), captions.end(a.caption),
                                        heads.end_of(b.caption), captions.end(b.caption));
  });
  std::vector<std::uint32_t> order(entries.size());
  std::transform(entries.begin(), entries.end(), order.begin(),
                 [](const Entry& entry) { return entry.caption; });
  return order;
}

const CaptionTrie& TrieBuilder::build(const RaggedView<std::int32_t>& captions,
                                      const std::vector<std::uint32_t>& sorted,
                                      std::size_t max_symbols, Worker& worker) {
  begin(max_symbols);
  Walk(captions, sorted, *this, worker).run();
  return end();
}

const CaptionTrie& TrieBuilder::build_unshared(const RaggedView<std::int32_t>& captions,
                                               std::size_t first, std::size_t last,
                                               std::size_t max_symbols, Worker& worker) {
  check_fits<std::uint32_t>(last, "captions");
  begin(max_symbols);
  for (std::size_t k = first; k < last; ++k) {
    const std::size_t n_words = captions.size(k);
    worker.spend(kWorkPerWord * (1 + n_words));
    if (n_words == 0) continue;
    trie_.finished.push_back(static_cast<std::uint32_t>(k));
    add_edge(captions.begin(k), n_words, 0, trie_.finished.size() - 1, true);
  }
  return end();
}

void TrieBuilder::begin(std::size_t max_symbols) {
  trie_.steps.clear();
  trie_.words.clear();
  trie_.finished.clear();
  trie_.batches.clear();
  trie_.n_slots = 1;
  max_symbols_ = max_symbols;
  begin_batch();
}

const CaptionTrie& TrieBuilder::end() {
  check_fits<std::uint32_t>(trie_.words.size(), "words");
  end_batch();
  return trie_;
}

void TrieBuilder::begin_batch() {
  trie_.batches.push_back({trie_.steps.size(), 0, {}});
  first_word_ = trie_.words.size();
}

void TrieBuilder::end_batch() {
  CaptionTrie::Batch& batch = trie_.batches.back();
  batch.n_steps = trie_.steps.size() - batch.first_step;
  std::sort(batch.symbols.begin(), batch.symbols.end());
  with_places(batch, [this](const std::vector<std::int32_t>& place_of) {
    for (std::size_t k = first_word_; k < trie_.words.size(); ++k) {
      trie_.words[k] = static_cast<std::uint32_t>(place_of[trie_.words[k]]);
    }
  });
}

void TrieBuilder::add_edge(const std::int32_t* words, std::size_t n_words, std::size_t level,
                           std::size_t first_finished, bool is_leaf) {
  auto from = static_cast<std::uint32_t>(level);
  const std::uint32_t to = from + 1;
  trie_.n_slots = std::max<std::size_t>(trie_.n_slots, to + std::size_t{1});
  const auto end = [&] { return static_cast<std::uint32_t>(trie_.words.size()); };
  std::uint32_t first_word = end();
  for (const std::int32_t* word = words; word != words + n_words; ++word) {
    const auto symbol = static_cast<std::size_t>(*word);
    KC_ASSERT(symbol < place_of_.size());
    if (place_of_[symbol] < 0) {
      const std::size_t n_held = trie_.batches.back().symbols.size();
      if (n_held > 0 && n_held + block_size_ > max_symbols_) {
        // The rest of the edge belongs to the next batch.
        if (end() > first_word) {
          trie_.steps.push_back({first_word, end() - first_word, from, to, 0, 0, false});
          from = to;
        }
        end_batch();
        begin_batch();
        first_word = end();
      }
      hold(symbol);
    }
    trie_.words.push_back(static_cast<std::uint32_t>(symbol));
  }
  trie_.steps.push_back(
      {first_word, end() - first_word, from, to, static_cast<std::uint32_t>(first_finished),
       static_cast<std::uint32_t>(trie_.finished.size() - first_finished), is_leaf});
}

void TrieBuilder::hold(std::size_t symbol) {
  const bool blocked = symbol < n_blocked_;
  const std::size_t first = blocked ? symbol - symbol % block_size_ : symbol;
  const std::size_t last = blocked ? std::min(first + block_size_, n_blocked_) : symbol + 1;
  for (std::size_t held = first; held < last; ++held) {
    KC_ASSERT(held < place_of_.size());
    place_of_[held] = 0;
    trie_.batches.back().symbols.push_back(static_cast<std::uint32_t>(held));
  }
}

}  // namespace kernelcore
