#include "captions/word_sequence.hpp"

#include <algorithm>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "captions/caption_trie.hpp"
#include "captions/word_sequence_simd.hpp"
#include "common/aligned_buffer.hpp"
#include "common/normalized_gram.hpp"
#include "common/parallel.hpp"
#include "common/task_tiles.hpp"

namespace kernelcore {
namespace {

// The table of similarities between the words of a group of row captions and those of a batch.
constexpr std::size_t kTableBytes = std::size_t{16} << 20;

// Row captions of a task. Many where there are many, because each task reads all columns.
constexpr std::size_t kMinTaskCaptions = 128;
constexpr std::size_t kMaxTaskCaptions = 512;
constexpr std::size_t kTasks = 48;

// Pairs of words of a task, up to half a second of work: tasks are longer than elsewhere,
// because more columns share more prefixes. The order of summation depends on where columns are
// cut, so another number changes the last bits of the result. Beyond kLoopLengths the loops are
// not specialised, and a pair takes kWorkWithoutLoop times the work for each length.
constexpr std::size_t kMaxTaskWordPairs = std::size_t{1} << 31;
constexpr std::size_t kLoopLengths = 3;
constexpr std::size_t kWorkWithoutLoop = 4;

// So few row captions do not pay for sorting the columns and finding their prefixes: a search
// for one sentence took three times as long. Without prefixes nothing depends on where columns
// are cut, and tasks are short enough for several threads.
constexpr std::size_t kFewCaptions = 16;
constexpr std::size_t kFewTaskWords = std::size_t{1} << 16;

// Images of a task that finds self-similarities.
constexpr std::size_t kSelfImages = 8;

// Work for a vector of sums, or of similarities.
constexpr std::size_t kWorkPerSum = 8;

// Row captions side by side, one to a lane.
struct RowGroup {
  std::size_t n_words;                // of the longest of them
  std::vector<std::int32_t> symbols;  // [word][lane], -1 beyond a caption's end
};

class TileWorker {
 public:
  TileWorker(const SymbolSimilarity& similarity, const SequenceOptions& options, Worker& worker)
      : worker_(worker),
        similarity_(similarity),
        options_(options),
        simd_(KERNELCORE_DISPATCH(sequence_kernels)),
        n_parts_(options.per_length ? options.max_length : 1),
        trie_builder_(similarity.n_symbols,
                      similarity.dense == nullptr ? 0 : similarity.n_words, simd_.width) {}

  // Sums of the tile, [row][column][part]; `sorted` are the captions of its columns, or null if
  // the prefixes that they share are not looked for.
  double* compute(const CaptionsView& X, const CaptionsView& Y, const TileRange& tile,
                  const std::vector<std::uint32_t>* sorted,
                  const std::vector<std::uint32_t>& image_of) {
    const std::size_t row_size = tile.n_cols() * n_parts_;
    sums_.assign(tile.n_rows() * row_size, 0.0);
    const std::vector<RowCaption> rows = captions_by_length(X, tile);
    if (rows.empty()) return sums_.data();
    const std::size_t bytes_per_symbol = rows.back().n_words * simd_.width * sizeof(float);
    const std::size_t max_symbols = kTableBytes / bytes_per_symbol;
    const CaptionTrie& columns =
        sorted != nullptr
            ? trie_builder_.build(Y.words, *sorted, max_symbols, worker_)
            : trie_builder_.build_unshared(Y.words, Y.first_caption(tile.col_begin),
                                           Y.first_caption(tile.col_end), max_symbols, worker_);
    finished_.resize(columns.finished.size());
    std::transform(columns.finished.begin(), columns.finished.end(), finished_.begin(),
                   [&](std::uint32_t caption) { return image_of[caption] - tile.col_begin; });
    float* lane_sums = lane_sums_.with_room_for(row_size * simd_.width);
    std::fill_n(lane_sums, row_size * simd_.width, 0.0f);

    std::vector<double*> totals(simd_.width);
    for (std::size_t first = 0; first < rows.size(); first += simd_.width) {
      worker_.spend(kWorkPerSum * row_size);
      const std::size_t n_rows = std::min(simd_.width, rows.size() - first);
      RowGroup group{rows[first + n_rows - 1].n_words, {}};
      group.symbols.assign(group.n_words * simd_.width, -1);
      std::fill(totals.begin(), totals.end(), nullptr);
      for (std::size_t lane = 0; lane < n_rows; ++lane) {
        const RowCaption& row = rows[first + lane];
        for (std::size_t i = 0; i < row.n_words; ++i) {
          group.symbols[i * simd_.width + lane] = row.words[i];
        }
        totals[lane] = sums_.data() + (row.image - tile.row_begin) * row_size;
      }
      walk_columns(group, columns, lane_sums);
      simd_.flush(lane_sums, row_size, totals.data());
    }
    return sums_.data();
  }

 private:
  struct RowCaption {
    const std::int32_t* words;
    std::size_t n_words;
    std::size_t image;
  };

