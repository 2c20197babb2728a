// Tiles of dot products of two sets of rows. Compiled once per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/isa.hpp"

namespace kernelcore {

// Components that are multiplied at once: those of a tile's rows fit the second-level cache.
template <class T>
constexpr std::size_t kProductDepth = 1536 / sizeof(T);

// Packed rows come in whole groups of this many, for every instruction set.
constexpr std::size_t kRowGroup = 12;

// Some components of rows on the left, packed, and of rows on the right.
template <class T>
struct ProductTile {
  const T* packed_left;
  std::size_t n_left;
  const T* right;
  std::size_t right_stride;  // elements from one row to the next
  std::size_t n_right;
  std::size_t depth;  // components, at most kProductDepth<T>
  bool is_first;      // out is overwritten, not added to
  T* out;
  std::size_t out_stride;
};

template <class T>
struct ProductKernel {
  // Copies some components of rows, side by side, and zeros up to a multiple of kRowGroup rows.
  void (*pack)(const T* rows, std::size_t stride, std::size_t n_rows, std::size_t depth,
               T* packed);
  void (*multiply)(const ProductTile<T>& tile);
  // out[j] = left[row_of[j]] . right[j], the same bits as in a tile.
  void (*pairs)(const T* left, const T* right, const std::int64_t* row_of, std::size_t n,
                std::size_t depth, T* out);
  // out[i] = rows[i] / |rows[i]|, or zeros; false if a number is not finite.
  bool (*unit)(const T* rows, std::size_t n, std::size_t depth, T* out);
};

struct ProductKernels {
  ProductKernel<float> f32;
  ProductKernel<double> f64;
};

KERNELCORE_DECLARE_PER_ISA(ProductKernels, product_kernels)

}  // namespace kernelcore
