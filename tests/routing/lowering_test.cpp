// SPDX-License-Identifier: Apache-2.0
// Programs whose routers choose within groups or with a bias: they are proven and compute the model, and
// faults in them are refused.
#include <doctest/doctest.h>

#include <rankc/codegen/certificate.hpp>
#include <rankc/codegen/equivalence.hpp>
#include <rankc/codegen/lowered.hpp>
#include <rankc/codegen/prove.hpp>
#include <rankc/codegen/verify.hpp>

#include <string>
#include <utility>

#include "../said.hpp"
#include "check_lowered.hpp"
#include "plans.hpp"

namespace lowering_test {

using namespace rankc::codegen;
using rankc::codegen::access;  // unistd.h has a function of this name
using rankc::test::said, rankc::test::said_in;

namespace {

rankc::plan_data find(const std::string& job, const std::string& layout) {
  return find_plan(routing::plans(), job, layout);
}

/// A correct program of a plan; every change of it must be refused.
struct subject {
  explicit subject(const std::string& family, const std::string& layout)
      : plan(find(family, layout)),
        model(specify(plan)),
        sound(expand_train(lower(plan, dtype::f64, target::host))) {
    REQUIRE(reason(sound) == "");
  }
  /// The reason why a program is refused; empty if it is accepted.
  std::string reason(const program& p) const {
    const verdict proof = prove(p);
    if (!proof.ok) return "proof: " + proof.reasons.front();
    const equivalence same = check_equivalence(p, proof, model);
    return same.holds ? "" : same.reasons.front();
  }
  std::string refused(auto change) const {
    program p = sound;
    change(p);
    return reason(p);
  }
  rankc::plan_data plan;
  specification model;
  program sound;
};

op& nth(program& p, int rank, std::string_view row) {
  for (op& o : p.ranks[static_cast<std::size_t>(rank)].ops)
    if (o.row == row) return o;
  throw std::logic_error("the program has no such op");
}
view& balanced(program& p, int rank) {
  for (view& v : nth(p, rank, "adamw").views)
    if (v.port == "balanced_weight") return v;
  throw std::logic_error("the program moves no bias");
}
/// An op of a row reads at `port` what the row's next op reads.
void read_next(program& p, std::string_view row, std::string_view port) {
  op* found[2]{};
  int n = 0;
  for (op& o : p.ranks[0].ops)
    if (o.row == row && n < 2) found[n++] = &o;
  const auto access_of = [&](op& o) -> access& {
    for (const view& v : o.views)
      if (v.port == port) return o.reads[v.accesses[0]];
    throw std::logic_error("the op has no such port");
  };
  access_of(*found[0]) = access_of(*found[1]);
}

}  // namespace

TEST_CASE(
    "programs of routers by groups or with a bias are proven, are the model, and take what is counted, on "
    "either target") {
  std::vector<rankc::plan_data> plans;
  for (const split_plan& e : routing::plans()) plans.push_back(e.plan);
  CHECK(check_lowered(plans) == lowered_programs_of(56));
}

TEST_CASE("a bias that is moved otherwise than the model's, or trained, is refused") {
  for (const char* layout : {"one", "dp2", "shards", "tp2"}) {
    CAPTURE(layout);
    const subject s("both", layout);
    const auto balance = [&](auto change) {  // without the name of the bias
      said why = said_in(s.refused(change));
      if (!why.arguments.empty()) why.arguments.erase(why.arguments.begin());
      return why;
    };
    CHECK(balance([](program& p) { balanced(p, 0).balances.rate = 0.02; }) ==
          said{7479, {"0.02", "8", "0.001", "8"}});
    CHECK(balance([](program& p) { balanced(p, 0).balances.mean = 12; }) ==
          said{7479, {"0.001", "12", "0.001", "8"}});
    for (const char* trained : {"undecayed_weight", "weight"})
      CHECK(balance([&](program& p) { balanced(p, 0).port = trained; }) == said{7723, {"0.001"}});
  }
}

/// The op assumes two groups of three experts; the model has three groups of two.
auto takes_groups_of_three(std::string_view row) {
  return [row](program& p) {
    for (rank_program& r : p.ranks)
      for (op& o : r.ops)
        for (view& v : o.views)
          if (o.row == row && v.unit == 2) v.unit = 3;
  };
}

TEST_CASE("a choice among groups of another size is refused") {
  const subject s("groups", "one");
  CHECK(said_in(s.refused(takes_groups_of_three("keep_groups"))).id == 7433);
}

TEST_CASE("a choice by another layer's bias, of other groups, or that is counted twice or not, is refused") {
  const subject s("both", "shards");
  CHECK(s.refused([](program& p) { read_next(p, "biased_sigmoid_top_by", "bias"); }) != "");
  CHECK(s.refused([](program& p) { read_next(p, "biased_keep_groups", "bias"); }) != "");
  CHECK(s.refused([](program& p) { nth(p, 0, "biased_keep_groups").number = 1; }) != "");
  CHECK(s.refused(takes_groups_of_three("biased_keep_groups")) != "");
  CHECK(s.refused([](program& p) { nth(p, 0, "sigmoid_scores").row = "softmax_scores"; }) != "");
  CHECK(s.refused([](program& p) { nth(p, 0, "count_choices").views[0].adds ^= true; }) != "");
  CHECK(s.refused([](program& p) { read_next(p, "count_choices", "chosen"); }) != "");
}

TEST_CASE("another rule in the certificate's model, or on its ranks, is refused where it is read") {
  const subject s("bias", "dp2");
  const std::string text = certificate({{s.sound, prove(s.sound)}}, s.model);
  REQUIRE(text.find(",0.001,8]") != text.npos);
  const auto with = [&](std::string_view from, std::string_view to) {
    std::string other = text;
    other.replace(other.find(from), from.size(), to);
    return other;
  };
  CHECK(verify(with(",0.001,8]", ",-0.001,8]")) != "");
  CHECK(verify(with(",0.001,8]", ",0.001]")) != "");
  // The first one is in the model or in a rank's program.
  const certified changed = read_certificate(with(",0.001,8]", ",0.001,7]"));
  CHECK_FALSE(check_equivalence(changed.steps.at(0).program, changed.steps[0].verdict, changed.model).holds);
}

}  // namespace lowering_test
