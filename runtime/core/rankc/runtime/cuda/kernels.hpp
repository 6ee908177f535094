// SPDX-License-Identifier: Apache-2.0
// The kernels of generated CUDA code, with the host's signatures (host/kernels.hpp). Operands are arena
// offsets; outputs come first, then inputs, then sizes. `tokens` counts tokens of a microbatch on this rank
// (rows x seq, flattened). All run on the lane that they are given, and none allocates. In a deterministic
// program every sum has a fixed order: same bits each run. In others cuDNN adds up attention's dq in any
// order, and the products' algorithms are those that were fastest at install.
//
// T is float or bf16. With T = bf16 the operands are of two types:
//   bf16  activations and their gradients (x, y, dx, dy, q, k, v, o, dout, gate, up, logits, dlogits, ...)
//   and
//         the parameters that forward and backward read (w, gain, shift, b, embedding and position tables);
//   f32   statistics (stats, lse, top, sums, dsums), rope tables, losses and totals, every parameter gradient
//         (dw, dgain, dshift, db, dtable; they accumulate in f32), and the optimizer's w, g, m, v.
// So the four regions of a layout are f32 in both, but for weights and moments that the recipe keeps in bf16;
// a bf16 program reads f32 weights from a bf16 working copy (layout::working_copy), which the optimizer
// writes back and the engine refreshes when weights are set from outside.
// Arithmetic is f32 inside, and one rounding to bf16 at the end.
#pragma once
#include <rankc/contract/attention_scratch.hpp>
#include <rankc/contract/attention_setting.hpp>
#include <rankc/runtime/cuda/by_rows.hpp>
#include <rankc/runtime/cuda/fused.hpp>
#include <rankc/runtime/cuda/grouped.hpp>
#include <rankc/runtime/cuda/rank.hpp>
#include <rankc/runtime/random_bits.hpp>

