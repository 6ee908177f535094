// SPDX-License-Identifier: Apache-2.0
// The generator for a Llama 3 on any number of ranks, to measure the proof, the check of equivalence
// and the certificate:
//   proof_scale (8b | 70b | 405b) DP TP PP MICROBATCHES (1f1b | zero_bubble) COMMAND...
//   proof_scale 8b 4 4 4 16 1f1b certificate --target cuda --dtype bf16 --out 64.json && time rankc verify
//   64.json
#include <rankc/codegen/generator.hpp>
#include <rankc/rankc.hpp>
#include <rankc/schedules/zero_bubble_v.hpp>

#include <cstdlib>
#include <cstring>
#include <string>

/// Llama 3 405b, 70b or, for any other text, 8b.
/// Source: Llama Team 2024, arXiv:2407.21783, table 3.
static rankc::models::llama llama3_of(const std::string& size) {
  if (size == "405b")
    return {.layers = 126, .hidden = 16384, .heads = 128, .kv_heads = 8, .ffn = 53248, .vocab = 128256};
  if (size == "70b")
    return {.layers = 80, .hidden = 8192, .heads = 64, .kv_heads = 8, .ffn = 28672, .vocab = 128256};
  return {.layers = 32, .hidden = 4096, .heads = 32, .kv_heads = 8, .ffn = 14336, .vocab = 128256};
}

int main(int argc, char** argv) {
  using namespace rankc;
  if (argc < 8) return 2;
  const std::string size = argv[1];
  const int dp = std::atoi(argv[2]), tp = std::atoi(argv[3]), pp = std::atoi(argv[4]),
            microbatches = std::atoi(argv[5]);
  const bool zero_bubble = !std::strcmp(argv[6], "zero_bubble");
  const models::llama model = llama3_of(size);
  const parallel_dims dims{
      .world = dp * tp * pp, .dp_replicate = dp, .tp = tp, .pp = pp, .sequence_parallel = tp > 1};
  const training recipe{.seq = 8192, .global_batch = dp * microbatches, .precision = bf16};
  cluster machines = clusters::h200<1>;
  machines.memory = 0;  // memory is not checked here
  machines.nodes = (dims.world + machines.ranks_per_node - 1) / machines.ranks_per_node;
  const auto run = [&](const auto& schedule) {
    return codegen::generator_main(make_plan("llama3_" + size, model, dims, schedule, recipe, machines),
                                   argc - 6, argv + 6);
  };
  return zero_bubble ? run(schedules::zero_bubble_v{microbatches})
                     : run(schedules::one_f_one_b{microbatches});
}
