// NumPy arrays as views. Nothing is converted here: the facade hands over arrays of the right
// dtype and layout, and a wrong one does not match the binding's signature.
#pragma once

#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>

#include <cstdint>
#include <tuple>

#include "common/matrix_view.hpp"
#include "common/ragged_view.hpp"

namespace kernelcore {

// A C-contiguous array of T. As an argument, array_t makes an empty array first and then
// converts what it is given, half of the time of a small assignment; this only looks.
template <class T>
class Array : public pybind11::array {
 public:
  Array() : array(pybind11::handle(), stolen_t{}) {}
  Array(pybind11::handle handle, borrowed_t) : array(handle, borrowed_t{}) {}
  Array(pybind11::handle handle, stolen_t) : array(handle, stolen_t{}) {}

  static bool check_(pybind11::handle handle) {
    return pybind11::array_t<T, c_style>::check_(handle);
  }
  const T* data() const { return static_cast<const T*>(array::data()); }
  T* mutable_data() { return static_cast<T*>(array::mutable_data()); }
};

// Row offsets, columns and values of a sparse matrix.
template <class T>
using Csr = std::tuple<Array<std::int64_t>, Array<std::int32_t>, Array<T>>;

template <class T>
Array<T> empty(std::size_t size) {
  return pybind11::reinterpret_steal<Array<T>>(
      pybind11::array_t<T>(static_cast<pybind11::ssize_t>(size)).release());
}

template <class T>
MatrixView<const T> input_matrix(const Array<T>& array) {
  if (array.ndim() != 2) throw std::invalid_argument("expected a matrix");
  return {array.data(), static_cast<std::size_t>(array.shape(0)),
          static_cast<std::size_t>(array.shape(1))};
}

// Fails for a read-only array, as NumPy does.
template <class T>
MatrixView<T> output_matrix(Array<T>& array, std::size_t n_rows, std::size_t n_cols) {
  if (array.ndim() != 2 || static_cast<std::size_t>(array.shape(0)) != n_rows ||
      static_cast<std::size_t>(array.shape(1)) != n_cols) {
    throw std::invalid_argument("the output has the wrong shape");
  }
  return {array.mutable_data(), n_rows, n_cols};
}

template <class T>
std::size_t length(const Array<T>& array) {
  if (array.ndim() != 1) throw std::invalid_argument("expected a vector");
  return static_cast<std::size_t>(array.shape(0));
}

template <class T>
RaggedView<T> ragged(const Array<T>& values, const Array<std::int64_t>& offsets) {
  if (length(offsets) == 0 ||
      offsets.data()[length(offsets) - 1] != static_cast<std::int64_t>(length(values))) {
    throw std::invalid_argument("offsets must end where the values end");
  }
  return {values.data(), offsets.data(), length(offsets) - 1};
}

}  // namespace kernelcore

namespace pybind11::detail {

template <class T>
struct handle_type_name<kernelcore::Array<T>> {
  static constexpr auto name =
      const_name("numpy.typing.NDArray[") + npy_format_descriptor<T>::name + const_name("]");
};

}  // namespace pybind11::detail
