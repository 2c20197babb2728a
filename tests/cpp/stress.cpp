// Runs the C++ core on random shapes, many threads and every instruction set, against loops
// that nobody could get wrong. Built with the sanitizers by tests/cpp/run.sh.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "assignment/assignment.hpp"
#include "assignment/set_similarity.hpp"
#include "captions/caption_trie.hpp"
#include "captions/tag_rank.hpp"
#include "captions/word_assignment.hpp"
#include "captions/word_sequence.hpp"
#include "common/aligned_buffer.hpp"
#include "common/check.hpp"
#include "common/groups.hpp"
#include "common/isa.hpp"
#include "common/parallel.hpp"
#include "common/ragged_view.hpp"
#include "common/task_tiles.hpp"
#include "histograms/histogram_intersection.hpp"
#include "histograms/sparse_gram.hpp"
#include "ranks/best_products.hpp"
#include "ranks/count_ranks.hpp"
#include "ranks/dot_products.hpp"
#include "scan/scan_values.hpp"

#include "all_links.hpp"

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

// Says stop after some time, and must not be asked again.
class Alarm final : public Monitor {
 public:
  explicit Alarm(int milliseconds)
      : end_(Clock::now() + std::chrono::milliseconds(milliseconds)) {}
  bool keep_going(std::size_t, std::size_t) override {
    CHECK(!rang_);
    rang_ = Clock::now() >= end_;
    return !rang_;
  }
  bool rang() const { return rang_; }
  double seconds_since() const {
    return std::chrono::duration<double>(Clock::now() - end_).count();
  }

 private:
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end_;
  bool rang_ = false;
};

// Remembers how far the work was said to be.
class Listener final : public Monitor {
 public:
  bool keep_going(std::size_t done, std::size_t total) override {
    CHECK(done >= done_ && done <= total);
    done_ = done;
    n_ends_ += done == total;
    ++n_looks_;
    return true;
  }
  std::size_t done() const { return done_; }
  std::size_t n_ends() const { return n_ends_; }
  std::size_t n_looks() const { return n_looks_; }

 private:
  std::size_t done_ = 0, n_ends_ = 0, n_looks_ = 0;
};

void stress_parallel_for() {
  for (std::size_t n_tasks : {0, 1, 2, 7, 1000}) {
    for (std::size_t n_threads : {1, 2, 5, 16}) {
      Listener listener;
      std::vector<std::atomic<int>> runs(n_tasks);
      Crew(n_threads, listener).parallel_for(n_tasks, [&](std::size_t task, Worker& worker) {
        CHECK(worker.index() < n_threads);
        worker.spend(std::size_t{1} << 21);
        ++runs[task];
      });
      for (const auto& count : runs) CHECK(count == 1);
      CHECK(listener.done() == n_tasks && listener.n_ends() == (n_tasks > 0));

      std::atomic<std::size_t> started{0};
      Patient patient;
      try {
        Crew(n_threads, patient).parallel_for(n_tasks, [&](std::size_t task, Worker&) {
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
        Crew(n_threads, impatient).parallel_for(n_tasks, [](std::size_t, Worker&) {});
      } catch (const Cancelled&) {
        cancelled = true;
      }
      CHECK(cancelled == (n_tasks > 0));
    }
  }
}

// A worker looks once a unit of work, whatever the steps in which it spends it.
void stress_looks() {
  const std::size_t unit = std::size_t{1} << 20;
  for (const std::size_t step : {unit, unit / 64, 4 * unit}) {
    Listener listener;
    Crew(1, listener).parallel_for(1, [&](std::size_t, Worker& worker) {
      for (std::size_t spent = 0; spent < 256 * unit; spent += step) worker.spend(step);
    });
    const std::size_t expected = 256 * unit / std::max(step, unit);
    CHECK(listener.n_looks() >= expected && listener.n_looks() <= expected + 2);
  }
}

// Two loops of one call count as one.
void stress_stages() {
  for (std::size_t n_threads : {1, 3}) {
    Listener listener;
    Crew crew(n_threads, listener);
    crew.expect(30);
    crew.parallel_for(10, [](std::size_t, Worker&) {});
    CHECK(listener.done() == 10 && listener.n_ends() == 0);
    crew.parallel_for(20, [](std::size_t, Worker&) {});
    CHECK(listener.done() == 30 && listener.n_ends() == 1);
  }
}

// Long tasks stop, also where the calling thread has nothing left to do but wait.
void stress_stop() {
  for (const std::size_t n_threads : {1, 2, 4}) {
    for (const bool caller_waits : {false, true}) {
      if (caller_waits && n_threads == 1) continue;
      Alarm alarm(120);
      std::atomic<std::size_t> n_busy{0};
      bool cancelled = false;
      try {
        Crew(n_threads, alarm).parallel_for(n_threads, [&](std::size_t, Worker& worker) {
          if (caller_waits && worker.index() == 0) {
            while (n_busy + 1 < n_threads) std::this_thread::yield();
            return;
          }
          ++n_busy;
          for (;;) worker.spend(1000);
        });
      } catch (const Cancelled&) {
        cancelled = true;
      }
      CHECK(cancelled && alarm.rang() && alarm.seconds_since() < 2);
    }
  }
}

// An exception of one thread ends the tasks of the others.
void stress_first_exception() {
  Patient patient;
  try {
    Crew(4, patient).parallel_for(4, [](std::size_t task, Worker& worker) {
      if (task == 3) throw std::runtime_error("first");
      for (;;) worker.spend(1000);
    });
    CHECK(false);
  } catch (const std::runtime_error& error) {
    CHECK(std::string(error.what()) == "first");
  }
}

// Tiles cover a matrix, or what is on and above its diagonal, once, and only one element by
// itself may be too much work for a task.
void stress_cut_tiles(std::mt19937& rng) {
  for (int round = 0; round < 60; ++round) {
    const bool symmetric = round % 2 == 0;
    const std::size_t m = rng() % 90, n = symmetric ? m : rng() % 90;
    const double unit = std::pow(10.0, round % 6) * 3;
    std::vector<double> rows(m), cols(n);
    for (double& work : rows) work = unit * static_cast<double>(rng() % 100);
    for (double& work : cols) work = unit * static_cast<double>(rng() % 100);
    std::vector<int> covered(m * n);
    const auto tiles = cut_tiles(
        m, n, symmetric, 1, [&](std::size_t i) { return rows[i]; },
        [&](std::size_t j) { return cols[j]; });
    for (const TileRange& tile : tiles) {
      double row_work = 0, col_work = 0;
      for (std::size_t i = tile.row_begin; i < tile.row_end; ++i) row_work += rows[i];
      for (std::size_t j = tile.col_begin; j < tile.col_end; ++j) col_work += cols[j];
      CHECK(tile.n_rows() >= 1 && tile.n_rows() <= kMaxTaskRows && tile.n_cols() >= 1);
      CHECK(row_work * col_work <= kTaskWork * 1.000001 ||
            (tile.n_rows() == 1 && tile.n_cols() == 1));
      for (std::size_t i = tile.row_begin; i < tile.row_end; ++i) {
        for (std::size_t j = tile.col_begin; j < tile.col_end; ++j) ++covered[i * n + j];
      }
    }
    for (std::size_t i = 0; i < m; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        CHECK(covered[i * n + j] <= 1 && (covered[i * n + j] == 1 || (symmetric && j < i)));
      }
    }
  }
}

// Values by key, in the order in which they come; keys without a value too.
void stress_grouped(std::mt19937& rng) {
  for (std::size_t n_keys : {1, 2, 40}) {
    std::vector<std::size_t> keys(rng() % 100);
    for (std::size_t& key : keys) key = rng() % n_keys;
    const auto groups = grouped<std::size_t>(n_keys, [&](const auto& add) {
      for (std::size_t k = 0; k < keys.size(); ++k) add(keys[k], k);
    });
    CHECK(groups.begins.size() == n_keys + 1 && groups.begins.back() == keys.size());
    for (std::size_t key = 0; key < n_keys; ++key) {
      const std::size_t* value = groups.begin(key);
      for (std::size_t k = 0; k < keys.size(); ++k) {
        if (keys[k] == key) CHECK(value != groups.end(key) && *value++ == k);
      }
      CHECK(value == groups.end(key));
    }
  }
}

// The example of the header, in one batch and in batches of one symbol.
// Captions of few and of many different words, long ones that begin alike, empty and equal
// ones.
void stress_sorted_captions(std::mt19937& rng) {
  Listener listener;
  Crew crew(1, listener);
  for (const std::int32_t largest : {0, 1, 2, 300, std::numeric_limits<std::int32_t>::max()}) {
    std::uniform_int_distribution<std::int32_t> word(0, largest);
    std::uniform_int_distribution<int> size(0, 90), choice(0, 2);
    std::vector<std::int32_t> words;
    std::vector<std::int64_t> offsets{0};
    for (int caption = 0; caption < 200; ++caption) {
      for (int n_words = size(rng); n_words > 0; --n_words) {
        words.push_back(choice(rng) == 0 ? word(rng) : largest);
      }
      offsets.push_back(static_cast<std::int64_t>(words.size()));
    }
    const RaggedView<std::int32_t> captions{words.data(), offsets.data(), 200};
    std::vector<std::uint32_t> order;
    for (std::uint32_t caption = 10; caption < 200; ++caption) order.push_back(caption);
    std::stable_sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::lexicographical_compare(captions.begin(a), captions.end(a), captions.begin(b),
                                          captions.end(b));
    });
    CHECK(sorted_captions(captions, 10, 200, crew.caller()) == order);
  }
}

