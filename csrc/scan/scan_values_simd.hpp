// The inner loops of scan_values.cpp, compiled once per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/isa.hpp"

namespace kernelcore {

// Side of the square pieces in which a matrix is compared with its transpose.
constexpr std::size_t kScanSide = 128;

// The extremes so far. `sum` is 0 as long as all values are finite, and NaN afterwards.
template <class T>
struct Seen {
  T smallest;
  T largest;
  T gap;
  T sum;
};

// Takes n more values into account.
template <class T>
using ScanRun = void (*)(const T* values, std::size_t n, Seen<T>& seen);

// Takes a piece of n_rows x n_cols and its mirror into account, and the differences between the
// piece and the transpose of the mirror. Rows of both are `stride` elements apart.
template <class T>
using CompareMirror = void (*)(const T* piece, const T* mirror, std::size_t stride,
                               std::size_t n_rows, std::size_t n_cols, Seen<T>& seen);

struct ScanKernels {
  ScanRun<float> f32;
  ScanRun<double> f64;
  ScanRun<std::uint8_t> u8;
  ScanRun<std::uint16_t> u16;
  ScanRun<std::uint32_t> u32;
  CompareMirror<float> mirror_f32;
  CompareMirror<double> mirror_f64;
};

KERNELCORE_DECLARE_PER_ISA(ScanKernels, scan_kernels)

}  // namespace kernelcore
