// SPDX-License-Identifier: Apache-2.0
// Attention and the loss in f64: they call the kernels of the host runtime. Log-sum-exps keep the kernels'
// layout, (sequence, head, token); only attention reads them.
#include "attention_heads.hpp"
#include "f64_kernels.hpp"

#include <rankc/contract/kernel_scratch.hpp>

namespace field {

namespace attentions {

/// Call `kernel` with the lane and the operands; with documents, their starts are the last operand.
template <bool Documents = false>
void forward(call& c, const heads& n, auto&& kernel) {
  const matrix &q = c.in("q"), &k = c.in("k"), &v = c.in("v");
  matrix &o = c.out("o", q.is.rows, n.of_q * n.value_dim, n.value_dim),
         &lse = c.out("lse", q.is.rows, n.of_q);
  kernel_memory m;
  const rankc::runtime::at to_o = m.room(o), to_lse = m.room(lse),
                           scratch = m.room(host::attention_scratch(whole(c.seq), whole(c.seq), 1)),
                           at_q = m.put(q), at_k = m.put(k), at_v = m.put(v);
  if constexpr (Documents) {
    const rankc::runtime::at starts = m.put_ids(starts_of(c));
    kernel(m.lane(), to_o, to_lse, scratch, at_q, at_k, at_v, starts);
  } else {
    kernel(m.lane(), to_o, to_lse, scratch, at_q, at_k, at_v);
  }
  m.take(to_o, o);
  m.take(to_lse, lse);
}

template <bool Documents = false>
void backward(call& c, const heads& n, auto&& kernel) {
  const matrix &d_o = c.in("d_o"), &q = c.in("q"), &k = c.in("k"), &v = c.in("v"), &o = c.in("o"),
               &lse = c.in("lse");
  expect_gradient(n, q, d_o, o, lse);
  matrix &dq = c.out("dq", q.is.rows, q.is.cols, q.is.unit),
         &dk = c.out("dk", k.is.rows, k.is.cols, k.is.unit),
         &dv = c.out("dv", v.is.rows, v.is.cols, v.is.unit);
  kernel_memory m;
  const rankc::runtime::at to_q = m.room(dq), to_k = m.room(dk), to_v = m.room(dv),
                           scratch = m.room(host::attention_grad_scratch(whole(c.seq), whole(c.seq), 1)),
                           at_do = m.put(d_o), at_q = m.put(q), at_k = m.put(k), at_v = m.put(v),
                           at_o = m.put(o), at_lse = m.put(lse);
  if constexpr (Documents) {
    const rankc::runtime::at starts = m.put_ids(starts_of(c));
    kernel(m.lane(), to_q, to_k, to_v, scratch, at_do, at_q, at_k, at_v, at_o, at_lse, starts);
  } else {
    kernel(m.lane(), to_q, to_k, to_v, scratch, at_do, at_q, at_k, at_v, at_o, at_lse);
  }
  m.take(to_q, dq);
  m.take(to_k, dk);
  m.take(to_v, dv);
}

void attention(call& c) {
  const heads n = heads_of(c, c.in("q"), c.in("k"), c.in("v"));
  forward(c, n, [&](const auto&... operands) {
    host::attention<double>(operands..., whole(c.rows), whole(c.seq), whole(n.of_q), whole(n.of_kv),
                            whole(n.dim), whole(n.value_dim), c.attention);
  });
}

void attention_grad(call& c) {
  const heads n = heads_of(c, c.in("q"), c.in("k"), c.in("v"));
  backward(c, n, [&](const auto&... operands) {
    host::attention_grad<double>(operands..., whole(c.rows), whole(c.seq), whole(n.of_q), whole(n.of_kv),
                                 whole(n.dim), whole(n.value_dim), c.attention);
  });
}

void chunk_attention(call& c) {
  const heads n = heads_of_chunks(c, c.in("q"), c.in("k"), c.in("v"));
  forward(c, n, [&](const auto&... operands) {
    host::chunk_attention<double>(operands..., whole(c.rows), whole(c.seq), whole(n.of_q), whole(n.of_kv),
                                  whole(n.dim), whole(n.value_dim), static_cast<int>(c.number),
                                  whole(c.first("q")), c.attention);
  });
}

void chunk_attention_grad(call& c) {
  const heads n = heads_of_chunks(c, c.in("q"), c.in("k"), c.in("v"));
  backward(c, n, [&](const auto&... operands) {
    host::chunk_attention_grad<double>(operands..., whole(c.rows), whole(c.seq), whole(n.of_q),
                                       whole(n.of_kv), whole(n.dim), whole(n.value_dim),
                                       static_cast<int>(c.number), whole(c.first("q")), c.attention);
  });
}

void ring_attention(call& c) {
  const heads n = heads_of_ring(c, c.in("q"), c.in("k"), c.in("v"));
  const int ring = whole(c.rows * c.seq / c.in("q").is.rows);
  forward(c, n, [&](const auto&... operands) {
    host::ring_attention<double>(operands..., whole(c.rows), whole(c.seq), whole(n.of_q), whole(n.of_kv),
                                 whole(n.dim), whole(n.value_dim), ring, c.number, whole(c.first("q")),
                                 c.attention);
  });
}

void ring_attention_grad(call& c) {
  const heads n = heads_of_ring(c, c.in("q"), c.in("k"), c.in("v"));
  const int ring = whole(c.rows * c.seq / c.in("q").is.rows);
  backward(c, n, [&](const auto&... operands) {
    host::ring_attention_grad<double>(operands..., whole(c.rows), whole(c.seq), whole(n.of_q), whole(n.of_kv),
                                      whole(n.dim), whole(n.value_dim), ring, c.number, whole(c.first("q")),
                                      c.attention);
  });
}

void document_attention(call& c) {
  const heads n = heads_of(c, c.in("q"), c.in("k"), c.in("v"));
  forward<true>(c, n, [&](const auto&... operands) {
    host::document_attention<double>(operands..., whole(c.rows), whole(c.seq), whole(n.of_q), whole(n.of_kv),
                                     whole(n.dim), whole(n.value_dim), c.attention);
  });
}

void document_attention_grad(call& c) {
  const heads n = heads_of(c, c.in("q"), c.in("k"), c.in("v"));
  backward<true>(c, n, [&](const auto&... operands) {
    host::document_attention_grad<double>(operands..., whole(c.rows), whole(c.seq), whole(n.of_q),
                                          whole(n.of_kv), whole(n.dim), whole(n.value_dim), c.attention);
  });
}

void document_chunk_attention(call& c) {
  const heads n = heads_of_chunks(c, c.in("q"), c.in("k"), c.in("v"));
  forward<true>(c, n, [&](const auto&... operands) {
    host::document_chunk_attention<double>(operands..., whole(c.rows), whole(c.seq), whole(n.of_q),
                                           whole(n.of_kv), whole(n.dim), whole(n.value_dim),
                                           static_cast<int>(c.number), whole(c.first("q")), c.attention);
  });
}

void document_chunk_attention_grad(call& c) {
  const heads n = heads_of_chunks(c, c.in("q"), c.in("k"), c.in("v"));
  backward<true>(c, n, [&](const auto&... operands) {
    host::document_chunk_attention_grad<double>(operands..., whole(c.rows), whole(c.seq), whole(n.of_q),
                                                whole(n.of_kv), whole(n.dim), whole(n.value_dim),
                                                static_cast<int>(c.number), whole(c.first("q")), c.attention);
  });
}

void document_ring_attention(call& c) {
  const heads n = heads_of_ring(c, c.in("q"), c.in("k"), c.in("v"));
  const int ring = whole(c.rows * c.seq / c.in("q").is.rows);
  forward<true>(c, n, [&](const auto&... operands) {
    host::document_ring_attention<double>(operands..., whole(c.rows), whole(c.seq), whole(n.of_q),
                                          whole(n.of_kv), whole(n.dim), whole(n.value_dim), ring, c.number,
                                          whole(c.first("q")), c.attention);
  });
}

void document_ring_attention_grad(call& c) {
  const heads n = heads_of_ring(c, c.in("q"), c.in("k"), c.in("v"));
  const int ring = whole(c.rows * c.seq / c.in("q").is.rows);
  backward<true>(c, n, [&](const auto&... operands) {
    host::document_ring_attention_grad<double>(operands..., whole(c.rows), whole(c.seq), whole(n.of_q),
                                               whole(n.of_kv), whole(n.dim), whole(n.value_dim), ring,
                                               c.number, whole(c.first("q")), c.attention);
  });
}

void merge_attention(call& c) {
  const parts_of_attention parts(c);
  const std::int64_t tokens = parts.o_before.is.rows, heads = parts.lse_before.is.cols;
  matrix &o = c.out("o", tokens, parts.o_before.is.cols, parts.o_before.is.unit),
         &lse = c.out("lse", tokens, heads);
  kernel_memory m;
  const rankc::runtime::at to_o = m.room(o), to_lse = m.room(lse), a = m.put(parts.o_before),
                           sums_a = m.put(parts.lse_before), b = m.put(parts.o_more),
                           sums_b = m.put(parts.lse_more);
  host::merge_attention<double>(m.lane(), to_o, to_lse, a, sums_a, b, sums_b, whole(c.rows), whole(tokens),
                                whole(heads), whole(o.is.cols / heads));
  m.take(to_o, o);
  m.take(to_lse, lse);
}

void sink_scores(call& c) { copy_sinks(c); }

void add_sinks(call& c) {
  const matrix &before = c.in("o_before"), &lse_before = c.in("lse_before"), &scores = c.in("scores");
  expect_sinks(c, before, lse_before, scores);
  const std::int64_t tokens = before.is.rows, heads = scores.is.cols;
  matrix &o = c.out("o", tokens, before.is.cols, before.is.unit), &lse = c.out("lse", tokens, heads);
  kernel_memory m;
  const rankc::runtime::at to_o = m.room(o), to_lse = m.room(lse), at_o = m.put(before),
                           at_lse = m.put(lse_before), at_scores = m.put(scores);
  host::add_sinks<double>(m.lane(), to_o, to_lse, at_o, at_lse, at_scores, whole(c.rows), whole(tokens),
                          whole(heads), whole(o.is.cols / heads));
  m.take(to_o, o);
  m.take(to_lse, lse);
}

void add_sinks_grad(call& c) {
  const matrix &d_o = c.in("d_o"), &o = c.in("o"), &lse = c.in("lse"), &scores = c.in("scores");
  expect_sinks(c, o, lse, scores);
  expect(d_o.is.rows == o.is.rows && d_o.is.cols == o.is.cols, "sinks: sizes do not fit");
  const std::int64_t tokens = o.is.rows, heads = scores.is.cols;
  matrix& dscores = c.out("dscores", tokens, heads);
  kernel_memory m;
  const rankc::runtime::at to = m.room(dscores), at_do = m.put(d_o), at_o = m.put(o), at_lse = m.put(lse),
                           at_scores = m.put(scores);
  host::add_sinks_grad<double>(m.lane(), to, at_do, at_o, at_lse, at_scores, whole(c.rows), whole(tokens),
                               whole(heads), whole(o.is.cols / heads));
  m.take(to, dscores);
}

}  // namespace attentions

namespace losses {

namespace {

void expect_rows(const matrix& logits, const matrix& top, const matrix& targets) {
  expect(top.is.rows == logits.is.rows && top.is.cols == 1 && targets.is.size() == logits.is.rows,
         "a loss of operands of other tokens");
}

}  // namespace

void row_max(call& c) {
  const matrix& logits = c.in("logits");
  expect(logits.is.cols > 0, "row_max: of nothing");
  matrix& top = c.out("top", logits.is.rows, 1);
  kernel_memory m;
  const rankc::runtime::at to = m.room(top), from = m.put(logits);
  host::row_max<double>(m.lane(), to, from, whole(logits.is.rows), whole(logits.is.cols));
  m.take(to, top);
}

void mask_padding(call& c) {
  const matrix& x = c.in("x");
  matrix& y = c.out("y", x.is.rows, x.is.cols);
  kernel_memory m;
  const rankc::runtime::at to = m.room(y), from = m.put(x);
  host::mask_padding<double>(m.lane(), to, from, whole(x.is.rows), whole(x.is.cols), whole(c.first("x")),
                             c.number);
  m.take(to, y);
}
void mask_padding_grad(call& c) {
  const matrix& dy = c.in("dy");
  matrix& dx = c.out("dx", dy.is.rows, dy.is.cols);
  kernel_memory m;
  const rankc::runtime::at to = m.room(dx), from = m.put(dy);
  host::mask_padding_grad<double>(m.lane(), to, from, whole(dy.is.rows), whole(dy.is.cols),
                                  whole(c.first("dy")), c.number);
  m.take(to, dx);
}

void exp_sums(call& c) {
  const matrix &logits = c.in("logits"), &top = c.in("top"), &targets = c.in("targets");
  expect_rows(logits, top, targets);
  matrix& sums = c.out("sums", logits.is.rows, 2);
  kernel_memory m;
  const rankc::runtime::at to = m.room(sums), at_logits = m.put(logits), at_top = m.put(top),
                           at_targets = m.put_ids(targets);
  host::exp_sums<double>(m.lane(), to, at_logits, at_top, at_targets, whole(logits.is.rows),
                         whole(logits.is.cols), whole(c.first("logits")));
  m.take(to, sums);
}

void exp_sums_grad(call& c) {
  const matrix &dsums = c.in("dsums"), &logits = c.in("logits"), &top = c.in("top"),
               &targets = c.in("targets");
  expect_rows(logits, top, targets);
  expect(dsums.is.rows == logits.is.rows && dsums.is.cols == 2, "exp_sums_grad: sizes do not fit");
  matrix& dlogits = c.out("dlogits", logits.is.rows, logits.is.cols);
  kernel_memory m;
  const rankc::runtime::at to = m.room(dlogits), at_dsums = m.put(dsums), at_logits = m.put(logits),
                           at_top = m.put(top), at_targets = m.put_ids(targets);
  host::exp_sums_grad<double>(m.lane(), to, at_dsums, at_logits, at_top, at_targets, whole(logits.is.rows),
                              whole(logits.is.cols), whole(c.first("logits")));
  m.take(to, dlogits);
}

void cross_entropy(call& c) {
  const matrix& sums = c.in("sums");
  expect(sums.is.cols == 2, "cross_entropy: sums are two of a token");
  matrix& loss = c.out("loss", 1, 1);
  kernel_memory m;
  const rankc::runtime::at to = m.room(loss), from = m.put(sums);
  host::cross_entropy<double>(m.lane(), to, from, whole(sums.is.rows), c.number, false);
  m.take(to, loss);
}

void cross_entropy_grad(call& c) {
  const matrix& sums = c.in("sums");
  expect(sums.is.cols == 2, "cross_entropy_grad: sums are two of a token");
  matrix& dsums = c.out("dsums", sums.is.rows, 2);
  kernel_memory m;
  const rankc::runtime::at to = m.room(dsums), from = m.put(sums);
  host::cross_entropy_grad<double>(m.lane(), to, from, whole(sums.is.rows), c.number);
  m.take(to, dsums);
}

void count_labels(call& c) {
  const matrix& targets = c.in("targets");
  matrix& count = c.out("count", 1, 1);
  kernel_memory m;
  const rankc::runtime::at to = m.room(count), at_targets = m.put_ids(targets);
  host::count_labels<double>(m.lane(), to, at_targets, whole(targets.is.size()), false);
  m.take(to, count);
}

void skip_unlabeled(call& c) {
  matrix& total = c.out("total", 1, 1);
  kernel_memory m;
  const rankc::runtime::at to = m.put(total), at_count = m.put(c.in("count"));
  host::skip_unlabeled<double>(m.lane(), to, at_count, true);
  m.take(to, total);
}

void masked_cross_entropy(call& c) {
  const matrix &sums = c.in("sums"), &targets = c.in("targets");
  expect(sums.is.cols == 2 && targets.is.size() == sums.is.rows,
         "masked_cross_entropy: sums of other tokens");
  matrix& loss = c.out("loss", 1, 1);
  kernel_memory m;
  const rankc::runtime::at to = m.room(loss), from = m.put(sums), at_targets = m.put_ids(targets),
                           at_count = m.put(c.in("count"));
  host::masked_cross_entropy<double>(m.lane(), to, from, at_targets, at_count, whole(sums.is.rows), c.number,
                                     false);
  m.take(to, loss);
}

void masked_cross_entropy_grad(call& c) {
  const matrix &sums = c.in("sums"), &targets = c.in("targets");
  expect(sums.is.cols == 2 && targets.is.size() == sums.is.rows,
         "masked_cross_entropy_grad: sums of other tokens");
  matrix& dsums = c.out("dsums", sums.is.rows, 2);
  kernel_memory m;
  const rankc::runtime::at to = m.room(dsums), from = m.put(sums), at_targets = m.put_ids(targets),
                           at_count = m.put(c.in("count"));
  host::masked_cross_entropy_grad<double>(m.lane(), to, from, at_targets, at_count, whole(sums.is.rows),
                                          c.number);
  m.take(to, dsums);
}

void sum_weights(call& c) {
  const matrix &targets = c.in("targets"), &weights = c.in("weights");
  expect(targets.is.size() == weights.is.size(), "sum_weights: weights of other tokens");
  matrix& count = c.out("count", 1, 1);
  kernel_memory m;
  const rankc::runtime::at to = m.room(count), at_targets = m.put_ids(targets), at_weights = m.put(weights);
  host::sum_weights<double>(m.lane(), to, at_targets, at_weights, whole(targets.is.size()), false);
  m.take(to, count);
}

static void expect_weights(const call& c) {
  const matrix& sums = c.in("sums");
  expect(sums.is.cols == 2 && c.in("targets").is.size() == sums.is.rows &&
             c.in("weights").is.size() == sums.is.rows,
         "a loss with weights: sums of other tokens");
}

void weighted_cross_entropy(call& c) {
  expect_weights(c);
  const matrix& sums = c.in("sums");
  matrix& loss = c.out("loss", 1, 1);
  kernel_memory m;
  const rankc::runtime::at to = m.room(loss), from = m.put(sums), at_targets = m.put_ids(c.in("targets")),
                           at_weights = m.put(c.in("weights")), at_count = m.put(c.in("count"));
  host::weighted_cross_entropy<double>(m.lane(), to, from, at_targets, at_weights, at_count,
                                       whole(sums.is.rows), c.number, false);
  m.take(to, loss);
}

void weighted_cross_entropy_grad(call& c) {
  expect_weights(c);
  const matrix& sums = c.in("sums");
  matrix& dsums = c.out("dsums", sums.is.rows, 2);
  kernel_memory m;
  const rankc::runtime::at to = m.room(dsums), from = m.put(sums), at_targets = m.put_ids(c.in("targets")),
                           at_weights = m.put(c.in("weights")), at_count = m.put(c.in("count"));
  host::weighted_cross_entropy_grad<double>(m.lane(), to, from, at_targets, at_weights, at_count,
                                            whole(sums.is.rows), c.number);
  m.take(to, dsums);
}

void squared_error(call& c) {
  const matrix &x = c.in("x"), &targets = c.in("targets");
  matrix& loss = c.out("loss", 1, 1);
  kernel_memory m;
  const rankc::runtime::at to = m.room(loss), at_x = m.put(x), at_targets = m.put(targets);
  host::squared_error<double>(m.lane(), to, at_x, at_targets, x.of.size(), c.number, false);
  m.take(to, loss);
}

void squared_error_grad(call& c) {
  const matrix &x = c.in("x"), &targets = c.in("targets");
  matrix& dx = c.out("dx", x.is.rows, x.is.cols);
  kernel_memory m;
  const rankc::runtime::at to = m.room(dx), at_x = m.put(x), at_targets = m.put(targets);
  host::squared_error_grad<double>(m.lane(), to, at_x, at_targets, x.of.size(), c.number);
  m.take(to, dx);
}

void sequence_mean(call& c) {
  const matrix& x = c.in("x");
  matrix& y = c.out("y", c.rows, x.is.cols);
  kernel_memory m;
  const rankc::runtime::at to = m.room(y), from = m.put(x);
  host::sequence_mean<double>(m.lane(), to, from, whole(x.is.rows), whole(x.is.cols), whole(c.rows),
                              whole(c.seq));
  m.take(to, y);
}

void sequence_mean_grad(call& c) {
  const matrix &dy = c.in("dy"), &x = c.in("x");
  matrix& dx = c.out("dx", x.is.rows, x.is.cols);
  kernel_memory m;
  const rankc::runtime::at to = m.room(dx), from = m.put(dy), at_x = m.put(x);
  host::sequence_mean_grad<double>(m.lane(), to, from, at_x, whole(x.is.rows), whole(x.is.cols),
                                   whole(c.rows), whole(c.seq));
  m.take(to, dx);
}

}  // namespace losses

}  // namespace field
