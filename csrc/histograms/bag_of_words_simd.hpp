// The inner loops of bag_of_words.cpp, compiled once per instruction set.
#pragma once

#include <cstddef>

#include "common/isa.hpp"

namespace kernelcore {

// Divides n sums of a row by the mean of its own sum and that of each column, and rounds them
// to the type of the result; where the mean is 0, so is the result.
template <class Out>
using DivideRow = void (*)(const double* sums, std::size_t n, double own_row,
                           const double* own_cols, Out* to);

// Writes to(col, row) = from(row, col); rows of both are `stride` elements apart.
template <class Out>
using Mirror = void (*)(const Out* from, std::size_t n_rows, std::size_t n_cols, Out* to,
                        std::size_t stride);

template <class Out>
struct BagKernel {
  DivideRow<Out> by_root;  // geometric mean
  DivideRow<Out> by_mean;  // arithmetic mean
  Mirror<Out> mirror;
};

struct BagKernels {
  BagKernel<float> f32;
  BagKernel<double> f64;
};

KERNELCORE_DECLARE_PER_ISA(BagKernels, bag_kernels)

}  // namespace kernelcore
