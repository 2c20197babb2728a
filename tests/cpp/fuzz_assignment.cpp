// Assignments against all ways to link, where they are few, and against their proof.
#include "assignment/assignment.hpp"

#include "all_links.hpp"
#include "fuzz.hpp"

namespace {

template <class T>
void run(Input& input, std::size_t n_threads) {
  const bool maximize = input.flag(), at_most = input.flag();
  const T sign = maximize ? -1 : 1, forbidden = sign * static_cast<T>(HUGE_VAL);
  const std::size_t most = input.number(1, 12);
  // Of whole numbers: sums and duals are exact.
  std::vector<std::vector<T>> values, u, v;
  std::vector<AssignmentProblem<T>> problems;
  std::vector<std::int64_t> links{0};
  for (std::size_t n_problems = input.number(1, 8); n_problems > 0; --n_problems) {
    const std::size_t longest = input.number(0, 9) == 0 ? 250 : 7;
    const std::size_t n = input.number(0, longest), m = input.number(0, longest);
    std::vector<T> some(std::min<std::size_t>(n * m, 211));
    const std::size_t range = input.flag() ? 5 : 200, one_in = input.number(2, 9);
    for (T& value : some) {
      const std::size_t code = input.number(0, range);
      value = code % one_in == 1 ? forbidden : static_cast<T>(code) - static_cast<T>(range / 2);
    }
    std::vector<T>& costs = values.emplace_back();
    for (std::size_t at = 0; at < n * m; ++at) costs.push_back(some[at * 7 % some.size()]);
    problems.push_back({{costs.data(), n, m}, costs.data() + n * m});
    links.push_back(links.back() + static_cast<std::int64_t>(std::min({n, m, most})));
    u.emplace_back(n);
    v.emplace_back(m);
  }
  const double threshold =
      input.flag() ? sign * HUGE_VAL : static_cast<double>(input.number(0, 8)) - 4;
  std::vector<std::int64_t> rows(links.back()), cols(rows.size()), counts(problems.size());
  std::vector<double> totals(problems.size());
  std::vector<AssignmentDuals<T>> duals;
  for (std::size_t b = 0; b < problems.size(); ++b) {
    duals.push_back({u[b].data(), v[b].data(), 0});
  }
  Patient patient;
  linear_assignments<T>(problems, {maximize, most, at_most, threshold},
                        {links.data(), rows.data(), cols.data(), counts.data(), totals.data()},
                        duals.data(), n_threads, patient);
  for (std::size_t b = 0; b < problems.size(); ++b) {
    const MatrixView<const T> costs = problems[b].costs;
    const std::int64_t *own_rows = rows.data() + links[b], *own_cols = cols.data() + links[b];
    const auto wanted = static_cast<std::size_t>(links[b + 1] - links[b]);
    const auto found = static_cast<std::size_t>(counts[b]);
    assert(found <= wanted);
    double total = 0;
    for (std::size_t e = 0; e < found; ++e) {
      assert(e == 0 || own_rows[e - 1] < own_rows[e]);
      assert(std::count(own_cols, own_cols + found, own_cols[e]) == 1);
      total += costs(own_rows[e], own_cols[e]);
    }
    assert(std::isfinite(total));
    if (found < wanted && !at_most) continue;  // what is refused has no totals
    assert(totals[b] == total);
    for (std::size_t i = 0; i < costs.n_rows && !at_most; ++i) {
      for (std::size_t j = 0; j < costs.n_cols; ++j) {
        assert(sign * u[b][i] <= 0 && sign * v[b][j] <= 0);
        assert(sign * (costs(i, j) - duals[b].pair - u[b][i] - v[b][j]) >= 0);
      }
    }
    if (costs.n_rows > 5 || costs.n_cols > 5) continue;
    std::vector<double> negated(costs.n_rows * costs.n_cols);
    for (std::size_t c = 0; c < negated.size(); ++c) negated[c] = sign * costs.data[c];
    const MatrixView<const double> small(negated.data(), costs.n_rows, costs.n_cols);
    assert(cheapest(small, 0, found, 0) == sign * total);
    const double more = cheapest(small, 0, found + 1, 0) - sign * total;
    assert(found == wanted || std::isinf(more) || more > sign * threshold);
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return run_on(data, size, run<float>, run<double>);
}
