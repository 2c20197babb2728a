#include "scan/scan_values.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

#include "common/parallel.hpp"
#include "scan/scan_values_simd.hpp"

namespace kernelcore {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 18;
constexpr std::size_t kBytesPerUnit = 16;  // read in a unit of work

// One cache line for each thread, which writes to it all the time.
template <class T>
struct alignas(64) SeenByThread {
  Seen<T> seen;
};

template <class T>
ScanRun<T> choose_run(const ScanKernels& kernels) {
  if constexpr (std::is_same_v<T, float>) return kernels.f32;
  if constexpr (std::is_same_v<T, double>) return kernels.f64;
  if constexpr (std::is_same_v<T, std::uint8_t>) return kernels.u8;
  if constexpr (std::is_same_v<T, std::uint16_t>) return kernels.u16;
  if constexpr (std::is_same_v<T, std::uint32_t>) return kernels.u32;
}

template <class T>
CompareMirror<T> choose_comparison(const ScanKernels& kernels) {
  if constexpr (std::is_same_v<T, float>) {
    return kernels.mirror_f32;
  } else {
    return kernels.mirror_f64;
  }
}

template <class T>
Extremes together(const std::vector<SeenByThread<T>>& parts) {
  Seen<T> all = parts.front().seen;
  for (const auto& [seen] : parts) {
    all.smallest = std::min(all.smallest, seen.smallest);
    all.largest = std::max(all.largest, seen.largest);
    all.gap = std::max(all.gap, seen.gap);
    all.sum += seen.sum;
  }
  return {static_cast<double>(all.smallest), static_cast<double>(all.largest),
          static_cast<double>(all.gap), all.sum == all.sum};
}

}  // namespace

template <class T>
Extremes scan_values(const T* values, std::size_t n, std::size_t n_threads, Monitor& monitor) {
  if (n == 0) return {0, 0, 0, true};
  constexpr std::size_t kPiece = kPieceBytes / sizeof(T);
  const std::size_t n_pieces = (n + kPiece - 1) / kPiece;
  const std::size_t n_workers = std::max<std::size_t>(1, std::min(n_threads, n_pieces));
  std::vector<SeenByThread<T>> parts(n_workers, {{values[0], values[0], T{}, T{}}});
  const auto run = choose_run<T>(KERNELCORE_DISPATCH(scan_kernels));
  Crew(n_workers, monitor).parallel_for(n_pieces, [&](std::size_t piece, Worker& worker) {
    const std::size_t begin = piece * kPiece, n_values = std::min(kPiece, n - begin);
    run(values + begin, n_values, parts[worker.index()].seen);
    worker.spend(n_values * sizeof(T) / kBytesPerUnit);
  });
  return together(parts);
}

template <class T>
Extremes scan_gram(MatrixView<const T> K, T* copy, std::size_t n_threads, Monitor& monitor) {
  KC_ASSERT(K.n_rows == K.n_cols);
  const std::size_t n = K.n_rows;
  if (n == 0) return {0, 0, 0, true};
  const std::size_t n_sides = (n + kScanSide - 1) / kScanSide;
  const std::size_t n_workers = std::max<std::size_t>(1, std::min(n_threads, n_sides));
  std::vector<SeenByThread<T>> parts(n_workers, {{K(0, 0), K(0, 0), T{}, T{}}});
  Crew crew(n_workers, monitor);
  if (copy != nullptr) {
    crew.parallel_for(n_sides, [&](std::size_t side, Worker& worker) {
      const std::size_t row = side * kScanSide;
      const std::size_t n_bytes = std::min(kScanSide, n - row) * n * sizeof(T);
      std::memcpy(copy + row * n, K.row(row), n_bytes);
      worker.spend(n_bytes / kBytesPerUnit);
    });
    K.data = copy;
  }
  const auto compare = choose_comparison<T>(KERNELCORE_DISPATCH(scan_kernels));
  crew.parallel_for(n_sides, [&](std::size_t side, Worker& worker) {
    Seen<T>& seen = parts[worker.index()].seen;
    const std::size_t row = side * kScanSide, n_rows = std::min(kScanSide, n - row);
    for (std::size_t col = row; col < n; col += kScanSide) {
      const std::size_t n_cols = std::min(kScanSide, n - col);
      compare(K.row(row) + col, K.row(col) + row, K.stride, n_rows, n_cols, seen);
      worker.spend(2 * n_rows * n_cols * sizeof(T) / kBytesPerUnit);
    }
  });
  return together(parts);
}

#define KERNELCORE_INSTANTIATE(T) \
  template Extremes scan_values<T>(const T*, std::size_t, std::size_t, Monitor&);
KERNELCORE_INSTANTIATE(float)
KERNELCORE_INSTANTIATE(double)
KERNELCORE_INSTANTIATE(std::uint8_t)
KERNELCORE_INSTANTIATE(std::uint16_t)
KERNELCORE_INSTANTIATE(std::uint32_t)
#undef KERNELCORE_INSTANTIATE

template Extremes scan_gram<float>(MatrixView<const float>, float*, std::size_t, Monitor&);
template Extremes scan_gram<double>(MatrixView<const double>, double*, std::size_t, Monitor&);

}  // namespace kernelcore
