#include "evaluation/count_ranks_tile.hpp"

#include "common/lanes.hpp"

namespace kernelcore {
namespace {

// Rows taken at once: the counts of a column are loaded and stored once for all of them.
constexpr std::size_t kRows = 4;

template <class Count>
std::int64_t add_up(Vector<Count> lanes) {
  std::int64_t sum = 0;
  for (std::size_t lane = 0; lane < kLanes<Count>; ++lane) sum += lanes[lane];
  return sum;
}

template <class T>
void store(T* to, Vector<T> lanes) {
  std::memcpy(to, &lanes, sizeof lanes);
}

// A comparison of vectors is -1 in the lanes where it holds.
template <std::size_t kN, bool kByRow, bool kByColumn, class T>
bool strip(const T* scores, std::size_t stride, std::size_t n_cols, const T* row_gold,
           std::int64_t* row_greater, std::int64_t* row_tied, const T* column_gold,
           LaneCount<T>* column_greater, LaneCount<T>* column_tied) {
  using Count = LaneCount<T>;
  Vector<Count> greater[kN] = {};
  Vector<Count> tied[kN] = {};
  Vector<Count> nan = {};
  bool has_nan = false;
  std::size_t j = 0;
  for (; j + kLanes<T> <= n_cols; j += kLanes<T>) {
    Vector<T> gold = {};
    Vector<Count> above = {};
    Vector<Count> level = {};
    if constexpr (kByColumn) {
      gold = load(column_gold + j);
      above = load(column_greater + j);
      level = load(column_tied + j);
    }
    for (std::size_t i = 0; i < kN; ++i) {
      const Vector<T> x = load(scores + i * stride + j);
      nan |= x != x;
      if constexpr (kByRow) {
        greater[i] -= x > row_gold[i];
        tied[i] -= x == row_gold[i];
      }
      if constexpr (kByColumn) {
        above -= x > gold;
        level -= x == gold;
      }
    }
    if constexpr (kByColumn) {
      store(column_greater + j, above);
      store(column_tied + j, level);
    }
  }
  for (std::size_t i = 0; i < kN; ++i) {
    if constexpr (kByRow) {
      row_greater[i] += add_up<Count>(greater[i]);
      row_tied[i] += add_up<Count>(tied[i]);
    }
    for (std::size_t k = j; k < n_cols; ++k) {
      const T x = scores[i * stride + k];
      has_nan |= x != x;
      if constexpr (kByRow) {
        row_greater[i] += x > row_gold[i];
        row_tied[i] += x == row_gold[i];
      }
      if constexpr (kByColumn) {
        column_greater[k] += x > column_gold[k];
        column_tied[k] += x == column_gold[k];
      }
    }
  }
  return has_nan || add_up<Count>(nan) != 0;
}

template <bool kByRow, bool kByColumn, class T>
bool strips(const T* scores, std::size_t stride, std::size_t n_rows, std::size_t n_cols,
            const T* row_gold, std::int64_t* row_greater, std::int64_t* row_tied,
            const T* column_gold, LaneCount<T>* column_greater, LaneCount<T>* column_tied) {
  bool has_nan = false;
  std::size_t i = 0;
  const auto advance = [&](std::size_t n, auto count) {
    has_nan |= count(scores + i * stride, stride, n_cols, row_gold + (kByRow ? i : 0),
                     row_greater + (kByRow ? i : 0), row_tied + (kByRow ? i : 0), column_gold,
                     column_greater, column_tied);
    i += n;
  };
  while (i + kRows <= n_rows) advance(kRows, strip<kRows, kByRow, kByColumn, T>);
  while (i < n_rows) advance(1, strip<1, kByRow, kByColumn, T>);
  return has_nan;
}

template <class T>
bool tile(const T* scores, std::size_t stride, std::size_t n_rows, std::size_t n_cols,
          const T* row_gold, std::int64_t* row_greater, std::int64_t* row_tied,
          const T* column_gold, LaneCount<T>* column_greater, LaneCount<T>* column_tied) {
  const auto count = column_gold == nullptr ? strips<true, false, T>
                     : row_gold == nullptr  ? strips<false, true, T>
                                            : strips<true, true, T>;
  return count(scores, stride, n_rows, n_cols, row_gold, row_greater, row_tied, column_gold,
               column_greater, column_tied);
}

}  // namespace

namespace KERNELCORE_ISA {

CountTiles count_tiles() { return {tile<float>, tile<double>}; }

}  // namespace KERNELCORE_ISA
}  // namespace kernelcore
