// Dot products of the rows of two matrices, whose bits do not depend on where the rows stand,
// and rows of length 1, whose products are cosines.
//
//     out[i, j] = left[i] . right[j] = sum over k of left[i, k] * right[j, k]
//
// Input    left (m, d) and right (n, d), whose products do not overflow.
// Output   out (m, n), or one product for each row on the right, fully overwritten.
// Cost     m n d multiplications and additions. Per thread, a copy of 504 rows on the left
//          and a tile of 504 x 1,024 products.
// Order    the components of a sum follow each other, each added in one rounding where the
//          processor can (v3, v4): a product depends on its two rows alone, not on their
//          places, on other rows, on tiles or threads. BLAS promises none of that.
// Threads  one task multiplies some rows on the left with all on the right.
// Python   holds no Python object: call it with the GIL released.
// Errors   Cancelled if the monitor stops the call. Shapes are checked once, in
//          kernelcore/evaluation/streaming.py.
// Source   tiles and panels as in Goto and van de Geijn, "Anatomy of high-performance matrix
//          multiplication", ACM TOMS 34 (3), 2008.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "common/matrix_view.hpp"
#include "common/parallel.hpp"

namespace kernelcore {

// Calls body(tile, i, j, worker) for tiles that cover the matrix of products, of which tile(0,
// 0) is out[i, j]. Tiles of equal rows come one after another, from the left to the right, on
// one worker.
template <class T>
using ProductBody =
    std::function<void(MatrixView<const T> tile, std::size_t i, std::size_t j, Worker& worker)>;
template <class T>
void for_each_product_tile(MatrixView<const T> left, MatrixView<const T> right, Crew& crew,
                           const ProductBody<T>& body);

template <class T>  // float or double
void dot_products(MatrixView<const T> left, MatrixView<const T> right, MatrixView<T> out,
                  std::size_t n_threads, Monitor& monitor);

// out[j] = left[row_of[j]] . right[j], the same bits as in the matrix of all products.
template <class T>
void paired_dot_products(MatrixView<const T> left, MatrixView<const T> right,
                         const std::int64_t* row_of, T* out, std::size_t n_threads,
                         Monitor& monitor);

// out[i] = rows[i] / |rows[i]|, in double and then rounded; a row of zeros stays. False if a
// number is not finite.
template <class T>
bool unit_rows(MatrixView<const T> rows, MatrixView<T> out, Monitor& monitor);

}  // namespace kernelcore
