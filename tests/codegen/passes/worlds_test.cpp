// SPDX-License-Identifier: Apache-2.0
// Worlds of any size are lowered, proven and certified. Beyond 64 ranks, some ranks represent the others, and
// the certificate says so.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <rankc/codegen/certificate.hpp>
#include <rankc/codegen/lowered.hpp>
#include <rankc/codegen/prove.hpp>
#include <rankc/codegen/verify.hpp>
#include <rankc/plan/make_plan.hpp>
#include <rankc/rankc.hpp>
#include <rankc/schedules/looped_bfs.hpp>
#include <rankc/schedules/zero_bubble_v.hpp>

#include "../../said.hpp"

namespace worlds_test {

using namespace rankc::codegen;

namespace {

constexpr rankc::models::gpt2 gpt{.layers = 64, .hidden = 16, .heads = 8, .ffn = 32, .vocab = 64};

rankc::plan_data split(int dp, int tp, int pp, bool sequence_parallel, const auto& schedule) {
  const rankc::parallel_dims dims{
      .world = dp * tp * pp, .dp_replicate = dp, .tp = tp, .pp = pp, .sequence_parallel = sequence_parallel};
  const rankc::training recipe{.seq = 8, .global_batch = dp * schedule.microbatches, .precision = rankc::f32};
  return rankc::make_plan("world", gpt, dims, schedule, recipe, rankc::clusters::h200<128>);
}

}  // namespace

TEST_CASE("worlds of mixed axes are proven whatever their size") {
  const rankc::schedules::one_f_one_b four{4};
  int worlds = 0;
  for (const rankc::plan_data& plan :
       {split(33, 1, 2, false, four), split(64, 2, 1, true, four), split(16, 4, 2, true, four),
        split(16, 2, 4, false, four), split(1, 4, 32, false, four), split(32, 8, 4, true, four),
        split(1, 8, 64, true, four), split(1024, 1, 1, false, four),
        split(3, 2, 22, false, rankc::schedules::zero_bubble_v{5})}) {
    CAPTURE(plan.dims.world);
    REQUIRE(plan.diagnostics.empty());
    const lowered l = lower(plan, dtype::f32);
    int shown = 0;
    for (const program& p : {expand_train(l), expand_evaluate(l)}) {
      const verdict v = prove(p);
      CHECK_MESSAGE(v.ok, v.reasons.front());
      CHECK(p.world == plan.dims.world);
      CHECK(p.ranks.size() == static_cast<std::size_t>(std::min(plan.dims.dp_replicate, 2) *
                                                       std::min(plan.dims.tp, 2) * plan.dims.pp));
      for (const communicator& c : p.communicators) CHECK(!c.ranks.empty());
      ++shown;
    }
    CHECK(shown == 2);
    ++worlds;
  }
  CHECK(worlds == 9);
}

TEST_CASE("a certificate says for whom its ranks stand") {
  const rankc::plan_data large = split(16, 4, 2, true, rankc::schedules::gpipe{1}),
                         small = split(2, 2, 2, true, rankc::schedules::gpipe{1});
  for (const rankc::plan_data* plan : {&large, &small}) {
    CAPTURE(plan->dims.world);
    REQUIRE(plan->diagnostics.empty());
    const program p = expand_train(lower(*plan, dtype::f32));
    const std::string text = certificate(p, prove(p));
    CHECK(verify(text).empty());
    nlohmann::json j = nlohmann::json::parse(text);
    CHECK(j["world"] == plan->dims.world);
    CHECK(j["steps"][0]["ranks"].size() == 8);
    CHECK(j["represented"].is_null() == (plan == &small));
    if (plan == &small) continue;
    std::vector<nlohmann::json> axes;
    for (const auto& a : j["represented"])
      if (a[1] > 1) axes.push_back(a);
    CHECK(axes == std::vector<nlohmann::json>{{"pp", 2, 2}, {"dp_replicate", 16, 2}, {"tp", 4, 2}});
    CHECK(j["steps"][0]["ranks"][2]["rank"] == 4);  // dp 1, tp 0
    j["represented"] = nullptr;
    CHECK(rankc::test::said_in(verify(j.dump())) == rankc::test::said{7140, {"128", "8"}});
  }
}

TEST_CASE("forwards alone are certified") {
  const rankc::plan_data plan = split(2, 2, 2, true, rankc::schedules::looped_bfs{3, 2, true});
  REQUIRE(plan.diagnostics.empty());
  const program p = expand_evaluate(lower(plan, dtype::f32));
  CHECK(verify(certificate(p, prove(p))).empty());
  CHECK(p.ranks.size() == 8);
  for (const rank_program& r : p.ranks) CHECK(r.ops.size() > 100);
}

TEST_CASE("a rank that is not like the others is not represented by them") {
  const rankc::plan_data plan = split(16, 4, 2, true, rankc::schedules::gpipe{1});
  REQUIRE(plan.diagnostics.empty());
  lowered l = lower(plan, dtype::f32);
  int changed = 0;
  for (std::size_t rank : {std::size_t{77}, std::size_t{127}})
    for (std::size_t k = 0; k < l.communicator_of[rank].size(); ++k) {
      const int own = l.communicator_of[rank][k];
      // The communicator of another rank's group, or none.
      for (int other : {l.communicator_of[rank == 77 ? 90 : 3][k], -1}) {
        l.communicator_of[rank][k] = other;
        CHECK_THROWS_AS(expand_train(l), std::logic_error);
        ++changed;
      }
      l.communicator_of[rank][k] = own;
    }
  CHECK(changed >= 16);
  CHECK(prove(expand_train(l)).ok);
}

namespace {

/// 128 ranks, with groups of 8 along dp_shard.
rankc::plan_data with_shards() {
  return rankc::make_plan(
      "shards", gpt,
      {.world = 128, .dp_replicate = 4, .dp_shard = 8, .tp = 2, .pp = 2, .sequence_parallel = true},
      rankc::schedules::gpipe{1}, rankc::training{.seq = 8, .global_batch = 32, .precision = rankc::f32},
      rankc::clusters::h200<128>);
}

}  // namespace

TEST_CASE("members whose places are not those of their shards are not represented") {
  const rankc::plan_data plan = with_shards();
  REQUIRE(plan.diagnostics.empty());
  const lowered sound = lower(plan, dtype::f32);
  using order = std::vector<std::size_t>;
  int refused = 0;
  for (const order& by : {order{0, 1, 2, 3, 4, 5, 7, 6}, order{0, 7, 2, 3, 4, 5, 6, 1},
                          order{1, 2, 3, 4, 5, 6, 7, 0}, order{0, 3, 6, 1, 4, 7, 2, 5}})
    for (const bool all : {false, true}) {
      lowered l = sound;
      for (auto c = l.communicators.rbegin(); c != l.communicators.rend(); ++c) {
        if (c->ranks.size() != 8) continue;
        const std::vector<int> before = c->ranks;
        for (std::size_t i = 0; i < by.size(); ++i) c->ranks[i] = before[by[i]];
        if (!all) break;
      }
      CHECK_THROWS_AS(expand_train(l), std::logic_error);
      ++refused;
    }
  CHECK(refused == 8);
}

TEST_CASE("a certificate whose other ranks do not follow from its own is refused") {
  static const nlohmann::json sound = [] {
    const program p = expand_train(lower(with_shards(), dtype::f32));
    const std::string text = certificate(p, prove(p));
    REQUIRE(verify(text) == "");
    return nlohmann::json::parse(text);
  }();
  nlohmann::json j = sound;
  auto& mesh = j["represented"];
  auto& groups = j["steps"][0]["communicators"];
  const auto named = [](auto& list, std::size_t field, const std::string& begin) -> nlohmann::json& {
    for (auto& x : list)
      if ((field ? x[0] : x["name"]).template get<std::string>().starts_with(begin)) return x;
    throw std::logic_error("none is named " + begin);
  };
  int expected = 0;
  SUBCASE("axes of another world") {
    named(mesh, 1, "dp_shard")[1] = 4;
    expected = 7256;
  }
  SUBCASE("one index alone is listed") {
    named(mesh, 1, "dp_shard")[2] = 1;
    expected = 7255;
  }
  SUBCASE("other ranks are listed") {
    named(mesh, 1, "dp_shard")[2] = 3;
    expected = 7257;
  }
  SUBCASE("axes that change places") {
    std::swap(named(mesh, 1, "dp_shard"), named(mesh, 1, "dp_replicate"));
    expected = 7278;
  }
  SUBCASE("an axis that is listed whole") {
    named(groups, 0, "gathering")["along"] = {0};
    expected = 7258;
  }
  SUBCASE("members along no axis") {
    named(groups, 0, "gathering")["along"] = nlohmann::json::array();
    expected = 7259;
  }
  SUBCASE("members in another order") {
    auto& ranks = named(groups, 0, "gathering")["ranks"];
    std::swap(ranks[0], ranks[1]);
    expected = 7259;
  }
  SUBCASE("more members than the axis has indices") {
    named(groups, 0, "gathering")["size"] = 16;
    expected = 7170;  // checked by the bytes of its collectives
  }
  const std::string answer = verify(j.dump());
  CHECK_MESSAGE(rankc::test::said_in(answer).id == expected, answer);
}

}  // namespace worlds_test
