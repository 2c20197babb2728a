#include "gram/word_sequence.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/aligned_buffer.hpp"
#include "common/gram_tile.hpp"
#include "common/parallel.hpp"
#include "common/prefix_walk.hpp"
#include "common/task_tiles.hpp"
#include "gram/word_sequence_tile.hpp"

namespace kernelcore {
namespace {

// Similarities that one group of row captions holds ready for the words of the columns.
constexpr std::size_t kTableBytes = std::size_t{16} << 20;

// A task takes rows of about so many captions; few only where there are few, because each
// task has to look through the columns.
constexpr std::size_t kMinTaskCaptions = 128;
constexpr std::size_t kMaxTaskCaptions = 512;
constexpr std::size_t kTasks = 48;

// Pairs of words of a task, up to half a second of work: tasks are longer than elsewhere
// because columns share prefixes, the more so the more columns there are. The order of
// summation depends on where columns are cut, so another number changes the last bits of the
// result. Where no loop is made for the length of the subsequences, a pair is that much more
// work.
constexpr std::size_t kMaxTaskWordPairs = std::size_t{1} << 31;
constexpr std::size_t kLoopLengths = 3;
constexpr std::size_t kWorkWithoutLoop = 4;

// Images whose captions are compared with one another to find the similarities to themselves.
constexpr std::size_t kSelfImages = 8;

// Of a worker: for a vector of sums, or of similarities.
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
        tiles_(KERNELCORE_ACTIVE_TILES(sequence_tiles)),
        n_parts_(options.per_length ? options.max_length : 1),
        columns_(similarity.n_symbols, similarity.dense == nullptr ? 0 : similarity.n_words,
                 tiles_.width) {}

  // Sums of the tile, [row][column][part]; `sorted` are the captions of its columns.
  double* compute(const CaptionsView& X, const CaptionsView& Y, const TileRange& tile,
                  const std::vector<std::uint32_t>& sorted,
                  const std::vector<std::uint32_t>& image_of) {
    const std::size_t row_size = tile.n_cols() * n_parts_;
    sums_.assign(tile.n_rows() * row_size, 0.0);
    const std::vector<RowCaption> rows = captions_by_length(X, tile);
    if (rows.empty()) return sums_.data();
    const std::size_t bytes_per_symbol = rows.back().n_words * tiles_.width * sizeof(float);
    columns_.plan(Y.words, sorted, kTableBytes / bytes_per_symbol, worker_);
    ends_.resize(columns_.ends().size());
    std::transform(columns_.ends().begin(), columns_.ends().end(), ends_.begin(),
                   [&](std::uint32_t caption) { return image_of[caption] - tile.col_begin; });
    float* lane_sums = lane_sums_.with_room_for(row_size * tiles_.width);
    std::fill_n(lane_sums, row_size * tiles_.width, 0.0f);

    std::vector<double*> totals(tiles_.width);
    for (std::size_t first = 0; first < rows.size(); first += tiles_.width) {
      worker_.spend(kWorkPerSum * row_size);
      const std::size_t n_rows = std::min(tiles_.width, rows.size() - first);
      RowGroup group{rows[first + n_rows - 1].n_words, {}};
      group.symbols.assign(group.n_words * tiles_.width, -1);
      std::fill(totals.begin(), totals.end(), nullptr);
      for (std::size_t lane = 0; lane < n_rows; ++lane) {
        const RowCaption& row = rows[first + lane];
        for (std::size_t i = 0; i < row.n_words; ++i) {
          group.symbols[i * tiles_.width + lane] = row.words[i];
        }
        totals[lane] = sums_.data() + (row.image - tile.row_begin) * row_size;
      }
      walk_columns(group, lane_sums);
      tiles_.flush(lane_sums, row_size, totals.data());
    }
    return sums_.data();
  }

 private:
  struct RowCaption {
    const std::int32_t* words;
    std::size_t n_words;
    std::size_t image;
  };

  // Empty ones left out; those of equal length as they stand.
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

  void walk_columns(const RowGroup& group, float* lane_sums) {
    const std::size_t state = state_size(group.n_words, options_.max_length) * tiles_.width;
    SequenceWalk walk{};
    walk.words = columns_.words();
    walk.ends = ends_.data();
    walk.n_rows = group.n_words;
    walk.max_length = options_.max_length;
    walk.gap_decay = static_cast<float>(options_.gap_decay);
    walk.per_length = options_.per_length;
    walk.states = states_.with_room_for(columns_.n_slots() * state);
    walk.scratch = scratch_.with_room_for(2 * options_.max_length * tiles_.width);
    walk.sums = lane_sums;
    walk.worker = &worker_;
    std::fill_n(walk.states, state, 0.0f);
    for (const PrefixWalk::Batch& batch : columns_.batches()) {
      walk.table = fill_table(group, batch);
      walk.steps = columns_.steps() + batch.first_step;
      walk.n_steps = batch.n_steps;
      tiles_.walk(walk);
    }
  }

