// Vectors of the instruction set that a *_tile.cpp is being compiled for.
//
// Everything here has internal linkage: the same source is compiled for several instruction
// sets, and a function that the linker could merge across them might run on a processor that
// lacks its instructions. tests/cpp/run.sh checks the objects for that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#if KERNELCORE_X86
#include <immintrin.h>
#endif

namespace kernelcore {
namespace {

#if defined(__AVX512BW__)
constexpr std::size_t kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr std::size_t kVectorBytes = 32;
#else
constexpr std::size_t kVectorBytes = 16;
#endif

// Loops advance by one group, whatever the width of a vector: the order of summation is the
// same for all instruction sets. Sums of values, minima and products by powers of two therefore
// have the same bits on all of them; tests/test_instruction_sets.py lists the functions. Where
// any other product is added to a sum, compilers contract both into one instruction that rounds
// once, if there is one (v3, v4; GCC does, Clang within an expression): the inner loops of
// word_sequence and tag_rank differ in the last bits between v2 and the others.
constexpr std::size_t kGroupBytes = 64;
constexpr std::size_t kPartsPerGroup = kGroupBytes / kVectorBytes;

template <class T>
struct VectorOf {
  typedef T type __attribute__((vector_size(kVectorBytes)));
};
template <class T>
using Vector = typename VectorOf<T>::type;

template <class T>
constexpr std::size_t kLanes = kVectorBytes / sizeof(T);
template <class T>
constexpr std::size_t kGroup = kGroupBytes / sizeof(T);

template <class T>
inline Vector<T> load(const T* from) {
  Vector<T> lanes;
  std::memcpy(&lanes, from, sizeof lanes);
  return lanes;
}

// Loads once: without it compilers put the load into every instruction that uses the vector.
template <class T>
inline Vector<T> load_into_register(const T* from) {
  Vector<T> lanes = load(from);
#if KERNELCORE_X86
  asm("" : "+v"(lanes));
#endif
  return lanes;
}

template <class T>
inline Vector<T> minimum(Vector<T> a, Vector<T> b) {
  return a < b ? a : b;
}

// |a - b| of eight bytes each, added up in one lane.
inline Vector<std::uint64_t> differences_of_eight(Vector<std::uint8_t> a,
                                                  Vector<std::uint8_t> b) {
  using Sums = Vector<std::uint64_t>;
#if KERNELCORE_X86 && defined(__AVX512BW__)
  return reinterpret_cast<Sums>(
      _mm512_sad_epu8(reinterpret_cast<__m512i>(a), reinterpret_cast<__m512i>(b)));
#elif KERNELCORE_X86 && defined(__AVX2__)
  return reinterpret_cast<Sums>(
      _mm256_sad_epu8(reinterpret_cast<__m256i>(a), reinterpret_cast<__m256i>(b)));
#elif KERNELCORE_X86
  return reinterpret_cast<Sums>(
      _mm_sad_epu8(reinterpret_cast<__m128i>(a), reinterpret_cast<__m128i>(b)));
#else
  const Vector<std::uint8_t> differences = a < b ? b - a : a - b;
  constexpr std::uint64_t kPairs = 0x00ff00ff00ff00ff, kFours = 0x0000ffff0000ffff;
  const auto eights = reinterpret_cast<Sums>(differences);
  const Sums pairs = (eights & kPairs) + (eights >> 8 & kPairs);
  const Sums fours = (pairs & kFours) + (pairs >> 16 & kFours);
  return (fours & 0xffffffff) + (fours >> 32);
#endif
}

}  // namespace
}  // namespace kernelcore
