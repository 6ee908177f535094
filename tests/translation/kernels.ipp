// SPDX-License-Identifier: Apache-2.0
// Records the kernels that kernels.hpp declares in the same way for both targets: each operand with the shape
// in the header. Included inside each target's namespace.

template <class T>
void embedding(const lane& on, at y, at ids, at table, int tokens, int rows, int width, int first) {
  kernel(on, "embedding")
      .out(y, all<T>(tokens, width))
      .in(ids, all<std::int32_t>(tokens))
      .in(table, all<T>(rows, width));
  expect_first_row(table, rows, first);
}
template <class T>
void embedding_grad(const lane& on, at dtable, at dy, at ids, int tokens, int rows, int width, int first,
                    bool accumulate) {
  kernel(on, "embedding_grad")
      .sum(dtable, accumulate, all<wide<T>>(rows, width))
      .in(dy, all<T>(tokens, width))
      .in(ids, all<std::int32_t>(tokens));
  expect_first_row(dtable, rows, first);
}
template <class T>
void position(const lane& on, at y, at x, at table, int tokens, int width, int seq, int first) {
  kernel(on, "position")
      .out(y, all<T>(tokens, width))
      .in(x, all<T>(tokens, width))
      .in(table, all<T>(seq, width));
  expect_first_token(tokens, first);
}
template <class T>
void position_grad(const lane& on, at dtable, at dy, int tokens, int width, int seq, int first,
                   bool accumulate) {
  kernel(on, "position_grad").sum(dtable, accumulate, all<wide<T>>(seq, width)).in(dy, all<T>(tokens, width));
  expect_first_token(tokens, first);
}

template <class T>
void chunk_position(const lane& on, at y, at x, at table, int tokens, int width, int rows, int seq, int ranks,
                    int first) {
  kernel(on, "chunk_position")
      .out(y, all<T>(tokens, width))
      .in(x, all<T>(tokens, width))
      .in(table, all<T>(seq, width));
  expect_chunks(tokens, rows, seq, ranks, first);
}
template <class T>
void chunk_position_grad(const lane& on, at dtable, at dy, int tokens, int width, int rows, int seq,
                         int ranks, int first, bool accumulate) {
  kernel(on, "chunk_position_grad")
      .sum(dtable, accumulate, all<wide<T>>(seq, width))
      .in(dy, all<T>(tokens, width));
  expect_chunks(tokens, rows, seq, ranks, first);
}

// The same within documents, with their starts.
template <class T>
void document_position(const lane& on, at y, at x, at table, at starts, int tokens, int width, int seq,
                       int first) {
  position<T>(on, y, x, table, tokens, width, seq, first);
  within_documents("document_position", starts, recorder::active().about().tokens_of_microbatch());
}
template <class T>
void document_position_grad(const lane& on, at dtable, at dy, at starts, int tokens, int width, int seq,
                            int first, bool accumulate) {
  position_grad<T>(on, dtable, dy, tokens, width, seq, first, accumulate);
  within_documents("document_position_grad", starts, recorder::active().about().tokens_of_microbatch());
}
template <class T>
void document_chunk_position(const lane& on, at y, at x, at table, at starts, int tokens, int width, int rows,
                             int seq, int ranks, int first) {
  chunk_position<T>(on, y, x, table, tokens, width, rows, seq, ranks, first);
  within_documents("document_chunk_position", starts, product(rows, seq));
}
template <class T>
void document_chunk_position_grad(const lane& on, at dtable, at dy, at starts, int tokens, int width,
                                  int rows, int seq, int ranks, int first, bool accumulate) {
  chunk_position_grad<T>(on, dtable, dy, tokens, width, rows, seq, ranks, first, accumulate);
  within_documents("document_chunk_position_grad", starts, product(rows, seq));
}

