// Captions and the similarities of their words, as Python hands them over.
#pragma once

#include <pybind11/stl.h>

#include <cstdint>
#include <optional>
#include <tuple>

#include "bindings/arrays.hpp"
#include "common/ragged_view.hpp"
#include "common/symbol_similarity.hpp"

namespace kernelcore {

// Word ids or symbols, the captions' offsets in them, the images' offsets in the captions.
using Captions = std::tuple<Array<std::int32_t>, Array<std::int64_t>, Array<std::int64_t>>;

inline CaptionsView captions_view(const Captions& captions) {
  const auto& [words, caption_offsets, image_offsets] = captions;
  const RaggedView<std::int32_t> view = ragged(words, caption_offsets);
  if (length(image_offsets) == 0 || image_offsets.data()[length(image_offsets) - 1] !=
                                        static_cast<std::int64_t>(view.n_rows)) {
    throw std::invalid_argument("image offsets must end where the captions end");
  }
  return {view, image_offsets.data(), length(image_offsets) - 1};
}

inline SymbolSimilarity symbol_similarity(const Array<float>& scale,
                                          const std::optional<Array<float>>& dense,
                                          const std::optional<Csr<float>>& sparse) {
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
  return similarity;
}

}  // namespace kernelcore
