// Assignments by trying all ways to link.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "common/matrix_view.hpp"

namespace kernelcore {

// The least sum of k links among columns not yet used, of rows from `row` on.
template <class T>
double cheapest(MatrixView<const T> costs, std::size_t row, std::size_t k, unsigned used) {
  if (k == 0) return 0;
  if (costs.n_rows - row < k) return HUGE_VAL;
  double least = cheapest(costs, row + 1, k, used);
  for (std::size_t j = 0; j < costs.n_cols; ++j) {
    if ((used >> j & 1) != 0) continue;
    least = std::min(least, costs(row, j) + cheapest(costs, row + 1, k - 1, used | 1u << j));
  }
  return least;
}

}  // namespace kernelcore
