// Both ways of the word-sequence kernel against sums over all earlier pairs of words.
#include "captions/word_sequence.hpp"

#include "input.hpp"

namespace fuzz {
namespace {

// Adds the matches of each length of two captions to by_length.
template <class Kappa>
void add_matches(const CaptionsView& X, std::size_t s, const CaptionsView& Y, std::size_t t,
                 const Kappa& kappa, const SequenceOptions& options,
                 std::vector<double>& by_length) {
  const std::size_t m = X.words.size(s), n = Y.words.size(t);
  std::vector<double> ended(m * n);
  for (std::size_t length = 1; length <= options.max_length; ++length) {
    std::vector<double> next(m * n);
    for (std::size_t i = 0; i < m; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        double sum = length == 1;
        for (std::size_t a = 0; length > 1 && a < i; ++a) {
          for (std::size_t b = 0; b < j; ++b) {
            const auto gaps = static_cast<double>(i - a + j - b - 2);
            sum += ended[a * n + b] * std::pow(options.gap_decay, gaps);
          }
        }
        next[i * n + j] = kappa(X.words.begin(s)[i], Y.words.begin(t)[j]) * sum;
        by_length[length - 1] += next[i * n + j];
      }
    }
    ended = next;
  }
}

template <class Out, class Kappa>
void check(const std::vector<Out>& K, const CaptionsView& X, const CaptionsView& Y,
           const Kappa& kappa, const SequenceOptions& options) {
  const auto sums = [&](const CaptionsView& left, std::size_t x, const CaptionsView& right,
                        std::size_t y) {
    std::vector<double> by_length(options.max_length);
    for_each_pair(left, x, right, y, [&](std::size_t s, std::size_t t) {
      add_matches(left, s, right, t, kappa, options, by_length);
    });
    return by_length;
  };
  const auto total = [](const std::vector<double>& parts) {
    double sum = 0;
    for (const double part : parts) sum += part;
    return sum;
  };
  const std::size_t n_parts = options.per_length ? options.max_length : 1;
  for (std::size_t x = 0; x < X.n_images; ++x) {
    for (std::size_t y = 0; y < Y.n_images; ++y) {
      const std::vector<double> by_length = sums(X, x, Y, y);
      for (std::size_t part = 0; part < n_parts; ++part) {
        double expected = options.per_length ? by_length[part] : total(by_length);
        if (options.normalize) {
          const double length = std::sqrt(total(sums(X, x, X, x)) * total(sums(Y, y, Y, y)));
          expected = length > 0 ? expected / length : 0;
        }
        const Out value = K[(x * Y.n_images + y) * n_parts + part];
        CHECK(std::abs(value - expected) <= 1e-4 * expected + 1e-30);
      }
    }
  }
}

template <class Out>
void run(Input& input, std::size_t n_threads) {
  const std::size_t n_symbols = input.number(0, 12);
  const Similarity kappa(input, n_symbols);
  const bool symmetric = input.flag();
  const std::size_t longest = input.flag() ? 6 : 18;
  const Captions left(input, n_symbols, 40, longest);
  const Captions right(input, n_symbols, symmetric ? 0 : 6, longest);
  const CaptionsView X = left.view(), Y = symmetric ? X : right.view();
  const bool per_length = input.flag();
  const SequenceOptions options{input.number(1, 5), static_cast<double>(input.number(0, 4)) / 4,
                                per_length, !per_length && input.flag()};
  const std::size_t width = Y.n_images * (per_length ? options.max_length : 1);
  std::vector<Out> K(X.n_images * width);
  Patient patient;
  if (input.flag()) {
    word_sequence<Out>(X, Y, kappa.view(), options, {K.data(), X.n_images, width}, n_threads,
                       patient);
    check(K, X, Y, kappa, options);
    return;
  }
  std::vector<double> scale(n_symbols);
  for (double& value : scale) value = static_cast<double>(input.number(0, 8)) / 4;
  word_sequence_exact<Out>(X, Y, scale.data(), n_symbols, options,
                           {K.data(), X.n_images, width}, n_threads, patient);
  const auto exact = [&scale](std::int32_t a, std::int32_t b) {
    return a == b ? scale[static_cast<std::size_t>(a)] * scale[static_cast<std::size_t>(b)] : 0;
  };
  check(K, X, Y, exact, options);
}

}  // namespace
}  // namespace fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::in_either_type(data, size, fuzz::run<float>, fuzz::run<double>);
}
