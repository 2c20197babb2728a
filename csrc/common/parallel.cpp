#include "common/parallel.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

namespace kernelcore {
namespace {

// Between two looks at the monitor while the calling thread waits.
constexpr std::chrono::milliseconds kPatience{50};

}  // namespace

// Hands out the tasks of one loop.
class Crew::Loop {
 public:
  Loop(Crew& crew, std::size_t n_tasks, const Body& body)
      : crew_(crew), n_tasks_(n_tasks), body_(body) {}

  // The work of a helper thread.
  void help(Worker& worker) noexcept {
    while (run_one(worker)) {
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    --n_helpers_;
    one_has_left_.notify_one();
  }

  // The work of the calling thread.
  void work_and_listen() noexcept {
    while (run_one(crew_.caller())) {
      if (crew_.n_done_ < crew_.n_expected_) listen();
    }
    std::unique_lock<std::mutex> lock(mutex_);
    while (!one_has_left_.wait_for(lock, kPatience, [this] { return n_helpers_ == 0; })) {
      lock.unlock();
      listen();
      lock.lock();
    }
  }

  // Adds 1 before a helper is started, and -1 if it could not be.
  void add_helpers(std::size_t n) {
    const std::lock_guard<std::mutex> lock(mutex_);
    n_helpers_ += n;
  }

  // Call after every thread has been joined.
  void rethrow() const {
    if (first_error_) std::rethrow_exception(first_error_);
  }

 private:
  // Runs one task; false when there is none left or the work was stopped.
  bool run_one(Worker& worker) noexcept {
    if (crew_.stopped_.load(std::memory_order_relaxed)) return false;
    const std::size_t task = next_.fetch_add(1, std::memory_order_relaxed);
    if (task >= n_tasks_) return false;
    try {
      body_(task, worker);
    } catch (...) {
      stop(std::current_exception());
      return false;
    }
    crew_.n_done_.fetch_add(1, std::memory_order_relaxed);
    return true;
  }

  void listen() noexcept {
    if (crew_.stopped_.load(std::memory_order_relaxed)) return;
    try {
      if (!crew_.keep_going()) throw Cancelled();
    } catch (...) {
      stop(std::current_exception());
    }
  }

  void stop(std::exception_ptr reason) noexcept {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!first_error_) first_error_ = std::move(reason);
    crew_.stopped_.store(true, std::memory_order_relaxed);
  }

  Crew& crew_;
  const std::size_t n_tasks_;
  const Body& body_;
  std::atomic<std::size_t> next_{0};
  std::mutex mutex_;
  std::condition_variable one_has_left_;
  std::size_t n_helpers_ = 0;  // that have not left
  std::exception_ptr first_error_;
};

Crew::Crew(std::size_t n_threads, Monitor& monitor) : monitor_(monitor) {
  workers_.reserve(std::max<std::size_t>(1, n_threads));
  do workers_.emplace_back(*this, workers_.size());
  while (workers_.size() < n_threads);
}

void Crew::parallel_for(std::size_t n_tasks, const Body& body) {
  if (n_tasks == 0) return;
  n_expected_ = std::max(n_expected_, n_done_ + n_tasks);
  Loop loop(*this, n_tasks, body);
  const std::size_t n_workers = std::min(workers_.size(), n_tasks);
  std::vector<std::thread> helpers;
  helpers.reserve(n_workers - 1);
  for (std::size_t k = 1; k < n_workers; ++k) {
    loop.add_helpers(1);
    try {
      helpers.emplace_back([&loop, &worker = workers_[k]] { loop.help(worker); });
    } catch (const std::exception&) {
      // The system refuses another thread, or memory for it: the others share the work.
      loop.add_helpers(-std::size_t{1});
      break;
    }
  }
  loop.work_and_listen();
  for (std::thread& helper : helpers) helper.join();
  loop.rethrow();
  if (!monitor_.keep_going(n_done_, n_expected_)) throw Cancelled();
}

// The monitor hears of the last task once, when every thread has ended: not here.
bool Crew::keep_going() {
  const std::size_t n_done = n_done_;
  const bool all_done = n_done > 0 && n_done == n_expected_;
  return monitor_.keep_going(n_done - all_done, n_expected_);
}

void Crew::look(const Worker& worker) {
  if (stopped_.load(std::memory_order_relaxed)) throw Cancelled();
  if (&worker == &caller() && !keep_going()) throw Cancelled();
}

void Worker::look() {
  spent_ = 0;
  crew_->look(*this);
}

}  // namespace kernelcore
