// The kernel of exact matches as a product of sparse features: a subsequence u of the images'
// captions is a feature, its value the sum over its occurrences of the scales of its words
// times gap_decay to the number of words left out between them.
#include <algorithm>
#include <utility>
#include <vector>

#include "captions/word_sequence.hpp"
#include "common/gram_tile.hpp"
#include "common/groups.hpp"
#include "common/parallel.hpp"
#include "common/task_tiles.hpp"

namespace kernelcore {
namespace {

// Tasks that find features. Each takes a range of first words, so that the order of the
// features does not depend on the number of threads.
constexpr std::size_t kParts = 64;

// The share of the columns that have a feature of a row; seldom more.
constexpr double kColumnsPerFeature = 0.125;

// Work for each word that is sorted, and each feature that is listed.
constexpr std::size_t kWorkPerToken = 8;
constexpr std::size_t kWorkPerFeature = 100;

struct Posting {
  std::uint32_t image;
  double value;
};

// A feature of a row image, and its postings among the column images.
struct Feature {
  const Posting* begin;
  const Posting* end;
  double value;
  std::uint32_t length;
};

// The words of X and then those of Y, or of one input that is given twice.
class Tokens {
 public:
  Tokens(const CaptionsView& X, const CaptionsView& Y, bool symmetric, Worker& worker) {
    const std::size_t n_more = symmetric ? 0 : Y.n_images;
    check_fits<std::uint32_t>(X.n_images + n_more, "images");
    check_fits<std::uint32_t>(X.words.n_values() + (symmetric ? 0 : Y.words.n_values()),
                              "words");
    add(X, 0, worker);
    if (!symmetric) add(Y, X.n_images, worker);
  }

  std::size_t size() const { return words_.size(); }
  std::int32_t word(std::size_t token) const { return words_[token]; }
  std::uint32_t caption_end(std::size_t token) const { return caption_ends_[token]; }
  std::uint32_t image(std::size_t token) const { return images_[token]; }