void stress_caption_trie() {
  const std::vector<std::int32_t> words{0, 1, 2, 0, 1, 3};  // a b c, a b d
  const std::vector<std::int64_t> offsets{0, 3, 6};
  const RaggedView<std::int32_t> captions{words.data(), offsets.data(), 2};
  Listener listener;
  Crew crew(1, listener);
  const auto sorted = sorted_captions(captions, 0, 2, crew.caller());
  CHECK((sorted == std::vector<std::uint32_t>{0, 1}));
  TrieBuilder builder(4, 0, 1);
  const CaptionTrie& trie = builder.build(captions, sorted, 4, crew.caller());
  CHECK(trie.batches.size() == 1 && trie.steps.size() == 3 && trie.n_slots == 3);
  CHECK((trie.words == std::vector<std::uint32_t>{0, 1, 2, 3}));
  CHECK((trie.finished == std::vector<std::uint32_t>{0, 1}));
  const auto is = [](const CaptionTrie::Step& step, std::uint32_t n_words, std::uint32_t from,
                     std::uint32_t n_finished) {
    return step.n_words == n_words && step.from_slot == from && step.to_slot == from + 1 &&
           step.n_finished == n_finished && step.is_leaf == (n_finished > 0);
  };
  CHECK(is(trie.steps[0], 2, 0, 0) && is(trie.steps[1], 1, 1, 1) && is(trie.steps[2], 1, 1, 1));
  builder.build(captions, sorted, 1, crew.caller());
  CHECK(trie.batches.size() == 4 && trie.steps.size() == 4);
  CHECK(trie.steps[1].from_slot == 1 && trie.steps[1].to_slot == 1);
  for (const CaptionTrie::Batch& batch : trie.batches) CHECK(batch.symbols.size() == 1);
}

