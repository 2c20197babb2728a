// Assignments against all ways to link, where they are few, and against their proof.
#include "assignment/assignment.hpp"

#include "input.hpp"

namespace fuzz {
namespace {

// Problems one behind the other, and room for their links and duals.
template <class T>
struct Problems {
  std::vector<T> values;
  std::vector<std::int64_t> offsets{0}, shapes, link_offsets{0}, row_offsets{0}, col_offsets{0};

  void add(std::size_t n, std::size_t m, std::size_t n_links) {
    offsets.push_back(static_cast<std::int64_t>(values.size()));
    shapes.push_back(static_cast<std::int64_t>(n));
    shapes.push_back(static_cast<std::int64_t>(m));
    link_offsets.push_back(link_offsets.back() + static_cast<std::int64_t>(n_links));
    row_offsets.push_back(row_offsets.back() + static_cast<std::int64_t>(n));
    col_offsets.push_back(col_offsets.back() + static_cast<std::int64_t>(m));
  }

  std::size_t size() const { return offsets.size() - 1; }
};

// Whole numbers: sums and duals are exact.
template <class T>
void draw(Input& input, std::vector<T>& values, std::size_t size, T forbidden) {
  const std::size_t range = input.flag() ? 5 : 200, one_in = input.number(2, 9);
  std::vector<T> some(std::min<std::size_t>(size, 211));
  for (T& value : some) {
    const std::size_t code = input.number(0, range);
    value = code % one_in == 1 ? forbidden : static_cast<T>(code) - static_cast<T>(range / 2);
  }
  for (std::size_t at = 0; at < size; ++at) values.push_back(some[at * 7 % some.size()]);
}

template <class T>
void check_proof(MatrixView<const T> costs, const T* u, const T* v, T d, T sign,
                 const std::vector<std::int64_t>& rows, const std::vector<std::int64_t>& cols) {
  for (std::size_t i = 0; i < costs.n_rows; ++i) {
    CHECK(sign * u[i] <= 0);
    for (std::size_t j = 0; j < costs.n_cols; ++j) {
      CHECK(sign * v[j] <= 0);
      CHECK(sign * (costs(i, j) - d - u[i] - v[j]) >= 0);
    }
  }
  for (std::size_t e = 0; e < rows.size(); ++e) {
    CHECK(costs(rows[e], cols[e]) == d + u[rows[e]] + v[cols[e]]);
  }
}

template <class T>
void linear(Input& input, std::size_t n_threads) {
  const bool maximize = input.flag(), at_most = input.flag();
  const T sign = maximize ? -1 : 1, forbidden = sign * static_cast<T>(HUGE_VAL);
  const std::size_t k = input.number(1, 12);
  Problems<T> problems;
  for (std::size_t n_problems = input.number(1, 8); n_problems > 0; --n_problems) {
    const std::size_t longest = input.number(0, 9) == 0 ? 300 : 7;
    const std::size_t n = input.number(0, longest), m = input.number(0, longest);
    draw(input, problems.values, n * m, forbidden);
    problems.add(n, m, std::min({n, m, k}));
  }
  const double threshold =
      input.flag() ? sign * HUGE_VAL : static_cast<double>(input.number(0, 8)) - 4;
  std::vector<std::int64_t> rows(problems.link_offsets.back()), cols(rows.size());
  std::vector<std::int64_t> counts(problems.size());
  std::vector<double> totals(problems.size());
  std::vector<T> u(problems.row_offsets.back()), v(problems.col_offsets.back());
  std::vector<T> d(problems.size());
  Patient patient;
  linear_assignments<T>(
      {problems.values.data(), problems.offsets.data(), problems.shapes.data(),
       problems.size()},
      {maximize, k, at_most, threshold},
      {problems.link_offsets.data(), rows.data(), cols.data(), counts.data(), totals.data()},
      {problems.row_offsets.data(), problems.col_offsets.data(), u.data(), v.data(), d.data()},
      n_threads, patient);
  for (std::size_t b = 0; b < problems.size(); ++b) {
    const MatrixView<const T> costs(problems.values.data() + problems.offsets[b],
                                    problems.shapes[2 * b], problems.shapes[2 * b + 1]);
    const std::int64_t first = problems.link_offsets[b];
    const auto wanted = static_cast<std::size_t>(problems.link_offsets[b + 1] - first);
    const auto found = static_cast<std::size_t>(counts[b]);
    CHECK(found <= wanted);
    const std::vector<std::int64_t> linked_rows(rows.data() + first,
                                                rows.data() + first + found);
    const std::vector<std::int64_t> linked_cols(cols.data() + first,
                                                cols.data() + first + found);
    double total = 0;
    for (std::size_t e = 0; e < found; ++e) {
      CHECK(e == 0 || linked_rows[e - 1] < linked_rows[e]);
      CHECK(std::count(linked_cols.begin(), linked_cols.end(), linked_cols[e]) == 1);
      total += costs(linked_rows[e], linked_cols[e]);
    }
    CHECK(std::isfinite(total));
    if (found < wanted && !at_most) continue;  // what is refused has no totals
    CHECK(totals[b] == total);
    if (!at_most) {
      check_proof<T>(costs, u.data() + problems.row_offsets[b],
                     v.data() + problems.col_offsets[b], d[b], sign, linked_rows, linked_cols);
    }
    if (costs.n_rows > 5 || costs.n_cols > 5) continue;
    std::vector<double> negated(costs.n_rows * costs.n_cols);
    for (std::size_t c = 0; c < negated.size(); ++c) negated[c] = sign * costs.data[c];
    const MatrixView<const double> small(negated.data(), costs.n_rows, costs.n_cols);
    CHECK(cheapest(small, 0, found, 0) == sign * total);
    if (found == wanted) continue;
    const double more = cheapest(small, 0, found + 1, 0);
    CHECK(more == HUGE_VAL || more - sign * total > sign * threshold);
  }
}

template <class T>
void k_cardinality(Input& input, std::size_t) {
  const bool maximize = input.flag();
  const T sign = maximize ? -1 : 1;
  const std::size_t n = input.number(0, 40), m = input.number(0, 40);
  std::vector<T> values;
  draw(input, values, n * m, sign * static_cast<T>(HUGE_VAL));
  const std::size_t max_k = std::min({n, m, input.number(1, 40)});
  std::vector<std::int64_t> offsets{0};
  for (std::size_t k = 1; k <= max_k; ++k) {
    offsets.push_back(offsets.back() + static_cast<std::int64_t>(k));
  }
  std::vector<std::int64_t> rows(offsets.back()), cols(rows.size()), counts(max_k);
  std::vector<double> totals(max_k);
  Patient patient;
  const MatrixView<const T> costs(values.data(), n, m);
  k_cardinality_assignments<T>(
      costs, maximize, max_k,
      {offsets.data(), rows.data(), cols.data(), counts.data(), totals.data()}, patient);
  for (std::size_t k = 1; k <= max_k; ++k) {
    if (counts[k - 1] < static_cast<std::int64_t>(k)) {  // then all that follow have none
      for (std::size_t later = k + 1; later <= max_k; ++later) CHECK(counts[later - 1] == 0);
      break;
    }
    double total = 0;
    for (std::int64_t e = offsets[k - 1]; e < offsets[k]; ++e) total += costs(rows[e], cols[e]);
    CHECK(totals[k - 1] == total && std::isfinite(total));
    if (k > 2) {  // what a link adds never improves
      const double now = sign * (totals[k - 1] - totals[k - 2]);
      CHECK(now >= sign * (totals[k - 2] - totals[k - 3]));
    }
  }
}

}  // namespace
}  // namespace fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace fuzz;
  Input input(data, size);
  choose_instruction_set(input);
  const std::size_t n_threads = input.number(1, 3);
  static void (*const kKinds[])(Input&, std::size_t) = {
      linear<float>, linear<double>, k_cardinality<float>, k_cardinality<double>};
  kKinds[input.number(0, std::size(kKinds) - 1)](input, n_threads);
  return 0;
}
