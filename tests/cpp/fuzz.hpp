// What the libFuzzer harnesses share: bytes as numbers, a monitor, and a main.
#pragma once

#include <algorithm>
#include <cassert>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "common/isa.hpp"
#include "common/matrix_view.hpp"
#include "common/monitor.hpp"

using namespace kernelcore;

// Reads numbers from the bytes, and zeros when they are used up.
class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : data_(data), end_(data + size) {}

  bool flag() { return number(0, 1) != 0; }
  std::size_t number(std::size_t least, std::size_t most) {
    return least + (data_ == end_ ? 0u : *data_++) % (most - least + 1);
  }

 private:
  const std::uint8_t* data_;
  const std::uint8_t* const end_;
};

class Patient final : public Monitor {
 public:
  bool keep_going(std::size_t done, std::size_t total) override {
    assert(done <= total);
    return true;
  }
};

// Runs a harness on one instruction set, in one type, on some threads.
inline int run_on(const std::uint8_t* data, std::size_t size,
                  void (*run_float)(Input&, std::size_t),
                  void (*run_double)(Input&, std::size_t)) {
  static const std::vector<std::string> names = supported_isas();
  Input input(data, size);
  select_isa(names[input.number(0, names.size() - 1)]);
  const std::size_t n_threads = input.number(1, 3);
  (input.flag() ? run_float : run_double)(input, n_threads);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

#ifndef KERNELCORE_LIBFUZZER  // then random bytes for a second have to do
int main() {
  std::mt19937 rng(1);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  while (std::chrono::steady_clock::now() < end) {
    std::vector<std::uint8_t> bytes(rng() % (rng() % 2 == 0 ? 64 : 2048));
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(rng());
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
  }
}
#endif
