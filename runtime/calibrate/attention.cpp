// SPDX-License-Identifier: Apache-2.0
// Causal attention, forward and backward, by the engine that the runtime takes for the shape.
#include "stand.hpp"

#include <rankc/contract/attention_scratch.hpp>

#include <cstdio>

namespace rankc::calibrate {

namespace {

void write(const char* kernel, const cuda::attention_shape& a, double seconds) {
  std::printf(
      "{\"kernel\":\"%s\",\"rows\":%d,\"seq\":%d,\"heads\":%d,\"kv_heads\":%d,\"dim\":%d,\"seconds\":%.6g}\n",
      kernel, a.rows, a.seq, a.heads, a.kv_heads, a.dim, seconds);
  std::fflush(stdout);
}

/// Measure with q, k and v as columns of one buffer, as in programs.
void of_shape(stand& s, int rows, int seq, int heads, int kv_heads, int dim) {
  const cuda::attention_shape a{rows, seq, heads, kv_heads, dim, dim, sizeof(bf16), false};
  const std::size_t tokens = static_cast<std::size_t>(rows) * seq,
                    width = static_cast<std::size_t>(heads + 2 * kv_heads) * dim,
                    output = tokens * heads * dim;
  const auto column = [=](at from, int head) {
    return from + sizeof(bf16) * static_cast<std::size_t>(head) * dim;
  };
  const int stride = static_cast<int>(width), k = heads, v = heads + kv_heads;
  write("attention", a, s.time([=](const lane& on, operands& o) {
    const at qkv = o.take(tokens * width), out = o.take(output), lse = o.take(tokens * heads, 4),
             scratch = o.take(cuda::attention_scratch(a), 1);
    cuda::attention<bf16>(on, out, lse, scratch, qkv, column(qkv, k), column(qkv, v), rows, seq, heads,
                          kv_heads, dim, dim, stride, stride, stride);
  }));
  write("attention_grad", a, s.time([=](const lane& on, operands& o) {
    const at qkv = o.take(tokens * width), d = o.take(tokens * width), out = o.take(output),
             d_out = o.take(output), lse = o.take(tokens * heads, 4),
             scratch = o.take(cuda::attention_grad_scratch(a), 1);
    cuda::attention_grad<bf16>(on, d, column(d, k), column(d, v), scratch, d_out, qkv, column(qkv, k),
                               column(qkv, v), out, lse, rows, seq, heads, kv_heads, dim, dim, stride, stride,
                               stride);
  }));
}

}  // namespace

void write_attention(stand& s) {
  for (const int tokens : {4096, 16384, 65536})
    for (const int seq : {512, 1024, 2048, 4096, 8192, 16384, 32768}) {
      if (seq > tokens || static_cast<double>(tokens) * seq > 16384.0 * 32768) continue;
      of_shape(s, tokens / seq, seq, 12, 12, 64);
      of_shape(s, tokens / seq, seq, 32, 8, 128);
    }
  of_shape(s, 16, 1024, 25, 25, 64);
  of_shape(s, 2, 8192, 32, 8, 64);
  of_shape(s, 2, 8192, 16, 4, 128);
}

}  // namespace rankc::calibrate
