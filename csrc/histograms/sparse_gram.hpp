// Gram matrices of rows that store their non-zero values alone: the cosine of weighted word
// counts, the F1 of two bags of words, and the intersection of histograms.
//
//     cosine[i, j] = sum_w g_w^2 x_iw y_jw / sqrt(sum_w (g_w x_iw)^2 * sum_w (g_w y_jw)^2)
//     f1[i, j]     = 2 sum_w g_w min(x_iw, y_jw) / (sum_w g_w x_iw + sum_w g_w y_jw)
//     intersection[i, j] = sum_b min(x_ib, y_jb)
//
// Input    rows of X and Y hold their words, or bins, by ascending number, each once. For the
//          cosine the values are g_w x_iw, and the sums of their squares neither overflow nor
//          vanish; for F1 they are counts, with the weight g of every word.
// Output   K (m, n), allocated by the caller. Cosine and F1 overwrite it, with 0 for rows
//          without weight; the intersection is added to it.
// Cost     one term for each word that two rows share (halved when X and Y are one buffer), a
//          copy of Y by words and n_bins offsets.
// Order    shared words add up by ascending number, in double, or exactly in std::uint64_t for
//          integers, and so do the divisors: equal rows have a cosine and F1 of exactly 1.
//          Rounded once to the type of K.
// Threads  one task computes a tile of K and its mirror: every element has one writer.
// Python   holds no Python object: call it with the GIL released.
// Errors   Cancelled if the monitor stops the call; std::length_error for 2^31 rows or more.
//          Values are checked once, in kernelcore/kernels/bag_of_words.py and
//          histogram_intersection.py.
// Source   Salton & McGill, Introduction to modern information retrieval, 1983; F1: Hodosh,
//          Young & Hockenmaier, JAIR 47 (2013); Swain & Ballard, Color indexing, IJCV 7 (1991).
// Same as  kernelcore/reference/kernels.py::bag_of_words, bag_of_words_f1 and
//          histogram_intersection.
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

// T: float -> float, double -> double, uint8_t, uint16_t or uint32_t -> uint64_t. K is
// symmetric where X and Y are the same.
template <class T, class Out>
void sparse_intersection(const SparseRows<T>& X, const SparseRows<T>& Y, MatrixView<Out> K,
                         std::size_t n_threads, Monitor& monitor);

}  // namespace kernelcore
