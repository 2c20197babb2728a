// The inner loops of tag_rank.cpp, compiled once per instruction set.
#pragma once

#include <cstddef>

#include "common/isa.hpp"

namespace kernelcore {

// One kind of rank, divided by twice its width: sums over the words of the row caption and of
// each column caption, and the terms of shared words. `shared` becomes 0.
struct RankSums {
  float row;
  const float* cols;
  float* shared;
};

struct TagRankKernels {
  // values[c] += exp(-max(0, row + cols[c] - shared[c])), for both kinds of rank.
  void (*add)(const RankSums& absolute, const RankSums& relative, std::size_t n_cols,
              float* values);
};

KERNELCORE_DECLARE_PER_ISA(TagRankKernels, tag_rank_kernels)

}  // namespace kernelcore
