// Gram matrix of the histogram intersection kernel, plain or as a weighted sum of segments.
//
//     K[i, j] = sum_s weight_s * sum_{b in segment s} min(X[i, b], Y[j, b])
//
// or its ratio to what both rows have.
//
// Input    X (m, d) and Y (n, d), finite, non-negative. The two may be the same buffer: then
//          only j >= i is computed and mirrored. Segments cut [0, d) into runs of bins.
// Output   K (m, n), allocated by the caller, fully overwritten.
// Cost     m * n * d minima (halved when symmetric) and, per thread, a block of columns and a
//          tile of sums, about 1 MB.
// Order    float and double add the bins of a block (kBlockBytes of a row) in 64-byte groups
//          of lanes, then the lanes in a tree, then blocks and segments in double. The order
//          is fixed by d and the segments alone: not by n_threads, not by the instruction
//          set. Integers are exact. Tests compare with the reference to
//          (block / lanes + 5) * eps * K.
// Threads  one task computes one tile of K and its mirror: every element has one writer.
// Python   holds no Python object: call it with the GIL released.
// Errors   Cancelled if the monitor stops the call. Shapes and values are checked once, in
//          kernelcore/kernels/histogram_intersection.py and spatial_pyramid.py.
// Source   Swain & Ballard, Color indexing, IJCV 7 (1991); segments: the levels of Lazebnik,
//          Schmid & Ponce, Beyond bags of features, CVPR 2006.
// Same as  kernelcore/reference/kernels.py::histogram_intersection and
//          kernelcore/reference/kernels.py::spatial_pyramid.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/matrix_view.hpp"
#include "common/monitor.hpp"

namespace kernelcore {

struct Segment {
  std::size_t begin;
  std::size_t end;
  double weight;
};

// T: float -> float, double -> double, uint8_t, uint16_t or uint32_t -> uint64_t.
template <class T, class Out>
void histogram_intersection(MatrixView<const T> X, MatrixView<const T> Y, MatrixView<Out> K,
                            std::size_t n_threads, Monitor& monitor);

// T: float -> float, double -> double, uint16_t or uint32_t -> float or double, rounded once.
// `symmetric` says that K is: X and Y are the same buffer, or Y holds the same samples with
// bins exchanged in pairs (mirrored). Then only j >= i is computed, as above.
template <class T, class Out>
void segmented_intersection(MatrixView<const T> X, MatrixView<const T> Y,
                            const std::vector<Segment>& segments, bool symmetric,
                            MatrixView<Out> K, std::size_t n_threads, Monitor& monitor);

enum class Ratio { kToUnion, kToMean };  // weighted Jaccard; 1 less the Bray-Curtis distance

// Divides intersections, in place, by what the two rows have in all: their masses, the sums of
// their bins, less the intersection, or the mean of their masses; 0 where both have none.
// `Held` is what K holds before, Out or std::uint64_t in the memory of a double.
template <class Held, class Out>
void divide_by_masses(MatrixView<Out> K, const double* masses_X, const double* masses_Y,
                      Ratio ratio, std::size_t n_threads, Monitor& monitor);

}  // namespace kernelcore
