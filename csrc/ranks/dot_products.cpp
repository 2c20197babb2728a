#include "ranks/dot_products.hpp"

#include <algorithm>

#include "common/aligned_buffer.hpp"
#include "ranks/dot_products_simd.hpp"

namespace kernelcore {
namespace {

// Rows on the left of a task: many, as the other side is read once for all of them, but as few
// as give all threads the same number of tasks.
constexpr std::size_t kMostRows = 42 * kRowGroup, kFewestRows = 8 * kRowGroup;
constexpr std::size_t kTasksPerThread = 2;  // at least
// A strip of a tile stays in the second-level cache while it is added to. Rows of a tile that
// are a page apart would share few places of a cache.
template <class T>
constexpr std::size_t kStripCols = 1024 / sizeof(T);
constexpr std::size_t kTileCols = 1024, kTileStride = kTileCols + 16;

constexpr std::size_t kProductsPerUnit = 16;  // of work, on the slower instruction sets
constexpr std::size_t kPairsPerTask = 1024;

std::size_t whole_groups(std::size_t n_rows) {
  return (n_rows + kRowGroup - 1) / kRowGroup * kRowGroup;
}

template <class T>
MatrixView<const T> some_rows(MatrixView<const T> all, std::size_t begin, std::size_t most) {
  return {all.row(begin), std::min(most, all.n_rows - begin), all.n_cols, all.stride};
}

// Multiplies some rows, which it copies, with others.
template <class T>
class RowProducts {
 public:
  explicit RowProducts(Worker& worker) : worker_(worker) {}

  void copy(MatrixView<const T> left) {
    n_rows_ = left.n_rows;
    T* packed = packed_.with_room_for(whole_groups(n_rows_) * left.n_cols);
    for (std::size_t k = 0; k < left.n_cols; k += kDepth) {
      const std::size_t depth = std::min(kDepth, left.n_cols - k);
      kernel_.pack(left.data + k, left.stride, n_rows_, depth,
                   packed + k * whole_groups(n_rows_));
    }
  }

  // The products with up to kTileCols rows on the right, strip by strip.
  MatrixView<const T> multiply(MatrixView<const T> right) {
    T* tile = tile_.with_room_for(n_rows_ * kTileStride);
    for (std::size_t j = 0; j < right.n_rows; j += kStripCols<T>) {
      const MatrixView<const T> strip = some_rows(right, j, kStripCols<T>);
      for (std::size_t k = 0; k < right.n_cols; k += kDepth) {
        const std::size_t depth = std::min(kDepth, right.n_cols - k);
        worker_.spend(n_rows_ * strip.n_rows * depth / kProductsPerUnit);
        kernel_.multiply({packed_.data() + k * whole_groups(n_rows_), n_rows_, strip.data + k,
                          strip.stride, strip.n_rows, depth, k == 0, tile + j, kTileStride});
      }
    }
    return {tile, n_rows_, right.n_rows, kTileStride};
  }

 private:
  static constexpr std::size_t kDepth = kProductDepth<T>;
  const ProductKernel<T> kernel_ = of_type<T>(KERNELCORE_DISPATCH(product_kernels));
  Worker& worker_;
  std::size_t n_rows_ = 0;
  AlignedBuffer<T> packed_, tile_;
};

}  // namespace

template <class T>
void for_each_product_tile(MatrixView<const T> left, MatrixView<const T> right, Crew& crew,
                           const ProductBody<T>& body) {
  KC_ASSERT(left.n_cols == right.n_cols && left.n_cols > 0);
  const std::size_t share = (left.n_rows + crew.n_threads() - 1) / crew.n_threads();
  const std::size_t n_tasks = std::max(kTasksPerThread, (share + kMostRows - 1) / kMostRows);
  const std::size_t step = std::max(kFewestRows, whole_groups((share + n_tasks - 1) / n_tasks));
  PerWorker<RowProducts<T>> all(crew.n_threads());
  crew.parallel_for((left.n_rows + step - 1) / step, [&](std::size_t task, Worker& worker) {
    RowProducts<T>& products = all.of(worker);
    products.copy(some_rows(left, task * step, step));
    for (std::size_t j = 0; j < right.n_rows; j += kTileCols) {
      body(products.multiply(some_rows(right, j, kTileCols)), task * step, j, worker);
    }
  });
}

template <class T>
void dot_products(MatrixView<const T> left, MatrixView<const T> right, MatrixView<T> out,
                  std::size_t n_threads, Monitor& monitor) {
  Crew crew(n_threads, monitor);
  const auto keep = [&](MatrixView<const T> tile, std::size_t i, std::size_t j, Worker&) {
    for (std::size_t row = 0; row < tile.n_rows; ++row) {
      std::copy_n(tile.row(row), tile.n_cols, out.row(i + row) + j);
    }
  };
  for_each_product_tile<T>(left, right, crew, keep);
}

template <class T>
void paired_dot_products(MatrixView<const T> left, MatrixView<const T> right,
                         const std::int64_t* row_of, T* out, std::size_t n_threads,
                         Monitor& monitor) {
  const ProductKernel<T> kernel = of_type<T>(KERNELCORE_DISPATCH(product_kernels));
  const std::size_t n = right.n_rows;
  Crew crew(n_threads, monitor);
  crew.parallel_for((n + kPairsPerTask - 1) / kPairsPerTask, [&](std::size_t task, Worker&) {
    const std::size_t begin = task * kPairsPerTask;
    kernel.pairs(left.data, right.row(begin), row_of + begin,
                 std::min(kPairsPerTask, n - begin), left.n_cols, out + begin);
  });
}

template <class T>
bool unit_rows(MatrixView<const T> rows, MatrixView<T> out, Monitor& monitor) {
  constexpr std::size_t kRowsPerLook = 64;
  const ProductKernel<T> kernel = of_type<T>(KERNELCORE_DISPATCH(product_kernels));
  Crew crew(1, monitor);
  for (std::size_t i = 0; i < rows.n_rows; i += kRowsPerLook) {
    const std::size_t n = std::min(kRowsPerLook, rows.n_rows - i);
    if (!kernel.unit(rows.row(i), n, rows.n_cols, out.row(i))) return false;
    crew.caller().spend(n * rows.n_cols);
  }
  return true;
}

template void for_each_product_tile<float>(MatrixView<const float>, MatrixView<const float>,
                                           Crew&, const ProductBody<float>&);
template void for_each_product_tile<double>(MatrixView<const double>, MatrixView<const double>,
                                            Crew&, const ProductBody<double>&);
template void dot_products<float>(MatrixView<const float>, MatrixView<const float>,
                                  MatrixView<float>, std::size_t, Monitor&);
template void dot_products<double>(MatrixView<const double>, MatrixView<const double>,
                                   MatrixView<double>, std::size_t, Monitor&);
template void paired_dot_products<float>(MatrixView<const float>, MatrixView<const float>,
                                         const std::int64_t*, float*, std::size_t, Monitor&);
template void paired_dot_products<double>(MatrixView<const double>, MatrixView<const double>,
                                          const std::int64_t*, double*, std::size_t, Monitor&);
template bool unit_rows<float>(MatrixView<const float>, MatrixView<float>, Monitor&);
template bool unit_rows<double>(MatrixView<const double>, MatrixView<double>, Monitor&);

}  // namespace kernelcore
