// The inner loops of histogram_intersection.cpp, compiled once per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/isa.hpp"

namespace kernelcore {

// Bytes of a row that are summed in vector lanes before the lanes are added up.
constexpr std::size_t kBlockBytes = 4096;

// Rows are cut into groups of bins, as long as the widest vector on every instruction set.
constexpr std::size_t kGroupBytes = 64;
template <class T>
constexpr std::size_t kGroup = kGroupBytes / sizeof(T);

// Rows are summed in panels of kPanelRows: the first groups of its rows stand side by side,
// then the second ones, and so on. The last group is filled up with zeros, which add nothing.
constexpr std::size_t kPanelRows = 4;

// Most columns of a tile: their block of bins takes half of a second-level cache of 1 MB.
constexpr std::size_t kTileCols = 128;

// A panel of X against consecutive panels of Y. next_x is where the next rows of X would be: an
// address to prefetch and not a pointer, as there may be none.
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
using IntersectionKernel = void (*)(const PanelPair<T>& panels, Sum* sums);

struct IntersectionKernels {
  IntersectionKernel<float, double> f32;
  IntersectionKernel<double, double> f64;
  IntersectionKernel<std::uint8_t, std::uint64_t> u8_differences;
  // Narrow: sums have the type of the counts. For inputs of which one has no overflow when
  // every kGroup-th bin of a block is added: a sum of minima is at most the smaller mass.
  IntersectionKernel<std::uint16_t, std::uint64_t> u16_narrow;
  IntersectionKernel<std::uint16_t, std::uint64_t> u16_wide;
  IntersectionKernel<std::uint32_t, std::uint64_t> u32_narrow;
  IntersectionKernel<std::uint32_t, std::uint64_t> u32_wide;
};

KERNELCORE_DECLARE_PER_ISA(IntersectionKernels, intersection_kernels)

}  // namespace kernelcore
