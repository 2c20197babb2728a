// Gram matrix of the word-sequence kernel: weighted common subsequences of two texts.
//
//     K(s, t) = sum_{l = 1..max_length} sum_{i_1 < .. < i_l, j_1 < .. < j_l}
//               prod_k kappa(s[i_k], t[j_k]) * g^(i_l - i_1 + 1 - l) * g^(j_l - j_1 + 1 - l)
//     K[x, y] = sum over the captions s of image x and t of image y of K(s, t)
//     kappa(a, b) = scale[a] * scale[b] * similarity(a, b)
//
// Input    captions of images as symbols in [0, n_symbols); the similarity of symbols: a matrix
//          over the first n_words of them, dense or sparse, symmetric; all others, and all
//          where there is no matrix, are similar to themselves alone. If X and Y are the same
//          arrays, only j >= i is computed and mirrored.
// Output   K (m, n), or (m, n * max_length) with the sum of each length l by itself in column
//          j * max_length + l - 1; allocated by the caller, fully overwritten.
// Cost     word_sequence: about 5 operations on a vector of lanes for each row word and column
//          word of each group of captions, once for a prefix that columns share, if there are
//          more than 16 row captions; per thread 16 MB of similarities, the sums of a tile and
//          a trie of its columns.
//          word_sequence_exact: one multiplication for each subsequence that two images share,
//          and about 60 bytes for each subsequence of each image.
// Order    word_sequence sums each pair of captions in float, the captions of a column image
//          in float, those of a row image in double. The sums over row words are nested as
//          the recurrence of Lodhi et al. has them, so that the error is within
//          max_length * (words of s + words of t + captions + 4) * eps * K(s, t) for
//          kappa >= 0. word_sequence_exact is double throughout, and has the same bits on all
//          instruction sets; the last bits of word_sequence depend on theirs (fused
//          multiply-add from v3 on). Neither depends on n_threads.
// Threads  one task computes one tile of K and its mirror: every element has one writer.
// Python   holds no Python object: call it with the GIL released.
// Errors   std::invalid_argument if `normalize` is asked for and an image has a negative or
//          infinite similarity with itself; std::length_error where words, captions, images or
//          postings of features number 2^32 or more; Cancelled if the monitor stops the call.
//          All else is checked once, in kernelcore/kernels/word_sequence.py.
// Source   Lodhi et al., Text classification using string kernels, JMLR 2 (2002); over words
//          and with soft matches: Cancedda et al., Word-sequence kernels, JMLR 3 (2003); for
//          captions: Hodosh, Young & Hockenmaier, JAIR 47 (2013).
// Same as  kernelcore/reference/kernels.py::word_sequence.
#pragma once

#include <cstddef>

#include "common/matrix_view.hpp"
#include "common/monitor.hpp"
#include "common/ragged_view.hpp"
#include "common/symbol_similarity.hpp"

namespace kernelcore {

struct SequenceOptions {
  std::size_t max_length;
  double gap_decay;
  bool per_length;
  bool normalize;  // divide by sqrt(K(x, x) K(y, y)); not per length
};

// Out: float or double, rounded once.
template <class Out>
void word_sequence(const CaptionsView& X, const CaptionsView& Y,
                   const SymbolSimilarity& similarity, const SequenceOptions& options,
                   MatrixView<Out> K, std::size_t n_threads, Monitor& monitor);

// The same where symbols are similar to themselves alone, by the subsequences themselves:
// faster, and only for texts so short that their subsequences can be listed.
template <class Out>
void word_sequence_exact(const CaptionsView& X, const CaptionsView& Y, const double* scale,
                         std::size_t n_symbols, const SequenceOptions& options,
                         MatrixView<Out> K, std::size_t n_threads, Monitor& monitor);

}  // namespace kernelcore