template <class T>
void to_e4m3(const lane& on, at q, at x, int rows, int columns) {
  kernel(on, "to_e4m3").out(q, fp8(rows, columns)).in(x, all<T>(rows, columns));
}
template <class T>
void to_e5m2(const lane& on, at q, at x, int rows, int columns) {
  kernel(on, "to_e5m2").out(q, fp8(rows, columns)).in(x, all<T>(rows, columns));
}
template <class T>
void linear_fp8(const lane& on, at y, at x, at w, int tokens, int in, int out) {
  kernel(on, "linear_fp8").out(y, all<T>(tokens, out)).in(x, fp8(tokens, in)).in(w, fp8(out, in));
}
template <class T>
void linear_dx_fp8(const lane& on, at dx, at dy, at w, int tokens, int in, int out, bool accumulate) {
  kernel(on, "linear_dx_fp8")
      .sum(dx, accumulate, all<T>(tokens, in))
      .in(dy, fp8(tokens, out))
      .in(w, fp8(out, in));
}
template <class T>
void linear_dw_fp8(const lane& on, at dw, at dy, at x, int tokens, int in, int out, bool accumulate) {
  kernel(on, "linear_dw_fp8")
      .sum(dw, accumulate, all<wide<T>>(out, in))
      .in(dy, fp8(tokens, out))
      .in(x, fp8(tokens, in));
}
template <class T>
void to_e4m3_rows(const lane& on, at q, at x, int rows, int columns) {
  kernel(on, "to_e4m3_rows").out(q, fp8_rows(rows, columns)).in(x, all<T>(rows, columns));
}
template <class T>
void linear_fp8_rows(const lane& on, at y, at x, at w, int tokens, int in, int out) {
  kernel(on, "linear_fp8_rows")
      .out(y, all<T>(tokens, out))
      .in(x, fp8_rows(tokens, in))
      .in(w, fp8_rows(out, in));
}
template <class T>
void linear_dx_fp8_rows(const lane& on, at dx, at dy, at w, int tokens, int in, int out, bool accumulate) {
  kernel(on, "linear_dx_fp8_rows")
      .sum(dx, accumulate, all<T>(tokens, in))
      .in(dy, fp8_rows(tokens, out))
      .in(w, fp8_rows(out, in));
}
template <class T>
void linear_dw_fp8_rows(const lane& on, at dw, at dy, at x, int tokens, int in, int out, bool accumulate) {
  kernel(on, "linear_dw_fp8_rows")
      .sum(dw, accumulate, all<wide<T>>(out, in))
      .in(dy, fp8_rows(tokens, out))
      .in(x, fp8_rows(tokens, in));
}

template <class T>
void layer_norm(const lane& on, at y, at stats, at x, at gain, at shift, int tokens, int width, double eps) {
  kernel(on, "layer_norm")
      .with(eps)
      .out(y, all<T>(tokens, width))
      .out(stats, all<wide<T>>(tokens, 2))
      .in(x, all<T>(tokens, width))
      .in(gain, all<T>(width))
      .in(shift, all<T>(width));
}
template <class T>
void layer_norm_dx(const lane& on, at dx, at dy, at x, at stats, at gain, int tokens, int width) {
  kernel(on, "layer_norm_dx")
      .out(dx, all<T>(tokens, width))
      .in(dy, all<T>(tokens, width))
      .in(x, all<T>(tokens, width))
      .in(stats, all<wide<T>>(tokens, 2))
      .in(gain, all<T>(width));
}
template <class T>
void layer_norm_dw(const lane& on, at dgain, at dshift, at dy, at x, at stats, int tokens, int width,
                   bool accumulate) {
  kernel(on, "layer_norm_dw")
      .sum(dgain, accumulate, all<wide<T>>(width))
      .sum(dshift, accumulate, all<wide<T>>(width))
      .in(dy, all<T>(tokens, width))
      .in(x, all<T>(tokens, width))
      .in(stats, all<wide<T>>(tokens, 2));
}
template <class T>
void rms_norm(const lane& on, at y, at stats, at x, at gain, int tokens, int width, double eps) {
  kernel(on, "rms_norm")
      .with(eps)
      .out(y, all<T>(tokens, width))
      .out(stats, all<wide<T>>(tokens))
      .in(x, all<T>(tokens, width))
      .in(gain, all<T>(width));
}
template <class T>
void rms_norm_dx(const lane& on, at dx, at dy, at x, at stats, at gain, int tokens, int width) {
  kernel(on, "rms_norm_dx")
      .out(dx, all<T>(tokens, width))
      .in(dy, all<T>(tokens, width))
      .in(x, all<T>(tokens, width))
      .in(stats, all<wide<T>>(tokens))
      .in(gain, all<T>(width));
}
template <class T>
void rms_norm_dw(const lane& on, at dgain, at dy, at x, at stats, int tokens, int width, bool accumulate) {
  kernel(on, "rms_norm_dw")
      .sum(dgain, accumulate, all<wide<T>>(width))
      .in(dy, all<T>(tokens, width))
      .in(x, all<T>(tokens, width))
      .in(stats, all<wide<T>>(tokens));
}

template <class T>
void linear(const lane& on, at y, at x, at w, int tokens, int in, int out) {
  kernel(on, "linear").out(y, all<T>(tokens, out)).in(x, all<T>(tokens, in)).in(w, all<T>(out, in));
}
template <class T>
void linear_dx(const lane& on, at dx, at dy, at w, int tokens, int in, int out, bool accumulate) {
  kernel(on, "linear_dx")
      .sum(dx, accumulate, all<T>(tokens, in))
      .in(dy, all<T>(tokens, out))
      .in(w, all<T>(out, in));
}
template <class T>
void linear_dw(const lane& on, at dw, at dy, at x, int tokens, int in, int out, bool accumulate) {
  kernel(on, "linear_dw")
      .sum(dw, accumulate, all<wide<T>>(out, in))
      .in(dy, all<T>(tokens, out))
      .in(x, all<T>(tokens, in));
}

