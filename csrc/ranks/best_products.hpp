// The rows on the right that have the largest dot products with each row on the left.
//
// Input    left (m, d) and right (n, d), whose products do not overflow.
// Output   positions and scores (m, k), k > 0: the best candidates so far, best first, of which
//          those with a smaller product are replaced; right[j] has the position first + j. Of
//          equal products the one that came first stays.
// Cost     that of dot_products, and O(k) for each candidate that is better than the worst.
// Order    as dot_products: nothing depends on tiles or threads.
// Threads  one task finds the best of some rows on the left.
// Python   holds no Python object: call it with the GIL released.
// Errors   Cancelled if the monitor stops the call. Shapes are checked once, in
//          kernelcore/distributed/search.py.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/matrix_view.hpp"
#include "common/monitor.hpp"

namespace kernelcore {

template <class T>  // float or double
void best_products(MatrixView<const T> left, MatrixView<const T> right, std::int64_t first,
                   MatrixView<std::int64_t> positions, MatrixView<T> scores,
                   std::size_t n_threads, Monitor& monitor);

}  // namespace kernelcore
