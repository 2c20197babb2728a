// Sums of a row of a Gram matrix, divided by what its two samples have alone. Compiled once per
// instruction set.
#pragma once

#include <cstddef>

#include "common/isa.hpp"

namespace kernelcore {

// Divides n sums of a row by a mean of its own sum and that of each column, or by both less
// what they share, and rounds them to the type of the result; where the divisor is 0, so is the
// result. `to` may be `sums`.
template <class Out>
using DivideRow = void (*)(const double* sums, std::size_t n, double own_row,
                           const double* own_cols, Out* to);

template <class Out>
struct DivideKernel {
  DivideRow<Out> by_root;  // geometric mean
  DivideRow<Out> by_mean;  // arithmetic mean
  DivideRow<Out> by_union;
};

struct DivideKernels {
  DivideKernel<float> f32;
  DivideKernel<double> f64;
};

KERNELCORE_DECLARE_PER_ISA(DivideKernels, divide_kernels)

}  // namespace kernelcore
