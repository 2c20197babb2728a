#include "gram/word_sequence_tile.hpp"

#include <type_traits>
#include <utility>

#include "common/lanes.hpp"

namespace kernelcore {
namespace {

using Lanes = Vector<float>;
constexpr std::size_t kWidth = kLanes<float>;

// Words whose similarities are read one row after another: long enough to be read ahead.
constexpr std::size_t kChunkWords = 128;

// Columns read together: a row's state is loaded and stored once for all of them.
constexpr int kMaxColumns = 3;

#define UNROLL _Pragma("GCC unroll 16")

inline void store(float* to, Lanes lanes) { std::memcpy(to, &lanes, sizeof lanes); }

// Keeps the compiler from loading the operand anew for each of its uses.
inline Lanes load_once(const float* from) {
  Lanes lanes = load(from);
#if defined(__AVX512F__)
  __asm__("" : "+v"(lanes));
#elif defined(__x86_64__)
  __asm__("" : "+x"(lanes));
#endif
  return lanes;
}

// Reads kColumns words of the columns. At row word i and column word j, with m the similarity
// of the two words and g the gap decay, matches of length l that end there weigh
//
//     ended[1] = m,  ended[l + 1] = m * kept[l] of the row above, before this column
//
// and what is kept is the sum over all ends up to (i, j), decayed by their distance:
//
//     run[l] = g * run[l] of the row above + ended[l]
//     kept[l] = g * kept[l] before this column + run[l]
//
// Without decay the last kept[l] is the total as well; with it totals are summed apart. What is
// returned is the total of all lengths; the state after a leaf is left unfinished.
template <int kLength, bool kDecay, int kColumns, bool kLeaf>
inline Lanes read_columns(const SequenceWalk& walk, const float* const* columns,
                          const float* before, float* after) {
  constexpr int kKept = kLength - 1;
  const float g = walk.gap_decay;
  Lanes run[kLength][kColumns], sum[kLength][kColumns], above[kLength][kColumns];
  Lanes kept[kLength];

  const auto read_row = [&](auto is_first, std::size_t i) __attribute__((always_inline)) {
    constexpr bool kFirst = decltype(is_first)::value;
    UNROLL for (int l = 0; l < kKept; ++l) kept[l] = load(before + (i * kKept + l) * kWidth);
    UNROLL for (int c = 0; c < kColumns; ++c) {
      const Lanes match = load_once(columns[c] + i * kWidth);
      UNROLL for (int l = 0; l < kLength; ++l) {
        if constexpr (kFirst) {
          run[l][c] = sum[l][c] = l == 0 ? match : Lanes{};
        } else {
          const Lanes ended = l == 0 ? match : match * above[l - 1][c];
          if (kDecay || l == kKept) sum[l][c] += ended;
          if (l < kKept) run[l][c] = kDecay ? run[l][c] * g + ended : run[l][c] + ended;
        }
      }
      UNROLL for (int l = 0; l < kKept; ++l) {
        above[l][c] = kept[l];
        // Nobody builds on the last column of a leaf.
        if (!kLeaf || c + 1 < kColumns) kept[l] = (kDecay ? kept[l] * g : kept[l]) + run[l][c];
      }
    }
    if constexpr (!kLeaf) {
      UNROLL for (int l = 0; l < kKept; ++l) store(after + (i * kKept + l) * kWidth, kept[l]);
    }
  };
  read_row(std::true_type{}, 0);
  for (std::size_t i = 1; i < walk.n_rows; ++i) read_row(std::false_type{}, i);

  const std::size_t totals = walk.n_rows * kKept * kWidth;
  Lanes all_lengths = {};
  UNROLL for (int l = 0; l < kLength; ++l) {
    Lanes total;
    if (!kDecay && l < kKept) {
      total = kLeaf ? kept[l] + run[l][kColumns - 1] : kept[l];
    } else {
      total = sum[l][0];
      UNROLL for (int c = 1; c < kColumns; ++c) total += sum[l][c];
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
  const std::size_t n_kept = walk.max_length - 1;
  const float g = walk.gap_decay;
  float* const run = walk.scratch;
  float* const above = walk.scratch + n_kept * kWidth;
  for (std::size_t l = 0; l < n_kept; ++l) {
    store(run + l * kWidth, Lanes{});
    store(above + l * kWidth, Lanes{});
  }
  const float* totals_before = before + walk.n_rows * n_kept * kWidth;
  float* totals = after + walk.n_rows * n_kept * kWidth;
  for (std::size_t l = 0; l <= n_kept; ++l) {
    store(totals + l * kWidth, load(totals_before + l * kWidth));
  }
  for (std::size_t i = 0; i < walk.n_rows; ++i) {
    const Lanes match = load(column + i * kWidth);
    Lanes ended = match;
    for (std::size_t l = 0; l < n_kept; ++l) {
      store(totals + l * kWidth, load(totals + l * kWidth) + ended);
      const Lanes run_above = load(run + l * kWidth);
      const Lanes here = (kDecay ? run_above * g : run_above) + ended;
      store(run + l * kWidth, here);
      const std::size_t at = (i * n_kept + l) * kWidth;
      const Lanes kept = load(before + at);
      ended = match * load(above + l * kWidth);
      store(above + l * kWidth, kept);
      store(after + at, (kDecay ? kept * g : kept) + here);
    }
    store(totals + n_kept * kWidth, load(totals + n_kept * kWidth) + ended);
  }
  Lanes all_lengths = load(totals);
  for (std::size_t l = 1; l <= n_kept; ++l) all_lengths += load(totals + l * kWidth);
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

inline void add_to_ends(const SequenceWalk& walk, const WalkStep& step, Lanes total,
                        const float* totals) {
  const std::uint32_t* end = walk.ends + step.first_end;
  for (const std::uint32_t* const last = end + step.n_ends; end != last; ++end) {
    if (walk.per_length) {
      float* sums = walk.sums + *end * walk.max_length * kWidth;
      for (std::size_t l = 0; l < walk.max_length; ++l) {
        store(sums + l * kWidth, load(sums + l * kWidth) + load(totals + l * kWidth));
      }
    } else {
      float* sum = walk.sums + *end * kWidth;
      store(sum, load(sum) + total);
    }
  }
}

// kLength 0 stands for any.
template <int kLength, bool kDecay>
void walk_steps(const SequenceWalk& walk) {
  const std::size_t line = walk.n_rows * kWidth;
  const std::size_t slot = state_size(walk.n_rows, walk.max_length) * kWidth;
  const std::size_t word_work = walk.n_rows * walk.max_length * (kLength == 0 ? 2 : 1);
  for (const WalkStep* step = walk.steps; step != walk.steps + walk.n_steps; ++step) {
    const float* before = walk.states + step->from * slot;
    float* const after = walk.states + step->to * slot;
    const std::uint32_t* word = walk.words + step->first_word;
    const std::uint32_t* const last = word + step->n_words;
    Lanes total = {};
    walk.worker->spend(step->n_words * word_work + step->n_ends);
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
            step->leaf && word == last
                ? read_some<kLength, kDecay, true>(walk, n_columns, columns, before, after)
                : read_some<kLength, kDecay, false>(walk, n_columns, columns, before, after);
      }
      before = after;
    }
    add_to_ends(walk, *step, total, after + walk.n_rows * (walk.max_length - 1) * kWidth);
  }
}

void walk(const SequenceWalk& walk) {
  constexpr void (*kWalks[2][4])(const SequenceWalk&) = {
      {walk_steps<0, false>, walk_steps<1, false>, walk_steps<2, false>, walk_steps<3, false>},
      {walk_steps<0, true>, walk_steps<1, true>, walk_steps<2, true>, walk_steps<3, true>}};
  kWalks[walk.gap_decay != 1.0f][walk.max_length <= 3 ? walk.max_length : 0](walk);
}

template <std::size_t... k>
inline Lanes interleave(Lanes a, Lanes b, std::size_t half, std::index_sequence<k...>) {
  // Constants on both branches: the instruction takes no variable.
  return half == 0 ? __builtin_shufflevector(a, b, (k / 2 + k % 2 * kWidth)...)
                   : __builtin_shufflevector(a, b, (k / 2 + k % 2 * kWidth + kWidth / 2)...);
}

// A perfect shuffle of all elements moves the top bit of the row to the bottom of the column;
// as many as an index has bits swap the two.
inline void transpose(Lanes (&block)[kWidth]) {
  constexpr auto kAll = std::make_index_sequence<kWidth>{};
  UNROLL for (std::size_t round = 1; round < kWidth; round *= 2) {
    Lanes shuffled[kWidth];
    UNROLL for (std::size_t k = 0; k < kWidth / 2; ++k) {
      shuffled[2 * k] = interleave(block[k], block[k + kWidth / 2], 0, kAll);
      shuffled[2 * k + 1] = interleave(block[k], block[k + kWidth / 2], 1, kAll);
    }
    UNROLL for (std::size_t k = 0; k < kWidth; ++k) block[k] = shuffled[k];
  }
}

// The similarities of kWidth words with those of one row word of each lane.
inline void fill_adjacent(const float* const* rows, const float* row_scales,
                          std::uint32_t first_word, const float* word_scales,
                          std::size_t n_rows, float* table) {
  const Lanes scales = load(word_scales + first_word);
  Lanes block[kWidth];
  UNROLL for (std::size_t lane = 0; lane < kWidth; ++lane) {
    block[lane] = load(rows[lane] + first_word) * (row_scales[lane] * scales);
  }
  transpose(block);
  UNROLL for (std::size_t k = 0; k < kWidth; ++k) store(table + k * n_rows * kWidth, block[k]);
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
    transpose(block);
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

SequenceTiles sequence_tiles() { return {kWidth, walk, fill, flush}; }

}  // namespace KERNELCORE_ISA
}  // namespace kernelcore
