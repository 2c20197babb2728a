#include <cstdint>
#include <optional>

#include "bindings/arrays.hpp"
#include "bindings/captions.hpp"
#include "bindings/modules.hpp"
#include "bindings/python_monitor.hpp"
#include "captions/tag_rank.hpp"
#include "captions/word_assignment.hpp"
#include "captions/word_sequence.hpp"

namespace py = pybind11;

namespace kernelcore {
namespace {

template <class Out>
void bind_word_sequence(py::module_& module) {
  module.def(
      "word_sequence",
      [](const Captions& X, const Captions& Y, const Array<float>& scale,
         const std::optional<Array<float>>& dense, const std::optional<Csr<float>>& sparse,
         std::size_t max_length, double gap_decay, bool per_length, bool normalize,
         Array<Out>& out, std::size_t n_threads, const py::object& report) {
        const SymbolSimilarity similarity = symbol_similarity(scale, dense, sparse);
        const CaptionsView x = captions_view(X), y = captions_view(Y);
        const auto k =
            output_matrix(out, x.n_images, y.n_images * (per_length ? max_length : 1));
        run(report, [&](Monitor& monitor) {
          word_sequence(x, y, similarity, {max_length, gap_decay, per_length, normalize}, k,
                        n_threads, monitor);
        });
      },
      py::arg("X"), py::arg("Y"), py::arg("scale"), py::arg("dense"), py::arg("sparse"),
      py::arg("max_length"), py::arg("gap_decay"), py::arg("per_length"), py::arg("normalize"),
      py::arg("out"), py::arg("n_threads"), py::arg("report"));
}

template <class Out>
void bind_word_sequence_exact(py::module_& module) {
  module.def(
      "word_sequence_exact",
      [](const Captions& X, const Captions& Y, const Array<double>& scale,
         std::size_t max_length, double gap_decay, bool per_length, bool normalize,
         Array<Out>& out, std::size_t n_threads, const py::object& report) {
        const CaptionsView x = captions_view(X), y = captions_view(Y);
        const auto k =
            output_matrix(out, x.n_images, y.n_images * (per_length ? max_length : 1));
        const std::size_t n_symbols = length(scale);
        run(report, [&](Monitor& monitor) {
          word_sequence_exact(x, y, scale.data(), n_symbols,
                              {max_length, gap_decay, per_length, normalize}, k, n_threads,
                              monitor);
        });
      },
      py::arg("X"), py::arg("Y"), py::arg("scale"), py::arg("max_length"), py::arg("gap_decay"),
      py::arg("per_length"), py::arg("normalize"), py::arg("out"), py::arg("n_threads"),
      py::arg("report"));
}

template <class Out>
void bind_word_assignment(py::module_& module) {
  module.def(
      "word_assignment",
      [](const Captions& X, const Captions& Y, const Array<float>& scale,
         const std::optional<Array<float>>& dense, const std::optional<Csr<float>>& sparse,
         bool normalize, Array<Out>& out, std::size_t n_threads, const py::object& report) {
        const SymbolSimilarity similarity = symbol_similarity(scale, dense, sparse);
        const CaptionsView x = captions_view(X), y = captions_view(Y);
        const auto k = output_matrix(out, x.n_images, y.n_images);
        run(report, [&](Monitor& monitor) {
          word_assignment(x, y, similarity, normalize, k, n_threads, monitor);
        });
      },
      py::arg("X"), py::arg("Y"), py::arg("scale"), py::arg("dense"), py::arg("sparse"),
      py::arg("normalize"), py::arg("out"), py::arg("n_threads"), py::arg("report"));
}

template <class Out>
void bind_tag_rank(py::module_& module) {
  module.def(
      "tag_rank",
      [](const Captions& X, const Captions& Y, const Array<std::int32_t>& tag_words,
         std::size_t n_words, const Array<double>& absolute, const Array<double>& relative,
         double absolute_width, double relative_width, Array<Out>& out, std::size_t n_threads,
         const py::object& report) {
        const TagRanks ranks{length(tag_words), tag_words.data(), n_words,
                             absolute.data(),   relative.data(),  absolute_width,
                             relative_width};
        if (length(absolute) != ranks.n_tags || length(relative) != ranks.n_tags) {
          throw std::invalid_argument("every tag needs a word and two ranks");
        }
        const CaptionsView x = captions_view(X), y = captions_view(Y);
        const auto k = output_matrix(out, x.n_images, y.n_images);
        run(report, [&](Monitor& monitor) { tag_rank(x, y, ranks, k, n_threads, monitor); });
      },
      py::arg("X"), py::arg("Y"), py::arg("tag_words"), py::arg("n_words"), py::arg("absolute"),
      py::arg("relative"), py::arg("absolute_width"), py::arg("relative_width"), py::arg("out"),
      py::arg("n_threads"), py::arg("report"));
}

}  // namespace

void bind_captions(py::module_& module) {
  bind_word_sequence<float>(module);
  bind_word_sequence<double>(module);
  bind_word_sequence_exact<float>(module);
  bind_word_sequence_exact<double>(module);
  bind_word_assignment<float>(module);
  bind_word_assignment<double>(module);
  bind_tag_rank<float>(module);
  bind_tag_rank<double>(module);
}

}  // namespace kernelcore