template <class T>
void bias(const lane& on, at y, at x, at b, int tokens, int width) {
  kernel(on, "bias").out(y, all<T>(tokens, width)).in(x, all<T>(tokens, width)).in(b, all<T>(width));
}
template <class T>
void bias_grad(const lane& on, at db, at dy, int tokens, int width, bool accumulate) {
  kernel(on, "bias_grad").sum(db, accumulate, all<wide<T>>(width)).in(dy, all<T>(tokens, width));
}

template <class T>
void gelu(const lane& on, at y, at x, std::size_t count) {
  kernel(on, "gelu").out(y, all<T>(count)).in(x, all<T>(count));
}
template <class T>
void gelu_grad(const lane& on, at dx, at dy, at x, std::size_t count) {
  kernel(on, "gelu_grad").out(dx, all<T>(count)).in(dy, all<T>(count)).in(x, all<T>(count));
}
template <class T>
void add(const lane& on, at y, at a, at b, std::size_t count) {
  kernel(on, "add").out(y, all<T>(count)).in(a, all<T>(count)).in(b, all<T>(count));
}

template <class T>
void mul(const lane& on, at y, at a, at b, std::size_t count) {
  kernel(on, "mul").out(y, all<T>(count)).in(a, all<T>(count)).in(b, all<T>(count));
}
template <class T>
void mul_grad(const lane& on, at da, at db, at dy, at a, at b, std::size_t count) {
  kernel(on, "mul_grad")
      .out(da, all<T>(count))
      .out(db, all<T>(count))
      .in(dy, all<T>(count))
      .in(a, all<T>(count))
      .in(b, all<T>(count));
}
template <class T>
void scale(const lane& on, at y, at x, std::size_t count, double factor) {
  kernel(on, "scale").with(factor).out(y, all<T>(count)).in(x, all<T>(count));
}
template <class T>
void sigmoid(const lane& on, at y, at x, std::size_t count) {
  kernel(on, "sigmoid").out(y, all<T>(count)).in(x, all<T>(count));
}
template <class T>
void sigmoid_grad(const lane& on, at dx, at dy, at y, std::size_t count) {
  kernel(on, "sigmoid_grad").out(dx, all<T>(count)).in(dy, all<T>(count)).in(y, all<T>(count));
}
template <class T>
void split(const lane& on, at a, at b, at x, int rows, int left, int right) {
  kernel(on, "split")
      .out(a, all<T>(rows, left))
      .out(b, all<T>(rows, right))
      .in(x, all<T>(rows, left + right));
}
template <class T>
void concat(const lane& on, at y, at a, at b, int rows, int left, int right) {
  kernel(on, "concat")
      .out(y, all<T>(rows, left + right))
      .in(a, all<T>(rows, left))
      .in(b, all<T>(rows, right));
}
template <class T>
void softmax(const lane& on, at y, at x, int tokens, int width) {
  kernel(on, "softmax").out(y, all<T>(tokens, width)).in(x, all<T>(tokens, width));
}
template <class T>
void softmax_dx(const lane& on, at dx, at dy, at y, int tokens, int width) {
  kernel(on, "softmax_dx")
      .out(dx, all<T>(tokens, width))
      .in(dy, all<T>(tokens, width))
      .in(y, all<T>(tokens, width));
}

