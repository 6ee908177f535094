// SPDX-License-Identifier: Apache-2.0
#include "../said_by_rank.hpp"
#include "norms_reference.hpp"

namespace rankc::runtime::cuda::test::norms_test {
namespace {

// The tolerance of f32 sums over all tokens: rounding grows with the root of their number, and terms are
// below 8.
double of_sums(int tokens) { return 1e-5 * std::sqrt(tokens) + 1e-5; }

TEST_CASE_TEMPLATE("layer norm and its gradients", T, float, bf16) {
  for (const norm_shape& s : norm_shapes) {
    const auto [tokens, width, misplaced] = s;
    CAPTURE(tokens);
    CAPTURE(width);
    norm_operands<T> o(s);
    bench& b = o.b;
    layer_norm<T>(b.on(), o.y_at, o.stats_at, o.x_at, o.gain_at, o.shift_at, tokens, width, eps);
    layer_norm_dx<T>(b.on(), o.dx_at, o.dy_at, o.x_at, o.stats_at, o.gain_at, tokens, width);
    layer_norm_dw<T>(b.on(), o.dgain_at, o.dshift_at, o.dy_at, o.x_at, o.stats_at, tokens, width, false);
    const norm_reference wanted(true, o.x, o.gain, o.shift, o.dy, {}, tokens, width);
    check_close("stats", b.take<float>(o.stats_at, 2 * tokens), wanted.stats, 1e-5, 1e-6);
    check_rounded<T>("y", b.take<T>(o.y_at, o.count), wanted.y, 4.0);
    check_rounded<T>("dx", b.take<T>(o.dx_at, o.count), wanted.dx, 4.0);
    check_close("dgain", b.take<float>(o.dgain_at, width), wanted.dgain, 1e-5, of_sums(tokens));
    check_close("dshift", b.take<float>(o.dshift_at, width), wanted.dshift, 1e-5, of_sums(tokens));
    layer_norm_dw<T>(b.on(), o.dgain_at, o.dshift_at, o.dy_at, o.x_at, o.stats_at, tokens, width, true);
    check_close("dgain, accumulated", b.take<float>(o.dgain_at, width), doubled(wanted.dgain), 1e-5,
                2 * of_sums(tokens));
    layer_norm_dx<T>(b.on(), o.dy_at, o.dy_at, o.x_at, o.stats_at, o.gain_at, tokens, width);
    check_rounded<T>("dx in place of dy", b.take<T>(o.dy_at, o.count), wanted.dx, 4.0);
  }
}

TEST_CASE_TEMPLATE("rms norm and its gradients", T, float, bf16) {
  for (const norm_shape& s : norm_shapes) {
    const auto [tokens, width, misplaced] = s;
    CAPTURE(tokens);
    CAPTURE(width);
    norm_operands<T> o(s);
    bench& b = o.b;
    rms_norm<T>(b.on(), o.y_at, o.stats_at, o.x_at, o.gain_at, tokens, width, eps);
    rms_norm_dx<T>(b.on(), o.dx_at, o.dy_at, o.x_at, o.stats_at, o.gain_at, tokens, width);
    rms_norm_dw<T>(b.on(), o.dgain_at, o.dy_at, o.x_at, o.stats_at, tokens, width, false);
    const norm_reference wanted(false, o.x, o.gain, {}, o.dy, {}, tokens, width);
    check_close("stats", b.take<float>(o.stats_at, tokens), wanted.stats, 1e-5, 1e-6);
    check_rounded<T>("y", b.take<T>(o.y_at, o.count), wanted.y, 4.0);
    check_rounded<T>("dx", b.take<T>(o.dx_at, o.count), wanted.dx, 4.0);
    check_close("dgain", b.take<float>(o.dgain_at, width), wanted.dgain, 1e-5, of_sums(tokens));
    rms_norm_dw<T>(b.on(), o.dgain_at, o.dy_at, o.x_at, o.stats_at, tokens, width, true);
    check_close("dgain, accumulated", b.take<float>(o.dgain_at, width), doubled(wanted.dgain), 1e-5,
                2 * of_sums(tokens));
  }
}

TEST_CASE_TEMPLATE("layer norm's gradients in one pass", T, float, bf16) {
  for (const norm_shape& s : norm_shapes) {
    const auto [tokens, width, misplaced] = s;
    CAPTURE(tokens);
    CAPTURE(width);
    norm_operands<T> o(s);
    bench& b = o.b;
    layer_norm<T>(b.on(), o.y_at, o.stats_at, o.x_at, o.gain_at, o.shift_at, tokens, width, eps);
    layer_norm_grad<T>(b.on(), o.dx_at, o.dgain_at, o.dshift_at, o.dy_at, o.x_at, o.stats_at, o.gain_at,
                       tokens, width, false);
    const norm_reference alone(true, o.x, o.gain, o.shift, o.dy, {}, tokens, width),
        added(true, o.x, o.gain, o.shift, o.dy, o.residual, tokens, width);
    check_rounded<T>("dx", b.take<T>(o.dx_at, o.count), alone.dx, 4.0);
    check_close("dgain", b.take<float>(o.dgain_at, width), alone.dgain, 1e-5, of_sums(tokens));
    check_close("dshift", b.take<float>(o.dshift_at, width), alone.dshift, 1e-5, of_sums(tokens));
    layer_norm_grad_add<T>(b.on(), o.residual_at, o.dgain_at, o.dshift_at, o.dy_at, o.x_at, o.stats_at,
                           o.gain_at, o.residual_at, tokens, width, true);
    check_rounded<T>("dx added, in place", b.take<T>(o.residual_at, o.count), added.dx, 4.0);
    check_close("dgain, accumulated", b.take<float>(o.dgain_at, width), doubled(alone.dgain), 1e-5,
                2 * of_sums(tokens));
    check_close("dshift, accumulated", b.take<float>(o.dshift_at, width), doubled(alone.dshift), 1e-5,
                2 * of_sums(tokens));
  }
}

TEST_CASE_TEMPLATE("layer norm's gradients and that of the bias behind the residual in one pass", T, float,
                   bf16) {
  for (const norm_shape& s : norm_shapes) {
    const auto [tokens, width, misplaced] = s;
    CAPTURE(tokens);
    CAPTURE(width);
    norm_operands<T> o(s);
    bench& b = o.b;
    const at db_at = b.room<float>(width);
    numbers db(width, 0.0);
    for (std::size_t i = 0; i < o.count; ++i) db[i % width] += o.residual[i];
    const norm_reference added(true, o.x, o.gain, o.shift, o.dy, o.residual, tokens, width);
    layer_norm<T>(b.on(), o.y_at, o.stats_at, o.x_at, o.gain_at, o.shift_at, tokens, width, eps);
    layer_norm_grad_add_bias<T>(b.on(), o.dx_at, o.dgain_at, o.dshift_at, db_at, o.dy_at, o.x_at, o.stats_at,
                                o.gain_at, o.residual_at, tokens, width, false);
    check_rounded<T>("dx", b.take<T>(o.dx_at, o.count), added.dx, 4.0);
    check_close("dgain", b.take<float>(o.dgain_at, width), added.dgain, 1e-5, of_sums(tokens));
    check_close("dshift", b.take<float>(o.dshift_at, width), added.dshift, 1e-5, of_sums(tokens));
    check_close("db", b.take<float>(db_at, width), db, 1e-5, of_sums(tokens));
    layer_norm_grad_add_bias<T>(b.on(), o.residual_at, o.dgain_at, o.dshift_at, db_at, o.dy_at, o.x_at,
                                o.stats_at, o.gain_at, o.residual_at, tokens, width, true);
    check_rounded<T>("dx in place of the residual", b.take<T>(o.residual_at, o.count), added.dx, 4.0);
    check_close("dgain, accumulated", b.take<float>(o.dgain_at, width), doubled(added.dgain), 1e-5,
                2 * of_sums(tokens));
    check_close("dshift, accumulated", b.take<float>(o.dshift_at, width), doubled(added.dshift), 1e-5,
                2 * of_sums(tokens));
    check_close("db, accumulated", b.take<float>(db_at, width), doubled(db), 1e-5, 2 * of_sums(tokens));
  }
}

TEST_CASE_TEMPLATE("rms norm's gradients in one pass", T, float, bf16) {
  for (const norm_shape& s : norm_shapes) {
    const auto [tokens, width, misplaced] = s;
    CAPTURE(tokens);
    CAPTURE(width);
    norm_operands<T> o(s);
    bench& b = o.b;
    rms_norm<T>(b.on(), o.y_at, o.stats_at, o.x_at, o.gain_at, tokens, width, eps);
    rms_norm_grad_add<T>(b.on(), o.dx_at, o.dgain_at, o.dy_at, o.x_at, o.stats_at, o.gain_at, o.residual_at,
                         tokens, width, false);
    const norm_reference alone(false, o.x, o.gain, {}, o.dy, {}, tokens, width),
        added(false, o.x, o.gain, {}, o.dy, o.residual, tokens, width);
    check_rounded<T>("dx added", b.take<T>(o.dx_at, o.count), added.dx, 4.0);
    check_close("dgain", b.take<float>(o.dgain_at, width), alone.dgain, 1e-5, of_sums(tokens));
    rms_norm_grad<T>(b.on(), o.dy_at, o.dgain_at, o.dy_at, o.x_at, o.stats_at, o.gain_at, tokens, width,
                     true);
    check_rounded<T>("dx in place of dy", b.take<T>(o.dy_at, o.count), alone.dx, 4.0);
    check_close("dgain, accumulated", b.take<float>(o.dgain_at, width), doubled(alone.dgain), 1e-5,
                2 * of_sums(tokens));
  }
}

/// residual + x (+ b), rounded like the kernels' result.
template <class T>
numbers summed(const norm_operands<T>& o, int width, bool with_bias) {
  numbers sum(o.count);
  for (std::size_t i = 0; i < o.count; ++i)
    sum[i] = rounded<T>(rounded<float>(o.x[i] + (with_bias ? o.bias[i % width] : 0.0)) + o.residual[i]);
  return sum;
}

TEST_CASE_TEMPLATE("norms of a sum", T, float, bf16) {
  for (const norm_shape& s : norm_shapes)
    for (const int kind : {0, 1, 2}) {
      const auto [tokens, width, misplaced] = s;
      CAPTURE(tokens);
      CAPTURE(width);
      CAPTURE(kind);
      norm_operands<T> o(s);
      bench& b = o.b;
      const at sum_at = b.room<T>(o.count);
      const bool centred = kind != 2;
      // The sum is written to separate memory, over the residual, and over x.
      const at places[]{sum_at, o.residual_at, o.x_at};
      const at where = places[kind];
      if (kind == 0)
        add_layer_norm<T>(b.on(), where, o.y_at, o.stats_at, o.x_at, o.residual_at, o.gain_at, o.shift_at,
                          tokens, width, eps);
      else if (kind == 1)
        bias_add_layer_norm<T>(b.on(), where, o.y_at, o.stats_at, o.x_at, o.bias_at, o.residual_at, o.gain_at,
                               o.shift_at, tokens, width, eps);
      else
        add_rms_norm<T>(b.on(), where, o.y_at, o.stats_at, o.x_at, o.residual_at, o.gain_at, tokens, width,
                        eps);
      const numbers sum = summed(o, width, kind == 1), got = b.take<T>(where, o.count);
      check_close("sum", got, sum, 0.0, 0.0);
      const norm_reference wanted(centred, got, o.gain, o.shift, o.dy, {}, tokens, width);
      check_close("stats", b.take<float>(o.stats_at, centred ? 2 * tokens : tokens), wanted.stats, 1e-5,
                  1e-6);
      check_rounded<T>("y", b.take<T>(o.y_at, o.count), wanted.y, 4.0);
    }
}

TEST_CASE("a norm refuses rows that do not fit into registers") {
  bench b;
  CHECK(said_by_rank([&] { rms_norm<bf16>(b.on(), at{}, at{}, at{}, at{}, 1, 32769, eps); }) ==
        rankc::test::said{5137, {"rms_norm", "32769", "32768"}});
}

}  // namespace
}  // namespace rankc::runtime::cuda::test::norms_test
