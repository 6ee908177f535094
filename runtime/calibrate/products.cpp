// SPDX-License-Identifier: Apache-2.0
// Times GEMMs with weights, forward and backward, alone and with their epilogues.
#include "stand.hpp"

#include <cstdio>
#include <utility>

namespace rankc::calibrate {

namespace {

/// The sizes of a GEMM, with as many operands as its largest kernel has.
struct sizes {
  int tokens, in, out;
  std::size_t x() const { return static_cast<std::size_t>(tokens) * in; }
  std::size_t y() const { return static_cast<std::size_t>(tokens) * out; }
  std::size_t w() const { return static_cast<std::size_t>(in) * out; }
};

void write(stand& s, const char* kernel, const sizes& z, const call& one) {
  std::printf("{\"kernel\":\"%s\",\"tokens\":%d,\"in\":%d,\"out\":%d,\"seconds\":%.6g}\n", kernel, z.tokens,
              z.in, z.out, s.time(one));
  std::fflush(stdout);
}

void plain(stand& s, const sizes& z) {
  write(s, "linear", z, [=](const lane& on, operands& o) {
    const at y = o.take(z.y()), x = o.take(z.x()), w = o.take(z.w());
    cuda::linear<bf16>(on, y, x, w, z.tokens, z.in, z.out);
  });
  write(s, "linear_dx", z, [=](const lane& on, operands& o) {
    const at dx = o.take(z.x()), dy = o.take(z.y()), w = o.take(z.w());
    cuda::linear_dx<bf16>(on, dx, dy, w, z.tokens, z.in, z.out, false);
  });
  write(s, "linear_dw", z, [=](const lane& on, operands& o) {
    const at dw = o.take(z.w(), 4), dy = o.take(z.y()), x = o.take(z.x());
    cuda::linear_dw<bf16>(on, dw, dy, x, z.tokens, z.in, z.out, false);
  });
}

void fused(stand& s, const sizes& z) {
  write(s, "linear_bias", z, [=](const lane& on, operands& o) {
    const at y = o.take(z.y()), x = o.take(z.x()), w = o.take(z.w()),
             b = o.take(static_cast<std::size_t>(z.out));
    cuda::linear_bias<bf16>(on, y, x, w, b, z.tokens, z.in, z.out);
  });
  write(s, "linear_bias_gelu", z, [=](const lane& on, operands& o) {
    const at y = o.take(z.y()), before = o.take(z.y()), x = o.take(z.x()), w = o.take(z.w()),
             b = o.take(static_cast<std::size_t>(z.out));
    cuda::linear_bias_gelu<bf16>(on, y, before, x, w, b, z.tokens, z.in, z.out);
  });
  write(s, "linear_dx_gelu_bias", z, [=](const lane& on, operands& o) {
    const at dx = o.take(z.x()), db = o.take(static_cast<std::size_t>(z.in), 4), dy = o.take(z.y()),
             w = o.take(z.w()), before = o.take(z.x());
    cuda::linear_dx_gelu_bias<bf16>(on, dx, db, dy, w, before, z.tokens, z.in, z.out, false);
  });
  write(s, "linear_dw_bias", z, [=](const lane& on, operands& o) {
    const at dw = o.take(z.w(), 4), db = o.take(static_cast<std::size_t>(z.out), 4), dy = o.take(z.y()),
             x = o.take(z.x());
    cuda::linear_dw_bias<bf16>(on, dw, db, dy, x, z.tokens, z.in, z.out, false);
  });
}

}  // namespace

void write_products(stand& s) {
  constexpr double largest = 2e13;  // operations of one call
  for (const auto& [in, out] : {std::pair{768, 768},
                                {768, 2304},
                                {768, 3072},
                                {3072, 768},
                                {1600, 1600},
                                {1600, 6400},
                                {2048, 2048},
                                {2048, 8192},
                                {4096, 1024},
                                {4096, 4096},
                                {4096, 14336},
                                {14336, 4096},
                                {4096, 28672},
                                {8192, 8192},
                                {768, 50304},
                                {4096, 64128}})
    for (const int tokens : {512, 2048, 4096, 16384, 65536}) {
      const sizes z{tokens, in, out};
      if (2.0 * static_cast<double>(tokens) * in * out < largest) plain(s, z);
    }
  for (const auto& [in, out] : {std::pair{768, 3072}, {1600, 6400}, {4096, 16384}})
    for (const int tokens : {4096, 16384, 65536}) fused(s, {tokens, in, out});
}

}  // namespace rankc::calibrate
