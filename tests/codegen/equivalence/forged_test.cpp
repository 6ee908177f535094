// SPDX-License-Identifier: Apache-2.0
// Forged certificates: the file is well-formed, but a program with its fingerprint would not compute the
// model. `rankc-verify` refuses each.
#include <doctest/doctest.h>

#include <rankc/codegen/certificate.hpp>
#include <rankc/codegen/proven_calls.hpp>
#include <rankc/plan/make_plan.hpp>
#include <rankc/rankc.hpp>

#include <equivalence/collectives.hpp>
#include <nlohmann/json.hpp>
#include <optimizer/plans.hpp>
#include <verify/report.hpp>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <functional>
#include <regex>
#include <sstream>
#include <string>

#include "../../example_plans.hpp"
#include "../../scratch_folder.hpp"
#include "plans.hpp"
#include "refused.hpp"

namespace forged_test {

using namespace equivalence_tests;
using nlohmann::json;

namespace {

/// The certificate of a plan for the host, with both steps.
json certificate_of(const rankc::plan_data& plan) {
  const subject train(plan, target::host), evaluate(plan, target::host, dtype::f32, true);
  return json::parse(certificate({{train.p, train.order}, {evaluate.p, evaluate.order}}, train.model));
}
const json& one_rank() {
  using namespace rankc;
  static const json made = certificate_of(make_plan(
      "forged",
      models::llama{
          .layers = 1, .hidden = 16, .heads = 4, .kv_heads = 2, .ffn = 24, .vocab = 32, .theta = 10000},
      parallel_dims{.world = 1}, schedules::gpipe{1},
      training{.seq = 16, .global_batch = 2, .precision = f32}, clusters::cpu));
  return made;
}
const json& shards() {
  static const json made = certificate_of(sharded_gpt());
  return made;
}

/// The id of the innermost sentence that `rankc-verify` answers; 0: it accepts the file.
int refusal(const json& forged) {
  const rankc::scratch_folder folder;
  const std::filesystem::path file = folder.path / "c.json";
  std::ofstream(file) << forged.dump();
  std::ostringstream out, errors;
  if (report(file, 1, out, errors) == 0) return 0;
  static const std::regex id("RC([0-9]+): ");
  const std::string text = errors.str();
  int last = -1;
  for (std::sregex_iterator m(text.begin(), text.end(), id), end; m != end; ++m) last = std::stoi((*m)[1]);
  return last;
}

using change = std::function<void(json& op)>;
/// Apply a change to each op of a row, or to each collective of that name.
json changed(json of, const std::string& name, const change& edit) {
  int found = 0;
  for (json& step : of["steps"])
    for (json& program : step["programs"])
      for (json& op : program["ops"])
        if (op.value("row", "") == name || op.value("does", "") == name) {
          edit(op);
          ++found;
        }
  REQUIRE(found > 0);
  return of;
}

json& training(json& of) { return of["steps"][0]; }

constexpr int begin = 0, end = 1, value = 2, replaces = 4;  // indices in an access
constexpr int offset = 4, shape = 5, stride = 7;            // indices in a view
constexpr std::uint64_t before = -256;

/// Move a value of a rank to another address.
void place_at(rank_program& r, int what, std::size_t begin) {
  for (op& o : r.ops)
    for (auto* accesses : {&o.reads, &o.writes})
      for (rankc::codegen::access& a : *accesses)
        if (a.value == what) {
          a.end = begin + (a.end - a.begin);
          a.begin = begin;
          a.replaces = -1;
        }
}

/// Grow an arena. Returns: where the new bytes begin.
std::uint64_t grow(json& program, std::uint64_t bytes) {
  const std::uint64_t at = (program["arena_bytes"].get<std::uint64_t>() + 255) / 256 * 256;
  program["arena_bytes"] = at + bytes;
  return at;
}

}  // namespace

TEST_CASE("certificates to forge are accepted as they are") {
  CHECK(refusal(one_rank()) == 0);
  CHECK(refusal(shards()) == 0);
}

TEST_CASE("forged: sizes and places whose products or sums overflow") {
  constexpr std::uint64_t words = (std::uint64_t{1} << 60) + 32;  // 2^60 rows of 16 elements are 0 bytes
  CHECK(refusal(changed(one_rank(), "embedding", [&](json& op) { op["views"][2][shape][0] = words; })) ==
        7143);
  CHECK(refusal(changed(one_rank(), "linear", [](json& op) {
          for (json& v : op["views"]) v[shape] = {1ULL << 30, 1ULL << 30};
        })) == 7110);
  CHECK(refusal(changed(one_rank(), "linear", [](json& op) { op["views"][0][stride] = 1ULL << 36; })) ==
        7565);
  CHECK(refusal(changed(one_rank(), "attention", [](json& op) { op["rows"] = 1 << 17; })) == 7453);
  CHECK(refusal(changed(one_rank(), "attention", [](json& op) { op["seq"] = (1ULL << 36) + 1; })) == 7109);
  CHECK(refusal(changed(one_rank(), "attention", [](json& op) { op["rows"] = op["seq"] = 1ULL << 30; })) ==
        7110);
  CHECK(refusal(changed(one_rank(), "linear", [](json& op) { op["views"][0][offset] = before; })) == 7143);
  subject s(small_llama(), target::host);
  check_refused(s, 7552, [](subject& f) {
    for (op* o : f.find(0, "0F0", "linear")) o->views[0].offset = before;
  });
}

TEST_CASE("forged: operands of a call that its op does not have, or has in another order") {
  for (const char* collective : {"all_gather", "reduce_scatter"}) {
    CHECK(refusal(changed(shards(), collective,
                          [](json& op) { std::swap(op["operands"][0], op["operands"][1]); })) == 7293);
    CHECK(refusal(changed(shards(), collective,
                          [](json& op) { op["operands"].push_back(op["operands"][0]); })) == 7293);
  }
  const auto scratch = [](json& op) -> json& { return op["writes"].back()[begin]; };
  // The scratch is given the address of the queries.
  CHECK(refusal(changed(one_rank(), "attention", [&](json& op) {
          std::replace(op["operands"].begin(), op["operands"].end(), scratch(op), op["reads"][0][begin]);
        })) == 7292);
  CHECK(refusal(changed(one_rank(), "linear",
                        [](json& op) { op["operands"].push_back(op["operands"][0]); })) == 7263);
}

TEST_CASE("forged: an op that runs in place leaves its result elsewhere") {
  json reduced = shards();
  for (json& step : reduced["steps"])
    for (json& program : step["programs"]) {
      json *loss = nullptr, *last = &program["ops"].back();
      for (std::size_t i = 0; i < (*last)["holds"].size(); ++i)
        if ((*last)["holds"][i][0] == "loss") loss = &(*last)["reads"][i];
      REQUIRE(loss);
      const std::uint64_t at = grow(program, 4);
      for (json& op : program["ops"])
        for (json& w : op["writes"])
          if (w[value] == (*loss)[value]) {
            REQUIRE(op["does"] == "all_reduce");
            w[begin] = at;
            w[end] = at + 4;
            w[replaces] = -1;
          }
      (*loss)[begin] = at;
      (*loss)[end] = at + 4;
    }
  CHECK(refusal(reduced) == 7264);
}

namespace {

/// The id of the sentence that refuses the calls of a changed program; 0: they are hashed.
int refused_calls(const program& p) {
  try {
    hash_calls(p);
    return 0;
  } catch (const rankc::runtime::failure& why) {
    return rankc::test::said_in(why.what()).id;
  }
}
int refused_calls(const std::string& row, const std::function<void(op&)>& edit) {
  subject s(small_llama(), target::host);
  edit(*s.find(0, "", row).at(0));
  return refused_calls(s.p);
}

/// A plan of the family "optimizer", on one rank.
rankc::plan_data optimizer_plan(const std::string& optimizer) {
  for (const optimizing::variant& v : optimizing::plans())
    if (v.optimizer == optimizer && v.layout == "one") return v.plan;
  throw std::logic_error("no plan has the optimizer " + optimizer);
}

}  // namespace

TEST_CASE("forged: the call of an optimizer has other elements than its op") {
  CHECK(refused_calls("adamw", [](op&) {}) == 0);
  CHECK(refused_calls("adamw", [](op& o) {  // a weight is written outside its region
          for (const view& v : o.views)
            if (v.written && v.port == "weight")
              o.writes[static_cast<std::size_t>(v.accesses.first)].begin += 64;
        }) == 7295);
  for (const char* row : {"adamw", "sum_squares"})
    CHECK(refused_calls(row, [](op& o) {  // the hash uses the rows of a tensor with two dims
            for (view& v : o.views)
              if (v.port == "gradient") v.shape = {{1, v.shape[0]}, 2};
          }) == 7265);
  CHECK(refused_calls("sum_squares", [](op& o) { o.operands[1] -= 4; }) == 7266);
}

TEST_CASE("forged: an optimizer is called with a region in which none of its tensors lies") {
  const auto add_region = [](op& o) { o.operands.insert(o.operands.end() - 1, o.operands[0]); };
  const auto drop_moments = [](op& o) {
    std::erase_if(o.views, [](const view& v) { return v.port == "second_moment"; });
  };
  CHECK(refused_calls("adamw", drop_moments) == 7796);
  CHECK(refused_calls("adamw", add_region) == 7294);
  for (const char* optimizer : {"lion", "sgd_plain"}) {
    subject s(optimizer_plan(optimizer), target::host);
    CHECK(s.reason() == "");
    CHECK(hash_calls(s.p).size() == 1);
    add_region(*s.find(0, "optimizer").at(0));
    CHECK(refused_calls(s.p) == 7796);
  }
}

TEST_CASE("forged: bytes that the kernel of an optimizer takes behind a tensor") {
  const subject sound(sharded_gpt(), target::host);
  check_refused(sound, 7277, [](subject& s) {  // the loss is right after a gradient
    for (rank_program& r : s.p.ranks) {
      std::size_t behind = 0;
      for (const op& o : r.ops)
        for (const view& v : o.views)
          if (o.row == "adamw" && !v.written && v.port == "gradient" && v.shape[0] % 16 != 0)
            behind = first_access(o, v).end;
      REQUIRE(behind > 0);
      const op& last = r.ops.back();
      for (std::size_t i = 0; i < last.holds.size(); ++i)
        if (last.holds[i].kind == holding_kind::loss) place_at(r, last.reads[i].value, behind);
    }
  });
}

TEST_CASE("forged: tensors of two types are added up in one call") {
  const subject sound(examples::plan("gpt_dp2_tp2_pp2"), target::host);
  check_refused(sound, 7599, [](subject& s) {
    for (rank_program& r : s.p.ranks)
      for (op& o : r.ops)
        if (o.kind == op_kind::collective && o.does == collective_kind::all_reduce && o.reads.size() > 1)
          o.reads[1].type = o.writes[1].type = element_type::f64;
  });
}

TEST_CASE("forged: names, kernels and numbers of values") {
  json one_name = shards();
  for (json& step : one_name["steps"])
    for (json& c : step["communicators"]) c["name"] = "shard at pp 0";
  CHECK(refusal(one_name) == 7267);
  json kernels = one_rank();
  training(kernels)["kernels"] = "cuda";
  CHECK(refusal(kernels) == 7754);
  json numbers = one_rank();  // a table indexed by number would take 16 GB
  training(numbers)["ranks"][0]["values"][0][0] = 2'147'000'000;
  CHECK(refusal(numbers) == 7125);
}

TEST_CASE("forged: more sequences than the check takes one after the other") {
  const algebra::content given{std::size_t{1} << 24, element_type::f32, {}};
  const tensor_shape own{{1 << 19, 8}, 2}, all{{1 << 20, 4}, 2};
  try {
    algebra::exchange({&given, &given}, {own, all, 4});
    FAIL("it is accepted");
  } catch (const algebra::refusal& why) {
    CHECK(rankc::test::said_in(why.what()) == said{7539, {"262144", "65536"}});
  }
}

}  // namespace forged_test
