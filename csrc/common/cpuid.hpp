// Whether this processor has the levels v3 and v4 of x86-64, as the psABI defines them, by
// CPUID. __builtin_cpu_supports knows the levels only in recent compilers.
#pragma once

#include <cpuid.h>

#include <cstdint>

namespace kernelcore {

// Registers of an answer; zeros where the processor does not know the question.
struct CpuidAnswer {
  std::uint32_t a = 0, b = 0, c = 0, d = 0;
};

inline CpuidAnswer cpuid(std::uint32_t leaf) {
  CpuidAnswer answer;
  if (__get_cpuid_count(leaf, 0, &answer.a, &answer.b, &answer.c, &answer.d) == 0) return {};
  return answer;
}

// The registers that the operating system saves when it switches threads.
inline std::uint64_t saved_registers() {
  std::uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return static_cast<std::uint64_t>(high) << 32 | low;
}

template <class... Bits>
constexpr std::uint32_t bits(Bits... bit) {
  return (0u | ... | (1u << bit));
}

inline bool has_all(std::uint64_t found, std::uint64_t wanted) {
  return (found & wanted) == wanted;
}

inline bool has_x86_64_v3() {
  constexpr std::uint32_t kXsave = bits(27);
  constexpr std::uint32_t kFmaMovbeAvxF16c = bits(12, 22, 28, 29);
  constexpr std::uint32_t kBmi1Avx2Bmi2 = bits(3, 5, 8);
  constexpr std::uint32_t kLzcnt = bits(5);
  constexpr std::uint32_t kXmmYmm = bits(1, 2);
  const std::uint32_t first = cpuid(1).c;
  return has_all(first, kXsave) && has_all(saved_registers(), kXmmYmm) &&
         has_all(first, kFmaMovbeAvxF16c) && has_all(cpuid(7).b, kBmi1Avx2Bmi2) &&
         has_all(cpuid(0x80000001).c, kLzcnt);
}

inline bool has_x86_64_v4() {
  constexpr std::uint32_t kAvx512FDqCdBwVl = bits(16, 17, 28, 30, 31);
  constexpr std::uint32_t kMasksZmm = bits(5, 6, 7);
  return has_x86_64_v3() && has_all(saved_registers(), kMasksZmm) &&
         has_all(cpuid(7).b, kAvx512FDqCdBwVl);
}

}  // namespace kernelcore