namespace rankc::runtime::cuda {

/// y[n] = table[id[n] - first] where that row is held here, else 0.
/// Shapes: y (tokens, width), ids int32 (tokens), table (rows, width); ids outside [first, first + rows) give
/// 0.
template <class T>
void embedding(const lane&, at y, at ids, at table, int tokens, int rows, int width, int first);
template <class T>
void embedding_grad(const lane&, at dtable, at dy, at ids, int tokens, int rows, int width, int first,
                    bool accumulate);

/// y[n] = x[n] + table[(first + n) % seq]: learned positions. `first` is the position of this rank's first
/// token. Shapes: x, y (tokens, width), table (seq, width). y may be x.
template <class T>
void position(const lane&, at y, at x, at table, int tokens, int width, int seq, int first);
template <class T>
void position_grad(const lane&, at dtable, at dy, int tokens, int width, int seq, int first, bool accumulate);

/// The same of a rank's chunks of `rows` sequences of `seq`, each of which `ranks` share out
/// (rankc/runtime/chunks.hpp). `first` is the place of x's first token among the gathered tokens of all.
template <class T>
void chunk_position(const lane&, at y, at x, at table, int tokens, int width, int rows, int seq, int ranks,
                    int first);
template <class T>
void chunk_position_grad(const lane&, at dtable, at dy, int tokens, int width, int rows, int seq, int ranks,
                         int first, bool accumulate);

/// The same within documents: `starts` has of each token of the whole sequences where its document begins,
/// and of the table a token has the row of its position less that. Shapes: starts int32 (rows, seq).
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

/// Normalisation over the last dim; eps is added to the variance or mean square. stats: (tokens, 2) mean and
/// 1/std; for rms_norm (tokens, 1) 1/rms. Shapes: x, y, dy, dx (tokens, width), gain, shift (width). dx may
/// be dy.
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

/// y = x w^T. Shapes: x (tokens, in), w (out, in), y (tokens, out). linear_dx with accumulate adds to dx; in
/// bf16 the product is rounded before that.
template <class T>
void linear(const lane&, at y, at x, at w, int tokens, int in, int out);
template <class T>
void linear_dx(const lane&, at dx, at dy, at w, int tokens, int in, int out, bool accumulate);
template <class T>
void linear_dw(const lane&, at dw, at dy, at x, int tokens, int in, int out, bool accumulate);

/// y = x + b per row. Shapes: x, y (tokens, width), b (width). y may be x.
template <class T>
void bias(const lane&, at y, at x, at b, int tokens, int width);
template <class T>
void bias_grad(const lane&, at db, at dy, int tokens, int width, bool accumulate);

/// Rotary positions, half-split form, token n at position n % seq; rope_grad rotates back. y may be x.
/// `stride` is the distance, in elements, from one token to the next in x and in y.
/// Shapes: x, y (tokens, heads, dim) with that stride; table: cosines (seq, dim / 2), then sines.
/// Source: Su et al. 2021.
template <class T>
void rope(const lane&, at y, at x, at table, int tokens, int heads, int dim, int seq, int stride);
template <class T>
void rope_grad(const lane&, at dx, at dy, at table, int tokens, int heads, int dim, int seq, int stride);

/// Causal attention per sequence and head, scale 1/sqrt(dim); query head h uses kv head h / (heads /
/// kv_heads). `q_stride`, `k_stride` and `v_stride` are the distances, in elements, from one token to the
/// next in q (and dq), in k (and dk) and in v (and dv): the three may be columns of one packed buffer.
/// Kernels for tensor cores take heads of one size, and keys and values of one stride.
/// Shapes: q, dq (rows * seq, heads, dim), k, dk (rows * seq, kv_heads, dim) and v, dv (rows * seq,
///         kv_heads, value_dim) with those strides; o, do (rows * seq, heads, value_dim) without gaps; lse
///         (rows, heads, seq): log-sum-exp of the scaled scores; scratch: as attention_scratch.hpp specifies.
///         dim and value_dim are at most 128.
/// Source: FlashAttention (Dao et al. 2022), for what is saved.
template <class T>
void attention(const lane&, at o, at lse, at scratch, at q, at k, at v, int rows, int seq, int heads,
               int kv_heads, int dim, int value_dim, int q_stride, int k_stride, int v_stride,
               const attention_setting& = {});
template <class T>
void attention_grad(const lane&, at dq, at dk, at dv, at scratch, at dout, at q, at k, at v, at o, at lse,
                    int rows, int seq, int heads, int kv_heads, int dim, int value_dim, int q_stride,
                    int k_stride, int v_stride, const attention_setting& = {});

/// The same of a rank's chunks of sequences of `seq`, each of which `ranks` share out
/// (rankc/runtime/chunks.hpp), to the gathered keys of all; of keys that the rank's queries do not see dk and
/// dv are 0. `first` is the place of q's first token among these.
/// Shapes: as above with seq / ranks for seq in what is of queries; scratch: chunk_attention_scratch and
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

/// The same, to the keys of one rank of the ring: of the one that is `step` ranks before; its part of the
/// result, and the part's log-sum-exp, -infinity where a query sees none of the keys. merge_attention makes
/// one of two parts; o may be o_before, and lse lse_before. The gradient is given the result and the
/// log-sum-exp of all parts, and what dq, dk and dv have of these keys.
/// Shapes: as above with seq / ring for seq, without gaps; scratch: attention_scratch and
/// attention_grad_scratch of these.
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

/// The same within documents, by rankc's own kernels: a query sees no key before its document's first token,
/// which `starts` has for each token of the whole sequences.
/// Shapes: starts int32 (rows, seq); scratch: attention_scratch, and document_attention_grad_scratch of the
/// queries for a gradient.
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
/// value. sink_scores gives each token a row of them; x is not read. add_sinks changes attention's result and
/// its log-sum-exp; o may be o_before, and lse lse_before. Its gradient takes the changed results.
/// Shapes: scores and dscores (tokens, heads), sinks (heads), x, o and dout (tokens, heads, dim),
///         lse (rows, heads, tokens / rows).
template <class T>
void sink_scores(const lane&, at scores, at x, at sinks, int tokens, int heads, int dim);
template <class T>
void add_sinks(const lane&, at o, at lse, at o_before, at lse_before, at scores, int rows, int tokens,
               int heads, int dim);
template <class T>
void add_sinks_grad(const lane&, at dscores, at dout, at o, at lse, at scores, int rows, int tokens,
                    int heads, int dim);

/// GELU in its tanh form, and SwiGLU: y = silu(gate) * up, whose rows of gate and up (and of dgate and dup)
/// are `stride` elements apart. dx may be dy; gelu's y may be x.
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

/// y = a b; its gradients, da = dy b and db = dy a; y = factor x; y = 1 / (1 + e^-x), and dx = dy y (1 - y).
/// y may be any input of its kernel; da and dx may be dy.
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

/// The first `left` and the last `right` columns of rows, and rows of the two.
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

/// The largest `picks` of each row's scores, of equal ones those of lower experts, by falling score: weights,
/// and the experts that were chosen. Scores are the softmax of the row, or sigmoids. Then rows of y are x,
/// made to add up to `total`.
/// Shapes: logits, dlogits (tokens, experts); weights, dweights f32 (tokens, picks); chosen int32 (tokens,
/// picks);
///         x, y, dx, dy f32 (tokens, width).
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

/// Scores of all experts; those of groups of `each` experts, of which those are kept whose `best` largest add
/// up to most, of equal ones the lower: the others are minus infinity; groups with a bias by scores that have
/// it, which what is kept has not. Then the experts of the largest scores, or of these with the bias, and
/// their weights of the logits. How often each expert was chosen.
/// Shapes: logits (tokens, experts); scores, y f32 (tokens, experts = groups * each); bias (experts); kept
/// int32 (tokens, taken);
///         weights f32, chosen int32 (tokens, picks); dbias f32 (experts).
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

/// Of a router, over tokens: how often each expert was among the largest `picks` of a row, the sums of their
/// scores (of sigmoids divided by those of the row) and of squares of log(sum(exp(row))), first in a row of
/// its own, and of picks without a place, second there. Statistics of a layer behind those of others, of
/// which the first make room. Losses of so many layers, and what they give `s`: see ops/balance.hpp.
/// Shapes: f32 but for logits (tokens, experts); own, down (3, experts); s, y, whole (3 * layers, experts),
/// of which kinds = 3 * layers.
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

/// A slot for each pick, those of one expert side by side in the order of tokens; the rows of tokens in their
/// slots; each token's slots added up, or first multiplied by its weights. offsets: where the slots of each
/// segment begin, and then where they end. arrange_limited: of each of so many groups of tokens an expert
/// takes its first `most` picks; others have no slot, and -1 for a place, which the rest pass over: there is
/// nothing of theirs, and no gradient of their weights. own_slots: of places and offsets of all experts'
/// slots those of the `own` experts from `first` on, counted from their first slot; picks of others have no
/// slot.
/// Shapes: chosen, places int32 (tokens, picks); offsets int32 (2, segments); slots, dslots (tokens * picks,
/// width);
///         scratch int32 (groups * experts + 1);
///         x, y, dy (tokens, width); weights, dweights f32 (tokens, picks).
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

/// Cross entropy over a vocabulary that may be split over ranks: row maxima (then max over ranks), sums of
/// exponentials and the target's logit (then summed over ranks), the loss.
/// Shapes: logits (tokens, vocab), vocab columns of this rank from `first` on; top (tokens);
///         sums (tokens, 2): sum of exp(logit - top), and the target's logit - top (0 where held elsewhere);
///         targets int32 (tokens). loss += or = scale * sum over tokens of log(sums0) - sums1.
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
/// total = or += minus infinity if the count is 0, else 0.
template <class T>
void skip_unlabeled(const lane&, at total, at count, bool accumulate);

/// Cross entropy of the targets that are not negative, divided by the number `count` of labels in the step.
/// The other tokens have no loss, and their dsums are 0. If the count is 0, the loss is 0.
/// Shapes: as cross_entropy; count (1).
template <class T>
void masked_cross_entropy(const lane&, at loss, at sums, at targets, at count, int tokens, double scale,
                          bool accumulate);
template <class T>
void masked_cross_entropy_grad(const lane&, at dsums, at sums, at targets, at count, int tokens,
                               double scale);

/// Means of sequences: y = sum over the tokens of a row / seq, of the tokens that the rank has of each of
/// `rows` sequences. The gradient is dy / seq for each token; `x` is not read.
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

/// total = or += sum of squares of parameter gradients, over all ranges in one launch: f32 whatever T is.
template <class T>
void sum_squares(const lane&, at total, at gradients, std::span<const range>, bool accumulate);

/// One AdamW step over all ranges in one launch, with the rank's `input`, f32 whatever T is; gradients are
/// scaled by min(1, clip / (sqrt(norm_squared) + 1e-6)) where clip > 0; weight decay where the range says so.
/// With T = bf16 and f32 weights these are also written, rounded, to the layout's working copy. Weights and
/// moments that are kept in bf16 are rounded as `How` says, after all is worked out.
/// Where the norm is not finite all stays as it is.
/// Shapes: weights, gradients and moments are whole regions; ranges count their elements.
/// Source: Loshchilov and Hutter 2019, as PyTorch computes it.
template <class T, class Weight = float, class Moment = float, rounding How = rounding::nearest>
void adamw(const lane&, at weights, at gradients, at first_moment, at second_moment, at norm_squared,
           std::span<const range>);

/// One step of stochastic gradient descent in the same manner: g = gradient + weight_decay * weight where the
/// range says so, m = momentum * m + g, and weight -= lr * m, or lr * (g + momentum * m) with nesterov;
/// without a momentum, lr * g.
/// Source: Sutskever et al. 2013, as PyTorch computes it.
template <class T, class Weight = float, class Moment = float, rounding How = rounding::nearest>
void sgd(const lane&, at weights, at gradients, at momentum, at norm_squared, std::span<const range>);

/// out = 0, y = x: `count` elements of type T; parameter gradients are cleared as float.
template <class T>
void clear(const lane&, at out, std::size_t count);
template <class T>
void copy(const lane&, at y, at x, std::size_t count);

/// copy = the f32 weights rounded to bf16 (to nearest even).
/// Shapes: copy bf16 (count), master f32 (count).
void working_copy(const lane&, at copy, at master, std::size_t count);

}  // namespace rankc::runtime::cuda
