// DC and TK against sorted maxima, AP against all ways to link.
#include "assignment/set_similarity.hpp"

#include "input.hpp"

namespace fuzz {
namespace {

std::vector<std::int64_t> draw_sets(Input& input) {
  std::vector<std::int64_t> offsets{0};
  for (std::size_t n_sets = input.number(1, 4); n_sets > 0; --n_sets) {
    offsets.push_back(offsets.back() + static_cast<std::int64_t>(input.number(1, 5)));
  }
  return offsets;
}

// The mean of the k greatest of the maxima of lines.
double greatest(std::vector<double> maxima, std::size_t k) {
  std::sort(maxima.begin(), maxima.end(), std::greater<>());
  double sum = 0;
  for (std::size_t i = 0; i < k; ++i) sum += maxima[i];
  return sum / static_cast<double>(k);
}

template <class T>
double expected_of(MatrixView<const T> block, SetSimilarity kind, std::size_t k) {
  std::vector<double> by_row(block.n_rows, -HUGE_VAL), by_col(block.n_cols, -HUGE_VAL), costs;
  for (std::size_t i = 0; i < block.n_rows; ++i) {
    for (std::size_t j = 0; j < block.n_cols; ++j) {
      by_row[i] = std::max<double>(by_row[i], block(i, j));
      by_col[j] = std::max<double>(by_col[j], block(i, j));
      costs.push_back(-block(i, j));
    }
  }
  switch (kind) {
    case SetSimilarity::kDense:
      return greatest(by_row, block.n_rows) + greatest(by_col, block.n_cols);
    case SetSimilarity::kTopK:
      return greatest(by_row, k) + greatest(by_col, k);
    default:
      return -cheapest<double>({costs.data(), block.n_rows, block.n_cols}, 0, k, 0) /
             static_cast<double>(k);
  }
}

template <class T>
void run(Input& input, std::size_t n_threads) {
  const std::vector<std::int64_t> rows = draw_sets(input), cols = draw_sets(input);
  const std::size_t n = rows.back(), m = cols.back();
  const std::size_t n_rows = rows.size() - 1, n_cols = cols.size() - 1;
  std::vector<T> S(n * m);
  for (T& value : S) value = input.real<T>() * (input.flag() ? 1 : -1);
  for (T& value : S) value = std::abs(value) > 4096 ? T(1) : value;
  const auto kind = static_cast<SetSimilarity>(input.number(0, 2));
  std::vector<std::int64_t> bounds, offsets{0};
  for (std::size_t a = 0; a < n_rows; ++a) {
    for (std::size_t b = 0; b < n_cols; ++b) {
      const std::int64_t height = rows[a + 1] - rows[a], width = cols[b + 1] - cols[b];
      const auto k = static_cast<std::int64_t>(input.number(1, std::min(height, width)));
      bounds.push_back(k);
      offsets.push_back(offsets.back() + (kind == SetSimilarity::kDense  ? height + width
                                          : kind == SetSimilarity::kTopK ? 2 * k
                                                                         : k));
    }
  }
  std::vector<std::int64_t> entry_rows(offsets.back(), -1), entry_cols(offsets.back(), -1);
  std::vector<T> out(n_rows * n_cols), plain(out.size());
  const MatrixView<const T> all(S.data(), n, m);
  const MatrixView<const std::int64_t> limits(bounds.data(), n_rows, n_cols);
  const SetsView row_sets{rows.data(), n_rows}, col_sets{cols.data(), n_cols};
  Patient patient;
  set_similarity<T>(all, row_sets, col_sets, kind, limits, {plain.data(), n_rows, n_cols}, {},
                    1, patient);
  set_similarity<T>(all, row_sets, col_sets, kind, limits, {out.data(), n_rows, n_cols},
                    {offsets.data(), entry_rows.data(), entry_cols.data()}, n_threads, patient);
  for (std::size_t a = 0; a < n_rows; ++a) {
    for (std::size_t b = 0; b < n_cols; ++b) {
      const std::size_t pair = a * n_cols + b;
      const MatrixView<const T> block(&all(rows[a], cols[b]), row_sets.size(a),
                                      col_sets.size(b), m);
      const double expected = expected_of(block, kind, bounds[pair]);
      CHECK(out[pair] == plain[pair]);
      CHECK(std::abs(out[pair] - expected) <= 200 * std::numeric_limits<T>::epsilon() * 4096);
      for (std::int64_t e = offsets[pair]; e < offsets[pair + 1]; ++e) {
        CHECK(rows[a] <= entry_rows[e] && entry_rows[e] < rows[a + 1]);
        CHECK(cols[b] <= entry_cols[e] && entry_cols[e] < cols[b + 1]);
      }
    }
  }
}

}  // namespace
}  // namespace fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::in_either_type(data, size, fuzz::run<float>, fuzz::run<double>);
}
