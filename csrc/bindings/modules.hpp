// Functions that add the bindings of each part to the module; module.cpp calls them.
#pragma once

#include <pybind11/pybind11.h>

namespace kernelcore {

void bind_checks(pybind11::module_& module);
void bind_evaluation(pybind11::module_& module);
void bind_gram(pybind11::module_& module);
void bind_matching(pybind11::module_& module);
void bind_text(pybind11::module_& module);

}  // namespace kernelcore
