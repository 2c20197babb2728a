// The tag-rank kernel against sums over all words.
#include "captions/tag_rank.hpp"

#include "input.hpp"

namespace fuzz {
namespace {

struct Tags {
  std::vector<std::int32_t> words;
  std::vector<double> absolute, relative;
  std::size_t n_words;

  explicit Tags(Input& input) : n_words(input.number(0, 20)) {
    for (std::size_t word = 0; word < n_words; ++word) {
      for (std::size_t n = input.number(0, 3); n > 0; --n) {
        words.push_back(static_cast<std::int32_t>(word));
        absolute.push_back(static_cast<double>(input.number(0, 10)) / 10);
        relative.push_back(static_cast<double>(input.number(0, 10)) / 10);
      }
    }
  }

  // Captions with one tag at most for each word, words ascending.
  Captions captions(Input& input, std::size_t most_images) const {
    Captions made(input, 0, 0, 0);
    for (std::size_t n_images = input.number(0, most_images); n_images > 0; --n_images) {
      for (std::size_t n = input.number(0, 3); n > 0; --n) {
        std::int32_t last = -1;
        for (std::size_t tag = 0; tag < words.size(); ++tag) {
          if (words[tag] == last || input.byte() % 3 != 0) continue;
          last = words[tag];
          made.words.push_back(static_cast<std::int32_t>(tag));
        }
        made.end_caption();
      }
      made.end_image();
    }
    return made;
  }
};

double distance(const CaptionsView& X, std::size_t s, const CaptionsView& Y, std::size_t t,
                const Tags& tags, const std::vector<double>& ranks) {
  double sum = 0;
  for (std::size_t word = 0; word < tags.n_words; ++word) {
    const auto rank = [&](const CaptionsView& captions, std::size_t c) {
      for (std::size_t k = 0; k < captions.words.size(c); ++k) {
        const auto tag = static_cast<std::size_t>(captions.words.begin(c)[k]);
        if (tags.words[tag] == static_cast<std::int32_t>(word)) return ranks[tag];
      }
      return 0.0;
    };
    const double u = rank(X, s), v = rank(Y, t);
    if (u + v > 0) sum += (u - v) * (u - v) / (u + v);
  }
  return sum;
}

template <class Out>
void run(Input& input, std::size_t n_threads) {
  const Tags tags(input);
  const double absolute_width = static_cast<double>(input.number(1, 20)) / 5;
  const double relative_width = static_cast<double>(input.number(1, 20)) / 5;
  const bool symmetric = input.flag();
  const Captions left = tags.captions(input, 40);
  const Captions right = tags.captions(input, symmetric ? 0 : 10);
  const CaptionsView X = left.view(), Y = symmetric ? X : right.view();
  std::vector<Out> K(X.n_images * Y.n_images);
  Patient patient;
  tag_rank<Out>(X, Y,
                {tags.words.size(), tags.words.data(), tags.n_words, tags.absolute.data(),
                 tags.relative.data(), absolute_width, relative_width},
                {K.data(), X.n_images, Y.n_images}, n_threads, patient);
  for (std::size_t x = 0; x < X.n_images; ++x) {
    for (std::size_t y = 0; y < Y.n_images; ++y) {
      double sum = 0, n_pairs = 0;
      for_each_pair(X, x, Y, y, [&](std::size_t s, std::size_t t) {
        const double by_place = distance(X, s, Y, t, tags, tags.absolute);
        const double by_share = distance(X, s, Y, t, tags, tags.relative);
        sum += (std::exp(-by_place / (2 * absolute_width)) +
                std::exp(-by_share / (2 * relative_width))) /
               2;
        ++n_pairs;
      });
      const double expected = n_pairs == 0 ? 0 : sum / n_pairs;
      CHECK(std::abs(K[x * Y.n_images + y] - expected) <= 3e-4 * expected);
    }
  }
}

}  // namespace
}  // namespace fuzz

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  return fuzz::in_either_type(data, size, fuzz::run<float>, fuzz::run<double>);
}
