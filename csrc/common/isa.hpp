// The instruction set of the inner loops. Every *_simd.cpp is compiled once for each name
// below, into a namespace of that name; the choice is made once, when the module is loaded.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#if KERNELCORE_X86
#define KERNELCORE_FOR_EACH_ISA(M) M(v2) M(v3) M(v4)
#else
#define KERNELCORE_FOR_EACH_ISA(M) M(portable)
#endif

namespace kernelcore {

#define KERNELCORE_ENUMERATOR(name) name,
enum class Isa { KERNELCORE_FOR_EACH_ISA(KERNELCORE_ENUMERATOR) };
#undef KERNELCORE_ENUMERATOR

// Names of the instruction sets that were built and that this processor has, weakest first.
std::vector<std::string> supported_isas();

// The one in use: the strongest supported one unless select_isa() said otherwise.
Isa active_isa();
std::string active_isa_name();

// Makes later calls use `name`. std::invalid_argument if it is not in supported_isas().
void select_isa(const std::string& name);

// The signed integer of the width of T: for counts and indices beside vectors of T.
template <class T>
using LaneInt = std::conditional_t<sizeof(T) == 4, std::int32_t, std::int64_t>;

// The functions for T, float or double, of a table that has them for both.
template <class T, class Kernels>
auto of_type(const Kernels& kernels) {
  if constexpr (std::is_same_v<T, float>) {
    return kernels.f32;
  } else {
    return kernels.f64;
  }
}

}  // namespace kernelcore

// KERNELCORE_DECLARE_PER_ISA(Type, function) declares `Type function();` in the namespace of
// every instruction set; KERNELCORE_DISPATCH(function) calls the one in use.
#define KERNELCORE_DECLARE_PER_ISA(Type, function) \
  KERNELCORE_DECLARE_PER_ISA_IMPL(Type, function)
#if KERNELCORE_X86
#define KERNELCORE_DECLARE_PER_ISA_IMPL(Type, function) \
  namespace v2 {                                        \
  Type function();                                      \
  }                                                     \
  namespace v3 {                                        \
  Type function();                                      \
  }                                                     \
  namespace v4 {                                        \
  Type function();                                      \
  }
#define KERNELCORE_DISPATCH(function)                                     \
  (::kernelcore::active_isa() == ::kernelcore::Isa::v4   ? v4::function() \
   : ::kernelcore::active_isa() == ::kernelcore::Isa::v3 ? v3::function() \
                                                         : v2::function())
#else
#define KERNELCORE_DECLARE_PER_ISA_IMPL(Type, function) \
  namespace portable {                                  \
  Type function();                                      \
  }
#define KERNELCORE_DISPATCH(function) portable::function()
#endif
