#include "common/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace kernelcore {
namespace {

class TaskQueue {
 public:
  TaskQueue(std::size_t n_tasks, const std::function<void(std::size_t, std::size_t)>& body)
      : n_tasks_(n_tasks), body_(body) {}

  // Runs one task; false when there is none left or the work was stopped.
  bool run_one(std::size_t worker) noexcept {
    if (stopped_.load(std::memory_order_relaxed)) return false;
    const std::size_t task = next_.fetch_add(1, std::memory_order_relaxed);
    if (task >= n_tasks_) return false;
    try {
      body_(task, worker);
    } catch (...) {
      stop(std::current_exception());
      return false;
    }
    done_.fetch_add(1, std::memory_order_relaxed);
    return true;
  }

  void stop(std::exception_ptr reason) noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!first_error_) first_error_ = std::move(reason);
    stopped_.store(true, std::memory_order_relaxed);
  }

  std::size_t done() const { return done_.load(std::memory_order_relaxed); }

  // Call after every thread has been joined.
  void rethrow() const {
    if (first_error_) std::rethrow_exception(first_error_);
  }

 private:
  const std::size_t n_tasks_;
  const std::function<void(std::size_t, std::size_t)>& body_;
  std::atomic<std::size_t> next_{0};
  std::atomic<std::size_t> done_{0};
  std::atomic<bool> stopped_{false};
  std::mutex mutex_;
  std::exception_ptr first_error_;
};

}  // namespace

void parallel_for(std::size_t n_tasks, std::size_t n_threads, Monitor& monitor,
                  const std::function<void(std::size_t, std::size_t)>& body) {
  TaskQueue queue(n_tasks, body);
  std::vector<std::thread> helpers;
  const std::size_t n_helpers = std::min(n_threads, n_tasks) - (n_tasks > 0 && n_threads > 0);
  helpers.reserve(n_helpers);
  try {
    for (std::size_t worker = 1; worker <= n_helpers; ++worker) {
      helpers.emplace_back([&queue, worker] {
        while (queue.run_one(worker)) {
        }
      });
    }
  } catch (const std::exception&) {
    // No more threads, or memory for one, to be had: those that started share the work.
  }
  try {
    while (queue.run_one(0)) {
      if (!monitor.keep_going(queue.done(), n_tasks)) throw Cancelled();
    }
  } catch (...) {
    queue.stop(std::current_exception());
  }
  for (std::thread& helper : helpers) helper.join();
  queue.rethrow();
}

}  // namespace kernelcore
