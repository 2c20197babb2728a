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

template <class Divisor, class Out>
void divide(const double* sums, std::size_t n, double own_row, const double* own_cols,
            Out* to) {
  const Divisor divisor;
  const Lanes zeros = {};
  const Lanes own = zeros + own_row;
  std::size_t j = 0;
  for (; j + kLanes<double> <= n; j += kLanes<double>) {
    const Lanes by = divisor(own, load(own_cols + j));
    const Lanes shares = by > zeros ? load(sums + j) / by : zeros;
    for (std::size_t lane = 0; lane < kLanes<double>; ++lane) {
      to[j + lane] = static_cast<Out>(shares[lane]);
    }
  }
  for (; j < n; ++j) {
    const double by = divisor(own_row, own_cols[j]);
    to[j] = static_cast<Out>(by > 0 ? sums[j] / by : 0.0);
  }
}

// Rows and columns that are mirrored at once.
constexpr std::size_t kSide = 4;

#if KERNELCORE_X86
inline void mirror_square(const float* from, float* to, std::size_t stride) {
  __m128 a = _mm_loadu_ps(from), b = _mm_loadu_ps(from + stride);
  __m128 c = _mm_loadu_ps(from + 2 * stride), d = _mm_loadu_ps(from + 3 * stride);
  _MM_TRANSPOSE4_PS(a, b, c, d);
  _mm_storeu_ps(to, a);
  _mm_storeu_ps(to + stride, b);
  _mm_storeu_ps(to + 2 * stride, c);
  _mm_storeu_ps(to + 3 * stride, d);
}
#endif

#if KERNELCORE_X86 && defined(__AVX2__)
inline void mirror_square(const double* from, double* to, std::size_t stride) {
  const __m256d a = _mm256_loadu_pd(from), b = _mm256_loadu_pd(from + stride);
  const __m256d c = _mm256_loadu_pd(from + 2 * stride), d = _mm256_loadu_pd(from + 3 * stride);
  const __m256d even_ab = _mm256_unpacklo_pd(a, b), odd_ab = _mm256_unpackhi_pd(a, b);
  const __m256d even_cd = _mm256_unpacklo_pd(c, d), odd_cd = _mm256_unpackhi_pd(c, d);
  _mm256_storeu_pd(to, _mm256_permute2f128_pd(even_ab, even_cd, 0x20));
  _mm256_storeu_pd(to + stride, _mm256_permute2f128_pd(odd_ab, odd_cd, 0x20));
  _mm256_storeu_pd(to + 2 * stride, _mm256_permute2f128_pd(even_ab, even_cd, 0x31));
  _mm256_storeu_pd(to + 3 * stride, _mm256_permute2f128_pd(odd_ab, odd_cd, 0x31));
}
#endif

template <class Out>
inline void mirror_square(const Out* from, Out* to, std::size_t stride) {
  for (std::size_t j = 0; j < kSide; ++j) {
    for (std::size_t i = 0; i < kSide; ++i) to[j * stride + i] = from[i * stride + j];
  }
}

template <class Out>
void mirror(const Out* from, std::size_t n_rows, std::size_t n_cols, Out* to,
            std::size_t stride) {
  // A cache line of every row at once, and of the columns as much as there is.
  constexpr std::size_t kCols = kGroup<Out>;
  for (std::size_t first = 0; first < n_cols; first += kCols) {
    const std::size_t end = first + kCols < n_cols ? first + kCols : n_cols;
    std::size_t i = 0;
    for (; i + kSide <= n_rows; i += kSide) {
      std::size_t j = first;
      for (; j + kSide <= end; j += kSide) {
        mirror_square(from + i * stride + j, to + j * stride + i, stride);
      }
      for (; j < end; ++j) {
        for (std::size_t k = i; k < i + kSide; ++k) to[j * stride + k] = from[k * stride + j];
      }
    }
    for (; i < n_rows; ++i) {
      for (std::size_t j = first; j < end; ++j) to[j * stride + i] = from[i * stride + j];
    }
  }
}

template <class Out>
BagTile<Out> bag_tile() {
  return {divide<Root, Out>, divide<Mean, Out>, mirror<Out>};
}

}  // namespace

namespace KERNELCORE_ISA {

BagTiles bag_tiles() { return {bag_tile<float>(), bag_tile<double>()}; }

}  // namespace KERNELCORE_ISA
}  // namespace kernelcore
