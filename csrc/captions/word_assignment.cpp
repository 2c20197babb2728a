#include "captions/word_assignment.hpp"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "assignment/assignment.hpp"
#include "common/aligned_buffer.hpp"
#include "common/normalized_gram.hpp"
#include "common/parallel.hpp"
#include "common/task_tiles.hpp"

namespace kernelcore {
namespace {

// Images of a task that finds self-similarities.
constexpr std::size_t kSelfImages = 64;

// Work for each pair of words, and for each word that is sorted.
constexpr std::size_t kWorkPerPair = 4;
constexpr std::size_t kWorkPerWord = 100;

// The captions of the columns; each word is the place of its symbol among the different ones.
struct Columns {
  Columns(const CaptionsView& captions, std::size_t first_image, std::size_t last_image,
          Worker& worker)
      : captions(captions), first(captions.first_caption(first_image)) {
    const std::size_t last = captions.first_caption(last_image);
    const std::int32_t* const begin = captions.words.values + captions.words.offsets[first];
    const std::int32_t* const end = captions.words.values + captions.words.offsets[last];
    symbols.assign(begin, end);
    std::sort(symbols.begin(), symbols.end(), [&](std::int32_t a, std::int32_t b) {
      worker.spend(1);
      return a < b;
    });
    symbols.erase(std::unique(symbols.begin(), symbols.end()), symbols.end());
    for (const std::int32_t* word = begin; word != end; ++word) {
      worker.spend(kWorkPerWord);
      const auto place = std::lower_bound(symbols.begin(), symbols.end(), *word);
      places.push_back(static_cast<std::uint32_t>(place - symbols.begin()));
    }
    for (std::size_t c = first; c < last; ++c)
      longest = std::max(longest, captions.words.size(c));
  }

  const std::uint32_t* words(std::size_t caption) const {
    return places.data() + (captions.words.offsets[caption] - captions.words.offsets[first]);
  }

  const CaptionsView captions;
  const std::size_t first;            // caption
  std::vector<std::int32_t> symbols;  // ascending
  std::vector<std::uint32_t> places;
  std::size_t longest = 0;
};

// Similarities of one row caption to all symbols of the columns.
class RowCaption {
 public:
  RowCaption(const SymbolSimilarity& similarity, Worker& worker)
      : similarity_(similarity),
        worker_(worker),
        place_of_(check_fits<std::int32_t>(similarity.n_symbols, "symbols"), -1),
        solver_(worker) {}

  void take(const std::int32_t* words, std::size_t n_words, const Columns& columns) {
    n_words_ = n_words;
    const std::size_t longest = std::max(n_words, columns.longest);
    width_ = rounded_to_vectors(longest);
    const std::size_t n_symbols = columns.symbols.size();
    table_ = costs_.with_room_for(n_symbols * width_);
    worker_.spend(n_symbols * width_);
    std::fill_n(table_, n_symbols * width_, 0.0f);
    for (std::size_t p = 0; p < n_symbols; ++p) {
      place_of_[columns.symbols[p]] = static_cast<std::int32_t>(p);
    }
    for (std::size_t i = 0; i < n_words; ++i) fill(words[i], i, columns.symbols);
    for (const std::int32_t symbol : columns.symbols) place_of_[symbol] = -1;

    best_.resize(n_symbols);
    for (std::size_t p = 0; p < n_symbols; ++p) {
      const float* const costs = table_ + p * width_;
      const float* const lowest = std::min_element(costs, costs + n_words);
      best_[p] = n_words == 0 ? Best{0.0f, 0}
                              : Best{-*lowest, static_cast<std::uint32_t>(lowest - costs)};
    }
    wanted_by_.assign(width_, 0);
  }

  double compare(const std::uint32_t* words, std::size_t n_words) {
    worker_.spend(kWorkPerPair * (1 + n_words));
    // Words that all prefer different row words are matched with these.
    ++round_;
    rows_.clear();
    double total = 0;
    bool agree = true;
    for (std::size_t j = 0; j < n_words; ++j) {
      const Best& best = best_[words[j]];
      if (best.value == 0) continue;  // no match of this word adds anything
      rows_.push_back(table_ + words[j] * width_);
      total += best.value;
      agree &= wanted_by_[best.word] != round_;
      wanted_by_[best.word] = round_;
    }
    return agree ? total : assign();
  }

 private:
  struct Best {
    float value;
    std::uint32_t word;
  };

  // A word that is better left alone takes a column of cost 0: each word can have its own.
  double assign() {
    // Whole vectors: the columns of cost 0 beyond the last word count.
    solver_.attach(rows_.data(), rows_.size(),
                   rounded_to_vectors(std::max(n_words_, rows_.size())));
    solver_.match(rows_.size());
    double total = 0;
    solver_.each_pair([&](std::size_t row, std::size_t col) {
      total -= static_cast<double>(rows_[row][col]);
    });
    return total;
  }

