// Finding things in vectors: the smallest lane, and where lanes are equal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "common/lanes.hpp"

#if KERNELCORE_X86
#include <immintrin.h>
#endif

namespace kernelcore {
namespace {

// What a comparison of vectors of T has in its lanes: all ones or all zeros.
template <class T>
using LaneInt = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;
template <class T>
using Mask = Vector<LaneInt<T>>;

template <class T>
inline Vector<T> broadcast(T value) {
  return Vector<T>{} + value;
}

template <class T>
inline void store(T* to, Vector<T> lanes) {
  std::memcpy(to, &lanes, sizeof lanes);
}

template <class T, std::size_t kBytes>
struct Part {
  typedef T type __attribute__((vector_size(kBytes)));
};

// The smallest of the lanes in so many bytes, none of which may be NaN.
template <class T, std::size_t kBytes>
inline T lowest_of(typename Part<T, kBytes>::type lanes) {
  if constexpr (kBytes == 2 * sizeof(T)) {
    return lanes[1] < lanes[0] ? lanes[1] : lanes[0];
  } else {
    typename Part<T, kBytes / 2>::type low, high;
    std::memcpy(&low, &lanes, kBytes / 2);
    std::memcpy(&high, reinterpret_cast<const char*>(&lanes) + kBytes / 2, kBytes / 2);
    return lowest_of<T, kBytes / 2>(low < high ? low : high);
  }
}

template <class T>
inline T lowest_of(Vector<T> lanes) {
  return lowest_of<T, kVectorBytes>(lanes);
}

// The first lane's bit is the lowest.
template <class T>
inline std::uint32_t lane_bits(Mask<T> mask) {
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

// 0, 1, 2, ...
template <class T>
inline Vector<T> counting() {
  Vector<T> lanes = {};
  for (std::size_t lane = 0; lane < kLanes<T>; ++lane) lanes[lane] = static_cast<T>(lane);
  return lanes;
}

// Of bits other than 0.
inline std::size_t first_bit(std::uint64_t bits) {
  return static_cast<std::size_t>(__builtin_ctzll(bits));
}

}  // namespace
}  // namespace kernelcore
