// The kernel of exact matches as a product of sparse features: a subsequence u of the images'
// captions is a feature, its value the sum over its occurrences of the scales of its words
// times gap_decay to the number of words left out between them.
#include <algorithm>
#include <numeric>
#include <vector>

#include "common/gram_tile.hpp"
#include "common/parallel.hpp"
#include "gram/word_sequence.hpp"

namespace kernelcore {
namespace {

// First words are dealt out to so many tasks, whose features stay in this order.
constexpr std::size_t kParts = 64;

struct Posting {
  std::uint32_t image;
  double value;
};

// Where a feature of an image meets the images of the columns.
struct Feature {
  const Posting* begin;
  const Posting* end;
  double value;
  std::uint32_t length;
};

// Texts of both inputs, those of Y behind those of X, or of one input given twice.
class Tokens {
 public:
  Tokens(const CaptionsView& X, const CaptionsView& Y, bool symmetric) {
    add(X, 0);
    if (!symmetric) add(Y, X.n_images);
  }

  std::size_t size() const { return words_.size(); }
  std::int32_t word(std::size_t token) const { return words_[token]; }
  std::uint32_t caption_end(std::size_t token) const { return caption_ends_[token]; }
  std::uint32_t image(std::size_t token) const { return images_[token]; }

 private:
  void add(const CaptionsView& captions, std::size_t first_image) {
    for (std::size_t i = 0; i < captions.n_images; ++i) {
      for (std::size_t c = captions.first_caption(i); c < captions.first_caption(i + 1); ++c) {
        const std::size_t end = words_.size() + captions.words.size(c);
        words_.insert(words_.end(), captions.words.begin(c), captions.words.end(c));
        caption_ends_.resize(end, static_cast<std::uint32_t>(end));
        images_.resize(end, static_cast<std::uint32_t>(first_image + i));
      }
    }
  }

  std::vector<std::int32_t> words_;
  std::vector<std::uint32_t> caption_ends_;
  std::vector<std::uint32_t> images_;
};

// All features whose first word is one of a task's: their postings one feature after another,
// images ascending.
struct FeatureList {
  std::vector<Posting> postings;
  std::vector<std::uint32_t> ends;     // of each feature in postings
  std::vector<std::uint32_t> lengths;  // of each feature in words
};

class FeatureFinder {
 public:
  FeatureFinder(const Tokens& tokens, const double* scale, std::size_t n_symbols,
                const SequenceOptions& options)
      : tokens_(tokens), scale_(scale), options_(options), levels_(options.max_length) {
    for (Level& level : levels_) level.counts.resize(n_symbols, 0);
  }

  // Lists the features that begin with the word found at these places, ascending.
  void find(const std::uint32_t* first, const std::uint32_t* last, FeatureList& list) {
    list_ = &list;
    Level& level = levels_[0];
    level.occurrences.clear();
    for (; first != last; ++first) {
      level.occurrences.push_back({*first, scale_[tokens_.word(*first)]});
    }
    grow(level.occurrences.data(), level.occurrences.data() + level.occurrences.size(), 1);
  }

 private:
  // Ways to arrive at the token with the present subsequence, their values summed.
  struct Occurrence {
    std::uint32_t token;
    double value;
  };
  struct Level {
    std::vector<Occurrence> occurrences;
    std::vector<std::uint32_t> counts;  // of each next word, 0 between calls
  };

  void grow(const Occurrence* first, const Occurrence* last, std::uint32_t length) {
    emit(first, last, length);
    if (length == options_.max_length) return;
    Level& level = levels_[length];
    std::vector<std::int32_t> next_words;
    for (const Occurrence* from = first; from != last; ++from) {
      for (std::uint32_t at = from->token + 1; at < tokens_.caption_end(from->token); ++at) {
        if (level.counts[tokens_.word(at)]++ == 0) next_words.push_back(tokens_.word(at));
      }
    }
    std::sort(next_words.begin(), next_words.end());
    std::uint32_t n_occurrences = 0;
    for (const std::int32_t word : next_words) {
      // From a count to where the word's occurrences begin.
      const std::uint32_t begin = n_occurrences;
      n_occurrences += level.counts[word];
      level.counts[word] = begin;
    }
    level.occurrences.resize(n_occurrences);
    for (const Occurrence* from = first; from != last; ++from) {
      double value = from->value;
      for (std::uint32_t at = from->token + 1; at < tokens_.caption_end(from->token); ++at) {
        const std::int32_t word = tokens_.word(at);
        level.occurrences[level.counts[word]++] = {at, value * scale_[word]};
        value *= options_.gap_decay;
      }
    }
    std::uint32_t begin = 0;
    for (const std::int32_t word : next_words) {
      const std::uint32_t end = level.counts[word];
      level.counts[word] = 0;
      grow(level.occurrences.data() + begin, level.occurrences.data() + end, length + 1);
      begin = end;
    }
  }

  void emit(const Occurrence* first, const Occurrence* last, std::uint32_t length) {
    while (first != last) {
      Posting posting{tokens_.image(first->token), 0.0};
      for (; first != last && tokens_.image(first->token) == posting.image; ++first) {
        posting.value += first->value;
      }
      list_->postings.push_back(posting);
    }
    list_->ends.push_back(static_cast<std::uint32_t>(list_->postings.size()));
    list_->lengths.push_back(length);
  }

