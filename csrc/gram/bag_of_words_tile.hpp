// What bag_of_words.cpp does with the sums of a row, compiled once per instruction set.
#pragma once

#include <cstddef>

#include "common/isa.hpp"

namespace kernelcore {

// Divides n sums of a row by what belongs to the row itself and to each column, and rounds them
// to the type of the result; where that is 0, the result is 0.
template <class Out>
using DivideRow = void (*)(const double* sums, std::size_t n, double own_row,
                           const double* own_cols, Out* to);

// Writes to(col, row) = from(row, col); rows of both lie `stride` apart.
template <class Out>
using Mirror = void (*)(const Out* from, std::size_t n_rows, std::size_t n_cols, Out* to,
                        std::size_t stride);

template <class Out>
struct BagTile {
  DivideRow<Out> by_root;  // of the product of the two
  DivideRow<Out> by_mean;  // of the two
  Mirror<Out> mirror;
};

struct BagTiles {
  BagTile<float> f32;
  BagTile<double> f64;
};

KERNELCORE_DECLARE_TILES(BagTiles, bag_tiles)

}  // namespace kernelcore
