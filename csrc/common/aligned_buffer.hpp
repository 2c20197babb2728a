// Aligned memory: vectors that straddle two cache lines load at half the speed.
#pragma once

#include <cstddef>
#include <cstdint>
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
    if (n_values > capacity_ || !memory_) {
      if (n_values > std::numeric_limits<std::size_t>::max() / sizeof(T) - 2 * kLineBytes) {
        throw std::bad_array_new_length();
      }
      const std::size_t n_bytes = (n_values * sizeof(T) / kLineBytes + 1) * kLineBytes;
      capacity_ = 0;
      memory_.reset();  // first: old and new values together might not fit
      // Aligned here: operator new with an alignment adds a microsecond to small calls.
      memory_.reset(new unsigned char[n_bytes + kLineBytes]);
      const auto at = reinterpret_cast<std::uintptr_t>(memory_.get());
      values_ = reinterpret_cast<T*>(memory_.get() + (kLineBytes - at % kLineBytes));
      capacity_ = n_bytes / sizeof(T);
      // Code that relies on zeros meets NaN and negative integers.
      if constexpr (kAsserts) std::memset(values_, 0xff, n_bytes);
    }
    return values_;
  }

  // The values that with_room_for() has made room for.
  T* data() const { return values_; }

 private:
  static constexpr std::size_t kLineBytes = 64;
  std::unique_ptr<unsigned char[]> memory_;
  T* values_ = nullptr;
  std::size_t capacity_ = 0;
};

}  // namespace kernelcore
