// Memory for vectors: those that straddle two cache lines are loaded at half the speed.
#pragma once

#include <cstddef>
#include <vector>

namespace kernelcore {

template <class T>
class AlignedBuffer {
 public:
  T* with_room_for(std::size_t n_values) {
    const std::size_t n_lines = (n_values + kPerLine - 1) / kPerLine;
    if (lines_.size() < n_lines) lines_.resize(n_lines);
    return lines_.front().values;
  }

 private:
  static constexpr std::size_t kPerLine = 64 / sizeof(T);
  struct alignas(64) Line {
    T values[kPerLine];
  };
  std::vector<Line> lines_ = std::vector<Line>(1);
};

}  // namespace kernelcore
