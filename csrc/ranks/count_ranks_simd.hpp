// The inner loops of count_ranks.cpp, compiled once per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/isa.hpp"

namespace kernelcore {

// Queries of one direction: gold scores, and the counts to add to.
template <class T, class Count>
struct CountSide {
  const T* gold;
  Count* greater;
  Count* tied;
};

// A block of scores against the gold scores of its rows, of its columns, or of both.
template <class T>
struct CountJob {
  const T* scores;
  std::size_t stride;  // elements from one row to the next
  std::size_t n_rows;
  std::size_t n_cols;
  CountSide<T, std::int64_t> rows;
  // Counted in integers of the width of a score: they fill a vector as scores do.
  CountSide<T, LaneInt<T>> columns;
};

// Returns whether a score is NaN.
template <class T>
using CountBlock = bool (*)(const CountJob<T>& job);

template <class T>
struct CountKernel {
  CountBlock<T> rows;     // does not look at job.columns
  CountBlock<T> columns;  // does not look at job.rows
  CountBlock<T> both;
};

struct CountKernels {
  CountKernel<float> f32;
  CountKernel<double> f64;
};

KERNELCORE_DECLARE_PER_ISA(CountKernels, count_kernels)

}  // namespace kernelcore
