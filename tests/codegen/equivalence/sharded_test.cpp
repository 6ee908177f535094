// SPDX-License-Identifier: Apache-2.0
// Programs whose ranks shard the weights: lowered programs compute the model, and no all-gather, reduction or
// accumulation may be missing.
#include <doctest/doctest.h>

#include <map>

#include "plans.hpp"
#include "subject.hpp"

namespace sharded_test {

using namespace equivalence_tests;
using rankc::codegen::access;

namespace {

bool is_refused(const program& p, const specification& model) {
  const verdict v = prove(p);
  return !v.ok || !check_equivalence(p, v, model).holds;
}

/// Replace the n-th op of a name by a no-op on all ranks: readers of its results read the values before it.
/// `matters`: some op reads the result, and no earlier op of the name had made the same value there.
program without(program p, const std::string& name, std::size_t n, bool& matters) {
  matters = false;
  for (rank_program& r : p.ranks) {
    struct made {
      int value;
      std::string by;
    };
    std::map<std::size_t, made> held;  // the last write, by its first byte
    std::size_t seen = 0;
    for (std::size_t i = 0; i < r.ops.size(); ++i) {
      op& o = r.ops[i];
      if (o.name != name || seen++ != n) {
        for (const access& w : o.writes) held[w.begin] = {w.value, o.name};
        continue;
      }
      for (const access& w : o.writes)
        for (std::size_t later = i + 1; later < r.ops.size(); ++later)
          for (access& read : r.ops[later].reads) {
            if (read.value != w.value) continue;
            const auto before = held.find(w.begin);
            matters |= before == held.end() || o.row == "add" || before->second.by != name;
            if (before != held.end()) read.value = before->second.value;
          }
      op nothing;
      nothing.name = o.name;
      nothing.stream = o.stream;
      nothing.waits = o.waits;
      o = nothing;
      break;
    }
  }
  return p;
}

}  // namespace

TEST_CASE(
    "sharded weights: programs are accepted, and refused without any one of their collectives and "
    "additions") {
  int removed = 0, needless = 0;
  for (const rankc::plan_data& plan : sharded()) {
    CAPTURE(plan.name);
    REQUIRE(plan.diagnostics.empty());
    const subject s(plan, target::host);
    CHECK(s.reason() == "");
    CHECK(subject(plan, target::host, dtype::f32, true).reason() == "");
    CHECK(subject(plan, target::cuda, dtype::bf16).reason() == "");
    std::map<std::string, std::size_t> times;
    for (const rank_program& r : s.p.ranks) {
      std::map<std::string, std::size_t> here;
      for (const op& o : r.ops)
        if (o.kind == op_kind::collective || o.row == "add")
          times[o.name] = std::max(times[o.name], ++here[o.name]);
    }
    for (const auto& [name, n] : times)
      for (const std::size_t k : {std::size_t{0}, n - 1}) {
        CAPTURE(name);
        CAPTURE(k);
        bool matters = false;
        const program p = without(s.p, name, k, matters);
        // A removed gather of biases does not matter: backward does not read them.
        CHECK((is_refused(p, s.model) || !matters));
        ++(matters ? removed : needless);
      }
  }
  CHECK(removed > 100);
  CHECK(needless < 20);
}

}  // namespace sharded_test
