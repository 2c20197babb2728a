#include "common/check.hpp"

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

namespace kernelcore {

void assertion_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: assertion failed: %s\n", file, line, condition);
  std::abort();
}

void refuse_count(std::size_t n, const char* things, std::size_t most) {
  throw std::length_error("there must be at most " + std::to_string(most) + " " + things +
                          ", got " + std::to_string(n));
}

}  // namespace kernelcore
