#include <pybind11/stl.h>

#include <cstdint>
#include <optional>
#include <tuple>

#include "bindings/arrays.hpp"
#include "bindings/modules.hpp"
#include "bindings/python_monitor.hpp"
#include "ranks/count_ranks.hpp"

namespace py = pybind11;

namespace kernelcore {
namespace {

// Gold scores and first gold candidates, one layer a row, and the counts of all layers: one row
// each for greater, tied and, where it is asked for, tied before.
template <class T>
using Queries = std::tuple<Array<T>, Array<std::int64_t>, Array<std::int64_t>>;

template <class T>
RankQueries<T> rank_queries(std::optional<Queries<T>>& queries, std::size_t n, bool ordered) {
  if (!queries) return {0, nullptr, nullptr, nullptr, nullptr, nullptr};
  auto& [gold, first_gold, counts] = *queries;
  const auto n_layers = static_cast<std::size_t>(gold.ndim() == 2 ? gold.shape(0) : 0);
  const auto are_layers = [n, n_layers](const py::array& array) {
    return array.ndim() == 2 && static_cast<std::size_t>(array.shape(0)) == n_layers &&
           static_cast<std::size_t>(array.shape(1)) == n;
  };
  if (n_layers == 0 || !are_layers(gold) || !are_layers(first_gold)) {
    throw std::invalid_argument("every query needs gold scores and gold candidates");
  }
  const auto rows = output_matrix(counts, ordered ? 3 : 2, n_layers * n);
  return {n_layers,    gold.data(), first_gold.data(),
          rows.row(0), rows.row(1), ordered ? rows.row(2) : nullptr};
}

template <class T>
void bind_count_ranks(py::module_& module) {
  module.def(
      "count_ranks",
      [](const Array<T>& scores, std::optional<Queries<T>> rows,
         std::optional<Queries<T>> columns, bool ordered, std::size_t n_threads,
         const py::object& report) {
        const auto matrix = input_matrix(scores);
        const auto by_row = rank_queries<T>(rows, matrix.n_rows, ordered);
        const auto by_column = rank_queries<T>(columns, matrix.n_cols, ordered);
        bool has_nan = false;
        run(report, [&](Monitor& monitor) {
          has_nan = count_ranks(matrix, by_row, by_column, n_threads, monitor);
        });
        return has_nan;
      },
      py::arg("scores").noconvert(), py::arg("rows").noconvert(),
      py::arg("columns").noconvert(), py::arg("ordered"), py::arg("n_threads"),
      py::arg("report"));
}

}  // namespace

void bind_ranks(py::module_& module) {
  bind_count_ranks<float>(module);
  bind_count_ranks<double>(module);
}

}  // namespace kernelcore
