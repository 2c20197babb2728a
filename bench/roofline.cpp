// What one instruction set of this machine can do at most, as JSON on standard output.
// bench/roofline.py compiles it once per instruction set: usage `roofline n_threads`.
//
// A rate counts elements: one minimum and one addition each (min_add), one product and one
// addition each (fma), or one pair of words (sequence_steps), from registers; bytes for what is
// read from memory.
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "common/simd.hpp"

namespace kernelcore {
namespace {

constexpr int kChains = 12;  // independent sums, to hide the latency of an addition
constexpr int kRounds = 3;
constexpr std::size_t kSteps = 1000000;
constexpr std::size_t kReadBytes = std::size_t{1} << 27;  // more than any cache

// What the calling thread has spent: others who use the machine do not count.
double cpu_seconds() {
  timespec spent;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
  return static_cast<double>(spent.tv_sec) + 1e-9 * static_cast<double>(spent.tv_nsec);
}

// Seconds of the fastest round in which all threads run `work` side by side.
template <class Work>
double fastest(std::size_t n_threads, const Work& work) {
  double best = 1e9;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<double> seconds(n_threads);
    const auto timed = [&](std::size_t thread) {
      const double start = cpu_seconds();
      work(thread);
      seconds[thread] = cpu_seconds() - start;
    };
    std::vector<std::thread> helpers;
    for (std::size_t thread = 1; thread < n_threads; ++thread) {
      helpers.emplace_back(timed, thread);
    }
    timed(0);
    for (std::thread& helper : helpers) helper.join();
    best = std::min(best, *std::max_element(seconds.begin(), seconds.end()));
  }
  return best;
}

// The barrier lets the compiler neither hoist a step nor see what is in the register.
template <class V>
inline void touch(V& value) {
  asm volatile("" : "+v"(value));
}

template <class T, class Step>
double rate(std::size_t n_threads, const Step& step) {
  const double seconds = fastest(n_threads, [&](std::size_t) {
    Vector<T> x = {}, y = {}, sums[kChains] = {};
    touch(y);
    for (std::size_t i = 0; i < kSteps; ++i) {
      for (Vector<T>& sum : sums) {
        touch(x);
        sum = step(sum, x, y);
      }
    }
    for (Vector<T>& sum : sums) touch(sum);
  });
  return static_cast<double>(n_threads * kSteps * kChains * kLanes<T>) / seconds;
}

template <class T>
double min_add(std::size_t n_threads) {
  return rate<T>(n_threads, [](Vector<T> sum, Vector<T> x, Vector<T> y) {
    return sum + minimum<T>(x, y);
  });
}

// The same sum of floats >= 0, which are ordered like their bits: on some processors twice as
// fast, as integers are compared where no float is added.
template <class T, class Bits>
double compared_as_integers(std::size_t n_threads) {
  return rate<T>(n_threads, [](Vector<T> sum, Vector<T> x, Vector<T> y) {
    return sum + reinterpret_cast<Vector<T>>(minimum<Bits>(reinterpret_cast<Vector<Bits>>(x),
                                                           reinterpret_cast<Vector<Bits>>(y)));
  });
}

template <class T>
double fma(std::size_t n_threads) {
  return rate<T>(n_threads,
                 [](Vector<T> sum, Vector<T> x, Vector<T> y) { return sum + x * y; });
}

// The word-sequence recurrence at length 3 without gap decay: for a pair of words of
// similarity m five operations, two of them fused,
//
//     run1 += m,  run2 += m * kept1,  run3 += m * kept2,  kept1 += run1,  kept2 += run2
//
// of kSets pairs that do not depend on one another.
template <std::size_t kSets>
double sequence_steps(std::size_t n_threads) {
  using Lanes = Vector<float>;
  constexpr std::size_t kTurns = 4 * kSteps;
  const double seconds = fastest(n_threads, [&](std::size_t) {
    Lanes match = {}, run1[kSets] = {}, run2[kSets] = {}, run3[kSets] = {};
    Lanes kept1[kSets] = {}, kept2[kSets] = {};
    for (std::size_t i = 0; i < kTurns; ++i) {
      for (std::size_t k = 0; k < kSets; ++k) {
        touch(match);
        run3[k] += match * kept2[k];
        run2[k] += match * kept1[k];
        run1[k] += match;
        kept2[k] += run2[k];
        kept1[k] += run1[k];
      }
    }
    for (std::size_t k = 0; k < kSets; ++k) {
      touch(run3[k]), touch(kept1[k]), touch(kept2[k]);
    }
  });
  return static_cast<double>(n_threads * kTurns * kSets * kLanes<float>) / seconds;
}

double read_bandwidth(std::size_t n_threads) {
  const std::vector<float> memory(kReadBytes / sizeof(float), 1.0f);
  const std::size_t share = memory.size() / n_threads / (kChains * kLanes<float>);
  const double seconds = fastest(n_threads, [&](std::size_t thread) {
    const float* at = memory.data() + thread * share * kChains * kLanes<float>;
    Vector<float> sums[kChains] = {};
    for (std::size_t i = 0; i < share; ++i) {
      for (Vector<float>& sum : sums) {
        sum += load(at);
        at += kLanes<float>;
      }
    }
    for (Vector<float>& sum : sums) touch(sum);
  });
  return static_cast<double>(kReadBytes) / seconds;
}

}  // namespace
}  // namespace kernelcore

int main(int, char** argv) {
  using namespace kernelcore;
  const std::size_t n_threads = std::strtoul(argv[1], nullptr, 10);
  const double f32 = min_add<float>(n_threads), f64 = min_add<double>(n_threads);
  std::printf(
      "{\"min_add\": {\"float32\": %.4g, \"float64\": %.4g, \"uint8\": %.4g, "
      "\"uint16\": %.4g, \"uint32\": %.4g}, "
      "\"best_min_add\": {\"float32\": %.4g, \"float64\": %.4g}, "
      "\"fma\": {\"float32\": %.4g, \"float64\": %.4g}, \"sequence_steps\": %.4g, "
      "\"read_bytes\": %.4g}\n",
      f32, f64, min_add<std::uint8_t>(n_threads), min_add<std::uint16_t>(n_threads),
      min_add<std::uint32_t>(n_threads),
      std::max(f32, compared_as_integers<float, std::int32_t>(n_threads)),
      std::max(f64, compared_as_integers<double, std::int64_t>(n_threads)),
      fma<float>(n_threads), fma<double>(n_threads),
      std::max({sequence_steps<2>(n_threads), sequence_steps<3>(n_threads),
                sequence_steps<4>(n_threads)}),
      read_bandwidth(n_threads));
}
