// SPDX-License-Identifier: Apache-2.0
// Steps that others published of their own programs, beside what rankc's would take.
#include <doctest/doctest.h>

#include <rankc/make_plan.hpp>
#include <rankc/rankc.hpp>
#include <rankc/schedules/interleaved_one_f_one_b.hpp>
#include <rankc/step_time.hpp>

#include <cmath>
#include <cstdio>
#include <utility>

using namespace rankc;

namespace {

constexpr models::llama llama3(int layers, int hidden, int heads, int ffn) {
  return {.layers = layers, .hidden = hidden, .heads = heads, .kv_heads = 8, .ffn = ffn, .vocab = 128256};
}

/// Units: seconds. Returns how far off.
double compare(const char* name, const plan_data& p, double seconds) {
  REQUIRE(accepts(p.diagnostics));
  const double predicted = cost_model::predict_step(p, cost_model::h100).step;
  std::printf("%-40s %7.2f s, predicted %7.2f: %+5.1f %%\n", name, seconds, predicted, 100 * (predicted / seconds - 1));
  return std::abs(predicted / seconds - 1);
}

}  // namespace

// NeMo on DGX H100s (github.com/NVIDIA/dgxc-benchmarking, 85380ff, llama3.1/README.md): ring attention where these exchange heads,
// the optimizer's state sharded, recomputation not stated and taken to be none. No constant is by these.
TEST_CASE("bf16 steps of Llama 3 on H100s that are published are near what is predicted") {
  const auto recipe = [](int batch) { return training{.seq = 8192, .global_batch = batch, .precision = bf16}; };
  const models::llama small = llama3(32, 4096, 32, 14336), large = llama3(80, 8192, 64, 28672);
  double off = 0;
  for (const auto& [gpus, seconds] : {std::pair{8, 12.27}, {128, 12.33}})
    off += compare("8B, cp 2", make_plan("8b", small, {.world = gpus, .dp_shard = gpus / 2, .cp = 2, .ulysses = 2, .reshard = reshard::after_step},
                                         schedules::one_f_one_b{32}, recipe(16 * gpus), cluster{gpus / 8, 8, 0, 989e12, 450e9, 50e9, "h100"}),
                   seconds);
  for (const auto& [gpus, seconds] : {std::pair{64, 14.66}, {512, 14.67}})
    off += compare("70B, tp 4, pp 4, cp 2",
                   make_plan("70b", large, {.world = gpus, .dp_shard = gpus / 32, .cp = 2, .tp = 4, .pp = 4, .ulysses = 2, .sequence_parallel = true},
                             schedules::interleaved_one_f_one_b{.microbatches = 64, .stages_per_rank = 5}, recipe(2 * gpus),
                             cluster{gpus / 8, 8, 0, 989e12, 450e9, 50e9, "h100"}),
                   seconds);
  CHECK(off / 4 < 0.06);
}
