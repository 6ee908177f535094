// SPDX-License-Identifier: Apache-2.0
#include "sight.hpp"

namespace rankc::codegen::algebra {

sight::sight(bool causal, std::int64_t window, std::int64_t seq)
    : causal_(causal), reach_(window > 0 && window < seq ? window - 1 : seq), seq_(seq) {}

/// The set of positions from `before` places before to `after` places after one of the given positions.
runs sight::widened(const runs& positions, std::int64_t before, std::int64_t after) const {
  runs out;
  std::int64_t end = 0;  // the end of the positions in the set so far
  for (int i = 0; i < positions.count(); ++i) {
    const interval near{std::max(positions[i].begin - before, end), std::min(positions[i].end + after, seq_)};
    if (near.size() > 0) out.append(near);
    end = std::max(end, near.end);
  }
  return out;
}

runs sight::keys_seen_by(const runs& queries) const {
  return causal_ ? widened(queries, reach_, 0) : runs(0, seq_);
}

runs sight::queries_that_see(const runs& keys) const {
  return causal_ ? widened(keys, 0, reach_) : runs(0, seq_);
}

runs common(const runs& a, const runs& b) {
  runs out;
  for (int i = 0; i < a.count(); ++i)
    for (int k = 0; k < b.count(); ++k) {
      const interval both{std::max(a[i].begin, b[k].begin), std::min(a[i].end, b[k].end)};
      if (both.size() > 0) out.append(both);
    }
  return out;
}

}  // namespace rankc::codegen::algebra
