// SPDX-License-Identifier: Apache-2.0
// Encoders of dense features: full attention, the mean of each sequence, and a head of classes or of values.
#pragma once
#include <rankc/models/blocks.hpp>
#include <rankc/rules/values/model.hpp>

#include <array>

namespace rankc::models {

/// A linear layer from dense features, and learned positions.
/// Shapes: x (tokens, features); result (tokens, hidden).
/// Errors: RC210 with sequence_parallel.
struct dense_embedding {
  static constexpr std::string_view name = "embedding";
  dim hidden;

  constexpr value forward(trace& t, value x, const layer_context& c) const {
    if (c.sequence_parallel) refuse_sequence_parallel(t);
    const dim features = t.of(x).shape[1];
    value weight = t.parameter("we", {hidden, features}, {}, initial::normal, initial_std),
          shift = t.parameter("we.bias", {hidden}, {}, initial::zeros),
          positions = t.parameter("wpe", {dim{"positions", c.seq}, hidden}, {}, initial::normal, initial_std);
    value embedded = as("embedded", linear(x, weight));
    return position(bias(embedded, shift), positions, c);
  }

 private:
  static constexpr void refuse_sequence_parallel(trace& t) {
    complaint c{"dense_embedding", {}, {__builtin_FILE(), __builtin_LINE()}};
    c.begin() << "every rank of " << rankc::name(region_axis)
              << " has the features of all tokens, and sequence_parallel shards the tokens; leave "
                 "sequence_parallel out";
    t.refuse(c);
  }
};

/// The last norm, the mean of each sequence, and the cross entropy of one label for each sequence.
/// Shapes: x (tokens, hidden), the input "labels" (sequences); the result is a scalar.
/// Errors: RC202 if cp does not divide the sequences of a microbatch.
struct classification_head {
  static constexpr std::string_view name = "head";
  dim hidden, classes;
  double norm_eps = default_norm_eps;

  constexpr value forward(trace& t, value x, const layer_context& c) const {
    const norm_parameters weights = declare_norm(t, norm_kind::layer, hidden, "norm", "norm.bias");
    value weight = t.parameter("classes", {classes, hidden}, {{region_axis, classes.name}}, initial::normal,
                               initial_std),
          shift = t.parameter("classes.bias", {classes}, {{region_axis, classes.name}}, initial::zeros);
    value n = as("n", apply_norm(x, weights, norm_eps)), pooled = sequence_mean(n, c);
    value products = linear(pooled, weight), logits = as("logits", bias(products, shift));
    return cross_entropy(logits, c.input("labels"), region_axis, c.sequence_scale());
  }
};

/// The last norm, the mean of each sequence, an MLP, and the mean squared error of its outputs.
/// Shapes: x (tokens, hidden), the input "target_values" (sequences, outputs); the result is a scalar.
/// Errors: RC202 if cp does not divide the sequences of a microbatch.
struct regression_head {
  static constexpr std::string_view name = "head";
  dim hidden, ffn, outputs;
  double norm_eps = default_norm_eps;

  constexpr value forward(trace& t, value x, const layer_context& c) const {
    const norm_parameters weights = declare_norm(t, norm_kind::layer, hidden, "norm", "norm.bias");
    value up = t.parameter("w1", {ffn, hidden}, {{region_axis, ffn.name}}, initial::normal, initial_std),
          up_shift = t.parameter("w1.bias", {ffn}, {{region_axis, ffn.name}}, initial::zeros),
          down = t.parameter("w2", {outputs, ffn}, {{region_axis, ffn.name}}, initial::normal, initial_std),
          down_shift = t.parameter("w2.bias", {outputs}, {}, initial::zeros);
    value n = as("n", apply_norm(x, weights, norm_eps)), pooled = sequence_mean(n, c);
    value products = linear(pooled, up), act = as("act", gelu(bias(products, up_shift)));
    value sums = linear(act, down), y = as("y", bias(all_reduce(sums, region_axis), down_shift));
    return squared_error(y, c.input("target_values"), c.sequence_scale() / outputs.size);
  }
};

/// A block of an encoder: full attention, LayerNorm, biases and GELU.
constexpr block encoder_block(int layers, int hidden, int heads, int ffn, double norm_eps) {
  const dim features{"hidden", hidden}, all_heads{"heads", hidden, hidden / heads, "head_dim"};
  return {
      .attention = {.hidden = features,
                    .heads = all_heads,
                    .kv_heads = all_heads,
                    .of = {.layers = layers, .norm_eps = norm_eps, .norm = norm_kind::layer, .biases = true},
                    .setting = {.causal = false}},
      .ffn = dim{"ffn", ffn},
      .by = activation::gelu};
}

/// Checks the sizes that encoders share.
/// Errors: RC203, RC206, RC250.
constexpr void check_encoder(report& out, int layers, int hidden, int heads, int ffn, double norm_eps) {
  if (check_sizes(out, {{"layers", layers}, {"hidden", hidden}, {"heads", heads}, {"ffn", ffn}}) &&
      hidden % heads != 0)
    refuse(out, 203) << "hidden=" << hidden << " does not divide into heads=" << heads;
  check_norm_eps(out, norm_eps);
}

/// A vision transformer of any size. Its input is dense features: one sequence of patches for each image. It
/// uses the mean of all patches in place of a class token.
/// Units: `patch` counts the numbers of a patch.
/// Errors: RC202, RC203, RC206, RC250.
/// Source: Dosovitskiy et al. 2021; Zhai et al. 2022 (the mean).
struct vision_transformer {
  static constexpr bool reads_tokens = false;
  int layers, hidden, heads, ffn, patch, classes;
  double norm_eps = default_norm_eps;

  constexpr void check(report& out) const {
    check_encoder(out, layers, hidden, heads, ffn, norm_eps);
    check_sizes(out, {{"patch", patch}, {"classes", classes}});
  }
  constexpr auto inputs() const {
    return std::array{named_input{.name = "patches", .holds = element::real, .features = dim{"patch", patch}},
                      named_input{.name = "labels", .extent = input_extent::sequence, .below = classes}};
  }
  constexpr auto stack() const {
    const dim features{"hidden", hidden};
    return sequential(dense_embedding{features},
                      repeat{layers, encoder_block(layers, hidden, heads, ffn, norm_eps)},
                      classification_head{features, dim{"classes", classes}, norm_eps});
  }
};

/// An encoder that predicts values for each sequence.
/// Units: `features` counts the numbers of a token, and `outputs` those of a sequence.
/// Errors: RC202, RC203, RC206, RC250.
struct regression_encoder {
  static constexpr bool reads_tokens = false;
  int layers, hidden, heads, ffn, features, outputs;
  double norm_eps = default_norm_eps;

  constexpr void check(report& out) const {
    check_encoder(out, layers, hidden, heads, ffn, norm_eps);
    check_sizes(out, {{"features", features}, {"outputs", outputs}});
  }
  constexpr auto inputs() const {
    return std::array{
        named_input{.name = "features", .holds = element::real, .features = dim{"features", features}},
        named_input{.name = "target_values",
                    .holds = element::wide,
                    .features = dim{"outputs", outputs},
                    .extent = input_extent::sequence}};
  }
  constexpr auto stack() const {
    const dim width{"hidden", hidden};
    return sequential(dense_embedding{width},
                      repeat{layers, encoder_block(layers, hidden, heads, ffn, norm_eps)},
                      regression_head{width, dim{"ffn", ffn}, dim{"outputs", outputs}, norm_eps});
  }
};

}  // namespace rankc::models
