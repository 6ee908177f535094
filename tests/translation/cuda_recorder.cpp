// SPDX-License-Identifier: Apache-2.0
// The GPU's runtime as a recorder: it runs on any machine, with the names of CUDA's types alone.
#include "contracts.hpp"

#include <check_calls.hpp>

#include <rankc/runtime/cuda/kernels.hpp>
#include <rankc/contract/router.hpp>

#include <stdexcept>

namespace rankc::runtime::cuda {

using namespace translation;
using runtime::at;

#include "rank_calls.ipp"
template <class T>
void gather_shards(const lane& on, over what, message m, at to, at from,
                   std::span<const runtime::shard_range> of) {
  for (const runtime::shard_range& s : of)
    all_gather<T>(on, what, m, to + s.gathered * sizeof(T), from + s.kept * sizeof(T), s.count);
}
template <class T>
void scatter_sums(const lane& on, over what, message m, at to, at from,
                  std::span<const runtime::shard_range> of, std::size_t runtime::shard_range::* kept) {
  for (const runtime::shard_range& s : of)
    reduce_scatter<T>(on, what, m, to + s.*kept * sizeof(T), from + s.gathered * sizeof(T), s.count);
}

/// Row pipelining is not recorded: run with all rows at once, the text makes the proven calls.
template <class T>
gathered_rows gather_by_rows(const lane& on, over, message, at, at, std::size_t) {
  if (call_recorder* const to = recorder_of(on)) {
    to->move_by_rows();
    return {};
  }
  recorder::active().move_by_rows("all_gather", on.index);
  return {};
}
template <class T>
dealt_rows<T> deal_by_rows(const lane& on, over, message, at, at, std::size_t) {
  if (call_recorder* const to = recorder_of(on)) {
    to->move_by_rows();
    return {};
  }
  recorder::active().move_by_rows("reduce_scatter", on.index);
  return {};
}
static std::logic_error no_parts() { return std::logic_error("parts of rows are not recorded"); }
std::size_t gathered_rows::arrive(std::size_t) const { throw no_parts(); }
void gathered_rows::end() const { throw no_parts(); }
template <class T>
std::size_t dealt_rows<T>::next(std::size_t) const {
  throw no_parts();
}
template <class T>
void dealt_rows<T>::leave(std::size_t) const {
  throw no_parts();
}
template <class T>
void dealt_rows<T>::end() const {
  throw no_parts();
}
template class dealt_rows<float>;
template class dealt_rows<bf16>;

#include "kernels.ipp"

template <class T>
void rope(const lane& on, at y, at x, at table, int tokens, int heads, int dim, int seq, int stride) {
  kernel(on, "rope")
      .out(y, columns<T>(tokens, product(heads, dim), stride))
      .in(x, columns<T>(tokens, product(heads, dim), stride))
      .in(table, all<wide<T>>(seq, dim));
}
template <class T>
void rope_grad(const lane& on, at dx, at dy, at table, int tokens, int heads, int dim, int seq, int stride) {
  kernel(on, "rope_grad")
      .out(dx, columns<T>(tokens, product(heads, dim), stride))
      .in(dy, columns<T>(tokens, product(heads, dim), stride))
      .in(table, all<wide<T>>(seq, dim));
}

template <class T>
void softmax_statistics(const lane& on, at own, at scratch, at logits, at chosen, int tokens, int experts,
                        int picks) {
  kernel(on, "softmax_statistics")
      .out(own, all<wide<T>>(3 * experts))
      .out(scratch, all<float>(runtime::blocks_of_statistics * 3 * experts))
      .in(logits, all<T>(tokens, experts))
      .in(chosen, all<std::int32_t>(tokens, picks));
}
template <class T>
void sigmoid_statistics(const lane& on, at own, at scratch, at logits, at chosen, int tokens, int experts,
                        int picks) {
  kernel(on, "sigmoid_statistics")
      .out(own, all<wide<T>>(3 * experts))
      .out(scratch, all<float>(runtime::blocks_of_statistics * 3 * experts))
      .in(logits, all<T>(tokens, experts))
      .in(chosen, all<std::int32_t>(tokens, picks));
}
template <class T>
void attention(const lane& on, at o, at lse, at scratch, at q, at k, at v, int rows, int seq, int heads,
               int kv_heads, int dim, int value_dim, int q_stride, int k_stride, int v_stride,
               const attention_setting& by) {
  const attention_shape shape{rows, seq,       heads,     kv_heads,
                              dim,  value_dim, sizeof(T), recorder::active().about().deterministic};
  const std::size_t tokens = product(rows, seq);
  kernel(on, "attention")
      .with(by)
      .out(o, all<T>(tokens, heads, value_dim))
      .out(lse, all<float>(rows, heads, seq))
      .out(scratch, all<std::byte>(attention_scratch(shape)))
      .in(q, columns<T>(tokens, product(heads, dim), q_stride))
      .in(k, columns<T>(tokens, product(kv_heads, dim), k_stride))
      .in(v, columns<T>(tokens, product(kv_heads, value_dim), v_stride));
}
template <class T>
void attention_grad(const lane& on, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v, at o, at lse,
                    int rows, int seq, int heads, int kv_heads, int dim, int value_dim, int q_stride,
                    int k_stride, int v_stride, const attention_setting& by) {
  const attention_shape shape{rows, seq,       heads,     kv_heads,
                              dim,  value_dim, sizeof(T), recorder::active().about().deterministic};
  const std::size_t tokens = product(rows, seq), width = product(heads, dim);
  kernel(on, "attention_grad")
      .with(by)
      .out(dq, columns<T>(tokens, width, q_stride))
      .out(dk, columns<T>(tokens, product(kv_heads, dim), k_stride))
      .out(dv, columns<T>(tokens, product(kv_heads, value_dim), v_stride))
      .out(scratch, all<std::byte>(attention_grad_scratch(shape)))
      .in(dout, all<T>(tokens, heads, value_dim))
      .in(q, columns<T>(tokens, width, q_stride))
      .in(k, columns<T>(tokens, product(kv_heads, dim), k_stride))
      .in(v, columns<T>(tokens, product(kv_heads, value_dim), v_stride))
      .in(o, all<T>(tokens, heads, value_dim))
      .in(lse, all<float>(rows, heads, seq));
}

/// The shape of attention over a rank's tokens, with each sequence sharded over `ranks`.
template <class T>
attention_shape chunk_shape_of(int rows, int seq, int heads, int kv_heads, int dim, int value_dim,
                               int ranks) {
  return {rows, seq / ranks, heads,     kv_heads,
          dim,  value_dim,   sizeof(T), recorder::active().about().deterministic};
}

template <class T>
void chunk_attention(const lane& on, at o, at lse, at scratch, at q, at k, at v, int rows, int seq, int heads,
                     int kv_heads, int dim, int value_dim, int q_stride, int k_stride, int v_stride,
                     int ranks, int first, const attention_setting& by) {
  const std::size_t tokens = product(rows, seq / ranks), keys = product(rows, seq);
  kernel(on, "chunk_attention")
      .with(by)
      .out(o, all<T>(tokens, heads, value_dim))
      .out(lse, all<float>(rows, heads, seq / ranks))
      .out(scratch, all<std::byte>(chunk_attention_scratch(
                        chunk_shape_of<T>(rows, seq, heads, kv_heads, dim, value_dim, ranks))))
      .in(q, columns<T>(tokens, product(heads, dim), q_stride))
      .in(k, columns<T>(keys, product(kv_heads, dim), k_stride))
      .in(v, columns<T>(keys, product(kv_heads, value_dim), v_stride));
  expect_chunks(rows * (seq / ranks), rows, seq, ranks, first);
}
template <class T>
void chunk_attention_grad(const lane& on, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v, at o,
                          at lse, int rows, int seq, int heads, int kv_heads, int dim, int value_dim,
                          int q_stride, int k_stride, int v_stride, int ranks, int first,
                          const attention_setting& by) {
  const std::size_t tokens = product(rows, seq / ranks), keys = product(rows, seq),
                    width = product(heads, dim);
  kernel(on, "chunk_attention_grad")
      .with(by)
      .out(dq, columns<T>(tokens, width, q_stride))
      .out(dk, columns<T>(keys, product(kv_heads, dim), k_stride))
      .out(dv, columns<T>(keys, product(kv_heads, value_dim), v_stride))
      .out(scratch, all<std::byte>(chunk_attention_grad_scratch(
                        chunk_shape_of<T>(rows, seq, heads, kv_heads, dim, value_dim, ranks))))
      .in(dout, all<T>(tokens, heads, value_dim))
      .in(q, columns<T>(tokens, width, q_stride))
      .in(k, columns<T>(keys, product(kv_heads, dim), k_stride))
      .in(v, columns<T>(keys, product(kv_heads, value_dim), v_stride))
      .in(o, all<T>(tokens, heads, value_dim))
      .in(lse, all<float>(rows, heads, seq / ranks));
  expect_chunks(rows * (seq / ranks), rows, seq, ranks, first);
}

/// One step of ring attention: attention to the keys of one rank.
template <class T>
void ring_attention(const lane& on, at o, at lse, at scratch, at q, at k, at v, int rows, int seq, int heads,
                    int kv_heads, int dim, int value_dim, int ring, double step, int first,
                    const attention_setting& by) {
  const int own = seq / ring;
  kernel(on, "ring_attention")
      .with(by)
      .out(o, all<T>(rows, own, heads, value_dim))
      .out(lse, all<float>(rows, heads, own))
      .out(scratch, all<std::byte>(attention_scratch(
                        chunk_shape_of<T>(rows, seq, heads, kv_heads, dim, value_dim, ring))))
      .in(q, all<T>(rows, own, heads, dim))
      .in(k, all<T>(rows, own, kv_heads, dim))
      .in(v, all<T>(rows, own, kv_heads, value_dim));
  expect_step(rows * own, rows, seq, ring, step, first);
}
template <class T>
void ring_attention_grad(const lane& on, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v, at o,
                         at lse, int rows, int seq, int heads, int kv_heads, int dim, int value_dim, int ring,
                         double step, int first, const attention_setting& by) {
  const int own = seq / ring;
  kernel(on, "ring_attention_grad")
      .with(by)
      .out(dq, all<T>(rows, own, heads, dim))
      .out(dk, all<T>(rows, own, kv_heads, dim))
      .out(dv, all<T>(rows, own, kv_heads, value_dim))
      .out(scratch, all<std::byte>(attention_grad_scratch(
                        chunk_shape_of<T>(rows, seq, heads, kv_heads, dim, value_dim, ring))))
      .in(dout, all<T>(rows, own, heads, value_dim))
      .in(q, all<T>(rows, own, heads, dim))
      .in(k, all<T>(rows, own, kv_heads, dim))
      .in(v, all<T>(rows, own, kv_heads, value_dim))
      .in(o, all<T>(rows, own, heads, value_dim))
      .in(lse, all<float>(rows, heads, own));
  expect_step(rows * own, rows, seq, ring, step, first);
}

template <class T>
void swiglu(const lane& on, at y, at gate, at up, int tokens, int width, int stride) {
  kernel(on, "swiglu")
      .out(y, all<T>(tokens, width))
      .in(gate, columns<T>(tokens, width, stride))
      .in(up, columns<T>(tokens, width, stride));
}
template <class T>
void swiglu_grad(const lane& on, at dgate, at dup, at dy, at gate, at up, int tokens, int width, int stride) {
  kernel(on, "swiglu_grad")
      .out(dgate, columns<T>(tokens, width, stride))
      .out(dup, columns<T>(tokens, width, stride))
      .in(dy, all<T>(tokens, width))
      .in(gate, columns<T>(tokens, width, stride))
      .in(up, columns<T>(tokens, width, stride));
}
/// Norms and activations with fp8 results; `narrow` gives the shape of an fp8 tensor.
using narrow_shape = shape (*)(std::size_t, std::size_t);
template <class T>
void norm_to(const lane& on, const char* name, narrow_shape narrow, at y, at stats, int each, at x,
             std::initializer_list<at> parameters, int tokens, int width, double eps) {
  kernel of(on, name);
  of.with(eps)
      .out(y, narrow(tokens, width))
      .out(stats, all<float>(tokens, each))
      .in(x, all<T>(tokens, width));
  for (const at& p : parameters) of.in(p, all<T>(width));
}
template <class T>
void swiglu_to(const lane& on, const char* name, narrow_shape narrow, at y, at gate, at up, int tokens,
               int width, int stride) {
  kernel(on, name)
      .out(y, narrow(tokens, width))
      .in(gate, columns<T>(tokens, width, stride))
      .in(up, columns<T>(tokens, width, stride));
}
template <class T>
void swiglu_grad_to(const lane& on, const char* name, narrow_shape narrow, at dgate, at dup, at dy, at gate,
                    at up, int tokens, int width, int stride) {
  kernel(on, name)
      .out(dgate, narrow(tokens, stride))
      .out(dup, {})  // columns of the same tensor
      .in(dy, all<T>(tokens, width))
      .in(gate, columns<T>(tokens, width, stride))
      .in(up, columns<T>(tokens, width, stride));
}
template <class T>
void layer_norm_e4m3(const lane& on, at y, at stats, at x, at gain, at shift, int tokens, int width,
                     double eps) {
  norm_to<T>(on, "layer_norm_e4m3", fp8, y, stats, 2, x, {gain, shift}, tokens, width, eps);
}
template <class T>
void rms_norm_e4m3(const lane& on, at y, at stats, at x, at gain, int tokens, int width, double eps) {
  norm_to<T>(on, "rms_norm_e4m3", fp8, y, stats, 1, x, {gain}, tokens, width, eps);
}
template <class T>
void gelu_e4m3(const lane& on, at y, at x, int tokens, int width) {
  kernel(on, "gelu_e4m3").out(y, fp8(tokens, width)).in(x, all<T>(tokens, width));
}
template <class T>
void swiglu_e4m3(const lane& on, at y, at gate, at up, int tokens, int width, int stride) {
  swiglu_to<T>(on, "swiglu_e4m3", fp8, y, gate, up, tokens, width, stride);
}
template <class T>
void swiglu_grad_e5m2(const lane& on, at dgate, at dup, at dy, at gate, at up, int tokens, int width,
                      int stride) {
  swiglu_grad_to<T>(on, "swiglu_grad_e5m2", fp8, dgate, dup, dy, gate, up, tokens, width, stride);
}
template <class T>
void layer_norm_e4m3_rows(const lane& on, at y, at stats, at x, at gain, at shift, int tokens, int width,
                          double eps) {
  norm_to<T>(on, "layer_norm_e4m3_rows", fp8_rows, y, stats, 2, x, {gain, shift}, tokens, width, eps);
}
template <class T>
void rms_norm_e4m3_rows(const lane& on, at y, at stats, at x, at gain, int tokens, int width, double eps) {
  norm_to<T>(on, "rms_norm_e4m3_rows", fp8_rows, y, stats, 1, x, {gain}, tokens, width, eps);
}
template <class T>
void gelu_e4m3_rows(const lane& on, at y, at x, int tokens, int width) {
  kernel(on, "gelu_e4m3_rows").out(y, fp8_rows(tokens, width)).in(x, all<T>(tokens, width));
}
template <class T>
void swiglu_e4m3_rows(const lane& on, at y, at gate, at up, int tokens, int width, int stride) {
  swiglu_to<T>(on, "swiglu_e4m3_rows", fp8_rows, y, gate, up, tokens, width, stride);
}
template <class T>
void swiglu_grad_e4m3_rows(const lane& on, at dgate, at dup, at dy, at gate, at up, int tokens, int width,
                           int stride) {
  swiglu_grad_to<T>(on, "swiglu_grad_e4m3_rows", fp8_rows, dgate, dup, dy, gate, up, tokens, width, stride);
}

// Attention within documents: the kernels for whole sequences, plus the documents' starts.
template <class T>
void document_attention(const lane& on, at o, at lse, at scratch, at q, at k, at v, at starts, int rows,
                        int seq, int heads, int kv_heads, int dim, int value_dim, int q_stride, int k_stride,
                        int v_stride, const attention_setting& by) {
  attention<T>(on, o, lse, scratch, q, k, v, rows, seq, heads, kv_heads, dim, value_dim, q_stride, k_stride,
               v_stride, by);
  within_documents("document_attention", starts, product(rows, seq), scratch,
                   attention_scratch(chunk_shape_of<T>(rows, seq, heads, kv_heads, dim, value_dim, 1)));
}
template <class T>
void document_attention_grad(const lane& on, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v, at o,
                             at lse, at starts, int rows, int seq, int heads, int kv_heads, int dim,
                             int value_dim, int q_stride, int k_stride, int v_stride,
                             const attention_setting& by) {
  attention_grad<T>(on, dq, dk, dv, scratch, dout, q, k, v, o, lse, rows, seq, heads, kv_heads, dim,
                    value_dim, q_stride, k_stride, v_stride, by);
  within_documents("document_attention_grad", starts, product(rows, seq), scratch,
                   attention_delta_bytes(chunk_shape_of<T>(rows, seq, heads, kv_heads, dim, value_dim, 1)));
}
template <class T>
void document_chunk_attention(const lane& on, at o, at lse, at scratch, at q, at k, at v, at starts, int rows,
                              int seq, int heads, int kv_heads, int dim, int value_dim, int q_stride,
                              int k_stride, int v_stride, int ranks, int first, const attention_setting& by) {
  chunk_attention<T>(on, o, lse, scratch, q, k, v, rows, seq, heads, kv_heads, dim, value_dim, q_stride,
                     k_stride, v_stride, ranks, first, by);
  within_documents("document_chunk_attention", starts, product(rows, seq), scratch,
                   attention_scratch(chunk_shape_of<T>(rows, seq, heads, kv_heads, dim, value_dim, ranks)));
}
template <class T>
void document_chunk_attention_grad(const lane& on, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v,
                                   at o, at lse, at starts, int rows, int seq, int heads, int kv_heads,
                                   int dim, int value_dim, int q_stride, int k_stride, int v_stride,
                                   int ranks, int first, const attention_setting& by) {
  chunk_attention_grad<T>(on, dq, dk, dv, scratch, dout, q, k, v, o, lse, rows, seq, heads, kv_heads, dim,
                          value_dim, q_stride, k_stride, v_stride, ranks, first, by);
  within_documents(
      "document_chunk_attention_grad", starts, product(rows, seq), scratch,
      attention_delta_bytes(chunk_shape_of<T>(rows, seq, heads, kv_heads, dim, value_dim, ranks)));
}
template <class T>
void document_ring_attention(const lane& on, at o, at lse, at scratch, at q, at k, at v, at starts, int rows,
                             int seq, int heads, int kv_heads, int dim, int value_dim, int ring, double step,
                             int first, const attention_setting& by) {
  ring_attention<T>(on, o, lse, scratch, q, k, v, rows, seq, heads, kv_heads, dim, value_dim, ring, step,
                    first, by);
  within_documents("document_ring_attention", starts, product(rows, seq), scratch,
                   attention_scratch(chunk_shape_of<T>(rows, seq, heads, kv_heads, dim, value_dim, ring)));
}
template <class T>
void document_ring_attention_grad(const lane& on, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v,
                                  at o, at lse, at starts, int rows, int seq, int heads, int kv_heads,
                                  int dim, int value_dim, int ring, double step, int first,
                                  const attention_setting& by) {
  ring_attention_grad<T>(on, dq, dk, dv, scratch, dout, q, k, v, o, lse, rows, seq, heads, kv_heads, dim,
                         value_dim, ring, step, first, by);
  within_documents(
      "document_ring_attention_grad", starts, product(rows, seq), scratch,
      attention_delta_bytes(chunk_shape_of<T>(rows, seq, heads, kv_heads, dim, value_dim, ring)));
}

#include "fused_kernels.ipp"

#define RANKC_RECORDED(T)                                                                             \
  RANKC_RECORDED_ALIKE(T), &gather_shards<T>, &scatter_sums<T>, &gather_by_rows<T>, &deal_by_rows<T>, \
      &rope<T>, &rope_grad<T>, &attention<T>, &attention_grad<T>, &document_attention<T>,             \
      &document_attention_grad<T>, &document_chunk_attention<T>, &document_chunk_attention_grad<T>,   \
      &document_ring_attention<T>, &document_ring_attention_grad<T>, &softmax_statistics<T>,          \
      &sigmoid_statistics<T>, &swiglu<T>, &swiglu_grad<T>, &layer_norm_e4m3<T>, &rms_norm_e4m3<T>,    \
      &gelu_e4m3<T>, &swiglu_e4m3<T>, &swiglu_grad_e5m2<T>, &layer_norm_e4m3_rows<T>,                 \
      &rms_norm_e4m3_rows<T>, &gelu_e4m3_rows<T>, &swiglu_e4m3_rows<T>, &swiglu_grad_e4m3_rows<T>,    \
      RANKC_RECORDED_FUSED(T)
template struct kept<RANKC_RECORDED(float), RANKC_RECORDED_UPDATES(float)>;
template struct kept<RANKC_RECORDED(bf16), RANKC_RECORDED_UPDATES(bf16), RANKC_RECORDED_NARROW_UPDATES(bf16)>;

}  // namespace rankc::runtime::cuda

namespace translation {

recording record(const rankc::cuda::program& p, int rank, bool trains) {
  recorder with(p.about, rank);
  rankc::cuda::rank r;
  r.about = &p.about;
  r.row = &with.row();
  r.where = &with.where();
  r.index = rank;
  for (int i = 0; i < static_cast<int>(r.where->lanes.size()); ++i)
    r.all_lanes.push_back({.of = &r, .index = i});
  (trains ? p.train : p.evaluate)[r.row->pp](r);
  return with.finish();
}

void check_calls(const rankc::cuda::program& p, int rank) {
  runtime::check_calls<rankc::cuda::rank>(p, rank);
}

}  // namespace translation

#define RANKC_CUDA_KERNELS
#define OTHER rankc::cuda::bf16
#include "own_op.ipp"
