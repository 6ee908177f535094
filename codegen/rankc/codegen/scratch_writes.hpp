// SPDX-License-Identifier: Apache-2.0
// The writes of an op that no view has are its scratch.
#pragma once
#include <rankc/codegen/program.hpp>

#include <algorithm>
#include <cstddef>

namespace rankc::codegen {

/// Whether a write of an op is scratch. `write`: its index in the op's writes.
inline bool is_scratch(const op& o, std::size_t write) {
  const int index = static_cast<int>(write);
  return std::none_of(o.views.begin(), o.views.end(), [index](const view& v) {
    return v.written && index >= v.accesses.first && index < v.accesses.first + v.accesses.count;
  });
}

}  // namespace rankc::codegen
