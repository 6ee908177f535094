// SPDX-License-Identifier: Apache-2.0
#include "tails.hpp"

#include <rankc/runtime/hashed_call.hpp>

#include <algorithm>
#include <iterator>

#include "claims.hpp"

namespace rankc::codegen::algebra {

tails::tails(const rank_program& p) {
  for (const op& o : p.ops)
    for (const view& v : o.views) {
      const bool is_in_range = v.port == "gradient" || v.port == "working_copy" ||
                               v.port.ends_with("weight") || v.port.ends_with("moment");
      if (!is_in_range || !(is_update(o) || o.row == "sum_squares")) continue;
      const access& a = first_access(o, v);
      const std::size_t apart = runtime::elements_apart * element_size(a.type), bytes = a.end - a.begin;
      if (bytes % apart == 0) continue;
      ends_[a.end] = a.begin + (bytes / apart + 1) * apart;
      end_ = std::max(end_, ends_[a.end]);
    }
}

bool tails::meet(const access& a) const {
  const auto behind = ends_.lower_bound(a.end);  // the first tail that begins where the access has ended
  return behind != ends_.begin() && std::prev(behind)->second > a.begin;
}

}  // namespace rankc::codegen::algebra
