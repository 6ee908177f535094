// SPDX-License-Identifier: Apache-2.0
// Attention of heads of 64 elements on Hopper's tensor cores, and its gradient. The latter is two kernels, so
// that every sum has one owner and a fixed order: dq of tiles of queries, which meet their keys; dk and dv of
// tiles of keys, which meet the queries that see them. Weights and their gradients never leave registers:
// each kernel makes them anew.
#include "attention_hopper.hpp"

#include "hopper_forward.cuh"
#include "hopper_keys_gradient.cuh"
#include "hopper_queries_gradient.cuh"

#include <cmath>

namespace rankc::runtime::cuda {
namespace {

using namespace hopper;

/// What a pass has: its block, how many fill a place of an item, and registers of each thread that
/// multiplies, and of the others.
template <class Pass>
__global__ void __launch_bounds__(Pass::block::threads, 1)
    attend(const __grid_constant__ attention_maps of, Pass pass) {
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

CUtensorMap map_of(const lane& on, at x, std::int64_t apart, int tokens, const attention_sizes& s, int heads,
                   int stride) {
  return tensor_map(on, on.at<bf16>(x), static_cast<std::size_t>((s.rows - 1) * apart + tokens),
                    heads * s.dim, stride);
}
CUtensorMap map_of_queries(const lane& on, at x, const attention_sizes& s, int stride) {
  return map_of(on, x, s.queries_apart(), s.seq, s, s.heads, stride);
}
CUtensorMap map_of_keys(const lane& on, at x, const attention_sizes& s) {
  return map_of(on, x, s.keys_apart(), s.n_keys(), s, s.kv_heads, s.kv_stride);
}

attention_call call_of(const attention_sizes& s) {
  return {.rows = s.rows,
          .heads = s.heads,
          .kv_heads = s.kv_heads,
          .heads_each = s.heads / s.kv_heads,
          .query_tiles = s.seq / box_side,
          .key_tiles = s.n_keys() / box_side,
          .queries_apart = static_cast<int>(s.queries_apart()),
          .keys_apart = static_cast<int>(s.keys_apart()),
          .scale = 1.0f / std::sqrt(static_cast<float>(s.dim)),
          .causal = s.is_causal()};
}

}  // namespace

bool is_for_hopper(const lane& on, bool gradient, const attention_sizes& s) {
  const attention_shape shape = shape_of(on, s);
  return (gradient ? attention_grad_by_tiles(shape) : attention_by_tiles(shape)) && s.seq % box_side == 0 &&
         s.n_keys() % box_side == 0 && is_hopper(on);
}

bool attention_hopper(const lane& on, at o, at lse, at q, at k, at v, const attention_sizes& s) {
  if (!is_for_hopper(on, false, s) || !is_aligned(on, s, {o, q, k, v})) return false;
  const attention_maps of{
      .q = map_of_queries(on, q, s, s.q_stride), .k = map_of_keys(on, k, s), .v = map_of_keys(on, v, s)};
  run(on, "attention", of, forward{call_of(s), on.at<bf16>(o), on.at<float>(lse), s.o_stride});
  return true;
}

bool attention_grad_hopper(const lane& on, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v, at o,
                           at lse, const attention_sizes& s) {
  if (!is_for_hopper(on, true, s) || !is_aligned(on, s, {dq, dk, dv, scratch, dout, q, k, v, o}))
    return false;
  const attention_maps of{.q = map_of_queries(on, q, s, s.q_stride),
                          .k = map_of_keys(on, k, s),
                          .v = map_of_keys(on, v, s),
                          .dout = map_of_queries(on, dout, s, s.o_stride)};
  const attention_call z = call_of(s);
  const query_statistics statistics{on.at<float2>(scratch)};
  run(on, "attention_grad", of,
      queries_gradient{z, on.at<bf16>(dq), on.at<bf16>(dout), on.at<bf16>(o), on.at<float>(lse), statistics,
                       s.q_stride, s.o_stride});
  run(on, "attention_grad", of, keys_gradient{z, on.at<bf16>(dk), on.at<bf16>(dv), statistics, s.kv_stride});
  return true;
}

}  // namespace rankc::runtime::cuda
