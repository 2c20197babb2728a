#include "histograms/divide_rows_simd.hpp"

#include "common/simd.hpp"

namespace kernelcore {
namespace {

using Lanes = Vector<double>;

// One root of the product, not two roots: equal rows get exactly 1.
struct Root {
  Lanes operator()(Lanes, Lanes x, Lanes y) const { return square_root(x * y); }
  double operator()(double, double x, double y) const { return __builtin_sqrt(x * y); }
};

struct Mean {
  template <class X>
  X operator()(X, X x, X y) const {
    return (x + y) / 2;
  }
};

// 2 x is exact: equal rows get exactly 1, and rows with a sum of at most both never more.
struct Union {
  template <class X>
  X operator()(X sum, X x, X y) const {
    return (x + y) - sum;
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
    const Lanes sum = load(sums + j);
    const Lanes by = divisor(sum, own, load(own_cols + j));
    const Lanes shares = select(by > zeros, sum / by, zeros);
    for (std::size_t lane = 0; lane < kLanes<double>; ++lane) {
      to[j + lane] = static_cast<Out>(shares[lane]);
    }
  }
  for (; j < n; ++j) {
    const double by = divisor(sums[j], own_row, own_cols[j]);
    to[j] = static_cast<Out>(by > 0 ? sums[j] / by : 0.0);
  }
}

}  // namespace

namespace KERNELCORE_ISA {

DivideKernels divide_kernels() {
  return {{divide<Root, float>, divide<Mean, float>, divide<Union, float>},
          {divide<Root, double>, divide<Mean, double>, divide<Union, double>}};
}

}  // namespace KERNELCORE_ISA
}  // namespace kernelcore
