// SPDX-License-Identifier: Apache-2.0
// Gradients, loss and norm: what is refused, and with which sentence.
#include "mutations.hpp"
#include "pipeline_program.hpp"
#include "../../said.hpp"

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
using rankc::test::said;
using rankc::test::said_in;

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
  said proof, checker;
};
refusals judge(const program& p) {
  const verdict v = prove(p);
  const std::string checker = verify(certificate(p, v));
  CHECK_FALSE(v.ok);
  CHECK_FALSE(checker.empty());
  return {v.ok ? said{} : said_in(v.reasons[0]), said_in(checker)};
}

}  // namespace

TEST_CASE("a reduction that is missing on all ranks is refused where the sum is read") {
  program p = sample();
  REQUIRE(prove(p).ok);
  SUBCASE("of a gradient") {
    remove_collectives(p, [](const std::string& name) { return name == "reduce layer 0"; });
    const refusals r = judge(p);
    CHECK(r.proof == said{7083, {"0", "norm", "gradient", "0: layer 0", "\"dp 0 0\""}});
    CHECK(r.checker == said{7226, {"0", "norm", "0: layer 0", "\"dp 0 0\""}});
  }
  SUBCASE("of all gradients over dp") {
    remove_collectives(p, [](const std::string& name) { return name.find("reduce layer") == 0; });
    CHECK(judge(p).proof == said{7083, {"0", "norm", "gradient", "0: layer 0", "\"dp 0 0\""}});
  }
  SUBCASE("of the loss") {
    remove_collectives(p, [](const std::string& name) { return name == "reduce loss"; });
    CHECK(judge(p).proof == said{7083, {"4", "end", "loss", "loss", "\"dp 1 0\""}});
  }
  SUBCASE("of the norm over the shards") {
    remove_collectives(p, [](const std::string& name) { return name == "norm over tp"; });
    CHECK(judge(p).proof == said{7083, {"0", "adamw 0", "norm", "norm", "\"tp 0 0\""}});
  }
  SUBCASE("of the norm over stages") {
    remove_collectives(p, [](const std::string& name) { return name == "norm over pp"; });
    CHECK(judge(p).proof == said{7083, {"0", "adamw 0", "norm", "norm", "\"pp 0 0\""}});
  }
}

TEST_CASE("a reduction is a sum, over a communicator that is left to sum over") {
  program p = sample();
  SUBCASE("largest instead of sum") {
    for (auto& r : p.ranks)
      for (op& o : r.ops)
        if (o.name == "reduce layer 1") o.does = collective_kind::all_reduce_max;
    CHECK(judge(p).proof == said{7087, {"0", "reduce layer 1", "gradient", "0: layer 1", "dp 0 0"}});
  }
  SUBCASE("over tp, where the gradients are shards") {
    for (auto& r : p.ranks)
      for (op& o : r.ops)
        if (o.name == "reduce layer 1")
          o.communicator = find_sum(p, static_cast<int>(&r - p.ranks.data()), "norm").over[1].communicator;
    const refusals r = judge(p);
    CHECK(r.proof == said{7066, {"0", "reduce layer 1", "0B2: layer 0 sum", "tp 0 0"}});
    CHECK(r.checker == said{7185, {"0", "0B2: layer 0 sum", "reduce layer 1"}});
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
    CHECK(r.proof == said{7088, {"4", "reduce loss", "loss", "loss", "dp 1 0"}});
    CHECK(r.checker == said{7230, {"4", "reduce loss", "loss", "dp 1 0"}});
  }
}

