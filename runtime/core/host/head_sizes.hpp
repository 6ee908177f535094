// SPDX-License-Identifier: Apache-2.0
// The heads of attention's operands, and where each begins.
#pragma once
#include <cstddef>

namespace rankc::runtime::host {

// Query head h uses key and value head h / (heads / kv_heads). Heads of q and k have `dim` elements. Heads of
// v and o have `value_dim` elements.
struct head_sizes {
  int heads, kv_heads, dim, value_dim;
  int q_width() const { return heads * dim; }
  int k_width() const { return kv_heads * dim; }
  int v_width() const { return kv_heads * value_dim; }
  int o_width() const { return heads * value_dim; }

  // The first element of a token's query head in q, k, v and o.
  std::size_t in_q(std::size_t token, int head) const { return query_head(token, head) * dim; }
  std::size_t in_k(std::size_t token, int head) const { return key_head(token, head) * dim; }
  std::size_t in_v(std::size_t token, int head) const { return key_head(token, head) * value_dim; }
  std::size_t in_o(std::size_t token, int head) const { return query_head(token, head) * value_dim; }

 private:
  std::size_t query_head(std::size_t token, int head) const { return token * heads + head; }
  std::size_t key_head(std::size_t token, int head) const {
    return token * kv_heads + head / (heads / kv_heads);
  }
};

}  // namespace rankc::runtime::host
