#include "captions/tag_rank_simd.hpp"

#include "common/simd.hpp"

namespace kernelcore {
namespace {

using Lanes = Vector<float>;
using Bits = Vector<std::int32_t>;

// exp(x) for x <= 0: 2^n exp(r) with |r| <= log(2) / 2 and exp(r) by its power series. Below
// -87 it is exp(-87), which still is a normal number.
inline Lanes exponential(Lanes x) {
  constexpr float kLog2E = 1.44269504f;
  // log(2) in two parts, the first so short that its product with n is exact.
  constexpr float kLog2High = 0.693359375f;
  constexpr float kLog2Low = -2.12194440e-4f;
  // Added to a small number, it leaves the nearest integer in the last bits.
  constexpr float kRound = 12582912.0f;

  x = select(x > -87.0f, x, splat(-87.0f));
  const Lanes rounded = x * kLog2E + kRound;
  const Lanes n = rounded - kRound;
  const Lanes r = (x - n * kLog2High) - n * kLog2Low;
  Lanes series = splat(1.0f / 5040);
  series = series * r + 1.0f / 720;
  series = series * r + 1.0f / 120;
  series = series * r + 1.0f / 24;
  series = series * r + 1.0f / 6;
  series = series * r + 0.5f;
  series = series * r + 1.0f;
  series = series * r + 1.0f;
  const Bits exponent = bits_as<std::int32_t>(rounded) - bits_as<std::int32_t>(splat(kRound));
  return series * bits_as<float>((exponent + 127) << 23);
}

inline Lanes similarity(const RankSums& sums, std::size_t col) {
  const Lanes distance = (sums.row + load(sums.cols + col)) - load(sums.shared + col);
  return exponential(select(distance > 0.0f, -distance, Lanes{}));
}

void add(const RankSums& absolute, const RankSums& relative, std::size_t n_cols,
         float* values) {
  for (std::size_t col = 0; col < n_cols; col += kLanes<float>) {
    const Lanes sum =
        load(values + col) + (similarity(absolute, col) + similarity(relative, col));
    store(values + col, sum);
    store(absolute.shared + col, Lanes{});
    store(relative.shared + col, Lanes{});
  }
}

}  // namespace

namespace KERNELCORE_ISA {

TagRankKernels tag_rank_kernels() { return {add}; }

}  // namespace KERNELCORE_ISA
}  // namespace kernelcore
