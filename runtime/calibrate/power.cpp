// SPDX-License-Identifier: Apache-2.0
// Measures the GPU's power under sustained loads: GEMMs, attention, and memory-bound kernels.
#include "stand.hpp"

#include <rankc/contract/attention_scratch.hpp>

#include <cstdio>

namespace rankc::calibrate {

namespace {

/// A call's operations, the bytes that it moves through memory, and the head size if it is attention.
struct done {
  double operations, bytes;
  int dim = 0;
};

void write(stand& s, const char* load, const done& work, const call& one) {
  const double for_a_moment = s.time(one);
  const stand::loaded l = s.load(one);
  std::printf(
      "{\"load\":\"%s\",\"operations\":%.6g,\"bytes\":%.6g,\"dim\":%d,\"seconds\":%.6g,\"loaded_seconds\":%."
      "6g,\"watts\":%.1f}\n",
      load, work.operations, work.bytes, work.dim, for_a_moment, l.seconds, l.watts);
  std::fflush(stdout);
}

void product(stand& s, int tokens, int in, int out) {
  const auto count = [](int a, int b) { return static_cast<std::size_t>(a) * static_cast<std::size_t>(b); };
  const double operations = 2.0 * tokens * in * out, x = 2.0 * tokens * in, y = 2.0 * tokens * out,
               w = 2.0 * in * out;
  write(s, "product", {operations, x + y + w}, [=](const lane& on, operands& o) {
    const at y = o.take(count(tokens, out)), x = o.take(count(tokens, in)), w = o.take(count(in, out));
    cuda::linear<bf16>(on, y, x, w, tokens, in, out);
  });
  write(s, "product", {operations, x + y + 2 * w}, [=](const lane& on, operands& o) {
    const at dw = o.take(count(in, out), 4), dy = o.take(count(tokens, out)), x = o.take(count(tokens, in));
    cuda::linear_dw<bf16>(on, dw, dy, x, tokens, in, out, false);
  });
}

void attention(stand& s, int rows, int seq, int heads, int kv_heads, int dim) {
  const cuda::attention_shape a{rows, seq, heads, kv_heads, dim, dim, sizeof(bf16), false};
  const std::size_t tokens = static_cast<std::size_t>(rows) * seq, q = tokens * heads * dim,
                    kv = tokens * kv_heads * dim;
  const double operations = 2.0 * static_cast<double>(q) * seq;  // causal: half of both GEMMs
  const double rows_of_q = 2.0 * static_cast<double>(q), rows_of_kv = 2.0 * static_cast<double>(kv);
  write(s, "attention", {operations, 2 * rows_of_q + 2 * rows_of_kv, dim}, [=](const lane& on, operands& o) {
    const at out = o.take(q), lse = o.take(tokens * heads, 4),
             scratch = o.take(cuda::attention_scratch(a), 1), from = o.take(q), k = o.take(kv),
             v = o.take(kv);
    cuda::attention<bf16>(on, out, lse, scratch, from, k, v, rows, seq, heads, kv_heads, dim, dim,
                          heads * dim, kv_heads * dim, kv_heads * dim);
  });
  write(s, "attention_grad", {2.5 * operations, 4 * rows_of_q + 4 * rows_of_kv, dim},
        [=](const lane& on, operands& o) {
          const at dq = o.take(q), dk = o.take(kv), dv = o.take(kv),
                   scratch = o.take(cuda::attention_grad_scratch(a), 1), d_out = o.take(q), from = o.take(q),
                   k = o.take(kv), v = o.take(kv), out = o.take(q), lse = o.take(tokens * heads, 4);
          cuda::attention_grad<bf16>(on, dq, dk, dv, scratch, d_out, from, k, v, out, lse, rows, seq, heads,
                                     kv_heads, dim, dim, heads * dim, kv_heads * dim, kv_heads * dim);
        });
}

}  // namespace

void write_power(stand& s) {
  product(s, 16384, 4096, 14336);
  product(s, 65536, 768, 3072);
  product(s, 65536, 768, 50304);
  attention(s, 2, 8192, 32, 8, 128);
  attention(s, 64, 1024, 12, 12, 64);
  const std::size_t n = std::size_t{1} << 28;
  write(s, "pass", {0, 6.0 * static_cast<double>(n)},
        [=](const lane& on, operands& o) { cuda::add<bf16>(on, o.take(n), o.take(n), o.take(n), n); });
  write(s, "pass", {0, 4.0 * static_cast<double>(n)},
        [=](const lane& on, operands& o) { cuda::gelu<bf16>(on, o.take(n), o.take(n), n); });
  write(s, "rest", {}, [](const lane& on, operands& o) {
    const at here = o.take(256);
    require(cudaMemsetAsync(on.at<std::byte>(here), 0, 4, on.stream));
  });
}

}  // namespace rankc::calibrate
