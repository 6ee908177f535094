// SPDX-License-Identifier: Apache-2.0
// The rows with more than sums and products, in f64: they call the kernels of the host runtime.
#include "f64_kernels.hpp"
#include "map.hpp"
#include "../machine/model.hpp"

#include <array>

namespace field {

namespace {

std::size_t count_of(const matrix& m) { return m.of.size(); }

/// One result from operands of equal shape.
template <class Kernel, class... Operand>
void make_alike(call& c, std::string_view result, Kernel kernel, const matrix& x, const Operand&... others) {
  (elements::expect_alike(x, others), ...);
  matrix& y = elements::out_like(c, result, x);
  kernel_memory k;
  const rankc::runtime::at to = k.room(y);
  const std::array<rankc::runtime::at, 1 + sizeof...(others)> from{k.put(x), k.put(others)...};
  kernel(k.lane(), to, from);
  k.take(to, y);
}

}  // namespace

namespace elements {

void gelu(call& c) {
  const matrix& x = c.in("x");
  make_alike(c, "y", [&](auto& on, auto y, auto& in) { host::gelu<double>(on, y, in[0], count_of(x)); }, x);
}
void gelu_grad(call& c) {
  const matrix& x = c.in("x");
  const auto kernel = [&](auto& on, auto dx, auto& in) {
    host::gelu_grad<double>(on, dx, in[0], in[1], count_of(x));
  };
  make_alike(c, "dx", kernel, c.in("dy"), x);
}
void sigmoid(call& c) {
  const matrix& x = c.in("x");
  make_alike(
      c, "y", [&](auto& on, auto y, auto& in) { host::sigmoid<double>(on, y, in[0], count_of(x)); }, x);
}
void sigmoid_grad(call& c) {
  const matrix& y = c.in("y");
  const auto kernel = [&](auto& on, auto dx, auto& in) {
    host::sigmoid_grad<double>(on, dx, in[0], in[1], count_of(y));
  };
  make_alike(c, "dx", kernel, c.in("dy"), y);
}
void swiglu(call& c) {
  const matrix& gate = c.in("gate");
  const auto kernel = [&](auto& on, auto y, auto& in) {
    host::swiglu<double>(on, y, in[0], in[1], count_of(gate));
  };
  make_alike(c, "y", kernel, gate, c.in("up"));
}
void swiglu_grad(call& c) {
  const matrix &dy = c.in("dy"), &gate = c.in("gate"), &up = c.in("up");
  expect_alike(dy, gate);
  expect_alike(dy, up);
  matrix &dgate = out_like(c, "dgate", gate), &dup = out_like(c, "dup", up);
  kernel_memory k;
  const rankc::runtime::at to_gate = k.room(dgate), to_up = k.room(dup), at_dy = k.put(dy),
                           at_gate = k.put(gate), at_up = k.put(up);
  host::swiglu_grad<double>(k.lane(), to_gate, to_up, at_dy, at_gate, at_up, count_of(dy));
  k.take(to_gate, dgate);
  k.take(to_up, dup);
}

}  // namespace elements

namespace norms {

namespace {

/// The number of normalised parts of x: rows, or heads for a head norm.
int parts_of(const matrix& x, const matrix& gain) {
  expect(gain.is.size() > 0 && x.is.cols % gain.is.size() == 0,
         "a norm of rows that are not as wide as its gain");
  return whole(x.is.size() / gain.is.size());
}
/// Whether it is a layer norm, which has two statistics per part.
bool is_layer_norm(const matrix& statistics, int parts) {
  expect(parts > 0 && (statistics.is.size() == parts || statistics.is.size() == 2 * parts),
         "a norm with statistics of other rows");
  return statistics.is.size() == 2 * parts;
}

void normalize(call& c, int statistics_of_part, const matrix* shift) {
  const matrix &x = c.in("x"), &gain = c.in("gain");
  const int parts = parts_of(x, gain), width = whole(gain.is.size());
  expect(!shift || shift->is.size() == width, "a norm of gain and shift of two sizes");
  matrix& y = elements::out_like(c, "y", x);
  matrix& statistics = c.out("statistics", x.is.rows, x.is.cols / width * statistics_of_part);
  kernel_memory k;
  const rankc::runtime::at to_y = k.room(y), to_statistics = k.room(statistics), at_x = k.put(x),
                           at_gain = k.put(gain), at_shift = shift ? k.put(*shift) : rankc::runtime::at{};
  if (shift)
    host::layer_norm<double>(k.lane(), to_y, to_statistics, at_x, at_gain, at_shift, parts, width, c.number);
  else host::rms_norm<double>(k.lane(), to_y, to_statistics, at_x, at_gain, parts, width, c.number);
  k.take(to_y, y);
  k.take(to_statistics, statistics);
}

void sum_gains(call& c, matrix& dgain, matrix* dshift) {
  const matrix &dy = c.in("dy"), &x = c.in("x"), &statistics = c.in("statistics");
  elements::expect_alike(dy, x);
  const int parts = parts_of(x, dgain), width = whole(dgain.is.size());
  expect(is_layer_norm(statistics, parts) == (dshift != nullptr), "a norm with statistics of other rows");
  kernel_memory k;
  const rankc::runtime::at to_gain = k.room(dgain), to_shift = k.room(dgain), at_dy = k.put(dy),
                           at_x = k.put(x), at_statistics = k.put(statistics);
  if (dshift)
    host::layer_norm_dw<double>(k.lane(), to_gain, to_shift, at_dy, at_x, at_statistics, parts, width, false);
  else host::rms_norm_dw<double>(k.lane(), to_gain, at_dy, at_x, at_statistics, parts, width, false);
  k.take(to_gain, dgain);
  if (dshift) k.take(to_shift, *dshift);
}

}  // namespace

void layer_norm(call& c) { normalize(c, 2, &c.in("shift")); }
void rms_norm(call& c) { normalize(c, 1, nullptr); }

void layer_norm_dw(call& c) {
  const std::int64_t width = c.in("x").is.cols;
  matrix& dgain = c.out("dgain", 1, width);
  sum_gains(c, dgain, &c.out("dshift", 1, width));
}
void rms_norm_dw(call& c) { sum_gains(c, c.out("dgain"), nullptr); }

void norm_dx(call& c) {
  const matrix &dy = c.in("dy"), &x = c.in("x"), &statistics = c.in("statistics"), &gain = c.in("gain");
  elements::expect_alike(dy, x);
  const int parts = parts_of(x, gain), width = whole(gain.is.size());
  const auto kernel =
      is_layer_norm(statistics, parts) ? host::layer_norm_dx<double> : host::rms_norm_dx<double>;
  matrix& dx = elements::out_like(c, "dx", x);
  kernel_memory k;
  const rankc::runtime::at to = k.room(dx), at_dy = k.put(dy), at_x = k.put(x),
                           at_statistics = k.put(statistics), at_gain = k.put(gain);
  kernel(k.lane(), to, at_dy, at_x, at_statistics, at_gain, parts, width);
  k.take(to, dx);
}

void softmax(call& c) {
  const matrix& x = c.in("x");
  const auto kernel = [&](auto& on, auto y, auto& in) {
    host::softmax<double>(on, y, in[0], whole(x.is.rows), whole(x.is.cols));
  };
  make_alike(c, "y", kernel, x);
}
void softmax_dx(call& c) {
  const matrix& y = c.in("y");
  const auto kernel = [&](auto& on, auto dx, auto& in) {
    host::softmax_dx<double>(on, dx, in[0], in[1], whole(y.is.rows), whole(y.is.cols));
  };
  make_alike(c, "dx", kernel, c.in("dy"), y);
}

}  // namespace norms

updated update(std::string_view optimizer, element weight, element gradient, element first_moment,
               element second_moment, element norm, bool decays, const rankc::load_balance& balances) {
  kernel_memory k;
  const auto put = [&](double number) {
    matrix one(extent{1, 1});
    one.of[0] = number;
    return k.put(one);
  };
  const rankc::runtime::at w = put(weight), g = put(gradient), m = put(first_moment), v = put(second_moment),
                           n = put(norm);
  k.rank().input = {.lr = 0.1,
                    .weight_decay = 0.05,
                    .clip = 0.3,
                    .beta1 = 0.9,
                    .beta2 = 0.95,
                    .eps = 1e-8,
                    .step = 3,
                    .momentum = 0.8};
  const rankc::runtime::range element_range{0, 1, decays, balances};
  if (optimizer == "sgd") host::sgd<double>(k.lane(), w, g, m, n, {&element_range, 1});
  else host::adamw<double>(k.lane(), w, g, m, v, n, {&element_range, 1});
  return {k.number(w), k.number(m), k.number(v)};
}

}  // namespace field
