// Two kinds of checks. KC_ASSERT states what the core relies on: a failure is our bug. It costs
// nothing in a release build and aborts in a build with -DKERNELCORE_ASSERT=1, such as that of
// tests/cpp/run.sh. check_fits() and narrow() refuse input that is too large, in every build.
#pragma once

#include <cstddef>
#include <limits>

#if KERNELCORE_ASSERT
#define KC_ASSERT(condition)          \
  ((condition) ? static_cast<void>(0) \
               : ::kernelcore::assertion_failed(#condition, __FILE__, __LINE__))
#else
#define KC_ASSERT(condition) static_cast<void>(0)
#endif

namespace kernelcore {

#if KERNELCORE_ASSERT
constexpr bool kAsserts = true;
#else
constexpr bool kAsserts = false;
#endif

// Prints what failed, and where, and aborts.
[[noreturn]] void assertion_failed(const char* condition, const char* file, int line);

// Throws std::length_error: "there are `n` `things`, more than `most`".
[[noreturn]] void refuse_count(std::size_t n, const char* things, std::size_t most);

// Returns n; throws std::length_error unless numbers of `n` things, 0 .. n, fit the type.
template <class Index>
std::size_t check_fits(std::size_t n, const char* things) {
  constexpr auto kMost = static_cast<std::size_t>(std::numeric_limits<Index>::max());
  if (n > kMost) refuse_count(n, things, kMost);
  return n;
}

// A number of things as a shorter integer; std::length_error if it does not fit.
template <class Index>
Index narrow(std::size_t n, const char* things) {
  return static_cast<Index>(check_fits<Index>(n, things));
}

}  // namespace kernelcore
