#include <pybind11/stl.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>

#include "assignment/assignment.hpp"
#include "assignment/set_similarity.hpp"
#include "bindings/arrays.hpp"
#include "bindings/modules.hpp"
#include "bindings/python_monitor.hpp"

namespace py = pybind11;

namespace kernelcore {
namespace {

// Offsets of the problems' pairs, rows and columns of pairs, numbers of pairs, totals.
using Links = std::tuple<Array<std::int64_t>, Array<std::int64_t>, Array<std::int64_t>,
                         Array<std::int64_t>, Array<double>>;

// Offsets of the problems' rows and columns, duals of rows, columns and pairs.
template <class T>
using Duals =
    std::tuple<Array<std::int64_t>, Array<std::int64_t>, Array<T>, Array<T>, Array<T>>;

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

MatchedPairs pairs_view(Links& links, std::size_t n) {
  auto& [offsets, rows, cols, n_links, totals] = links;
  const std::size_t size = last_offset(offsets, n);
  return {offsets.data(), output_vector(rows, size), output_vector(cols, size),
          output_vector(n_links, n), output_vector(totals, n)};
}

template <class T>
AssignmentDuals<T> duals_view(std::optional<Duals<T>>& duals, std::size_t n) {
  if (!duals) return {};
  auto& [row_offsets, col_offsets, rows, cols, links] = *duals;
  const std::size_t n_rows = last_offset(row_offsets, n), n_cols = last_offset(col_offsets, n);
  return {row_offsets.data(), col_offsets.data(), output_vector(rows, n_rows),
          output_vector(cols, n_cols), output_vector(links, n)};
}

template <class T>
MatricesView<T> matrices_view(const Array<T>& values, const Array<std::int64_t>& offsets,
                              const Array<std::int64_t>& shapes, std::size_t stride) {
  const auto sizes = input_matrix(shapes);
  if (sizes.n_cols != 2 || last_offset(offsets, sizes.n_rows) != length(values)) {
    throw std::invalid_argument("the shapes do not fit the values");
  }
  const MatricesView<T> matrices{values.data(), offsets.data(), shapes.data(), sizes.n_rows,
                                 stride};
  for (std::size_t b = 0; b < sizes.n_rows; ++b) {
    const std::int64_t width = stride == 0 ? sizes(b, 1) : static_cast<std::int64_t>(stride);
    if (offsets.data()[b] + sizes(b, 0) * width != offsets.data()[b + 1] ||
        sizes(b, 1) > width) {
      throw std::invalid_argument("the shapes do not fit the values");
    }
  }
  return matrices;
}

// Duals of rows and of columns, and of pairs, of one problem.
template <class T>
using ProblemDuals = std::tuple<Array<T>, Array<T>, Array<T>>;

// One problem, without arrays of offsets: a small one takes less time than these would.
template <class T>
std::int64_t solve(const Array<T>& cost, bool maximize, std::optional<double> threshold,
                   Array<std::int64_t>& rows, Array<std::int64_t>& cols,
                   std::optional<ProblemDuals<T>>& duals, const py::object& report) {
  const auto matrix = input_matrix(cost);
  const std::size_t n_links = length(rows);
  if (n_links > std::min(matrix.n_rows, matrix.n_cols)) {
    throw std::invalid_argument("more links than rows or columns");
  }
  const auto ends = [](std::size_t size) {
    return std::array<std::int64_t, 2>{0, static_cast<std::int64_t>(size)};
  };
  const auto offsets = ends(matrix.n_rows * matrix.n_cols), link_offsets = ends(n_links);
  const auto row_offsets = ends(matrix.n_rows), col_offsets = ends(matrix.n_cols);
  const std::int64_t shape[2] = {row_offsets[1], col_offsets[1]};
  std::int64_t n_found = 0;
  double total = 0.0;
  const MatricesView<T> problem{matrix.data, offsets.data(), shape, 1};
  const MatchedPairs found{link_offsets.data(), rows.mutable_data(),
                           output_vector(cols, n_links), &n_found, &total};
  AssignmentDuals<T> proof;
  if (duals) {
    auto& [of_rows, of_cols, of_links] = *duals;
    proof = {row_offsets.data(), col_offsets.data(), output_vector(of_rows, matrix.n_rows),
             output_vector(of_cols, matrix.n_cols), output_vector(of_links, 1)};
  }
  const AssignmentOptions options{maximize, n_links, threshold.has_value(),
                                  threshold.value_or(0.0)};
  run(report, [&](Monitor& monitor) {
    linear_assignments(problem, options, found, proof, 1, monitor);
  });
  return n_found;
}

template <class T>
void bind_assignments(py::module_& module) {
  module.def(
      "linear_assignment",
      [](const Array<T>& cost, bool maximize, std::optional<double> threshold,
         Array<std::int64_t> rows, Array<std::int64_t> cols,
         std::optional<ProblemDuals<T>> duals, const py::object& report) {
        return solve(cost, maximize, threshold, rows, cols, duals, report);
      },
      py::arg("cost").noconvert(), py::arg("maximize"), py::arg("threshold"),
      py::arg("rows").noconvert(), py::arg("cols").noconvert(), py::arg("duals").noconvert(),
      py::arg("report"));
  module.def(
      "linear_assignments",
      [](const Array<T>& values, const Array<std::int64_t>& offsets,
         const Array<std::int64_t>& shapes, std::size_t stride, bool maximize,
         std::size_t n_links, std::optional<double> threshold, Links links,
         std::optional<Duals<T>> duals, std::size_t n_threads, const py::object& report) {
        const MatricesView<T> problems = matrices_view(values, offsets, shapes, stride);
        const MatchedPairs found = pairs_view(links, problems.n_matrices);
        const AssignmentDuals<T> proof = duals_view(duals, problems.n_matrices);
        const AssignmentOptions options{maximize, n_links, threshold.has_value(),
                                        threshold.value_or(0.0)};
        run(report, [&](Monitor& monitor) {
          linear_assignments(problems, options, found, proof, n_threads, monitor);
        });
      },
      py::arg("values").noconvert(), py::arg("offsets").noconvert(),
      py::arg("shapes").noconvert(), py::arg("stride"), py::arg("maximize"), py::arg("n_links"),
      py::arg("threshold"), py::arg("links").noconvert(), py::arg("duals").noconvert(),
      py::arg("n_threads"), py::arg("report"));
  module.def(
      "k_cardinality_assignments",
      [](const Array<T>& costs, bool maximize, Links links, const py::object& report) {
        const auto matrix = input_matrix(costs);
        const std::size_t max_k = length(std::get<3>(links));
        if (max_k > std::min(matrix.n_rows, matrix.n_cols)) {
          throw std::invalid_argument("more links than rows or columns");
        }
        const MatchedPairs found = pairs_view(links, max_k);
        run(report, [&](Monitor& monitor) {
          k_cardinality_assignments(matrix, maximize, max_k, found, monitor);
        });
      },
      py::arg("costs").noconvert(), py::arg("maximize"), py::arg("links").noconvert(),
      py::arg("report"));
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
      py::arg("S").noconvert(), py::arg("row_offsets").noconvert(),
      py::arg("col_offsets").noconvert(), py::arg("kind"), py::arg("bounds").noconvert(),
      py::arg("out").noconvert(), py::arg("selected").noconvert(), py::arg("n_threads"),
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
