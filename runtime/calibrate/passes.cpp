// SPDX-License-Identifier: Apache-2.0
// Times memory-bound kernels, from a few kilobytes to gigabytes.
#include "stand.hpp"

#include <cstdio>
#include <utility>
#include <vector>

namespace rankc::calibrate {

namespace {

void write(stand& s, const char* kernel, std::size_t rows, int width, double bytes, const call& one) {
  std::printf("{\"kernel\":\"%s\",\"rows\":%zu,\"width\":%d,\"bytes\":%.0f,\"seconds\":%.6g}\n", kernel, rows,
              width, bytes, s.time(one));
  std::fflush(stdout);
}

constexpr int widest_norm = 8192;  // among models

void of_rows(stand& s, int tokens, int width) {
  const std::size_t n = static_cast<std::size_t>(tokens) * width, one_row = static_cast<std::size_t>(width);
  const double one = 2.0 * static_cast<double>(n);
  write(s, "add", n / one_row, width, 3 * one,
        [=](const lane& on, operands& o) { cuda::add<bf16>(on, o.take(n), o.take(n), o.take(n), n); });
  write(s, "gelu", n / one_row, width, 2 * one,
        [=](const lane& on, operands& o) { cuda::gelu<bf16>(on, o.take(n), o.take(n), n); });
  write(s, "swiglu_grad", n / one_row, width, 5 * one, [=](const lane& on, operands& o) {
    const at dy = o.take(n), gate = o.take(2 * n), d_gate = o.take(2 * n);
    cuda::swiglu_grad<bf16>(on, d_gate, d_gate + 2 * one_row, dy, gate, gate + 2 * one_row, tokens, width,
                            2 * width);
  });
  write(s, "add_rms_norm", n / one_row, width, 4 * one, [=](const lane& on, operands& o) {
    const auto t = static_cast<std::size_t>(tokens);
    cuda::add_rms_norm<bf16>(on, o.take(n), o.take(n), o.take(t, 4), o.take(n), o.take(n), o.take(one_row),
                             tokens, width, 1e-5);
  });
  if (width <= widest_norm)
    write(s, "layer_norm_grad_add", n / one_row, width, 4 * one, [=](const lane& on, operands& o) {
      const auto t = static_cast<std::size_t>(tokens);
      cuda::layer_norm_grad_add<bf16>(on, o.take(n), o.take(one_row, 4), o.take(one_row, 4), o.take(n),
                                      o.take(n), o.take(2 * t, 4), o.take(one_row), o.take(n), tokens, width,
                                      true);
    });
  write(s, "bias_grad", n / one_row, width, one, [=](const lane& on, operands& o) {
    cuda::bias_grad<bf16>(on, o.take(one_row, 4), o.take(n), tokens, width, true);
  });
}

void of_logits(stand& s, int tokens, int vocab) {
  const std::size_t n = static_cast<std::size_t>(tokens) * vocab, t = static_cast<std::size_t>(tokens);
  const double one = 2.0 * static_cast<double>(n);
  const auto targets = [=](const lane& on, operands& o) {
    const at ids = o.take(t, 4);
    require(cudaMemsetAsync(on.at<std::byte>(ids), 0, 4 * t, on.stream));
    return ids;
  };
  write(s, "softmax_sums", t, vocab, one, [=](const lane& on, operands& o) {
    const at top = o.take(t, 4), sums = o.take(2 * t, 4), logits = o.take(n);
    cuda::softmax_sums<bf16>(on, top, sums, logits, targets(on, o), tokens, vocab);
  });
  write(s, "softmax_grad", t, vocab, 2 * one, [=](const lane& on, operands& o) {
    const at top = o.take(t, 4), sums = o.take(2 * t, 4), logits = o.take(n);
    cuda::softmax_grad<bf16>(on, logits, sums, logits, top, targets(on, o), tokens, vocab, 0, 1e-5);
  });
}

void of_parameters(stand& s, std::size_t count) {
  std::vector<runtime::range> ranges;
  for (std::size_t i = 0; i < 100; ++i) ranges.push_back({count / 100 * i, count / 100, i % 2 == 0});
  write(s, "sum_squares", count, 1, 4.0 * static_cast<double>(count), [=](const lane& on, operands& o) {
    cuda::sum_squares<bf16>(on, o.take(4), o.take(count, 4), ranges, false);
  });
  write(s, "adamw", count, 1, 30.0 * static_cast<double>(count), [=, &s](const lane& on, operands& o) {
    const at w = o.take(count, 4), g = o.take(count, 4), m = o.take(count, 4), v = o.take(count, 4);
    s.about_memory().working_copy = o.take(count);
    const at norm = o.take(1, 4);  // the squared norm of the gradients; with 0, the update still runs
    require(cudaMemsetAsync(on.at<std::byte>(norm), 0, 4, on.stream));
    cuda::adamw<bf16>(on, w, g, m, v, norm, ranges);
  });
}

}  // namespace

void write_passes(stand& s) {
  for (const auto& [tokens, width] : {std::pair{256, 768},
                                      {4096, 768},
                                      {65536, 768},
                                      {2048, 1600},
                                      {16384, 1600},
                                      {1024, 4096},
                                      {16384, 4096},
                                      {4096, 14336},
                                      {16384, 14336}})
    of_rows(s, tokens, width);
  of_logits(s, 4096, 50304);
  of_logits(s, 65536, 50304);
  of_logits(s, 16384, 128256);
  of_parameters(s, 124'000'000);
  of_parameters(s, 1'000'000'000);
}

}  // namespace rankc::calibrate
