// Functions that add the bindings of each part to the module; module.cpp calls them.
#pragma once

#include <pybind11/pybind11.h>

namespace kernelcore {

void bind_scan(pybind11::module_& module);
void bind_ranks(pybind11::module_& module);
void bind_histograms(pybind11::module_& module);
void bind_assignment(pybind11::module_& module);
void bind_captions(pybind11::module_& module);

}  // namespace kernelcore
