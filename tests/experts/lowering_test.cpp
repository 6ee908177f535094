// SPDX-License-Identifier: Apache-2.0
// What is told of plans with experts, and how their programs keep what routers choose.
#include <doctest/doctest.h>

#include <rankc/codegen/lowered.hpp>

#include <emit/emit.hpp>

#include <algorithm>
#include <string>

#include "plans.hpp"

using namespace rankc::codegen;

namespace {

rankc::plan_data find(const std::string& family, const std::string& layout) {
  for (experts::expert_plan& p : experts::plans())
    if (p.family == family && p.layout == layout) return std::move(p.plan);
  FAIL("no plan is ", family, " ", layout);
  return {};
}

}  // namespace

TEST_CASE("describe says how many experts a token meets, and how many parameters") {
  const auto told = [](const char* family, const char* layout) {
    const std::string text = describe_text(lower(find(family, layout), dtype::f64, target::host));
    const auto at = text.find("experts: ");
    return at == text.npos ? "" : text.substr(at, text.find('\n', at) - at);
  };
  // 4 layers of 12 x 6 x 3 for each of 5 experts, of which 3 are not met.
  const int all = 32 * 12 + 12 + 4 * (2 * 12 + 2 * 4 + 4 * 8 * 12 + 5 * 12 + 5 * 3 * 12 * 6), met = all - 4 * 3 * 3 * 12 * 6;
  for (const char* layout : {"one", "tp2", "shards", "zbv"})
    CHECK(told("qwen3_moe", layout) == "experts: 5 in each of 4 layers, 2 for a token, which meets " + std::to_string(met) + " parameters");
  CHECK(told("some_dense", "one").starts_with("experts: 4 in each of 2 layers, 2 for a token"));
  CHECK(told("sigmoid", "one") == "");
}

TEST_CASE("choices, places and offsets are whole numbers, and kept for backward") {
  const lowered l = lower(find("qwen3_moe", "tp2"), dtype::bf16, target::cuda);
  const body& b = l.bodies[1];
  const int tokens = 96, picks = 2, experts = 5;
  std::vector<std::size_t> bytes;
  for (const value& v : b.values)
    if (v.holds == rankc::program::element_kind::index && v.where == space::saved) bytes.push_back(v.bytes);
  std::sort(bytes.begin(), bytes.end());
  CHECK(bytes == std::vector<std::size_t>{2 * experts * 4, tokens * picks * 4, tokens * picks * 4});
}
