#include "ranks/best_products.hpp"

#include <algorithm>

#include "ranks/dot_products.hpp"

namespace kernelcore {
namespace {

constexpr std::size_t kRun = 16;  // products that are compared with the worst score at once

// Puts what is better than the last of k candidates among them.
template <class T>
void improve(const T* products, std::size_t n, std::int64_t first, std::size_t k,
             std::int64_t* positions, T* scores) {
  for (std::size_t begin = 0; begin < n; begin += kRun) {
    const std::size_t end = std::min(begin + kRun, n);
    const T worst = scores[k - 1];
    bool is_any_better = false;
    for (std::size_t j = begin; j < end; ++j) is_any_better |= products[j] > worst;
    for (std::size_t j = begin; is_any_better && j < end; ++j) {
      if (!(products[j] > scores[k - 1])) continue;
      std::size_t at = k - 1;
      for (; at > 0 && products[j] > scores[at - 1]; --at) {
        scores[at] = scores[at - 1];
        positions[at] = positions[at - 1];
      }
      scores[at] = products[j];
      positions[at] = first + static_cast<std::int64_t>(j);
    }
  }
}

}  // namespace

template <class T>
void best_products(MatrixView<const T> left, MatrixView<const T> right, std::int64_t first,
                   MatrixView<std::int64_t> positions, MatrixView<T> scores,
                   std::size_t n_threads, Monitor& monitor) {
  Crew crew(n_threads, monitor);
  const auto look = [&](MatrixView<const T> tile, std::size_t i, std::size_t j, Worker&) {
    for (std::size_t row = 0; row < tile.n_rows; ++row) {
      improve(tile.row(row), tile.n_cols, first + static_cast<std::int64_t>(j), scores.n_cols,
              positions.row(i + row), scores.row(i + row));
    }
  };
  for_each_product_tile<T>(left, right, crew, look);
}

template void best_products<float>(MatrixView<const float>, MatrixView<const float>,
                                   std::int64_t, MatrixView<std::int64_t>, MatrixView<float>,
                                   std::size_t, Monitor&);
template void best_products<double>(MatrixView<const double>, MatrixView<const double>,
                                    std::int64_t, MatrixView<std::int64_t>, MatrixView<double>,
                                    std::size_t, Monitor&);

}  // namespace kernelcore
