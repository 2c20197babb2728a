// Which instruction set the inner loops run on. Every *_tile.cpp is compiled once per name
// below, into a namespace of that name; the choice is made once, when the module is loaded.
#pragma once

#include <string>
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

}  // namespace kernelcore

// Declares `Type function();` in the namespace of every instruction set.
#define KERNELCORE_DECLARE_TILES(Type, function) KERNELCORE_DECLARE_TILES_IMPL(Type, function)
#if KERNELCORE_X86
#define KERNELCORE_DECLARE_TILES_IMPL(Type, function) \
  namespace v2 {                                      \
  Type function();                                    \
  }                                                   \
  namespace v3 {                                      \
  Type function();                                    \
  }                                                   \
  namespace v4 {                                      \
  Type function();                                    \
  }
#define KERNELCORE_ACTIVE_TILES(function)                                 \
  (::kernelcore::active_isa() == ::kernelcore::Isa::v4   ? v4::function() \
   : ::kernelcore::active_isa() == ::kernelcore::Isa::v3 ? v3::function() \
                                                         : v2::function())
#else
#define KERNELCORE_DECLARE_TILES_IMPL(Type, function) \
  namespace portable {                                \
  Type function();                                    \
  }
#define KERNELCORE_ACTIVE_TILES(function) portable::function()
#endif
