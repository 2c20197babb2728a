// Gram matrix of the tag-rank kernel: captions that name the same things first are alike.
//
//     K(s, t) = 1/2 exp(-chi2(a(s), a(t)) / (2 A)) + 1/2 exp(-chi2(r(s), r(t)) / (2 R))
//     chi2(u, v) = sum_w (u(w) - v(w))^2 / (u(w) + v(w))
//                = sum_w u(w) + sum_w v(w) - sum over shared w of 4 u(w) v(w) / (u(w) + v(w))
//     K[x, y] = mean of K(s, t) over the captions s of image x and t of image y
//
// Input    each caption's tags, one for each different word, words ascending; a tag is a word
//          with its absolute and its relative rank, both >= 0, so that equal ones of many
//          captions share their work. A, R > 0. If X and Y are the same arrays, only j >= i is
//          computed and mirrored.
// Output   K (m, n) in [0, 1], 0 for an image without captions; allocated by the caller, fully
//          overwritten.
// Cost     two additions for each word that two captions share, two exponentials for each pair
//          of captions; per thread 12 bytes for each caption of Y and the sums of a block of
//          rows.
// Order    the sums over shared words in float, words ascending, as are the sums of each
//          caption: equal captions have similarity 1 to the last bit. Row captions are added in
//          float, column captions in double. exp to 2 eps. Tests compare with the reference to
//          (n + 4) * eps * (1 + S) * K + 1e-37, with n words in both captions and S the sums
//          of their ranks over 2 A or 2 R. The order is fixed by the input; the last bits of
//          exp depend on the instruction set too (fused multiply-add from v3 on).
// Threads  one task computes one tile of K and its mirror: every element has one writer.
// Python   holds no Python object: call it with the GIL released.
// Errors   Cancelled if the monitor stops the call; std::length_error for 2^32 captions or
//          more. All else is checked once, in kernelcore/kernels/tag_rank.py.
// Source   Hwang & Grauman, Learning the relative importance of objects from tagged images for
//          retrieval and cross-modal search, IJCV 100 (2012); for captions: Hodosh, Young &
//          Hockenmaier, JAIR 47 (2013).
// Same as  kernelcore/reference/kernels.py::tag_rank.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/matrix_view.hpp"
#include "common/monitor.hpp"
#include "common/ragged_view.hpp"

namespace kernelcore {

struct TagRanks {
  std::size_t n_tags;
  const std::int32_t* words;  // of each tag, ascending, below n_words
  std::size_t n_words;
  const double* absolute;  // of each tag
  const double* relative;
  double absolute_width;
  double relative_width;

  // Whether the words can be trusted: for KC_ASSERT.
  bool is_valid() const {
    for (std::size_t tag = 0; tag < n_tags; ++tag) {
      if (words[tag] < (tag == 0 ? 0 : words[tag - 1])) return false;
      if (static_cast<std::size_t>(words[tag]) >= n_words) return false;
    }
    return true;
  }
};

// X and Y hold tags in place of words. Out: float or double, rounded once.
template <class Out>
void tag_rank(const CaptionsView& X, const CaptionsView& Y, const TagRanks& ranks,
              MatrixView<Out> K, std::size_t n_threads, Monitor& monitor);

}  // namespace kernelcore