template <class T>
void softmax_top(const lane& on, at weights, at chosen, at logits, int tokens, int experts, int picks) {
  kernel(on, "softmax_top")
      .out(weights, all<wide<T>>(tokens, picks))
      .out(chosen, all<std::int32_t>(tokens, picks))
      .in(logits, all<T>(tokens, experts));
}
template <class T>
void softmax_top_grad(const lane& on, at dlogits, at dweights, at logits, at chosen, int tokens, int experts,
                      int picks) {
  kernel(on, "softmax_top_grad")
      .out(dlogits, all<T>(tokens, experts))
      .in(dweights, all<wide<T>>(tokens, picks))
      .in(logits, all<T>(tokens, experts))
      .in(chosen, all<std::int32_t>(tokens, picks));
}
template <class T>
void sigmoid_top(const lane& on, at weights, at chosen, at logits, int tokens, int experts, int picks) {
  kernel(on, "sigmoid_top")
      .out(weights, all<wide<T>>(tokens, picks))
      .out(chosen, all<std::int32_t>(tokens, picks))
      .in(logits, all<T>(tokens, experts));
}
template <class T>
void sigmoid_top_grad(const lane& on, at dlogits, at dweights, at logits, at chosen, int tokens, int experts,
                      int picks) {
  kernel(on, "sigmoid_top_grad")
      .out(dlogits, all<T>(tokens, experts))
      .in(dweights, all<wide<T>>(tokens, picks))
      .in(logits, all<T>(tokens, experts))
      .in(chosen, all<std::int32_t>(tokens, picks));
}
template <class T>
void softmax_scores(const lane& on, at scores, at logits, int tokens, int experts) {
  kernel(on, "softmax_scores").out(scores, all<wide<T>>(tokens, experts)).in(logits, all<T>(tokens, experts));
}
template <class T>
void sigmoid_scores(const lane& on, at scores, at logits, int tokens, int experts) {
  kernel(on, "sigmoid_scores").out(scores, all<wide<T>>(tokens, experts)).in(logits, all<T>(tokens, experts));
}
template <class T>
void keep_groups(const lane& on, at y, at kept, at scores, int tokens, int groups, int each, int taken,
                 double best) {
  kernel(on, "keep_groups")
      .with(best)
      .out(y, all<wide<T>>(tokens, groups * each))
      .out(kept, all<std::int32_t>(tokens, taken))
      .in(scores, all<wide<T>>(tokens, groups * each));
}
template <class T>
void biased_keep_groups(const lane& on, at y, at kept, at scores, at bias, int tokens, int groups, int each,
                        int taken, double best) {
  kernel(on, "biased_keep_groups")
      .with(best)
      .out(y, all<wide<T>>(tokens, groups * each))
      .out(kept, all<std::int32_t>(tokens, taken))
      .in(scores, all<wide<T>>(tokens, groups * each))
      .in(bias, all<T>(groups * each));
}
template <class T>
void softmax_top_by(const lane& on, at weights, at chosen, at logits, at scores, int tokens, int experts,
                    int picks) {
  kernel(on, "softmax_top_by")
      .out(weights, all<wide<T>>(tokens, picks))
      .out(chosen, all<std::int32_t>(tokens, picks))
      .in(logits, all<T>(tokens, experts))
      .in(scores, all<wide<T>>(tokens, experts));
}
template <class T>
void sigmoid_top_by(const lane& on, at weights, at chosen, at logits, at scores, int tokens, int experts,
                    int picks) {
  kernel(on, "sigmoid_top_by")
      .out(weights, all<wide<T>>(tokens, picks))
      .out(chosen, all<std::int32_t>(tokens, picks))
      .in(logits, all<T>(tokens, experts))
      .in(scores, all<wide<T>>(tokens, experts));
}
template <class T>
void biased_softmax_top_by(const lane& on, at weights, at chosen, at logits, at scores, at bias, int tokens,
                           int experts, int picks) {
  kernel(on, "biased_softmax_top_by")
      .out(weights, all<wide<T>>(tokens, picks))
      .out(chosen, all<std::int32_t>(tokens, picks))
      .in(logits, all<T>(tokens, experts))
      .in(scores, all<wide<T>>(tokens, experts))
      .in(bias, all<T>(experts));
}
template <class T>
void biased_sigmoid_top_by(const lane& on, at weights, at chosen, at logits, at scores, at bias, int tokens,
                           int experts, int picks) {
  kernel(on, "biased_sigmoid_top_by")
      .out(weights, all<wide<T>>(tokens, picks))
      .out(chosen, all<std::int32_t>(tokens, picks))
      .in(logits, all<T>(tokens, experts))
      .in(scores, all<wide<T>>(tokens, experts))
      .in(bias, all<T>(experts));
}
template <class T>
void count_choices(const lane& on, at dbias, at chosen, int tokens, int picks, int experts, bool accumulate) {
  kernel(on, "count_choices")
      .sum(dbias, accumulate, all<wide<T>>(experts))
      .in(chosen, all<std::int32_t>(tokens, picks));
}
template <class T>
void normalize(const lane& on, at y, at x, int tokens, int width, double total) {
  kernel(on, "normalize").with(total).out(y, all<wide<T>>(tokens, width)).in(x, all<wide<T>>(tokens, width));
}
template <class T>
void normalize_grad(const lane& on, at dx, at dy, at x, int tokens, int width, double total) {
  kernel(on, "normalize_grad")
      .with(total)
      .out(dx, all<wide<T>>(tokens, width))
      .in(dy, all<wide<T>>(tokens, width))
      .in(x, all<wide<T>>(tokens, width));
}
template <class T>
void softmax_statistics_grad(const lane& on, at dlogits, at down, at logits, int tokens, int experts) {
  kernel(on, "softmax_statistics_grad")
      .out(dlogits, all<T>(tokens, experts))
      .in(down, all<wide<T>>(3 * experts))
      .in(logits, all<T>(tokens, experts));
}
template <class T>
void sigmoid_statistics_grad(const lane& on, at dlogits, at down, at logits, int tokens, int experts) {
  kernel(on, "sigmoid_statistics_grad")
      .out(dlogits, all<T>(tokens, experts))
      .in(down, all<wide<T>>(3 * experts))
      .in(logits, all<T>(tokens, experts));
}
template <class T>
void dropped_statistics(const lane& on, at own, at places, int tokens, int picks, int experts) {
  kernel(on, "dropped_statistics")
      .out(own, all<wide<T>>(3 * experts))
      .in(places, all<std::int32_t>(tokens, picks));
}
template <class T>
void push(const lane& on, at y, at s, at own, int width, int own_width) {
  kernel(on, "push").out(y, all<wide<T>>(width)).in(s, all<wide<T>>(width)).in(own, all<wide<T>>(own_width));
}
template <class T>
void push_grad(const lane& on, at ds, at down, at dy, int width, int own_width) {
  kernel(on, "push_grad")
      .out(ds, all<wide<T>>(width))
      .out(down, all<wide<T>>(own_width))
      .in(dy, all<wide<T>>(width));
}
template <class T>
void balance_loss(const lane& on, at loss, at whole, at s, int kinds, int experts, double scale,
                  bool accumulate) {
  kernel(on, "balance_loss")
      .with(scale)
      .sum(loss, accumulate, all<wide<T>>(1))
      .in(whole, all<wide<T>>(kinds, experts))
      .in(s, all<wide<T>>(kinds, experts));
}
template <class T>
void balance_loss_grad(const lane& on, at ds, at whole, int kinds, int experts, double scale) {
  kernel(on, "balance_loss_grad")
      .with(scale)
      .out(ds, all<wide<T>>(kinds, experts))
      .in(whole, all<wide<T>>(kinds, experts));
}
template <class T>
void layer_balance_loss(const lane& on, at loss, at whole, at s, int kinds, int experts, double scale,
                        bool accumulate) {
  kernel(on, "layer_balance_loss")
      .with(scale)
      .sum(loss, accumulate, all<wide<T>>(1))
      .in(whole, all<wide<T>>(kinds, experts))
      .in(s, all<wide<T>>(kinds, experts));
}
template <class T>
void layer_balance_loss_grad(const lane& on, at ds, at whole, int kinds, int experts, double scale) {
  kernel(on, "layer_balance_loss_grad")
      .with(scale)
      .out(ds, all<wide<T>>(kinds, experts))
      .in(whole, all<wide<T>>(kinds, experts));
}
template <class T>
void z_loss(const lane& on, at loss, at whole, at s, int kinds, int experts, double scale, bool accumulate) {
  kernel(on, "z_loss")
      .with(scale)
      .sum(loss, accumulate, all<wide<T>>(1))
      .in(whole, all<wide<T>>(kinds, experts))
      .in(s, all<wide<T>>(kinds, experts));
}
template <class T>
void z_loss_grad(const lane& on, at ds, at whole, int kinds, int experts, double scale) {
  kernel(on, "z_loss_grad")
      .with(scale)
      .out(ds, all<wide<T>>(kinds, experts))
      .in(whole, all<wide<T>>(kinds, experts));
}
template <class T>
void overflow_loss(const lane& on, at loss, at whole, at s, int kinds, int experts, double log_scale,
                   bool accumulate) {
  kernel(on, "overflow_loss")
      .with(log_scale)
      .sum(loss, accumulate, all<wide<T>>(1))
      .in(whole, all<wide<T>>(kinds, experts))
      .in(s, all<wide<T>>(kinds, experts));
}
template <class T>
void overflow_loss_grad(const lane& on, at ds, at whole, int kinds, int experts, double log_scale) {
  kernel(on, "overflow_loss_grad")
      .with(log_scale)
      .out(ds, all<wide<T>>(kinds, experts))
      .in(whole, all<wide<T>>(kinds, experts));
}
template <class T>
void arrange(const lane& on, at places, at offsets, at chosen, int tokens, int picks, int segments) {
  kernel(on, "arrange")
      .out(places, all<std::int32_t>(tokens, picks))
      .out(offsets, all<std::int32_t>(2, segments))
      .in(chosen, all<std::int32_t>(tokens, picks));
}
template <class T>
void arrange_limited(const lane& on, at places, at offsets, at scratch, at chosen, int groups, int group,
                     int picks, int experts, int most) {
  kernel(on, "arrange_limited")
      .with(most)
      .out(places, all<std::int32_t>(groups * group, picks))
      .out(offsets, all<std::int32_t>(2, experts))
      .out(scratch, all<std::int32_t>(groups * experts + 1))
      .in(chosen, all<std::int32_t>(groups * group, picks));
}
template <class T>
void own_slots(const lane& on, at own_places, at own_offsets, at places, at offsets, int tokens, int picks,
               int own, int first, int experts) {
  kernel(on, "own_slots")
      .out(own_places, all<std::int32_t>(tokens, picks))
      .out(own_offsets, all<std::int32_t>(2, own))
      .in(places, all<std::int32_t>(tokens, picks))
      .in(offsets, all<std::int32_t>(2, experts));
  expect_first_expert(own, first);
}
template <class T>
void dispatch(const lane& on, at slots, at x, at places, int tokens, int picks, int width) {
  kernel(on, "dispatch")
      .out(slots, all<T>(tokens * picks, width))
      .in(x, all<T>(tokens, width))
      .in(places, all<std::int32_t>(tokens, picks));
}
template <class T>
void collect(const lane& on, at y, at slots, at places, int tokens, int picks, int width) {
  kernel(on, "collect")
      .out(y, all<T>(tokens, width))
      .in(slots, all<T>(tokens * picks, width))
      .in(places, all<std::int32_t>(tokens, picks));
}
template <class T>
void combine(const lane& on, at y, at slots, at weights, at places, int tokens, int picks, int width) {
  kernel(on, "combine")
      .out(y, all<T>(tokens, width))
      .in(slots, all<T>(tokens * picks, width))
      .in(weights, all<wide<T>>(tokens, picks))
      .in(places, all<std::int32_t>(tokens, picks));
}
template <class T>
void combine_grad(const lane& on, at dslots, at dweights, at dy, at slots, at weights, at places, int tokens,
                  int picks, int width) {
  kernel(on, "combine_grad")
      .out(dslots, all<T>(tokens * picks, width))
      .out(dweights, all<wide<T>>(tokens, picks))
      .in(dy, all<T>(tokens, width))
      .in(slots, all<T>(tokens * picks, width))
      .in(weights, all<wide<T>>(tokens, picks))
      .in(places, all<std::int32_t>(tokens, picks));
}
template <class T>
void grouped_linear(const lane& on, at y, at x, at w, at offsets, int rows, int in, int out, int segments,
                    int experts) {
  kernel(on, "grouped_linear")
      .out(y, all<T>(rows, out))
      .in(x, all<T>(rows, in))
      .in(w, all<T>(experts * out, in))
      .in(offsets, all<std::int32_t>(2, segments));
}
template <class T>
void grouped_linear_dx(const lane& on, at dx, at dy, at w, at offsets, int rows, int in, int out,
                       int segments, int experts) {
  kernel(on, "grouped_linear_dx")
      .out(dx, all<T>(rows, in))
      .in(dy, all<T>(rows, out))
      .in(w, all<T>(experts * out, in))
      .in(offsets, all<std::int32_t>(2, segments));
}
template <class T>
void grouped_linear_dw(const lane& on, at dw, at dy, at x, at offsets, int rows, int in, int out,
                       int segments, int experts, bool accumulate) {
  kernel(on, "grouped_linear_dw")
      .sum(dw, accumulate, all<wide<T>>(experts * out, in))
      .in(dy, all<T>(rows, out))
      .in(x, all<T>(rows, in))
      .in(offsets, all<std::int32_t>(2, segments));
}

