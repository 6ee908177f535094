// SPDX-License-Identifier: Apache-2.0
#include "layer_builder.hpp"

#include <algorithm>
#include <cmath>

namespace fuzz {

namespace {

/// Names that generated text must not break on: C++ keywords, names that the text itself uses, names of other
/// layers' parameters, and names that are no identifiers.
constexpr std::string_view odd_names[]{"int",
                                       "up-dim",
                                       "x",
                                       "w",
                                       "dw",
                                       "s",
                                       "r",
                                       "at",
                                       "region",
                                       "own",
                                       "over_tp",
                                       "shared",
                                       "2nd",
                                       "real",
                                       "work",
                                       "norm",
                                       "norm.bias",
                                       "layers.0.gain",
                                       "class",
                                       "y",
                                       "dx",
                                       "dy",
                                       "linear",
                                       "accumulate",
                                       "accumulate_apart",
                                       "saved",
                                       "keep",
                                       "place",
                                       "forward",
                                       "parameters",
                                       "size_t",
                                       "std",
                                       "true",
                                       "loss",
                                       "ids",
                                       "targets",
                                       "rope_table",
                                       "tokens",
                                       "seq",
                                       "rows",
                                       "tp",
                                       "size",
                                       "slot",
                                       "NULL"};

}  // namespace

layer_builder::layer_builder(draws& d, const palette& p, std::string_view name, bool has_plain_names)
    : draw_(d), sizes_(p), has_plain_names_(has_plain_names) {
  out_.name = name;
}

int layer_builder::add_step(step s) {
  out_.steps.push_back(std::move(s));
  return static_cast<int>(out_.steps.size());
}

/// The index of a parameter: mostly a new one, sometimes an existing one of the same shape.
int layer_builder::weight(std::string_view meaning, std::vector<dim> shape, std::string_view by,
                          initial start) {
  for (std::size_t i = 0; i < out_.parameters.size(); ++i) {
    const parameter& p = out_.parameters[i];
    const bool is_alike = p.shape == shape && p.sharded_by == by && p.start == start;
    if (is_alike && i < used_inside_.size() && used_inside_[i] == is_inside_ && draw_.chance(12))
      return static_cast<int>(i);
  }
  const bool is_odd = !has_plain_names_ && draw_.chance(25);
  const std::string base(is_odd ? odd_names[draw_.below(static_cast<int>(std::size(odd_names)))] : meaning);
  std::string name = base;
  const auto is_taken = [&] {
    return std::any_of(out_.parameters.begin(), out_.parameters.end(),
                       [&](const parameter& p) { return p.name == name; });
  };
  for (int n = 2; is_taken() && draw_.below(500); ++n) name = base + std::to_string(n);
  const double spread =
      draw_.one_of({0.3, 0.5, 0.8, 1.0}) / std::sqrt(static_cast<double>(shape.back().size));
  used_inside_.resize(out_.parameters.size());
  used_inside_.push_back(is_inside_);
  out_.parameters.push_back(
      {lasting(name), std::move(shape), by, start, start == initial::normal ? spread : 0});
  return static_cast<int>(out_.parameters.size()) - 1;
}

int layer_builder::gain_or_shift(std::string_view meaning, dim d, std::string_view by, bool is_gain) {
  return weight(meaning, {d}, by, is_gain ? initial::ones : initial::zeros);
}

/// `by`: the dim that tp shards; empty: the weight is whole.
int layer_builder::linear(int x, dim from, dim to, std::string_view by) {
  const int w = weight("proj", {to, from}, by, initial::normal);
  return add_step({.kind = step_kind::linear, .in = {x}, .weights = {w}});
}

int layer_builder::maybe_bias(int x, dim d, std::string_view by, int percent) {
  if (!draw_.chance(percent)) return x;
  return add_step({.kind = step_kind::bias, .in = {x}, .weights = {gain_or_shift("shift", d, by, false)}});
}

int layer_builder::norm(int x, dim d) {
  const int gain = gain_or_shift("gain", d, "", true);
  const double eps = norm_eps();
  if (draw_.chance(60))
    return add_step({.kind = step_kind::rms_norm, .in = {x}, .weights = {gain}, .number = eps});
  const int shift = gain_or_shift("norm_shift", d, "", false);
  return add_step({.kind = step_kind::layer_norm, .in = {x}, .weights = {gain, shift}, .number = eps});
}

int layer_builder::tangled(int x, int other, dim d, std::string_view by) {
  switch (draw_.below(by.empty() ? 13 : 8)) {
    case 0:
      return add_step({.kind = step_kind::gelu, .in = {x}});
    case 1:
      return add_step({.kind = step_kind::swiglu, .in = {x, other}});
    case 2:
      return maybe_bias(x, d, by, 100);
    case 3:
    case 4:
      return sum(x, other);
    case 5:
      return gate(x, other);
    case 6:
      return add_step({.kind = step_kind::scale, .in = {x}, .number = draw_.one_of({0.5, -1.0, 1.5})});
    case 7:
      return add_step({.kind = step_kind::mul, .in = {x, other}});
    case 8:
      return norm(x, d);
    case 9:
      return linear(x, d, d, "");
    case 10:
      return add_step({.kind = step_kind::softmax, .in = {x}});
    case 11:
      return swap(x, d);
    default: {
      const int table = weight("wpe", {dim{"positions", sizes_.seq}, d}, "", initial::normal);
      return add_step({.kind = step_kind::position, .in = {x}, .weights = {table}});
    }
  }
}

int layer_builder::tangle(int x, dim d, std::string_view by) {
  if (by.empty()) x = norm(x, d);  // without a norm, repeated products grow without bound
  std::vector<int> values{x}, unread;
  bool multiplies = false;
  for (int n = draw_.between(2, 6); n > 0; --n) {
    const int a = draw_.one_in(values), b = multiplies ? x : draw_.one_in(values);
    values.push_back(tangled(a, b, d, by));
    multiplies |= out_.steps.back().kind == step_kind::swiglu || out_.steps.back().kind == step_kind::mul;
    for (int v : out_.steps.back().in)
      unread.erase(std::remove(unread.begin(), unread.end(), v), unread.end());
    unread.push_back(values.back());
  }
  int y = unread[0];
  for (std::size_t i = 1; i < unread.size(); ++i)
    y = draw_.chance(50) ? sum(y, unread[i]) : sum(unread[i], y);
  return y;
}

/// From hidden features to an activation with `wide` features.
int layer_builder::activation(int x, dim hidden, dim wide, std::string_view by) {
  const int up = maybe_bias(linear(x, hidden, wide, by), wide, by, 35);
  switch (draw_.below(6)) {
    case 0:
      return up;
    case 5:
      return tangle(up, wide, by);
    case 1:
    case 2: {
      const int second = draw_.chance(10) ? up : maybe_bias(linear(x, hidden, wide, by), wide, by, 20);
      return add_step({.kind = step_kind::swiglu, .in = {up, second}});
    }
    default:
      return add_step({.kind = step_kind::gelu, .in = {up}});
  }
}

/// Enter a tensor-parallel region; sometimes followed by steps before any sharded weight.
int layer_builder::region(int x, dim hidden) {
  const int h = enter(maybe_norm(x, hidden));
  return draw_.chance(10) ? tangle(h, hidden, "") : h;
}

int layer_builder::mlp(int x, dim hidden) {
  const int h = region(x, hidden);
  const int branches = draw_.chance(20) ? 2 : 1;
  int y = 0;
  for (int n = 0; n < branches; ++n) {
    const dim wide = draw_.one_in(sizes_.widths);
    const int part = linear(activation(h, hidden, wide, wide.name), wide, hidden, wide.name);
    y = n ? sum(y, part) : part;
  }
  if (draw_.chance(2)) {
    const int first = leave(y), second = leave(y);
    return sum(first, second);
  }
  return maybe_bias(leave(y), hidden, "", 35);
}

int layer_builder::whole_mlp(int x, dim hidden) {
  const dim wide = draw_.one_in(sizes_.widths);
  return maybe_bias(linear(activation(maybe_norm(x, hidden), hidden, wide, ""), wide, hidden, ""), hidden, "",
                    25);
}

int layer_builder::maybe_rope(int x, int percent) {
  if (!draw_.chance(percent) || (sizes_.heads[0].unit % 2 && !draw_.chance(2))) return x;
  return add_step({.kind = step_kind::rope,
                   .in = {x},
                   .number = draw_.one_of({10.0, 10.0, 100.0, 1000.0, 10000.0}),
                   .scaling = rope_scaling_of(),
                   .seq = draw_.chance(10) ? draw_.one_in(sizes_.seqs) : 0});
}

int layer_builder::maybe_head_norm(int x, dim heads, int percent) {
  if (heads.unit == 1 || !draw_.chance(percent)) return x;
  const int gain = gain_or_shift("head_gain", dim{heads.unit_name, heads.unit}, "", true);
  return add_step({.kind = step_kind::head_norm, .in = {x}, .weights = {gain}, .number = norm_eps()});
}

/// Attention of q to new keys and values, or to those of an earlier attention in the layer.
int layer_builder::one_attention(int h, dim hidden, int q, dim of_q, std::vector<int>& keys) {
  if (keys.empty() || draw_.chance(70)) {
    std::vector<dim> fitting;
    for (const dim& d : sizes_.heads)
      if (of_q.count() % d.count() == 0) fitting.push_back(d);
    const dim of_k = draw_.one_in(fitting);
    const int k = maybe_bias(linear(h, hidden, of_k, of_k.name), of_k, of_k.name, 25);
    const int v = draw_.chance(10) ? k : maybe_bias(linear(h, hidden, of_k, of_k.name), of_k, of_k.name, 25);
    const int turned = maybe_rope(maybe_head_norm(k, of_k, 20), 50);
    keys = {of_k.unit > 1 && draw_.chance(10) ? swap(turned, of_k) : turned, v};
  }
  const int pieces = draw_.chance(15) ? sizes_.seq / draw_.one_in(sizes_.seqs) : 1;
  return add_step({.kind = step_kind::attention, .in = {q, keys[0], keys[1]}, .pieces = pieces});
}

int layer_builder::attention(int x, dim hidden) {
  const int h = region(x, hidden);
  const dim of_q = sizes_.heads[0];
  std::vector<int> keys;
  int y = 0;
  const int attentions = draw_.chance(25) ? 2 : 1;
  for (int n = 0; n < attentions; ++n) {
    const int q = maybe_rope(
        maybe_head_norm(maybe_bias(linear(h, hidden, of_q, of_q.name), of_q, of_q.name, 25), of_q, 20), 50);
    int a = draw_.chance(6) ? q : one_attention(h, hidden, q, of_q, keys);
    if (draw_.chance(15)) a = gate(a, linear(h, hidden, of_q, of_q.name));
    y = n ? sum(y, a) : a;
  }
  return maybe_bias(leave(linear(y, of_q, hidden, of_q.name)), hidden, "", 30);
}

int layer_builder::experts(int x) {
  has_experts_ = true;
  const int count = draw_.one_of({1, 2, 3, 4, 4, 5, 8});
  const int picks = draw_.chance(2) ? count + 1 : draw_.between(1, std::min(count, 3));
  const router_rule by{.scores = draw_.chance(30) ? router_rule::sigmoid : router_rule::softmax,
                       .normalized = draw_.chance(60),
                       .scaling = draw_.one_of({1.0, 1.0, 2.5})};
  return add_step({.kind = step_kind::experts,
                   .in = {x},
                   .number = norm_eps(),
                   .with = {count, picks, draw_.one_in(sizes_.widths).size, by,
                            draw_.chance(30) ? draw_.one_in(sizes_.widths).size : 0}});
}

/// A branch without a tensor-parallel region.
int layer_builder::small(int x, dim hidden) {
  switch (draw_.below(9)) {
    case 7:
    case 8:
      return tangle(x, hidden, "");
    case 0:
      return norm(x, hidden);
    case 1:
      return add_step({.kind = step_kind::gelu, .in = {norm(x, hidden)}});
    case 2:
      return add_step({.kind = step_kind::gelu, .in = {x}});
    case 3:
      return maybe_bias(x, hidden, "", 100);
    case 4: {
      const int table = weight("positions", {dim{"positions", sizes_.seq}, hidden}, "", initial::normal);
      return add_step({.kind = step_kind::position, .in = {x}, .weights = {table}});
    }
    case 5:
      return linear(maybe_norm(x, hidden), hidden, hidden, "");
    default:
      return norm(add_step({.kind = step_kind::gelu, .in = {norm(x, hidden)}}), hidden);
  }
}

int layer_builder::branch(int x, dim hidden) {
  if (!has_experts_ && draw_.chance(8)) return experts(x);
  const int kind = draw_.below(11);
  int y = 0;
  if (kind < 4) y = mlp(x, hidden);
  else if (kind < 7) y = attention(x, hidden);
  else if (kind < 8) y = whole_mlp(x, hidden);
  else y = small(x, hidden);
  switch (draw_.below(24)) {
    case 0:
    case 6:
      return y;
    case 1:
      return sum(x, sum(y, x));
    case 2:
      return sum(y, y);
    case 3:
      return sum(sum(x, x), y);
    case 4:
    case 5:
      return sum(y, x);
    default:
      return sum(x, y);
  }
}

int layer_builder::block(int x, dim hidden) {
  if (draw_.chance(2)) return x;
  const int branches = draw_.one_of({1, 1, 1, 2, 2, 3});
  for (int n = 0; n < branches; ++n) x = branch(x, hidden);
  return x;
}

int layer_builder::embedding(std::string_view table, bool is_whole) {
  const auto rows_of = [&](std::string_view name) {
    out_.parameters.push_back(
        {name, {sizes_.vocab, sizes_.hidden}, is_whole ? "" : sizes_.vocab.name, initial::normal, 0.4});
    return add_step(
        {.kind = step_kind::embedding, .in = {0}, .weights = {static_cast<int>(out_.parameters.size()) - 1}});
  };
  int y = rows_of(table);
  if (draw_.chance(8)) y = sum(y, rows_of("second_table"));
  if (!is_whole) y = leave(y);
  if (draw_.chance(40)) {
    const int positions = weight("wpe", {dim{"positions", sizes_.seq}, sizes_.hidden}, "", initial::normal);
    y = add_step({.kind = step_kind::position, .in = {y}, .weights = {positions}});
  }
  return draw_.chance(15) ? branch(y, sizes_.hidden) : y;
}

int layer_builder::head(int x, dim hidden, std::string_view table, bool is_whole, double factor) {
  const std::string_view by = is_whole ? "" : sizes_.vocab.name;
  int h = draw_.chance(85) ? norm(x, hidden) : x;
  if (!is_whole) h = enter(h);
  out_.parameters.push_back({table, {sizes_.vocab, hidden}, by, initial::normal, 0.4});
  int logits = add_step(
      {.kind = step_kind::linear, .in = {h}, .weights = {static_cast<int>(out_.parameters.size()) - 1}});
  logits = maybe_bias(logits, sizes_.vocab, by, 12);
  if (draw_.chance(4)) logits = add_step({.kind = step_kind::gelu, .in = {logits}});
  const int loss = add_step({.kind = step_kind::cross_entropy, .in = {logits}, .number = factor});
  return draw_.chance(2) ? sum(loss, loss) : loss;
}

int layer_builder::project(int x, dim from, dim to) {
  if (draw_.chance(40)) return linear(maybe_norm(x, from), from, to, "");
  const dim wide = draw_.one_in(sizes_.widths);
  const int y = activation(enter(maybe_norm(x, from)), from, wide, wide.name);
  return maybe_bias(leave(linear(y, wide, to, wide.name)), to, "", 30);
}

layer layer_builder::finish(int result) {
  out_.result = result;
  return std::move(out_);
}

}  // namespace fuzz
