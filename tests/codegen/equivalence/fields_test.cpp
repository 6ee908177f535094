// SPDX-License-Identifier: Apache-2.0
// Types that no sum depends on, and fields that no other check reads: a program is refused if such a value
// differs from the lowering's.
#include <doctest/doctest.h>

#include <rankc/plan/make_plan.hpp>
#include <rankc/rankc.hpp>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string_view>

#include "refused.hpp"

namespace fields_test {

using namespace equivalence_tests;
using rankc::codegen::access;

namespace {

constexpr rankc::models::gpt2 gpt{.layers = 1, .hidden = 16, .heads = 2, .ffn = 24, .vocab = 32};
constexpr rankc::models::llama llama{
    .layers = 1, .hidden = 16, .heads = 2, .kv_heads = 2, .ffn = 24, .vocab = 32, .theta = 10000};

rankc::plan_data planned(const auto& model, const rankc::parallel_dims& dims = {}, int batch = 2) {
  using namespace rankc;
  return make_plan("fields", model, dims, schedules::gpipe{1},
                   training{.seq = 16, .global_batch = batch, .precision = f32}, clusters::h200<256>);
}

const subject& one() {
  static const subject s(planned(gpt), target::host, dtype::f32);
  return s;
}
const subject& evaluation() {
  static const subject s(planned(gpt), target::host, dtype::f32, true);
  return s;
}
const subject& turned() {
  static const subject s(planned(llama), target::cuda, dtype::bf16);
  return s;
}

/// Set the type of all accesses to a value.
void retype(subject& s, int value, element_type type) {
  for (rank_program& r : s.p.ranks)
    for (op& o : r.ops)
      for (auto* accesses : {&o.reads, &o.writes})
        for (access& a : *accesses)
          if (a.value == value) a.type = type;
}
/// Set the type of the values of a kind with which a step begins.
auto begun_in(holding_kind kind, element_type type) {
  return [=](subject& s) {
    const op& begin = s.p.ranks[0].ops.front();
    for (std::size_t i = 0; i < begin.holds.size(); ++i)
      if (begin.holds[i].kind == kind) retype(s, begin.writes[i].value, type);
  };
}

op& op_of(subject& s, const char* row) { return *s.find(0, "", row).at(0); }

/// Copy the first gradient that the optimizer reads to another type.
auto copied_through(element_type type) {
  return [=](subject& s) {
    op& norm = op_of(s, "sum_squares");
    access& read = subject::read_of(norm, "gradient");
    rank_program& r = s.p.ranks[0];
    const std::size_t bytes = read.end - read.begin, at = r.arena_bytes;
    r.arena_bytes += 8 * bytes;
    const std::size_t size = type == element_type::bf16 ? 2 : 4;
    op copy;
    copy.name = "copy";
    copy.row = "copy";
    copy.reads = {read};
    copy.writes = {
        {at, at + (read.type == element_type::f64 ? bytes / 8 : bytes / 4) * size, s.new_value(), type}};
    const tensor_shape shape{{16, 16}, 2};  // the position table
    copy.views = {{.port = "y", .written = true, .accesses = {0, 1}, .shape = shape, .stride = 16},
                  {.port = "x", .accesses = {0, 1}, .shape = shape, .stride = 16}};
    s.insert_after(0, &norm - 1, copy);
  };
}

}  // namespace

TEST_CASE("the sound programs are accepted") {
  CHECK(one().reason() == "");
  CHECK(evaluation().reason() == "");
  CHECK(turned().reason() == "");
}

TEST_CASE("whole numbers are ids, targets and what is counted, and these are no others") {
  check_refused(one(), said{7570, {"y", "i32"}},
                [](subject& s) { retype(s, op_of(s, "embedding").writes.at(0).value, element_type::i32); });
  check_refused(one(), said{7704, {"the ids", "f32"}}, begun_in(holding_kind::ids, element_type::f32));
  check_refused(one(), said{7704, {"the targets", "f32"}},
                begun_in(holding_kind::targets, element_type::f32));
  check_refused(one(), said{7704, {"the weight of wpe", "i32"}},
                begun_in(holding_kind::weight, element_type::i32));
  check_refused(evaluation(), said{7704, {"the weight of wpe", "i32"}},
                begun_in(holding_kind::weight, element_type::i32));
  check_refused(one(), said{7704, {"the first moment of wpe", "i32"}},
                begun_in(holding_kind::first_moment, element_type::i32));
}

TEST_CASE("the optimizer leaves what it is given in its type") {
  check_refused(one(), said{7706, {"weight", "i32", "f32"}}, [](subject& s) {
    for (const access& w : op_of(s, "adamw").writes) retype(s, w.value, element_type::i32);
  });
}

TEST_CASE("a gradient that is summed in f32 does not go through a narrower type") {
  check_refused(one(), said{7673, {"bf16"}}, copied_through(element_type::bf16));
  check_refused(one(), said{7570, {"y", "i32"}}, copied_through(element_type::i32));
  CHECK(fault(one(), copied_through(element_type::f32)) == "");
  const subject in_f64(planned(gpt), target::host, dtype::f64);
  check_refused(in_f64, said{7703, {"y", "f32", "f64"}}, copied_through(element_type::f32));
}

TEST_CASE("no kernel is a conversion or a collective") {
  for (const char* row : {"replicate", "all_reduce", "all_reduce_max", "all_gather", "reduce_scatter",
                          "all_to_all", "all_reduce_batch"}) {
    CAPTURE(row);
    check_refused(one(), said{7707, {row}}, [row](subject& s) {
      op& scaled = op_of(s, "gelu");
      scaled.row = row;
    });
  }
}

TEST_CASE("an attribute that the row does not take is 0") {
  const auto told = [](const char* row, auto change) { return [=](subject& s) { change(op_of(s, row)); }; };
  check_refused(one(), said{7720, {"rows", "2"}}, told("layer_norm", [](op& o) { o.rows = 2; }));
  check_refused(one(), said{7720, {"seq", "16"}}, told("linear_dw", [](op& o) { o.seq = 16; }));
  check_refused(one(), said{7720, {"number", "3"}}, told("attention", [](op& o) { o.number = 3; }));
  check_refused(one(), said{7720, {"rows", "7"}}, told("adamw", [](op& o) { o.rows = 7; }));
  check_refused(one(), said{7720, {"number", "1"}}, told("sum_squares", [](op& o) { o.number = 1; }));
  check_refused(turned(), said{7720, {"number", "10000"}}, told("rope", [](op& o) { o.number = 10000; }));
  check_refused(turned(), said{7720, {"number", "1"}},
                told("rms_norm_grad_add", [](op& o) { o.number = 1; }));
  check_refused(one(), said{7720, {"window", "4"}},
                told("layer_norm", [](op& o) { o.attention.window = 4; }));
  check_refused(one(), said{7720, {"softcap", "0.5"}},
                told("gelu", [](op& o) { o.attention.softcap = 0.5; }));
  check_refused(one(), said{7720, {"scale", "2"}}, told("adamw", [](op& o) { o.attention.scale = 2; }));
}

TEST_CASE("a stride of a vector, a unit of a row without units and a first of the optimizer are neutral") {
  check_refused(one(), said{7721, {"gain", "1", "2"}},
                [](subject& s) { subject::port(op_of(s, "layer_norm"), "gain").stride = 2; });
  check_refused(one(), said{7721, {"weight", "1", "5"}},
                [](subject& s) { subject::port(op_of(s, "adamw"), "weight").stride = 5; });
  check_refused(one(), said{7722, {"x", "8"}},
                [](subject& s) { subject::port(op_of(s, "layer_norm"), "x").unit = 8; });
  check_refused(one(), said{7722, {"gradient", "2"}},
                [](subject& s) { subject::port(op_of(s, "sum_squares"), "gradient").unit = 2; });
  check_refused(one(), said{7725, {"norm", "1"}},
                [](subject& s) { subject::port(op_of(s, "adamw"), "norm").first = 1; });
  check_refused(one(), said{7723, {"gain", "0.5"}},
                [](subject& s) { subject::port(op_of(s, "layer_norm"), "gain").balances.rate = 0.5; });
  check_refused(one(), said{7726, {"1"}},
                [](subject& s) { s.p.ranks[0].ops.back().views.push_back({.port = "x"}); });
}

TEST_CASE("a holding has no more than its kind takes") {
  const auto held = [](holding_kind kind, auto change) {
    return [=](subject& s) {
      for (holding& h : s.p.ranks[0].ops.front().holds)
        if (h.kind == kind) change(h);
    };
  };
  check_refused(one(), 7728, held(holding_kind::weight, [](holding& h) { h.positions = 1; }));
  check_refused(one(), 7728, held(holding_kind::weight, [](holding& h) { h.dim = 1; }));
  check_refused(one(), 7728, held(holding_kind::first_moment, [](holding& h) { h.theta = 1; }));
  check_refused(one(), 7728, held(holding_kind::ids, [](holding& h) { h.name = "wte"; }));
  check_refused(turned(), 7728, held(holding_kind::rotary, [](holding& h) { h.name = "wte"; }));
  check_refused(one(), 7728, [](subject& s) { s.p.ranks[0].ops.back().holds.back().name = "wte"; });
}

TEST_CASE("a collective of the model names its tensors as its row does") {
  const subject sound(planned(llama, {.world = 2, .tp = 2}), target::host);
  REQUIRE(sound.reason() == "");
  const auto reduced = [](auto change) {
    return [=](subject& s) {
      for (op* o : s.find_all("all_reduce of o_proj")) change(*o);
    };
  };
  check_refused(sound, said{7724, {"2"}}, reduced([](op& o) { o.views[0].port = "z"; }));
  check_refused(sound, said{7722, {"y", "4"}}, reduced([](op& o) { o.views[0].unit = 4; }));
  check_refused(sound, said{7725, {"y", "8"}}, reduced([](op& o) { o.views[0].first = 8; }));
  check_refused(sound, said{7720, {"seq", "4"}}, reduced([](op& o) { o.seq = 4; }));
}

// ---- element types

/// Give tensors of rank 0 another type, at new addresses.
void retype(subject& s, element_type to, const std::function<bool(const access&)>& is_one) {
  rank_program& r = s.p.ranks[0];
  std::map<std::size_t, std::size_t> moved;  // the new address, by the old one
  for (op& o : r.ops)
    for (auto* accesses : {&o.reads, &o.writes})
      for (access& a : *accesses) {
        if (!is_one(a)) continue;
        const std::size_t bytes = (a.end - a.begin) / element_size(a.type) * element_size(to);
        const auto [at, is_new] = moved.try_emplace(a.begin, (r.arena_bytes + 255) / 256 * 256);
        if (is_new) r.arena_bytes = at->second + bytes;
        a.begin = at->second;
        a.end = a.begin + bytes;
        a.type = to;
      }
  REQUIRE(!moved.empty());
}
/// Tensors of a kind that a step begins with and keeps in place.
std::function<bool(const access&)> kept_as(const subject& s, holding_kind kind) {
  std::set<std::size_t> begins;
  const op& begun = s.p.ranks[0].ops.front();
  for (std::size_t i = 0; i < begun.holds.size(); ++i)
    if (begun.holds[i].kind == kind) begins.insert(begun.writes[i].begin);
  return [=](const access& a) { return begins.contains(a.begin); };
}
std::function<bool(const access&)> results_of(subject& s, const char* row, const char* port) {
  std::set<int> values;
  for (op* o : s.find(0, "", row)) {
    const view& v = subject::port(*o, port);
    values.insert(o->writes[static_cast<std::size_t>(v.accesses.first)].value);
  }
  return [=](const access& a) { return values.contains(a.value); };
}

TEST_CASE("moments alone are in f64") {
  check_refused(one(), 7765, [](subject& s) {
    for (const holding_kind kind : {holding_kind::first_moment, holding_kind::second_moment})
      retype(s, element_type::f64, kept_as(s, kind));
  });
}

TEST_CASE("rotary tables are in bf16") {
  check_refused(turned(), 7704,
                [](subject& s) { retype(s, element_type::bf16, kept_as(s, holding_kind::rotary)); });
}

TEST_CASE("statistics and log-sum-exps are in bf16") {
  check_refused(turned(), said{7763, {"statistics", "bf16"}},
                [](subject& s) { retype(s, element_type::bf16, results_of(s, "rms_norm", "statistics")); });
  check_refused(turned(), said{7763, {"lse", "bf16"}},
                [](subject& s) { retype(s, element_type::bf16, results_of(s, "attention", "lse")); });
}

TEST_CASE("a kernel computes in one type") {
  check_refused(turned(), said{7762, {"y", "f32", "gate", "bf16"}},
                [](subject& s) { retype(s, element_type::f32, results_of(s, "swiglu", "y")); });
  check_refused(one(), said{7763, {"statistics", "f64"}},
                [](subject& s) { retype(s, element_type::f64, results_of(s, "layer_norm", "statistics")); });
}

TEST_CASE("the kernels of a target do not compute in a type of the step") {
  static const subject in_f64(planned(gpt), target::host, dtype::f64);
  CHECK(in_f64.reason() == "");
  check_refused(in_f64, said{7764, {"y", "f64", "CUDA", "bf16 or f32"}},
                [](subject& s) { s.p.calls.on_host = false; });
  check_refused(one(), said{7764, {"y", "bf16", "the host", "f32 or f64"}},
                [](subject& s) { retype(s, element_type::bf16, results_of(s, "gelu", "y")); });
}

namespace {

/// The last second moment that a rank begins with lies in new bytes, in f32.
void widen_last_moment(subject& s) {
  rank_program& r = s.p.ranks[0];
  const op& begun = r.ops.front();
  std::size_t last = begun.holds.size() - 1;
  while (begun.holds[last].kind != holding_kind::second_moment) --last;
  const rankc::codegen::access before = begun.writes[last];
  const std::size_t begin = r.arena_bytes, end = begin + 2 * (before.end - before.begin);
  for (op& o : r.ops)
    for (auto* accesses : {&o.reads, &o.writes})
      for (rankc::codegen::access& a : *accesses)
        if (a.begin == before.begin && a.end == before.end)
          a = {begin, end, a.value, element_type::f32, a.replaces};
  r.arena_bytes = end;
}

}  // namespace

TEST_CASE("the host keeps moments in bf16 where the recipe does") {
  using namespace rankc;
  const subject kept(make_plan("bf16_moments", gpt, parallel_dims{}, schedules::gpipe{1},
                               training{.seq = 16, .global_batch = 2, .moments = bf16}, clusters::h200<256>),
                     target::host, dtype::f32);
  CHECK(kept.reason() == "");
  check_refused(kept, said{7798, {"moment", "bf16", "f32"}}, widen_last_moment);
}

// ---- the model

TEST_CASE("a model whose shapes, units and attributes are not those of its ops is none") {
  const auto changed = [](const char* row, auto change) {
    return [=](subject& s) {
      for (specification::layer& l : s.model.layers)
        for (specification::op& o : l.ops)
          if (o.row == row) return change(l, o);
      FAIL("the model has no such op");
    };
  };
  using layer = specification::layer;
  using model_op = specification::op;
  const auto result = [](layer& l, model_op& o) -> specification::tensor& {
    return l.values[static_cast<std::size_t>(o.out.at(0))];
  };
  check_refused(one(), 7708, changed("gelu", [=](layer& l, model_op& o) { result(l, o).shape[1] += 1; }));
  check_refused(one(), 7708, changed("gelu", [=](layer& l, model_op& o) { result(l, o).shape = {32}; }));
  check_refused(one(), 7709, changed("add", [=](layer& l, model_op& o) { result(l, o).shape[0] = 31; }));
  check_refused(one(), 7727, changed("gelu", [=](layer& l, model_op& o) { result(l, o).unit = 2; }));
  check_refused(one(), 7727, changed("gelu", [=](layer& l, model_op& o) { result(l, o).unit_of_rows = 2; }));
  check_refused(one(), 7727, changed("gelu", [=](layer& l, model_op&) { l.values.push_back({{32, 24}}); }));
  check_refused(one(), 7708, changed("attention", [=](layer& l, model_op& o) { result(l, o).unit = 4; }));
  check_refused(one(), 7708, changed("attention", [](layer&, model_op& o) { o.rows = 1; }));
  check_refused(one(), 7708, changed("gelu", [](layer&, model_op& o) { o.seq = 16; }));
  check_refused(one(), 7708, changed("gelu", [](layer&, model_op& o) { o.rows = 2; }));
  check_refused(one(), 7729, changed("gelu", [](layer&, model_op& o) { o.number = 2; }));
  check_refused(one(), said{7767, {"gelu", "block", "3", "0", "2", "true"}},
                changed("gelu", [](layer&, model_op& o) { o.attention = {.window = 3, .scale = 2}; }));
  check_refused(turned(), 7729, changed("rms_norm", [](layer&, model_op& o) { o.scaling.factor = 2; }));
}

TEST_CASE("a model whose layers pass values of other sizes than its tokens is none") {
  const specification larger = specify(planned(gpt, {}, 4));
  check_refused(one(), said{7761, {"input", "embedding", "[64]", "[32]"}}, [&](subject& s) {
    s.model = larger;
    s.model.tokens = 32;
  });
  check_refused(one(), said{7761, {"input", "block", "[64, 16]", "[32, 16]"}},
                [&](subject& s) { s.model.layers[1] = larger.layers[1]; });
  check_refused(one(), 7761, [&](subject& s) { s.model.layers[2] = larger.layers[2]; });
  check_refused(one(), 7761, [&](subject& s) { s.model.layers[2].result = s.model.layers[2].input; });
}

}  // namespace fields_test
