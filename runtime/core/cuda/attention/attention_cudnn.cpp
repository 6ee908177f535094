// SPDX-License-Identifier: Apache-2.0
// Attention and its gradient as cuDNN operation graphs, in the patterns that its fused attention engines
// support.
// Source: FlashAttention (Dao et al. 2022); cuDNN graph API, fused attention forward and backward patterns.
#include "attention_graph.hpp"
#include "attention_plans.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <map>
#include <string>
#include <utility>

namespace rankc::runtime::cuda {

struct attention_plans {
  cudnnHandle_t handle = nullptr;
  std::map<std::pair<bool, attention_sizes>, attention_plan> by_sizes;  // key: true for the gradient; sizes
  ~attention_plans() {
    by_sizes.clear();
    if (handle != nullptr) check_teardown(cudnnDestroy(handle), "cudnnDestroy");
  }
};

attention_plans* make_attention_plans() { return new attention_plans; }
void destroy(attention_plans* plans) { delete plans; }

namespace {

/// The ids of a plan's operands.
enum id : std::int64_t { id_q = 1, id_k, id_v, id_o, id_lse, id_dout, id_dq, id_dk, id_dv };
enum : std::int64_t { id_scale = 20, id_masked, id_one, id_delta, id_dq_sum };

/// The tensors of a call, with dims in cuDNN's order: (rows, heads, tokens, dim).
struct graph_tensors {
  attention_graph& g;
  const attention_sizes& s;
  extents query() const { return {s.rows, s.heads, s.seq, s.dim}; }
  extents scores() const { return {s.rows, s.heads, s.seq, s.n_keys()}; }
  extents per_token() const { return {s.rows, s.heads, s.seq, 1}; }
  std::int64_t row(std::int64_t stride) const { return s.queries_apart() * stride; }
  std::int64_t row_of_keys() const { return s.keys_apart() * s.k_stride; }

