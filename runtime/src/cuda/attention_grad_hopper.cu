// SPDX-License-Identifier: Apache-2.0
// The gradient of attention, of heads of 64 elements, on Hopper's tensor cores. Two kernels, so that every sum has one
// owner and a fixed order: dq of tiles of queries, which meet their keys; dk and dv of tiles of keys, which meet the
// queries that see them. Weights and their gradients never leave registers: each kernel makes them anew.
#include "attention_grad_hopper.hpp"

#include "hopper_keys_gradient.cuh"
#include "hopper_queries_gradient.cuh"

#include <cmath>

namespace rankc::cuda {
namespace {

using namespace hopper;

/// What a gradient has: its block, how many fill a place of an item, and registers of each thread that multiplies, and of
/// the others.
template <class Gradient>
__global__ void __launch_bounds__(Gradient::block::threads, 1) make_gradient(const __grid_constant__ attention_maps of, Gradient g) {
  const attention_memory<typename Gradient::block> memory;
  auto stages = memory.stages();
  auto items = memory.items();
  if (threadIdx.x == 0) {
    stages.make(1);
    items.make(Gradient::fillers);
    publish_barriers();
  }
  __syncthreads();
  const int warp = multiplying_warp();
  if (warp < 0) {
    give_back_registers<Gradient::others_registers>();
    g.fill(of, memory, stages, items, warp + warps_of_group);
  } else {
    take_registers<Gradient::registers>();
    g.multiply(memory, stages, items, warp);
  }
}

template <class Gradient>
void run(const lane& on, const attention_maps& of, const Gradient& g) {
  launch(on, "attention_grad", make_gradient<Gradient>, processors, Gradient::block::threads, Gradient::block::shared_bytes, of, g);
}

}  // namespace

bool attention_grad_hopper(const lane& on, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v, at o, at lse,
                           const attention_sizes& s) {
  if (!attention_grad_by_tiles(shape_of(on, s)) || s.seq % box_side != 0 || s.n_keys() % box_side != 0 || !is_hopper(on) ||
      !is_aligned(on, s, {dq, dk, dv, scratch, dout, q, k, v, o}))
    return false;
  const auto map = [&](at x, std::int64_t apart, int tokens, int heads, int stride) {
    return tensor_map(on, on.at<bf16>(x), static_cast<std::size_t>((s.rows - 1) * apart + tokens), heads * s.dim, stride);
  };
  const attention_maps of{.q = map(q, s.queries_apart(), s.seq, s.heads, s.q_stride),
                          .k = map(k, s.keys_apart(), s.n_keys(), s.kv_heads, s.kv_stride),
                          .v = map(v, s.keys_apart(), s.n_keys(), s.kv_heads, s.kv_stride),
                          .dout = map(dout, s.queries_apart(), s.seq, s.heads, s.o_stride)};
  const attention_call z{.rows = s.rows, .heads = s.heads, .kv_heads = s.kv_heads, .heads_each = s.heads / s.kv_heads,
                         .query_tiles = s.seq / box_side, .key_tiles = s.n_keys() / box_side, .queries_apart = static_cast<int>(s.queries_apart()),
                         .keys_apart = static_cast<int>(s.keys_apart()), .scale = 1.0f / std::sqrt(static_cast<float>(s.dim)),
                         .causal = s.is_causal()};
  const query_statistics statistics{on.at<float2>(scratch)};
  run(on, of, queries_gradient{z, on.at<bf16>(dq), on.at<bf16>(dout), on.at<bf16>(o), on.at<float>(lse), statistics, s.q_stride, s.o_stride});
  run(on, of, keys_gradient{z, on.at<bf16>(dk), on.at<bf16>(dv), statistics, s.kv_stride});
  return true;
}

}  // namespace rankc::cuda
