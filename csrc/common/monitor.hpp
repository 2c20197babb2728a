// Progress of a long call, and its cancellation.
#pragma once

#include <cstddef>
#include <exception>

namespace kernelcore {

class Monitor {
 public:
  virtual ~Monitor() = default;

  // Asked by the calling thread alone: after each of its tasks, about every millisecond within
  // them, every 50 ms while it waits for other threads, and at the end of a loop. `done` of
  // `total` tasks are finished, 0 of 0 as long as their number is unknown. Returns false to
  // stop the work; it is not asked again after that.
  virtual bool keep_going(std::size_t done, std::size_t total) = 0;
};

// Thrown out of a call whose monitor asked it to stop; its output is then unusable.
struct Cancelled : std::exception {
  const char* what() const noexcept override { return "cancelled"; }
};

}  // namespace kernelcore