TEST_CASE("contributions are all there, once") {
  program p = sample();
  SUBCASE("one overwrites those before it") {
    op& o = find(p, 0, "0B1: layer 0 wgrad");
    REQUIRE(o.writes[0].replaces == 2);
    o.reads.pop_back();
    o.writes[0].replaces = -1;
    CHECK(judge(p).proof == said{7084, {"0", "norm", "gradient", "0: layer 0", "2", "3"}});
  }
  SUBCASE("one more is expected") {
    for (int r : {0, 1, 2, 3}) find_sum(p, r, "0: layer 0").terms = 4;
    const refusals r = judge(p);
    CHECK(r.proof == said{7084, {"0", "norm", "gradient", "0: layer 0", "3", "4"}});
    CHECK(r.checker == said{7227, {"0", "norm", "0: layer 0", "3", "4"}});
  }
  SUBCASE("another op reads a part of the sum") {
    op& o = find(p, 0, "0B1: layer 0 dgrad");
    for (const access& a : find(p, 0, "0B1: layer 0 wgrad").reads)
      if (a.begin == find_sum(p, 0, "0: layer 0").at.begin) o.reads.push_back(a);
    CHECK(judge(p).proof == said{7083, {"0", "0B1: layer 0 dgrad", "gradient", "0: layer 0", "\"dp 0 0\""}});
  }
  SUBCASE("a gradient is left out of the norm") {
    op& o = find(p, 0, "norm");
    o.reads.pop_back();
    CHECK(judge(p).proof == said{7084, {"0", "adamw 0", "norm", "norm", "1", "2"}});
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
    CHECK(judge(p).proof == said{7077, {"0", "adamw 0", "gradient", "0: layer 0"}});
  }
  SUBCASE("without the norm") {
    drop(find_sum(p, 0, "norm").at);
    renumber();
    CHECK(judge(p).proof == said{7078, {"0", "adamw 0", "gradient", "0: layer 0"}});
  }
  SUBCASE("with the gradient of another layer") {
    for (access& a : o.reads)
      if (a.begin == find_sum(p, 0, "0: layer 0").at.begin)
        for (const access& other : find(p, 0, "adamw 1").reads)
          if (other.begin == find_sum(p, 0, "0: layer 1").at.begin) a = other;
    CHECK(judge(p).proof == said{7077, {"0", "adamw 0", "gradient", "0: layer 0"}});
  }
  SUBCASE("not at all") {
    const auto weight = o.writes[0].value, before = o.reads[0].value;
    const auto moment = o.writes[1].value, moment_before = o.reads[1].value;
    for (access& a : p.ranks[0].ops.back().reads) {
      if (a.value == weight) a.value = before;
      if (a.value == moment) a.value = moment_before;
    }
    o.writes.clear();
    CHECK(judge(p).proof == said{7075, {"0", "gradient", "0: layer 0", "0", "192"}});
  }
  SUBCASE("its result is not kept") {
    p.ranks[0].ops.back().reads.erase(p.ranks[0].ops.back().reads.begin());
    CHECK(judge(p).proof == said{7081, {"0", "end", "gradient", "0: layer 0", "0", "192"}});
  }
}

