// SPDX-License-Identifier: Apache-2.0
// The head of a pipeline coordinate's text says where its ranks are: numbers, stages, neighbours, groups.
#include <doctest/doctest.h>

#include <rankc/codegen/lowered.hpp>
#include <rankc/plan/make_plan.hpp>
#include <rankc/rankc.hpp>

#include "emit/rank_head.hpp"

namespace rank_head_test {

using namespace rankc::codegen;

namespace {

std::string head(rankc::parallel_dims dims, int microbatches, std::size_t pp) {
  const rankc::plan_data plan = rankc::make_plan(
      "head", rankc::models::gpt2{.layers = 6, .hidden = 16, .heads = 4, .ffn = 32, .vocab = 64}, dims,
      rankc::schedules::one_f_one_b{microbatches},
      rankc::training{.seq = 8, .global_batch = microbatches * dims.dp_replicate, .precision = rankc::f32},
      rankc::clusters::h200<512>);
  REQUIRE(plan.diagnostics.empty());
  const lowered l = lower(plan, dtype::f32);
  return rank_head(l, l.ranks[pp]);
}

bool has(const std::string& text, const std::string& line) { return text.find(line) != text.npos; }

}  // namespace

TEST_CASE("a rank between two others names both, and the groups of its first rank") {
  const std::string text =
      head({.world = 12, .dp_replicate = 2, .tp = 2, .pp = 3, .sequence_parallel = true}, 3, 1);
  CHECK(has(text, "// Ranks 4 to 7 run this text: rank = 4 + 2 dp + tp. Memory of each: "));
  CHECK(has(text, "\n// Stage 1: layers.2 to layers.3.\n"));
  CHECK(has(text, "\n// Neighbours: pipeline rank 0 is rank - 4, pipeline rank 2 is rank + 4.\n"));
  CHECK(has(text,
            "\n// Groups of rank 4:\n//   tp       2 ranks: 4 5\n//   dp       2 ranks: 4 6\n"
            "//   pp       3 ranks: 0 4 8"));
}

TEST_CASE("the ranks of a large group are its first three and its last one") {
  const std::string text = head({.world = 64, .dp_replicate = 32, .pp = 2}, 2, 0);
  CHECK(has(text, "// Ranks 0 to 31 run this text: rank = dp."));
  CHECK(has(text, "\n//   dp       32 ranks: 0 1 2 ... 31\n"));
}

TEST_CASE("a rank alone has no neighbours and no groups") {
  const std::string text = head({.world = 1}, 1, 0);
  CHECK(has(text, "// Rank 0 runs this text. Memory: "));
  CHECK_FALSE(has(text, "Neighbours"));
  CHECK_FALSE(has(text, "Groups"));
}

}  // namespace rank_head_test
