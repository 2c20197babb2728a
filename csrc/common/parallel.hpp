// The only place that starts threads.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "common/monitor.hpp"
#include "common/worker.hpp"

namespace kernelcore {

// The threads of one call, the calling one among them.
class Crew {
 public:
  using Body = std::function<void(std::size_t task, Worker& worker)>;

  Crew(std::size_t n_threads, Monitor& monitor);
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  std::size_t n_threads() const { return workers_.size(); }

  // The calling thread: for long work outside of loops.
  Worker& caller() { return workers_.front(); }

  // The number of tasks of all loops of the call together, for its progress. Without it each
  // loop adds its tasks when it starts.
  void expect(std::size_t n_tasks) { n_expected_ = n_tasks; }

  // Runs body(task, worker) once for every task in [0, n_tasks), in parallel.
  //
  // Tasks are handed out in ascending order as threads become free, so the result may depend
  // on the number of threads only if tasks share state: give every output element one writer.
  // With one thread, or one task, no thread is started. If the system refuses a thread, those
  // that did start do the work.
  //
  // The calling thread asks the monitor after each of its tasks, whenever it spends work, and
  // every 50 ms while it waits for the others; Cancelled is thrown if the monitor says stop.
  // The first exception thrown by a body is rethrown here once every thread has ended. In both
  // cases no further task is started, and running ones end as soon as they spend work.
  void parallel_for(std::size_t n_tasks, const Body& body);

 private:
  friend class Worker;
  class Loop;

  void look(const Worker& worker);
  bool keep_going();

  Monitor& monitor_;
  std::vector<Worker> workers_;
  std::atomic<bool> stopped_{false};
  std::atomic<std::size_t> n_done_{0};
  std::size_t n_expected_ = 0;
};

// One T for each thread of a call, made when the thread first needs it.
template <class T>
class PerWorker {
 public:
  explicit PerWorker(std::size_t n_threads) : all_(n_threads) {}

  // The T of this worker, made of `arguments` and the worker.
  template <class... Arguments>
  T& of(Worker& worker, const Arguments&... arguments) {
    std::unique_ptr<T>& own = all_[worker.index()];
    if (!own) own = std::make_unique<T>(arguments..., worker);
    return *own;
  }

 private:
  std::vector<std::unique_ptr<T>> all_;
};

}  // namespace kernelcore
