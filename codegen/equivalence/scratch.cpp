// SPDX-License-Identifier: Apache-2.0
#include "scratch.hpp"

#include <rankc/codegen/scratch_writes.hpp>
#include <rankc/contract/attention_scratch.hpp>
#include <rankc/contract/kernel_scratch.hpp>

#include <algorithm>

#include "contents.hpp"
#include "refusal.hpp"

namespace rankc::codegen::algebra {

namespace {

using runtime::cuda::attention_shape;

const view& port_of(const op& o, std::string_view name) {
  return *std::find_if(o.views.begin(), o.views.end(), [&](const view& v) { return v.port == name; });
}
std::size_t columns_of(const op& o, std::string_view name) {
  return static_cast<std::size_t>(port_of(o, name).shape[1]);
}

/// The number of rows of a tensor for each sequence.
std::size_t per_sequence(const op& o, std::string_view name) {
  return static_cast<std::size_t>(port_of(o, name).shape[0] / std::max<std::int64_t>(o.rows, 1));
}
std::size_t element_of(const op& o) {
  return static_cast<std::size_t>(
      size_of(o.reads[static_cast<std::size_t>(port_of(o, "q").accesses.first)].type));
}
attention_shape shape_of(const op& o, const kernel_set& calls) {
  const auto heads = [&](std::string_view name) {
    return static_cast<int>(port_of(o, name).shape[1] / port_of(o, name).unit);
  };
  return {.rows = static_cast<int>(o.rows),
          .seq = static_cast<int>(per_sequence(o, "q")),
          .heads = heads("q"),
          .kv_heads = heads("k"),
          .dim = static_cast<int>(port_of(o, "q").unit),
          .value_dim = static_cast<int>(port_of(o, "v").unit),
          .element = element_of(o),
          .deterministic = calls.deterministic};
}

std::size_t window_of(const op& o) { return static_cast<std::size_t>(std::max(o.attention.window, 0)); }
std::size_t host_attention(const op& o) {
  return runtime::host::attention_scratch(per_sequence(o, "q"), per_sequence(o, "k"), element_of(o),
                                          window_of(o));
}
std::size_t host_attention_grad(const op& o) {
  return runtime::host::attention_grad_scratch(per_sequence(o, "q"), per_sequence(o, "k"), element_of(o),
                                               window_of(o));
}
// Ring attention has scores for all keys of a step, because a block of queries may have tokens of both
// chunks.
std::size_t host_ring_attention(const op& o) {
  return runtime::host::attention_scratch(per_sequence(o, "q"), per_sequence(o, "k"), element_of(o));
}
std::size_t host_ring_attention_grad(const op& o) {
  return runtime::host::attention_grad_scratch(per_sequence(o, "q"), per_sequence(o, "k"), element_of(o));
}
std::size_t limited_arrangement(const op& o) {
  return runtime::limited_arrangement_scratch(static_cast<std::size_t>(o.rows), columns_of(o, "offsets"));
}

/// The bytes of scratch that a row's kernels use.
struct need {
  std::string_view row;
  std::size_t (*on_host)(const op&);
  std::size_t (*on_gpu)(const op&, const kernel_set&);
};

std::size_t gpu_limited_arrangement(const op& o, const kernel_set&) { return limited_arrangement(o); }
template <std::size_t Bytes(const attention_shape&)>
constexpr std::size_t gpu_attention(const op& o, const kernel_set& calls) {
  return Bytes(shape_of(o, calls));
}
std::size_t host_statistics(const op& o) {
  return runtime::host::statistics_scratch(columns_of(o, "logits"));
}
std::size_t gpu_statistics(const op& o, const kernel_set&) {
  return runtime::cuda::statistics_scratch(columns_of(o, "logits"));
}

constexpr auto forward = gpu_attention<runtime::cuda::attention_scratch>,
               backward = gpu_attention<runtime::cuda::attention_grad_scratch>,
               of_chunks = gpu_attention<runtime::cuda::chunk_attention_scratch>,
               backward_of_chunks = gpu_attention<runtime::cuda::chunk_attention_grad_scratch>,
               backward_in_documents = gpu_attention<runtime::cuda::document_attention_grad_scratch>;

constexpr need needs[]{
    {"attention", host_attention, forward},
    {"attention_grad", host_attention_grad, backward},
    {"chunk_attention", host_attention, of_chunks},
    {"chunk_attention_grad", host_attention_grad, backward_of_chunks},
    {"ring_attention", host_ring_attention, forward},
    {"ring_attention_grad", host_ring_attention_grad, backward},
    {"document_attention", host_attention, forward},
    {"document_attention_grad", host_attention_grad, backward_in_documents},
    {"document_chunk_attention", host_attention, forward},
    {"document_chunk_attention_grad", host_attention_grad, backward_in_documents},
    {"document_ring_attention", host_ring_attention, forward},
    {"document_ring_attention_grad", host_ring_attention_grad, backward_in_documents},
    {"arrange_limited", limited_arrangement, gpu_limited_arrangement},
    {"softmax_statistics", host_statistics, gpu_statistics},
    {"sigmoid_statistics", host_statistics, gpu_statistics},
};

}  // namespace

void check_scratch_bytes(const op& o, const fact& f, const kernel_set& calls) {
  std::size_t areas = 0, bytes = 0;
  for (std::size_t w = 0; w < o.writes.size(); ++w) {
    if (!is_scratch(o, w)) continue;
    ++areas;
    bytes = o.writes[w].end - o.writes[w].begin;
  }
  const need* of =
      std::find_if(std::begin(needs), std::end(needs), [&](const need& n) { return n.row == o.row; });
  const bool is_known = of != std::end(needs);
  const std::size_t expected = is_known || f.scratch ? 1 : 0;
  if (areas != expected)
    throw refusal("RC7274: the op has {} areas of scratch; expected {}", areas, expected);
  if (!is_known) return;
  const std::size_t least = calls.on_host ? of->on_host(o) : of->on_gpu(o, calls);
  if (bytes < least)
    throw refusal("RC7275: the scratch of the op has {} bytes; expected at least {}, which the kernel uses",
                  bytes, least);
}

}  // namespace rankc::codegen::algebra
