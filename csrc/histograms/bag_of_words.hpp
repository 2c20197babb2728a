// Gram matrices of weighted word counts: the cosine, and the F1 of two bags of words.
//
//     cosine[i, j] = sum_w g_w^2 x_iw y_jw / sqrt(sum_w (g_w x_iw)^2 * sum_w (g_w y_jw)^2)
//     f1[i, j]     = 2 sum_w g_w min(x_iw, y_jw) / (sum_w g_w x_iw + sum_w g_w y_jw)
//
// Input    rows of X and Y hold their words by ascending number, each once. For the cosine the
//          values are g_w x_iw, and the sums of their squares neither overflow nor vanish; for
//          F1 they are counts, with the weight g of every word.
// Output   K (m, n), allocated by the caller, fully overwritten; 0 for rows without weight.
// Cost     one product for each word that two rows share (halved when X and Y are one buffer),
//          a copy of Y by words and n_words offsets.
// Order    shared words add up in double by ascending number, and so do the divisors: equal
//          rows have a similarity of exactly 1. Rounded once to the type of K.
// Threads  one task computes a tile of K and its mirror: every element has one writer.
// Python   holds no Python object: call it with the GIL released.
// Errors   Cancelled if the monitor stops the call; std::length_error for 2^31 rows or more.
//          Values are checked once, in kernelcore/kernels/bag_of_words.py.
// Source   Salton & McGill, Introduction to modern information retrieval, 1983; F1: Hodosh,
//          Young & Hockenmaier, JAIR 47 (2013).
// Same as  kernelcore/reference/kernels.py::bag_of_words and bag_of_words_f1.
#pragma once

#include <cstddef>

#include "common/matrix_view.hpp"
#include "common/monitor.hpp"
#include "common/sparse_rows.hpp"

namespace kernelcore {

template <class Out>  // float or double
void bag_of_words(const SparseRows<double>& X, const SparseRows<double>& Y, MatrixView<Out> K,
                  std::size_t n_threads, Monitor& monitor);

// `weights` has one g for each of the n_bins words.
template <class Out>
void bag_of_words_f1(const SparseRows<double>& X, const SparseRows<double>& Y,
                     const double* weights, MatrixView<Out> K, std::size_t n_threads,
                     Monitor& monitor);

}  // namespace kernelcore