  tensor queries(std::int64_t id) {
    return g.operand(id, CUDNN_DATA_BFLOAT16, query(), {row(s.q_stride), s.dim, s.q_stride, 1});
  }
  tensor outputs(std::int64_t id) {
    return g.operand(id, CUDNN_DATA_BFLOAT16, query(), {row(s.o_stride), s.dim, s.o_stride, 1});
  }
  tensor keys(std::int64_t id) {
    return g.operand(id, CUDNN_DATA_BFLOAT16, {s.rows, s.kv_heads, s.n_keys(), s.dim},
                     {row_of_keys(), s.dim, s.k_stride, 1});
  }
  tensor keys_transposed(std::int64_t id) {
    return g.operand(id, CUDNN_DATA_BFLOAT16, {s.rows, s.kv_heads, s.dim, s.n_keys()},
                     {row_of_keys(), s.dim, 1, s.k_stride});
  }
  tensor statistics(std::int64_t id) {
    return g.operand(id, CUDNN_DATA_FLOAT, per_token(), {row(s.o_stride / s.dim), s.queries_apart(), 1, 1});
  }
};

/// o = softmax(mask(scale q k^T)) v, and lse = max + log(sum of exp).
void describe_forward(attention_graph& g, const attention_sizes& s) {
  graph_tensors of{g, s};
  const tensor q = of.queries(id_q), k = of.keys_transposed(id_k), v = of.keys(id_v);
  const tensor products = g.matmul(q, k, of.scores());
  const tensor scaled = g.pointwise(CUDNN_POINTWISE_MUL, products, g.number(id_scale));
  const tensor seen = s.is_causal() ? g.causal(scaled, g.number(id_masked)) : scaled;
  const tensor top = g.reduce(CUDNN_REDUCE_TENSOR_MAX, seen, of.per_token());
  const tensor below = g.pointwise(CUDNN_POINTWISE_SUB, seen, top);
  const tensor weights = g.pointwise(CUDNN_POINTWISE_EXP, below);
  const tensor total = g.reduce(CUDNN_REDUCE_TENSOR_ADD, weights, of.per_token());
  const tensor log_total = g.pointwise(CUDNN_POINTWISE_LOG, total);
  g.pointwise_to(of.statistics(id_lse), CUDNN_POINTWISE_ADD, top, log_total);
  const tensor p = g.pointwise(CUDNN_POINTWISE_DIV, weights, total, CUDNN_DATA_BFLOAT16);
  g.matmul_to(of.outputs(id_o), p, v);
}

/// delta = sum of dout o; p = exp(score - lse); dv = p^T dout; ds = scale p (dout v^T - delta); dk = ds^T q;
/// dq = ds k. Without `deterministic`, dq is accumulated in an f32 buffer in no fixed order.
void describe_gradient(attention_graph& g, const attention_sizes& s, bool deterministic) {
  graph_tensors of{g, s};
  const std::int64_t n_keys = s.n_keys();
  const extents flipped{s.heads * s.seq * n_keys, s.seq * n_keys, 1, n_keys};
  const extents per_head{s.rows, s.heads, n_keys, s.dim};
  const tensor q = of.queries(id_q), k = of.keys_transposed(id_k), v = of.keys_transposed(id_v),
               dout = of.outputs(id_dout), o = of.outputs(id_o), lse = of.statistics(id_lse),
               scale = g.number(id_scale);

  const tensor delta = of.statistics(id_delta);
  const tensor dout_o = g.pointwise(CUDNN_POINTWISE_MUL, dout, o);
  const tensor delta_sum = g.reduce(CUDNN_REDUCE_TENSOR_ADD, dout_o, of.per_token());
  g.pointwise_to(delta, CUDNN_POINTWISE_MUL, delta_sum, g.number(id_one));

  const tensor products = g.matmul(q, k, of.scores());
  const tensor scaled = g.pointwise(CUDNN_POINTWISE_MUL, products, scale);
  const tensor below = g.pointwise(CUDNN_POINTWISE_SUB, scaled, lse);
  const tensor seen = s.is_causal() ? g.causal(below, g.number(id_masked)) : below;
  const tensor p = g.pointwise(CUDNN_POINTWISE_EXP, seen);
  const tensor p_flipped = g.transposed(p, flipped);
  /// result = a b, summed over the query heads that share a key head.
  const auto into_keys = [&](tensor result, tensor a, tensor b) {
    if (s.heads == s.kv_heads) return g.matmul_to(result, a, b);
    g.reduce_to(result, CUDNN_REDUCE_TENSOR_ADD, g.matmul(a, b, per_head, CUDNN_DATA_BFLOAT16));
  };
  into_keys(of.keys(id_dv), p_flipped, dout);

  const tensor dp = g.matmul(dout, v, of.scores());
  const tensor centred = g.pointwise(CUDNN_POINTWISE_SUB, dp, delta);
  const tensor weighted = g.pointwise(CUDNN_POINTWISE_MUL, centred, p);
  const tensor ds = g.pointwise(CUDNN_POINTWISE_MUL, weighted, scale);
  into_keys(of.keys(id_dk), g.transposed(ds, flipped), q);

  const tensor k_again = g.transposed(k, {of.row_of_keys(), s.dim, s.k_stride, 1});
  if (deterministic) return g.matmul_to(of.queries(id_dq), ds, k_again);
  const tensor dq_sum =
      g.operand(id_dq_sum, CUDNN_DATA_FLOAT, of.query(),
                {std::int64_t{s.heads} * s.seq * s.dim, std::int64_t{s.seq} * s.dim, s.dim, 1});
  g.matmul_to(dq_sum, ds, k_again);
  g.pointwise_to(of.queries(id_dq), CUDNN_POINTWISE_IDENTITY, dq_sum);
}

bool has_kernel(const attention_shape& shape, const attention_sizes& s) {
  return attention_by_cudnn(shape) && s.seq % 128 == 0 && s.n_keys() % 128 == 0;
}

/// The rank's plan for these sizes, made at the first call; null if cuDNN offers no plan.
const attention_plan* find_plan(const lane& on, bool gradient, const attention_sizes& s, std::size_t limit) {
  attention_plans& plans = *on.attention_graphs;
  auto kept = plans.by_sizes.find({gradient, s});
  if (kept == plans.by_sizes.end()) {
    if (plans.handle == nullptr) {
      check(on, cudnnCreate(&plans.handle), "cudnnCreate");
      check(on, cudnnSetStream(plans.handle, on.stream), "cudnnSetStream");
    }
    attention_graph g(on);
    if (gradient) describe_gradient(g, s, on.of->about->deterministic);
    else describe_forward(g, s);
    attention_plan made = g.plan(plans.handle, limit, on.of->about->deterministic);
    kept = plans.by_sizes.emplace(std::pair(gradient, s), std::move(made)).first;
  }
  return kept->second.of == nullptr ? nullptr : &kept->second;
}
const attention_plan* plan_for(const lane& on, bool gradient, const attention_sizes& s, std::size_t limit) {
  const attention_plan* plan = find_plan(on, gradient, s, limit);
  if (plan != nullptr && plan->workspace > limit)
    fail(on, "RC5109: {}: cuDNN needs a workspace of {} bytes; {} are planned",
         gradient ? "attention_grad" : "attention", plan->workspace, limit);
  return plan;
}

/// The sizes of the part of a gradient that one cuDNN call computes.
attention_sizes part_of(const attention_shape& shape, const attention_sizes& s) {
  const attention_part part = attention_grad_part(shape);
  attention_sizes of = s;
  of.rows = part.rows;
  of.kv_heads = part.kv_heads;
  of.heads = part.kv_heads * (s.heads / s.kv_heads);
  return of;
}
/// The size of the f32 buffer in which dq is accumulated.
/// Units: bytes.
std::size_t dq_sum_bytes(const attention_shape& shape, const attention_sizes& part) {
  return shape.deterministic ? 0 : sizeof(float) * part.rows * part.heads * part.seq * part.dim;
}

/// The addresses of one run of a plan.
class arguments {
 public:
  void add(std::int64_t id, const void* address) {
    ids_.push_back(id);
    addresses_.push_back(const_cast<void*>(address));
  }
  void run(const lane& on, const char* name, const attention_plan& plan, void* workspace) const {
    cudnnBackendDescriptor_t pack = nullptr;
    check(on, cudnnBackendCreateDescriptor(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &pack), name);
    const descriptor owner(pack);
    const auto count = static_cast<std::int64_t>(ids_.size());
    check(on,
          cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count,
                                   ids_.data()),
          name);
    check(on,
          cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count,
                                   addresses_.data()),
          name);
    check(
        on,
        cudnnBackendSetAttribute(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace),
        name);
    check(on, cudnnBackendFinalize(pack), name);
    check(on, cudnnBackendExecute(on.attention_graphs->handle, plan.of.get(), pack), name);
  }

