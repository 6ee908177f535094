// SPDX-License-Identifier: Apache-2.0
// The scratch of an op: the writes that belong to no view.
#pragma once
#include <rankc/codegen/program.hpp>

#include <algorithm>
#include <cstddef>

namespace rankc::codegen {

/// True if a write of an op is scratch. `write`: index into the op's writes.
inline bool is_scratch(const op& o, std::size_t write) {
  const int index = static_cast<int>(write);
  return std::none_of(o.views.begin(), o.views.end(), [index](const view& v) {
    return v.written && index >= v.accesses.first && index < v.accesses.first + v.accesses.count;
  });
}

}  // namespace rankc::codegen
