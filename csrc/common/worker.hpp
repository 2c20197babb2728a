// One thread of a call. Work that runs on it reports here, and learns that it must stop.
#pragma once

#include <cstddef>

namespace kernelcore {

class Crew;

// Whole cache lines: each thread writes to its own worker all the time.
class alignas(64) Worker {
 public:
  Worker(Crew& crew, std::size_t index) : crew_(&crew), index_(index) {}

  std::size_t index() const { return index_; }  // 0 is the calling thread

  // Reports that `work` was done, in units of about a nanosecond. Checks about every
  // millisecond whether the call must stop, and then throws Cancelled. Every loop that may last
  // calls it. Always inlined: a copy that the linker shared across instruction sets would break
  // the rule of common/simd.hpp.
  __attribute__((always_inline)) void spend(std::size_t work) {
    spent_ += work;
    if (spent_ >= kWorkBetweenLooks) look();
  }

 private:
  static constexpr std::size_t kWorkBetweenLooks = std::size_t{1} << 20;
  void look();

  Crew* crew_;
  std::size_t index_;
  std::size_t spent_ = 0;
};

}  // namespace kernelcore
