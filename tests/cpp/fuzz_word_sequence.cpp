// Both ways of the word-sequence kernel against sums over all earlier pairs of words.
#include "captions/word_sequence.hpp"

#include "fuzz.hpp"

namespace {

// Captions of images over symbols 0 .. n_symbols - 1; captions and images may be empty.
struct Captions {
  std::vector<std::int32_t> words;
  std::vector<std::int64_t> texts{0}, images{0};

  Captions(Input& input, std::size_t n_symbols, std::size_t most_images, std::size_t longest) {
    for (std::size_t n_images = input.number(0, most_images); n_images > 0; --n_images) {
      for (std::size_t n = input.number(0, 3); n > 0; --n) {
        for (std::size_t k = input.number(0, longest); k > 0; --k) {
          words.push_back(static_cast<std::int32_t>(input.number(0, n_symbols - 1)));
        }
        texts.push_back(static_cast<std::int64_t>(words.size()));
      }
      images.push_back(static_cast<std::int64_t>(texts.size()) - 1);
    }
  }

  CaptionsView view() const {
    return {{words.data(), texts.data(), texts.size() - 1}, images.data(), images.size() - 1};
  }
};

// The sum over pairs of captions of two images, and over all common subsequences.
template <class Kappa>
double similarity(const CaptionsView& X, std::size_t x, const CaptionsView& Y, std::size_t y,
                  const Kappa& kappa, const SequenceOptions& options) {
  double total = 0;
  for (std::size_t s = X.first_caption(x); s < X.first_caption(x + 1); ++s) {
    for (std::size_t t = Y.first_caption(y); t < Y.first_caption(y + 1); ++t) {
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
            total += next[i * n + j];
          }
        }
        ended = next;
      }
    }
  }
  return total;
}

template <class Out>
void run(Input& input, std::size_t n_threads) {
  const std::size_t n = input.number(1, 12), longest = input.flag() ? 6 : 18;
  const bool symmetric = input.flag(), is_soft = input.flag(), is_dense = input.flag();
  std::vector<double> scale(n);
  for (double& value : scale) value = static_cast<double>(input.number(0, 8)) / 4;
  const std::vector<float> narrow(scale.begin(), scale.end());
  std::vector<float> matrix(n * n), values;  // the similarities, and those of a sparse matrix
  for (std::size_t a = 0; a < n; ++a) {
    for (std::size_t b = 0; b <= a; ++b) {
      const float value = is_soft ? static_cast<float>(input.number(0, 4)) / 4 : a == b;
      matrix[a * n + b] = matrix[b * n + a] = value;
    }
  }
  std::vector<std::int64_t> offsets{0};
  std::vector<std::int32_t> columns;
  for (std::size_t a = 0; a < n; ++a) {
    for (std::size_t b = 0; b < n; ++b) {
      if (matrix[a * n + b] == 0) continue;
      columns.push_back(static_cast<std::int32_t>(b));
      values.push_back(matrix[a * n + b]);
    }
    offsets.push_back(static_cast<std::int64_t>(columns.size()));
  }
  const Captions left(input, n, longest == 6 ? 40 : 10, longest),
      right(input, n, symmetric ? 0 : 6, longest);
  const CaptionsView X = left.view(), Y = symmetric ? X : right.view();
  const SequenceOptions options{input.number(1, 5), static_cast<double>(input.number(0, 4)) / 4,
                                false, input.flag()};
  std::vector<Out> K(X.n_images * Y.n_images);
  const MatrixView<Out> out(K.data(), X.n_images, Y.n_images);
  Patient patient;
  if (is_soft) {
    SymbolSimilarity given{narrow.data(), n, n, is_dense ? matrix.data() : nullptr, {},
                           nullptr};
    if (!is_dense) {
      given.columns = {columns.data(), offsets.data(), n};
      given.values = values.data();
    }
    word_sequence<Out>(X, Y, given, options, out, n_threads, patient);
  } else {
    word_sequence_exact<Out>(X, Y, scale.data(), n, options, out, n_threads, patient);
  }
  const auto kappa = [&](std::size_t a, std::size_t b) {
    return matrix[a * n + b] * scale[a] * scale[b];
  };
  for (std::size_t x = 0; x < X.n_images; ++x) {
    for (std::size_t y = 0; y < Y.n_images; ++y) {
      double expected = similarity(X, x, Y, y, kappa, options);
      if (options.normalize) {
        const double square =
            similarity(X, x, X, x, kappa, options) * similarity(Y, y, Y, y, kappa, options);
        expected = square > 0 ? expected / std::sqrt(square) : 0;
      }
      assert(std::abs(K[x * Y.n_images + y] - expected) <= 1e-4 * expected + 1e-30);
    }
  }
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return run_on(data, size, run<float>, run<double>);
}
