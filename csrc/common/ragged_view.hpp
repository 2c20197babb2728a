// Rows of unequal length that somebody else owns, end to end, with the offsets between them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace kernelcore {

template <class T>
struct RaggedView {
  const T* values;
  const std::int64_t* offsets;  // n_rows + 1 of them, ascending from 0
  std::size_t n_rows;

  const T* begin(std::size_t row) const { return values + offsets[row]; }
  const T* end(std::size_t row) const { return values + offsets[row + 1]; }
  std::size_t size(std::size_t row) const {
    return static_cast<std::size_t>(offsets[row + 1] - offsets[row]);
  }
  std::size_t n_values() const { return static_cast<std::size_t>(offsets[n_rows]); }
};

// Captions of images: image i has the captions first_caption(i) .. first_caption(i + 1) - 1.
struct CaptionsView {
  RaggedView<std::int32_t> words;
  const std::int64_t* image_offsets;
  std::size_t n_images;

  std::size_t first_caption(std::size_t image) const {
    return static_cast<std::size_t>(image_offsets[image]);
  }
  bool is(const CaptionsView& other) const {
    return words.values == other.words.values && words.offsets == other.words.offsets &&
           image_offsets == other.image_offsets && n_images == other.n_images;
  }
};

}  // namespace kernelcore
