// Aligned memory: vectors that straddle two cache lines load at half the speed.
#pragma once

#include <cstddef>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <type_traits>

#include "common/check.hpp"

namespace kernelcore {

// Values that start at a cache line, with room for whole lines. They are not initialised, and
// are lost when the buffer grows.
template <class T>
class AlignedBuffer {
 public:
  static_assert(std::is_trivial_v<T>, "values are neither made nor destroyed");

  T* with_room_for(std::size_t n_values) {
    if (n_values > capacity_ || !values_) {
      if (n_values > std::numeric_limits<std::size_t>::max() / sizeof(T) - kLineBytes) {
        throw std::bad_array_new_length();
      }
      const std::size_t n_bytes = (n_values * sizeof(T) / kLineBytes + 1) * kLineBytes;
      capacity_ = 0;
      values_.reset();  // first: old and new values together might not fit
      values_.reset(static_cast<T*>(::operator new(n_bytes, kAlignment)));
      capacity_ = n_bytes / sizeof(T);
      // Code that relies on zeros meets NaN and negative integers.
      if constexpr (kAsserts) std::memset(values_.get(), 0xff, n_bytes);
    }
    return values_.get();
  }

  // The values that with_room_for() has made room for.
  T* data() const { return values_.get(); }

 private:
  static constexpr std::size_t kLineBytes = 64;
  static constexpr std::align_val_t kAlignment{kLineBytes};
  struct Free {
    void operator()(T* values) const { ::operator delete(values, kAlignment); }
  };
  std::unique_ptr<T, Free> values_;
  std::size_t capacity_ = 0;
};

}  // namespace kernelcore