  // Without empty ones. Captions of equal length keep their order.
  static std::vector<RowCaption> captions_by_length(const CaptionsView& X,
                                                    const TileRange& tile) {
    std::vector<RowCaption> rows;
    for (std::size_t image = tile.row_begin; image < tile.row_end; ++image) {
      for (std::size_t c = X.first_caption(image); c < X.first_caption(image + 1); ++c) {
        if (X.words.size(c) > 0) rows.push_back({X.words.begin(c), X.words.size(c), image});
      }
    }
    std::stable_sort(rows.begin(), rows.end(), [](const RowCaption& a, const RowCaption& b) {
      return a.n_words < b.n_words;
    });
    return rows;
  }

  void walk_columns(const RowGroup& group, const CaptionTrie& columns, float* lane_sums) {
    const std::size_t state = state_size(group.n_words, options_.max_length) * simd_.width;
    SequenceWalk walk{};
    walk.words = columns.words.data();
    walk.finished = finished_.data();
    walk.n_rows = group.n_words;
    walk.max_length = options_.max_length;
    walk.gap_decay = static_cast<float>(options_.gap_decay);
    walk.per_length = options_.per_length;
    walk.states = states_.with_room_for(columns.n_slots * state);
    walk.scratch = scratch_.with_room_for(2 * options_.max_length * simd_.width);
    walk.sums = lane_sums;
    walk.worker = &worker_;
    std::fill_n(walk.states, state, 0.0f);
    for (const CaptionTrie::Batch& batch : columns.batches) {
      walk.table = fill_table(group, batch);
      walk.steps = columns.steps.data() + batch.first_step;
      walk.n_steps = batch.n_steps;
      simd_.walk(walk);
    }
  }

  const float* fill_table(const RowGroup& group, const CaptionTrie::Batch& batch) {
    const std::size_t line = group.n_words * simd_.width;
    float* table = table_.with_room_for(batch.symbols.size() * line);
    worker_.spend(batch.symbols.size() * group.n_words * kWorkPerSum);
    const float* scale = similarity_.scale;
    std::size_t n_filled = 0;
    if (similarity_.dense != nullptr) {
      n_filled = static_cast<std::size_t>(
          std::lower_bound(batch.symbols.begin(), batch.symbols.end(), similarity_.n_words) -
          batch.symbols.begin());
      rows_.resize(line);
      row_scales_.resize(line);
      for (std::size_t k = 0; k < line; ++k) {
        const std::int32_t symbol = group.symbols[k];
        const bool has_row = symbol >= 0 && is_word(symbol);
        rows_[k] = similarity_.dense + (has_row ? symbol * similarity_.n_words : 0);
        row_scales_[k] = has_row ? scale[symbol] : 0.0f;
      }
      simd_.fill(rows_.data(), row_scales_.data(), group.n_words, batch.symbols.data(), scale,
                 n_filled, table);
    }
    std::fill(table + n_filled * line, table + batch.symbols.size() * line, 0.0f);
    trie_builder_.with_places(batch, [&](const std::vector<std::int32_t>& place_of) {
      for (std::size_t k = 0; k < line; ++k) {
        const std::int32_t symbol = group.symbols[k];
        if (symbol < 0) continue;
        const auto put = [&](std::int32_t other, float value) {
          const std::int32_t place = place_of[other];
          if (place >= 0) table[place * line + k] = value * (scale[symbol] * scale[other]);
        };
        if (!is_word(symbol)) {
          put(symbol, 1.0f);
        } else if (similarity_.values != nullptr) {
          const RaggedView<std::int32_t>& columns = similarity_.columns;
          worker_.spend(columns.size(symbol));
          for (std::int64_t at = columns.offsets[symbol]; at < columns.offsets[symbol + 1];
               ++at) {
            put(columns.values[at], similarity_.values[at]);
          }
        }
      }
    });
    return table;
  }

  bool is_word(std::int32_t symbol) const {
    return static_cast<std::size_t>(symbol) < similarity_.n_words;
  }