template <class T>
void mask_padding(const lane& on, at y, at x, int tokens, int vocab, int first, double columns) {
  kernel(on, "mask_padding").with(columns).out(y, all<T>(tokens, vocab)).in(x, all<T>(tokens, vocab));
  expect_first_column(vocab, first);
}
template <class T>
void mask_padding_grad(const lane& on, at dx, at dy, int tokens, int vocab, int first, double columns) {
  kernel(on, "mask_padding_grad").with(columns).out(dx, all<T>(tokens, vocab)).in(dy, all<T>(tokens, vocab));
  expect_first_column(vocab, first);
}
template <class T>
void row_max(const lane& on, at top, at logits, int tokens, int vocab) {
  kernel(on, "row_max").out(top, all<wide<T>>(tokens)).in(logits, all<T>(tokens, vocab));
}
template <class T>
void exp_sums(const lane& on, at sums, at logits, at top, at targets, int tokens, int vocab, int first) {
  kernel(on, "exp_sums")
      .out(sums, all<wide<T>>(tokens, 2))
      .in(logits, all<T>(tokens, vocab))
      .in(top, all<wide<T>>(tokens))
      .in(targets, all<std::int32_t>(tokens));
  expect_first_column(vocab, first);
}
template <class T>
void exp_sums_grad(const lane& on, at dlogits, at dsums, at logits, at top, at targets, int tokens, int vocab,
                   int first) {
  kernel(on, "exp_sums_grad")
      .out(dlogits, all<T>(tokens, vocab))
      .in(dsums, all<wide<T>>(tokens, 2))
      .in(logits, all<T>(tokens, vocab))
      .in(top, all<wide<T>>(tokens))
      .in(targets, all<std::int32_t>(tokens));
  expect_first_column(vocab, first);
}
template <class T>
void cross_entropy(const lane& on, at loss, at sums, int tokens, double scale, bool accumulate) {
  kernel(on, "cross_entropy")
      .with(scale)
      .sum(loss, accumulate, all<wide<T>>(1))
      .in(sums, all<wide<T>>(tokens, 2));
}
template <class T>
void cross_entropy_grad(const lane& on, at dsums, at sums, int tokens, double scale) {
  kernel(on, "cross_entropy_grad")
      .with(scale)
      .out(dsums, all<wide<T>>(tokens, 2))
      .in(sums, all<wide<T>>(tokens, 2));
}

