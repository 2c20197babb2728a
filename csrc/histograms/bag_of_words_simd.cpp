#include "histograms/bag_of_words_simd.hpp"

#include "common/simd.hpp"

namespace kernelcore {
namespace {

using Lanes = Vector<double>;

// One root of the product, not two roots: equal rows get exactly 1.
struct Root {
  Lanes operator()(Lanes x, Lanes y) const { return square_root(x * y); }
  double operator()(double x, double y) const { return __builtin_sqrt(x * y); }
};

struct Mean {
  template <class X>
  X operator()(X x, X y) const {
    return (x + y) / 2;
  }
};

template <class Divisor, class Out>
void divide(const double* sums, std::size_t n, double own_row, const double* own_cols,
            Out* to) {
  const Divisor divisor;
  const Lanes zeros = {};
  const Lanes own = splat(own_row);
  std::size_t j = 0;
  for (; j + kLanes<double> <= n; j += kLanes<double>) {
    const Lanes by = divisor(own, load(own_cols + j));
    const Lanes shares = select(by > zeros, load(sums + j) / by, zeros);
    for (std::size_t lane = 0; lane < kLanes<double>; ++lane) {
      to[j + lane] = static_cast<Out>(shares[lane]);
    }
  }
  for (; j < n; ++j) {
    const double by = divisor(own_row, own_cols[j]);
    to[j] = static_cast<Out>(by > 0 ? sums[j] / by : 0.0);
  }
}

template <class Out>
void mirror(const Out* from, std::size_t n_rows, std::size_t n_cols, Out* to,
            std::size_t stride) {
  // A cache line of every row at once.
  constexpr std::size_t kCols = 64 / sizeof(Out);
  for (std::size_t first = 0; first < n_cols; first += kCols) {
    const std::size_t end = first + kCols < n_cols ? first + kCols : n_cols;
    std::size_t i = 0;
    for (; i + kSquare <= n_rows; i += kSquare) {
      std::size_t j = first;
      for (; j + kSquare <= end; j += kSquare) {
        copy_transposed(from + i * stride + j, to + j * stride + i, stride);
      }
      for (; j < end; ++j) {
        for (std::size_t k = i; k < i + kSquare; ++k) to[j * stride + k] = from[k * stride + j];
      }
    }
    for (; i < n_rows; ++i) {
      for (std::size_t j = first; j < end; ++j) to[j * stride + i] = from[i * stride + j];
    }
  }
}

template <class Out>
BagKernel<Out> bag_kernel() {
  return {divide<Root, Out>, divide<Mean, Out>, mirror<Out>};
}

}  // namespace

namespace KERNELCORE_ISA {

BagKernels bag_kernels() { return {bag_kernel<float>(), bag_kernel<double>()}; }

}  // namespace KERNELCORE_ISA
}  // namespace kernelcore
