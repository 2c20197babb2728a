// A view of a matrix in memory that it does not own. Rows may be padded.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/check.hpp"

namespace kernelcore {

// Fetches a value into the cache, one behind the end of a matrix too. No hardware follows the
// columns of a matrix, whose values lie a stride apart. Inlined: no instruction set's copy may
// serve another.
template <class T>
[[gnu::always_inline]] inline void prefetch(const T* values, std::size_t offset) {
  const auto address = reinterpret_cast<std::uintptr_t>(values) + offset * sizeof(T);
  __builtin_prefetch(reinterpret_cast<const void*>(address), 0, 2);
}

template <class T>
struct MatrixView {
  T* data;
  std::size_t n_rows;
  std::size_t n_cols;
  std::size_t stride;  // elements from one row to the next, >= n_cols

  MatrixView(T* data, std::size_t n_rows, std::size_t n_cols)
      : MatrixView(data, n_rows, n_cols, n_cols) {}
  MatrixView(T* data, std::size_t n_rows, std::size_t n_cols, std::size_t stride)
      : data(data), n_rows(n_rows), n_cols(n_cols), stride(stride) {
    KC_ASSERT(stride >= n_cols);
  }

  T* row(std::size_t i) const {
    KC_ASSERT(i < n_rows);
    return data + i * stride;
  }
  T& operator()(std::size_t i, std::size_t j) const {
    KC_ASSERT(j < n_cols);
    return row(i)[j];
  }
};

}  // namespace kernelcore
