// The inner loops of sparse_gram.cpp, compiled once per instruction set.
#pragma once

#include <cstddef>

#include "common/isa.hpp"

namespace kernelcore {

// Divides n sums of a row by the mean of its own sum and that of each column, and rounds them
// to the type of the result; where the mean is 0, so is the result.
template <class Out>
using DivideRow = void (*)(const double* sums, std::size_t n, double own_row,
                           const double* own_cols, Out* to);

template <class Out>
struct DivideKernel {
  DivideRow<Out> by_root;  // geometric mean
  DivideRow<Out> by_mean;  // arithmetic mean
};

struct DivideKernels {
  DivideKernel<float> f32;
  DivideKernel<double> f64;
};

KERNELCORE_DECLARE_PER_ISA(DivideKernels, divide_kernels)

}  // namespace kernelcore