// Each column of a mirrored row may be on a page of its own, which takes the system a while.
void stress_write_tile() {
  const std::size_t n = 1000;
  Listener listener;
  Crew crew(1, listener);
  const std::vector<double> sums(n, 1.0);
  std::vector<double> K(n * n);
  write_tile(sums.data(), 1, {0, 1, 0, n}, true, MatrixView<double>(K.data(), n, n),
             crew.caller());
  CHECK(K[n - 1] == 1.0 && K[(n - 1) * n] == 1.0);
  CHECK(listener.n_looks() >= n / 100);
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

// Out is the type of the ratios, in whose memory the sums stand.
template <class Out, class Held>
void check_ratios(const std::vector<Held>& sums, const std::vector<double>& masses_x,
                  const std::vector<double>& masses_y, std::size_t n_threads) {
  const std::size_t m = masses_x.size(), n = masses_y.size();
  Patient patient;
  for (const Ratio ratio : {Ratio::kToUnion, Ratio::kToMean}) {
    std::vector<Out> k(sums.size());
    if (!k.empty()) std::memcpy(k.data(), sums.data(), sizeof(Out) * k.size());
    divide_by_masses<Held, Out>({k.data(), m, n}, masses_x.data(), masses_y.data(), ratio,
                                n_threads, patient);
    for (std::size_t at = 0; at < k.size(); ++at) {
      const double sum = static_cast<double>(sums[at]);
      const double both = masses_x[at / n] + masses_y[at % n];
      const double by = ratio == Ratio::kToUnion ? both - sum : both / 2;
      CHECK(k[at] == static_cast<Out>(by > 0 ? sum / by : 0.0));
    }
  }
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
  const auto masses = [d](const std::vector<T>& bins, std::size_t n_rows) {
    std::vector<double> sums(n_rows);
    for (std::size_t at = 0; at < n_rows * d; ++at)
      sums[at / d] += static_cast<double>(bins[at]);
    return sums;
  };
  check_ratios<std::conditional_t<sizeof(Out) == 4, float, double>>(k, masses(x, m),
                                                                    masses(y, n), n_threads);
}

template <class T, class Out>
void stress_segmented_intersection(std::mt19937& rng, std::size_t n_threads) {
  const std::size_t m = 9, d = 300;
  const std::vector<T> x = random_bins<T>(rng, m * d);
  std::vector<Out> k(m * m);
  Patient patient;
  const MatrixView<const T> X(x.data(), m, d);
  const std::vector<Segment> segments = {{0, 100, 0.5}, {100, 100, 3.0}, {100, 300, 2.0}};
  segmented_intersection<T, Out>(X, X, segments, n_threads % 2 == 0, {k.data(), m, m},
                                 n_threads, patient);
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

template <class T>
void stress_scan(std::mt19937& rng, std::size_t n_threads) {
  Patient patient;
  const std::size_t n = 1 + rng() % 300;
  std::vector<T> values = random_bins<T>(rng, n * n);
  const auto check = [&](double smallest, double largest) {
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    CHECK(smallest == static_cast<double>(*low) && largest == static_cast<double>(*high));
  };
  const Extremes seen = scan_values(values.data(), values.size(), n_threads, patient);
  check(seen.smallest, seen.largest);
  CHECK(seen.is_finite && scan_values(values.data(), 0, n_threads, patient).is_finite);
  if constexpr (std::is_floating_point_v<T>) {
    T gap = 0;
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        gap = std::max(gap, std::abs(values[i * n + j] - values[j * n + i]));
      }
    }
    std::vector<T> copy(n * n);
    T* const room = rng() % 2 == 0 ? copy.data() : nullptr;
    const Extremes square = scan_gram<T>({values.data(), n, n}, room, n_threads, patient);
    CHECK(room == nullptr || std::equal(copy.begin(), copy.end(), values.begin()));
    check(square.smallest, square.largest);
    CHECK(square.is_finite && square.gap == static_cast<double>(gap));
    values[rng() % values.size()] = rng() % 2 == 0 ? std::numeric_limits<T>::infinity()
                                                   : std::numeric_limits<T>::quiet_NaN();
    CHECK(!scan_gram<T>({values.data(), n, n}, nullptr, n_threads, patient).is_finite);
    CHECK(!scan_values(values.data(), values.size(), n_threads, patient).is_finite);
  }
}

template <class Out>
void stress_bag_of_words(std::mt19937& rng, std::size_t n_threads) {
  const std::size_t m = 1 + rng() % 90, n_words = 40;
  std::vector<double> dense(m * n_words), weights(n_words), counts;
  std::vector<std::int64_t> offsets{0};
  std::vector<std::int32_t> words;
  for (double& weight : weights) weight = 1 + static_cast<double>(rng() % 4);
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t w = 0; w < n_words; ++w) {
      if (rng() % 6 != 0) continue;
      dense[i * n_words + w] = 1 + static_cast<double>(rng() % 3);
      words.push_back(static_cast<std::int32_t>(w));
      counts.push_back(dense[i * n_words + w]);
    }
    offsets.push_back(static_cast<std::int64_t>(words.size()));
  }
  const SparseRows<double> X{{words.data(), offsets.data(), m}, counts.data(), n_words};
  const std::vector<double> copy = counts;  // elsewhere: all of the matrix is computed
  const SparseRows<double> Y{{words.data(), offsets.data(), m}, copy.data(), n_words};
  std::vector<Out> half(m * m), whole(m * m), f1(m * m);
  Patient patient;
  bag_of_words<Out>(X, X, {half.data(), m, m}, n_threads, patient);
  bag_of_words<Out>(X, Y, {whole.data(), m, m}, n_threads, patient);
  CHECK(half == whole);
  bag_of_words_f1<Out>(X, X, weights.data(), {f1.data(), m, m}, n_threads, patient);
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t j = 0; j < m; ++j) {
      double product = 0, square_i = 0, square_j = 0, shared = 0, mass = 0;
      for (std::size_t w = 0; w < n_words; ++w) {
        const double x = dense[i * n_words + w], y = dense[j * n_words + w];
        product += x * y;
        square_i += x * x;
        square_j += y * y;
        shared += weights[w] * std::min(x, y);
        mass += weights[w] * (x + y);
      }
      const double cosine = product == 0 ? 0 : product / std::sqrt(square_i * square_j);
      CHECK(whole[i * m + j] == static_cast<Out>(cosine));  // small whole numbers: exact
      CHECK(f1[i * m + j] == static_cast<Out>(mass == 0 ? 0 : 2 * shared / mass));
    }
  }
}

template <class T, class Out>
void stress_sparse_intersection(std::mt19937& rng, std::size_t n_threads) {
  const std::size_t m = 150, n = 40, d = 90;
  std::vector<T> x = random_bins<T>(rng, m * d), y = random_bins<T>(rng, n * d);
  const auto compress = [&rng](std::vector<T>& dense, std::vector<std::int64_t>& offsets,
                               std::vector<std::int32_t>& bins, std::vector<T>& counts) {
    for (std::size_t at = 0; at < dense.size(); ++at) {
      if (at % d == 0) offsets.push_back(static_cast<std::int64_t>(bins.size()));
      if (rng() % 8 != 0) dense[at] = 0;
      if (dense[at] == 0) continue;
      bins.push_back(static_cast<std::int32_t>(at % d));
      counts.push_back(dense[at]);
    }
    offsets.push_back(static_cast<std::int64_t>(bins.size()));
  };
  std::vector<std::int64_t> x_offsets, y_offsets;
  std::vector<std::int32_t> x_bins, y_bins;
  std::vector<T> x_counts, y_counts;
  compress(x, x_offsets, x_bins, x_counts);
  compress(y, y_offsets, y_bins, y_counts);
  const SparseRows<T> X{{x_bins.data(), x_offsets.data(), m}, x_counts.data(), d};
  const SparseRows<T> Y{{y_bins.data(), y_offsets.data(), n}, y_counts.data(), d};
  std::vector<Out> k(m * n), k_symmetric(m * m);
  Patient patient;
  sparse_intersection<T, Out>(X, Y, {k.data(), m, n}, n_threads, patient);
  sparse_intersection<T, Out>(X, X, {k_symmetric.data(), m, m}, n_threads, patient);
  const auto check = [](const T* left, const T* right, Out value) {
    Out sum = 0;
    for (std::size_t b = 0; b < d; ++b) sum += std::min(left[b], right[b]);
    CHECK(std::abs(static_cast<double>(value) - static_cast<double>(sum)) <=
          d * std::numeric_limits<Out>::epsilon() * sum);
  };
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t j = 0; j < n; ++j) check(&x[i * d], &y[j * d], k[i * n + j]);
    for (std::size_t j = 0; j < m; ++j) check(&x[i * d], &x[j * d], k_symmetric[i * m + j]);
  }
}

