// SPDX-License-Identifier: Apache-2.0
// A model with more inputs than tokens and targets: weights per token, per element and per step, and labels
// for a second loss.
#pragma once
#include <rankc/rankc.hpp>

#include <array>

#include "weighted_square.hpp"

namespace inputs_of_models {

using namespace rankc;

inline constexpr dim hidden{"hidden", 12}, vocab{"vocab", 32}, ffn{"ffn", 20};
inline constexpr parameter_handle table = token_table(vocab, hidden);

/// An MLP with penalties on its result, weighted per token and per step, and on its input, weighted per
/// element.
struct penalised_mlp {
  static constexpr std::string_view name = "penalised_mlp";
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    add_loss(user::element_square(x, c.input("element_weights"), c.loss_scale));
    value h = enter_tp(rms_norm(x, t.parameter("gain", {hidden}, {}, initial::ones)), c);
    value up = column_parallel(t, h, "up", ffn, 0.3);
    value y = x + leave_tp(row_parallel(t, gelu(up), "down", hidden, 0.3), c);
    add_loss(user::token_square(y, c.input("token_weights"), 0.5 * c.loss_scale));
    add_loss(user::step_square(y, c.input("step_weight"), 0.25 * c.loss_scale));
    return y;
  }
};

/// The loss of the next tokens, plus half the loss of the other labels.
struct two_losses {
  static constexpr std::string_view name = "head";
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value logits = linear(enter_tp(x, c), t.parameter(table));
    value loss = cross_entropy(logits, c.input("targets"), axis::tp, c.loss_scale);
    add_loss(cross_entropy(logits, c.input("other_labels"), axis::tp, 0.5 * c.loss_scale));
    return loss;
  }
};

struct weighted {
  int vocab = 32, vocab_used = 0;
  constexpr void check(report&) const {}
  constexpr auto inputs() const {
    return std::array{
        named_input{.name = "token_weights", .holds = element::wide},
        named_input{.name = "element_weights", .holds = element::wide, .features = hidden},
        named_input{.name = "step_weight", .holds = element::wide, .extent = input_extent::step},
        named_input{.name = "other_labels", .below = 32},
    };
  }
  constexpr auto stack() const {
    return sequential(models::embedding{table, true}, repeat{4, penalised_mlp{}}, two_losses{});
  }
};

}  // namespace inputs_of_models
