// Takes the place of libFuzzer where there is none: random bytes, no feedback. With files as
// arguments it runs these instead, as libFuzzer does.
//
//     driver SECONDS [SEED]    or    driver FILE...
#include <chrono>
#include <fstream>
#include <iterator>
#include <random>

#include "input.hpp"

namespace {

bool is_number(const std::string& text) {
  return text.find_first_not_of("0123456789") == std::string::npos;
}

void execute(const std::vector<std::uint8_t>& bytes) {
  LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s SECONDS [SEED] or FILE...\n", argv[0]);
    return 2;
  }
  if (!is_number(argv[1])) {
    for (int i = 1; i < argc; ++i) {
      std::ifstream file(argv[i], std::ios::binary);
      execute({std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()});
    }
    return 0;
  }
  std::mt19937_64 rng(argc > 2 ? std::stoull(argv[2]) : std::random_device{}());
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(std::stoul(argv[1]));
  unsigned long executions = 0;
  while (std::chrono::steady_clock::now() < end) {
    std::vector<std::uint8_t> bytes(rng() % 2 == 0 ? rng() % 64 : rng() % 4096);
    const unsigned long long zeros = rng() % 3;  // many small numbers, or all kinds
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(rng() >> (zeros * 3)) >> zeros;
    execute(bytes);
    ++executions;
  }
  std::printf("stat::number_of_executed_units: %lu\n", executions);
}
