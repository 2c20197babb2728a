#include "captions/word_sequence_simd.hpp"

#include <type_traits>

#include "common/simd.hpp"

namespace kernelcore {
namespace {

using Lanes = Vector<float>;
constexpr std::size_t kWidth = kLanes<float>;

// Words whose similarities are read one row after another: long enough to be read ahead.
constexpr std::size_t kChunkWords = 128;

// Columns read together: a row's state is loaded and stored once for all of them.
constexpr int kMaxColumns = 3;

// Reads kColumns words of the columns: the recurrence of the header for all row words. Without
// decay the last K1[l] is K[l] as well; with it K is summed apart. Returns K of all lengths
// together. The state after the last word of a leaf is never read: it is not stored.
template <int kLength, bool kDecay, int kColumns, bool kLeaf>
inline Lanes read_columns(const SequenceWalk& walk, const float* const* columns,
                          const float* before, float* after) {
  constexpr int kStored = kLength - 1;  // K1 of the greatest length is never needed
  const float g = walk.gap_decay;
  Lanes K[kLength][kColumns], K2[kLength][kColumns];
  Lanes K1[kLength], K1_above[kLength][kColumns];  // of the row above, before this column

  const auto read_row = [&](auto is_first, std::size_t i) __attribute__((always_inline)) {
    constexpr bool kFirst = decltype(is_first)::value;
#pragma GCC unroll 16
    for (int l = 0; l < kStored; ++l) K1[l] = load(before + (i * kStored + l) * kWidth);
#pragma GCC unroll 16
    for (int c = 0; c < kColumns; ++c) {
      const Lanes match = load_into_register(columns[c] + i * kWidth);
#pragma GCC unroll 16
      for (int l = 0; l < kLength; ++l) {
        if constexpr (kFirst) {
          K2[l][c] = K[l][c] = l == 0 ? match : Lanes{};
        } else {
          const Lanes ended = l == 0 ? match : match * K1_above[l - 1][c];
          if (kDecay || l == kStored) K[l][c] += ended;
          if (l < kStored) K2[l][c] = kDecay ? K2[l][c] * g + ended : K2[l][c] + ended;
        }
      }
#pragma GCC unroll 16
      for (int l = 0; l < kStored; ++l) {
        K1_above[l][c] = K1[l];
        if (!kLeaf || c + 1 < kColumns) K1[l] = (kDecay ? K1[l] * g : K1[l]) + K2[l][c];
      }
    }
    if constexpr (!kLeaf) {
#pragma GCC unroll 16
      for (int l = 0; l < kStored; ++l) store(after + (i * kStored + l) * kWidth, K1[l]);
    }
  };
  read_row(std::true_type{}, 0);
  for (std::size_t i = 1; i < walk.n_rows; ++i) read_row(std::false_type{}, i);

  const std::size_t totals = walk.n_rows * kStored * kWidth;
  Lanes all_lengths = {};
#pragma GCC unroll 16
  for (int l = 0; l < kLength; ++l) {
    Lanes total;
    if (!kDecay && l < kStored) {
      total = kLeaf ? K1[l] + K2[l][kColumns - 1] : K1[l];
    } else {
      total = K[l][0];
#pragma GCC unroll 16
      for (int c = 1; c < kColumns; ++c) total += K[l][c];
      total += load(before + totals + l * kWidth);
    }
    all_lengths = l == 0 ? total : all_lengths + total;
    if (!kLeaf || walk.per_length) store(after + totals + l * kWidth, total);
  }
  return all_lengths;
}

// The same for any length, one column at a time, with everything in memory.
template <bool kDecay>
Lanes read_column(const SequenceWalk& walk, const float* column, const float* before,
                  float* after) {
  const std::size_t n_stored = walk.max_length - 1;
  const float g = walk.gap_decay;
  float* const K2 = walk.scratch;
  float* const K1_above = walk.scratch + n_stored * kWidth;
  for (std::size_t l = 0; l < n_stored; ++l) {
    store(K2 + l * kWidth, Lanes{});
    store(K1_above + l * kWidth, Lanes{});
  }
  const float* totals_before = before + walk.n_rows * n_stored * kWidth;
  float* const K = after + walk.n_rows * n_stored * kWidth;
  for (std::size_t l = 0; l <= n_stored; ++l) {
    store(K + l * kWidth, load(totals_before + l * kWidth));
  }
  for (std::size_t i = 0; i < walk.n_rows; ++i) {
    const Lanes match = load(column + i * kWidth);
    Lanes ended = match;
    for (std::size_t l = 0; l < n_stored; ++l) {
      store(K + l * kWidth, load(K + l * kWidth) + ended);
      const Lanes K2_above = load(K2 + l * kWidth);
      const Lanes K2_here = (kDecay ? K2_above * g : K2_above) + ended;
      store(K2 + l * kWidth, K2_here);
      const std::size_t at = (i * n_stored + l) * kWidth;
      const Lanes K1 = load(before + at);
      ended = match * load(K1_above + l * kWidth);
      store(K1_above + l * kWidth, K1);
      store(after + at, (kDecay ? K1 * g : K1) + K2_here);
    }
    store(K + n_stored * kWidth, load(K + n_stored * kWidth) + ended);
  }
  Lanes all_lengths = load(K);
  for (std::size_t l = 1; l <= n_stored; ++l) all_lengths += load(K + l * kWidth);
  return all_lengths;
}

template <int kLength, bool kDecay, bool kLeaf>
inline Lanes read_some(const SequenceWalk& walk, std::size_t n_columns,
                       const float* const* columns, const float* before, float* after) {
  switch (n_columns) {
    case 1:
      return read_columns<kLength, kDecay, 1, kLeaf>(walk, columns, before, after);
    case 2:
      return read_columns<kLength, kDecay, 2, kLeaf>(walk, columns, before, after);
    default:
      return read_columns<kLength, kDecay, 3, kLeaf>(walk, columns, before, after);
  }
}

inline void add_to_finished(const SequenceWalk& walk, const CaptionTrie::Step& step,
                            Lanes total, const float* totals) {
  const std::uint32_t* caption = walk.finished + step.first_finished;
  for (const auto* const last = caption + step.n_finished; caption != last; ++caption) {
    if (walk.per_length) {
      float* sums = walk.sums + *caption * walk.max_length * kWidth;
      for (std::size_t l = 0; l < walk.max_length; ++l) {
        store(sums + l * kWidth, load(sums + l * kWidth) + load(totals + l * kWidth));
      }
    } else {
      float* sum = walk.sums + *caption * kWidth;
      store(sum, load(sum) + total);
    }
  }
}

// kLength = 0: any length.
template <int kLength, bool kDecay>
void walk_steps(const SequenceWalk& walk) {
  const std::size_t line = walk.n_rows * kWidth;
  const std::size_t slot = state_size(walk.n_rows, walk.max_length) * kWidth;
  const std::size_t word_work = walk.n_rows * walk.max_length * (kLength == 0 ? 2 : 1);
  for (const CaptionTrie::Step* step = walk.steps; step != walk.steps + walk.n_steps; ++step) {
    const float* before = walk.states + step->from_slot * slot;
    float* const after = walk.states + step->to_slot * slot;
    const std::uint32_t* word = walk.words + step->first_word;
    const std::uint32_t* const last = word + step->n_words;
    Lanes total = {};
    walk.worker->spend(step->n_words * word_work + step->n_finished);
    while (word != last) {
      if constexpr (kLength == 0) {
        total = read_column<kDecay>(walk, walk.table + *word++ * line, before, after);
      } else {
        // Four are two and two, not three and one.
        const std::size_t n_left = static_cast<std::size_t>(last - word);
        const std::size_t n_columns = n_left == 4 ? 2 : n_left < 3 ? n_left : 3;
        const float* columns[kMaxColumns];
        for (std::size_t c = 0; c < n_columns; ++c) columns[c] = walk.table + *word++ * line;
        total =
            step->is_leaf && word == last
                ? read_some<kLength, kDecay, true>(walk, n_columns, columns, before, after)
                : read_some<kLength, kDecay, false>(walk, n_columns, columns, before, after);
      }
      before = after;
    }
    add_to_finished(walk, *step, total, after + walk.n_rows * (walk.max_length - 1) * kWidth);
  }
}

void walk(const SequenceWalk& walk) {
  constexpr void (*kWalks[2][4])(const SequenceWalk&) = {
      {walk_steps<0, false>, walk_steps<1, false>, walk_steps<2, false>, walk_steps<3, false>},
      {walk_steps<0, true>, walk_steps<1, true>, walk_steps<2, true>, walk_steps<3, true>}};
  kWalks[walk.gap_decay != 1.0f][walk.max_length <= 3 ? walk.max_length : 0](walk);
}

// The similarities of kWidth words with those of one row word of each lane.
inline void fill_adjacent(const float* const* rows, const float* row_scales,
                          std::uint32_t first_word, const float* word_scales,
                          std::size_t n_rows, float* table) {
  const Lanes scales = load(word_scales + first_word);
  Lanes block[kWidth];
#pragma GCC unroll 16
  for (std::size_t lane = 0; lane < kWidth; ++lane) {
    block[lane] = load(rows[lane] + first_word) * (row_scales[lane] * scales);
  }
  transpose<float>(block);
#pragma GCC unroll 16
  for (std::size_t k = 0; k < kWidth; ++k) store(table + k * n_rows * kWidth, block[k]);
}

void fill(const float* const* rows, const float* row_scales, std::size_t n_rows,
          const std::uint32_t* words, const float* word_scales, std::size_t n_words,
          float* table) {
  for (std::size_t chunk = 0; chunk < n_words; chunk += kChunkWords) {
    const std::size_t end = n_words - chunk < kChunkWords ? n_words : chunk + kChunkWords;
    for (std::size_t i = 0; i < n_rows; ++i) {
      const float* const* lane_rows = rows + i * kWidth;
      const float* scales = row_scales + i * kWidth;
      for (std::size_t first = chunk; first < end; first += kWidth) {
        const std::size_t count = end - first < kWidth ? end - first : kWidth;
        float* lines = table + (first * n_rows + i) * kWidth;
        if (count == kWidth && words[first + count - 1] - words[first] == kWidth - 1) {
          fill_adjacent(lane_rows, scales, words[first], word_scales, n_rows, lines);
          continue;
        }
        for (std::size_t k = 0; k < count; ++k) {
          const std::uint32_t word = words[first + k];
          for (std::size_t lane = 0; lane < kWidth; ++lane) {
            lines[k * n_rows * kWidth + lane] =
                lane_rows[lane][word] * (scales[lane] * word_scales[word]);
          }
        }
      }
    }
  }
}

void flush(float* sums, std::size_t n_columns, double* const* totals) {
  for (std::size_t first = 0; first < n_columns; first += kWidth) {
    const std::size_t count = n_columns - first < kWidth ? n_columns - first : kWidth;
    Lanes block[kWidth] = {};
    for (std::size_t k = 0; k < count; ++k) {
      block[k] = load(sums + (first + k) * kWidth);
      store(sums + (first + k) * kWidth, Lanes{});
    }
    transpose<float>(block);
    for (std::size_t lane = 0; lane < kWidth; ++lane) {
      if (totals[lane] == nullptr) continue;
      float values[kWidth];
      store(values, block[lane]);
      for (std::size_t k = 0; k < count; ++k) totals[lane][first + k] += values[k];
    }
  }
}

}  // namespace

namespace KERNELCORE_ISA {

SequenceKernels sequence_kernels() { return {kWidth, walk, fill, flush}; }

}  // namespace KERNELCORE_ISA
}  // namespace kernelcore
