// SPDX-License-Identifier: Apache-2.0
// The words of the program's enumerations, as error sentences print them.
#pragma once
#include <rankc/runtime/program.hpp>

#include <cstddef>
#include <iterator>

namespace rankc::host {

inline const char* name(runtime::stream s) {
  constexpr const char* words[] = {"compute", "reduce", "to_next", "from_prev", "to_prev", "from_next"};
  static_assert(std::size(words) == runtime::n_streams);
  return words[static_cast<std::size_t>(s)];
}

inline const char* name(runtime::role r) {
  constexpr const char* words[] = {"tp",      "dp",        "model",   "tied",
                                   "to_next", "from_prev", "to_prev", "from_next"};
  static_assert(std::size(words) == runtime::n_roles);
  return words[static_cast<std::size_t>(r)];
}

inline const char* name(runtime::dtype t) {
  constexpr const char* words[] = {"f32", "f64", "bf16"};
  return words[static_cast<std::size_t>(t)];
}

inline const char* name(runtime::reduction r) { return r == runtime::reduction::sum ? "sum" : "max"; }

}  // namespace rankc::host
