// Division of a Gram matrix into the tiles that tasks compute.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "common/gram_tile.hpp"

namespace kernelcore {

// A task takes some tens of milliseconds, so that threads end together and progress moves, and
// its sums stay in the cache. Work is in units of about a nanosecond.
constexpr double kTaskWork = 3e7;
constexpr std::size_t kMaxTaskRows = 64;
constexpr std::size_t kMaxTaskSums = std::size_t{1} << 20;

// Tiles that cover a matrix, or its upper triangle, with n_parts sums for each element, whose
// work is about work_of_row(i) * work_of_col(j). They are as wide as the matrix wherever a row
// of it is not too much for one task.
template <class WorkOfRow, class WorkOfCol>
std::vector<TileRange> cut_tiles(std::size_t n_rows, std::size_t n_cols, bool symmetric,
                                 std::size_t n_parts, const WorkOfRow& work_of_row,
                                 const WorkOfCol& work_of_col) {
  std::vector<double> work_before(n_cols + 1, 0.0);  // of the columns before each column
  for (std::size_t col = 0; col < n_cols; ++col) {
    work_before[col + 1] = work_before[col] + work_of_col(col);
  }
  std::vector<TileRange> tiles;
  for (std::size_t row = 0; row < n_rows;) {
    const std::size_t first_col = symmetric ? row : 0;
    const double work_of_cols = work_before[n_cols] - work_before[first_col];
    const std::size_t row_sums = std::max<std::size_t>(1, n_cols * n_parts);
    const std::size_t max_rows =
        std::clamp<std::size_t>(kMaxTaskSums / row_sums, 1, kMaxTaskRows);
    double work_of_rows = work_of_row(row);
    std::size_t row_end = row + 1;
    for (; row_end < n_rows && row_end - row < max_rows; ++row_end) {
      const double more = work_of_rows + work_of_row(row_end);
      if (more * work_of_cols > kTaskWork) break;
      work_of_rows = more;
    }
    for (std::size_t col = first_col; col < n_cols;) {
      std::size_t col_end = n_cols;
      if (work_of_rows * (work_before[n_cols] - work_before[col]) > kTaskWork) {
        const double most = work_before[col] + kTaskWork / work_of_rows;
        const auto beyond = std::upper_bound(work_before.begin(), work_before.end(), most);
        const auto n_fit = static_cast<std::size_t>(beyond - work_before.begin()) - 1;
        col_end = std::clamp(n_fit, col + 1, n_cols);
      }
      tiles.push_back({row, row_end, col, col_end});
      col = col_end;
    }
    row = row_end;
  }
  return tiles;
}

}  // namespace kernelcore
