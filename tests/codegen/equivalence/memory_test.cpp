// SPDX-License-Identifier: Apache-2.0
// Where ops write: too little scratch, results of an update over another parameter's operands, and values in
// two places are refused.
#include <doctest/doctest.h>

#include <rankc/plan/make_plan.hpp>
#include <rankc/rankc.hpp>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "refused.hpp"
#include "small_experts.hpp"

namespace memory_test {

using namespace equivalence_tests;
using rankc::codegen::access;

namespace {

using rankc::cp_attention;
using rankc::parallel_dims;

rankc::plan_data planned(const auto& model, const parallel_dims& dims, int end_of_document = -1) {
  using namespace rankc;
  return make_plan("memory", model, dims, schedules::gpipe{1},
                   training{.seq = 16,
                            .global_batch = 2 * dims.dp_replicate * dims.dp_shard,
                            .precision = f32,
                            .end_of_document = end_of_document},
                   clusters::h200<256>);
}
constexpr rankc::models::llama llama{
    .layers = 1, .hidden = 16, .heads = 4, .kv_heads = 2, .ffn = 24, .vocab = 32, .theta = 10000};
constexpr rankc::models::qwen3_moe routed = [] {
  rankc::models::qwen3_moe model = small_experts(1, 4);
  model.router_losses = {.balance = 0.01, .z = 0.001};
  model.capacity = 1.0;
  model.capacity_group = 16;
  return model;
}();
constexpr parallel_dims alone{.world = 1, .cp = 1}, chunks{.world = 2, .cp = 2},
    ring{.world = 2, .cp = 2, .cp_attention = cp_attention::ring};

const subject& of_llama() {
  static const subject s(planned(llama, alone), target::host);
  return s;
}

/// The op's write without a view; null if all writes have one.
access* scratch_of(op& o) {
  for (std::size_t w = 0; w < o.writes.size(); ++w) {
    bool is_result = false;
    for (const view& v : o.views)
      is_result |= v.written && static_cast<int>(w) >= v.accesses.first &&
                   static_cast<int>(w) < v.accesses.first + v.accesses.count;
    if (!is_result) return &o.writes[w];
  }
  return nullptr;
}

/// For each row of a program, its first op with scratch.
std::vector<std::size_t> scratched(const subject& s) {
  std::vector<std::size_t> all;
  std::set<std::string_view> rows;
  std::vector<op> ops = s.p.ranks[0].ops;
  for (std::size_t i = 0; i < ops.size(); ++i)
    if (ops[i].kind == op_kind::compute && scratch_of(ops[i]) && rows.insert(ops[i].row).second)
      all.push_back(i);
  return all;
}

}  // namespace

TEST_CASE("scratch has as many bytes as the kernel uses") {
  std::set<std::string_view> rows;
  for (const auto& [to, type] : {std::pair(target::host, dtype::f32), std::pair(target::cuda, dtype::bf16)})
    for (const rankc::plan_data& plan :
         {planned(llama, alone), planned(llama, chunks), planned(llama, ring), planned(llama, alone, 3),
          planned(llama, chunks, 3), planned(llama, ring, 3), planned(routed, alone)}) {
      const subject sound(plan, to, type);
      REQUIRE(sound.reason() == "");
      for (const std::size_t index : scratched(sound)) {
        const op& o = sound.p.ranks[0].ops[index];
        CAPTURE(o.name);
        rows.insert(o.row);
        const auto of = [=](subject& s) -> op& { return s.p.ranks[0].ops[index]; };
        subject copy = sound;
        const access area = *scratch_of(of(copy));
        const std::size_t bytes = area.end - area.begin;
        check_refused(sound, said{7275, {std::to_string(bytes - 1), std::to_string(bytes)}},
                      [&](subject& s) { --scratch_of(of(s))->end; });
        check_refused(sound, said{7274, {"0", "1"}}, [&](subject& s) {
          of(s).writes.erase(of(s).writes.begin() + (scratch_of(of(s)) - of(s).writes.data()));
        });
        check_refused(sound, said{7274, {"2", "1"}}, [&](subject& s) {
          of(s).writes.push_back({area.end, area.end + 1, s.new_value(), element_type::bytes});
        });
      }
    }
  CHECK(rows.size() == 14);
}

TEST_CASE("an op whose row needs no scratch has none") {
  check_refused(of_llama(), said{7274, {"1", "0"}}, [](subject& s) {
    s.find(0, "", "rms_norm").at(0)->writes.push_back({0, 4, s.new_value(), element_type::bytes});
  });
}

TEST_CASE("each write of an update is one of its results") {
  check_refused(of_llama(), said{7272, {"0", "4", "0"}}, [](subject& s) {
    s.find(0, "", "adamw").at(0)->writes.push_back({0, 4, s.new_value(), element_type::f32});
  });
  // The new weights are written elsewhere, and again at their address.
  check_refused(of_llama(), 7272, [](subject& s) {
    op& o = *s.find(0, "", "adamw").at(0);
    access home = o.writes[0];
    o.writes[0].begin += s.p.ranks[0].arena_bytes;
    o.writes[0].end += s.p.ranks[0].arena_bytes;
    o.writes.push_back(home);
  });
  check_refused(of_llama(), 7272, [](subject& s) {
    op& o = *s.find(0, "", "adamw").at(0);
    const auto result = std::find_if(o.views.begin(), o.views.end(), [](const view& v) { return v.written; });
    o.views.insert(result, view(*result));
  });
}

namespace {

/// Norms have equal sizes: the update's first norm weight as a result, and the second norm's operand at a
/// port.
struct two_norms {
  access *result, *other;
};
two_norms norms_of(op& o, const char* port) {
  std::vector<const view*> made, given;
  for (const view& v : o.views)
    if (v.shape[0] == 16 && v.port == (v.written ? "weight" : port)) (v.written ? made : given).push_back(&v);
  return {&o.writes[static_cast<std::size_t>(made.at(0)->accesses.first)],
          &o.reads[static_cast<std::size_t>(given.at(1)->accesses.first)]};
}

}  // namespace

TEST_CASE("a result of an update lies over its own operand or over nothing") {
  for (const char* port : {"gradient", "first_moment"})
    check_refused(of_llama(), 7273, [&](subject& s) {
      const auto [result, other] = norms_of(*s.find(0, "", "adamw").at(0), port);
      result->begin = other->begin;
      result->end = other->end;
    });
  check_refused(of_llama(), 7273, [](subject& s) {  // the norm overwrites a gradient
    op& o = *s.find(0, "", "sum_squares").at(0);
    o.writes[0].begin = o.reads[0].begin;
    o.writes[0].end = o.reads[0].begin + 4;
  });
}

TEST_CASE("a value lies in one place of a rank") {
  const auto attention = [](subject& s) -> op& { return *s.find(0, "", "attention").at(0); };
  check_refused(of_llama(), 7271, [&](subject& s) {
    access& q = subject::read_of(attention(s), "q");
    const std::size_t size = q.end - q.begin;
    q.begin += size;
    q.end += size;
  });
  const subject exchanged(planned(llama, {.world = 2, .cp = 2, .ulysses = 2}), target::host);
  REQUIRE(exchanged.reason() == "");
  check_refused(exchanged, 7270, [](subject& s) {
    for (op& o : s.p.ranks[0].ops)
      if (o.does == collective_kind::all_to_all && o.kind == op_kind::collective) {
        o.writes[1].value = o.writes[0].value;
        return;
      }
  });
}

}  // namespace memory_test
