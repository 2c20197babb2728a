// The inner loops of histogram_intersection.cpp, compiled once per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/isa.hpp"

namespace kernelcore {

// Bytes of a row that are summed in vector lanes before the lanes are added up.
constexpr std::size_t kBlockBytes = 4096;

// Rows are summed in panels: groups of 64 bytes (kGroupBytes), those of the rows of a panel
// side by side, the last one filled up with zeros, which add nothing.
constexpr std::size_t kPanelRows = 4;

// Most columns of a tile: their block of bins takes half of a second-level cache of 1 MB.
constexpr std::size_t kTileCols = 128;

// A panel of X against consecutive panels of Y, and where the next rows of X would lie: an
// address to fetch ahead, not a pointer, for there may be no next rows.
template <class T>
struct PanelPair {
  const T* x;
  const T* y;
  std::size_t n_y;
  std::size_t n_groups;  // up to kBlockBytes of a row
  std::uintptr_t next_x;
  std::size_t next_stride;  // in bytes
};

// sums[i * kTileCols + j] += sum_b min(x_i[b], y_j[b]), for bytes sum_b |x_i[b] - y_j[b]|,
// for the kPanelRows rows i of x and kPanelRows * n_y rows j of y.
template <class T, class Sum>
using IntersectionTile = void (*)(const PanelPair<T>& panels, Sum* sums);

struct IntersectionTiles {
  IntersectionTile<float, double> f32;
  IntersectionTile<double, double> f64;
  IntersectionTile<std::uint8_t, std::uint64_t> u8_differences;
  // Narrow sums stay in the type of the counts: only where every kGroup-th bin of a block of
  // one of the two inputs adds up to less than its maximum. A sum of minima is at most the
  // smaller mass.
  IntersectionTile<std::uint16_t, std::uint64_t> u16_narrow;
  IntersectionTile<std::uint16_t, std::uint64_t> u16_wide;
  IntersectionTile<std::uint32_t, std::uint64_t> u32_narrow;
  IntersectionTile<std::uint32_t, std::uint64_t> u32_wide;
};

KERNELCORE_DECLARE_TILES(IntersectionTiles, intersection_tiles)

}  // namespace kernelcore
