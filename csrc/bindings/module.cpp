// Table of contents of kernelcore._core.
#include <pybind11/stl.h>

#include "bindings/modules.hpp"
#include "common/isa.hpp"

namespace {

std::string compiler() {
#if defined(__clang__)
  return "Clang " __clang_version__;
#elif defined(__GNUC__)
  return "GCC " __VERSION__;
#else
  return "unknown";
#endif
}

}  // namespace

PYBIND11_MODULE(_core, module, pybind11::mod_gil_not_used()) {
  module.doc() = "The compiled core. Call it through the Python functions, never directly.";

  module.def("compiler", &compiler);
  module.def("supported_isas", &kernelcore::supported_isas);
  module.def("active_isa", &kernelcore::active_isa_name);
  module.def("select_isa", &kernelcore::select_isa, pybind11::arg("name"));

  kernelcore::bind_scan(module);
  kernelcore::bind_ranks(module);
  kernelcore::bind_histograms(module);
  kernelcore::bind_assignment(module);
  kernelcore::bind_captions(module);
}