  Worker& worker_;
  const SymbolSimilarity& similarity_;
  const SequenceOptions& options_;
  const SequenceKernels simd_;
  const std::size_t n_parts_;
  TrieBuilder trie_builder_;
  std::vector<std::uint32_t> finished_;  // images of the tile, by finished caption
  AlignedBuffer<float> table_, states_, scratch_, lane_sums_;
  std::vector<const float*> rows_;
  std::vector<float> row_scales_;
  std::vector<double> sums_;
};

std::vector<std::uint32_t> images_of_captions(const CaptionsView& captions) {
  check_fits<std::uint32_t>(captions.n_images, "images");
  std::vector<std::uint32_t> images(captions.words.n_rows);
  for (std::size_t i = 0; i < captions.n_images; ++i) {
    std::fill(images.begin() + captions.image_offsets[i],
              images.begin() + captions.image_offsets[i + 1], static_cast<std::uint32_t>(i));
  }
  return images;
}

bool are_few(const CaptionsView& rows) { return rows.words.n_rows <= kFewCaptions; }

// Tiles of whole images that cover K, or its upper triangle.
std::vector<TileRange> cut(const CaptionsView& X, const CaptionsView& Y, bool symmetric,
                           const SequenceOptions& options) {
  const std::size_t n_parts = options.per_length ? options.max_length : 1;
  const std::size_t n_captions =
      std::clamp(X.words.n_rows / kTasks, kMinTaskCaptions, kMaxTaskCaptions);
  const std::size_t max_pairs =
      options.max_length <= kLoopLengths
          ? kMaxTaskWordPairs
          : kMaxTaskWordPairs / (kWorkWithoutLoop * options.max_length);
  std::vector<TileRange> tiles;
  for (std::size_t row = 0; row < X.n_images;) {
    std::size_t row_end = row + 1;
    while (row_end < X.n_images && row_end - row < n_captions &&
           X.first_caption(row_end + 1) - X.first_caption(row) <= n_captions) {
      ++row_end;
    }
    std::size_t n_row_words = 0;
    for (std::size_t i = row; i < row_end; ++i) n_row_words += X.n_words(i);
    std::size_t max_words = max_pairs / std::max<std::size_t>(1, n_row_words);
    if (are_few(X)) max_words = std::min(max_words, kFewTaskWords);
    const std::size_t max_cols =
        std::max<std::size_t>(1, kMaxTaskSums / (n_parts * (row_end - row)));
    for (std::size_t col = symmetric ? row : 0; col < Y.n_images;) {
      std::size_t col_end = col + 1;
      std::size_t n_words = Y.n_words(col);
      while (col_end < Y.n_images && col_end - col < max_cols) {
        n_words += Y.n_words(col_end);
        if (n_words > max_words) break;
        ++col_end;
      }
      tiles.push_back({row, row_end, col, col_end});
      col = col_end;
    }
    row = row_end;
  }
  return tiles;
}

std::string negative_self_similarity(std::size_t image) {
  return "word_kernel must not give an image a negative similarity with itself, as it does to "
         "the one at position " +
         std::to_string(image) + "; normalize=False does without";
}

}  // namespace

template <class Out>
void word_sequence(const CaptionsView& X, const CaptionsView& Y,
                   const SymbolSimilarity& similarity, const SequenceOptions& options,
                   MatrixView<Out> K, std::size_t n_threads, Monitor& monitor) {
  KC_ASSERT(similarity.is_valid());
  KC_ASSERT(X.is_valid(similarity.n_symbols) && Y.is_valid(similarity.n_symbols));
  const std::size_t n_parts = options.per_length ? options.max_length : 1;
  Crew crew(n_threads, monitor);
  NormalizedGram gram(X, Y, cut(X, Y, X.is(Y), options), n_parts, options.normalize,
                      kSelfImages, crew);
  PerWorker<TileWorker> workers(n_threads);
  const std::vector<std::uint32_t> image_of_Y = images_of_captions(Y);
  std::vector<std::uint32_t> image_of_X;
  if (options.normalize && !X.is(Y)) image_of_X = images_of_captions(X);

  gram.find_self_similarities([&](const CaptionsView& captions, std::size_t first,
                                  std::size_t last, double* self, Worker& worker) {
    const auto sorted = sorted_captions(captions.words, captions.first_caption(first),
                                        captions.first_caption(last), worker);
    const double* sums = workers.of(worker, similarity, options)
                             .compute(captions, captions, {first, last, first, last}, &sorted,
                                      captions.is(Y) ? image_of_Y : image_of_X);
    for (std::size_t i = first; i < last; ++i) {
      self[i] = sums[(i - first) * (last - first + 1)];
      if (self[i] < 0) throw std::invalid_argument(negative_self_similarity(i));
    }
  });
  std::vector<std::uint32_t> sorted;
  if (!are_few(X)) sorted = sorted_captions(Y.words, 0, Y.words.n_rows, crew.caller());
  gram.write(K, [&](const TileRange& tile, Worker& worker) {
    TileWorker& tiles = workers.of(worker, similarity, options);
    if (are_few(X)) return tiles.compute(X, Y, tile, nullptr, image_of_Y);
    worker.spend(sorted.size());
    std::vector<std::uint32_t> columns;
    std::copy_if(sorted.begin(), sorted.end(), std::back_inserter(columns),
                 [&](std::uint32_t caption) {
                   const std::size_t image = image_of_Y[caption];
                   return image >= tile.col_begin && image < tile.col_end;
                 });
    return tiles.compute(X, Y, tile, &columns, image_of_Y);
  });
}

template void word_sequence<float>(const CaptionsView&, const CaptionsView&,
                                   const SymbolSimilarity&, const SequenceOptions&,
                                   MatrixView<float>, std::size_t, Monitor&);
template void word_sequence<double>(const CaptionsView&, const CaptionsView&,
                                    const SymbolSimilarity&, const SequenceOptions&,
                                    MatrixView<double>, std::size_t, Monitor&);

}  // namespace kernelcore