template <class T>
void sum_squares(const lane& on, at total, at gradients, std::span<const range> ranges, bool accumulate) {
  kernel(on, "sum_squares").sum(total, accumulate, all<wide<T>>(1)).in(gradients, sizeof(wide<T>), ranges);
}
template <class T, class Weight, class Moment, rounding How>
void adamw(const lane& on, at weights, at gradients, at first_moment, at second_moment, at norm_squared,
           std::span<const range> ranges) {
  kernel k(on, "adamw");
  k.moves(weights, sizeof(Weight), ranges)
      .in_out(weights, sizeof(Weight), ranges)
      .in(gradients, sizeof(wide<T>), ranges);
  k.in_out(first_moment, sizeof(Moment), ranges)
      .in_out(second_moment, sizeof(Moment), ranges)
      .in(norm_squared, all<wide<T>>(1));
  if (sizeof(Weight) > sizeof(T)) k.aside(recorder::active().where().working_copy, sizeof(T), ranges);
  expect_decay(ranges);
}
template <class T, class Weight, class Moment, rounding How>
void sgd(const lane& on, at weights, at gradients, at momentum, at norm_squared,
         std::span<const range> ranges) {
  kernel k(on, "sgd");
  k.moves(weights, sizeof(Weight), ranges)
      .in_out(weights, sizeof(Weight), ranges)
      .in(gradients, sizeof(wide<T>), ranges);
  if (!std::is_same_v<Moment, no_moment>) k.in_out(momentum, sizeof(Moment), ranges);
  k.in(norm_squared, all<wide<T>>(1));
  if (sizeof(Weight) > sizeof(T)) k.aside(recorder::active().where().working_copy, sizeof(T), ranges);
  expect_decay(ranges);
}

