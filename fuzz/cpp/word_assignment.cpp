// The word-assignment similarity against all ways to link.
#include "captions/word_assignment.hpp"

#include "input.hpp"

namespace fuzz {
namespace {

template <class Out>
void run(Input& input, std::size_t n_threads) {
  const std::size_t n_symbols = input.number(0, 8);
  const Similarity kappa(input, n_symbols);
  const bool symmetric = input.flag();
  // Long captions on one side only: all ways to link five words with many are few.
  const Captions left(input, n_symbols, 12, 4);
  const Captions right(input, n_symbols, symmetric ? 0 : 6, input.flag() ? 5 : 20);
  const CaptionsView X = left.view(), Y = symmetric ? X : right.view();
  const bool normalize = symmetric && input.flag();
  std::vector<Out> K(X.n_images * Y.n_images);
  Patient patient;
  word_assignment<Out>(X, Y, kappa.view(), normalize, {K.data(), X.n_images, Y.n_images},
                       n_threads, patient);
  const auto similarity = [&](std::size_t x, std::size_t y) {
    double sum = 0;
    for_each_pair(X, x, Y, y, [&](std::size_t s, std::size_t t) {
      const std::size_t n = X.words.size(s), m = Y.words.size(t);
      std::vector<double> costs(n * m);
      for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t j = 0; j < m; ++j) {
          costs[i * m + j] = -kappa(X.words.begin(s)[i], Y.words.begin(t)[j]);
        }
      }
      sum -= cheapest<double>({costs.data(), n, m}, 0, std::min(n, m), 0);
    });
    return sum;
  };
  for (std::size_t x = 0; x < X.n_images; ++x) {
    for (std::size_t y = 0; y < Y.n_images; ++y) {
      double expected = similarity(x, y);
      if (normalize) {
        const double length = std::sqrt(similarity(x, x) * similarity(y, y));
        expected = length > 0 ? expected / length : 0;
      }
      CHECK(std::abs(K[x * Y.n_images + y] - expected) <= 1e-5 * (expected + 1));
    }
  }
}

}  // namespace
}  // namespace fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::in_either_type(data, size, fuzz::run<float>, fuzz::run<double>);
}
