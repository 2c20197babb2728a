// The inner loops of word_sequence.cpp, compiled once per instruction set. Each lane of a
// vector belongs to one caption of the rows; all of them meet the same word of the columns.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/isa.hpp"
#include "common/prefix_walk.hpp"
#include "common/worker.hpp"

namespace kernelcore {

// Reads the words of the columns along the steps of a PrefixWalk. What is known in a slot is a
// state: for each row word, what later matches build on, and the totals so far.
struct SequenceWalk {
  const WalkStep* steps;
  std::size_t n_steps;
  const std::uint32_t* words;  // rows of `table`
  const std::uint32_t* ends;   // columns of `sums`
  const float* table;          // [word][row word][lane]: similarity of the two words
  std::size_t n_rows;          // row words, at least one
  std::size_t max_length;
  float gap_decay;
  bool per_length;  // sums[column][length][lane] instead of sums[column][lane]
  float* states;    // the first one zero; state_size() vectors each
  float* scratch;   // 2 * max_length vectors
  float* sums;      // the totals of each end are added to its column
  Worker* worker;   // whose work it is
};

// Vectors of one state.
inline std::size_t state_size(std::size_t n_rows, std::size_t max_length) {
  return n_rows * (max_length - 1) + max_length;
}

struct SequenceTiles {
  std::size_t width;  // lanes

  void (*walk)(const SequenceWalk& walk);

  // table[w][i][lane] = rows[i][lane][words[w]] * (row_scales[i][lane] * word_scales[words[w]])
  void (*fill)(const float* const* rows, const float* row_scales, std::size_t n_rows,
               const std::uint32_t* words, const float* word_scales, std::size_t n_words,
               float* table);

  // totals[lane][c] += sums[c][lane], lanes without totals left out; sums become 0.
  void (*flush)(float* sums, std::size_t n_columns, double* const* totals);
};

KERNELCORE_DECLARE_TILES(SequenceTiles, sequence_tiles)

}  // namespace kernelcore
