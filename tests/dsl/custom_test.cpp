// SPDX-License-Identifier: Apache-2.0
// A user's own layer, model, schedule and cluster, without any change to rankc.
#include <doctest/doctest.h>

#include <rankc/plan/make_plan.hpp>
#include <rankc/rankc.hpp>

namespace mine {

using namespace rankc;

/// A residual gated feed-forward with a narrow hidden size; its norm is at the branch's end.
struct waist {
  static constexpr std::string_view name = "waist";
  dim hidden, narrow;

  constexpr value forward(trace& t, value x, const layer_context& c) const {
    value h = enter_tp(x, c);
    value gate =
        linear(h, t.parameter("gate", {narrow, hidden}, {{axis::tp, "narrow"}}, initial::normal, 0.02));
    value up = linear(h, t.parameter("up", {narrow, hidden}, {{axis::tp, "narrow"}}, initial::normal, 0.02));
    value out = t.parameter("out", {hidden, narrow}, {{axis::tp, "narrow"}}, initial::normal, 0.02);
    value y = leave_tp(linear(swiglu(gate, up), out), c);
    return x + rms_norm(y, t.parameter("gain", {hidden}, {}, initial::ones));
  }
};

struct network {
  int layers, width, narrow, vocab;
  int vocab_used = 0;
  constexpr void check(report& out) const {
    if (check_sizes(out, {{"width", width}, {"narrow", narrow}}) && narrow > width)
      refuse(out, 299) << "narrow=" << narrow << " is wider than width=" << width;
  }
  constexpr auto stack() const {
    const dim h{"hidden", width}, v{"vocab", vocab};
    const parameter_handle table = token_table(v, h);
    return sequential(models::embedding{table}, repeat{layers, waist{h, dim{"narrow", narrow}}},
                      models::head{table});
  }
};

/// Two microbatches at a time: F F B B.
struct in_pairs {
  int microbatches;
  bool backward_first = false;
  static constexpr std::string_view name = "in_pairs";
  static constexpr int stages_per_rank = 1;
  constexpr int rank_of_stage(int stage, int pp) const {
    return pp - 1 - stage;
  }  // the last stage on the first rank
  constexpr void actions(int pp, int rank, auto emit) const {
    for (int m = 0; m < microbatches; m += 2)
      for (action_kind k : {action_kind::F, action_kind::B})
        for (int i = m; i < m + 2 && i < microbatches; ++i)
          emit(action{backward_first ? action_kind::B : k, pp - 1 - rank, i});
  }
};

inline constexpr cluster closet{.nodes = 2, .ranks_per_node = 4, .memory = 8'000'000'000, .flops = 1e12};
inline constexpr network net{.layers = 4, .width = 32, .narrow = 16, .vocab = 64};
inline constexpr training recipe{.seq = 8, .global_batch = 12};
inline constexpr parallel_dims dims{
    .world = 8, .dp_replicate = infer, .tp = 2, .pp = 2, .sequence_parallel = true};

inline constexpr plan works{
    .model = net, .dims = dims, .schedule = in_pairs{.microbatches = 3}, .recipe = recipe, .cluster = closet};
static_assert(valid<works>);

constexpr auto changed(auto change) {
  auto p = works;
  change(p);
  return p;
}
inline constexpr auto backward_first = changed([](auto& p) { p.schedule.backward_first = true; });
static_assert(!valid<backward_first>);
inline constexpr auto too_many_ranks = changed([](auto& p) { p.dims = {.world = 16, .dp_replicate = 16}; });
static_assert(!valid<too_many_ranks>);
inline constexpr network too_wide{.layers = 4, .width = 32, .narrow = 64, .vocab = 64};
inline constexpr auto of_too_wide = changed([](auto& p) { p.model = too_wide; });
static_assert(!valid<of_too_wide>);
inline constexpr network odd{.layers = 4, .width = 32, .narrow = 15, .vocab = 64};
inline constexpr auto of_odd = changed([](auto& p) { p.model = odd; });
static_assert(!valid<of_odd>);

}  // namespace mine

namespace {

std::string reason(const rankc::plan_data& p) {
  REQUIRE(p.diagnostics.size() == 1);
  return "RC" + std::to_string(p.diagnostics[0].id) + ": " + std::string(p.diagnostics[0].text.view());
}

}  // namespace

TEST_CASE("a user's plan becomes plain data like any other") {
  const rankc::plan_data p = make_plan("works", mine::works);
  REQUIRE(p.diagnostics.empty());
  CHECK(p.schedule == "in_pairs");
  CHECK(p.machines.ranks_per_node == 4);
  CHECK(p.actions.rank_of_stage == std::vector<int>{1, 0});
  REQUIRE(p.kinds.size() == 3);
  CHECK(p.kinds[1].name == "waist");
  CHECK(p.kinds[1].ops.weights.size() == 4);
  // The gain follows the reduction: under sequence parallelism its gradient is a sum over tp.
  CHECK(p.kinds[1].ops.weights[3].gradient[rankc::axis::tp] == rankc::P);
}

TEST_CASE("and is refused in the same words") {
  using namespace mine;
  CHECK(
      reason(make_plan("", net, dims, in_pairs{.microbatches = 3, .backward_first = true}, recipe, closet)) ==
      "RC304: rank 0 waits for 1F0 before 1B0, for ever; order each rank's actions by their data: F after F "
      "of the "
      "stage before, B after B of the stage after");
  CHECK(reason(make_plan("", too_wide, dims, in_pairs{.microbatches = 3}, recipe, closet)) ==
        "RC299: narrow=64 is wider than width=32");
  CHECK(reason(make_plan("", odd, dims, in_pairs{.microbatches = 3}, recipe, closet)) ==
        "RC202: narrow=15 does not divide by tp=2: take tp=1, or narrow=14 or narrow=16");
}
