// SPDX-License-Identifier: Apache-2.0
// The launch of an attention pass on Hopper. One warpgroup fills shared memory, and the others multiply.
#pragma once
#include "attention_fused.hpp"
#include "hopper_forward.cuh"
#include "hopper_keys_gradient.cuh"
#include "hopper_queries_gradient.cuh"

#include <cmath>

namespace rankc::runtime::cuda::hopper {

template <class Pass>
__global__ void __launch_bounds__(Pass::block::threads, 1)
    attend(const __grid_constant__ attention_maps of, const __grid_constant__ Pass pass) {
  const attention_memory<typename Pass::block> memory;
  auto stages = memory.stages();
  auto items = memory.items();
  if (threadIdx.x == 0) {
    stages.make(1);
    items.make(Pass::fillers);
    publish_barriers();
  }
  __syncthreads();
  const int warp = multiplying_warp();
  if (warp < 0) {
    give_back_registers<Pass::others_registers>();
    pass.fill(of, memory, stages, items, warp + warps_of_group);
  } else {
    take_registers<Pass::registers>();
    pass.multiply(memory, stages, items, warp);
  }
}

template <class Pass>
void run(const lane& on, const char* name, const attention_maps& of, const Pass& pass) {
  launch(on, name, attend<Pass>, processors, Pass::block::threads, Pass::block::shared_bytes, of, pass);
}

/// The sizes of a call. `scale` 0: 1 / sqrt(dim).
inline attention_call call_of(const attention_sizes& s, float scale = 0.0f) {
  return {.rows = s.rows,
          .heads = s.heads,
          .kv_heads = s.kv_heads,
          .heads_each = s.heads / s.kv_heads,
          .queries_apart = static_cast<int>(s.queries_apart()),
          .scale = scale != 0.0f ? scale : 1.0f / std::sqrt(static_cast<float>(s.dim))};
}

/// The operands of a call in device memory.
struct attention_operands {
  at q, k, v, o, lse, dout = {}, dq = {}, dk = {}, dv = {}, statistics = {};
};

template <int Parts, class Sight>
void run_forward(const lane& on, const attention_maps& of, const attention_operands& x,
                 const attention_sizes& s, const attention_call& z, const Sight& sight) {
  run(on, "attention", of,
      forward<Parts, Sight>(z, sight, on.at<bf16>(x.o), on.at<float>(x.lse), s.o_stride));
}

/// Launches the two kernels of the gradient. There are two, so that every sum has one owner and a fixed
/// order. One computes dq, by tiles of queries with the keys that they see. The other computes dk and dv, by
/// tiles of keys with the queries that see them. Weights and their gradients stay in registers, so each
/// kernel computes them.
template <int Parts, class Sight>
void run_gradient(const lane& on, const attention_maps& of, const attention_operands& x,
                  const attention_sizes& s, const attention_call& z, const Sight& sight) {
  const query_statistics statistics{on.at<float2>(x.statistics), sight.query_tiles};
  run(on, "attention_grad", of,
      queries_gradient<Parts, Sight>(z, sight, on.at<bf16>(x.dq), on.at<bf16>(x.dout), on.at<bf16>(x.o),
                                     on.at<float>(x.lse), statistics, s.q_stride, s.o_stride));
  run(on, "attention_grad", of,
      keys_gradient<Parts, Sight>(z, sight, on.at<bf16>(x.dk), on.at<bf16>(x.dv), statistics, s.k_stride));
}

}  // namespace rankc::runtime::cuda::hopper
