// SPDX-License-Identifier: Apache-2.0
// RC280: norms over features that ranks shard.
#pragma once
#include <rankc/models/trace_layer.hpp>

namespace rankc::detail {

/// RC280: the features of a norm are on one rank. Over shards it would need the sum of all ranks' squares,
/// which this version does not communicate.
constexpr void check_norms(report& out, const trace& t, std::string_view layer, const parallel_dims& d) {
  for (std::size_t i = 0; i < t.forward_ops; ++i) {
    const op& o = t.ops[i];
    if (!is_one_of(o.kind, {&ops::rms_norm, &ops::layer_norm})) continue;
    const type& x = t.values[o.in[0]];
    for (axis a : axes) {
      if (x[a] != V(x.last()) || ranks_along(d, a) == 1) continue;
      refuse(out, 280)
          << o.kind->name << " of layer '" << layer << "' is over all of " << x.shape[x.last()].name
          << ", which " << name(a) << "=" << ranks_along(d, a)
          << " shards, and this version does not sum squares over ranks: take " << name(a)
          << "=1, all_gather the value and declare its weights without a shard, or take a norm of "
             "each head (qk_norm_kind::head)";
      return;
    }
  }
}

}  // namespace rankc::detail