template <class T>
void merge_attention(const lane& on, at o, at lse, at o_before, at lse_before, at o_more, at lse_more,
                     int rows, int tokens, int heads, int dim) {
  kernel(on, "merge_attention")
      .out(o, all<T>(tokens, heads, dim))
      .out(lse, all<wide<T>>(rows, heads, tokens / rows))
      .in(o_before, all<T>(tokens, heads, dim))
      .in(lse_before, all<wide<T>>(rows, heads, tokens / rows))
      .in(o_more, all<T>(tokens, heads, dim))
      .in(lse_more, all<wide<T>>(rows, heads, tokens / rows));
}

template <class T>
void sink_scores(const lane& on, at scores, at x, at sinks, int tokens, int heads, int dim) {
  kernel(on, "sink_scores")
      .out(scores, all<T>(tokens, heads))
      .in(x, all<T>(tokens, heads, dim))
      .in(sinks, all<T>(heads));
}
template <class T>
void add_sinks(const lane& on, at o, at lse, at o_before, at lse_before, at scores, int rows, int tokens,
               int heads, int dim) {
  kernel(on, "add_sinks")
      .out(o, all<T>(tokens, heads, dim))
      .out(lse, all<wide<T>>(rows, heads, tokens / rows))
      .in(o_before, all<T>(tokens, heads, dim))
      .in(lse_before, all<wide<T>>(rows, heads, tokens / rows))
      .in(scores, all<T>(tokens, heads));
}
template <class T>
void add_sinks_grad(const lane& on, at dscores, at dout, at o, at lse, at scores, int rows, int tokens,
                    int heads, int dim) {
  kernel(on, "add_sinks_grad")
      .out(dscores, all<T>(tokens, heads))
      .in(dout, all<T>(tokens, heads, dim))
      .in(o, all<T>(tokens, heads, dim))
      .in(lse, all<wide<T>>(rows, heads, tokens / rows))
      .in(scores, all<T>(tokens, heads));
}

