// SPDX-License-Identifier: Apache-2.0
// The words of the program's enumerations, for error texts.
#pragma once
#include <rankc/runtime/program.hpp>

#include <cstddef>

namespace rankc::runtime::host {

inline const char* name(runtime::over o) { return runtime::over_names[static_cast<std::size_t>(o)]; }

inline const char* name(runtime::dtype t) {
  constexpr const char* words[] = {"f32", "f64", "bf16"};
  return words[static_cast<std::size_t>(t)];
}

inline const char* name(runtime::reduction r) { return r == runtime::reduction::sum ? "sum" : "max"; }

}  // namespace rankc::runtime::host
