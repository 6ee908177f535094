// SPDX-License-Identifier: Apache-2.0
// The host's runtime as a recorder.
#include "contracts.hpp"

#include <check_calls.hpp>

#include <rankc/runtime/host/kernels.hpp>
#include <rankc/contract/kernel_scratch.hpp>

#include <stdexcept>

namespace rankc::runtime::host {

using namespace translation;
using runtime::at;

#include "rank_calls.ipp"

/// A recorded step is never run again.
void retrace_call(const lane&, const void*, void (*)(const void*, operand_list&),
                  void (*)(const lane&, const void*)) {
  throw std::logic_error("a recorded step is run again");
}

#include "kernels.ipp"

template <class T>
void rope(const lane& on, at y, at x, at table, int tokens, int heads, int dim, int seq) {
  kernel(on, "rope")
      .out(y, all<T>(tokens, heads, dim))
      .in(x, all<T>(tokens, heads, dim))
      .in(table, all<T>(seq, dim));
}
template <class T>
void rope_grad(const lane& on, at dx, at dy, at table, int tokens, int heads, int dim, int seq) {
  kernel(on, "rope_grad")
      .out(dx, all<T>(tokens, heads, dim))
      .in(dy, all<T>(tokens, heads, dim))
      .in(table, all<T>(seq, dim));
}

template <class T>
void softmax_statistics(const lane& on, at own, at scratch, at logits, at chosen, int tokens, int experts,
                        int picks) {
  kernel(on, "softmax_statistics")
      .out(own, all<wide<T>>(3 * experts))
      .out(scratch, all<double>(3 * experts))
      .in(logits, all<T>(tokens, experts))
      .in(chosen, all<std::int32_t>(tokens, picks));
}
template <class T>
void sigmoid_statistics(const lane& on, at own, at scratch, at logits, at chosen, int tokens, int experts,
                        int picks) {
  kernel(on, "sigmoid_statistics")
      .out(own, all<wide<T>>(3 * experts))
      .out(scratch, all<double>(3 * experts))
      .in(logits, all<T>(tokens, experts))
      .in(chosen, all<std::int32_t>(tokens, picks));
}
template <class T>
void attention(const lane& on, at o, at lse, at scratch, at q, at k, at v, int rows, int seq, int heads,
               int kv_heads, int dim, int value_dim, const attention_setting& by) {
  kernel(on, "attention")
      .with(by)
      .out(o, all<T>(rows, seq, heads, value_dim))
      .out(lse, all<T>(rows, heads, seq))
      .out(scratch, all<T>(attention_scratch(seq, seq, 1, static_cast<std::size_t>(by.window))))
      .in(q, all<T>(rows, seq, heads, dim))
      .in(k, all<T>(rows, seq, kv_heads, dim))
      .in(v, all<T>(rows, seq, kv_heads, value_dim));
}
template <class T>
void attention_grad(const lane& on, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v, at o, at lse,
                    int rows, int seq, int heads, int kv_heads, int dim, int value_dim,
                    const attention_setting& by) {
  kernel(on, "attention_grad")
      .with(by)
      .out(dq, all<T>(rows, seq, heads, dim))
      .out(dk, all<T>(rows, seq, kv_heads, dim))
      .out(dv, all<T>(rows, seq, kv_heads, value_dim))
      .out(scratch, all<T>(attention_grad_scratch(seq, seq, 1, static_cast<std::size_t>(by.window))))
      .in(dout, all<T>(rows, seq, heads, value_dim))
      .in(q, all<T>(rows, seq, heads, dim))
      .in(k, all<T>(rows, seq, kv_heads, dim))
      .in(v, all<T>(rows, seq, kv_heads, value_dim))
      .in(o, all<T>(rows, seq, heads, value_dim))
      .in(lse, all<T>(rows, heads, seq));
}

template <class T>
void chunk_attention(const lane& on, at o, at lse, at scratch, at q, at k, at v, int rows, int seq, int heads,
                     int kv_heads, int dim, int value_dim, int ranks, int first,
                     const attention_setting& by) {
  const int own = seq / ranks;
  kernel(on, "chunk_attention")
      .with(by)
      .out(o, all<T>(rows, own, heads, value_dim))
      .out(lse, all<T>(rows, heads, own))
      .out(scratch, all<T>(attention_scratch(own, seq, 1, static_cast<std::size_t>(by.window))))
      .in(q, all<T>(rows, own, heads, dim))
      .in(k, all<T>(rows, seq, kv_heads, dim))
      .in(v, all<T>(rows, seq, kv_heads, value_dim));
  expect_chunks(rows * own, rows, seq, ranks, first);
}
template <class T>
void chunk_attention_grad(const lane& on, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v, at o,
                          at lse, int rows, int seq, int heads, int kv_heads, int dim, int value_dim,
                          int ranks, int first, const attention_setting& by) {
  const int own = seq / ranks;
  kernel(on, "chunk_attention_grad")
      .with(by)
      .out(dq, all<T>(rows, own, heads, dim))
      .out(dk, all<T>(rows, seq, kv_heads, dim))
      .out(dv, all<T>(rows, seq, kv_heads, value_dim))
      .out(scratch, all<T>(attention_grad_scratch(own, seq, 1, static_cast<std::size_t>(by.window))))
      .in(dout, all<T>(rows, own, heads, value_dim))
      .in(q, all<T>(rows, own, heads, dim))
      .in(k, all<T>(rows, seq, kv_heads, dim))
      .in(v, all<T>(rows, seq, kv_heads, value_dim))
      .in(o, all<T>(rows, own, heads, value_dim))
      .in(lse, all<T>(rows, heads, own));
  expect_chunks(rows * own, rows, seq, ranks, first);
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
      .out(lse, all<T>(rows, heads, own))
      .out(scratch, all<T>(attention_scratch(own, own, 1)))
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
      .out(scratch, all<T>(attention_grad_scratch(own, own, 1)))
      .in(dout, all<T>(rows, own, heads, value_dim))
      .in(q, all<T>(rows, own, heads, dim))
      .in(k, all<T>(rows, own, kv_heads, dim))
      .in(v, all<T>(rows, own, kv_heads, value_dim))
      .in(o, all<T>(rows, own, heads, value_dim))
      .in(lse, all<T>(rows, heads, own));
  expect_step(rows * own, rows, seq, ring, step, first);
}

template <class T>
void swiglu(const lane& on, at y, at gate, at up, std::size_t count) {
  kernel(on, "swiglu").out(y, all<T>(count)).in(gate, all<T>(count)).in(up, all<T>(count));
}
template <class T>
void swiglu_grad(const lane& on, at dgate, at dup, at dy, at gate, at up, std::size_t count) {
  kernel(on, "swiglu_grad")
      .out(dgate, all<T>(count))
      .out(dup, all<T>(count))
      .in(dy, all<T>(count))
      .in(gate, all<T>(count))
      .in(up, all<T>(count));
}

// Attention within documents: the kernels for whole sequences, plus the documents' starts.
template <class T>
void document_attention(const lane& on, at o, at lse, at scratch, at q, at k, at v, at starts, int rows,
                        int seq, int heads, int kv_heads, int dim, int value_dim,
                        const attention_setting& by) {
  attention<T>(on, o, lse, scratch, q, k, v, rows, seq, heads, kv_heads, dim, value_dim, by);
  within_documents("document_attention", starts, product(rows, seq));
}
template <class T>
void document_attention_grad(const lane& on, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v, at o,
                             at lse, at starts, int rows, int seq, int heads, int kv_heads, int dim,
                             int value_dim, const attention_setting& by) {
  attention_grad<T>(on, dq, dk, dv, scratch, dout, q, k, v, o, lse, rows, seq, heads, kv_heads, dim,
                    value_dim, by);
  within_documents("document_attention_grad", starts, product(rows, seq));
}
template <class T>
void document_chunk_attention(const lane& on, at o, at lse, at scratch, at q, at k, at v, at starts, int rows,
                              int seq, int heads, int kv_heads, int dim, int value_dim, int ranks, int first,
                              const attention_setting& by) {
  chunk_attention<T>(on, o, lse, scratch, q, k, v, rows, seq, heads, kv_heads, dim, value_dim, ranks, first,
                     by);
  within_documents("document_chunk_attention", starts, product(rows, seq));
}
template <class T>
void document_chunk_attention_grad(const lane& on, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v,
                                   at o, at lse, at starts, int rows, int seq, int heads, int kv_heads,
                                   int dim, int value_dim, int ranks, int first,
                                   const attention_setting& by) {
  chunk_attention_grad<T>(on, dq, dk, dv, scratch, dout, q, k, v, o, lse, rows, seq, heads, kv_heads, dim,
                          value_dim, ranks, first, by);
  within_documents("document_chunk_attention_grad", starts, product(rows, seq));
}
template <class T>
void document_ring_attention(const lane& on, at o, at lse, at scratch, at q, at k, at v, at starts, int rows,
                             int seq, int heads, int kv_heads, int dim, int value_dim, int ring, double step,
                             int first, const attention_setting& by) {
  ring_attention<T>(on, o, lse, scratch, q, k, v, rows, seq, heads, kv_heads, dim, value_dim, ring, step,
                    first, by);
  within_documents("document_ring_attention", starts, product(rows, seq));
}
template <class T>
void document_ring_attention_grad(const lane& on, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v,
                                  at o, at lse, at starts, int rows, int seq, int heads, int kv_heads,
                                  int dim, int value_dim, int ring, double step, int first,
                                  const attention_setting& by) {
  ring_attention_grad<T>(on, dq, dk, dv, scratch, dout, q, k, v, o, lse, rows, seq, heads, kv_heads, dim,
                         value_dim, ring, step, first, by);
  within_documents("document_ring_attention_grad", starts, product(rows, seq));
}

#define RANKC_RECORDED(T)                                                                               \
  RANKC_RECORDED_ALIKE(T), &rope<T>, &rope_grad<T>, &attention<T>, &attention_grad<T>,                  \
      &document_attention<T>, &document_attention_grad<T>, &document_chunk_attention<T>,                \
      &document_chunk_attention_grad<T>, &document_ring_attention<T>, &document_ring_attention_grad<T>, \
      &softmax_statistics<T>, &sigmoid_statistics<T>, &swiglu<T>, &swiglu_grad<T>
template struct kept<RANKC_RECORDED(float), RANKC_RECORDED_UPDATES(float)>;
template struct kept<RANKC_RECORDED(double), RANKC_RECORDED_UPDATES(double)>;

}  // namespace rankc::runtime::host

namespace translation {

recording record(const rankc::host::program& p, int rank, bool trains) {
  recorder with(p.about, rank);
  rankc::host::rank r;
  r.about = &p.about;
  r.row = &with.row();
  r.where = &with.where();
  r.index = rank;
  r.all_lanes.clear();
  for (int i = 0; i < static_cast<int>(r.where->lanes.size()); ++i) r.all_lanes.push_back({&r, i});
  (trains ? p.train : p.evaluate)[r.row->pp](r);
  return with.finish();
}

void check_calls(const rankc::host::program& p, int rank) {
  runtime::check_calls<rankc::host::rank>(p, rank);
}

}  // namespace translation

#define RANKC_HOST_KERNELS
#define OTHER double
#include "own_op.ipp"