  const Tokens& tokens_;
  const double* scale_;
  const SequenceOptions& options_;
  std::vector<Level> levels_;
  FeatureList* list_ = nullptr;
};

// Tokens of equal words together, words ascending, and where each word's tokens begin.
struct WordIndex {
  WordIndex(const Tokens& tokens, std::size_t n_symbols)
      : begins(n_symbols + 1, 0), places(tokens.size()) {
    for (std::size_t k = 0; k < tokens.size(); ++k) ++begins[tokens.word(k) + 1];
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    std::vector<std::uint32_t> next(begins.begin(), begins.end() - 1);
    for (std::size_t k = 0; k < tokens.size(); ++k) {
      places[next[tokens.word(k)]++] = static_cast<std::uint32_t>(k);
    }
  }

  // The first word of a part: each has about as many tokens as the others.
  std::size_t first_word(std::size_t part) const {
    const std::size_t n_before = places.size() * part / kParts;
    if (part == kParts) return begins.size() - 1;
    return static_cast<std::size_t>(
        std::lower_bound(begins.begin(), begins.end() - 1, n_before) - begins.begin());
  }

  std::vector<std::uint32_t> begins;
  std::vector<std::uint32_t> places;
};

// The features of each row image, in the order of `lists`.
struct RowFeatures {
  RowFeatures(const std::vector<FeatureList>& lists, std::size_t n_rows, bool symmetric)
      : begins(n_rows + 1, 0) {
    const auto for_each = [&](const auto& visit) {
      for (const FeatureList& list : lists) {
        const Posting* first = list.postings.data();
        for (std::size_t f = 0; f < list.ends.size(); ++f) {
          const Posting* end = list.postings.data() + list.ends[f];
          const Posting* end_of_rows = first;
          while (end_of_rows != end && end_of_rows->image < n_rows) ++end_of_rows;
          for (const Posting* row = first; row != end_of_rows; ++row) {
            visit(row->image,
                  Feature{symmetric ? row : end_of_rows, end, row->value, list.lengths[f]});
          }
          first = end;
        }
      }
    };
    for_each([&](std::uint32_t row, const Feature&) { ++begins[row + 1]; });
    std::partial_sum(begins.begin(), begins.end(), begins.begin());
    features.resize(begins.back());
    std::vector<std::size_t> next(begins.begin(), begins.end() - 1);
    for_each(
        [&](std::uint32_t row, const Feature& feature) { features[next[row]++] = feature; });
  }

  std::vector<std::size_t> begins;
  std::vector<Feature> features;
};

std::vector<double> self_similarities(const std::vector<FeatureList>& lists,
                                      std::size_t n_images) {
  std::vector<double> self(n_images, 0.0);
  for (const FeatureList& list : lists) {
    for (const Posting& posting : list.postings) {
      self[posting.image] += posting.value * posting.value;
    }
  }
  return self;
}

}  // namespace

template <class Out>
void word_sequence_exact(const CaptionsView& X, const CaptionsView& Y, const double* scale,
                         std::size_t n_symbols, const SequenceOptions& options,
                         MatrixView<Out> K, std::size_t n_threads, Monitor& monitor) {
  const bool symmetric = X.is(Y);
  const std::size_t n_parts = options.per_length ? options.max_length : 1;
  const std::size_t n_cols = Y.n_images;
  const std::size_t first_col = symmetric ? 0 : X.n_images;  // among the postings' images
  const std::vector<TileRange> tiles = row_blocks(X.n_images, n_cols, symmetric, n_parts);

  const Tokens tokens(X, Y, symmetric);
  const WordIndex index(tokens, n_symbols);
  std::vector<FeatureList> lists(kParts);
  std::vector<FeatureFinder> finders(n_threads,
                                     FeatureFinder(tokens, scale, n_symbols, options));
  Stage finding(monitor, 0, kParts + tiles.size());
  parallel_for(kParts, n_threads, finding, [&](std::size_t part, std::size_t worker) {
    for (std::size_t word = index.first_word(part); word < index.first_word(part + 1); ++word) {
      finders[worker].find(index.places.data() + index.begins[word],
                           index.places.data() + index.begins[word + 1], lists[part]);
    }
  });
  const RowFeatures rows(lists, X.n_images, symmetric);
  std::vector<double> self;
  if (options.normalize) self = self_similarities(lists, first_col + n_cols);

  std::vector<std::vector<double>> worker_sums(n_threads);
  Stage multiplying(monitor, kParts, kParts + tiles.size());
  parallel_for(tiles.size(), n_threads, multiplying, [&](std::size_t task, std::size_t worker) {
    const TileRange& tile = tiles[task];
    std::vector<double>& sums = worker_sums[worker];
    sums.assign(tile.n_rows() * tile.n_cols() * n_parts, 0.0);
    double* row_sums = sums.data();
    for (std::size_t row = tile.row_begin; row < tile.row_end; ++row) {
      for (std::size_t f = rows.begins[row]; f < rows.begins[row + 1]; ++f) {
        const Feature& feature = rows.features[f];
        const std::size_t part = options.per_length ? feature.length - 1 : 0;
        for (const Posting* posting = feature.begin; posting != feature.end; ++posting) {
          const std::size_t col = posting->image - first_col - tile.col_begin;
          row_sums[col * n_parts + part] += feature.value * posting->value;
        }
      }
      row_sums += tile.n_cols() * n_parts;
    }
    if (options.normalize) {
      normalize_tile(sums.data(), tile, {self.data(), self.data() + first_col});
    }
    write_tile(sums.data(), n_parts, tile, symmetric, K);
  });
}

template void word_sequence_exact<float>(const CaptionsView&, const CaptionsView&,
                                         const double*, std::size_t, const SequenceOptions&,
                                         MatrixView<float>, std::size_t, Monitor&);
template void word_sequence_exact<double>(const CaptionsView&, const CaptionsView&,
                                          const double*, std::size_t, const SequenceOptions&,
                                          MatrixView<double>, std::size_t, Monitor&);

}  // namespace kernelcore
