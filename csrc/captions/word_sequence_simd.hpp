// The inner loops of word_sequence.cpp, compiled once per instruction set. Each lane of a
// vector belongs to one row caption; all lanes read the same word of the columns.
//
// The recurrence is that of Lodhi et al., K1 for their K' and K2 for their K''. For row word i,
// column word j, similarity m of the two and gap decay g:
//
//     for (l = 1; l <= max_length; ++l) {
//       ended = m * (l == 1 ? 1 : K1[l - 1][i - 1][j - 1]);  // subsequences that end in (i, j)
//       K2[l][i][j] = g * K2[l][i - 1][j] + ended;
//       K1[l][i][j] = g * K1[l][i][j - 1] + K2[l][i][j];
//       K[l] += ended;
//     }
#pragma once

#include <cstddef>
#include <cstdint>

#include "captions/caption_trie.hpp"
#include "common/isa.hpp"
#include "common/worker.hpp"

namespace kernelcore {

// Reads the words of the columns along the steps of a CaptionTrie. The state in a slot is, for
// each row word, K1[1 .. max_length - 1] at the present column word, and then K[1 ..
// max_length].
struct SequenceWalk {
  const CaptionTrie::Step* steps;
  std::size_t n_steps;
  const std::uint32_t* words;     // rows of `table`
  const std::uint32_t* finished;  // columns of `sums`
  const float* table;             // [word][row word][lane]: similarity of the two words
  std::size_t n_rows;             // row words, at least one
  std::size_t max_length;
  float gap_decay;
  bool per_length;  // sums[column][length][lane] instead of sums[column][lane]
  float* states;    // the first one zero; state_size() vectors each
  float* scratch;   // 2 * max_length vectors
  float* sums;      // K is added to the column of each finished caption
  Worker* worker;   // of the thread that walks
};

// Vectors of one state.
inline std::size_t state_size(std::size_t n_rows, std::size_t max_length) {
  return n_rows * (max_length - 1) + max_length;
}

struct SequenceKernels {
  std::size_t width;  // lanes

  void (*walk)(const SequenceWalk& walk);

  // table[w][i][lane] = rows[i][lane][words[w]] * (row_scales[i][lane] * word_scales[words[w]])
  void (*fill)(const float* const* rows, const float* row_scales, std::size_t n_rows,
               const std::uint32_t* words, const float* word_scales, std::size_t n_words,
               float* table);

  // totals[lane][c] += sums[c][lane] unless totals[lane] is null; sums become 0.
  void (*flush)(float* sums, std::size_t n_columns, double* const* totals);
};

KERNELCORE_DECLARE_PER_ISA(SequenceKernels, sequence_kernels)

}  // namespace kernelcore
