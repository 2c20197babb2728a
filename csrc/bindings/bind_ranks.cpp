#include <pybind11/stl.h>

#include <charconv>
#include <cstdint>
#include <optional>
#include <tuple>

#include "bindings/arrays.hpp"
#include "bindings/modules.hpp"
#include "bindings/python_monitor.hpp"
#include "ranks/best_products.hpp"
#include "ranks/count_ranks.hpp"
#include "ranks/dot_products.hpp"

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
      py::arg("scores"), py::arg("rows"), py::arg("columns"), py::arg("ordered"),
      py::arg("n_threads"), py::arg("report"));
}

template <class T>
struct Vectors {
  Vectors(const Array<T>& left, const Array<T>& right)
      : rows(input_matrix(left)), others(input_matrix(right)) {
    if (rows.n_cols != others.n_cols) throw std::invalid_argument("vectors differ in length");
    if (rows.n_rows * others.n_rows * rows.n_cols == 0) {
      throw std::invalid_argument("there must be vectors on both sides");
    }
  }

  const MatrixView<const T> rows, others;
};

template <class T>
void bind_dot_products(py::module_& module) {
  module.def(
      "dot_products",
      [](const Array<T>& left, const Array<T>& right, Array<T> out, std::size_t n_threads,
         const py::object& report) {
        const Vectors<T> of(left, right);
        const auto products = output_matrix(out, of.rows.n_rows, of.others.n_rows);
        run(report, [&](Monitor& monitor) {
          dot_products(of.rows, of.others, products, n_threads, monitor);
        });
      },
      py::arg("left"), py::arg("right"), py::arg("out"), py::arg("n_threads"),
      py::arg("report"));
  module.def(
      "unit_rows",
      [](const Array<T>& rows, Array<T> out, const py::object& report) {
        const auto matrix = input_matrix(rows);
        const auto unit = output_matrix(out, matrix.n_rows, matrix.n_cols);
        bool is_finite = false;
        run(report, [&](Monitor& monitor) { is_finite = unit_rows(matrix, unit, monitor); });
        return is_finite;
      },
      py::arg("rows"), py::arg("out"), py::arg("report"));
  module.def(
      "best_products",
      [](const Array<T>& left, const Array<T>& right, std::int64_t first,
         Array<std::int64_t> positions, Array<T> scores, std::size_t n_threads,
         const py::object& report) {
        const Vectors<T> of(left, right);
        const auto k = static_cast<std::size_t>(scores.ndim() == 2 ? scores.shape(1) : 0);
        if (k == 0) throw std::invalid_argument("every row on the left needs a candidate");
        const auto best = output_matrix(scores, of.rows.n_rows, k);
        const auto places = output_matrix(positions, of.rows.n_rows, k);
        run(report, [&](Monitor& monitor) {
          best_products(of.rows, of.others, first, places, best, n_threads, monitor);
        });
      },
      py::arg("left"), py::arg("right"), py::arg("first"), py::arg("positions"),
      py::arg("scores"), py::arg("n_threads"), py::arg("report"));
  module.def(
      "paired_dot_products",
      [](const Array<T>& left, const Array<T>& right, const Array<std::int64_t>& row_of,
         Array<T> out, std::size_t n_threads, const py::object& report) {
        const Vectors<T> of(left, right);
        if (length(row_of) != of.others.n_rows || length(out) != of.others.n_rows) {
          throw std::invalid_argument("every row on the right needs one on the left");
        }
        for (std::size_t j = 0; j < of.others.n_rows; ++j) {
          if (static_cast<std::size_t>(row_of.data()[j]) >= of.rows.n_rows) {
            throw std::invalid_argument("a row on the left is missing");
          }
        }
        T* products = out.mutable_data();
        run(report, [&](Monitor& monitor) {
          paired_dot_products(of.rows, of.others, row_of.data(), products, n_threads, monitor);
        });
      },
      py::arg("left"), py::arg("right"), py::arg("row_of"), py::arg("out"),
      py::arg("n_threads"), py::arg("report"));
  module.def(
      "count_ranks_of_products",
      [](const Array<T>& left, const Array<T>& right, Queries<T> rows, Queries<T> columns,
         bool ordered, std::size_t n_threads, const py::object& report) {
        const Vectors<T> of(left, right);
        std::optional<Queries<T>> sides[] = {rows, columns};
        const auto by_row = rank_queries<T>(sides[0], of.rows.n_rows, ordered);
        const auto by_column = rank_queries<T>(sides[1], of.others.n_rows, ordered);
        run(report, [&](Monitor& monitor) {
          count_ranks_of_products(of.rows, of.others, by_row, by_column, n_threads, monitor);
        });
      },
      py::arg("left"), py::arg("right"), py::arg("rows"), py::arg("columns"),
      py::arg("ordered"), py::arg("n_threads"), py::arg("report"));
}

// The shortest decimal number that reads as each score: repr() takes ten times as long. Where
// the library formats no floats (libc++), repr() it is.
py::list decimals(const Array<double>& scores) {
  py::list texts(length(scores));
  for (std::size_t i = 0; i < texts.size(); ++i) {
#ifdef __cpp_lib_to_chars
    char text[32];
    const char* const end = std::to_chars(text, text + sizeof text, scores.data()[i]).ptr;
    texts[i] = py::str(text, static_cast<std::size_t>(end - text));
#else
    texts[i] = py::repr(py::float_(scores.data()[i]));
#endif
  }
  return texts;
}

}  // namespace

void bind_ranks(py::module_& module) {
  bind_count_ranks<float>(module);
  bind_count_ranks<double>(module);
  bind_dot_products<float>(module);
  bind_dot_products<double>(module);
  module.def("decimals", &decimals, py::arg("scores"));
}

}  // namespace kernelcore
