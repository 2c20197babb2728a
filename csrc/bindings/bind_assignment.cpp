#include <pybind11/stl.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "assignment/assignment.hpp"
#include "assignment/set_similarity.hpp"
#include "bindings/arrays.hpp"
#include "bindings/modules.hpp"
#include "bindings/python_monitor.hpp"

namespace py = pybind11;

namespace kernelcore {
namespace {

// Offsets of the pairs' entries, rows and columns.
using Selected = std::tuple<Array<std::int64_t>, Array<std::int64_t>, Array<std::int64_t>>;

template <class T>
T* output_vector(Array<T>& array, std::size_t size) {
  if (length(array) != size) throw std::invalid_argument("the output has the wrong shape");
  return array.mutable_data();
}

std::size_t last_offset(const Array<std::int64_t>& offsets, std::size_t n) {
  if (length(offsets) != n + 1) throw std::invalid_argument("offsets have the wrong length");
  return static_cast<std::size_t>(offsets.data()[n]);
}

// The pairs of problems, and what became of these.
class Links {
 public:
  explicit Links(std::size_t n_problems)
      : n_pairs_(n_problems, 0),
        offsets_(empty<std::int64_t>(n_problems + 1)),
        totals_(empty<double>(n_problems)) {
    offsets_.mutable_data()[0] = 0;
    std::fill_n(totals_.mutable_data(), n_problems, 0.0);
  }

  // Room for the pairs of problem b, after that of all before it.
  void make_room(std::size_t b, std::size_t n_pairs) {
    std::int64_t* const ends = offsets_.mutable_data();
    ends[b + 1] = ends[b] + static_cast<std::int64_t>(n_pairs);
  }

  MatchedPairs view() {
    const auto size = static_cast<std::size_t>(offsets_.data()[n_pairs_.size()]);
    rows_ = empty<std::int64_t>(size);
    cols_ = empty<std::int64_t>(size);
    return {offsets_.data(), rows_.mutable_data(), cols_.mutable_data(), n_pairs_.data(),
            totals_.mutable_data()};
  }

  // Offsets, rows, columns, totals, and the first problem that failed with its number of pairs.
  // Fewer pairs than there is room for are no failure if `at_most`.
  py::tuple result(bool at_most) {
    std::optional<std::pair<std::size_t, std::int64_t>> failure;
    bool is_full = true;
    for (std::size_t b = 0; b < n_pairs_.size() && !failure; ++b) {
      const std::int64_t room = offsets_.data()[b + 1] - offsets_.data()[b];
      if (n_pairs_[b] < (at_most ? 0 : room)) failure = {b, n_pairs_[b]};
      is_full = is_full && n_pairs_[b] == room;
    }
    for (std::size_t b = 0; b < n_pairs_.size() && !failure; ++b) {
      if (!std::isfinite(totals_.data()[b])) failure = {b, kInfinite};
    }
    if (!failure && !is_full) pack();
    return py::make_tuple(offsets_, rows_, cols_, totals_, failure);
  }

 private:
  static constexpr std::int64_t kInfinite = -2;  // a sum of costs, as in assignment.py

  void pack() {
    const Array<std::int64_t> rows = rows_, cols = cols_;
    const std::int64_t n_found = std::accumulate(n_pairs_.begin(), n_pairs_.end(), 0LL);
    rows_ = empty<std::int64_t>(static_cast<std::size_t>(n_found));
    cols_ = empty<std::int64_t>(static_cast<std::size_t>(n_found));
    std::int64_t* const ends = offsets_.mutable_data();
    std::int64_t end = 0;
    for (std::size_t b = 0; b < n_pairs_.size(); ++b) {
      std::copy_n(rows.data() + ends[b], n_pairs_[b], rows_.mutable_data() + end);
      std::copy_n(cols.data() + ends[b], n_pairs_[b], cols_.mutable_data() + end);
      ends[b] = end;
      end += n_pairs_[b];
    }
    ends[n_pairs_.size()] = end;
  }

