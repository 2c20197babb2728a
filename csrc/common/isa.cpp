#include "common/isa.hpp"

#include <atomic>
#include <stdexcept>

namespace kernelcore {
namespace {

struct Level {
  Isa isa;
  const char* name;
  bool supported;
};

#if KERNELCORE_X86
// The levels of the psABI, feature by feature: only recent compilers know them by name. The
// built-in also asks whether the operating system saves the registers.
bool has_v3() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
         __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("f16c") &&
         __builtin_cpu_supports("fma") && __builtin_cpu_supports("lzcnt") &&
         __builtin_cpu_supports("movbe");
}

bool has_v4() {
  return has_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
}
#endif

const std::vector<Level>& levels() {
#if KERNELCORE_X86
  // v2 is the oldest processor that the package supports, so it is not asked for.
  static const std::vector<Level> all = {
      {Isa::v2, "v2", true}, {Isa::v3, "v3", has_v3()}, {Isa::v4, "v4", has_v4()}};
#else
  static const std::vector<Level> all = {{Isa::portable, "portable", true}};
#endif
  return all;
}

const Level& strongest() {
  const Level* best = &levels().front();
  for (const Level& level : levels()) {
    if (level.supported) best = &level;
  }
  return *best;
}

std::atomic<const Level*>& active() {
  static std::atomic<const Level*> level{&strongest()};
  return level;
}

}  // namespace

std::vector<std::string> supported_isas() {
  std::vector<std::string> names;
  for (const Level& level : levels()) {
    if (level.supported) names.emplace_back(level.name);
  }
  return names;
}

Isa active_isa() { return active().load(std::memory_order_relaxed)->isa; }

std::string active_isa_name() { return active().load(std::memory_order_relaxed)->name; }

void select_isa(const std::string& name) {
  std::string known;
  for (const Level& level : levels()) {
    if (!level.supported) continue;
    if (name == level.name) {
      active().store(&level, std::memory_order_relaxed);
      return;
    }
    known += (known.empty() ? "" : ", ") + std::string(level.name);
  }
  throw std::invalid_argument("instruction set must be one of " + known +
                              " on this processor, got '" + name + "'");
}

}  // namespace kernelcore
