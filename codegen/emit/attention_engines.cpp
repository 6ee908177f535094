// SPDX-License-Identifier: Apache-2.0
#include "attention_engines.hpp"

#include <fmt/format.h>
#include <rankc/cost_model/gpu_speed.hpp>
#include <rankc/ops/attention.hpp>

#include <algorithm>

#include "emit.hpp"

namespace rankc::codegen {

namespace {

bool is_attention(const node& n) { return n.row->find("q") >= 0 && n.row->find("lse") >= 0; }

/// The names of the attributes that are set: "window".
std::vector<std::string> names_of(const attention_setting& s) {
  std::vector<std::string> names;
  s.each_set([&](const char* name, double) { names.push_back(name); });
  return names;
}

/// Why cuDNN's kernels cannot compute a node's attention; empty if they can.
std::string why_not_cudnn(const lowered& l, const node& n, const op_sizes& sizes,
                          const cuda::attention_shape& shape) {
  const bool of_documents = n.row->find("starts") >= 0, of_chunks = shape.seq < sizes("seq");
  if (!shape.has_equal_heads())
    return fmt::format("their key heads have {} elements and their value heads {}, and cuDNN's take one size",
                       shape.dim, shape.value_dim);
  if (ops::sees_all_gathered(sizes, n.attention, *n.row, shape))
    return "their attention is not causal, and cuDNN's kernels are not given gathered keys for it";
  if (!n.attention.has_plain_scores())
    return fmt::format("their attention has a {}, which cuDNN's kernels are not given",
                       fmt::join(names_of(n.attention), " and a "));
  if (of_documents) return "tokens attend to their own documents, which cuDNN's are not given";
  if (of_chunks ? cuda::chunks_by_cudnn(shape) : cuda::attention_by_cudnn(shape)) return "";
  if (l.type != dtype::bf16) return fmt::format("they compute in {}", name_of(l.type));
  if (shape.dim % 8 != 0 || shape.dim > 128)
    return fmt::format("the head dim is {}, and cuDNN's take multiples of 8 up to 128", shape.dim);
  return fmt::format("a rank has {} tokens of a sequence, and cuDNN's take multiples of {}", shape.seq,
                     of_chunks ? 256 : 128);
}

attention_engine engine_of(const lowered& l, const body& b, const node& n) {
  const op_sizes sizes = rankc::lowering::sizes_of(b, n, ring_ranks(l.plan->dims));
  const cuda::attention_shape shape = ops::attention_shape(sizes, {l.real_bytes(), b.setting.deterministic});
  const bool of_documents = n.row->find("starts") >= 0, of_chunks = shape.seq < sizes("seq");
  attention_engine e{why_not_cudnn(l, n, sizes, shape)};
  if (of_documents || !n.attention.has_plain_scores()) {
    e.own_forward = e.own_gradient = ops::masks_on_tensor_cores(sizes, n.attention, shape);
    return e;
  }
  const bool by_tiles = e.by_cudnn() || !of_chunks;
  e.own_forward = by_tiles && cuda::attention_by_tiles(shape);
  e.own_gradient = by_tiles && cuda::attention_grad_by_tiles(shape);
  return e;
}

std::string text_of(const attention_engine& e) {
  const std::string layers = fmt::format("{} {}", e.layers, e.layers == 1 ? "layer" : "layers");
  if (!e.own_forward) return layers + (e.by_cudnn() ? " by cuDNN" : " by rankc's own kernels: " + e.because);
  if (!e.own_gradient) return layers + " by cuDNN, forward on H100s and H200s by rankc's kernels";
  return layers + " by rankc's kernels for H100s and H200s, on other GPUs by " +
         (e.by_cudnn() ? "cuDNN" : "slow ones: " + e.because);
}

}  // namespace

std::vector<attention_engine> attention_engines(const lowered& l) {
  std::vector<attention_engine> all;
  if (l.target != target::cuda) return all;
  for (const pipeline_rank& r : l.ranks)
    for (const stage_plan& s : r.stages)
      for (const layer_use& use : s.layers) {
        const body& b = l.bodies[static_cast<std::size_t>(use.kind)];
        const auto n = std::find_if(b.forward.begin(), b.forward.end(), is_attention);
        if (n == b.forward.end()) continue;
        const attention_engine engine = engine_of(l, b, *n);
        auto at = std::find_if(all.begin(), all.end(), [&](const attention_engine& e) {
          return e.because == engine.because && e.own_forward == engine.own_forward &&
                 e.own_gradient == engine.own_gradient;
        });
        if (at == all.end()) at = all.insert(all.end(), engine);
        ++at->layers;
      }
  return all;
}

std::string attention_text(const lowered& l) {
  std::string out;
  for (const attention_engine& e : attention_engines(l)) out += "attention: " + text_of(e) + "\n";
  return out;
}

std::string slow_attention(const lowered& l) {
  std::string out;
  for (const attention_engine& e : attention_engines(l))
    if (!e.by_cudnn() && !(e.own_gradient && cost_model::is_hopper(l.plan->machines.gpu)) &&
        l.type == dtype::bf16)
      out += (out.empty() ? "attention of " : "; of ") + text_of(e);
  return out.empty() ? "" : out + "; these are several times slower";
}

}  // namespace rankc::codegen