TEST_CASE("the facts about sums fit together") {
  program p = sample();
  const auto change = [&](const char* name, auto to) {
    for (int r = 0; r < 8; ++r)
      for (sum& s : p.ranks[r].sums)
        if (s.name == name) to(s, r);
  };
  said expected;
  SUBCASE("a letter on one rank") {
    find_sum(p, 0, "0: layer 0").over[0].as = placement::replicated;
    expected = {7052, {"0", "gradient", "0: layer 0", "R", "dp 0 0", "2"}};
  }
  SUBCASE("a communicator left out on all ranks") {
    change("0: layer 0", [](sum& s, int) { s.over.erase(s.over.begin()); });
    expected = {7053, {"2", "0: layer 0", "0"}};
  }
  SUBCASE("a communicator that is none") {
    find_sum(p, 0, "norm").over[0].communicator = 1000;
    expected = {7049, {"0", "norm", "norm", "1000", "20"}};
  }
  SUBCASE("a communicator twice") {
    change("norm", [](sum& s, int) { s.over.push_back(s.over[0]); });
    expected = {7050, {"0", "norm", "norm", "dp 0 0"}};
  }
  SUBCASE("a name twice") {
    p.ranks[0].sums[1].name = p.ranks[0].sums[0].name;
    expected = {7045, {"0", "0: layer 0"}};
  }
  SUBCASE("one place for two") {
    p.ranks[0].sums[1].at = p.ranks[0].sums[0].at;
    expected = {7048, {"0", "192", "384", "3392"}};
  }
  SUBCASE("a place outside") {
    p.ranks[0].sums[0].at.end = 1 << 20;
    expected = {7048, {"0", "192", "1048576", "3392"}};
  }
  SUBCASE("a part of the place") {
    change("loss", [](sum& s, int) { s.at.end -= 8; });
    expected = {7076, {"4", "1F0: loss", "loss", "loss", "2880", "2936", "2880", "2944"}};
  }
  SUBCASE("a gradient that nobody counts") {
    change("0: layer 0", [](sum& s, int) { s.counted = false; });
    expected = {7054, {"0", "0: layer 0", "0"}};
  }
  SUBCASE("a norm of fewer") {
    find_sum(p, 0, "norm").terms = 1;
    expected = {7055, {"0", "1", "2"}};
  }
  SUBCASE("two norms") {
    find_sum(p, 4, "loss").kind = sum_kind::norm;
    expected = {7047, {"4", "2"}};
  }
  SUBCASE("a loss that updates") {
    find_sum(p, 4, "loss").updates = {{0, 8}};
    expected = {7046, {"4", "loss", "loss", "loss"}};
  }
  const verdict v = prove(p);
  REQUIRE_FALSE(v.ok);
  const bool is_said = std::any_of(v.reasons.begin(), v.reasons.end(),
                                   [&](const std::string& r) { return said_in(r) == expected; });
  CHECK_MESSAGE(is_said, v.reasons[0]);
  CHECK_FALSE(verify(certificate(p, v)).empty());
}

TEST_CASE("what an op writes meets what it reads only where it may, byte for byte") {
  program p = sample();
  op& o = find(p, 0, "0F0: layer 0");
  REQUIRE(o.writes.size() == 1);
  REQUIRE(o.writes[0].replaces == -1);
  said by_proof, by_checker;
  SUBCASE("over its input") {
    by_proof = {7021, {"0", "0F0: layer 0", "1152", "1280", "1152", "1280"}};
    by_checker = {7169, {"0", "0F0: layer 0", "1152", "1280", "1152", "1280"}};
    o.writes[0].begin = o.reads[0].begin;
    o.writes[0].end = o.reads[0].end;
  }
  SUBCASE("over a part of its input") {
    by_proof = {7021, {"0", "0F0: layer 0", "1279", "1281", "1152", "1280"}};
    by_checker = {7169, {"0", "0F0: layer 0", "1279", "1281", "1152", "1280"}};
    o.writes[0].begin = o.reads[0].end - 1;
    o.writes[0].end = o.reads[0].end + 1;
  }
  SUBCASE("over a part of what it may replace") {
    by_proof = {7020, {"0", "0F0: layer 0", "1152", "1279", "0", "1152", "1280"}};
    by_checker = {7169, {"0", "0F0: layer 0", "1152", "1279", "1152", "1280"}};
    o.writes[0].begin = o.reads[0].begin;
    o.writes[0].end = o.reads[0].end - 1;
    o.writes[0].replaces = 0;
  }
  SUBCASE("over a read that there is not") {
    by_proof = {7019, {"0", "0F0: layer 0", "3008", "3136", "7", "2"}};
    by_checker = {7168, {"0", "0F0: layer 0", "3008", "3136", "7", "2"}};
    o.writes[0].replaces = 7;
  }
  SUBCASE("over another read than it says") {
    by_proof = {7020, {"0", "0F0: layer 0", "1152", "1280", "1", "0", "192"}};
    by_checker = {7169, {"0", "0F0: layer 0", "1152", "1280", "1152", "1280"}};
    o.writes[0].begin = o.reads[0].begin;
    o.writes[0].end = o.reads[0].end;
    o.writes[0].replaces = 1;
  }
  const refusals r = judge(p);
  CHECK(r.proof == by_proof);
  CHECK(r.checker == by_checker);
}

}  // namespace sums_test
