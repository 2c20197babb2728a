// Inner loops of the rank counts, once for every instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "common/isa.hpp"

namespace kernelcore {

// Scores are counted in integers of their own width, which fill vector lanes as they do.
template <class T>
using LaneCount = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;

// Adds to the counts of n_rows rows and n_cols columns; a direction whose gold scores are null
// is left out. Returns whether a score is NaN.
template <class T>
using CountTile = bool (*)(const T* scores, std::size_t stride, std::size_t n_rows,
                           std::size_t n_cols, const T* row_gold, std::int64_t* row_greater,
                           std::int64_t* row_tied, const T* column_gold,
                           LaneCount<T>* column_greater, LaneCount<T>* column_tied);

struct CountTiles {
  CountTile<float> f32;
  CountTile<double> f64;
};

KERNELCORE_DECLARE_TILES(CountTiles, count_tiles)

}  // namespace kernelcore
