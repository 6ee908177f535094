// SPDX-License-Identifier: Apache-2.0
// Gradients, loss and norm: what is refused, and in which words.
#include "mutations.hpp"
#include "pipeline_program.hpp"

#include <rankc/codegen/certificate.hpp>
#include <rankc/codegen/prove.hpp>
#include <rankc/codegen/verify.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

namespace sums_test {

namespace {

using namespace rankc::codegen;
using rankc::codegen::testing::pipeline_program;
using rankc::codegen::testing::remove_collectives;

program sample() { return pipeline_program({.pp = 2, .tp = 2, .dp = 2, .microbatches = 3}); }

op& find(program& p, int rank, const std::string& name) {
  for (op& o : p.ranks[rank].ops)
    if (o.name == name) return o;
  FAIL("no op is named " << name);
  return p.ranks[0].ops[0];
}
sum& find_sum(program& p, int rank, const std::string& name) {
  for (sum& s : p.ranks[rank].sums)
    if (s.name == name) return s;
  FAIL("no sum is named " << name);
  return p.ranks[0].sums[0];
}

/// What the proof says first, and what the checker says: both refuse.
struct refusals {
  std::string proof, checker;
};
refusals judge(const program& p) {
  const verdict v = prove(p);
  const std::string checker = verify(certificate(p, v));
  CHECK_FALSE(v.ok);
  CHECK_FALSE(checker.empty());
  return {v.ok ? "" : v.reasons[0], checker};
}

}  // namespace

TEST_CASE("a reduction that is missing on all ranks is refused where the sum is read") {
  program p = sample();
  REQUIRE(prove(p).ok);
  SUBCASE("of a gradient") {
    remove_collectives(p, [](const std::string& name) { return name == "reduce layer 0"; });
    const refusals r = judge(p);
    CHECK(r.proof ==
          "rank 0: \"norm\" reads the gradient of \"0: layer 0\", which is not yet summed over \"dp 0 0\"");
    CHECK(r.checker == "rank 0: \"norm\" reads \"0: layer 0\", which is still to be summed over \"dp 0 0\"");
  }
  SUBCASE("of all gradients over dp") {
    remove_collectives(p, [](const std::string& name) { return name.find("reduce layer") == 0; });
    const std::string proof = judge(p).proof;
    CHECK_MESSAGE(proof.find("which is not yet summed over \"dp 0 0\"") != std::string::npos, proof);
  }
  SUBCASE("of the loss") {
    remove_collectives(p, [](const std::string& name) { return name == "reduce loss"; });
    CHECK(judge(p).proof == "rank 4: \"end\" reads \"loss\", which is not yet summed over \"dp 1 0\"");
  }
  SUBCASE("of the norm over the shards") {
    remove_collectives(p, [](const std::string& name) { return name == "norm over tp"; });
    CHECK(judge(p).proof.find("reads \"norm\", which is not yet summed over \"tp 0 0\"") !=
          std::string::npos);
  }
  SUBCASE("of the norm over stages") {
    remove_collectives(p, [](const std::string& name) { return name == "norm over pp"; });
    CHECK(judge(p).proof.find("reads \"norm\", which is not yet summed over \"pp 0 0\"") !=
          std::string::npos);
  }
}

TEST_CASE("a reduction is a sum, over a communicator that is left to sum over") {
  program p = sample();
  SUBCASE("largest instead of sum") {
    for (auto& r : p.ranks)
      for (op& o : r.ops)
        if (o.name == "reduce layer 1") o.does = collective_kind::all_reduce_max;
    CHECK(judge(p).proof.find("is no sum of it over \"dp") != std::string::npos);
  }
  SUBCASE("over tp, where the gradients are shards") {
    for (auto& r : p.ranks)
      for (op& o : r.ops)
        if (o.name == "reduce layer 1")
          o.communicator = find_sum(p, static_cast<int>(&r - p.ranks.data()), "norm").over[1].communicator;
    CHECK_FALSE(prove(p).ok);
    CHECK_FALSE(verify(certificate(p, prove(p))).empty());
  }
  SUBCASE("twice") {
    for (auto& r : p.ranks)
      for (auto o = r.ops.begin(); o != r.ops.end(); ++o) {
        if (o->name != "reduce loss") continue;
        op again = *o;
        const int k = static_cast<int>(o - r.ops.begin());
        again.waits.clear();
        again.reads[0].value = o->writes[0].value;
        again.writes[0].value = 1'000'000 + static_cast<int>(&r - p.ranks.data());
        r.ops.back().reads.back().value = again.writes[0].value;
        for (op& later : r.ops)
          for (int& w : later.waits) w += w >= k;
        r.ops.insert(o + 1, again);
        break;
      }
    const refusals r = judge(p);
    CHECK(r.proof ==
          "rank 4: \"reduce loss\" sums \"loss\" over \"dp 1 0\", over which it is no part of a sum");
    CHECK(r.checker.find("sums \"loss\" over \"dp 1 0\", where nothing is to be summed") !=
          std::string::npos);
  }
}

TEST_CASE("contributions are all there, once") {
  program p = sample();
  SUBCASE("one overwrites those before it") {
    op& o = find(p, 0, "0B1: layer 0 wgrad");
    REQUIRE(o.writes[0].replaces == 2);
    o.reads.pop_back();
    o.writes[0].replaces = -1;
    CHECK(judge(p).proof ==
          "rank 0: \"norm\" reads the gradient of \"0: layer 0\" with 2 of its 3 contributions");
  }
  SUBCASE("one more is expected") {
    for (int r : {0, 1, 2, 3}) find_sum(p, r, "0: layer 0").terms = 4;
    const refusals r = judge(p);
    CHECK(r.proof == "rank 0: \"norm\" reads the gradient of \"0: layer 0\" with 3 of its 4 contributions");
    CHECK(r.checker == "rank 0: \"norm\" reads \"0: layer 0\" with 3 contributions of 4");
  }
  SUBCASE("another op reads a part of the sum") {
    op& o = find(p, 0, "0B1: layer 0 dgrad");
    for (const access& a : find(p, 0, "0B1: layer 0 wgrad").reads)
      if (a.begin == find_sum(p, 0, "0: layer 0").at.begin) o.reads.push_back(a);
    CHECK(judge(p).proof.find("\"0B1: layer 0 dgrad\" reads the gradient of \"0: layer 0\", which is not yet "
                              "summed over \"dp 0 0\"") != std::string::npos);
  }
  SUBCASE("a gradient is left out of the norm") {
    op& o = find(p, 0, "norm");
    o.reads.pop_back();
    CHECK(judge(p).proof.find("reads \"norm\" with 1 of its 2 contributions") != std::string::npos);
  }
}

TEST_CASE("an update knows its gradient and the norm, and is made once") {
  program p = sample();
  op& o = find(p, 0, "adamw 0");
  const auto drop = [&](byte_range at) {
    std::erase_if(o.reads, [&](const access& a) { return a.begin == at.begin; });
  };
  const auto renumber = [&] {
    for (access& w : o.writes)
      for (std::size_t r = 0; r < o.reads.size(); ++r)
        if (o.reads[r].begin == w.begin) w.replaces = static_cast<int>(r);
  };
  SUBCASE("without the gradient") {
    drop(find_sum(p, 0, "0: layer 0").at);
    renumber();
    CHECK(judge(p).proof ==
          "rank 0: \"adamw 0\" updates what belongs to the gradient of \"0: layer 0\" without reading it");
  }
  SUBCASE("without the norm") {
    drop(find_sum(p, 0, "norm").at);
    renumber();
    CHECK(judge(p).proof ==
          "rank 0: \"adamw 0\" updates what belongs to the gradient of \"0: layer 0\" without reading the "
          "norm");
  }
  SUBCASE("with the gradient of another layer") {
    for (access& a : o.reads)
      if (a.begin == find_sum(p, 0, "0: layer 0").at.begin)
        for (const access& other : find(p, 0, "adamw 1").reads)
          if (other.begin == find_sum(p, 0, "0: layer 1").at.begin) a = other;
    CHECK(judge(p).proof.find("without reading it") != std::string::npos);
  }
  SUBCASE("not at all") {
    const auto weight = o.writes[0].value, before = o.reads[0].value;
    const auto moment = o.writes[1].value, moment_before = o.reads[1].value;
    for (access& a : p.ranks[0].ops.back().reads) {
      if (a.value == weight) a.value = before;
      if (a.value == moment) a.value = moment_before;
    }
    o.writes.clear();
    CHECK(judge(p).proof.find("are not updated in the step") != std::string::npos);
  }
  SUBCASE("its result is not kept") {
    p.ranks[0].ops.back().reads.erase(p.ranks[0].ops.back().reads.begin());
    CHECK(judge(p).proof.find("\"end\" does not keep bytes") != std::string::npos);
  }
}

TEST_CASE("the facts about sums fit together") {
  program p = sample();
  const auto change = [&](const char* name, auto to) {
    for (int r = 0; r < 8; ++r)
      for (sum& s : p.ranks[r].sums)
        if (s.name == name) to(s, r);
  };
  std::string expected;
  SUBCASE("a letter on one rank") {
    find_sum(p, 0, "0: layer 0").over[0].as = placement::replicated;
    expected = "\"0: layer 0\" is R over \"dp 0 0\", and something else to rank 2";
  }
  SUBCASE("a communicator left out on all ranks") {
    change("0: layer 0", [](sum& s, int) { s.over.erase(s.over.begin()); });
    expected = "\"0: layer 0\" is also on rank 0, and no communicator relates the two";
  }
  SUBCASE("a communicator that is none") {
    find_sum(p, 0, "norm").over[0].communicator = 1000;
    expected = "is summed over communicator 1000 of";
  }
  SUBCASE("a communicator twice") {
    change("norm", [](sum& s, int) { s.over.push_back(s.over[0]); });
    expected = "twice, or by a rank that is not in it";
  }
  SUBCASE("a name twice") {
    p.ranks[0].sums[1].name = p.ranks[0].sums[0].name;
    expected = "two sums are named";
  }
  SUBCASE("one place for two") {
    p.ranks[0].sums[1].at = p.ranks[0].sums[0].at;
    expected = "cannot be the place of a sum";
  }
  SUBCASE("a place outside") {
    p.ranks[0].sums[0].at.end = 1 << 20;
    expected = "cannot be the place of a sum";
  }
  SUBCASE("a part of the place") {
    change("loss", [](sum& s, int) { s.at.end -= 8; });
    expected = ", of which \"loss\" has ";
  }
  SUBCASE("a gradient that nobody counts") {
    change("0: layer 0", [](sum& s, int) { s.counted = false; });
    expected = "\"0: layer 0\" is counted 0 times in the norm";
  }
  SUBCASE("a norm of fewer") {
    find_sum(p, 0, "norm").terms = 1;
    expected = "the norm counts 1 gradients of 2";
  }
  SUBCASE("two norms") {
    find_sum(p, 4, "loss").kind = sum_kind::norm;
    expected = "has 2 norms";
  }
  SUBCASE("a loss that updates") {
    find_sum(p, 4, "loss").updates = {{0, 8}};
    expected = "\"loss\" is no gradient and updates nothing";
  }
  const verdict v = prove(p);
  REQUIRE_FALSE(v.ok);
  const bool said = std::any_of(v.reasons.begin(), v.reasons.end(),
                                [&](const std::string& r) { return r.find(expected) != r.npos; });
  CHECK_MESSAGE(said, v.reasons[0]);
  CHECK_FALSE(verify(certificate(p, v)).empty());
}

TEST_CASE("what an op writes meets what it reads only where it may, byte for byte") {
  program p = sample();
  op& o = find(p, 0, "0F0: layer 0");
  REQUIRE(o.writes.size() == 1);
  REQUIRE(o.writes[0].replaces == -1);
  SUBCASE("over its input") {
    o.writes[0].begin = o.reads[0].begin;
    o.writes[0].end = o.reads[0].end;
  }
  SUBCASE("over a part of its input") {
    o.writes[0].begin = o.reads[0].end - 1;
    o.writes[0].end = o.reads[0].end + 1;
  }
  SUBCASE("over a part of what it may replace") {
    o.writes[0].begin = o.reads[0].begin;
    o.writes[0].end = o.reads[0].end - 1;
    o.writes[0].replaces = 0;
  }
  SUBCASE("over a read that there is not") { o.writes[0].replaces = 7; }
  SUBCASE("over another read than it says") {
    o.writes[0].begin = o.reads[0].begin;
    o.writes[0].end = o.reads[0].end;
    o.writes[0].replaces = 1;
  }
  const refusals r = judge(p);
  CHECK_MESSAGE((r.proof.find("over") != std::string::npos), r.proof);
  CHECK_MESSAGE((r.checker.find("over") != std::string::npos), r.checker);
}

}  // namespace sums_test
