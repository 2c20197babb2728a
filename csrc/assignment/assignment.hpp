// Linear assignment: the cheapest set of pairs of a row and a column, each in one pair at most.
//
//     minimise sum over pairs (i, j) of c[i, j]
//
// Input    costs (n, m); +inf forbids a pair. Maximising negates them, and -inf forbids. The
//          number of pairs is given, or only its maximum together with a threshold: then the
//          sum of cost - threshold is minimised, and no pair costs more than the threshold.
// Output   pairs in ascending order of rows; fewer where no more can be had. On request duals
//          d, u <= 0, v <= 0 with c[i, j] >= d + u[i] + v[j], equal for matched pairs, and 0
//          for free rows and columns, all up to rounding: a proof that no set of as many
//          pairs costs less.
// Cost     O(k n m) for k pairs where n <= m, n m where rows want different columns. Memory of
//          each thread: n m costs up to 1 MB of them (kLargeBytes); otherwise 48 candidates of
//          each row, and a few vectors. A large problem of more rows than columns is
//          transposed: n m costs as well.
// Order    everything in the type of the costs: their sum is within
//          (2 k + 3) * k * eps * max |c| of the least. Of equally near columns a search takes
//          the first free one that it reads, and reads rows in the order of their columns: the
//          pairs depend on the costs alone, not on threads or instruction sets. Costs so large
//          that sums might overflow are scaled by a power of 2 when they are read. Totals are
//          sums in double.
// Threads  one task solves some problems: every element has one writer.
// Python   holds no Python object: call it with the GIL released.
// Errors   n_pairs = kInvalid where a cost is NaN, or infinite other than to forbid; Cancelled
//          if the monitor stops the call; std::length_error for a side of 2^31 or more. All
//          else is checked once, in kernelcore/matching/assignment.py, and the columns of a
//          stack that count where its problems are made, in csrc/bindings/bind_assignment.cpp.
// Source   D. F. Crouse, On implementing 2D rectangular assignment algorithms, IEEE Trans.
//          Aerospace and Electronic Systems 52 (2016); R. Jonker & A. Volgenant, A shortest
//          augmenting path algorithm, Computing 38 (1987). k pairs: M. Dell'Amico & S.
//          Martello, The k-cardinality assignment problem, Discrete Applied Mathematics 76
//          (1997).
// Same as  kernelcore/reference/matching.py::linear_assignments and
//          k_cardinality_assignments.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "assignment/assignment_simd.hpp"
#include "common/aligned_buffer.hpp"
#include "common/matrix_view.hpp"
#include "common/monitor.hpp"

namespace kernelcore {

// One problem after another, in memory of its own.
template <class T>
class AssignmentSolver {
 public:
  explicit AssignmentSolver(Worker& worker);
  // The state points into the solver.
  AssignmentSolver(const AssignmentSolver&) = delete;
  AssignmentSolver& operator=(const AssignmentSolver&) = delete;

  // Takes the costs, all of which lie before `end`. Small problems are copied, large ones must
  // stay in memory until they are solved. False if a cost is NaN, or infinite other than to
  // forbid.
  bool load(MatrixView<const T> costs, const T* end, bool maximize);

  // Takes the costs without a copy: whole vectors, no more rows than columns.
  void attach(const T* const* rows, std::size_t n_rows, std::size_t n_cols);

  // Forbids what costs more, or gains less, than the threshold.
  void forbid_beyond(double threshold);

  // The cheapest (the dearest if maximised) column of each row and row of each column; of
  // equals the first.
  void find_best(std::int32_t* col_of_row, std::int32_t* row_of_col);

  // Matches n pairs, at most as many as the shorter side has, or fewer if n cannot be had.
  void match(std::size_t n);

  // begin() has no pair. Each call of augment_until() then adds pairs: until there are n, or no
  // further one adds at most the threshold (at least, if maximised). An infinite threshold
  // ends nothing.
  void begin();
  void augment_until(std::size_t n, double threshold);

  std::size_t n_matched() const { return state_.n_matched; }

  // Calls visit(row, col) for each pair, rows ascending.
  template <class Visit>
  void each_pair(const Visit& visit) const {
    const std::size_t n = is_transposed_ ? state_.n_cols : state_.n_rows;
    for (std::size_t i = 0; i < n; ++i) {
      const std::int32_t other = is_transposed_ ? row_in(i) : state_.col_of_row[i];
      if (other >= 0) visit(i, static_cast<std::size_t>(other));
    }
  }

  // The duals of the problem as it was given: negated where it is maximised.
  void write_duals(T* rows, T* cols, T& pair);

 private:
  std::int32_t row_in(std::size_t col) const {
    return state_.col_state[col] < 0 ? -1 : state_.row_of_col[col];
  }
  void reserve(std::size_t n_rows, std::size_t n_cols);
  void reserve_large();
  bool check_and_scale();
  void sort_rows();

  const AssignmentKernel<T> kernel_;
  AssignmentState<T> state_{};
  bool is_transposed_ = false;
  T sign_ = 1;
  T scale_ = 1;  // of the costs as they are solved
  std::size_t capacity_rows_ = 0, capacity_cols_ = 0;
  std::size_t width_ = 0;
  AlignedBuffer<T> costs_, values_;
  AlignedBuffer<typename AssignmentState<T>::Index> indices_;
  AlignedBuffer<typename AssignmentState<T>::ColumnAt> tree_;
  AlignedBuffer<typename AssignmentState<T>::Candidates> candidates_;
  AlignedBuffer<typename AssignmentState<T>::PartialRow> partial_rows_;
  AlignedBuffer<T> candidate_costs_;
  AlignedBuffer<std::int32_t> candidate_cols_, pairs_;
  AlignedBuffer<const T*> rows_;
};

template <class T>
struct AssignmentProblem {
  MatrixView<const T> costs;
  const T* end;  // of the memory that the costs lie in, padding too
};

struct AssignmentOptions {
  bool maximize;
  std::size_t n_pairs;  // or the length of the shorter side, if that is less
  bool at_most;         // n_pairs is a maximum, and the threshold counts
  double threshold;
};

constexpr std::int64_t kInvalid = -1;

// The pairs of problem b are written from offsets[b] on; there is room up to offsets[b + 1].
struct MatchedPairs {
  const std::int64_t* offsets;
  std::int64_t* rows;
  std::int64_t* cols;
  std::int64_t* n_pairs;
  double* totals;
};

// Of one problem: where they are written, one for each row and each column, and that of pairs.
template <class T>
struct AssignmentDuals {
  T* rows;
  T* cols;
  T pair;
};

// T: float or double. `duals` is null, or one for each problem.
template <class T>
void linear_assignments(const std::vector<AssignmentProblem<T>>& problems,
                        const AssignmentOptions& options, const MatchedPairs& pairs,
                        AssignmentDuals<T>* duals, std::size_t n_threads, Monitor& monitor);

// The k-th of max_k problems asks for exactly k pairs of the same rows and columns. The first
// one without a solution has fewer than k pairs, and all later ones have none.
template <class T>
void k_cardinality_assignments(MatrixView<const T> costs, bool maximize, std::size_t max_k,
                               const MatchedPairs& pairs, Monitor& monitor);

}  // namespace kernelcore
