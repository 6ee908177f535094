// SPDX-License-Identifier: Apache-2.0
// Plans with experts: the report of describe, and how their programs keep the routers' choices.
#include <doctest/doctest.h>

#include <rankc/codegen/certificate.hpp>
#include <rankc/codegen/lowered.hpp>
#include <rankc/codegen/prove.hpp>
#include <rankc/codegen/verify.hpp>

#include <emit/emit.hpp>

#include <algorithm>
#include <string>
#include <utility>

#include "check_lowered.hpp"
#include "plans.hpp"

namespace lowering_test {

using namespace rankc::codegen;

namespace {

rankc::plan_data find(const std::string& job, const std::string& layout) {
  return find_plan(experts::plans(), job, layout);
}

}  // namespace

TEST_CASE("describe says how many experts a token meets, and how many parameters") {
  const auto told = [](const char* family, const char* layout) {
    const std::string text = describe_text(lower(find(family, layout), dtype::f64, target::host));
    const auto at = text.find("experts: ");
    return at == text.npos ? "" : text.substr(at, text.find('\n', at) - at);
  };
  // 4 layers with 12 x 6 x 3 parameters for each of 5 experts; a token does not meet 3 of them.
  const int all = 32 * 12 + 12 + 4 * (2 * 12 + 2 * 4 + 4 * 8 * 12 + 5 * 12 + 5 * 3 * 12 * 6),
            met = all - 4 * 3 * 3 * 12 * 6;
  for (const char* layout : {"one", "tp2", "shards", "zbv"})
    CHECK(told("qwen3_moe", layout) == "experts: 5 in each of 4 layers, 2 for a token, which meets " +
                                           std::to_string(met) + " parameters");
  CHECK(told("some_dense", "one").starts_with("experts: 4 in each of 2 layers, 2 for a token"));
  CHECK(told("sigmoid", "one") == "");
}

TEST_CASE("choices, places and offsets are whole numbers, and kept for backward") {
  const lowered l = lower(find("qwen3_moe", "tp2"), dtype::bf16, target::cuda);
  const body& b = l.bodies[1];
  const int tokens = 96, picks = 2, experts = 5;
  std::vector<std::size_t> bytes;
  for (const value& v : b.values)
    if (v.holds == rankc::lowering::element_kind::index && v.where == space::saved) bytes.push_back(v.bytes);
  std::sort(bytes.begin(), bytes.end());
  CHECK(bytes == std::vector<std::size_t>{2 * experts * 4, tokens * picks * 4, tokens * picks * 4});
}

TEST_CASE(
    "programs with experts on ranks of their own are proven, are the model, and take what is counted, on "
    "either target") {
  std::vector<rankc::plan_data> plans;
  for (const split_plan& e : experts::plans())
    if (e.plan.dims.ep > 1) plans.push_back(e.plan);
  CHECK(check_lowered(plans) == lowered_programs_of(36));
}

TEST_CASE("a rank of ep keeps its own experts, of which the ranks that have the same keep shards") {
  const auto of_experts = [](const char* layout) {
    const rankc::plan_data plan = find("mixtral", layout);
    const lowered l = lower(plan, dtype::f64, target::host);
    std::size_t elements = 0;
    for (const placed_parameter& p : l.ranks[0].parameters)
      elements += p.name.find("experts.") != p.name.npos ? p.as.shard() : 0;
    return elements;
  };
  const std::size_t all = of_experts("one");
  CHECK(all == 4 * 3 * 4 * 12 * 8);  // layers, matrices, experts, sizes
  CHECK(of_experts("ep2") == all / 2);
  CHECK(of_experts("ep4_cp") == all / 4);
  CHECK(of_experts("ep2_dp") == all / 2);
  CHECK(of_experts("ep2_shards") == all / 4);
  CHECK(of_experts("ep2_shards_sp") == all / 4);
}

TEST_CASE(
    "exchanges of other sizes or kinds than their members' are refused by the proof, and by what reads its "
    "certificate") {
  const rankc::plan_data plan = find("mixtral", "ep2_dp");
  const program sound = expand_train(lower(plan, dtype::f64, target::host));
  const verdict proven = prove(sound);
  const auto nth = [](program& p, int rank, collective_kind k) -> op& {
    for (op& o : p.ranks[static_cast<std::size_t>(rank)].ops)
      if (o.kind == op_kind::collective && o.does == k) return o;
    throw std::logic_error("the program has no such exchange");
  };
  const auto is_refused = [&](auto change) {
    program p = sound;
    change(p);
    const verdict proof = prove(p);
    return !proof.ok && verify(certificate(p, proven)) != "";
  };
  for (const collective_kind k :
       {collective_kind::to_experts, collective_kind::from_experts, collective_kind::share_offsets}) {
    CAPTURE(collective_kind_names[static_cast<int>(k)]);
    CHECK(is_refused([&](program& p) { nth(p, 0, k).writes[1].end -= 8; }));  // the scratch is too small
    CHECK(is_refused([&](program& p) { nth(p, 0, k).bytes -= 8; }));
    CHECK(is_refused([&](program& p) { nth(p, 0, k).writes[0].type = element_type::f32; }));
    CHECK(is_refused([&](program& p) { nth(p, 0, k).does = collective_kind::all_to_all; }));
    CHECK(is_refused(
        [&](program& p) { nth(p, 0, k).communicator = nth(p, 2, k).communicator; }));  // another replica
    CHECK(is_refused([&](program& p) { nth(p, 0, k).writes.pop_back(); }));
  }
  // The offsets are missing.
  CHECK(is_refused([&](program& p) { nth(p, 0, collective_kind::to_experts).reads.pop_back(); }));
}

}  // namespace lowering_test
