// Similarity of the symbols of two texts.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/ragged_view.hpp"

namespace kernelcore {

// kappa(a, b) = scale[a] * scale[b] * similarity(a, b). The similarity of two words is in the
// matrix, if there is one. All others are 1 for a = b and 0 otherwise.
struct SymbolSimilarity {
  const float* scale;  // of each symbol
  std::size_t n_symbols;
  std::size_t n_words;               // rows of the matrix, 0 without one
  const float* dense;                // (n_words, n_words), or null
  RaggedView<std::int32_t> columns;  // of the sparse matrix's rows, and their values, or null
  const float* values;

  // Whether sizes and indices are valid: for KC_ASSERT.
  bool is_valid() const {
    return n_words <= n_symbols &&
           (values == nullptr || (columns.n_rows == n_words && columns.is_valid(n_words)));
  }
};

}  // namespace kernelcore
