// Vectors of the instruction set that a *_tile.cpp is being compiled for.
//
// Everything here has internal linkage: the same source is compiled for several instruction
// sets, and a function that the linker could merge across them might run on a processor that
// lacks its instructions. tests/cpp/run.sh checks the objects for that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace kernelcore {
namespace {

#if defined(__AVX512BW__)
constexpr std::size_t kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr std::size_t kVectorBytes = 32;
#else
constexpr std::size_t kVectorBytes = 16;
#endif

// Loops advance by one group, whatever the width of a vector: the order of summation, and so
// every bit of a floating-point sum, is the same for all instruction sets.
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

template <class T>
inline Vector<T> minimum(Vector<T> a, Vector<T> b) {
  return a < b ? a : b;
}

}  // namespace
}  // namespace kernelcore
