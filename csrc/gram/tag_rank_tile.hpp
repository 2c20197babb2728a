// The inner loops of tag_rank.cpp, compiled once per instruction set.
#pragma once

#include <cstddef>

#include "common/isa.hpp"

namespace kernelcore {

// One kind of rank: sums over the words of the row caption and of each column caption, over
// twice the width, and what the words they share take off. `shared` becomes 0.
struct RankSums {
  float row;
  const float* cols;
  float* shared;
};

struct TagRankTiles {
  // values[c] += exp(-max(0, row + cols[c] - shared[c])), for both kinds of rank.
  void (*add)(const RankSums& absolute, const RankSums& relative, std::size_t n_cols,
              float* values);
};

KERNELCORE_DECLARE_TILES(TagRankTiles, tag_rank_tiles)

}  // namespace kernelcore
