#include <pybind11/stl.h>

#include <cstdint>
#include <optional>
#include <tuple>

#include "bindings/arrays.hpp"
#include "bindings/modules.hpp"
#include "bindings/python_monitor.hpp"
#include "scan/scan_values.hpp"

namespace py = pybind11;

namespace kernelcore {
namespace {

template <class T>
void bind_scan_values(py::module_& module) {
  module.def(
      "scan_values",
      [](const Array<T>& values, std::size_t n_threads) {
        const auto n = static_cast<std::size_t>(values.size());
        const T* const data = values.data();
        Extremes found{};
        run(py::none(),
            [&](Monitor& monitor) { found = scan_values(data, n, n_threads, monitor); });
        return std::tuple(found.smallest, found.largest, found.is_finite);
      },
      py::arg("values"), py::arg("n_threads"));
}

template <class T>
void bind_scan_gram(py::module_& module) {
  module.def(
      "scan_gram",
      [](const Array<T>& K, std::size_t n_threads, std::optional<Array<T>> copy) {
        const auto matrix = input_matrix(K);
        const std::size_t n = matrix.n_rows;
        if (n != matrix.n_cols) throw std::invalid_argument("not square");
        T* const copied = copy ? output_matrix(*copy, n, n).data : nullptr;
        Extremes found{};
        run(py::none(),
            [&](Monitor& monitor) { found = scan_gram(matrix, copied, n_threads, monitor); });
        return std::tuple(found.smallest, found.largest, found.is_finite, found.gap);
      },
      py::arg("K"), py::arg("n_threads"), py::arg("copy") = py::none());
}

}  // namespace

void bind_scan(py::module_& module) {
  bind_scan_values<float>(module);
  bind_scan_values<double>(module);
  bind_scan_values<std::uint8_t>(module);
  bind_scan_values<std::uint16_t>(module);
  bind_scan_values<std::uint32_t>(module);
  bind_scan_gram<float>(module);
  bind_scan_gram<double>(module);
}

}  // namespace kernelcore