// Captions of images over symbols 0 .. n_symbols - 1; some captions and images are empty.
struct RandomCaptions {
  std::vector<std::int32_t> words;
  std::vector<std::int64_t> captions{0}, images{0};

  RandomCaptions(std::mt19937& rng, std::size_t n_images, int n_symbols, int longest) {
    std::uniform_int_distribution<int> symbol(0, n_symbols - 1), length(0, longest), few(0, 3);
    for (std::size_t i = 0; i < n_images; ++i) {
      for (int n = few(rng); n > 0; --n) {
        for (int k = length(rng); k > 0; --k) words.push_back(symbol(rng));
        captions.push_back(static_cast<std::int64_t>(words.size()));
      }
      images.push_back(static_cast<std::int64_t>(captions.size()) - 1);
    }
  }

  CaptionsView view() const {
    return {
        {words.data(), captions.data(), captions.size() - 1}, images.data(), images.size() - 1};
  }
};

// Calls add(s, t) for each pair of captions of two images.
template <class Add>
void for_each_pair(const CaptionsView& X, std::size_t x, const CaptionsView& Y, std::size_t y,
                   const Add& add) {
  for (std::size_t s = X.first_caption(x); s < X.first_caption(x + 1); ++s) {
    for (std::size_t t = Y.first_caption(y); t < Y.first_caption(y + 1); ++t) add(s, t);
  }
}

// Sums the matches of each length that end at each pair of words, over all earlier pairs.
double sequence_kernel(const CaptionsView& X, std::size_t s, const CaptionsView& Y,
                       std::size_t t, const std::vector<float>& kappa, std::size_t n_symbols,
                       std::size_t max_length, double gap_decay,
                       std::vector<double>& by_length) {
  const std::size_t m = X.words.size(s), n = Y.words.size(t);
  const auto similarity = [&](std::size_t i, std::size_t j) {
    return kappa[X.words.begin(s)[i] * n_symbols + Y.words.begin(t)[j]];
  };
  double total = 0;
  std::vector<double> ended(m * n);
  for (std::size_t length = 1; length <= max_length; ++length) {
    std::vector<double> next(m * n);
    for (std::size_t i = 0; i < m; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        double sum = length == 1;
        for (std::size_t a = 0; length > 1 && a < i; ++a) {
          for (std::size_t b = 0; b < j; ++b) {
            sum +=
                ended[a * n + b] * std::pow(gap_decay, static_cast<double>(i - a + j - b - 2));
          }
        }
        next[i * n + j] = similarity(i, j) * sum;
        by_length[length - 1] += next[i * n + j];
        total += next[i * n + j];
      }
    }
    ended = next;
  }
  return total;
}

template <class Out>
void stress_word_sequence(std::mt19937& rng, std::size_t n_threads, std::size_t max_length,
                          double gap_decay, bool dense) {
  const std::size_t n_symbols = 23, n_words = 19;
  // More captions than one task takes, and some longer than a vector.
  const RandomCaptions left(rng, 110, n_symbols, 6), right(rng, 11, n_symbols, 20);
  std::vector<float> matrix(n_words * n_words), values, scale(n_symbols, 0.5f);
  std::vector<std::int64_t> offsets{0};
  std::vector<std::int32_t> columns;
  std::vector<float> kappa(n_symbols * n_symbols), identity(n_symbols * n_symbols);
  std::uniform_real_distribution<float> uniform(0, 1);
  for (std::size_t a = 0; a < n_words; ++a) {
    for (std::size_t b = 0; b < n_words; ++b) {
      const float value =
          b < a ? matrix[b * n_words + a] : uniform(rng) * (uniform(rng) < 0.3f);
      matrix[a * n_words + b] = value;
      kappa[a * n_symbols + b] = value / 4;
      if (value == 0) continue;
      columns.push_back(static_cast<std::int32_t>(b));
      values.push_back(value);
    }
    offsets.push_back(static_cast<std::int64_t>(columns.size()));
  }
  for (std::size_t a = 0; a < n_symbols; ++a) {
    identity[a * n_symbols + a] = 0.25f;
    if (a >= n_words) kappa[a * n_symbols + a] = 0.25f;
  }
  SymbolSimilarity similarity{scale.data(), n_symbols, n_words, nullptr, {}, nullptr};
  if (dense) {
    similarity.dense = matrix.data();
  } else {
    similarity.columns = {columns.data(), offsets.data(), n_words};
    similarity.values = values.data();
  }
  const std::vector<double> exact_scale(n_symbols, 0.5);
  Patient patient;
  const RandomCaptions few(rng, 5, n_symbols, 20);
  const std::pair<const RandomCaptions*, const RandomCaptions*> sides[] = {
      {&left, &left}, {&left, &right}, {&few, &left}};
  for (const auto& [one, other] : sides) {
    const CaptionsView X = one->view(), Y = other->view();
    for (const bool per_length : {false, true}) {
      const std::size_t parts = per_length ? max_length : 1, width = Y.n_images * parts;
      const SequenceOptions options{max_length, gap_decay, per_length, false};
      std::vector<Out> soft(X.n_images * width), exact(X.n_images * width);
      word_sequence<Out>(X, Y, similarity, options, {soft.data(), X.n_images, width}, n_threads,
                         patient);
      word_sequence_exact<Out>(X, Y, exact_scale.data(), n_symbols, options,
                               {exact.data(), X.n_images, width}, n_threads, patient);
      for (const auto& [result, table] : {std::tie(soft, kappa), std::tie(exact, identity)}) {
        for (std::size_t x = 0; x < X.n_images; ++x) {
          for (std::size_t y = x % 5; y < Y.n_images; y += 5) {
            std::vector<double> by_length(max_length);
            double total = 0;
            for_each_pair(X, x, Y, y, [&, &table = table](std::size_t s, std::size_t t) {
              total += sequence_kernel(X, s, Y, t, table, n_symbols, max_length, gap_decay,
                                       by_length);
            });
            for (std::size_t part = 0; part < parts; ++part) {
              const double expected = per_length ? by_length[part] : total;
              CHECK(std::abs(result[x * width + y * parts + part] - expected) <=
                    1e-4 * expected);
            }
          }
        }
      }
    }
    // Normalised: 1 with itself, whatever the way.
    std::vector<Out> soft(X.n_images * Y.n_images), exact(X.n_images * Y.n_images);
    const SequenceOptions options{max_length, gap_decay, false, true};
    word_sequence<Out>(X, Y, similarity, options, {soft.data(), X.n_images, Y.n_images},
                       n_threads, patient);
    word_sequence_exact<Out>(X, Y, exact_scale.data(), n_symbols, options,
                             {exact.data(), X.n_images, Y.n_images}, n_threads, patient);
    for (std::size_t i = 0; one == other && i < X.n_images; ++i) {
      for (const Out value : {soft[i * X.n_images + i], exact[i * X.n_images + i]}) {
        CHECK(value == 0 || value == 1);
      }
    }
  }
}

