#include <pybind11/stl.h>

#include <cstdint>
#include <optional>
#include <tuple>

#include "bindings/arrays.hpp"
#include "bindings/modules.hpp"
#include "bindings/python_monitor.hpp"
#include "histograms/histogram_intersection.hpp"
#include "histograms/sparse_gram.hpp"

namespace py = pybind11;

namespace kernelcore {
namespace {

std::vector<Segment> as_segments(
    const std::vector<std::tuple<std::size_t, std::size_t, double>>& triples,
    std::size_t n_bins) {
  std::vector<Segment> segments;
  segments.reserve(triples.size());
  for (const auto& [begin, end, weight] : triples) {
    if (begin > end || end > n_bins) throw std::invalid_argument("a segment exceeds the bins");
    segments.push_back({begin, end, weight});
  }
  return segments;
}

template <class T, class Out>
void bind_histogram_intersection(py::module_& module) {
  module.def(
      "histogram_intersection",
      [](const Array<T>& X, const Array<T>& Y, Array<Out>& out, std::size_t n_threads,
         const py::object& report) {
        const auto x = input_matrix(X);
        const auto y = input_matrix(Y);
        if (x.n_cols != y.n_cols) throw std::invalid_argument("the numbers of bins differ");
        const auto k = output_matrix(out, x.n_rows, y.n_rows);
        run(report,
            [&](Monitor& monitor) { histogram_intersection(x, y, k, n_threads, monitor); });
      },
      py::arg("X"), py::arg("Y"), py::arg("out"), py::arg("n_threads"), py::arg("report"));
}

template <class T, class Out>
void bind_segmented_intersection(py::module_& module) {
  module.def(
      "segmented_intersection",
      [](const Array<T>& X, const Array<T>& Y,
         const std::vector<std::tuple<std::size_t, std::size_t, double>>& segments,
         bool symmetric, Array<Out>& out, std::size_t n_threads, const py::object& report) {
        const auto x = input_matrix(X);
        const auto y = input_matrix(Y);
        if (x.n_cols != y.n_cols) throw std::invalid_argument("the numbers of bins differ");
        if (symmetric && x.n_rows != y.n_rows) throw std::invalid_argument("not symmetric");
        const auto cuts = as_segments(segments, x.n_cols);
        const auto k = output_matrix(out, x.n_rows, y.n_rows);
        run(report, [&](Monitor& monitor) {
          segmented_intersection(x, y, cuts, symmetric, k, n_threads, monitor);
        });
      },
      py::arg("X"), py::arg("Y"), py::arg("segments"), py::arg("symmetric"), py::arg("out"),
      py::arg("n_threads"), py::arg("report"));
}

template <class Held, class Out>
void divide_in_place(Array<Out>& K, const Array<double>& masses_X,
                     const Array<double>& masses_Y, bool to_union, std::size_t n_threads) {
  const auto k = output_matrix(K, length(masses_X), length(masses_Y));
  const Ratio ratio = to_union ? Ratio::kToUnion : Ratio::kToMean;
  run(py::none(), [&](Monitor& monitor) {
    divide_by_masses<Held, Out>(k, masses_X.data(), masses_Y.data(), ratio, n_threads, monitor);
  });
}

template <class Out>
void bind_divide_by_masses(py::module_& module) {
  module.def(
      "divide_by_masses",
      [](Array<Out>& K, const Array<double>& masses_X, const Array<double>& masses_Y,
         bool counts, bool to_union, std::size_t n_threads) {
        if constexpr (sizeof(Out) == sizeof(std::uint64_t)) {
          if (counts) {
            divide_in_place<std::uint64_t>(K, masses_X, masses_Y, to_union, n_threads);
            return;
          }
        }
        divide_in_place<Out>(K, masses_X, masses_Y, to_union, n_threads);
      },
      py::arg("K"), py::arg("masses_X"), py::arg("masses_Y"), py::arg("counts"),
      py::arg("to_union"), py::arg("n_threads"));
}

template <class T>
SparseRows<T> sparse_rows(const Csr<T>& csr, std::size_t n_bins) {
  const auto& [offsets, bins, counts] = csr;
  if (length(counts) != length(bins)) throw std::invalid_argument("every bin needs a count");
  return {ragged(bins, offsets), counts.data(), n_bins};
}

template <class T, class Out>
void bind_sparse_intersection(py::module_& module) {
  module.def(
      "sparse_intersection",
      [](const Csr<T>& X, const Csr<T>& Y, std::size_t n_bins, Array<Out>& out,
         std::size_t n_threads, const py::object& report) {
        const auto x = sparse_rows(X, n_bins), y = sparse_rows(Y, n_bins);
        const auto k = output_matrix(out, x.bins.n_rows, y.bins.n_rows);
        run(report,
            [&](Monitor& monitor) { sparse_intersection(x, y, k, n_threads, monitor); });
      },
      py::arg("X"), py::arg("Y"), py::arg("n_bins"), py::arg("out"), py::arg("n_threads"),
      py::arg("report"));
}

template <class Out>
void bind_bag_of_words(py::module_& module) {
  module.def(
      "bag_of_words",
      [](const Csr<double>& X, const Csr<double>& Y, std::size_t n_words,
         const std::optional<Array<double>>& f1_weights, Array<Out>& out, std::size_t n_threads,
         const py::object& report) {
        const auto x = sparse_rows(X, n_words), y = sparse_rows(Y, n_words);
        const auto k = output_matrix(out, x.bins.n_rows, y.bins.n_rows);
        if (f1_weights && length(*f1_weights) != n_words) {
          throw std::invalid_argument("every word needs a weight");
        }
        const double* const weights = f1_weights ? f1_weights->data() : nullptr;
        run(report, [&](Monitor& monitor) {
          weights == nullptr ? bag_of_words(x, y, k, n_threads, monitor)
                             : bag_of_words_f1(x, y, weights, k, n_threads, monitor);
        });
      },
      py::arg("X"), py::arg("Y"), py::arg("n_words"), py::arg("f1_weights"), py::arg("out"),
      py::arg("n_threads"), py::arg("report"));
}

}  // namespace

void bind_histograms(py::module_& module) {
  bind_bag_of_words<float>(module);
  bind_bag_of_words<double>(module);
  bind_divide_by_masses<float>(module);
  bind_divide_by_masses<double>(module);
  bind_histogram_intersection<float, float>(module);
  bind_histogram_intersection<double, double>(module);
  bind_histogram_intersection<std::uint8_t, std::uint64_t>(module);
  bind_histogram_intersection<std::uint16_t, std::uint64_t>(module);
  bind_histogram_intersection<std::uint32_t, std::uint64_t>(module);
  bind_segmented_intersection<float, float>(module);
  bind_segmented_intersection<double, double>(module);
  bind_segmented_intersection<std::uint16_t, float>(module);
  bind_segmented_intersection<std::uint16_t, double>(module);
  bind_segmented_intersection<std::uint32_t, float>(module);
  bind_segmented_intersection<std::uint32_t, double>(module);
  bind_sparse_intersection<float, float>(module);
  bind_sparse_intersection<double, double>(module);
  bind_sparse_intersection<std::uint8_t, std::uint64_t>(module);
  bind_sparse_intersection<std::uint16_t, std::uint64_t>(module);
  bind_sparse_intersection<std::uint32_t, std::uint64_t>(module);
}

}  // namespace kernelcore
