// The inner loops of histogram_intersection.cpp, compiled once per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/isa.hpp"

namespace kernelcore {

// Bytes of a row that are summed in vector lanes before the lanes are added up.
constexpr std::size_t kBlockBytes = 4096;

// Most rows of a tile: the block of bins of both sides stays in the second-level cache.
constexpr std::size_t kTileRows = 32;
constexpr std::size_t kTileCols = 64;

// sums[i * sums_stride + j] += sum_b min(x[i * x_stride + b], y[j * y_stride + b]) for a block
// of n_bins <= kBlockBytes / sizeof(T) bins, n_x <= kTileRows and n_y <= kTileCols.
template <class T, class Sum>
using IntersectionTile = void (*)(const T* x, std::size_t x_stride, std::size_t n_x, const T* y,
                                  std::size_t y_stride, std::size_t n_y, std::size_t n_bins,
                                  Sum* sums, std::size_t sums_stride);

struct IntersectionTiles {
  IntersectionTile<float, double> f32;
  IntersectionTile<double, double> f64;
  IntersectionTile<std::uint8_t, std::uint64_t> u8;
  // Narrow sums stay in the type of the counts: only where a block of one of the two inputs
  // adds up to less than its maximum. A sum of minima is at most the smaller mass.
  IntersectionTile<std::uint16_t, std::uint64_t> u16_narrow;
  IntersectionTile<std::uint16_t, std::uint64_t> u16_wide;
  IntersectionTile<std::uint32_t, std::uint64_t> u32_narrow;
  IntersectionTile<std::uint32_t, std::uint64_t> u32_wide;
};

KERNELCORE_DECLARE_TILES(IntersectionTiles, intersection_tiles)

}  // namespace kernelcore
