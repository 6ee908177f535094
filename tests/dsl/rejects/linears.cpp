// SPDX-License-Identifier: Apache-2.0
// RC261: fp8 linear layers with a wrong recipe, or without a GPU in the cluster that multiplies fp8.
#include "reject.hpp"

constexpr auto narrowed(int hidden, int ffn, const cluster& machines, parallel_dims dims = {},
                        linear_precision linears = fp8) {
  return plan{.model = models::gpt2{.layers = 1, .hidden = hidden, .heads = 2, .ffn = ffn, .vocab = 64},
              .dims = dims,
              .schedule = one_microbatch,
              .recipe = training{.seq = 16, .global_batch = 4, .precision = f32, .linears = linears},
              .cluster = machines};
}

inline constexpr auto rc261_sizes = narrowed(fault(24, 32), 40, clusters::cpu);
// error: RC261: linears=fp8, and no linear layer of a repeated layer has multiples of 16 of tokens, inputs
//        and outputs on each rank; leave it out, or take such sizes
static_assert(valid<rc261_sizes>);

inline constexpr auto rc261_sizes_of_a_rank =
    narrowed(16, 16, clusters::cpu, {.world = fault(2, 1), .tp = fault(2, 1)});
// error: RC261: linears=fp8, and no linear layer of a repeated layer has multiples of 16 of tokens, inputs
//        and outputs on each rank; leave it out, or take such sizes
static_assert(valid<rc261_sizes_of_a_rank>);

inline constexpr auto rc261_gpu = narrowed(32, 64, fault(clusters::a100<1>, clusters::h100<1>));
// error: RC261: linears=fp8, but an a100 has no fp8 tensor cores; leave it out, or take clusters::h100, h200,
//        b200 or gb200
static_assert(valid<rc261_gpu>);

inline constexpr auto rc261_gpu_of_rows =
    narrowed(32, 64, fault(clusters::b200<1>, clusters::h200<1>), {}, fp8_rows);
// error: RC261: linears=fp8_rows, but cuBLASLt has no GEMM with a scale for each row on a b200; take
//        linears=fp8
static_assert(valid<rc261_gpu_of_rows>);
