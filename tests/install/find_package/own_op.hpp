// SPDX-License-Identifier: Apache-2.0
// A plan whose layers use a user's own op.
#pragma once
#include <rankc/rankc.hpp>

#include "silu.hpp"

namespace my {

using namespace rankc;

struct silu_mlp {
  static constexpr std::string_view name = "silu_mlp";
  dim hidden, ffn;
  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value h = enter_tp(rms_norm(x, t.parameter("norm", {hidden}, {}, initial::ones)), c);
    value up = linear(h, t.parameter("up", {ffn, hidden}, {{axis::tp, "ffn"}}, initial::normal, 0.02));
    value down = linear(user::silu(up),
                        t.parameter("down", {hidden, ffn}, {{axis::tp, "ffn"}}, initial::normal, 0.02));
    return x + leave_tp(down, c);
  }
};

struct silu_mlps {
  int vocab = 64, vocab_used = 0;
  constexpr void check(report&) const {}
  constexpr auto stack() const {
    const dim hidden{"hidden", 16}, words{"vocab", vocab};
    return sequential(models::embedding{token_table(words, hidden)},
                      repeat{2, silu_mlp{hidden, dim{"ffn", 64}}},
                      models::head{token_table(words, hidden, "lm_head")});
  }
};

inline constexpr plan own_op{.model = silu_mlps{},
                             .dims = parallel_dims{.world = 2, .tp = 2},
                             .schedule = schedules::gpipe{2},
                             .recipe = training{.seq = 8, .global_batch = 4},
                             .cluster = clusters::cpu};
static_assert(valid<own_op>);

}  // namespace my