template <class T>
void clear(const lane& on, at out, std::size_t count) {
  if (call_recorder* const to = recorder_of(on)) return to->clear(on.index, out, count * sizeof(T));
  kernel(on, "clear").out(out, all<T>(count));
}
template <class T>
void copy(const lane& on, at y, at x, std::size_t count) {
  kernel(on, "copy").out(y, all<T>(count)).in(x, all<T>(count));
}

/// All function templates of T, to instantiate them.
#define RANKC_RECORDED_ALIKE(T)                                                                              \
  &embedding<T>, &embedding_grad<T>, &position<T>, &position_grad<T>, &layer_norm<T>, &layer_norm_dx<T>,     \
      &document_position<T>, &document_position_grad<T>, &document_chunk_position<T>,                        \
      &document_chunk_position_grad<T>, &chunk_position<T>, &chunk_position_grad<T>, &chunk_attention<T>,    \
      &chunk_attention_grad<T>, &ring_attention<T>, &ring_attention_grad<T>, &merge_attention<T>, &shift<T>, \
      &layer_norm_dw<T>, &rms_norm<T>, &rms_norm_dx<T>, &rms_norm_dw<T>, &linear<T>, &linear_dx<T>,          \
      &linear_dw<T>, &bias<T>, &bias_grad<T>, &gelu<T>, &gelu_grad<T>, &add<T>, &row_max<T>, &exp_sums<T>,   \
      &exp_sums_grad<T>, &cross_entropy<T>, &cross_entropy_grad<T>, &sum_squares<T>, &adamw<T>, &clear<T>,   \
      &copy<T>, &mul<T>, &mul_grad<T>, &scale<T>, &sigmoid<T>, &sigmoid_grad<T>, &split<T>, &concat<T>,      \
      &softmax<T>, &softmax_dx<T>, &softmax_top<T>, &softmax_top_grad<T>, &sigmoid_top<T>,                   \
      &softmax_scores<T>, &sigmoid_scores<T>, &keep_groups<T>, &biased_keep_groups<T>, &softmax_top_by<T>,   \
      &sigmoid_top_by<T>, &biased_softmax_top_by<T>, &biased_sigmoid_top_by<T>, &count_choices<T>,           \
      &sigmoid_top_grad<T>, &normalize<T>, &normalize_grad<T>, &arrange<T>, &arrange_limited<T>,             \
      &own_slots<T>, &dispatch<T>, &collect<T>, &softmax_statistics_grad<T>, &sigmoid_statistics_grad<T>,    \
      &dropped_statistics<T>, &push<T>, &push_grad<T>, &balance_loss<T>, &balance_loss_grad<T>,              \
      &layer_balance_loss<T>, &layer_balance_loss_grad<T>, &z_loss<T>, &z_loss_grad<T>, &overflow_loss<T>,   \
      &overflow_loss_grad<T>, &combine<T>, &combine_grad<T>, &grouped_linear<T>, &grouped_linear_dx<T>,      \
      &grouped_linear_dw<T>, &all_reduce<T>, &all_gather<T>, &reduce_scatter<T>, &all_to_all<T>,             \
      &to_experts<T>, &from_experts<T>, &to_e4m3<T>, &to_e5m2<T>, &linear_fp8<T>, &linear_dx_fp8<T>,         \
      &linear_dw_fp8<T>, &to_e4m3_rows<T>, &linear_fp8_rows<T>, &linear_dx_fp8_rows<T>,                      \
      &linear_dw_fp8_rows<T>, &sink_scores<T>, &add_sinks<T>, &add_sinks_grad<T>, &mask_padding<T>,          \
      &mask_padding_grad<T>

/// The updates for all types in which weights or moments may be stored.
#define RANKC_RECORDED_UPDATES(T)                                                                   \
  &adamw<T, wide<T>, bf16, rounding::nearest>, &adamw<T, wide<T>, bf16, rounding::stochastic>,      \
      &sgd<T, wide<T>, no_moment, rounding::nearest>, &sgd<T, wide<T>, wide<T>, rounding::nearest>, \
      &sgd<T, wide<T>, bf16, rounding::nearest>, &sgd<T, wide<T>, bf16, rounding::stochastic>
#define RANKC_RECORDED_NARROW_UPDATES(T)                                                      \
  &adamw<T, T, wide<T>, rounding::stochastic>, &adamw<T, T, bf16, rounding::stochastic>,      \
      &sgd<T, T, no_moment, rounding::stochastic>, &sgd<T, T, wide<T>, rounding::stochastic>, \
      &sgd<T, T, bf16, rounding::stochastic>

/// Instantiates the named functions.
template <auto... Functions>
struct kept {
  [[gnu::used]] static inline void (*const all[])() = {reinterpret_cast<void (*)()>(Functions)...};
};