template <class Out>
void stress_tag_rank(std::mt19937& rng, std::size_t n_threads) {
  const std::size_t n_words = 7, per_word = 3, n_tags = n_words * per_word;
  std::vector<std::int32_t> tag_words(n_tags);
  std::vector<double> absolute(n_tags), relative(n_tags);
  std::uniform_real_distribution<double> uniform(0, 1);
  for (std::size_t tag = 0; tag < n_tags; ++tag) {
    tag_words[tag] = static_cast<std::int32_t>(tag / per_word);
    absolute[tag] = uniform(rng);
    relative[tag] = tag % 4 == 0 ? 0 : uniform(rng);
  }
  const TagRanks ranks{n_tags, tag_words.data(), n_words, absolute.data(), relative.data(), 0.7,
                       1.1};
  // Different words, ascending: captions of words as indices, each then given a tag.
  const auto tagged = [&](std::size_t n_images) {
    RandomCaptions captions(rng, n_images, n_words, 0);
    std::vector<std::int64_t> offsets{0};
    for (std::size_t c = 0; c + 1 < captions.captions.size(); ++c) {
      for (std::size_t word = 0; word < n_words; ++word) {
        if (rng() % 2 != 0) continue;
        captions.words.push_back(static_cast<std::int32_t>(word * per_word + rng() % per_word));
      }
      offsets.push_back(static_cast<std::int64_t>(captions.words.size()));
    }
    captions.captions = offsets;
    return captions;
  };
  const RandomCaptions left = tagged(90), right = tagged(30);
  Patient patient;
  for (const RandomCaptions* other : {&left, &right}) {
    const CaptionsView X = left.view(), Y = other->view();
    std::vector<Out> k(X.n_images * Y.n_images);
    tag_rank<Out>(X, Y, ranks, {k.data(), X.n_images, Y.n_images}, n_threads, patient);
    const auto distance = [&](std::size_t s, std::size_t t, const std::vector<double>& of) {
      double sum = 0;
      for (std::size_t word = 0; word < n_words; ++word) {
        const auto rank = [&](const CaptionsView& captions, std::size_t c) {
          for (const std::int32_t* tag = captions.words.begin(c); tag != captions.words.end(c);
               ++tag) {
            if (tag_words[*tag] == static_cast<std::int32_t>(word)) return of[*tag];
          }
          return 0.0;
        };
        const double u = rank(X, s), v = rank(Y, t);
        if (u + v > 0) sum += (u - v) * (u - v) / (u + v);
      }
      return sum;
    };
    for (std::size_t x = 0; x < X.n_images; ++x) {
      for (std::size_t y = 0; y < Y.n_images; ++y) {
        double sum = 0;
        std::size_t n_pairs = 0;
        for_each_pair(X, x, Y, y, [&](std::size_t s, std::size_t t) {
          sum += std::exp(-distance(s, t, absolute) / 1.4) / 2 +
                 std::exp(-distance(s, t, relative) / 2.2) / 2;
          ++n_pairs;
        });
        const double expected = n_pairs == 0 ? 0 : sum / static_cast<double>(n_pairs);
        CHECK(std::abs(k[x * Y.n_images + y] - expected) <= 1e-5);
      }
    }
  }
}

template <class T>
void stress_count_ranks(std::mt19937& rng, std::size_t n_threads) {
  std::uniform_int_distribution<std::size_t> rows(1, 150), cols(1, 2500);
  std::uniform_int_distribution<int> few(-3, 3), one_in(0, 999);
  const std::size_t m = rows(rng), n = cols(rng);
  const auto random_scores = [&](std::size_t size) {
    std::vector<T> scores(size);
    for (T& score : scores) score = static_cast<T>(few(rng));
    return scores;
  };
  std::vector<T> scores = random_scores(m * n);
  const bool with_nan = one_in(rng) < 300;
  if (with_nan) scores[rng() % scores.size()] = std::numeric_limits<T>::quiet_NaN();
  const MatrixView<const T> view(scores.data(), m, n);

  struct Side {
    std::vector<T> gold;
    std::vector<std::int64_t> first, greater, tied, before;
  };
  const auto side = [&](std::size_t size) {
    const std::vector<std::int64_t> any(size, -1);
    Side made{random_scores(size), any, any, any, any};
    for (auto& first : made.first) first = few(rng) * 50;
    return made;
  };
  const std::size_t row_layers = 1 + rng() % 3, column_layers = 1 + rng() % 3;
  Side by_row = side(row_layers * m), by_column = side(column_layers * n);
  Patient patient;
  const auto queries = [](Side& s, std::size_t n_layers, bool wanted) {
    return RankQueries<T>{wanted ? n_layers : 0, wanted ? s.gold.data() : nullptr,
                          s.first.data(),        s.greater.data(),
                          s.tied.data(),         s.before.data()};
  };
  const auto check = [](const Side& s, std::size_t q, std::size_t size, const auto& score) {
    std::int64_t greater = 0, tied = 0, before = 0;
    for (std::size_t c = 0; c < size; ++c) {
      greater += score(c) > s.gold[q];
      tied += score(c) == s.gold[q];
      before += score(c) == s.gold[q] && static_cast<std::int64_t>(c) < s.first[q];
    }
    CHECK(s.greater[q] == greater && s.tied[q] == tied && s.before[q] == before);
  };
  for (int wanted = 1; wanted <= 3; ++wanted) {
    const bool rows_too = (wanted & 1) != 0, columns_too = (wanted & 2) != 0;
    CHECK(with_nan == count_ranks(view, queries(by_row, row_layers, rows_too),
                                  queries(by_column, column_layers, columns_too), n_threads,
                                  patient));
    for (std::size_t i = 0; rows_too && i < row_layers * m; ++i) {
      check(by_row, i, n, [&](std::size_t j) { return view(i % m, j); });
    }
    for (std::size_t j = 0; columns_too && j < column_layers * n; ++j) {
      check(by_column, j, m, [&](std::size_t i) { return view(i, j % n); });
    }
  }
}

