// How a long call tells its progress and learns that it should stop.
#pragma once

#include <cstddef>
#include <exception>

namespace kernelcore {

class Monitor {
 public:
  virtual ~Monitor() = default;

  // Told by the calling thread alone, after each of its tasks: `done` of `total` tasks are
  // finished. Returns false to stop the work.
  virtual bool keep_going(std::size_t done, std::size_t total) = 0;
};

// Thrown out of a call whose monitor asked it to stop; its output is then unusable.
struct Cancelled : std::exception {
  const char* what() const noexcept override { return "cancelled"; }
};

}  // namespace kernelcore
