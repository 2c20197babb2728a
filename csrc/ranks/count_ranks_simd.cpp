#include "ranks/count_ranks_simd.hpp"

#include "common/simd.hpp"

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

// Counts in the first kN rows. A comparison of vectors is -1 in the lanes where it holds.
template <std::size_t kN, bool kByRow, bool kByColumn, class T>
bool count_rows(const CountJob<T> job) {
  using Count = LaneInt<T>;
  const auto [row_gold, row_greater, row_tied] = job.rows;
  const auto [column_gold, column_greater, column_tied] = job.columns;
  Vector<Count> greater[kN] = {};
  Vector<Count> tied[kN] = {};
  Vector<Count> nan = {};
  bool has_nan = false;
  std::size_t j = 0;
  for (; j + kLanes<T> <= job.n_cols; j += kLanes<T>) {
    Vector<T> gold = {};
    Vector<Count> above = {};
    Vector<Count> level = {};
    if constexpr (kByColumn) {
      gold = load(column_gold + j);
      above = load(column_greater + j);
      level = load(column_tied + j);
    }
    for (std::size_t i = 0; i < kN; ++i) {
      const Vector<T> x = load(job.scores + i * job.stride + j);
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
    for (std::size_t k = j; k < job.n_cols; ++k) {
      const T x = job.scores[i * job.stride + k];
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
bool count_block(const CountJob<T>& block) {
  CountJob<T> job = block;
  bool has_nan = false;
  const auto advance = [&](std::size_t n, auto count) {
    has_nan |= count(job);
    job.n_rows -= n;
    job.scores += n * job.stride;
    if constexpr (kByRow) {
      job.rows.gold += n;
      job.rows.greater += n;
      job.rows.tied += n;
    }
  };
  while (job.n_rows >= kRows) advance(kRows, count_rows<kRows, kByRow, kByColumn, T>);
  while (job.n_rows > 0) advance(1, count_rows<1, kByRow, kByColumn, T>);
  return has_nan;
}

template <class T>
CountKernel<T> count_kernel() {
  return {count_block<true, false, T>, count_block<false, true, T>, count_block<true, true, T>};
}

}  // namespace

namespace KERNELCORE_ISA {

CountKernels count_kernels() { return {count_kernel<float>(), count_kernel<double>()}; }

}  // namespace KERNELCORE_ISA
}  // namespace kernelcore