  const float* fill_table(const RowGroup& group, const PrefixWalk::Batch& batch) {
    const std::size_t line = group.n_words * tiles_.width;
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
      tiles_.fill(rows_.data(), row_scales_.data(), group.n_words, batch.symbols.data(), scale,
                  n_filled, table);
    }
    std::fill(table + n_filled * line, table + batch.symbols.size() * line, 0.0f);
    columns_.with_places(batch, [&](const std::vector<std::int32_t>& place_of) {
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
  const SequenceTiles tiles_;
  const std::size_t n_parts_;
  PrefixWalk columns_;
  std::vector<std::uint32_t> ends_;  // column images of the tile
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
    const std::size_t max_words = max_pairs / std::max<std::size_t>(1, n_row_words);
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
  const bool symmetric = X.is(Y);
  const std::size_t n_parts = options.per_length ? options.max_length : 1;
  KC_ASSERT(K.n_rows == X.n_images && K.n_cols == Y.n_images * n_parts);
  const std::vector<TileRange> tiles = cut(X, Y, symmetric, options);
  Crew crew(n_threads, monitor);
  std::vector<std::unique_ptr<TileWorker>> workers(n_threads);
  const auto on = [&](Worker& worker) -> TileWorker& {
    auto& own = workers[worker.index()];
    if (!own) own = std::make_unique<TileWorker>(similarity, options, worker);
    return *own;
  };

  const auto n_self_tasks = [](const CaptionsView& captions) {
    return (captions.n_images + kSelfImages - 1) / kSelfImages;
  };
  std::size_t n_tasks = tiles.size();
  if (options.normalize) n_tasks += n_self_tasks(X) + (symmetric ? 0 : n_self_tasks(Y));
  crew.expect(n_tasks);

  const auto self_similarities = [&](const CaptionsView& captions) {
    const std::vector<std::uint32_t> image_of = images_of_captions(captions);
    std::vector<double> self(captions.n_images);
    crew.parallel_for(n_self_tasks(captions), [&](std::size_t task, Worker& worker) {
      const std::size_t first = task * kSelfImages;
      const std::size_t last = std::min(first + kSelfImages, captions.n_images);
      const TileRange tile{first, last, first, last};
      const double* sums =
          on(worker).compute(captions, captions, tile,
                             sorted_rows(captions.words, captions.first_caption(first),
                                         captions.first_caption(last), worker),
                             image_of);
      for (std::size_t i = first; i < last; ++i) {
        self[i] = sums[(i - first) * (last - first + 1)];
        if (self[i] < 0) throw std::invalid_argument(negative_self_similarity(i));
      }
    });
    return self;
  };
  std::vector<double> self_X, self_Y;
  if (options.normalize) {
    self_X = self_similarities(X);
    if (!symmetric) self_Y = self_similarities(Y);
  }
  const SelfSimilarities self{self_X.data(), symmetric ? self_X.data() : self_Y.data()};

  const std::vector<std::uint32_t> sorted =
      sorted_rows(Y.words, 0, Y.words.n_rows, crew.caller());
  const std::vector<std::uint32_t> image_of = images_of_captions(Y);
  crew.parallel_for(tiles.size(), [&](std::size_t task, Worker& worker) {
    const TileRange& tile = tiles[task];
    worker.spend(sorted.size());
    std::vector<std::uint32_t> columns;
    std::copy_if(
        sorted.begin(), sorted.end(), std::back_inserter(columns), [&](std::uint32_t caption) {
          return image_of[caption] >= tile.col_begin && image_of[caption] < tile.col_end;
        });
    double* sums = on(worker).compute(X, Y, tile, columns, image_of);
    if (options.normalize) {
      // An image and its copy are alike to the last bit: both orders of summation are right.
      for (std::size_t i = tile.row_begin; symmetric && i < tile.row_end; ++i) {
        if (i >= tile.col_begin && i < tile.col_end) {
          sums[(i - tile.row_begin) * tile.n_cols() + i - tile.col_begin] = self_X[i];
        }
      }
      normalize_tile(sums, tile, self);
    }
    write_tile(sums, n_parts, tile, symmetric, K, worker);
  });
}

template void word_sequence<float>(const CaptionsView&, const CaptionsView&,
                                   const SymbolSimilarity&, const SequenceOptions&,
                                   MatrixView<float>, std::size_t, Monitor&);
template void word_sequence<double>(const CaptionsView&, const CaptionsView&,
                                    const SymbolSimilarity&, const SequenceOptions&,
                                    MatrixView<double>, std::size_t, Monitor&);

}  // namespace kernelcore
