// The divisions of bag_of_words.cpp, compiled once per instruction set.
#pragma once

#include <cstddef>

#include "common/isa.hpp"

namespace kernelcore {

// Divides n sums of a row by what belongs to the row itself and to each column; where that is
// 0, the result is 0.
using DivideRow = void (*)(double* sums, std::size_t n, double own_row, const double* own_cols);

struct BagTiles {
  DivideRow by_root;  // of the product of the two
  DivideRow by_mean;  // of the two
};

KERNELCORE_DECLARE_TILES(BagTiles, bag_tiles)

}  // namespace kernelcore
