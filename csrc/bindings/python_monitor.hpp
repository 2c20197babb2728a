// Lets a running call see Ctrl-C and report its progress, without holding the GIL meanwhile.
#pragma once

#include <pybind11/pybind11.h>

#include <chrono>
#include <utility>

#include "common/monitor.hpp"

namespace kernelcore {

class PythonMonitor final : public Monitor {
 public:
  // `report` is None or a callable of (done, total).
  explicit PythonMonitor(pybind11::object report) : report_(std::move(report)) {}

  // Takes the GIL at most every kInterval, and at the end; a Python exception stays pending for
  // run(). As long as the total is unknown there is nothing to report.
  bool keep_going(std::size_t done, std::size_t total) override {
    const auto now = std::chrono::steady_clock::now();
    if (now < next_look_ && (done < total || total == 0)) return true;
    next_look_ = now + kInterval;
    const pybind11::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) return false;
    if (report_.is_none() || total == 0) return true;
    try {
      report_(done, total);
    } catch (pybind11::error_already_set& error) {
      error.restore();
      return false;
    }
    return true;
  }

 private:
  static constexpr std::chrono::milliseconds kInterval{50};
  const pybind11::object report_;
  std::chrono::steady_clock::time_point next_look_{};
};

// Runs call(monitor) with the GIL released; an exception raised by a signal handler or by
// `report` leaves from here.
template <class Call>
void run(const pybind11::object& report, const Call& call) {
  PythonMonitor monitor(report);
  try {
    const pybind11::gil_scoped_release unlocked;
    call(monitor);
  } catch (const Cancelled&) {
    throw pybind11::error_already_set();
  }
}

}  // namespace kernelcore