template <class T>
void stress_dot_products(std::mt19937& rng, std::size_t n_threads) {
  std::uniform_int_distribution<std::size_t> rows(1, 150), cols(1, 700), lengths(1, 800);
  std::normal_distribution<T> normal;
  std::uniform_int_distribution<int> few(-3, 3);
  const std::size_t m = rows(rng), n = cols(rng), d = lengths(rng), k = 1 + rng() % 5;
  const bool whole = rng() % 2 == 0;  // products are exact, and often equal
  std::vector<T> left(m * d), right(n * d), out(m * n), own(n);
  for (T& x : left) x = whole ? static_cast<T>(few(rng)) : normal(rng);
  for (T& x : right) x = whole ? static_cast<T>(few(rng)) : normal(rng);
  const MatrixView<const T> images(left.data(), m, d), captions(right.data(), n, d);
  Patient patient;
  dot_products(images, captions, MatrixView<T>(out.data(), m, n), n_threads, patient);
  std::vector<std::int64_t> owner(n);
  for (std::size_t j = 0; j < n; ++j) owner[j] = static_cast<std::int64_t>(rng() % m);
  paired_dot_products(images, captions, owner.data(), own.data(), n_threads, patient);
  for (std::size_t j = 0; j < n; ++j) {
    CHECK(own[j] == out[static_cast<std::size_t>(owner[j]) * n + j]);
    const std::size_t i = rng() % m;
    const T expected = std::inner_product(&left[i * d], &left[i * d] + d, &right[j * d], T{});
    CHECK(std::abs(out[i * n + j] - expected) <= (whole ? 0 : 1e-2));
  }

  std::vector<T> unit(m * d);
  CHECK(unit_rows(images, MatrixView<T>(unit.data(), m, d), patient));
  for (std::size_t i = 0; i < m; ++i) {
    const T* row = &unit[i * d];
    const T square = std::inner_product(row, row + d, row, T{});
    CHECK(std::abs(square - 1) < 1e-4 || (square == 0 && whole));
  }

  std::vector<T> gold(m);
  for (std::size_t i = 0; i < m; ++i) gold[i] = out[i * n + rng() % n];
  const auto queries = [](std::vector<T>& scores, std::vector<std::int64_t>& first,
                          std::vector<std::int64_t>& counts) {
    const std::size_t size = scores.size();
    return RankQueries<T>{1,
                          scores.data(),
                          first.data(),
                          counts.data(),
                          counts.data() + size,
                          counts.data() + 2 * size};
  };
  std::vector<std::int64_t> first(m, 1), counts[4];
  for (std::size_t c = 0; c < 4; ++c) counts[c].resize(3 * (c % 2 == 0 ? m : n));
  count_ranks(MatrixView<const T>(out.data(), m, n), queries(gold, first, counts[0]),
              queries(own, owner, counts[1]), n_threads, patient);
  count_ranks_of_products(images, captions, queries(gold, first, counts[2]),
                          queries(own, owner, counts[3]), n_threads, patient);
  CHECK(counts[0] == counts[2] && counts[1] == counts[3]);

  const T lowest = -std::numeric_limits<T>::infinity();
  std::vector<std::int64_t> positions(m * k, -1);
  std::vector<T> scores(m * k, lowest);
  best_products(images, captions, 7, MatrixView<std::int64_t>(positions.data(), m, k),
                MatrixView<T>(scores.data(), m, k), n_threads, patient);
  for (std::size_t i = 0; i < m; ++i) {
    std::vector<std::size_t> order(n);
    std::iota(order.begin(), order.end(), std::size_t{0});
    const T* row = &out[i * n];
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return row[a] > row[b]; });
    for (std::size_t r = 0; r < k; ++r) {
      CHECK(scores[i * k + r] == (r < n ? row[order[r]] : lowest));
      CHECK(positions[i * k + r] == (r < n ? static_cast<std::int64_t>(7 + order[r]) : -1));
    }
  }
}

template <class T>
void stress_assignment(std::mt19937& rng, std::size_t n_threads) {
  std::vector<std::vector<T>> values, u, v;
  std::vector<AssignmentProblem<T>> problems;
  std::vector<AssignmentDuals<T>> duals;
  std::vector<std::int64_t> link_offsets{0};
  const std::size_t n_problems = 200, k = 1 + rng() % 5;
  for (std::size_t b = 0; b < n_problems; ++b) {
    // Short, long, and one of more than a megabyte, whose rows are read when they are needed.
    const std::size_t long_side = 2640 / sizeof(T);
    const std::size_t n = b == 7 ? 400 : rng() % 6;
    const std::size_t m = b == 7 || b == 8 ? long_side
                          : b % 50 == 0    ? 60 + rng() % 20
                                           : rng() % 6;
    std::vector<T>& costs = values.emplace_back();
    for (std::size_t c = 0; c < n * m; ++c) {
      costs.push_back(rng() % 8 == 0 ? static_cast<T>(HUGE_VAL)
                                     : static_cast<T>(rng() % 9) - 4);
    }
    problems.push_back({{costs.data(), n, m}, costs.data() + n * m});
    duals.push_back({u.emplace_back(n).data(), v.emplace_back(m).data(), 0});
    link_offsets.push_back(link_offsets.back() +
                           static_cast<std::int64_t>(std::min({n, m, k})));
  }
  const auto n_links = static_cast<std::size_t>(link_offsets.back());
  std::vector<std::int64_t> rows(n_links), cols(n_links), counts(n_problems);
  std::vector<double> totals(n_problems);
  const MatchedPairs links{link_offsets.data(), rows.data(), cols.data(), counts.data(),
                           totals.data()};
  Patient patient;
  for (const bool at_most : {false, true}) {
    linear_assignments<T>(problems, {false, k, at_most, HUGE_VAL}, links, duals.data(),
                          n_threads, patient);
    for (std::size_t b = 0; b < n_problems; ++b) {
      const MatrixView<const T> costs = problems[b].costs;
      if (costs.n_cols > 8) continue;
      const auto wanted = static_cast<std::size_t>(link_offsets[b + 1] - link_offsets[b]);
      const auto found = static_cast<std::size_t>(counts[b]);
      CHECK(found <= wanted);
      if (found < wanted) CHECK(cheapest(costs, 0, found + 1, 0) == HUGE_VAL);
      if (found == wanted || at_most) CHECK(cheapest(costs, 0, found, 0) == totals[b]);
    }
  }
}

