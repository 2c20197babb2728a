// One thread of a call, as the work that runs on it sees it.
#pragma once

#include <cstddef>

namespace kernelcore {

class Crew;

// Whole cache lines: each thread writes to its own worker all the time.
class alignas(64) Worker {
 public:
  Worker(Crew& crew, std::size_t index) : crew_(&crew), index_(index) {}

  std::size_t index() const { return index_; }  // 0 is the calling thread

  // Tells that `work` was done, in units of about a nanosecond. About every millisecond it
  // looks whether the call is to stop, and then throws Cancelled. Every loop that may last
  // calls it. Inlined always: a copy that the linker chose for all instruction sets would
  // break the rule of common/lanes.hpp.
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
