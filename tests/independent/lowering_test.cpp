// SPDX-License-Identifier: Apache-2.0
// Plans whose ranks share tokens and spread the experts: the checks of their programs, and the report of
// describe.
#include <doctest/doctest.h>

#include <rankc/codegen/equivalence.hpp>
#include <rankc/codegen/lowered.hpp>
#include <rankc/codegen/prove.hpp>

#include <emit/emit.hpp>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "../said.hpp"
#include "check_lowered.hpp"
#include "norm_sums.hpp"
#include "plans.hpp"

namespace lowering_test {

using namespace rankc::codegen;
using rankc::test::said, rankc::test::said_in;

namespace {

rankc::plan_data find(const std::string& job, const std::string& layout) {
  return find_plan(independent::plans(), job, layout);
}

/// The ep communicator of a rank.
int over_ep(const program& p, int rank) {
  for (std::size_t c = 0; c < p.communicators.size(); ++c) {
    const std::vector<int>& ranks = p.communicators[c].ranks;
    if (p.communicators[c].name.starts_with("ep ") && std::count(ranks.begin(), ranks.end(), rank))
      return static_cast<int>(c);
  }
  throw std::logic_error("a rank has no others on ep");
}

/// Insert a sum over ep after each rank's last sum of gradients over replicas, on the lane of the other ep
/// calls.
void sum_gradients_over_ep(program& p) {
  int next = 0;
  for (const rank_program& r : p.ranks)
    for (const op& o : r.ops)
      for (const auto& a : o.writes) next = std::max(next, a.value + 1);
  for (std::size_t rank = 0; rank < p.ranks.size(); ++rank) {
    std::vector<op>& ops = p.ranks[rank].ops;
    const auto last = std::find_if(ops.rbegin(), ops.rend(),
                                   [](const op& o) { return o.name.starts_with("gradients of"); });
    REQUIRE(last != ops.rend());
    const int at = static_cast<int>(ops.rend() - last) - 1;
    op again = ops[static_cast<std::size_t>(at)];
    again.communicator = over_ep(p, static_cast<int>(rank));
    again.waits = {at};
    again.stream = std::find_if(ops.begin(), ops.end(), [](const op& o) {
                     return o.name == "gradient norm over ep";
                   })->stream;
    for (std::size_t k = 0; k < again.reads.size(); ++k) {
      const int before = again.writes[k].value, after = next++;
      again.reads[k].value = before;
      for (std::size_t i = static_cast<std::size_t>(at) + 1; i < ops.size(); ++i)
        for (auto& a : ops[i].reads)
          if (a.value == before) a.value = after;
      again.writes[k].value = after;
    }
    for (std::size_t i = static_cast<std::size_t>(at) + 1; i < ops.size(); ++i)
      for (int& w : ops[i].waits) w += w >= at;
    ops.insert(ops.begin() + at + 1, std::move(again));
  }
}

}  // namespace

TEST_CASE(
    "programs whose ranks of ep have the same tokens are proven, are the model, and take what is counted, on "
    "either target") {
  std::vector<rankc::plan_data> plans;
  for (const split_plan& e : independent::plans())
    if (e.layout != "one") plans.push_back(e.plan);
  CHECK(check_lowered(plans) == lowered_programs_of(23));
}

TEST_CASE("dense gradients that are summed over ep are refused") {
  const rankc::plan_data plan = find("mixtral", "replicas");
  program p = expand_train(lower(plan, dtype::f64, target::host));
  REQUIRE(check_equivalence(p, prove(p), specify(plan)).holds);
  sum_gradients_over_ep(p);
  const verdict proof = prove(p);
  REQUIRE_MESSAGE(proof.ok, (proof.reasons.empty() ? "" : proof.reasons.front()));
  const equivalence same = check_equivalence(p, proof, specify(plan));
  CHECK(!same.holds);
  REQUIRE(!same.reasons.empty());
  CHECK(said_in(same.reasons.front()) == said{7690, {"the gradient of wte"}});
}

TEST_CASE("slots of experts that a rank has not, and of some that there are not, are refused") {
  const rankc::plan_data plan = find("mixtral", "alone");
  const program sound = expand_train(lower(plan, dtype::f64, target::host));
  const auto why = [&](std::int64_t first) {
    program p = sound;
    for (rank_program& r : p.ranks)
      for (op& o : r.ops)
        if (o.row == "own_slots") o.views[1].first = first;
    const equivalence same = check_equivalence(p, prove(p), specify(plan));
    CHECK(!same.holds);
    return same.reasons.empty() ? said() : said_in(same.reasons.front());
  };
  CHECK(why(0) == said{7418, {"experts 2..3", "experts 0..1"}});
  CHECK(why(1) == said{7418, {"experts 0..1", "experts 1..2"}});
  CHECK(why(3) == said{7660, {"3", "4", "4"}});
}

TEST_CASE("the norm counts the experts of each rank of ep once: sums over other ranks are refused") {
  int refused = 0;
  for (const char* layout : {"alone", "replicas", "shards", "sp", "shards_sp", "pp"}) {
    CAPTURE(layout);
    const rankc::plan_data plan = find("mixtral", layout);
    const program sound = expand_train(lower(plan, dtype::f64, target::host));
    const auto is_refused = [&](const program& p) {
      const verdict proof = prove(p);
      return !proof.ok || !check_equivalence(p, proof, specify(plan)).holds;
    };
    for (const std::string& kind : norm_sums::kinds_of_communicators(sound))
      for (const std::string& sum : norm_sums::sums_of_norm(sound)) {
        if (norm_sums::same_members(sound, kind, sum)) continue;
        CAPTURE(sum);
        CAPTURE(kind);
        program p = sound;
        norm_sums::move_sum(p, sum, kind);
        CHECK(is_refused(p));
        refused += is_refused(p);
      }
  }
  CHECK(refused == 38);
}

TEST_CASE(
    "a rank keeps its own experts, of which the ranks that have the same keep shards; describe counts all of "
    "them, and says whose tokens they see") {
  const auto of_experts = [](const char* layout) {
    const lowered l = lower(find("mixtral", layout), dtype::f64, target::host);
    std::size_t elements = 0;
    for (const placed_parameter& p : l.ranks[0].parameters)
      elements += p.name.find("experts.") != p.name.npos ? p.as.shard() : 0;
    return elements;
  };
  const std::size_t all = of_experts("one");
  CHECK(all == 4 * 3 * 4 * 16 * 8);  // layers, matrices, experts, sizes
  for (const char* layout : {"alone", "replicas"}) CHECK(of_experts(layout) == all / 2);
  for (const char* layout : {"four", "shards", "sp", "cp"}) CHECK(of_experts(layout) == all / 4);
  CHECK(of_experts("shards_sp") == all / 8);
  const auto text = [](const char* layout) {
    return describe_text(lower(find("mixtral", layout), dtype::f64, target::host));
  };
  const auto count = [&](const char* layout) {
    const std::string s = text(layout);
    return s.substr(s.find(": ") + 2, s.find(" parameters") - s.find(": ") - 2);
  };
  for (const char* layout : {"alone", "shards_sp", "pp"}) CHECK(count(layout) == count("one"));
  CHECK(text("shards_sp").find(", 16 ranks = pp 1 x dp 2 x 2 shards x ep 2 x tp 2") != std::string::npos);
  CHECK(text("shards").find(" parameters; spread over ep 2, which have the same tokens\n") !=
        std::string::npos);
  const auto dims =
      nlohmann::json::parse(describe_json(lower(find("mixtral", "shards"), dtype::f64, target::host)))
          .at("dims");
  CHECK(dims.at("ep") == 2);
  CHECK(dims.at("world") == 4);
  CHECK(dims.at("expert_layout") == "independent");
}

}  // namespace lowering_test
