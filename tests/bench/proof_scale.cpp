// SPDX-License-Identifier: Apache-2.0
// The generator of Llama 3 8B on as many ranks as one asks for, to measure the proof and the certificate:
//   proof_scale DP TP PP MICROBATCHES (1f1b | zero_bubble) COMMAND...
//   proof_scale 4 4 4 16 1f1b certificate --target cuda --dtype bf16 --out 64.json && time rankc verify 64.json
#include <rankc/codegen/generator.hpp>
#include <rankc/rankc.hpp>
#include <rankc/schedules/zero_bubble_v.hpp>

#include <cstdlib>
#include <cstring>

int main(int argc, char** argv) {
  using namespace rankc;
  if (argc < 7) return 2;
  const int dp = std::atoi(argv[1]), tp = std::atoi(argv[2]), pp = std::atoi(argv[3]), microbatches = std::atoi(argv[4]);
  const bool zero_bubble = !std::strcmp(argv[5], "zero_bubble");
  const models::llama model{.layers = 32, .hidden = 4096, .heads = 32, .kv_heads = 8, .ffn = 14336, .vocab = 128256};
  const parallel_dims dims{.world = dp * tp * pp, .dp_replicate = dp, .tp = tp, .pp = pp, .sequence_parallel = tp > 1};
  const training recipe{.seq = 8192, .global_batch = dp * microbatches, .precision = bf16};
  cluster machines = clusters::h200<1>;
  machines.nodes = (dims.world + machines.ranks_per_node - 1) / machines.ranks_per_node;
  const auto run = [&](const auto& schedule) {
    return codegen::generator_main(make_plan("llama3_8b", model, dims, schedule, recipe, machines), argc - 5, argv + 5);
  };
  return zero_bubble ? run(schedules::zero_bubble_v{microbatches}) : run(schedules::one_f_one_b{microbatches});
}
