// SPDX-License-Identifier: Apache-2.0
// A certificate with a model names the sums of that model: what names none is followed nowhere.
#include "pipeline_program.hpp"
#include "../../said.hpp"

#include <rankc/codegen/certificate.hpp>
#include <rankc/codegen/prove.hpp>
#include <rankc/codegen/verify.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

namespace demanded_test {

namespace {

using namespace rankc::codegen;
using rankc::codegen::access;  // and not that of unistd.h
using rankc::test::said;
using rankc::test::said_in;

/// A program whose ranks hold the weights that their sums of gradients update, and a model with these.
struct held {
  program p = testing::pipeline_program({.pp = 2, .tp = 2, .microbatches = 3});
  verdict proof = prove(p);
  specification model;

  held() {
    for (communicator& c : p.communicators) c.one_layout = c.name.starts_with("tp");
    specification::layer l{.name = "all", .values = {}, .ops = {}, .side_losses = {}, .parameters = {}};
    specification::use u{0, "all", {}};
    for (rank_program& r : p.ranks)
      for (const sum& s : r.sums) {
        if (s.kind != sum_kind::gradient) continue;
        hold(r, s);
        if (std::find(u.parameters.begin(), u.parameters.end(), s.name) != u.parameters.end()) continue;
        u.parameters.push_back(s.name);
        l.parameters.push_back({s.name, 0});
      }
    l.values = {{{1}}};
    model.layers = {l};
    model.uses = {u};
  }

  /// The first bytes that a sum updates are said to be a weight.
  static void hold(rank_program& r, const sum& s) {
    op& begin = r.ops.front();
    begin.holds.resize(begin.writes.size(), {.kind = holding_kind::padding});
    for (std::size_t i = 0; i < begin.writes.size(); ++i)
      if (begin.writes[i].begin == s.updates.at(0).begin && begin.writes[i].end == s.updates.at(0).end)
        begin.holds[i] = {.kind = holding_kind::weight, .name = s.name};
  }
};

said why(const held& x) { return said_in(verify(certificate({{x.p, x.proof}}, x.model))); }

void remove(rank_program& r, sum_kind kind) {
  std::erase_if(r.sums, [&](const sum& s) { return s.kind == kind; });
}

}  // namespace

TEST_CASE("a model's sums are named: of each trained gradient, the loss and the norm") {
  const held sound;
  REQUIRE_MESSAGE(sound.proof.ok, sound.proof.reasons.at(0));
  REQUIRE(why(sound) == said{});
  const std::string first = sound.model.uses[0].parameters[0];
  held x = sound;
  for (rank_program& r : x.p.ranks) r.sums.clear();
  CHECK(why(x) == said{7284, {"train"}});
  x.model = {};
  CHECK(why(x) == said{});  // of no model no sum is known
  x = sound;
  for (rank_program& r : x.p.ranks) remove(r, sum_kind::loss);
  CHECK(why(x) == said{7284, {"train"}});
  x = sound;
  for (rank_program& r : x.p.ranks) remove(r, sum_kind::norm);
  CHECK(why(x) == said{7283, {"0", first}});
  x = sound;
  x.model.uses[0].parameters.push_back("more");
  x.model.layers[0].parameters.push_back({"more", 0});
  CHECK(why(x) == said{7285, {"more", "gradient"}});
  x.model.layers[0].parameters.back().trainable = false;
  CHECK(why(x) == said{});
  x = sound;
  x.model.layers[0].parameters[0].balances = {0.001, 4};
  CHECK(why(x) == said{7285, {first, "choices"}});
}

TEST_CASE("each rank names the sum of every trained weight that it holds, and updates that weight by it") {
  const held sound;
  const std::string own = sound.p.ranks[0].sums.front().name, other = sound.p.ranks[3].sums.front().name;
  REQUIRE(own != other);
  // The last tensor that a rank begins with is its tokens, which nothing updates.
  held x = sound;
  x.p.ranks[0].ops.front().holds.back() = {.kind = holding_kind::weight, .name = other};
  CHECK(why(x) == said{7281, {"0", other, "gradient"}});
  x.p.ranks[0].ops.front().holds.back().name = own;
  const access& bytes = x.p.ranks[0].ops.front().writes.back();
  CHECK(why(x) == said{7282, {"0", own, std::to_string(bytes.begin), std::to_string(bytes.end)}});
}

}  // namespace demanded_test
