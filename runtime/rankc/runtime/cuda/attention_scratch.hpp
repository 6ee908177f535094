// SPDX-License-Identifier: Apache-2.0
// The scratch that attention needs beside its operands, in bytes: the generator plans it, the runtime keeps to it.
#pragma once
#include <cstddef>

namespace rankc::cuda {

struct attention_shape {
  int rows, seq, heads, kv_heads, dim;
};

constexpr std::size_t attention_scratch(const attention_shape&) { return 256; }
constexpr std::size_t attention_grad_scratch(const attention_shape& s) {
  return std::size_t{4} * s.rows * s.heads * s.seq * (s.dim + 2);
}

}  // namespace rankc::cuda
