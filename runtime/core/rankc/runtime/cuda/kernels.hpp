// SPDX-License-Identifier: Apache-2.0
// The kernels of generated CUDA code, with the host's signatures (host/kernels.hpp). Operands are arena
// offsets: outputs first, then inputs, then sizes. `tokens` is the number of tokens of a microbatch on this
// rank (rows x seq, flattened). A kernel runs on the lane that it is given and allocates nothing. In a
// deterministic program every sum has a fixed order, so every run has the same bits. In other programs cuDNN
// accumulates attention's dq in any order, and GEMMs use the algorithms that were fastest at install.
//
// T is float or bf16. With T = bf16 the operands have two types:
//   bf16  activations and their gradients (x, y, dx, dy, q, k, v, o, dout, gate, up, logits, dlogits, ...)
//         and the parameters that forward and backward read (w, gain, shift, b, the tables of embeddings
//         and positions);
//   f32   statistics (stats, lse, top, sums, dsums), rope tables, losses and totals, every parameter gradient
//         (dw, dgain, dshift, db, dtable; they accumulate in f32), and the optimizer's w, g, m, v.
// So the four regions of a layout are f32 for both T, except weights and moments that the recipe keeps in
// bf16. A bf16 program with f32 weights reads a bf16 working copy (layout::working_copy). The optimizer
// writes the copy, and the engine refreshes it when weights are set from outside.
// Arithmetic is f32, with one rounding to bf16 at the end.
#pragma once
#include <rankc/contract/attention_scratch.hpp>
#include <rankc/contract/attention_setting.hpp>
#include <rankc/runtime/cuda/by_rows.hpp>
#include <rankc/runtime/cuda/fused.hpp>
#include <rankc/runtime/cuda/grouped.hpp>
#include <rankc/runtime/cuda/rank.hpp>
#include <rankc/runtime/random_bits.hpp>