 private:
  void add(const CaptionsView& captions, std::size_t first_image, Worker& worker) {
    for (std::size_t i = 0; i < captions.n_images; ++i) {
      worker.spend(kWorkPerToken * captions.n_words(i));
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

// The features that one task finds: postings, one feature after another, images ascending.
struct FeatureList {
  std::vector<Posting> postings;
  std::vector<std::uint32_t> ends;     // of each feature in postings
  std::vector<std::uint32_t> lengths;  // of each feature in words
};

class FeatureFinder {
 public:
  FeatureFinder(const Tokens& tokens, const double* scale, std::size_t n_symbols,
                const SequenceOptions& options, Worker& worker)
      : tokens_(tokens),
        scale_(scale),
        options_(options),
        worker_(worker),
        levels_(options.max_length) {
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
  // All ways to end the present subsequence at the token, their values summed.
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
    std::size_t n_occurrences = 0;
    for (const Occurrence* from = first; from != last; ++from) {
      const std::size_t n_next = tokens_.caption_end(from->token) - from->token - 1;
      worker_.spend(kWorkPerToken * n_next);
      n_occurrences += n_next;
      for (std::uint32_t at = from->token + 1; at < tokens_.caption_end(from->token); ++at) {
        if (level.counts[tokens_.word(at)]++ == 0) next_words.push_back(tokens_.word(at));
      }
    }
    std::sort(next_words.begin(), next_words.end());
    check_fits<std::uint32_t>(n_occurrences, "occurrences of a subsequence");
    std::uint32_t next_begin = 0;
    for (const std::int32_t word : next_words) {
      // From a count to where the word's occurrences begin.
      const std::uint32_t begin = next_begin;
      next_begin += level.counts[word];
      level.counts[word] = begin;
    }
    level.occurrences.resize(n_occurrences);
    for (const Occurrence* from = first; from != last; ++from) {
      worker_.spend(tokens_.caption_end(from->token) - from->token);
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
    worker_.spend(kWorkPerFeature + static_cast<std::size_t>(last - first));
    while (first != last) {
      Posting posting{tokens_.image(first->token), 0.0};
      for (; first != last && tokens_.image(first->token) == posting.image; ++first) {
        posting.value += first->value;
      }
      list_->postings.push_back(posting);
    }
    list_->ends.push_back(
        narrow<std::uint32_t>(list_->postings.size(), "postings of subsequences"));
    list_->lengths.push_back(length);
  }

  const Tokens& tokens_;
  const double* scale_;
  const SequenceOptions& options_;
  Worker& worker_;
  std::vector<Level> levels_;
  FeatureList* list_ = nullptr;
};

Groups<std::uint32_t> tokens_by_word(const Tokens& tokens, std::size_t n_symbols,
                                     Worker& worker) {
  return grouped<std::uint32_t>(n_symbols, [&](const auto& add) {
    for (std::size_t k = 0; k < tokens.size(); ++k) {
      worker.spend(kWorkPerToken);
      add(tokens.word(k), static_cast<std::uint32_t>(k));
    }
  });
}

// The first word of a part: each part has about the same number of tokens.
std::size_t first_word(const Groups<std::uint32_t>& by_word, std::size_t part) {
  const std::vector<std::size_t>& begins = by_word.begins;
  if (part == kParts) return begins.size() - 1;
  const std::size_t n_before = by_word.values.size() * part / kParts;
  return static_cast<std::size_t>(std::lower_bound(begins.begin(), begins.end() - 1, n_before) -
                                  begins.begin());
}

// The features of each row image, in the order of `lists`.
Groups<Feature> features_by_row(const std::vector<FeatureList>& lists, std::size_t n_rows,
                                bool symmetric, Worker& worker) {
  return grouped<Feature>(n_rows, [&](const auto& add) {
    for (const FeatureList& list : lists) {
      const Posting* first = list.postings.data();
      for (std::size_t f = 0; f < list.ends.size(); ++f) {
        const Posting* end = list.postings.data() + list.ends[f];
        const Posting* end_of_rows = first;
        while (end_of_rows != end && end_of_rows->image < n_rows) ++end_of_rows;
        worker.spend(kWorkPerToken * static_cast<std::size_t>(end_of_rows - first));
        for (const Posting* row = first; row != end_of_rows; ++row) {
          add(row->image, {symmetric ? row : end_of_rows, end, row->value, list.lengths[f]});
        }
        first = end;
      }
    }
  });
}

// The postings of a feature that belong to columns of a tile.
std::pair<const Posting*, const Posting*> within(const Feature& feature, const TileRange& tile,
                                                 std::size_t first_col, std::size_t n_cols) {
  const auto first_of = [&](std::size_t col) {
    const std::size_t first = first_col + col;
    if (feature.begin == feature.end || feature.begin->image >= first) return feature.begin;
    return std::lower_bound(
        feature.begin, feature.end, first,
        [](const Posting& posting, std::size_t image) { return posting.image < image; });
  };
  return {first_of(tile.col_begin),
          tile.col_end < n_cols ? first_of(tile.col_end) : feature.end};
}

// Of a text of n words, of length 1 .. max_length.
double n_subsequences(std::size_t n, std::size_t max_length) {
  double sum = 0, of_length = 1;
  for (std::size_t l = 1; l <= std::min(n, max_length); ++l) {
    of_length *= static_cast<double>(n + 1 - l) / static_cast<double>(l);
    sum += of_length;
  }
  return sum;
}

std::vector<double> self_similarities(const std::vector<FeatureList>& lists,
                                      std::size_t n_images, Worker& worker) {
  std::vector<double> self(n_images, 0.0);
  for (const FeatureList& list : lists) {
    for (const Posting& posting : list.postings) {
      worker.spend(1);
      self[posting.image] += posting.value * posting.value;
    }
  }
  check_finite(self);
  return self;
}

}  // namespace

template <class Out>
void word_sequence_exact(const CaptionsView& X, const CaptionsView& Y, const double* scale,
                         std::size_t n_symbols, const SequenceOptions& options,
                         MatrixView<Out> K, std::size_t n_threads, Monitor& monitor) {
  KC_ASSERT(X.is_valid(n_symbols) && Y.is_valid(n_symbols));
  const bool symmetric = X.is(Y);
  const std::size_t n_parts = options.per_length ? options.max_length : 1;
  const std::size_t n_cols = Y.n_images;
  KC_ASSERT(K.n_rows == X.n_images && K.n_cols == n_cols * n_parts);
  const std::size_t first_col = symmetric ? 0 : X.n_images;  // among the postings' images
  Crew crew(n_threads, monitor);
  Worker& caller = crew.caller();
  const auto work_of_row = [&](std::size_t row) {
    double n_features = 0;
    for (std::size_t c = X.first_caption(row); c < X.first_caption(row + 1); ++c) {
      n_features += n_subsequences(X.words.size(c), options.max_length);
    }
    return n_features * kColumnsPerFeature;
  };
  const std::vector<TileRange> tiles = cut_tiles(X.n_images, n_cols, symmetric, n_parts,
                                                 work_of_row, [](std::size_t) { return 1.0; });
  crew.expect(kParts + tiles.size());

  const Tokens tokens(X, Y, symmetric, caller);
  const Groups<std::uint32_t> by_word = tokens_by_word(tokens, n_symbols, caller);
  std::vector<FeatureList> lists(kParts);
  PerWorker<FeatureFinder> finders(n_threads);
  crew.parallel_for(kParts, [&](std::size_t part, Worker& worker) {
    FeatureFinder& finder = finders.of(worker, tokens, scale, n_symbols, options);
    const std::size_t end = first_word(by_word, part + 1);
    for (std::size_t word = first_word(by_word, part); word < end; ++word) {
      finder.find(by_word.begin(word), by_word.end(word), lists[part]);
    }
  });
  const Groups<Feature> rows = features_by_row(lists, X.n_images, symmetric, caller);
  std::vector<double> self;
  if (options.normalize) self = self_similarities(lists, first_col + n_cols, caller);

  std::vector<std::vector<double>> worker_sums(n_threads);
  crew.parallel_for(tiles.size(), [&](std::size_t task, Worker& worker) {
    const TileRange& tile = tiles[task];
    std::vector<double>& sums = worker_sums[worker.index()];
    sums.assign(tile.n_rows() * tile.n_cols() * n_parts, 0.0);
    double* row_sums = sums.data();
    for (std::size_t row = tile.row_begin; row < tile.row_end; ++row) {
      for (const Feature* at = rows.begin(row); at != rows.end(row); ++at) {
        const Feature& feature = *at;
        const std::size_t part = options.per_length ? feature.length - 1 : 0;
        const auto [begin, end] = within(feature, tile, first_col, n_cols);
        worker.spend(1 + static_cast<std::size_t>(end - begin));
        for (const Posting* posting = begin; posting != end; ++posting) {
          const std::size_t col = posting->image - first_col - tile.col_begin;
          row_sums[col * n_parts + part] += feature.value * posting->value;
        }
      }
      row_sums += tile.n_cols() * n_parts;
    }
    if (options.normalize) {
      normalize_tile(sums.data(), tile, {self.data(), self.data() + first_col});
    }
    write_tile(sums.data(), n_parts, tile, symmetric, K, worker);
  });
}

template void word_sequence_exact<float>(const CaptionsView&, const CaptionsView&,
                                         const double*, std::size_t, const SequenceOptions&,
                                         MatrixView<float>, std::size_t, Monitor&);
template void word_sequence_exact<double>(const CaptionsView&, const CaptionsView&,
                                          const double*, std::size_t, const SequenceOptions&,
                                          MatrixView<double>, std::size_t, Monitor&);

}  // namespace kernelcore
