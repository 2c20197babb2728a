#include "gram/bag_of_words_tile.hpp"

#include "common/lanes.hpp"

namespace kernelcore {
namespace {

using Lanes = Vector<double>;

inline Lanes square_roots(Lanes x) {
#if KERNELCORE_X86 && defined(__AVX512BW__)
  return reinterpret_cast<Lanes>(_mm512_maskz_sqrt_pd(0xff, reinterpret_cast<__m512d>(x)));
#elif KERNELCORE_X86 && defined(__AVX2__)
  return reinterpret_cast<Lanes>(_mm256_sqrt_pd(reinterpret_cast<__m256d>(x)));
#elif KERNELCORE_X86
  return reinterpret_cast<Lanes>(_mm_sqrt_pd(reinterpret_cast<__m128d>(x)));
#else
  for (std::size_t lane = 0; lane < kLanes<double>; ++lane) x[lane] = __builtin_sqrt(x[lane]);
  return x;
#endif
}

// One root of the product, not two roots: equal rows get exactly 1.
struct Root {
  Lanes operator()(Lanes x, Lanes y) const { return square_roots(x * y); }
  double operator()(double x, double y) const { return __builtin_sqrt(x * y); }
};

struct Mean {
  template <class X>
  X operator()(X x, X y) const {
    return (x + y) / 2;
  }
};

template <class Divisor>
void divide(double* sums, std::size_t n, double own_row, const double* own_cols) {
  const Divisor divisor;
  const Lanes zeros = {};
  const Lanes own = zeros + own_row;
  std::size_t j = 0;
  for (; j + kLanes<double> <= n; j += kLanes<double>) {
    const Lanes by = divisor(own, load(own_cols + j));
    const Lanes shares = by > zeros ? load(sums + j) / by : zeros;
    std::memcpy(sums + j, &shares, sizeof shares);
  }
  for (; j < n; ++j) {
    const double by = divisor(own_row, own_cols[j]);
    sums[j] = by > 0 ? sums[j] / by : 0.0;
  }
}

}  // namespace

namespace KERNELCORE_ISA {

BagTiles bag_tiles() { return {divide<Root>, divide<Mean>}; }

}  // namespace KERNELCORE_ISA
}  // namespace kernelcore