  void fill(std::int32_t symbol, std::size_t i, const std::vector<std::int32_t>& symbols) {
    const float* const scale = similarity_.scale;
    worker_.spend(symbols.size());
    const auto put = [&](std::size_t place, std::int32_t other, float value) {
      table_[place * width_ + i] = std::min(0.0f, -value * (scale[symbol] * scale[other]));
    };
    if (static_cast<std::size_t>(symbol) >= similarity_.n_words) {
      if (place_of_[symbol] >= 0) put(place_of_[symbol], symbol, 1.0f);
    } else if (similarity_.dense != nullptr) {
      const float* const row = similarity_.dense + symbol * similarity_.n_words;
      for (std::size_t p = 0; p < symbols.size(); ++p) {
        if (static_cast<std::size_t>(symbols[p]) >= similarity_.n_words) break;
        put(p, symbols[p], row[symbols[p]]);
      }
    } else {
      const RaggedView<std::int32_t>& others = similarity_.columns;
      for (std::int64_t at = others.offsets[symbol]; at < others.offsets[symbol + 1]; ++at) {
        const std::int32_t other = others.values[at];
        if (place_of_[other] >= 0) put(place_of_[other], other, similarity_.values[at]);
      }
    }
  }

  const SymbolSimilarity& similarity_;
  Worker& worker_;
  std::vector<std::int32_t> place_of_;  // of each symbol among the columns', or -1
  std::size_t n_words_ = 0;
  std::size_t width_ = 0;
  AlignedBuffer<float> costs_;
  float* table_ = nullptr;                // [symbol][word], 0 beyond the last word
  std::vector<Best> best_;                // of each symbol
  std::vector<std::uint64_t> wanted_by_;  // the last round in which a word was preferred
  std::uint64_t round_ = 0;
  std::vector<const float*> rows_;
  AssignmentSolver<float> solver_;
};

class TileWorker {
 public:
  TileWorker(const SymbolSimilarity& similarity, Worker& worker) : row_(similarity, worker) {}

  double* compute(const CaptionsView& X, const Columns& Y, const TileRange& tile) {
    sums_.assign(tile.n_rows() * tile.n_cols(), 0.0);
    double* sums = sums_.data();
    for (std::size_t x = tile.row_begin; x < tile.row_end; ++x, sums += tile.n_cols()) {
      for (std::size_t s = X.first_caption(x); s < X.first_caption(x + 1); ++s) {
        row_.take(X.words.begin(s), X.words.size(s), Y);
        for (std::size_t y = tile.col_begin; y < tile.col_end; ++y) {
          for (std::size_t t = Y.captions.first_caption(y); t < Y.captions.first_caption(y + 1);
               ++t) {
            sums[y - tile.col_begin] += row_.compare(Y.words(t), Y.captions.words.size(t));
          }
        }
      }
    }
    return sums_.data();
  }

 private:
  RowCaption row_;
  std::vector<double> sums_;
};

}  // namespace

template <class Out>
void word_assignment(const CaptionsView& X, const CaptionsView& Y,
                     const SymbolSimilarity& similarity, bool normalize, MatrixView<Out> K,
                     std::size_t n_threads, Monitor& monitor) {
  KC_ASSERT(similarity.is_valid());
  KC_ASSERT(X.is_valid(similarity.n_symbols) && Y.is_valid(similarity.n_symbols));
  Crew crew(n_threads, monitor);
  std::vector<TileRange> tiles = cut_tiles(
      X.n_images, Y.n_images, X.is(Y), 1,
      [&](std::size_t row) { return static_cast<double>(kWorkPerPair * X.n_words(row)); },
      [&](std::size_t col) { return static_cast<double>(Y.n_words(col)); });
  NormalizedGram gram(X, Y, std::move(tiles), 1, normalize, kSelfImages, crew);
  PerWorker<TileWorker> workers(n_threads);
  gram.find_self_similarities([&](const CaptionsView& captions, std::size_t first,
                                  std::size_t last, double* self, Worker& worker) {
    for (std::size_t i = first; i < last; ++i) {
      const Columns columns(captions, i, i + 1, worker);
      TileWorker& own = workers.of(worker, similarity);
      self[i] = *own.compute(captions, columns, {i, i + 1, i, i + 1});
    }
  });
  const Columns columns(Y, 0, Y.n_images, crew.caller());
  gram.write(K, [&](const TileRange& tile, Worker& worker) {
    return workers.of(worker, similarity).compute(X, columns, tile);
  });
}

template void word_assignment<float>(const CaptionsView&, const CaptionsView&,
                                     const SymbolSimilarity&, bool, MatrixView<float>,
                                     std::size_t, Monitor&);
template void word_assignment<double>(const CaptionsView&, const CaptionsView&,
                                      const SymbolSimilarity&, bool, MatrixView<double>,
                                      std::size_t, Monitor&);

}  // namespace kernelcore
