// Dense, segmented and sparse histogram intersections against sums of minima.
#include "histograms/histogram_intersection.hpp"
#include "histograms/sparse_gram.hpp"

#include "input.hpp"

namespace fuzz {
namespace {

template <class T>
std::vector<T> draw(Input& input, std::size_t size) {
  std::vector<T> values(size);
  for (T& value : values) {
    if constexpr (std::is_floating_point_v<T>) {
      value = input.real<T>();
    } else {
      value = input.count<T>();
    }
  }
  return values;
}

template <class T>
long double intersect(const T* left, const T* right, std::size_t begin, std::size_t end) {
  long double sum = 0;
  for (std::size_t b = begin; b < end; ++b) sum += std::min(left[b], right[b]);
  return sum;
}

template <class Out>
void check_near(Out value, long double expected, std::size_t n_terms) {
  if constexpr (std::is_floating_point_v<Out>) {
    const long double eps = std::numeric_limits<Out>::epsilon();
    const long double tiny = std::numeric_limits<Out>::denorm_min();
    const auto n = static_cast<long double>(n_terms + 8);
    CHECK(std::abs(value - expected) <= n * (eps * expected + tiny));
  } else {
    CHECK(value == expected);
  }
}

// Rows drawn from few bytes: wide ones repeat them.
template <class T>
std::vector<T> rows_of(Input& input, std::size_t n_rows, std::size_t n_bins) {
  const std::vector<T> some = draw<T>(input, std::min<std::size_t>(n_rows * n_bins, 97));
  std::vector<T> values(n_rows * n_bins);
  for (std::size_t at = 0; at < values.size(); ++at) values[at] = some[at % some.size()];
  return values;
}

template <class T, class Out>
void dense(Input& input, std::size_t n_threads) {
  const std::size_t m = input.number(0, 20), n = input.number(0, 20);
  const std::size_t d = input.flag() ? input.number(0, 40) : input.number(0, 3000);
  const bool symmetric = input.flag();
  const std::vector<T> x = rows_of<T>(input, m, d);
  const std::vector<T> y = symmetric ? std::vector<T>() : rows_of<T>(input, n, d);
  const MatrixView<const T> X(x.data(), m, d);
  const MatrixView<const T> Y = symmetric ? X : MatrixView<const T>(y.data(), n, d);
  std::vector<Out> k(m * Y.n_rows);
  Patient patient;
  histogram_intersection<T, Out>(X, Y, {k.data(), m, Y.n_rows}, n_threads, patient);
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t j = 0; j < Y.n_rows; ++j) {
      check_near(k[i * Y.n_rows + j], intersect(X.row(i), Y.row(j), 0, d), 70);
    }
  }
}

template <class T, class Out>
void segmented(Input& input, std::size_t n_threads) {
  const std::size_t m = input.number(0, 12), n = input.number(0, 12);
  const std::size_t d = input.number(0, 1500);
  const bool symmetric = input.flag();
  const std::vector<T> x = rows_of<T>(input, m, d);
  const std::vector<T> y = symmetric ? std::vector<T>() : rows_of<T>(input, n, d);
  const MatrixView<const T> X(x.data(), m, d);
  const MatrixView<const T> Y = symmetric ? X : MatrixView<const T>(y.data(), n, d);
  std::vector<Segment> segments;
  std::size_t begin = 0;
  for (std::size_t left = input.number(1, 5); left > 0; --left) {
    const std::size_t end = left == 1 ? d : begin + input.number(0, d - begin);
    segments.push_back({begin, end, static_cast<double>(input.number(0, 8)) / 4});
    begin = end;
  }
  std::vector<Out> k(m * Y.n_rows);
  Patient patient;
  segmented_intersection<T, Out>(X, Y, segments, symmetric, {k.data(), m, Y.n_rows}, n_threads,
                                 patient);
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t j = 0; j < Y.n_rows; ++j) {
      long double expected = 0;
      for (const Segment& cut : segments) {
        expected += cut.weight * intersect(X.row(i), Y.row(j), cut.begin, cut.end);
      }
      check_near(k[i * Y.n_rows + j], expected, 80);
    }
  }
}

template <class T>
struct Sparse {
  std::vector<T> dense;
  std::vector<std::int64_t> offsets{0};
  std::vector<std::int32_t> bins;
  std::vector<T> counts;
  std::size_t n_rows, n_bins;

  Sparse(Input& input, std::size_t n_rows, std::size_t n_bins)
      : dense(n_rows * n_bins), n_rows(n_rows), n_bins(n_bins) {
    for (std::size_t at = 0; at < dense.size(); ++at) {
      if (at % n_bins == 0 && at > 0) end_row();
      if (input.byte() % 4 != 0) continue;
      dense[at] = draw<T>(input, 1)[0];  // a zero may be stored, too
      bins.push_back(static_cast<std::int32_t>(at % n_bins));
      counts.push_back(dense[at]);
    }
    while (offsets.size() <= n_rows) end_row();
  }

  void end_row() { offsets.push_back(static_cast<std::int64_t>(bins.size())); }
  SparseRows<T> view() const {
    return {{bins.data(), offsets.data(), n_rows}, counts.data(), n_bins};
  }
};

template <class T, class Out>
void sparse(Input& input, std::size_t n_threads) {
  const std::size_t d = input.number(0, 60);
  const bool symmetric = input.flag();
  const Sparse<T> x(input, input.number(0, 80), d);
  const Sparse<T> y(input, symmetric ? 0 : input.number(0, 20), d);
  const Sparse<T>& right = symmetric ? x : y;
  const Out before = static_cast<Out>(input.number(0, 3));
  std::vector<Out> k(x.n_rows * right.n_rows, before);
  Patient patient;
  sparse_intersection<T, Out>(x.view(), right.view(), {k.data(), x.n_rows, right.n_rows},
                              n_threads, patient);
  for (std::size_t i = 0; i < x.n_rows; ++i) {
    for (std::size_t j = 0; j < right.n_rows; ++j) {
      const long double added =
          intersect(x.dense.data() + i * d, right.dense.data() + j * d, 0, d);
      check_near(k[i * right.n_rows + j], before + added, d);
    }
  }
}

}  // namespace
}  // namespace fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fuzz;
  using u8 = std::uint8_t;
  using u16 = std::uint16_t;
  using u32 = std::uint32_t;
  using u64 = std::uint64_t;
  Input input(data, size);
  choose_instruction_set(input);
  const std::size_t n_threads = input.number(1, 3);
  static void (*const kKinds[])(Input&, std::size_t) = {
      dense<float, float>,       dense<double, double>,  dense<u8, u64>,
      dense<u16, u64>,           dense<u32, u64>,        segmented<float, float>,
      segmented<double, double>, segmented<u16, float>,  segmented<u16, double>,
      segmented<u32, float>,     segmented<u32, double>, sparse<float, float>,
      sparse<double, double>,    sparse<u8, u64>,        sparse<u16, u64>,
      sparse<u32, u64>};
  kKinds[input.number(0, std::size(kKinds) - 1)](input, n_threads);
  return 0;
}
