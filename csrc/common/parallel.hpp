// The only place that starts threads.
#pragma once

#include <cstddef>
#include <functional>

#include "common/monitor.hpp"

namespace kernelcore {

// Runs body(task, worker) once for every task in [0, n_tasks), in parallel on up to
// `n_threads` threads, the calling one among them; worker < n_threads tells threads apart.
//
// Tasks are handed out in ascending order as threads become free, so the result may depend
// on the number of threads only if tasks share state: give every output element one writer.
// With one thread, or one task, no thread is started. If the system refuses a thread, those
// that did start do the work. The first exception thrown by a body stops the hand-out and is
// rethrown here once every thread has ended; Cancelled is thrown if the monitor says stop.
void parallel_for(std::size_t n_tasks, std::size_t n_threads, Monitor& monitor,
                  const std::function<void(std::size_t task, std::size_t worker)>& body);

}  // namespace kernelcore
