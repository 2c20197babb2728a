// Views of rows of unequal length, which lie end to end, and of the captions of images.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/check.hpp"

namespace kernelcore {

// Whether offsets start at 0, never descend and end at n_values: for KC_ASSERT.
inline bool are_offsets(const std::int64_t* offsets, std::size_t n_rows, std::size_t n_values) {
  for (std::size_t row = 0; row < n_rows; ++row) {
    if (offsets[row] > offsets[row + 1]) return false;
  }
  return offsets[0] == 0 && static_cast<std::size_t>(offsets[n_rows]) == n_values;
}

template <class T>
struct RaggedView {
  const T* values;
  const std::int64_t* offsets;  // n_rows + 1 of them, ascending from 0
  std::size_t n_rows;

  const T* begin(std::size_t row) const {
    KC_ASSERT(row < n_rows);
    return values + offsets[row];
  }
  const T* end(std::size_t row) const {
    KC_ASSERT(row < n_rows);
    return values + offsets[row + 1];
  }
  std::size_t size(std::size_t row) const {
    KC_ASSERT(row < n_rows && offsets[row] <= offsets[row + 1]);
    return static_cast<std::size_t>(offsets[row + 1] - offsets[row]);
  }
  std::size_t n_values() const { return static_cast<std::size_t>(offsets[n_rows]); }

  // Whether the offsets are valid, and all values are indices below `size`: for KC_ASSERT.
  bool is_valid(std::size_t size) const {
    for (std::size_t k = 0; k < n_values(); ++k) {
      if (values[k] < 0 || static_cast<std::size_t>(values[k]) >= size) return false;
    }
    return are_offsets(offsets, n_rows, n_values());
  }
};

// Captions of images: image i has the captions first_caption(i) .. first_caption(i + 1) - 1.
struct CaptionsView {
  RaggedView<std::int32_t> words;
  const std::int64_t* image_offsets;
  std::size_t n_images;

  std::size_t first_caption(std::size_t image) const {
    KC_ASSERT(image <= n_images);
    return static_cast<std::size_t>(image_offsets[image]);
  }
  // In all captions of an image.
  std::size_t n_words(std::size_t image) const {
    return static_cast<std::size_t>(words.offsets[first_caption(image + 1)] -
                                    words.offsets[first_caption(image)]);
  }
  bool is(const CaptionsView& other) const {
    return words.values == other.words.values && words.offsets == other.words.offsets &&
           image_offsets == other.image_offsets && n_images == other.n_images;
  }
  // As above, for words below n_symbols.
  bool is_valid(std::size_t n_symbols) const {
    return are_offsets(image_offsets, n_images, words.n_rows) && words.is_valid(n_symbols);
  }
};

}  // namespace kernelcore
