// SPDX-License-Identifier: Apache-2.0
// How programs of ranks that have the same tokens and experts of their own are judged, and what is told of
// their plans.
#include <doctest/doctest.h>

#include <rankc/codegen/certificate.hpp>
#include <rankc/codegen/equivalence.hpp>
#include <rankc/codegen/lowered.hpp>
#include <rankc/codegen/prove.hpp>
#include <rankc/codegen/verify.hpp>

#include <emit/emit.hpp>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "../said.hpp"
#include "check_lowered.hpp"
#include "plans.hpp"

namespace lowering_test {

using namespace rankc::codegen;
using rankc::test::said, rankc::test::said_in;

namespace {

rankc::plan_data find(const std::string& job, const std::string& layout) {
  return find_plan(independent::plans(), job, layout);
}

/// The communicator over ep that a rank is in.
int over_ep(const program& p, int rank) {
  for (std::size_t c = 0; c < p.communicators.size(); ++c) {
    const std::vector<int>& ranks = p.communicators[c].ranks;
    if (p.communicators[c].name.starts_with("ep ") && std::count(ranks.begin(), ranks.end(), rank))
      return static_cast<int>(c);
  }
  throw std::logic_error("a rank has no others on ep");
}

/// Put a sum over ep behind each rank's last sum of gradients over replicas, on the lane where others over ep
/// are.
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
  int programs = 0;
  for (const split_plan& e : independent::plans())
    if (e.layout != "one") programs += check_lowered(e.plan);
  CHECK(programs == 23 * 6);
}

TEST_CASE(
    "dense gradients that are summed over ep are refused: by the proof, and where its facts say that they "
    "are parts, by what compares with the model") {
  const rankc::plan_data plan = find("mixtral", "replicas");
  program p = expand_train(lower(plan, dtype::f64, target::host));
  REQUIRE(check_equivalence(p, prove(p), specify(plan)).holds);
  sum_gradients_over_ep(p);
  const verdict refused = prove(p);
  CHECK(!refused.ok);
  REQUIRE(!refused.reasons.empty());
  const rankc::test::said found = rankc::test::said_in(refused.reasons.front());
  REQUIRE_MESSAGE(found.id == 7088, refused.reasons.front());
  CHECK(found.arguments[2] == "gradient");
  CHECK(found.arguments[4].starts_with("ep "));
  const auto is_summed_again = [&](const rank_program& r, const sum& s) {
    return std::any_of(r.ops.begin(), r.ops.end(), [&](const op& o) {
      return o.name.starts_with("gradients of") &&
             o.communicator == over_ep(p, static_cast<int>(&r - p.ranks.data())) &&
             std::any_of(o.reads.begin(), o.reads.end(),
                         [&](const auto& a) { return a.begin == s.at.begin; });
    });
  };
  for (rank_program& r : p.ranks)
    for (sum& s : r.sums)
      for (sum::relation& o : s.over)
        if (s.kind == sum_kind::gradient &&
            o.communicator == over_ep(p, static_cast<int>(&r - p.ranks.data())) && is_summed_again(r, s))
          o.as = placement::partial;
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

TEST_CASE("the norm counts the experts of each rank of ep once: other groups and facts are refused") {
  int refused = 0;
  for (const char* layout : {"alone", "replicas", "shards", "sp", "shards_sp", "pp"}) {
    CAPTURE(layout);
    const program sound = expand_train(lower(find("mixtral", layout), dtype::f64, target::host));
    const verdict proven = prove(sound);
    const auto is_refused = [&](const char* what, auto change) {
      CAPTURE(what);
      program p = sound;
      for (std::size_t r = 0; r < p.ranks.size(); ++r) change(p.ranks[r], over_ep(p, static_cast<int>(r)));
      const bool by_both = !prove(p).ok && verify(certificate(p, proven)) != "";
      CHECK(by_both);
      refused += by_both;
    };
    const auto relate = [](rank_program& r, int ep, const char* named, placement as) {
      for (sum& s : r.sums)
        for (sum::relation& o : s.over)
          if (o.communicator == ep && s.name.find(named) != s.name.npos) o.as = as;
    };
    is_refused("experts that are the same on all ranks of ep",
               [&](rank_program& r, int ep) { relate(r, ep, "experts.down", placement::replicated); });
    is_refused("dense weights of which each has a part",
               [&](rank_program& r, int ep) { relate(r, ep, "router", placement::sharded); });
    is_refused("dense gradients that are parts of a sum",
               [&](rank_program& r, int ep) { relate(r, ep, "router", placement::partial); });
  }
  CHECK(refused == 18);
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
