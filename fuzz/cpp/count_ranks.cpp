// Counts of greater and tied candidates against one comparison each.
#include "ranks/count_ranks.hpp"

#include "input.hpp"

namespace fuzz {
namespace {

template <class T>
T draw(Input& input) {
  const std::uint8_t code = input.byte();
  if (code == 255) return std::numeric_limits<T>::infinity();
  if (code == 254) return -std::numeric_limits<T>::infinity();
  if (code == 253) return T(-0.0);
  return static_cast<T>(code % 7) - 3;
}

template <class T>
struct Side {
  std::size_t n_queries, n_layers;
  std::vector<T> gold;
  std::vector<std::int64_t> first, greater, tied, before;

  Side(Input& input, std::size_t n_queries)
      : n_queries(n_queries),
        n_layers(input.number(1, 3)),
        gold(n_layers * n_queries),
        first(gold.size()),
        greater(gold.size(), -1),
        tied(gold.size(), -1),
        before(gold.size(), -1) {
    for (T& score : gold) score = draw<T>(input);
    for (auto& place : first) place = static_cast<std::int64_t>(input.number(0, 90)) - 5;
  }

  RankQueries<T> queries(bool wanted, bool ordered) {
    return {wanted ? n_layers : 0, wanted ? gold.data() : nullptr,
            first.data(),          greater.data(),
            tied.data(),           ordered ? before.data() : nullptr};
  }

  template <class Score>
  void check(std::size_t n_candidates, bool ordered, const Score& score) const {
    for (std::size_t q = 0; q < gold.size(); ++q) {
      std::int64_t more = 0, equal = 0, earlier = 0;
      for (std::size_t c = 0; c < n_candidates; ++c) {
        const T value = score(q % n_queries, c);
        more += value > gold[q];
        equal += value == gold[q];
        earlier += value == gold[q] && static_cast<std::int64_t>(c) < first[q];
      }
      CHECK(greater[q] == more && tied[q] == equal && (!ordered || before[q] == earlier));
    }
  }
};

template <class T>
void run(Input& input, std::size_t n_threads) {
  const std::size_t m = input.number(0, 130);
  const std::size_t n = input.flag() ? input.number(0, 80) : input.number(0, 1500);
  std::vector<T> some(std::min<std::size_t>(m * n, 151));
  for (T& score : some) score = draw<T>(input);
  std::vector<T> scores(m * n);
  for (std::size_t at = 0; at < scores.size(); ++at) scores[at] = some[at * 3 % some.size()];
  const bool with_nan = !scores.empty() && input.number(0, 5) == 0;
  if (with_nan) {
    scores[input.number(0, 65535) % scores.size()] = std::numeric_limits<T>::quiet_NaN();
  }
  const std::size_t wanted = input.number(1, 3);
  const bool ordered = input.flag(), rows_too = wanted != 2, columns_too = wanted != 1;
  Side<T> by_row(input, m), by_column(input, n);
  Patient patient;
  const MatrixView<const T> view(scores.data(), m, n);
  const bool has_nan =
      count_ranks<T>(view, by_row.queries(rows_too, ordered),
                     by_column.queries(columns_too, ordered), n_threads, patient);
  CHECK(has_nan == with_nan);
  if (rows_too) {
    by_row.check(n, ordered, [&](std::size_t q, std::size_t c) { return view(q, c); });
  }
  if (columns_too) {
    by_column.check(m, ordered, [&](std::size_t q, std::size_t c) { return view(c, q); });
  }
}

}  // namespace
}  // namespace fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::in_either_type(data, size, fuzz::run<float>, fuzz::run<double>);
}
