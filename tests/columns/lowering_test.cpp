// SPDX-License-Identifier: Apache-2.0
// Plans whose ranks shard the columns of experts: the report of describe, and the checks of their programs.
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
#include "../some_of.hpp"
#include "check_lowered.hpp"
#include "norm_sums.hpp"
#include "plans.hpp"

namespace lowering_test {

using namespace rankc::codegen;
using rankc::codegen::access;  // unistd.h has a function of this name

namespace {

rankc::plan_data find(const std::string& job, const std::string& layout) {
  return find_plan(columns::plans(), job, layout);
}

op& nth(program& p, int rank, collective_kind k, const std::string& named = "") {
  for (op& o : p.ranks[static_cast<std::size_t>(rank)].ops)
    if (o.kind == op_kind::collective && o.does == k && o.name.find(named) != o.name.npos) return o;
  throw std::logic_error("the program has no such collective");
}

/// The first byte of an expert gradient, which the optimizer reads after the weight.
std::size_t gradient_of_experts(const rank_program& r) {
  const op& begin = r.ops.front();
  std::size_t weight = 0;
  for (std::size_t k = 0; k < begin.holds.size(); ++k)
    if (begin.holds[k].kind == holding_kind::weight && begin.holds[k].name.ends_with("experts.down"))
      weight = begin.writes[k].begin;
  for (const op& o : r.ops)
    for (std::size_t k = 0; o.row == "adamw" && k + 1 < o.reads.size(); ++k)
      if (o.reads[k].begin == weight) return o.reads[k + 1].begin;
  throw std::logic_error("no expert is trained");
}

/// The index of the read; the number of reads if there is none.
std::size_t read_of_experts(const program& p, int rank, const op& o) {
  const std::size_t begin = gradient_of_experts(p.ranks[static_cast<std::size_t>(rank)]);
  return static_cast<std::size_t>(
      std::find_if(o.reads.begin(), o.reads.end(), [&](const access& a) { return a.begin == begin; }) -
      o.reads.begin());
}

/// The op that adds the squares of expert gradients, or of the others, to the norm.
op& squares(program& p, int rank, bool of_experts) {
  for (op& o : p.ranks[static_cast<std::size_t>(rank)].ops)
    if (o.row == "sum_squares" && (read_of_experts(p, rank, o) < o.reads.size()) == of_experts) return o;
  throw std::logic_error("no squares");
}

void leave_out_experts(program& p, int rank) {
  op& o = squares(p, rank, true);
  const std::size_t left_out = read_of_experts(p, rank, o);
  o.reads[left_out] = o.reads[left_out == 0 ? 1 : 0];
}

void count_experts_twice(program& p, int rank) {
  const op& of_experts = squares(p, rank, true);
  op& o = squares(p, rank, false);
  const std::size_t read = read_of_experts(p, rank, of_experts);
  view counted = of_experts.views[read];
  counted.accesses.first = static_cast<int>(o.reads.size());
  o.reads.push_back(of_experts.reads[read]);
  o.views.insert(o.views.begin() + counted.accesses.first, counted);
}

}  // namespace

TEST_CASE(
    "programs whose ranks share out columns of experts, or have experts across replicas and ranks of tp, are "
    "proven, are the model, and take what is counted, on either target") {
  std::vector<rankc::plan_data> plans;
  for (const split_plan& e : columns::plans())
    if (e.layout != "one") plans.push_back(e.plan);
  CHECK(check_lowered(plans) == lowered_programs_of(33));
}

TEST_CASE(
    "a rank keeps its columns of its own experts, of which the ranks that have the same keep shards; "
    "describe counts all of them") {
  const auto of_experts = [](const char* layout) {
    const lowered l = lower(find("mixtral", layout), dtype::f64, target::host);
    std::size_t elements = 0;
    for (const placed_parameter& p : l.ranks[0].parameters)
      elements += p.name.find("experts.") != p.name.npos ? p.as.shard() : 0;
    return elements;
  };
  const std::size_t all = of_experts("one");
  CHECK(all == 4 * 3 * 4 * 16 * 8);  // layers, matrices, experts, sizes
  for (const char* layout : {"shards", "sp", "cp"}) CHECK(of_experts(layout) == all / 4);
  CHECK(of_experts("replicas") == all / 4);
  for (const char* layout : {"wide_sp", "rest", "rest_sp"}) CHECK(of_experts(layout) == all / 8);
  const auto count = [](const char* layout) {
    const std::string text = describe_text(lower(find("mixtral", layout), dtype::f64, target::host));
    return text.substr(text.find(": ") + 2, text.find(" parameters") - text.find(": ") - 2);
  };
  for (const char* layout : {"shards", "rest_sp", "replicas"}) CHECK(count(layout) == count("one"));
  CHECK(describe_text(lower(find("mixtral", "wide_sp"), dtype::f64, target::host))
            .find(" parameters; spread over ep 2 x etp 4\n") != std::string::npos);
}

TEST_CASE("gatherings of other sizes or kinds are refused by the proof, and by what reads its certificate") {
  const program sound = expand_train(lower(find("mixtral", "replicas"), dtype::f64, target::host));
  const verdict proven = prove(sound);
  const auto is_refused = [&](auto change) {
    program p = sound;
    change(p);
    return !prove(p).ok && verify(certificate(p, proven)) != "";
  };
  constexpr collective_kind k = collective_kind::gather_offsets;
  CHECK(is_refused([&](program& p) { nth(p, 0, k).writes[1].end -= 8; }));  // scratch
  CHECK(is_refused([&](program& p) { nth(p, 0, k).bytes -= 8; }));
  CHECK(is_refused([&](program& p) { nth(p, 0, k).writes[0].type = element_type::f32; }));
  CHECK(is_refused([&](program& p) { nth(p, 0, k).does = collective_kind::all_gather; }));
  CHECK(is_refused([&](program& p) { nth(p, 0, k).does = collective_kind::share_offsets; }));
  CHECK(is_refused(
      [&](program& p) { nth(p, 0, k).communicator = nth(p, 2, k).communicator; }));  // another group
  CHECK(is_refused([&](program& p) { nth(p, 0, k).writes.pop_back(); }));
  CHECK(is_refused([&](program& p) { nth(p, 0, collective_kind::all_gather, "gather_slots").bytes /= 2; }));
}

TEST_CASE(
    "programs that are sound and not the model's are refused: slots of other orders, parts that are not "
    "summed up") {
  const rankc::plan_data plan = find("mixtral", "shards");
  const program sound = expand_train(lower(plan, dtype::f64, target::host));
  const auto said = [&](auto change) {
    program p = sound;
    for (int r = 0; r < static_cast<int>(p.ranks.size()); ++r) change(p, r);
    const verdict proof = prove(p);
    REQUIRE_MESSAGE(proof.ok, (proof.reasons.empty() ? "" : proof.reasons.front()));
    const equivalence same = check_equivalence(p, proof, specify(plan));
    CHECK(!same.holds);
    return same.reasons.empty() ? std::string() : same.reasons.front();
  };
  // The offsets are of slabs with other rows.
  CHECK(rankc::test::said_in(said([](program& p, int r) {
          nth(p, r, collective_kind::gather_offsets).rows /= 2;
        })).id == 7412);
}

TEST_CASE(
    "describe tells over which ranks experts are spread, what these keep of them, and as JSON the degrees "
    "and the layout") {
  const auto has = [](const char* layout, const std::string& text) {
    return describe_text(lower(find("across", layout), dtype::f64, target::host)).find(text) !=
           std::string::npos;
  };
  CHECK(has("replicas", " parameters; spread over ep 2 x etp 4 of all replicas\n"));
  CHECK(has("some_of_tp", " parameters; spread over ep 2\n"));
  CHECK(has("replicas_alone", "  experts in shards of 1/2; gathered by layers in turn"));
  CHECK(has("across_tp", "  in shards of 1/2, experts of 1/4; gathered by layers in turn"));
  CHECK(has("replicas", "  in shards of 1/2; gathered by layers in turn"));
  const auto dims = [](const char* layout) {
    return nlohmann::json::parse(describe_json(lower(find("across", layout), dtype::f64, target::host)))
        .at("dims");
  };
  CHECK(dims("replicas_step").at("ep") == 3);
  CHECK(dims("replicas_step").at("etp") == 1);
  CHECK(dims("replicas_step").at("expert_layout") == "folded_over_replicas");
  CHECK(dims("columns_across_tp").at("etp") == 2);
  CHECK(dims("columns_across_tp").at("expert_layout") == "folded");
  CHECK(!dims("one").contains("ep"));
}

TEST_CASE(
    "the norm counts the experts of each rank once: sums over other ranks and other squares are refused") {
  int refused = 0;
  std::size_t n = 0;
  for (const std::string layout :
       {"replicas", "replicas_alone", "replicas_step", "replicas_zbv", "whole_on_cp", "replicas_whole_on_cp",
        "some_of_tp", "across_tp", "beside_tp", "columns_across_tp"}) {
    CAPTURE(layout);
    const rankc::plan_data plan = find("across", layout);
    const program sound = expand_train(lower(plan, dtype::f64, target::host));
    const auto is_refused = [&](const std::string& what, auto change) {
      CAPTURE(what);
      program p = sound;
      change(p);
      const verdict proof = prove(p);
      const bool holds = proof.ok && check_equivalence(p, proof, specify(plan)).holds;
      // In "replicas_step", the pairs of experts' shards and of dense shards both cross the replicas of dense
      // shards.
      const bool is_right = layout == "replicas_step" && (what == "gradient norm over shard over efsdp" ||
                                                          what == "gradient norm over shard over gathering");
      CHECK(holds == is_right);
      refused += !holds;
    };
    for (const std::string& kind : norm_sums::kinds_of_communicators(sound))
      for (const std::string& sum : norm_sums::sums_of_norm(sound))
        if (!norm_sums::same_members(sound, kind, sum) && rankc::test::takes(n++))
          is_refused(sum + " over " + kind, [&](program& p) { norm_sums::move_sum(p, sum, kind); });
    is_refused("squares of experts that none counts", [](program& p) {
      for (int r = 0; r < static_cast<int>(p.ranks.size()); ++r) leave_out_experts(p, r);
    });
    is_refused("squares of experts that two count", [](program& p) {
      for (int r = 0; r < static_cast<int>(p.ranks.size()); ++r) count_experts_twice(p, r);
    });
  }
  CHECK(n == 112);
  CHECK(refused > rankc::test::some_of(100));
  CHECK((refused == 130 || !rankc::test::plants_all()));
}

}  // namespace lowering_test
