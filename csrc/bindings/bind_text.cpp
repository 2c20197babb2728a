#include <pybind11/stl.h>

#include <cstdint>
#include <optional>
#include <tuple>

#include "bindings/arrays.hpp"
#include "bindings/modules.hpp"
#include "bindings/python_monitor.hpp"
#include "common/ragged_view.hpp"
#include "gram/tag_rank.hpp"
#include "gram/word_sequence.hpp"

namespace py = pybind11;

namespace kernelcore {
namespace {

// Word ids or symbols, the captions' offsets in them, the images' offsets in the captions.
using Captions = std::tuple<Array<std::int32_t>, Array<std::int64_t>, Array<std::int64_t>>;

// Row offsets, columns and values.
using Csr = std::tuple<Array<std::int64_t>, Array<std::int32_t>, Array<float>>;

CaptionsView captions_view(const Captions& captions) {
  const auto& [words, caption_offsets, image_offsets] = captions;
  const RaggedView<std::int32_t> view = ragged(words, caption_offsets);
  if (length(image_offsets) == 0 || image_offsets.data()[length(image_offsets) - 1] !=
                                        static_cast<std::int64_t>(view.n_rows)) {
    throw std::invalid_argument("image offsets must end where the captions end");
  }
  return {view, image_offsets.data(), length(image_offsets) - 1};
}

template <class Out>
void bind_word_sequence(py::module_& module) {
  module.def(
      "word_sequence",
      [](const Captions& X, const Captions& Y, const Array<float>& scale,
         const std::optional<Array<float>>& dense, const std::optional<Csr>& sparse,
         std::size_t max_length, double gap_decay, bool per_length, bool normalize,
         Array<Out>& out, std::size_t n_threads, const py::object& report) {
        SymbolSimilarity similarity{scale.data(), length(scale), 0, nullptr, {}, nullptr};
        if (dense) {
          const auto matrix = input_matrix(*dense);
          if (matrix.n_rows != matrix.n_cols) throw std::invalid_argument("expected a square");
          similarity.n_words = matrix.n_rows;
          similarity.dense = matrix.data;
        } else if (sparse) {
          const auto& [offsets, columns, values] = *sparse;
          similarity.columns = ragged(columns, offsets);
          if (length(values) != length(columns)) throw std::invalid_argument("bad CSR matrix");
          similarity.n_words = similarity.columns.n_rows;
          similarity.values = values.data();
        }
        if (similarity.n_words > similarity.n_symbols) {
          throw std::invalid_argument("every word needs a scale");
        }
        const CaptionsView x = captions_view(X), y = captions_view(Y);
        const auto k =
            output_matrix(out, x.n_images, y.n_images * (per_length ? max_length : 1));
        run(report, [&](Monitor& monitor) {
          word_sequence(x, y, similarity, {max_length, gap_decay, per_length, normalize}, k,
                        n_threads, monitor);
        });
      },
      py::arg("X").noconvert(), py::arg("Y").noconvert(), py::arg("scale").noconvert(),
      py::arg("dense").noconvert(), py::arg("sparse").noconvert(), py::arg("max_length"),
      py::arg("gap_decay"), py::arg("per_length"), py::arg("normalize"),
      py::arg("out").noconvert(), py::arg("n_threads"), py::arg("report"));
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
      py::arg("X").noconvert(), py::arg("Y").noconvert(), py::arg("scale").noconvert(),
      py::arg("max_length"), py::arg("gap_decay"), py::arg("per_length"), py::arg("normalize"),
      py::arg("out").noconvert(), py::arg("n_threads"), py::arg("report"));
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
      py::arg("X").noconvert(), py::arg("Y").noconvert(), py::arg("tag_words").noconvert(),
      py::arg("n_words"), py::arg("absolute").noconvert(), py::arg("relative").noconvert(),
      py::arg("absolute_width"), py::arg("relative_width"), py::arg("out").noconvert(),
      py::arg("n_threads"), py::arg("report"));
}

}  // namespace

void bind_text(py::module_& module) {
  bind_word_sequence<float>(module);
  bind_word_sequence<double>(module);
  bind_word_sequence_exact<float>(module);
  bind_word_sequence_exact<double>(module);
  bind_tag_rank<float>(module);
  bind_tag_rank<double>(module);
}

}  // namespace kernelcore