  std::vector<std::int64_t> n_pairs_;
  Array<std::int64_t> offsets_, rows_, cols_;
  Array<double> totals_;
};

template <class T>
using Problems = std::vector<AssignmentProblem<T>>;

// A matrix, or a stack of them, of which the first columns count if their numbers are given.
template <class T>
Problems<T> problems_of(const Array<T>& costs,
                        const std::optional<Array<std::int64_t>>& n_columns) {
  const auto ndim = costs.ndim();
  if (ndim != 2 && ndim != 3) throw std::invalid_argument("expected matrices");
  const auto side = [&](py::ssize_t axis) {
    return static_cast<std::size_t>(costs.shape(axis));
  };
  const std::size_t n = ndim == 3 ? side(0) : 1, n_rows = side(ndim - 2),
                    width = side(ndim - 1);
  if (n_columns && length(*n_columns) != n) {
    throw std::invalid_argument("n_columns must hold a number for each of the " +
                                std::to_string(n) + " problems, got " +
                                std::to_string(length(*n_columns)));
  }
  const T* const end = costs.data() + n * n_rows * width;
  Problems<T> problems;
  problems.reserve(n);
  for (std::size_t b = 0; b < n; ++b) {
    const std::int64_t n_cols =
        n_columns ? n_columns->data()[b] : static_cast<std::int64_t>(width);
    if (n_cols < 0 || n_cols > static_cast<std::int64_t>(width)) {
      throw std::invalid_argument("n_columns must lie in [0, " + std::to_string(width) +
                                  "], got " + std::to_string(n_cols) + " at [" +
                                  std::to_string(b) + "]");
    }
    const T* const first = costs.data() + b * n_rows * width;
    problems.push_back({{first, n_rows, static_cast<std::size_t>(n_cols), width}, end});
  }
  return problems;
}

// A list of matrices of any shapes. An empty array is none, though it is a sequence of them.
template <class T>
class Matrices : public py::list {
 public:
  Matrices() : list(py::handle(), stolen_t{}) {}
  Matrices(py::handle handle, borrowed_t) : list(handle, borrowed_t{}) {}
  Matrices(py::handle handle, stolen_t) : list(handle, stolen_t{}) {}