namespace rankc::runtime::cuda {

/// y[n] = table[id[n] - first] for ids in [first, first + rows), the rows that this rank holds, else 0.
/// Shapes: y (tokens, width), ids int32 (tokens), table (rows, width).
template <class T>
void embedding(const lane&, at y, at ids, at table, int tokens, int rows, int width, int first);
template <class T>
void embedding_grad(const lane&, at dtable, at dy, at ids, int tokens, int rows, int width, int first,
                    bool accumulate);

/// y[n] = x[n] + table[(first + n) % seq]: learned positions. `first` is the position of this rank's first
/// token.
/// Shapes: x, y (tokens, width), table (seq, width). y may be x.
template <class T>
void position(const lane&, at y, at x, at table, int tokens, int width, int seq, int first);
template <class T>
void position_grad(const lane&, at dtable, at dy, int tokens, int width, int seq, int first, bool accumulate);

/// Learned positions for a rank's chunks of `rows` sequences of `seq` tokens, which `ranks` ranks share
/// (rankc/runtime/chunks.hpp). `first` is the row of x's first token among the gathered tokens of all ranks.
template <class T>
void chunk_position(const lane&, at y, at x, at table, int tokens, int width, int rows, int seq, int ranks,
                    int first);
template <class T>
void chunk_position_grad(const lane&, at dtable, at dy, int tokens, int width, int rows, int seq, int ranks,
                         int first, bool accumulate);

/// Learned positions within documents. `starts` contains, for each token of the whole sequences, the position
/// at which its document begins. A token at position p reads row p - start of the table.
/// Shapes: starts int32 (rows, seq).
template <class T>
void document_position(const lane&, at y, at x, at table, at starts, int tokens, int width, int seq,
                       int first);
template <class T>
void document_position_grad(const lane&, at dtable, at dy, at starts, int tokens, int width, int seq,
                            int first, bool accumulate);
template <class T>
void document_chunk_position(const lane&, at y, at x, at table, at starts, int tokens, int width, int rows,
                             int seq, int ranks, int first);
template <class T>
void document_chunk_position_grad(const lane&, at dtable, at dy, at starts, int tokens, int width, int rows,
                                  int seq, int ranks, int first, bool accumulate);

/// Normalisation over the last dim; eps is added to the variance or mean square. stats are the mean and
/// 1/std, for rms_norm 1/rms.
/// Shapes: stats (tokens, 2), for rms_norm (tokens, 1); x, y, dy, dx (tokens, width), gain, shift (width). dx
/// may be dy.
/// Source: Ba et al. 2016; Zhang and Sennrich 2019.
template <class T>
void layer_norm(const lane&, at y, at stats, at x, at gain, at shift, int tokens, int width, double eps);
template <class T>
void layer_norm_dx(const lane&, at dx, at dy, at x, at stats, at gain, int tokens, int width);
template <class T>
void layer_norm_dw(const lane&, at dgain, at dshift, at dy, at x, at stats, int tokens, int width,
                   bool accumulate);
template <class T>
void rms_norm(const lane&, at y, at stats, at x, at gain, int tokens, int width, double eps);
template <class T>
void rms_norm_dx(const lane&, at dx, at dy, at x, at stats, at gain, int tokens, int width);
template <class T>
void rms_norm_dw(const lane&, at dgain, at dy, at x, at stats, int tokens, int width, bool accumulate);

/// y = x w^T. linear_dx with accumulate adds to dx; in bf16 the product is rounded first.
/// Shapes: x (tokens, in), w (out, in), y (tokens, out).
template <class T>
void linear(const lane&, at y, at x, at w, int tokens, int in, int out);
template <class T>
void linear_dx(const lane&, at dx, at dy, at w, int tokens, int in, int out, bool accumulate);
template <class T>
void linear_dw(const lane&, at dw, at dy, at x, int tokens, int in, int out, bool accumulate);

/// y = x + b for each row.
/// Shapes: x, y (tokens, width), b (width). y may be x.
template <class T>
void bias(const lane&, at y, at x, at b, int tokens, int width);
template <class T>
void bias_grad(const lane&, at db, at dy, int tokens, int width, bool accumulate);

/// Rotary positions, half-split form. Token n is at position n % seq. rope_grad rotates back. `stride` is the
/// distance, in elements, from one token to the next in x and in y.
/// Shapes: x, y (tokens, heads, dim) with that stride; table: cosines (seq, dim / 2), then sines. y may be x.
/// Source: Su et al. 2021.
template <class T>
void rope(const lane&, at y, at x, at table, int tokens, int heads, int dim, int seq, int stride);
template <class T>
void rope_grad(const lane&, at dx, at dy, at table, int tokens, int heads, int dim, int seq, int stride);

/// Causal attention per sequence and head, scale 1/sqrt(dim). Query head h uses kv head h / (heads /
/// kv_heads). `q_stride`, `k_stride` and `v_stride` are the distances, in elements, from one token to the
/// next in q (and dq), in k (and dk) and in v (and dv), so the three may be columns of one packed buffer.
/// Kernels for tensor cores take heads of one size, and keys and values of one stride.
/// Shapes: q, dq (rows * seq, heads, dim), k, dk (rows * seq, kv_heads, dim) and v, dv (rows * seq, kv_heads,
/// value_dim) with those strides; o, do (rows * seq, heads, value_dim) without gaps; lse (rows, heads, seq):
/// log-sum-exp of the scaled scores; scratch: see attention_scratch.hpp. dim and value_dim are at most 128.
/// Source: FlashAttention (Dao et al. 2022), for the saved values.
template <class T>
void attention(const lane&, at o, at lse, at scratch, at q, at k, at v, int rows, int seq, int heads,
               int kv_heads, int dim, int value_dim, int q_stride, int k_stride, int v_stride,
               const attention_setting& = {});
template <class T>
void attention_grad(const lane&, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v, at o, at lse,
                    int rows, int seq, int heads, int kv_heads, int dim, int value_dim, int q_stride,
                    int k_stride, int v_stride, const attention_setting& = {});

/// Attention of a rank's chunks of sequences of `seq` tokens, which `ranks` ranks share
/// (rankc/runtime/chunks.hpp), to the gathered keys of all ranks. dk and dv are 0 for keys that none of the
/// rank's queries sees. `first` is the row of q's first token among the gathered tokens.
/// Shapes: as above, with seq / ranks in place of seq for the queries; scratch: chunk_attention_scratch and
/// chunk_attention_grad_scratch.
template <class T>
void chunk_attention(const lane&, at o, at lse, at scratch, at q, at k, at v, int rows, int seq, int heads,
                     int kv_heads, int dim, int value_dim, int q_stride, int k_stride, int v_stride,
                     int ranks, int first, const attention_setting& = {});
template <class T>
void chunk_attention_grad(const lane&, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v, at o,
                          at lse, int rows, int seq, int heads, int kv_heads, int dim, int value_dim,
                          int q_stride, int k_stride, int v_stride, int ranks, int first,
                          const attention_setting& = {});

/// One step of ring attention: the rank's queries see the keys of the rank `step` places before it. The
/// result is a part of attention with its log-sum-exp, which is -infinity if a query sees none of the keys.
/// merge_attention merges two parts; o may be o_before, and lse lse_before. The gradient reads the merged
/// result and log-sum-exp, and computes the contribution of these keys to dq, dk and dv.
/// Shapes: as above, with seq / ring in place of seq, without gaps; scratch: attention_scratch and
/// attention_grad_scratch of these shapes.
template <class T>
void ring_attention(const lane&, at o, at lse, at scratch, at q, at k, at v, int rows, int seq, int heads,
                    int kv_heads, int dim, int value_dim, int ring, double step, int first,
                    const attention_setting& = {});
template <class T>
void ring_attention_grad(const lane&, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v, at o,
                         at lse, int rows, int seq, int heads, int kv_heads, int dim, int value_dim, int ring,
                         double step, int first, const attention_setting& = {});
template <class T>
void merge_attention(const lane&, at o, at lse, at o_before, at lse_before, at o_more, at lse_more, int rows,
                     int tokens, int heads, int dim);

/// Attention within documents, by rankc's own kernels. A query sees no key before the first token of its
/// document, which `starts` contains for each token of the whole sequences.
/// Shapes: starts int32 (rows, seq); scratch: attention_scratch, and for a gradient
/// document_attention_grad_scratch of the queries.
template <class T>
void document_attention(const lane&, at o, at lse, at scratch, at q, at k, at v, at starts, int rows, int seq,
                        int heads, int kv_heads, int dim, int value_dim, int q_stride, int k_stride,
                        int v_stride, const attention_setting& = {});
template <class T>
void document_attention_grad(const lane&, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v, at o,
                             at lse, at starts, int rows, int seq, int heads, int kv_heads, int dim,
                             int value_dim, int q_stride, int k_stride, int v_stride,
                             const attention_setting& = {});
template <class T>
void document_chunk_attention(const lane&, at o, at lse, at scratch, at q, at k, at v, at starts, int rows,
                              int seq, int heads, int kv_heads, int dim, int value_dim, int q_stride,
                              int k_stride, int v_stride, int ranks, int first,
                              const attention_setting& = {});
template <class T>
void document_chunk_attention_grad(const lane&, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v,
                                   at o, at lse, at starts, int rows, int seq, int heads, int kv_heads,
                                   int dim, int value_dim, int q_stride, int k_stride, int v_stride,
                                   int ranks, int first, const attention_setting& = {});
template <class T>
void document_ring_attention(const lane&, at o, at lse, at scratch, at q, at k, at v, at starts, int rows,
                             int seq, int heads, int kv_heads, int dim, int value_dim, int ring, double step,
                             int first, const attention_setting& = {});
template <class T>
void document_ring_attention_grad(const lane&, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v,
                                  at o, at lse, at starts, int rows, int seq, int heads, int kv_heads,
                                  int dim, int value_dim, int ring, double step, int first,
                                  const attention_setting& = {});

/// Attention sinks: one score for each head, which enters the sum of every softmax of the head and has no
/// value. sink_scores copies the sinks to a row for each token; x is not read. add_sinks changes attention's
/// result and its log-sum-exp; o may be o_before, and lse lse_before. Its gradient takes the changed results.
/// Shapes: scores and dscores (tokens, heads), sinks (heads), x, o and dout (tokens, heads, dim), lse (rows,
/// heads, tokens / rows).
template <class T>
void sink_scores(const lane&, at scores, at x, at sinks, int tokens, int heads, int dim);
template <class T>
void add_sinks(const lane&, at o, at lse, at o_before, at lse_before, at scores, int rows, int tokens,
               int heads, int dim);
template <class T>
void add_sinks_grad(const lane&, at dscores, at dout, at o, at lse, at scores, int rows, int tokens,
                    int heads, int dim);

/// GELU in its tanh form, and SwiGLU: y = silu(gate) * up. Rows of gate and up (and of dgate and dup) are
/// `stride` elements apart. dx may be dy; gelu's y may be x.
/// Shapes: swiglu: y, dy (tokens, width) without gaps; gate, up, dgate, dup (tokens, width) with the stride.
/// Source: Hendrycks and Gimpel 2016; Shazeer 2020.
template <class T>
void gelu(const lane&, at y, at x, std::size_t count);
template <class T>
void gelu_grad(const lane&, at dx, at dy, at x, std::size_t count);
template <class T>
void swiglu(const lane&, at y, at gate, at up, int tokens, int width, int stride);
template <class T>
void swiglu_grad(const lane&, at dgate, at dup, at dy, at gate, at up, int tokens, int width, int stride);

/// y = a + b. y may be a or b.
template <class T>
void add(const lane&, at y, at a, at b, std::size_t count);

/// mul: y = a b, with the gradients da = dy b and db = dy a. scale: y = factor x. sigmoid: y = 1 / (1 +
/// e^-x), with dx = dy y (1 - y). y may be any input of its kernel; da and dx may be dy.
template <class T>
void mul(const lane&, at y, at a, at b, std::size_t count);
template <class T>
void mul_grad(const lane&, at da, at db, at dy, at a, at b, std::size_t count);
template <class T>
void scale(const lane&, at y, at x, std::size_t count, double factor);
template <class T>
void sigmoid(const lane&, at y, at x, std::size_t count);
template <class T>
void sigmoid_grad(const lane&, at dx, at dy, at y, std::size_t count);

/// split copies the first `left` columns of x to a and the last `right` columns to b. concat is its inverse.
/// Shapes: a (rows, left), b (rows, right), x and y (rows, left + right).
template <class T>
void split(const lane&, at a, at b, at x, int rows, int left, int right);
template <class T>
void concat(const lane&, at y, at a, at b, int rows, int left, int right);

/// y = e^x / sum of e^x over the row; dx = y (dy - sum of dy y). y may be x, dx may be dy.
/// Shapes: x, y, dy, dx (tokens, width).
template <class T>
void softmax(const lane&, at y, at x, int tokens, int width);
template <class T>
void softmax_dx(const lane&, at dx, at dy, at y, int tokens, int width);

/// Routers: the `picks` largest logits of each row in falling order, with ties to the lower expert. The
/// results are the chosen experts and their weights, which are softmax or sigmoid scores. normalize scales
/// each row of x so that it adds up to `total`.
/// Shapes: logits, dlogits (tokens, experts); weights, dweights f32 (tokens, picks); chosen int32 (tokens,
/// picks); x, y, dx, dy f32 (tokens, width).
template <class T>
void softmax_top(const lane&, at weights, at chosen, at logits, int tokens, int experts, int picks);
template <class T>
void softmax_top_grad(const lane&, at dlogits, at dweights, at logits, at chosen, int tokens, int experts,
                      int picks);
template <class T>
void sigmoid_top(const lane&, at weights, at chosen, at logits, int tokens, int experts, int picks);
template <class T>
void sigmoid_top_grad(const lane&, at dlogits, at dweights, at logits, at chosen, int tokens, int experts,
                      int picks);
template <class T>
void normalize(const lane&, at y, at x, int tokens, int width, double total);
template <class T>
void normalize_grad(const lane&, at dx, at dy, at x, int tokens, int width, double total);

/// Routers with groups of experts or a bias. softmax_scores and sigmoid_scores compute the scores of all
/// experts.
/// keep_groups keeps the `taken` groups of `each` experts with the largest group scores, with ties to the
/// lower group. A group's score is the sum of its `best` largest scores. The scores of all other groups
/// become minus infinity. biased_keep_groups adds the bias to rank the groups, but not to the scores that it
/// writes.
/// The `_top_by` kernels choose the `picks` largest scores (`biased_`: scores plus bias) and compute the
/// weights from the logits. count_choices counts how often each expert was chosen.
/// Shapes: logits (tokens, experts); scores, y f32 (tokens, experts = groups * each); bias (experts); kept
/// int32 (tokens, taken); weights f32, chosen int32 (tokens, picks); dbias f32 (experts).
template <class T>
void softmax_scores(const lane&, at scores, at logits, int tokens, int experts);
template <class T>
void sigmoid_scores(const lane&, at scores, at logits, int tokens, int experts);
template <class T>
void keep_groups(const lane&, at y, at kept, at scores, int tokens, int groups, int each, int taken,
                 double best);
template <class T>
void biased_keep_groups(const lane&, at y, at kept, at scores, at bias, int tokens, int groups, int each,
                        int taken, double best);
template <class T>
void softmax_top_by(const lane&, at weights, at chosen, at logits, at scores, int tokens, int experts,
                    int picks);
template <class T>
void sigmoid_top_by(const lane&, at weights, at chosen, at logits, at scores, int tokens, int experts,
                    int picks);
template <class T>
void biased_softmax_top_by(const lane&, at weights, at chosen, at logits, at scores, at bias, int tokens,
                           int experts, int picks);
template <class T>
void biased_sigmoid_top_by(const lane&, at weights, at chosen, at logits, at scores, at bias, int tokens,
                           int experts, int picks);
template <class T>
void count_choices(const lane&, at dbias, at chosen, int tokens, int picks, int experts, bool accumulate);

/// Router statistics of a layer: three rows, summed over tokens. The first row counts how often each expert
/// was chosen. The second has the sums of each expert's scores; sigmoid scores are divided by the row's sum.
/// The third row begins with the sum of log(sum(exp(logits)))^2 and the count of dropped choices.
/// push appends a layer's statistics to those of earlier layers. The losses and their gradients for `s` are
/// described in ops/balance.hpp.
/// Shapes: f32 except logits (tokens, experts); own, down (3, experts); s, y, whole (3 * layers, experts),
/// with kinds = 3 * layers.
template <class T>
void softmax_statistics(const lane&, at own, at scratch, at logits, at chosen, int tokens, int experts,
                        int picks);
template <class T>
void softmax_statistics_grad(const lane&, at dlogits, at down, at logits, int tokens, int experts);
template <class T>
void sigmoid_statistics(const lane&, at own, at scratch, at logits, at chosen, int tokens, int experts,
                        int picks);
template <class T>
void sigmoid_statistics_grad(const lane&, at dlogits, at down, at logits, int tokens, int experts);
template <class T>
void dropped_statistics(const lane&, at own, at places, int tokens, int picks, int experts);
template <class T>
void push(const lane&, at y, at s, at own, int width, int own_width);
template <class T>
void push_grad(const lane&, at ds, at down, at dy, int width, int own_width);
template <class T>
void balance_loss(const lane&, at loss, at whole, at s, int kinds, int experts, double scale,
                  bool accumulate);
template <class T>
void balance_loss_grad(const lane&, at ds, at whole, int kinds, int experts, double scale);
template <class T>
void layer_balance_loss(const lane&, at loss, at whole, at s, int kinds, int experts, double scale,
                        bool accumulate);
template <class T>
void layer_balance_loss_grad(const lane&, at ds, at whole, int kinds, int experts, double scale);
template <class T>
void z_loss(const lane&, at loss, at whole, at s, int kinds, int experts, double scale, bool accumulate);
template <class T>
void z_loss_grad(const lane&, at ds, at whole, int kinds, int experts, double scale);
template <class T>
void overflow_loss(const lane&, at loss, at whole, at s, int kinds, int experts, double log_scale,
                   bool accumulate);
template <class T>
void overflow_loss_grad(const lane&, at ds, at whole, int kinds, int experts, double log_scale);

/// Slots of experts. arrange gives each choice a slot; the slots of an expert are contiguous and in token
/// order. dispatch copies each token's row to its slots. collect adds up each token's slots, and combine
/// first multiplies them by the weights. offsets contains the first slot of each segment, then the slot after
/// its last.
/// arrange_limited has a capacity limit: each expert keeps the first `most` choices of each group of tokens.
/// Dropped choices get slot -1, have no row, and their weights get no gradient.
/// own_slots selects the slots of the `own` experts from `first` on and renumbers them from 0. Choices of
/// other experts get slot -1.
/// Shapes: chosen, places int32 (tokens, picks); offsets int32 (2, segments); slots, dslots (tokens * picks,
/// width); scratch int32 (groups * experts + 1); x, y, dy (tokens, width); weights, dweights f32 (tokens,
/// picks).
template <class T>
void arrange(const lane&, at places, at offsets, at chosen, int tokens, int picks, int segments);
template <class T>
void arrange_limited(const lane&, at places, at offsets, at scratch, at chosen, int groups, int group,
                     int picks, int experts, int most);
template <class T>
void own_slots(const lane&, at own_places, at own_offsets, at places, at offsets, int tokens, int picks,
               int own, int first, int experts);
template <class T>
void dispatch(const lane&, at slots, at x, at places, int tokens, int picks, int width);
template <class T>
void collect(const lane&, at y, at slots, at places, int tokens, int picks, int width);
template <class T>
void combine(const lane&, at y, at slots, at weights, at places, int tokens, int picks, int width);
template <class T>
void combine_grad(const lane&, at dslots, at dweights, at dy, at slots, at weights, at places, int tokens,
                  int picks, int width);

/// mask_padding keeps the logits in columns before `columns` of the whole vocabulary and sets the others to
/// masked_logit. Its gradient sets the others to 0.
/// Shapes: x, y (tokens, vocab): this rank's `vocab` columns from `first` on. y may be x, and dx may be dy.
template <class T>
void mask_padding(const lane&, at y, at x, int tokens, int vocab, int first, double columns);
template <class T>
void mask_padding_grad(const lane&, at dx, at dy, int tokens, int vocab, int first, double columns);

/// Cross entropy over a vocabulary that may be sharded. row_max computes row maxima (then all-reduced by
/// max). exp_sums computes sums of exponentials and the target's logit (then all-reduced by sum).
/// cross_entropy computes the loss.
/// Shapes: logits (tokens, vocab): this rank's `vocab` columns from `first` on; top (tokens); sums (tokens,
/// 2): sum of exp(logit - top), and the target's logit - top (0 if another rank holds it); targets int32
/// (tokens). loss += or = scale * sum over tokens of log(sums0) - sums1.
/// d sums = (scale / sums0, -scale); d logits = dsums0 * exp(logit - top) + dsums1 * [column is the target].
/// dlogits may be logits.
/// Source: Megatron-LM (Shoeybi et al. 2019), vocab-parallel cross entropy.
template <class T>
void row_max(const lane&, at top, at logits, int tokens, int vocab);
template <class T>
void exp_sums(const lane&, at sums, at logits, at top, at targets, int tokens, int vocab, int first);
template <class T>
void exp_sums_grad(const lane&, at dlogits, at dsums, at logits, at top, at targets, int tokens, int vocab,
                   int first);
template <class T>
void cross_entropy(const lane&, at loss, at sums, int tokens, double scale, bool accumulate);
template <class T>
void cross_entropy_grad(const lane&, at dsums, at sums, int tokens, double scale);

/// count = or += the number of targets that are not negative.
/// Shapes: targets int32 (tokens), count (1).
template <class T>
void count_labels(const lane&, at count, at targets, int tokens, bool accumulate);
/// count = or += the sum of the weights of the targets that are not negative.
/// Shapes: targets int32 (tokens), weights (tokens), count (1).
template <class T>
void sum_weights(const lane&, at count, at targets, at weights, int tokens, bool accumulate);
/// total = or += minus infinity if the count is 0, else 0.
template <class T>
void skip_unlabeled(const lane&, at total, at count, bool accumulate);

/// Cross entropy over the targets that are not negative, divided by the number `count` of labels in the step.
/// Ignored tokens add nothing to the loss, and their dsums are 0. If the count is 0, the loss is 0.
/// Shapes: as cross_entropy; count (1).
template <class T>
void masked_cross_entropy(const lane&, at loss, at sums, at targets, at count, int tokens, double scale,
                          bool accumulate);
template <class T>
void masked_cross_entropy_grad(const lane&, at dsums, at sums, at targets, at count, int tokens,
                               double scale);
/// The same with each token's loss times its weight. `count` is the sum of the weights in the step.
/// Shapes: weights (tokens).
template <class T>
void weighted_cross_entropy(const lane&, at loss, at sums, at targets, at weights, at count, int tokens,
                            double scale, bool accumulate);
template <class T>
void weighted_cross_entropy_grad(const lane&, at dsums, at sums, at targets, at weights, at count, int tokens,
                                 double scale);

/// Means of sequences: y is the sum over the tokens that the rank holds of each of `rows` sequences, divided
/// by seq. The gradient is dy / seq for each token; `x` is not read.
/// Shapes: x, dx (tokens, width), y, dy (rows, width).
template <class T>
void sequence_mean(const lane&, at y, at x, int tokens, int width, int rows, int seq);
template <class T>
void sequence_mean_grad(const lane&, at dx, at dy, at x, int tokens, int width, int rows, int seq);

/// loss += or = scale * sum of (x - targets)^2; dx = 2 scale (x - targets). dx may be x.
/// Shapes: x, dx, targets (count).
template <class T>
void squared_error(const lane&, at loss, at x, at targets, std::size_t count, double scale, bool accumulate);
template <class T>
void squared_error_grad(const lane&, at dx, at x, at targets, std::size_t count, double scale);

/// total = or += the sum of squares of parameter gradients over all ranges, in one launch. It is f32 for
/// every T.
template <class T>
void sum_squares(const lane&, at total, at gradients, std::span<const range>, bool accumulate);

/// One AdamW step over all ranges in one launch, with the rank's `input`, in f32 for every T. If clip > 0,
/// gradients are scaled by min(1, clip / (sqrt(norm_squared) + 1e-6)). A range decides if its weights decay.
/// With T = bf16 and f32 weights the step also writes the rounded weights to the layout's working copy.
/// Weights and moments stored in bf16 are computed in f32 and then rounded by `How`.
/// If the norm is not finite, nothing changes.
/// Shapes: weights, gradients and moments are whole regions; ranges count their elements.
/// Source: Loshchilov and Hutter 2019, as PyTorch computes it.
template <class T, class Weight = float, class Moment = float, rounding How = rounding::nearest>
void adamw(const lane&, at weights, at gradients, at first_moment, at second_moment, at norm_squared,
           std::span<const range>);

/// One SGD step with the same clipping and rounding: g = gradient + weight_decay * weight for ranges that
/// decay, m = momentum * m + g, and weight -= lr * m, or lr * (g + momentum * m) with nesterov; without a
/// momentum, lr * g.
/// Source: Sutskever et al. 2013, as PyTorch computes it.
template <class T, class Weight = float, class Moment = float, rounding How = rounding::nearest>
void sgd(const lane&, at weights, at gradients, at momentum, at norm_squared, std::span<const range>);

/// clear: out = 0. copy: y = x. Both process `count` elements of type T. Parameter gradients are cleared as
/// float.
template <class T>
void clear(const lane&, at out, std::size_t count);
template <class T>
void copy(const lane&, at y, at x, std::size_t count);

/// copy = the f32 weights rounded to bf16 (to nearest even).
/// Shapes: copy bf16 (count), master f32 (count).
void working_copy(const lane&, at copy, at master, std::size_t count);

}  // namespace rankc::runtime::cuda
