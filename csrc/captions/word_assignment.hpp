// Gram matrix of the word-assignment similarity: the best matching between the words of two
// texts.
//
//     K(s, t) = max over matchings of the sum of kappa(s[i], t[j]) of the matched words
//     K[x, y] = sum over the captions s of image x and t of image y of K(s, t)
//     kappa(a, b) = scale[a] * scale[b] * similarity(a, b)
//
// Input    captions of images as symbols in [0, n_symbols); a symmetric similarity of symbols.
//          If X and Y are the same arrays, only j >= i is computed and mirrored.
// Output   K (m, n), allocated by the caller, fully overwritten. Words of negative similarity
//          are not matched: no element is negative.
// Cost     one look-up for each word of each column caption if its words prefer different words
//          of the row caption, else an assignment. Per thread a table of the
//          similarities of one row caption to all different words of Y.
// Order    kappa and the assignments in float, the sums over words and captions in double, in
//          the order of the column caption's words and of the captions. Tests compare with the
//          reference to 4 * k^2 * eps * max kappa for the k words of the shorter caption.
// Threads  one task computes one tile of K and its mirror: every element has one writer.
// Python   holds no Python object: call it with the GIL released.
// Errors   Cancelled if the monitor stops the call; std::length_error for 2^31 symbols or
//          more; std::invalid_argument if `normalize` is asked for and an image has an infinite
//          similarity with itself. All else is checked once, in
//          kernelcore/kernels/word_assignment.py.
// Source   H. Froehlich, J. Wegner, F. Sieker & A. Zell, Optimal assignment kernels for
//          attributed molecular graphs, ICML 2005.
// Same as  kernelcore/reference/kernels.py::word_assignment.
#pragma once

#include <cstddef>

#include "common/matrix_view.hpp"
#include "common/monitor.hpp"
#include "common/ragged_view.hpp"
#include "common/symbol_similarity.hpp"

namespace kernelcore {

// Out: float or double, rounded once. `normalize` divides by sqrt(K(x, x) K(y, y)).
template <class Out>
void word_assignment(const CaptionsView& X, const CaptionsView& Y,
                     const SymbolSimilarity& similarity, bool normalize, MatrixView<Out> K,
                     std::size_t n_threads, Monitor& monitor);

}  // namespace kernelcore
