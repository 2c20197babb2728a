// Bytes of a fuzzer as valid arguments of the core: shapes, offsets that ascend, ids in range.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "common/isa.hpp"
#include "common/matrix_view.hpp"
#include "common/monitor.hpp"
#include "common/ragged_view.hpp"
#include "common/symbol_similarity.hpp"

#define CHECK(condition)                                                   \
  do {                                                                     \
    if (!(condition)) {                                                    \
      std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                        \
    }                                                                      \
  } while (false)

namespace fuzz {

using namespace kernelcore;

// Reads numbers from the bytes, and zeros when they are used up.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : data_(data), end_(data + size) {}

  std::uint8_t byte() { return data_ == end_ ? 0 : *data_++; }
  bool flag() { return byte() % 2 != 0; }

  std::size_t number(std::size_t least, std::size_t most) {
    std::size_t value = byte();
    if (most - least > 255) value = value << 8 | byte();
    return least + value % (most - least + 1);
  }

  // One of small integers, fractions, zeros of both signs, tiny and large numbers.
  template <class T>
  T real() {
    const auto code = static_cast<int>(byte());
    if (code < 96) return static_cast<T>(code % 12);
    if (code < 192) return static_cast<T>(code - 95) / 97;
    if (code < 208) return std::numeric_limits<T>::denorm_min() * static_cast<T>(code - 191);
    if (code < 224) return std::ldexp(T(1), code - 216);
    if (code < 240) return T(-0.0);
    return std::ldexp(T(1), (code - 248) * 6);
  }

  template <class T>
  T count() {
    const std::uint8_t code = byte();
    if (code < 200) return static_cast<T>(code);
    if (code < 250) return static_cast<T>(code * std::uint64_t{40503});
    return std::numeric_limits<T>::max();
  }

 private:
  const std::uint8_t* data_;
  const std::uint8_t* const end_;
};

class Patient final : public Monitor {
 public:
  bool keep_going(std::size_t done, std::size_t total) override {
    CHECK(done <= total);
    return true;
  }
};

inline void choose_instruction_set(Input& input) {
  static const std::vector<std::string> names = supported_isas();
  select_isa(names[input.number(0, names.size() - 1)]);
}

// Captions of images over symbols 0 .. n_symbols - 1; captions and images may be empty.
struct Captions {
  std::vector<std::int32_t> words;
  std::vector<std::int64_t> captions{0}, images{0};

  Captions(Input& input, std::size_t n_symbols, std::size_t most_images, std::size_t longest) {
    const std::size_t n_images = input.number(0, most_images);
    for (std::size_t i = 0; i < n_images; ++i) {
      for (std::size_t n = input.number(0, 3); n > 0; --n) {
        const std::size_t length = n_symbols == 0 ? 0 : input.number(0, longest);
        for (std::size_t k = 0; k < length; ++k) {
          words.push_back(static_cast<std::int32_t>(input.number(0, n_symbols - 1)));
        }
        end_caption();
      }
      end_image();
    }
  }

  void end_caption() { captions.push_back(static_cast<std::int64_t>(words.size())); }
  void end_image() { images.push_back(static_cast<std::int64_t>(captions.size()) - 1); }

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

// A symmetric matrix over some of the symbols, dense or sparse, or none.
class Similarity {
 public:
  Similarity(Input& input, std::size_t n_symbols) : n_symbols_(n_symbols) {
    const std::size_t form = input.number(0, 2);
    n_words_ = form == 0 ? 0 : input.number(0, n_symbols);
    is_dense_ = form == 1;
    scale_.resize(n_symbols);
    for (float& value : scale_) value = static_cast<float>(input.number(0, 8)) / 4;
    matrix_.resize(n_words_ * n_words_);
    for (std::size_t a = 0; a < n_words_; ++a) {
      for (std::size_t b = 0; b <= a; ++b) {
        const float value = static_cast<float>(input.number(0, 5) % 5) / 4;
        matrix_[a * n_words_ + b] = matrix_[b * n_words_ + a] = value;
      }
    }
    for (std::size_t a = 0; a < n_words_; ++a) {
      for (std::size_t b = 0; b < n_words_; ++b) {
        if (matrix_[a * n_words_ + b] == 0) continue;
        columns_.push_back(static_cast<std::int32_t>(b));
        values_.push_back(matrix_[a * n_words_ + b]);
      }
      offsets_.push_back(static_cast<std::int64_t>(columns_.size()));
    }
  }

  SymbolSimilarity view() const {
    SymbolSimilarity view{scale_.data(), n_symbols_, n_words_, nullptr, {}, nullptr};
    if (n_words_ > 0 && is_dense_) view.dense = matrix_.data();
    if (n_words_ > 0 && !is_dense_) {
      view.columns = {columns_.data(), offsets_.data(), n_words_};
      view.values = values_.data();
    }
    return view;
  }

  double operator()(std::int32_t a, std::int32_t b) const {
    const auto i = static_cast<std::size_t>(a), j = static_cast<std::size_t>(b);
    const double alike = i < n_words_ && j < n_words_ ? matrix_[i * n_words_ + j] : i == j;
    return alike * scale_[i] * scale_[j];
  }

 private:
  std::size_t n_symbols_, n_words_ = 0;
  bool is_dense_ = false;
  std::vector<float> scale_, matrix_, values_;
  std::vector<std::int64_t> offsets_{0};
  std::vector<std::int32_t> columns_;
};

// Runs one harness on the bytes: an instruction set, a number of threads, a type, the rest.
inline int in_either_type(const std::uint8_t* data, std::size_t size,
                          void (*run_float)(Input&, std::size_t),
                          void (*run_double)(Input&, std::size_t)) {
  Input input(data, size);
  choose_instruction_set(input);
  const std::size_t n_threads = input.number(1, 3);
  (input.flag() ? run_float : run_double)(input, n_threads);
  return 0;
}

// The least sum of k links among columns not yet used, of rows from `row` on.
template <class T>
double cheapest(MatrixView<const T> costs, std::size_t row, std::size_t k, unsigned used) {
  if (k == 0) return 0;
  if (costs.n_rows - row < k) return HUGE_VAL;
  double least = cheapest(costs, row + 1, k, used);
  for (std::size_t j = 0; j < costs.n_cols; ++j) {
    if ((used >> j & 1) != 0) continue;
    least = std::min(least, costs(row, j) + cheapest(costs, row + 1, k - 1, used | 1u << j));
  }
  return least;
}

}  // namespace fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);
