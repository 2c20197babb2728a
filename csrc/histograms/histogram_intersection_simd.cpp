#include "histograms/histogram_intersection_simd.hpp"

#include <type_traits>

#include "common/simd.hpp"

namespace kernelcore {
namespace {

// Rows of X and of Y whose pairs have their sums in registers at the same time.
constexpr std::size_t kRowsX = kPanelRows;
constexpr std::size_t kRowsY = kVectorBytes == 64 ? 4 : 2;

// Vectors of a group: loops advance by whole groups, so that the order of summation is the same
// for every width of a vector.
constexpr std::size_t kPartsPerGroup = kGroupBytes / kVectorBytes;

// Numbers >= 0 are ordered like their bits read as signed integers (-0.0 comes out lowest).
// Processors that add floats on few of their units compare integers on the others.
template <class T>
inline Vector<T> smaller(Vector<T> a, Vector<T> b) {
  if constexpr (std::is_same_v<T, float>) {
    return bits_as<T>(
        minimum<std::int32_t>(bits_as<std::int32_t>(a), bits_as<std::int32_t>(b)));
  } else if constexpr (std::is_same_v<T, double> && kVectorBytes == 64) {
    return bits_as<T>(
        minimum<std::int64_t>(bits_as<std::int64_t>(a), bits_as<std::int64_t>(b)));
  } else {
    return minimum<T>(a, b);
  }
}

// Integers of twice the width.
template <class T>
using Wide = std::conditional_t<sizeof(T) == 2, std::uint32_t, std::uint64_t>;

// Both halves of each wide lane: no shuffle, and no lane order to keep.
template <class T>
inline Vector<Wide<T>> pair_sums(Vector<T> lanes) {
  constexpr int kBits = 8 * sizeof(T);
  const auto wide = bits_as<Wide<T>>(lanes);
  return (wide & ((Wide<T>{1} << kBits) - 1)) + (wide >> kBits);
}

// The term that a pair of vectors adds to the sums.
template <class Acc, class T>
inline Vector<Acc> term(Vector<T> a, Vector<T> b) {
  if constexpr (sizeof(T) == 1) {
    return differences_of_eight(a, b);
  } else if constexpr (sizeof(T) == sizeof(Acc)) {
    return smaller<T>(a, b);
  } else {
    return pair_sums<T>(smaller<T>(a, b));
  }
}

// Integers are added up in 64 bits.
template <class Acc>
using Added = std::conditional_t<std::is_floating_point_v<Acc>, Acc, std::uint64_t>;

template <class Acc>
inline Vector<Added<Acc>> to_be_added(Vector<Acc> sums) {
  if constexpr (std::is_same_v<Acc, Added<Acc>>) {
    return sums;
  } else {
    return to_be_added<Wide<Acc>>(pair_sums<Acc>(sums));
  }
}

// Adds the lanes of a group in a tree whose shape does not depend on the vector width: halves
// onto each other, down to one lane.
template <class Acc, std::size_t kBytes = kGroupBytes>
inline Acc add_up(const Acc* stored) {
  if constexpr (kBytes == sizeof(Acc)) {
    return *stored;
  } else {
    constexpr std::size_t kHalf = kBytes / 2;
    Acc halved[kHalf / sizeof(Acc)];
    store(halved, load<Acc, kHalf>(stored) + load<Acc, kHalf>(stored + kHalf / sizeof(Acc)));
    return add_up<Acc, kHalf>(halved);
  }
}

// Not inlined: compilers would keep the sums of the calling loop in memory.
template <class Acc, class Sum>
__attribute__((noinline)) void add_groups(const Acc (&groups)[kRowsX][kRowsY][kGroup<Acc>],
                                          Sum* sums) {
  for (std::size_t i = 0; i < kRowsX; ++i) {
    for (std::size_t j = 0; j < kRowsY; ++j) {
      sums[i * kTileCols + j] += static_cast<Sum>(add_up<Acc>(groups[i][j]));
    }
  }
}

// One part of every group at a time, so that its sums fit the registers. They stay there only
// if every loop over rows is unrolled.
template <class Acc, class T, class Sum>
void intersect(const T* x, const T* y, std::size_t n_groups, std::uintptr_t ahead,
               std::size_t ahead_step, Sum* sums) {
  alignas(kGroupBytes) Added<Acc> groups[kRowsX][kRowsY][kGroup<Added<Acc>>];
  for (std::size_t part = 0; part < kPartsPerGroup; ++part) {
    const T* x_group = x + part * kLanes<T>;
    const T* y_group = y + part * kLanes<T>;
    Vector<Acc> acc[kRowsX][kRowsY] = {};
    for (std::size_t group = 0; group < n_groups; ++group) {
      __builtin_prefetch(reinterpret_cast<const void*>(ahead), 0, 2);
      ahead += ahead_step;
      Vector<T> y_values[kRowsY];
#pragma GCC unroll 4
      for (std::size_t j = 0; j < kRowsY; ++j) y_values[j] = load(y_group + j * kGroup<T>);
#pragma GCC unroll 4
      for (std::size_t i = 0; i < kRowsX; ++i) {
        const Vector<T> value = load_into_register(x_group + i * kGroup<T>);
        Vector<Acc> terms[kRowsY];  // all before the first is added: units take turns
#pragma GCC unroll 4
        for (std::size_t j = 0; j < kRowsY; ++j) terms[j] = term<Acc, T>(value, y_values[j]);
#pragma GCC unroll 4
        for (std::size_t j = 0; j < kRowsY; ++j) acc[i][j] += terms[j];
      }
      x_group += kPanelRows * kGroup<T>;
      y_group += kPanelRows * kGroup<T>;
    }
#pragma GCC unroll 4
    for (std::size_t i = 0; i < kRowsX; ++i) {
#pragma GCC unroll 4
      for (std::size_t j = 0; j < kRowsY; ++j) {
        const Vector<Added<Acc>> lanes = to_be_added<Acc>(acc[i][j]);
        store(groups[i][j] + part * kLanes<Added<Acc>>, lanes);
      }
    }
  }
  add_groups(groups, sums);
}

// The next address to prefetch after n_bytes. While a panel is summed, the rows of the next one
// are prefetched into the second-level cache, a little with each group.
template <class T>
inline std::uintptr_t ahead_of(const PanelPair<T>& panels, std::size_t n_bytes) {
  const std::size_t row_bytes = panels.n_groups * kGroupBytes;
  return panels.next_x + n_bytes / row_bytes * panels.next_stride + n_bytes % row_bytes;
}

template <class Acc, class T, class Sum>
void intersect_panels(const PanelPair<T>& panels, Sum* sums) {
  const std::size_t ahead_step = kGroupBytes * kRowsY / (panels.n_y * kPartsPerGroup);
  std::size_t n_ahead = 0;
  for (std::size_t j = 0; j < kPanelRows * panels.n_y; j += kRowsY) {
    const std::size_t panel = j / kPanelRows * kPanelRows * panels.n_groups;
    intersect<Acc>(panels.x, panels.y + (panel + j % kPanelRows) * kGroup<T>, panels.n_groups,
                   ahead_of(panels, n_ahead), ahead_step, sums + j);
    n_ahead += ahead_step * panels.n_groups * kPartsPerGroup;
  }
}

}  // namespace

namespace KERNELCORE_ISA {

IntersectionKernels intersection_kernels() {
  return {intersect_panels<float>,         intersect_panels<double>,
          intersect_panels<std::uint64_t>, intersect_panels<std::uint16_t>,
          intersect_panels<std::uint32_t>, intersect_panels<std::uint32_t>,
          intersect_panels<std::uint64_t>};
}

}  // namespace KERNELCORE_ISA
}  // namespace kernelcore
