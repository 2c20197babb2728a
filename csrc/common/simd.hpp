// Vectors of the instruction set that a *_simd.cpp is compiled for. Intrinsics are in this file
// alone; those of another processor belong here too.
//
// Everything here has internal linkage: the same source is compiled for several instruction
// sets, and a function that the linker merged across them might run on a processor that lacks
// its instructions. tests/cpp/run.sh checks the objects for that.
//
// Sums of values, minima and products by powers of two have the same bits on all instruction
// sets if a loop adds in the same order for every width of a vector;
// tests/test_instruction_sets.py lists the functions that do. Where another product is added to
// a sum, compilers contract both into one instruction that rounds once, if there is one (v3,
// v4; GCC does, Clang within an expression): the inner loops of word_sequence, tag_rank
// and dot_products differ in the last bits between v2 and the others. add_products() leaves no
// choice to the compiler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "common/isa.hpp"

#if KERNELCORE_X86
#include <immintrin.h>
#endif

namespace kernelcore {
namespace {

// ---- Types ---------------------------------------------------------------------------------

#if defined(__AVX512BW__)
constexpr std::size_t kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr std::size_t kVectorBytes = 32;
#else
constexpr std::size_t kVectorBytes = 16;
#endif

// kBytes of values of type T. Arithmetic, comparisons and bit operations work by lane.
template <class T, std::size_t kBytes>
struct VectorOf {
  typedef T type __attribute__((vector_size(kBytes)));
};
template <class T>
using Vector = typename VectorOf<T, kVectorBytes>::type;

template <class T>
constexpr std::size_t kLanes = kVectorBytes / sizeof(T);

// The result of a comparison of two Vector<T>: lanes of all ones (-1) or all zeros.
template <class T>
using Mask = Vector<LaneInt<T>>;

// ---- Memory --------------------------------------------------------------------------------

template <class T, std::size_t kBytes = kVectorBytes>
inline typename VectorOf<T, kBytes>::type load(const T* from) {
  typename VectorOf<T, kBytes>::type lanes;
  std::memcpy(&lanes, from, sizeof lanes);
  return lanes;
}

// Loads once: compilers may otherwise repeat the load in every instruction that uses the
// vector.
template <class T>
inline Vector<T> load_into_register(const T* from) {
  Vector<T> lanes = load(from);
#if KERNELCORE_X86
  asm("" : "+v"(lanes));
#endif
  return lanes;
}

template <class T, class Lanes>
inline void store(T* to, Lanes lanes) {
  std::memcpy(to, &lanes, sizeof lanes);
}

// ---- Lane by lane --------------------------------------------------------------------------

// All lanes the same. Subtraction of zero keeps the sign of -0.0, addition would not.
template <class T>
inline Vector<T> splat(T value) {
  return value - Vector<T>{};
}

// 0, 1, 2, ...
template <class T>
inline Vector<T> lane_numbers() {
  Vector<T> lanes = {};
  for (std::size_t lane = 0; lane < kLanes<T>; ++lane) lanes[lane] = static_cast<T>(lane);
  return lanes;
}

// The same bits as lanes of type T.
template <class T, class Lanes>
inline Vector<T> bits_as(Lanes lanes) {
  return reinterpret_cast<Vector<T>>(lanes);
}

template <class Bits, class Lanes>
inline Lanes select(Bits mask, Lanes where_set, Lanes elsewhere) {
  return mask ? where_set : elsewhere;
}

// b where a lane of a or b is NaN.
template <class T>
inline Vector<T> minimum(Vector<T> a, Vector<T> b) {
  return a < b ? a : b;
}

// a where a lane of a or b is NaN.
template <class T>
inline Vector<T> maximum(Vector<T> a, Vector<T> b) {
  return a < b ? b : a;
}

inline Vector<double> square_root(Vector<double> x) {
#if KERNELCORE_X86 && defined(__AVX512BW__)
  return bits_as<double>(_mm512_maskz_sqrt_pd(0xff, reinterpret_cast<__m512d>(x)));
#elif KERNELCORE_X86 && defined(__AVX2__)
  return bits_as<double>(_mm256_sqrt_pd(reinterpret_cast<__m256d>(x)));
#elif KERNELCORE_X86
  return bits_as<double>(_mm_sqrt_pd(reinterpret_cast<__m128d>(x)));
#else
  for (std::size_t lane = 0; lane < kLanes<double>; ++lane) x[lane] = __builtin_sqrt(x[lane]);
  return x;
#endif
}

// sum + a b, rounded once if the instruction set can, in a lane as in a single number.
template <class T>
inline T add_product(T sum, T a, T b) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  if constexpr (sizeof(T) == 4) {
    return __builtin_fmaf(a, b, sum);
  } else {
    return __builtin_fma(a, b, sum);
  }
#else
  return sum + a * b;
#endif
}

template <class T>
inline Vector<T> add_products(Vector<T> sums, Vector<T> a, Vector<T> b) {
#if KERNELCORE_X86 && defined(__AVX512BW__)
  if constexpr (sizeof(T) == 4) {
    return bits_as<T>(
        _mm512_fmadd_ps(bits_as<float>(a), bits_as<float>(b), bits_as<float>(sums)));
  } else {
    return bits_as<T>(
        _mm512_fmadd_pd(bits_as<double>(a), bits_as<double>(b), bits_as<double>(sums)));
  }
#elif KERNELCORE_X86 && defined(__FMA__)
  if constexpr (sizeof(T) == 4) {
    return bits_as<T>(
        _mm256_fmadd_ps(bits_as<float>(a), bits_as<float>(b), bits_as<float>(sums)));
  } else {
    return bits_as<T>(
        _mm256_fmadd_pd(bits_as<double>(a), bits_as<double>(b), bits_as<double>(sums)));
  }
#elif KERNELCORE_X86
  return sums + a * b;
#else
  for (std::size_t lane = 0; lane < kLanes<T>; ++lane) {
    sums[lane] = add_product<T>(sums[lane], a[lane], b[lane]);
  }
  return sums;
#endif
}

// |a - b| of eight bytes each, added up in one lane.
inline Vector<std::uint64_t> differences_of_eight(Vector<std::uint8_t> a,
                                                  Vector<std::uint8_t> b) {
#if KERNELCORE_X86 && defined(__AVX512BW__)
  return bits_as<std::uint64_t>(
      _mm512_sad_epu8(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
#elif KERNELCORE_X86 && defined(__AVX2__)
  return bits_as<std::uint64_t>(
      _mm256_sad_epu8(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
#elif KERNELCORE_X86
  return bits_as<std::uint64_t>(
      _mm_sad_epu8(reinterpret_cast<__m128i>(a), reinterpret_cast<__m128i>(b)));
#else
  using Sums = Vector<std::uint64_t>;
  const Vector<std::uint8_t> differences = a < b ? b - a : a - b;
  constexpr std::uint64_t kPairs = 0x00ff00ff00ff00ff, kFours = 0x0000ffff0000ffff;
  const auto eights = bits_as<std::uint64_t>(differences);
  const Sums pairs = (eights & kPairs) + (eights >> 8 & kPairs);
  const Sums fours = (pairs & kFours) + (pairs >> 16 & kFours);
  return (fours & 0xffffffff) + (fours >> 32);
#endif
}

// ---- Across lanes --------------------------------------------------------------------------

// The smallest lane of kBytes; none may be NaN.
template <class T, std::size_t kBytes = kVectorBytes>
inline T lowest_of(typename VectorOf<T, kBytes>::type lanes) {
  if constexpr (kBytes == 2 * sizeof(T)) {
    return lanes[1] < lanes[0] ? lanes[1] : lanes[0];
  } else {
    typename VectorOf<T, kBytes / 2>::type low, high;
    std::memcpy(&low, &lanes, kBytes / 2);
    std::memcpy(&high, reinterpret_cast<const char*>(&lanes) + kBytes / 2, kBytes / 2);
    return lowest_of<T, kBytes / 2>(low < high ? low : high);
  }
}

// A bit for each lane, the lowest one for the first lane.
template <class T>
inline std::uint32_t mask_bits(Mask<T> mask) {
#if KERNELCORE_X86 && defined(__AVX512DQ__)
  const auto bits = reinterpret_cast<__m512i>(mask);
  return sizeof(T) == 4 ? _mm512_movepi32_mask(bits) : _mm512_movepi64_mask(bits);
#elif KERNELCORE_X86 && defined(__AVX2__)
  const auto bits = reinterpret_cast<__m256i>(mask);
  return static_cast<std::uint32_t>(sizeof(T) == 4
                                        ? _mm256_movemask_ps(_mm256_castsi256_ps(bits))
                                        : _mm256_movemask_pd(_mm256_castsi256_pd(bits)));
#elif KERNELCORE_X86
  const auto bits = reinterpret_cast<__m128i>(mask);
  return static_cast<std::uint32_t>(sizeof(T) == 4 ? _mm_movemask_ps(_mm_castsi128_ps(bits))
                                                   : _mm_movemask_pd(_mm_castsi128_pd(bits)));
#else
  std::uint32_t bits = 0;
  for (std::size_t lane = 0; lane < kLanes<T>; ++lane) bits |= (mask[lane] & 1u) << lane;
  return bits;
#endif
}

// The lowest bit that is set; one must be.
inline std::size_t first_bit(std::uint64_t bits) {
  return static_cast<std::size_t>(__builtin_ctzll(bits));
}

// ---- Transposition -------------------------------------------------------------------------

// Cuts two rows into runs of kApart lanes, and exchanges the second run of a with the first of
// b, the fourth with the third, and so on: one or two instructions each for a and b, where runs
// that are interleaved across halves of a vector of AVX2 take more.
template <class T, std::size_t kApart, std::size_t... k>
inline void exchange(Vector<T>& a, Vector<T>& b, std::index_sequence<k...>) {
  constexpr std::size_t kN = kLanes<T>;
  const Vector<T> first = __builtin_shufflevector(a, b, (k & kApart ? kN + k - kApart : k)...);
  b = __builtin_shufflevector(a, b, (k & kApart ? kN + k : k + kApart)...);
  a = first;
}

// Transposes a square of as many rows as a vector has lanes: exchanges two of its quarters,
// then two of the quarters of each, down to single lanes.
template <class T, std::size_t kApart = kLanes<T> / 2>
inline void transpose(Vector<T> (&rows)[kLanes<T>]) {
#pragma GCC unroll 16
  for (std::size_t row = 0; row < kLanes<T>; ++row) {
    if ((row & kApart) == 0) {
      exchange<T, kApart>(rows[row], rows[row + kApart], std::make_index_sequence<kLanes<T>>{});
    }
  }
  if constexpr (kApart > 1) transpose<T, kApart / 2>(rows);
}

}  // namespace
}  // namespace kernelcore