 private:
  std::vector<std::int64_t> ids_;
  std::vector<void*> addresses_;
};

constexpr float masked = -std::numeric_limits<float>::infinity();
constexpr float one = 1.0f;

}  // namespace

bool has_attention_plan(const lane& on, bool gradient, const attention_sizes& s) {
  const attention_shape shape = shape_of(on, s);
  if (!has_kernel(shape, s)) return false;
  const attention_sizes part = gradient ? part_of(shape, s) : s;
  const std::size_t limit =
      gradient ? attention_grad_workspace(shape) - dq_sum_bytes(shape, part) : attention_scratch(shape);
  const attention_plan* plan = find_plan(on, gradient, part, limit);
  return plan != nullptr && plan->workspace <= limit;
}

bool attention_cudnn(const lane& on, at o, at lse, at scratch, at q, at k, at v, const attention_sizes& s) {
  const attention_shape shape = shape_of(on, s);
  if (!has_kernel(shape, s) || !is_readable(on, s, {o, lse, q, k, v})) return false;
  const attention_plan* plan = plan_for(on, false, s, attention_scratch(shape));
  if (plan == nullptr) return false;
  const float scale = 1.0f / std::sqrt(static_cast<float>(s.dim));
  arguments with;
  with.add(id_q, on.at<bf16>(q));
  with.add(id_k, on.at<bf16>(k));
  with.add(id_v, on.at<bf16>(v));
  with.add(id_o, on.at<bf16>(o));
  with.add(id_lse, on.at<float>(lse));
  with.add(id_scale, &scale);
  if (s.is_causal()) with.add(id_masked, &masked);
  with.run(on, "attention", *plan, on.at<std::byte>(scratch));
  return true;
}

bool attention_grad_cudnn(const lane& on, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v, at o,
                          at lse, const attention_sizes& s) {
  const attention_shape shape = shape_of(on, s);
  if (!has_kernel(shape, s) || !is_readable(on, s, {dq, dk, dv, dout, q, k, v, o, lse})) return false;
  const attention_sizes of_part = part_of(shape, s);
  const std::size_t dq_bytes = dq_sum_bytes(shape, of_part);
  const attention_plan* plan = plan_for(on, true, of_part, attention_grad_workspace(shape) - dq_bytes);
  if (plan == nullptr) return false;

  const float scale = 1.0f / std::sqrt(static_cast<float>(s.dim));
  const at sums = scratch + attention_delta_bytes(shape);
  for (int row = 0; row < s.rows; row += of_part.rows)
    for (int kv_head = 0; kv_head < s.kv_heads; kv_head += of_part.kv_heads) {
      const int head = kv_head * (s.heads / s.kv_heads);
      const std::size_t token = static_cast<std::size_t>(row * s.queries_apart()),
                        query = token * s.q_stride + head * s.dim,
                        key = static_cast<std::size_t>(row * s.keys_apart()) * s.k_stride + kv_head * s.dim,
                        output = token * s.o_stride + head * s.dim,
                        statistic = (static_cast<std::size_t>(row) * s.heads + head) *
                                    static_cast<std::size_t>(s.queries_apart());
      arguments with;
      with.add(id_q, on.at<bf16>(q) + query);
      with.add(id_k, on.at<bf16>(k) + key);
      with.add(id_v, on.at<bf16>(v) + key);
      with.add(id_o, on.at<bf16>(o) + output);
      with.add(id_lse, on.at<float>(lse) + statistic);
      with.add(id_dout, on.at<bf16>(dout) + output);
      with.add(id_dq, on.at<bf16>(dq) + query);
      with.add(id_dk, on.at<bf16>(dk) + key);
      with.add(id_dv, on.at<bf16>(dv) + key);
      with.add(id_scale, &scale);
      if (s.is_causal()) with.add(id_masked, &masked);
      with.add(id_one, &one);
      with.add(id_delta, on.at<float>(scratch));
      if (!shape.deterministic) with.add(id_dq_sum, on.at<float>(sums));
      with.run(on, "attention_grad", *plan, on.at<std::byte>(sums + dq_bytes));
    }
  return true;
}

}  // namespace rankc::runtime::cuda
