// SPDX-License-Identifier: Apache-2.0
#include "tails.hpp"

#include <rankc/runtime/hashed_call.hpp>

#include <iterator>

#include "claims.hpp"

namespace rankc::codegen::algebra {

byte_ranges tails_of(const rank_program& p) {
  byte_ranges tails;
  for (const op& o : p.ops) {
    if (!is_update(o) && o.row != "sum_squares") continue;
    for (const view& v : o.views) {
      const bool is_in_range = v.port == "gradient" || v.port == "working_copy" ||
                               v.port.ends_with("weight") || v.port.ends_with("moment");
      if (!is_in_range) continue;
      const access& a = first_access(o, v);
      const std::size_t apart = runtime::elements_apart * element_size(a.type), bytes = a.end - a.begin;
      if (bytes % apart != 0) tails[a.end] = a.begin + (bytes / apart + 1) * apart;
    }
  }
  return tails;
}

bool meets(const byte_ranges& ranges, const access& a) {
  const auto behind = ranges.lower_bound(a.end);  // the first range at or after the end of the access
  return behind != ranges.begin() && std::prev(behind)->second > a.begin;
}

}  // namespace rankc::codegen::algebra
