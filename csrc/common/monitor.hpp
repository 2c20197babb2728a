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

// One of several loops of a call, which its monitor sees as a single one.
class Stage final : public Monitor {
 public:
  Stage(Monitor& monitor, std::size_t n_before, std::size_t n_total)
      : monitor_(monitor), n_before_(n_before), n_total_(n_total) {}

  bool keep_going(std::size_t done, std::size_t) override {
    return monitor_.keep_going(n_before_ + done, n_total_);
  }

 private:
  Monitor& monitor_;
  const std::size_t n_before_;
  const std::size_t n_total_;
};

// Thrown out of a call whose monitor asked it to stop; its output is then unusable.
struct Cancelled : std::exception {
  const char* what() const noexcept override { return "cancelled"; }
};

}  // namespace kernelcore
