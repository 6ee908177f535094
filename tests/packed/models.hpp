// SPDX-License-Identifier: Apache-2.0
// A Llama with three losses: cross entropy over the labels that count, a penalty weighted per token, and a
// user-defined loss over the tokens whose label counts.
#pragma once
#include <rankc/rankc.hpp>

#include <array>

#include "../inputs/masked_square.hpp"
#include "../inputs/weighted_square.hpp"

namespace packed {

using namespace rankc;

inline constexpr dim hidden{"hidden", 8}, vocab{"vocab", 16};

struct three_losses {
  static constexpr std::string_view name = "head";
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    add_loss(user::token_square(x, c.input("token_weights"), 0.5 * c.loss_scale));
    add_loss(user::masked_square(x, c.input("targets"), label_count(c), 0.25));
    const value gain = t.parameter("norm", {hidden}, {}, initial::ones);
    const value entered = enter_tp(rms_norm(x, gain), c);
    return cross_entropy(linear(entered, t.parameter(token_table(vocab, hidden, "lm_head"))), c);
  }
};

struct llama {
  int vocab = 16, vocab_used = 0;
  constexpr void check(report&) const {}
  constexpr auto inputs() const {
    return std::array{named_input{.name = "token_weights", .holds = element::wide}};
  }
  constexpr auto stack() const {
    constexpr models::decoder of =
        models::llama{
            .layers = 2, .hidden = 8, .heads = 4, .kv_heads = 2, .ffn = 12, .vocab = 16, .theta = 10000}
            .describe();
    return sequential(of.embedding(), repeat{2, of.block()}, three_losses{});
  }
};

}  // namespace packed
