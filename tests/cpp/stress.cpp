// Runs the C++ core on random shapes, many threads and every instruction set, against loops
// that nobody could get wrong. Built with the sanitizers by tests/cpp/run.sh.
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <random>
#include <stdexcept>
#include <vector>

#include "common/isa.hpp"
#include "common/parallel.hpp"
#include "gram/histogram_intersection.hpp"

using namespace kernelcore;

namespace {

#define CHECK(condition)                                                   \
  do {                                                                     \
    if (!(condition)) {                                                    \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                                        \
    }                                                                      \
  } while (false)

class Patient final : public Monitor {
 public:
  bool keep_going(std::size_t done, std::size_t total) override {
    CHECK(done <= total);
    return true;
  }
};

class Impatient final : public Monitor {
 public:
  bool keep_going(std::size_t, std::size_t) override { return false; }
};

void stress_parallel_for() {
  Patient patient;
  for (std::size_t n_tasks : {0, 1, 2, 7, 1000}) {
    for (std::size_t n_threads : {1, 2, 5, 16}) {
      std::vector<std::atomic<int>> runs(n_tasks);
      parallel_for(n_tasks, n_threads, patient, [&](std::size_t task, std::size_t worker) {
        CHECK(worker < n_threads);
        ++runs[task];
      });
      for (const auto& count : runs) CHECK(count == 1);

      std::atomic<std::size_t> started{0};
      try {
        parallel_for(n_tasks, n_threads, patient, [&](std::size_t task, std::size_t) {
          ++started;
          if (task == n_tasks / 2) throw std::runtime_error("task");
        });
        CHECK(n_tasks == 0);
      } catch (const std::runtime_error&) {
        CHECK(started >= n_tasks / 2 + 1);
      }

      Impatient impatient;
      bool cancelled = false;
      try {
        parallel_for(n_tasks, n_threads, impatient, [](std::size_t, std::size_t) {});
      } catch (const Cancelled&) {
        cancelled = true;
      }
      // With helpers, the calling thread may find nothing left to do and never ask.
      if (n_threads == 1) CHECK(cancelled == (n_tasks > 0));
    }
  }
}

template <class T>
std::vector<T> random_bins(std::mt19937& rng, std::size_t size) {
  std::vector<T> bins(size);
  if constexpr (std::is_floating_point_v<T>) {
    std::uniform_real_distribution<T> uniform(0, 1);
    for (T& bin : bins) bin = uniform(rng);
  } else {
    std::uniform_int_distribution<std::uint64_t> uniform(0, std::numeric_limits<T>::max());
    for (T& bin : bins) bin = static_cast<T>(uniform(rng));
  }
  return bins;
}

template <class T, class Out>
void stress_histogram_intersection(std::mt19937& rng, std::size_t n_threads) {
  std::uniform_int_distribution<std::size_t> rows(0, 70);
  std::uniform_int_distribution<std::size_t> cols(0, 5000);
  const std::size_t m = rows(rng), n = rows(rng), d = cols(rng);
  const std::vector<T> x = random_bins<T>(rng, m * d), y = random_bins<T>(rng, n * d);
  std::vector<Out> k(m * n), k_symmetric(m * m);
  Patient patient;
  const MatrixView<const T> X(x.data(), m, d), Y(y.data(), n, d);
  histogram_intersection<T, Out>(X, Y, {k.data(), m, n}, n_threads, patient);
  histogram_intersection<T, Out>(X, X, {k_symmetric.data(), m, m}, n_threads, patient);

  const auto check = [d](const T* left, const T* right, Out value) {
    if constexpr (std::is_floating_point_v<T>) {
      double sum = 0;
      for (std::size_t b = 0; b < d; ++b) sum += std::min(left[b], right[b]);
      CHECK(std::abs(value - sum) <= 70 * std::numeric_limits<T>::epsilon() * sum);
    } else {
      std::uint64_t sum = 0;
      for (std::size_t b = 0; b < d; ++b) sum += std::min(left[b], right[b]);
      CHECK(value == sum);
    }
  };
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t j = 0; j < n; ++j) check(X.row(i), Y.row(j), k[i * n + j]);
    for (std::size_t j = 0; j < m; ++j) check(X.row(i), X.row(j), k_symmetric[i * m + j]);
  }
}

template <class T, class Out>
void stress_segmented_intersection(std::mt19937& rng, std::size_t n_threads) {
  const std::size_t m = 9, d = 300;
  const std::vector<T> x = random_bins<T>(rng, m * d);
  std::vector<Out> k(m * m);
  Patient patient;
  const MatrixView<const T> X(x.data(), m, d);
  const std::vector<Segment> segments = {{0, 100, 0.5}, {100, 100, 3.0}, {100, 300, 2.0}};
  segmented_intersection<T, Out>(X, X, segments, {k.data(), m, m}, n_threads, patient);
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t j = 0; j < m; ++j) {
      double sum = 0;
      for (std::size_t b = 0; b < d; ++b) {
        sum += (b < 100 ? 0.5 : 2.0) * static_cast<double>(std::min(X(i, b), X(j, b)));
      }
      CHECK(std::abs(k[i * m + j] - sum) <= 70 * std::numeric_limits<Out>::epsilon() * sum);
    }
  }
}

}  // namespace

int main() {
  stress_parallel_for();
  for (const std::string& isa : supported_isas()) {
    select_isa(isa);
    CHECK(active_isa_name() == isa);
    std::mt19937 rng(20131);
    for (int round = 0; round < 6; ++round) {
      const std::size_t n_threads = 1 + round % 4;
      stress_histogram_intersection<float, float>(rng, n_threads);
      stress_histogram_intersection<double, double>(rng, n_threads);
      stress_histogram_intersection<std::uint8_t, std::uint64_t>(rng, n_threads);
      stress_histogram_intersection<std::uint16_t, std::uint64_t>(rng, n_threads);
      stress_histogram_intersection<std::uint32_t, std::uint64_t>(rng, n_threads);
      stress_segmented_intersection<float, float>(rng, n_threads);
      stress_segmented_intersection<double, double>(rng, n_threads);
      stress_segmented_intersection<std::uint16_t, float>(rng, n_threads);
      stress_segmented_intersection<std::uint32_t, double>(rng, n_threads);
    }
    std::printf("stress: %s ok\n", isa.c_str());
  }
  bool refused = false;
  try {
    select_isa("v9");
  } catch (const std::invalid_argument&) {
    refused = true;
  }
  CHECK(refused);
}