template <class T>
void stress_set_similarity(std::mt19937& rng, std::size_t n_threads) {
  const std::vector<std::int64_t> rows{0, 1, 4, 9}, cols{0, 3, 20};
  std::vector<T> S(9 * 20), out(6);
  for (T& value : S) value = static_cast<T>(rng() % 100) / 50 - 1;
  const std::vector<std::int64_t> bounds{1, 1, 2, 3, 1, 4};
  Patient patient;
  for (const auto kind :
       {SetSimilarity::kDense, SetSimilarity::kTopK, SetSimilarity::kAssignment}) {
    std::vector<std::int64_t> offsets{0};
    for (std::size_t pair = 0; pair < 6; ++pair) {
      const std::int64_t n = rows[pair / 2 + 1] - rows[pair / 2];
      const std::int64_t m = cols[pair % 2 + 1] - cols[pair % 2];
      const std::int64_t k = bounds[pair];
      offsets.push_back(offsets.back() + (kind == SetSimilarity::kDense  ? n + m
                                          : kind == SetSimilarity::kTopK ? 2 * k
                                                                         : k));
    }
    const auto n_entries = static_cast<std::size_t>(offsets.back());
    std::vector<std::int64_t> entry_rows(n_entries, -1), entry_cols(n_entries, -1);
    set_similarity<T>({S.data(), 9, 20}, {rows.data(), 3}, {cols.data(), 2}, kind,
                      {bounds.data(), 3, 2}, {out.data(), 3, 2},
                      {offsets.data(), entry_rows.data(), entry_cols.data()}, n_threads,
                      patient);
    for (std::size_t e = 0; e < n_entries; ++e) {
      CHECK(entry_rows[e] >= 0 && entry_rows[e] < 9 && entry_cols[e] >= 0 &&
            entry_cols[e] < 20);
    }
    for (const T value : out) CHECK(std::abs(value) <= 2);
  }
}

template <class Out>
void stress_word_assignment(std::mt19937& rng, std::size_t n_threads) {
  const std::size_t n_symbols = 9;
  const RandomCaptions left(rng, 70, n_symbols, 5), right(rng, 9, n_symbols, 20);
  std::vector<float> kappa(n_symbols * n_symbols), scale(n_symbols, 1.0f);
  for (std::size_t a = 0; a < n_symbols; ++a) {
    for (std::size_t b = 0; b <= a; ++b) {
      kappa[a * n_symbols + b] = kappa[b * n_symbols + a] = static_cast<float>(rng() % 4) / 4;
    }
  }
  const SymbolSimilarity similarity{scale.data(), n_symbols, n_symbols,
                                    kappa.data(), {},        nullptr};
  Patient patient;
  const CaptionsView X = left.view();
  for (const RandomCaptions* other : {&left, &right}) {
    const CaptionsView Y = other->view();
    std::vector<Out> K(X.n_images * Y.n_images);
    word_assignment<Out>(X, Y, similarity, false, {K.data(), X.n_images, Y.n_images}, n_threads,
                         patient);
    for (std::size_t x = 0; other == &left && x < X.n_images; ++x) {
      for (std::size_t y = 0; y < Y.n_images; ++y) {
        double sum = 0;
        for_each_pair(X, x, Y, y, [&](std::size_t s, std::size_t t) {
          std::vector<double> costs;
          for (const std::int32_t* a = X.words.begin(s); a != X.words.end(s); ++a) {
            for (const std::int32_t* b = Y.words.begin(t); b != Y.words.end(t); ++b) {
              costs.push_back(-kappa[*a * n_symbols + *b]);
            }
          }
          const std::size_t n = X.words.size(s), m = Y.words.size(t);
          sum -= cheapest<double>({costs.data(), n, m}, 0, std::min(n, m), 0);
        });
        CHECK(K[x * Y.n_images + y] == static_cast<Out>(sum));
      }
    }
  }
}

// More of something than its numbers can hold is refused before any of it is read.
void stress_limits() {
  const auto is_refused = [](const auto& call) {
    try {
      Patient patient;
      call(patient);
    } catch (const std::length_error&) {
      return true;
    }
    return false;
  };
  const std::size_t many = std::size_t{1} << 31, more = std::size_t{1} << 32;
  const float none = 0;
  const float* const nowhere = &none;
  for (const bool tall : {false, true}) {
    const std::size_t n = tall ? many : 1;
    const MatrixView<const float> costs(nowhere, n, many / n);
    const std::vector<std::int64_t> link_offsets{0, 1};
    std::int64_t row = 0, col = 0, n_links = 0;
    double total = 0;
    const MatchedPairs links{link_offsets.data(), &row, &col, &n_links, &total};
    CHECK(is_refused([&](Monitor& monitor) {
      linear_assignments<float>({{costs, nowhere}}, {false, 1, false, 0.0}, links, nullptr, 2,
                                monitor);
    }));
    CHECK(is_refused([&](Monitor& monitor) {
      k_cardinality_assignments<float>(costs, false, 1, links, monitor);
    }));
  }
  check_fits<std::int32_t>(many - 1, "rows");
  check_fits<std::uint32_t>(more - 1, "words");
  CHECK(is_refused([&](Monitor&) { check_fits<std::int32_t>(many, "rows"); }));
  CHECK(is_refused([&](Monitor&) { narrow<std::uint32_t>(more, "words"); }));
  CHECK(narrow<std::uint32_t>(more - 1, "words") == more - 1);
  CHECK(is_refused([&](Monitor& monitor) {
    Crew crew(1, monitor);
    sorted_captions({nullptr, nullptr, more}, 0, more, crew.caller());
  }));
  CHECK(is_refused([&](Monitor&) { TrieBuilder(many, 0, 1); }));
}

#if KERNELCORE_ASSERT
// Whether a child that makes the call is aborted.
template <class Call>
bool aborts(const Call& call) {
  const pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    std::freopen("/dev/null", "w", stderr);
    call();
    std::_Exit(0);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child);
  return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}
#endif

