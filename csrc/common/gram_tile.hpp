// Tiles are the rectangles of a Gram matrix that tasks compute: normalising and writing them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include "common/matrix_view.hpp"
#include "common/worker.hpp"

namespace kernelcore {

struct TileRange {
  std::size_t row_begin, row_end, col_begin, col_end;

  std::size_t n_rows() const { return row_end - row_begin; }
  std::size_t n_cols() const { return col_end - col_begin; }
};

// Similarities of the samples of rows and of columns with themselves.
struct SelfSimilarities {
  const double* rows = nullptr;
  const double* cols = nullptr;
};

// Throws std::invalid_argument if a similarity of an image with itself left the range of its
// type: images divided by it would have similarity 0 with all.
inline void check_finite(const std::vector<double>& self) {
  for (std::size_t i = 0; i < self.size(); ++i) {
    if (std::isfinite(self[i])) continue;
    throw std::invalid_argument(
        "word_weights, word_kernel and match_decay must leave each image a finite similarity "
        "with itself, unlike the one at position " +
        std::to_string(i));
  }
}

// sqrt(a * b) for a, b >= 0, also where the product is not a normal number.
inline double geometric_mean(double a, double b) {
  // One root of the product, not two roots: equal samples get exactly 1.
  const double product = a * b;
  if (std::isnormal(product) || a == 0 || b == 0) return std::sqrt(product);
  int power_a = 0, power_b = 0;
  const double parts = std::frexp(a, &power_a) * std::frexp(b, &power_b);
  const int power = power_a + power_b;
  const int odd = power & 1;
  return std::ldexp(std::sqrt(std::ldexp(parts, odd)), (power - odd) / 2);
}

// sums[row][col] /= sqrt(self(row) * self(col)), 0 where that is 0.
inline void normalize_tile(double* sums, const TileRange& tile, const SelfSimilarities& self) {
  for (std::size_t row = tile.row_begin; row < tile.row_end; ++row) {
    for (std::size_t col = tile.col_begin; col < tile.col_end; ++col, ++sums) {
      const double length = geometric_mean(self.rows[row], self.cols[col]);
      *sums = length > 0 ? *sums / length : 0.0;
    }
  }
}

// Mirrors the part of a tile above the diagonal of a symmetric matrix, whose elements have
// n_parts values.
template <class Out>
void mirror_tile(const TileRange& tile, std::size_t n_parts, MatrixView<Out> K,
                 Worker& worker) {
  // Columns whose values in a row are a cache line or two. The first write to a page of 2 MiB
  // may make the system fill it with zeros.
  constexpr std::size_t kCols = 16, kWorkPerPage = 20'000;
  for (std::size_t first = tile.col_begin; first < tile.col_end; first += kCols) {
    worker.spend(kCols * kWorkPerPage);
    const std::size_t end = std::min(first + kCols, tile.col_end);
    const std::size_t n_above = n_parts == 1 ? std::min(tile.row_end, first) : 0;
    std::size_t row = tile.row_begin;
    for (; row + 4 <= n_above; row += 4) {  // one store for four rows
      for (std::size_t col = first; col < end; ++col) {
        const Out run[4] = {K(row, col), K(row + 1, col), K(row + 2, col), K(row + 3, col)};
        std::copy_n(run, 4, &K(col, row));
        prefetch(&K(col, row), kCols * K.stride);
      }
      for (std::size_t i = row; i < row + 4; ++i) {  // the next columns, two cache lines
        prefetch(&K(i, first), kCols);
        prefetch(&K(i, first), kCols + kCols / 2);
      }
    }
    for (; row < std::min(tile.row_end, end); ++row) {
      for (std::size_t col = std::max(first, row + 1); col < end; ++col) {
        std::copy_n(&K(row, col * n_parts), n_parts, &K(col, row * n_parts));
      }
    }
  }
}

// Copies sums[row][col][part] to K(row, col * n_parts + part). For a symmetric matrix, copies
// the sums on and above the diagonal, and mirrors them.
template <class Sum, class Out>
void write_tile(const Sum* sums, std::size_t n_parts, const TileRange& tile, bool symmetric,
                MatrixView<Out> K, Worker& worker) {
  const std::size_t n_cols = tile.n_cols();
  for (std::size_t i = 0; i < tile.n_rows(); ++i) {
    worker.spend(n_cols * n_parts);
    const std::size_t row = tile.row_begin + i;
    const std::size_t first = symmetric && row > tile.col_begin ? row - tile.col_begin : 0;
    for (std::size_t at = first * n_parts; at < n_cols * n_parts; ++at) {
      K(row, tile.col_begin * n_parts + at) = static_cast<Out>(sums[i * n_cols * n_parts + at]);
    }
  }
  if (symmetric) mirror_tile(tile, n_parts, K, worker);
}

}  // namespace kernelcore
