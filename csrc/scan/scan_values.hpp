// The checks of an input in one pass: its smallest and largest value, whether all are finite,
// and how far a square matrix is from its transpose.
//
// Input    n values in memory order, or K (n, n).
// Output   the extremes, 0 for no values; they are meaningless if a value is not finite. gap is
//          the largest |K[i, j] - K[j, i]| in the type of K. A copy of K, if there is room for
//          one, is made first and is what is scanned: nobody changes it in between.
// Cost     one pass over the memory, after that of a copy; allocates nothing that grows with
//          it.
// Order    minima and maxima: nothing depends on an order.
// Threads  one task scans a piece, or a row of tiles and their mirrors.
// Python   holds no Python object: call it with the GIL released.
// Errors   Cancelled if the monitor stops the call. kernelcore/_check.py judges the result
//          and writes the messages.
// Source   the definitions.
// Same as  kernelcore/reference/kernels.py::scan_values and scan_gram.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/matrix_view.hpp"
#include "common/monitor.hpp"

namespace kernelcore {

struct Extremes {
  double smallest;
  double largest;
  double gap;  // of a square matrix
  bool is_finite;
};

template <class T>  // float, double, uint8_t, uint16_t or uint32_t
Extremes scan_values(const T* values, std::size_t n, std::size_t n_threads, Monitor& monitor);

template <class T>  // float or double
Extremes scan_gram(MatrixView<const T> K, T* copy, std::size_t n_threads, Monitor& monitor);

}  // namespace kernelcore