// What the core trusts is checked in this build: each of these would read or write elsewhere.
void stress_assertions() {
#if KERNELCORE_ASSERT
  std::vector<float> values(12);
  const MatrixView<float> matrix(values.data(), 3, 4);
  CHECK(!aborts([&] { matrix(2, 3) = 1; }));
  CHECK(aborts([&] { matrix(3, 0) = 1; }));
  CHECK(aborts([&] { matrix(0, 4) = 1; }));
  CHECK(aborts([&] { matrix.row(3); }));
  CHECK(aborts([&] { MatrixView<float>(values.data(), 3, 4, 3); }));

  const std::vector<std::int32_t> words{0, 1, 2, 1};
  const std::vector<std::int64_t> offsets{0, 2, 4}, images{0, 1, 2};
  const RaggedView<std::int32_t> rows{words.data(), offsets.data(), 2};
  CHECK(rows.is_valid(3) && !rows.is_valid(2));
  CHECK(aborts([&] { rows.begin(2); }));
  CHECK(aborts([&] { rows.end(2); }));
  CHECK(aborts([&] { rows.size(2); }));
  const std::vector<std::int64_t> falling{0, 3, 2}, late{1, 2, 4};
  CHECK(aborts([&] { RaggedView<std::int32_t>{words.data(), falling.data(), 2}.size(1); }));
  CHECK(!are_offsets(falling.data(), 2, 2) && !are_offsets(late.data(), 2, 4));
  CHECK(are_offsets(offsets.data(), 2, 4) && !are_offsets(offsets.data(), 2, 5));

  const CaptionsView captions{rows, images.data(), 2};
  CHECK(captions.is_valid(3) && !captions.is_valid(2));
  CHECK(aborts([&] { captions.first_caption(3); }));
  const std::vector<std::int32_t> negative{0, -1, 2, 1};
  CHECK(!(RaggedView<std::int32_t>{negative.data(), offsets.data(), 2}.is_valid(3)));

  // A kernel looks at all that it trusts before it starts.
  std::vector<double> K(4), scale(2), ranks(3, 1.0);
  std::vector<float> weights(2, 1.0f), counts(4, 1.0f);
  Patient patient;
  const SequenceOptions options{2, 0.5, false, false};
  const SymbolSimilarity alike{weights.data(), 2, 0, nullptr, {}, nullptr};
  const MatrixView<double> square(K.data(), 2, 2);
  CHECK(aborts([&] { word_sequence(captions, captions, alike, options, square, 1, patient); }));
  CHECK(aborts([&] {
    word_sequence_exact(captions, captions, scale.data(), 2, options, square, 1, patient);
  }));
  CHECK(aborts([&] { word_assignment(captions, captions, alike, false, square, 1, patient); }));
  const std::vector<std::int32_t> tag_words{0, 2, 1};
  const TagRanks unsorted{3, tag_words.data(), 3, ranks.data(), ranks.data(), 1.0, 1.0};
  CHECK(aborts([&] { tag_rank(captions, captions, unsorted, square, 1, patient); }));
  const SparseRows<float> sparse{rows, counts.data(), 2};
  std::vector<float> sums(4);
  CHECK(aborts([&] {
    sparse_intersection<float, float>(sparse, sparse, {sums.data(), 2, 2}, 1, patient);
  }));
  const SymbolSimilarity far{weights.data(), 2, 2, nullptr, rows, values.data()};
  CHECK(!far.is_valid());
  const std::vector<std::int64_t> sets{0, 2, 1};
  CHECK(aborts([&] {
    set_similarity<float>({values.data(), 1, 4}, {sets.data(), 2}, {images.data(), 1},
                          SetSimilarity::kDense, {images.data(), 2, 1}, {sums.data(), 2, 1}, {},
                          1, patient);
  }));
  AlignedBuffer<float> buffer;
  CHECK(std::isnan(buffer.with_room_for(3)[2]));  // not zeros by chance
#endif
}

}  // namespace

// Compares CPUID with the compiler's builtin.
void check_levels_of_the_processor() {
#if KERNELCORE_X86
  const std::vector<std::string> names = supported_isas();
  const std::set<std::string> found(names.begin(), names.end());
  CHECK(found.count("v3") == (__builtin_cpu_supports("x86-64-v3") != 0));
  CHECK(found.count("v4") == (__builtin_cpu_supports("x86-64-v4") != 0));
#endif
}

int main() {
  stress_assertions();
  stress_limits();
  stress_parallel_for();
  stress_looks();
  stress_stages();
  stress_stop();
  stress_first_exception();
  std::mt19937 any(7);
  stress_cut_tiles(any);
  stress_grouped(any);
  stress_sorted_captions(any);
  stress_caption_trie();
  stress_write_tile();
  check_levels_of_the_processor();
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
      stress_scan<float>(rng, n_threads);
      stress_scan<double>(rng, n_threads);
      stress_scan<std::uint8_t>(rng, n_threads);
      stress_scan<std::uint16_t>(rng, n_threads);
      stress_scan<std::uint32_t>(rng, n_threads);
      stress_bag_of_words<float>(rng, n_threads);
      stress_bag_of_words<double>(rng, n_threads);
      stress_sparse_intersection<float, float>(rng, n_threads);
      stress_sparse_intersection<double, double>(rng, n_threads);
      stress_sparse_intersection<std::uint8_t, std::uint64_t>(rng, n_threads);
      stress_sparse_intersection<std::uint32_t, std::uint64_t>(rng, n_threads);
      stress_segmented_intersection<float, float>(rng, n_threads);
      stress_segmented_intersection<double, double>(rng, n_threads);
      stress_segmented_intersection<std::uint16_t, float>(rng, n_threads);
      stress_segmented_intersection<std::uint32_t, double>(rng, n_threads);
      const double gap_decay = round % 3 == 0 ? 1.0 : 0.6;
      stress_word_sequence<float>(rng, n_threads, 1 + round, gap_decay, round % 2 == 0);
      stress_word_sequence<double>(rng, n_threads, 3, 1.0, round % 2 != 0);
      stress_tag_rank<float>(rng, n_threads);
      stress_tag_rank<double>(rng, n_threads);
      stress_assignment<float>(rng, n_threads);
      stress_assignment<double>(rng, n_threads);
      stress_set_similarity<float>(rng, n_threads);
      stress_set_similarity<double>(rng, n_threads);
      stress_word_assignment<float>(rng, n_threads);
      stress_word_assignment<double>(rng, n_threads);
      stress_count_ranks<float>(rng, n_threads);
      stress_count_ranks<double>(rng, n_threads);
      stress_dot_products<float>(rng, n_threads);
      stress_dot_products<double>(rng, n_threads);
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