  static bool check_(py::handle handle) {
    if (!py::isinstance<py::list>(handle)) return false;
    const auto items = py::reinterpret_borrow<py::list>(handle);
    return std::all_of(items.begin(), items.end(), Array<T>::check_);
  }
};

template <class T>
Problems<T> problems_of(const Matrices<T>& costs, const std::optional<Array<std::int64_t>>&) {
  Problems<T> problems;
  problems.reserve(costs.size());
  for (const py::handle cost : costs) {
    const auto matrix = input_matrix(py::reinterpret_borrow<Array<T>>(cost));
    problems.push_back({matrix, matrix.data + matrix.n_rows * matrix.n_cols});
  }
  return problems;
}

// The links, and a list of each problem's duals of rows, columns and pairs.
template <class T>
std::pair<py::tuple, py::list> solve(const Problems<T>& problems,
                                     const AssignmentOptions& options, bool with_duals,
                                     std::size_t n_threads, const py::object& report) {
  Links links(problems.size());
  std::vector<AssignmentDuals<T>> duals;
  std::vector<std::pair<Array<T>, Array<T>>> arrays;
  for (std::size_t b = 0; b < problems.size(); ++b) {
    const MatrixView<const T>& costs = problems[b].costs;
    links.make_room(b, std::min({costs.n_rows, costs.n_cols, options.n_pairs}));
    if (!with_duals) continue;
    auto& [rows, cols] = arrays.emplace_back(empty<T>(costs.n_rows), empty<T>(costs.n_cols));
    duals.push_back({rows.mutable_data(), cols.mutable_data(), 0});
  }
  const MatchedPairs pairs = links.view();
  run(report, [&](Monitor& monitor) {
    linear_assignments(problems, options, pairs, with_duals ? duals.data() : nullptr, n_threads,
                       monitor);
  });
  py::list proofs;
  for (std::size_t b = 0; b < duals.size(); ++b) {
    proofs.append(py::make_tuple(arrays[b].first, arrays[b].second, duals[b].pair));
  }
  return {links.result(options.at_most), proofs};
}

template <class T>
void bind_assignments(py::module_& module) {
  module.def(
      "linear_assignments",
      [](const std::variant<Array<T>, Matrices<T>>& costs,
         const std::optional<Array<std::int64_t>>& n_columns, bool maximize,
         std::size_t n_links, std::optional<double> threshold, bool with_duals,
         std::size_t n_threads, const py::object& report) {
        const AssignmentOptions options{maximize, n_links, threshold.has_value(),
                                        threshold.value_or(0.0)};
        const auto problems =
            std::visit([&](const auto& given) { return problems_of(given, n_columns); }, costs);
        return solve(problems, options, with_duals, n_threads, report);
      },
      py::arg("costs"), py::arg("n_columns"), py::arg("maximize"), py::arg("n_links"),
      py::arg("threshold"), py::arg("with_duals"), py::arg("n_threads"), py::arg("report"));
  module.def(
      "k_cardinality_assignments",
      [](const Array<T>& costs, bool maximize, std::size_t max_k, const py::object& report) {
        const auto matrix = input_matrix(costs);
        if (max_k > std::min(matrix.n_rows, matrix.n_cols)) {
          throw std::invalid_argument("more links than rows or columns");
        }
        Links links(max_k);
        for (std::size_t b = 0; b < max_k; ++b) links.make_room(b, b + 1);
        const MatchedPairs pairs = links.view();
        run(report, [&](Monitor& monitor) {
          k_cardinality_assignments(matrix, maximize, max_k, pairs, monitor);
        });
        return links.result(true);
      },
      py::arg("costs"), py::arg("maximize"), py::arg("max_k"), py::arg("report"));
}

SetsView sets_view(const Array<std::int64_t>& offsets, std::size_t n) {
  if (length(offsets) == 0) throw std::invalid_argument("offsets have the wrong length");
  const std::size_t n_sets = length(offsets) - 1;
  if (last_offset(offsets, n_sets) != n)
    throw std::invalid_argument("sets must cover the matrix");
  return {offsets.data(), n_sets};
}

SetSimilarity set_similarity_of(const std::string& name) {
  if (name == "DC") return SetSimilarity::kDense;
  if (name == "TK") return SetSimilarity::kTopK;
  if (name == "AP") return SetSimilarity::kAssignment;
  throw std::invalid_argument("unknown set similarity");
}

template <class T>
void bind_set_similarity(py::module_& module) {
  module.def(
      "set_similarity",
      [](const Array<T>& S, const Array<std::int64_t>& row_offsets,
         const Array<std::int64_t>& col_offsets, const std::string& kind,
         const Array<std::int64_t>& bounds, Array<T>& out, std::optional<Selected> selected,
         std::size_t n_threads, const py::object& report) {
        const auto matrix = input_matrix(S);
        const SetsView rows = sets_view(row_offsets, matrix.n_rows);
        const SetsView cols = sets_view(col_offsets, matrix.n_cols);
        const auto k = input_matrix(bounds);
        if (k.n_rows != rows.n_sets || k.n_cols != cols.n_sets) {
          throw std::invalid_argument("every pair of sets needs a bound");
        }
        const auto values = output_matrix(out, rows.n_sets, cols.n_sets);
        SelectedEntries entries;
        if (selected) {
          auto& [offsets, entry_rows, entry_cols] = *selected;
          const std::size_t size = last_offset(offsets, rows.n_sets * cols.n_sets);
          entries = {offsets.data(), output_vector(entry_rows, size),
                     output_vector(entry_cols, size)};
        }
        const SetSimilarity similarity = set_similarity_of(kind);
        run(report, [&](Monitor& monitor) {
          set_similarity(matrix, rows, cols, similarity, k, values, entries, n_threads,
                         monitor);
        });
      },
      py::arg("S"), py::arg("row_offsets"), py::arg("col_offsets"), py::arg("kind"),
      py::arg("bounds"), py::arg("out"), py::arg("selected"), py::arg("n_threads"),
      py::arg("report"));
}

}  // namespace

void bind_assignment(py::module_& module) {
  bind_assignments<float>(module);
  bind_assignments<double>(module);
  bind_set_similarity<float>(module);
  bind_set_similarity<double>(module);
}

}  // namespace kernelcore
