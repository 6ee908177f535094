// SPDX-License-Identifier: Apache-2.0
// Sums that go between ranks in bf16 where the recipe reduces in bf16: those of gradients of parameters, and
// no others.
#include <doctest/doctest.h>

#include <rankc/plan/make_plan.hpp>
#include <rankc/rankc.hpp>

#include <string>

#include "refused.hpp"
#include "small_experts.hpp"

namespace narrow_sums_test {

using namespace equivalence_tests;

namespace {

rankc::plan_data planned(const auto& model, const rankc::parallel_dims& dims) {
  using namespace rankc;
  return make_plan(
      "narrow", model, dims, schedules::gpipe{1},
      training{.seq = 8, .global_batch = 4, .precision = bf16, .reductions = bf16, .ignored_label = -100},
      clusters::h200<8>);
}
const subject& masked() {
  static const subject made(
      planned(
          rankc::models::llama{.layers = 1, .hidden = 16, .heads = 4, .kv_heads = 2, .ffn = 24, .vocab = 32},
          {.world = 4, .dp_replicate = 2, .tp = 2}),
      target::cuda, dtype::bf16);
  return made;
}
const subject& balanced() {
  static const subject made = [] {
    rankc::models::qwen3_moe model = small_experts(2, 4);
    model.router_losses = {.balance = 0.01};
    return subject(planned(model, {.world = 2, .dp_replicate = 2}), target::cuda, dtype::bf16);
  }();
  return made;
}

/// A block whose router has a bias.
struct biased_block {
  static constexpr std::string_view name = "expert_block";
  rankc::models::attention_half attention;
  constexpr rankc::value forward(rankc::trace& t, rankc::value x, const rankc::layer_context& c) const {
    return rankc::models::add_experts(t, attention.add_to(t, x, c),
                                      {.count = 4, .picks = 2, .ffn = 4, .router = {.bias_rate = 0.01}}, 1,
                                      1e-5, c);
  }
};
struct biased_model {
  int vocab = 32, vocab_used = 0;
  constexpr void check(rankc::report&) const {}
  constexpr auto stack() const {
    using rankc::dim;
    const dim c{"hidden", 16};
    const rankc::parameter_handle table = rankc::token_table(dim{"vocab", vocab}, c);
    const rankc::models::attention_half attention{
        c, dim{"heads", 16, 8, "head_dim"}, dim{"kv_heads", 16, 8, "head_dim"}, {1}, 10000};
    return rankc::sequential(rankc::models::embedding{table}, biased_block{attention},
                             rankc::models::head{table});
  }
};
/// A plan with such a router reduces in f32 (RC210). Its model allows bf16 here.
const subject& biased() {
  static const subject made = [] {
    using namespace rankc;
    subject s(
        make_plan("biased", biased_model{}, parallel_dims{.world = 2, .dp_replicate = 2}, schedules::gpipe{1},
                  training{.seq = 8, .global_batch = 4, .precision = bf16}, clusters::h200<8>),
        target::cuda, dtype::bf16);
    s.model.optimizer.bf16_reductions = true;
    return s;
  }();
  return made;
}

/// Collectives with a name that contains `name` send bf16.
auto narrowed(const std::string& name) {
  return [=](subject& s) {
    for (int rank = 0; rank < static_cast<int>(s.p.ranks.size()); ++rank)
      for (op* o : s.find(rank, name)) o->in_bf16 |= o->kind == op_kind::collective;
  };
}

/// All-reduces of tensors of a type send bf16.
auto narrowed(element_type type) {
  return [=](subject& s) {
    for (rank_program& r : s.p.ranks)
      for (op& o : r.ops)
        if (o.kind == op_kind::collective && o.does == collective_kind::all_reduce)
          o.in_bf16 = o.reads.at(0).type == type;
  };
}

}  // namespace

TEST_CASE("gradients alone are sent in bf16") {
  CHECK(masked().reason() == "");
  CHECK(balanced().reason() == "");
}

TEST_CASE("the number of labels, sums of exponentials or statistics of routers are sent in bf16") {
  CHECK(check_refused(masked(), 7787, narrowed("number of labels")).arguments.at(0) == "count");
  CHECK(check_refused(masked(), 7787, narrowed("head: all_reduce of exp_sums")).arguments.at(0) == "sums");
  CHECK(check_refused(balanced(), 7787, narrowed("head: all_reduce of statistics")).arguments.at(0) ==
        "whole");
}

TEST_CASE("the numbers of choices that balance a router's bias are sent in bf16") {
  CHECK(biased().reason() == "");
  const said why = check_refused(biased(), 7793, narrowed("gradients"));
  CHECK(why.arguments.at(0) == "router.bias");
}

TEST_CASE("bf16 is sent by a program for the host, or for tensors that are not in f32") {
  static const subject on_host(
      planned(
          rankc::models::llama{.layers = 1, .hidden = 16, .heads = 4, .kv_heads = 2, .ffn = 24, .vocab = 32},
          {.world = 2, .dp_replicate = 2}),
      target::host, dtype::f32);
  check_refused(on_host, said{7794, {"f32", "the host"}}, narrowed("gradients"));
  check_refused(masked(), said{7794, {"bf16", "CUDA"}}, narrowed(element_type::bf16));
}

}  // namespace narrow_sums_test
