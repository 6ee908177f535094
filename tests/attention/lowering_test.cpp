// SPDX-License-Identifier: Apache-2.0
// Attention with a window, a softcap, a scale, sinks, and value heads of another size than key heads: its
// certificates, its text, and programs and models with other attributes.
#include <doctest/doctest.h>

#include <emit/emit.hpp>
#include <rankc/codegen/certificate.hpp>
#include <rankc/codegen/equivalence.hpp>
#include <rankc/codegen/lowered.hpp>
#include <rankc/step_time.hpp>

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../families/check_lowered.hpp"
#include "models.hpp"
#include "plans.hpp"

namespace attention_lowering_test {

using namespace rankc::codegen;
using rankc::attention_setting;

namespace {

const rankc::plan_data& plan_of(const std::vector<split_plan>& all, std::string_view job,
                                std::string_view layout) {
  return std::find_if(all.begin(), all.end(),
                      [&](const split_plan& p) { return p.job == job && p.layout == layout; })
      ->plan;
}

std::string reason(const program& p, const rankc::codegen::specification& model) {
  const equivalence e = check_equivalence(p, prove(p), model);
  return e.holds ? "" : e.reasons.front();
}

int count(const std::string& text, const std::string& part) {
  int n = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++n;
  return n;
}

}  // namespace

TEST_CASE("programs of windows, softcaps and scales are proven and are the model") {
  std::vector<rankc::plan_data> all;
  for (const split_plan& p : attention_family::plans()) all.push_back(p.plan);
  REQUIRE(all.size() == RANKC_PLANS);
  CHECK(check_lowered(all) == lowered_programs_of(static_cast<int>(all.size())));
}

TEST_CASE("a program whose attention has another setting than the model's is refused") {
  const std::vector<split_plan> all = attention_family::plans();
  const auto change = [](auto& ops, auto by) {
    int changed = 0;
    for (auto& o : ops)
      if (!o.attention.is_plain() && changed++ == 0) by(o.attention);
    return changed > 0;
  };
  const auto changes = {+[](attention_setting& s) { s.window += 1; },
                        +[](attention_setting& s) { s.softcap *= 2; },
                        +[](attention_setting& s) { s.scale = 3; }, +[](attention_setting& s) { s = {}; }};
  for (const char* layout : {"one", "gathered_tp", "ring_sp"}) {
    CAPTURE(layout);
    const rankc::plan_data& plan = plan_of(all, "capped", layout);
    const lowered l = lower(plan, dtype::f64, target::host);
    const program sound = expand_train(l);
    const specification model = specify(plan);
    REQUIRE(reason(sound, model) == "");
    for (const auto by : changes) {
      program p = sound;
      REQUIRE(change(p.ranks[0].ops, by));
      CHECK(reason(p, model) != "");
      specification other = model;
      REQUIRE(change(other.layers[1].ops, by));
      CHECK(reason(sound, other) != "");
    }
  }
}

TEST_CASE("a program is refused if sinks are missing, of another layer, or not in the gradients") {
  const std::vector<split_plan> all = attention_family::plans();
  const auto nth = [](program& p, std::string_view row, std::size_t n) -> op& {
    for (op& o : p.ranks[0].ops)
      if (o.row == row && n-- == 0) return o;
    throw std::logic_error("no such op");
  };
  const auto read_of = [](op& o, std::string_view port) -> rankc::codegen::access& {
    const auto v =
        std::find_if(o.views.begin(), o.views.end(), [&](const view& x) { return x.port == port; });
    return o.reads[static_cast<std::size_t>(v->accesses.first)];
  };
  const std::vector<std::pair<const char*, std::function<void(program&)>>> mutants{
      {"the attention's result without sinks",
       [&](program& p) {
         const op sinks = nth(p, "add_sinks", 0);
         for (op& o : p.ranks[0].ops)
           for (rankc::codegen::access& a : o.reads)
             if (a.value == sinks.writes[0].value) a.value = sinks.reads[0].value;
       }},
      {"the log-sum-exp without sinks in a gradient",
       [&](program& p) {
         const op sinks = nth(p, "add_sinks", 0);
         for (op& o : p.ranks[0].ops)
           if (o.row.ends_with("attention_grad"))
             for (rankc::codegen::access& a : o.reads)
               if (a.value == sinks.writes[1].value) a.value = sinks.reads[1].value;
       }},
      {"the scores of another layer", [&](program& p) {
         read_of(nth(p, "add_sinks", 0), "scores").value = read_of(nth(p, "add_sinks", 1), "scores").value;
       }}};
  for (const char* layout : {"one", "gathered", "ring", "ulysses"}) {
    CAPTURE(layout);
    const rankc::plan_data& plan = plan_of(all, "sunk", layout);
    const program sound = expand_train(lower(plan, dtype::f64, target::host));
    const specification model = specify(plan);
    const verdict order = prove(sound);
    REQUIRE(check_equivalence(sound, order, model).holds);
    for (const auto& [what, change] : mutants) {
      CAPTURE(what);
      program p = sound;
      change(p);
      CHECK_FALSE(check_equivalence(p, order, model).holds);
    }
    specification without = model;
    for (specification::op& o : without.layers[1].ops)
      if (o.row == "sink_attention") {
        o.row = "attention";
        o.in.resize(3);
      }
    CHECK_FALSE(check_equivalence(sound, order, without).holds);
  }
}

TEST_CASE("a program is refused if its value heads have another size than the model's") {
  const std::vector<split_plan> all = attention_family::plans();
  const auto view_of = [](program& p, std::string_view row, std::string_view port) -> view& {
    for (op& o : p.ranks[0].ops)
      if (o.row.ends_with(row))
        for (view& v : o.views)
          if (v.port == port) return v;
    throw std::logic_error("no such view");
  };
  const std::vector<std::pair<const char*, std::function<void(program&)>>> mutants{
      {"more and smaller value heads", [&](program& p) { view_of(p, "attention", "v").unit = 1; }},
      {"more and smaller heads of gradients",
       [&](program& p) { view_of(p, "attention_grad", "dv").unit = 1; }},
      {"a call with another size of value heads", [](program& p) {
         for (op& o : p.ranks[0].ops)
           if (o.row.ends_with("attention"))
             for (double& given : o.given) given = given == 2 ? 3 : given;
       }}};
  for (const char* layout : {"one", "gathered", "ring", "ulysses"}) {
    CAPTURE(layout);
    const rankc::plan_data& plan = plan_of(all, "values", layout);
    const program sound = expand_train(lower(plan, dtype::f64, target::host));
    const specification model = specify(plan);
    const verdict order = prove(sound);
    REQUIRE(check_equivalence(sound, order, model).holds);
    for (const auto& [what, change] : mutants) {
      CAPTURE(what);
      program p = sound;
      change(p);
      CHECK_FALSE(check_equivalence(p, order, model).holds);
    }
    specification with_equal_heads = specify(plan_of(all, "local", layout));
    CHECK_FALSE(check_equivalence(sound, order, with_equal_heads).holds);
    specification more_heads = model;
    for (const specification::op& o : model.layers[1].ops)
      if (o.row == "attention") more_heads.layers[1].values[static_cast<std::size_t>(o.in[2])].unit = 1;
    CHECK(reason(sound, more_heads).find("RC7708") != std::string::npos);
  }
}

TEST_CASE("bytes of messages and operations are those of keys and of values") {
  const std::vector<split_plan> all = attention_family::plans();
  const program ring = expand_train(lower(plan_of(all, "values", "ring"), dtype::f64, target::host));
  std::vector<std::size_t> bytes;  // bytes of the first shift of each kind of layer
  for (const op& o : ring.ranks[0].ops)
    if (o.kind == op_kind::collective && o.does == collective_kind::shift && bytes.size() < 6)
      bytes.push_back(o.bytes);
  // A rank has 4 sequences of 4 tokens, with 4 key heads of 4 elements and 4 value heads of 2, then of 6.
  constexpr std::size_t of_two = 16 * 4 * (4 + 2) * 8, of_six = 16 * 4 * (4 + 6) * 8;
  CHECK(bytes == std::vector{of_two, of_two, of_two, of_six, of_six, of_six});

  const rankc::plan_data& plan = plan_of(all, "values", "one");
  std::vector<double> found;
  const rankc::trace& t = plan.kinds[2].ops;  // value heads of 6 elements, no window
  for (const rankc::op& o : t.ops)
    if (o.kind->find("lse") >= 0) found.push_back(o.kind->flops_of(rankc::sizes_of(t, o)));
  constexpr double pairs = 192.0 * 8 * 16;  // 12 sequences of 16 tokens, 8 heads; pairs counted twice
  CHECK(found == std::vector{2 * pairs * (4 + 6), 2 * pairs * (3 * 4 + 2 * 6)});
}

TEST_CASE("a ring has no step in which no query sees a key") {
  const std::vector<split_plan> all = attention_family::plans();
  const auto count_ops = [&](const char* layout, auto is) {
    const program p = expand_train(lower(plan_of(all, "windows_oracle", layout), dtype::f64, target::host));
    return std::count_if(p.ranks[0].ops.begin(), p.ranks[0].ops.end(), is);
  };
  const auto is_message = [](const op& o) { return o.kind == op_kind::collective && is_shift(o.does); };
  const auto is_step = [](const op& o) { return o.row == "ring_attention"; };
  // Windows of 1, 2, 3 and 5 tokens reach back 0, 1, 1 and 2 chunks of two tokens, and 0, 1, 2 and 4 chunks
  // of one token. A rank needs as many neighbours on each side. The last window needs a whole ring.
  CHECK(count_ops("ring_of_four", is_step) == 1 + 3 + 3 + 4);
  CHECK(count_ops("ring_of_eight", is_step) == 1 + 3 + 5 + 8);
  // Backward sends keys and values again, and their gradients back.
  CHECK(count_ops("ring_of_four", is_message) == 3 * (0 + 2 + 2 + 3));
  CHECK(count_ops("ring_of_eight", is_message) == 3 * (0 + 2 + 4 + 7));
}

TEST_CASE("a ring without a step that some query needs is refused, and one with more steps is not") {
  const std::vector<split_plan> all = attention_family::plans();
  for (const char* layout : {"ring_of_four", "ring_of_eight", "again"}) {
    const rankc::plan_data& plan = plan_of(all, "windows_oracle", layout);
    const program sound = expand_train(lower(plan, dtype::f64, target::host));
    const specification model = specify(plan);
    const verdict order = prove(sound);
    REQUIRE(check_equivalence(sound, order, model).holds);
    const int of_chunk = 8 / plan.dims.cp;
    for (int window = 1; window <= 3; ++window)
      for (int instead = 1; instead <= 6; ++instead) {
        CAPTURE(layout);
        CAPTURE(window);
        CAPTURE(instead);
        const auto change = [&](auto& ops, auto also) {
          for (auto& o : ops)
            if (o.attention.window == window) also(o).attention.window = instead;
        };
        program p = sound;
        for (auto& rank : p.ranks)
          change(rank.ops, [&](op& o) -> op& {
            o.given.at(o.given.size() - 4) = instead;  // window, softcap, scale, causal
            return o;
          });
        specification other = model;
        for (auto& layer : other.layers) change(layer.ops, [](auto& o) -> auto& { return o; });
        const auto chunks_before = [&](int n) { return (n - 1 + of_chunk - 1) / of_chunk; };
        const bool has_its_steps = chunks_before(instead) <= chunks_before(window);
        const equivalence e = check_equivalence(p, order, other);
        CHECK(e.holds == has_its_steps);
        if (!has_its_steps) CHECK(e.reasons.front().find("RC7428") != std::string::npos);
      }
  }
}

TEST_CASE("operations of a ring's steps are those of attention to whole sequences") {
  const std::vector<split_plan> all = attention_family::plans();
  const auto operations_of = [&](const char* layout) {  // for each kind of layer
    std::vector<double> found;
    for (const rankc::layer_kind& kind : plan_of(all, "windows_oracle", layout).kinds) {
      found.push_back(0);
      for (const rankc::op& o : kind.ops.ops)
        if (o.kind->find("lse") >= 0 && o.kind->find("q") >= 0)
          found.back() += o.kind->flops_of(rankc::sizes_of(kind.ops, o));
    }
    return found;
  };
  const std::vector<double> whole = operations_of("one");
  for (const char* layout : {"ring_of_four", "ring_of_eight"}) {
    const std::vector<double> steps = operations_of(layout);
    REQUIRE(steps.size() == whole.size());
    for (std::size_t i = 0; i < whole.size(); ++i) CHECK(steps[i] == doctest::Approx(whole[i]));
  }
}

TEST_CASE("a program has no op that only a model has") {
  const std::vector<split_plan> all = attention_family::plans();
  const rankc::plan_data& plan = plan_of(all, "sunk", "one");
  program p = expand_train(lower(plan, dtype::f64, target::host));
  for (op& o : p.ranks[0].ops)
    if (o.row == "attention") o.row = "sink_attention";
  CHECK(reason(p, specify(plan)).find("RC7768") != std::string::npos);
}

TEST_CASE("attention alone has a setting of attention") {
  const std::vector<split_plan> all = attention_family::plans();
  const rankc::plan_data& plan = plan_of(all, "narrow", "ring_of_four");
  const program sound = expand_train(lower(plan, dtype::f64, target::host));
  const specification model = specify(plan);
  const auto with_setting = [&](std::string_view row) {
    program p = sound;
    for (op& o : p.ranks[0].ops)
      if (o.row == row) o.attention.window = 2;
    return reason(p, model);
  };
  CHECK(with_setting("rms_norm").find("RC7720") != std::string::npos);
  CHECK(with_setting("merge_attention").find("RC7720") != std::string::npos);
  specification other = model;
  other.layers[1].ops[0].attention.scale = 2;
  CHECK(reason(sound, other).find("RC7767") != std::string::npos);
}

TEST_CASE("the text names the attributes that a layer's attention has, and two kinds of layers are lowered") {
  const std::vector<split_plan> all = attention_family::plans();
  for (const target t : {target::host, target::cuda}) {
    const lowered l = lower(plan_of(all, "local", "one"), t == target::host ? dtype::f64 : dtype::bf16, t);
    CHECK(l.bodies.size() == 4);
    const std::string calls = emit_layers(l), kernels = emit_kernels(l, t == target::host ? "host" : "cuda");
    CHECK(count(calls, ".setting = {.window = 5}") == 2);  // forward and backward
    CHECK(count(calls, ".setting") == 2);
    CHECK(count(kernels, "  rankc::attention_setting setting = {};\n") == 2);
    CHECK(count(kernels, "setting);") == 2);
  }
  const lowered capped = lower(plan_of(all, "capped", "one"), dtype::f64, target::host);
  const std::string calls = emit_layers(capped);
  CHECK(count(calls, ".setting = {.window = 6, .softcap = 0.5}") == 2);
  CHECK(count(calls, ".setting = {.softcap = 0.3, .scale = 1.25}") == 2);
}

TEST_CASE("operations are those of the keys in the window") {
  const std::vector<split_plan> all = attention_family::plans();
  const rankc::plan_data& plan = plan_of(all, "local", "one");
  const auto operations_of = [&](int kind) {  // forward and backward
    std::vector<double> found;
    const rankc::trace& t = plan.kinds[static_cast<std::size_t>(kind)].ops;
    for (const rankc::op& o : t.ops)
      if (o.kind->find("lse") >= 0) found.push_back(o.kind->flops_of(rankc::sizes_of(t, o)));
    return found;
  };
  constexpr double tokens = 192, features = 32;  // 12 sequences of 16 tokens; 8 heads of 4
  // 5 of 16 queries see 1 to 5 keys, and 11 see 5 keys: 70 pairs. The rule counts pairs twice, without the
  // 5 of the diagonal.
  CHECK(operations_of(1) ==
        std::vector{4 * tokens * features * 2 * 70 / 16.0 - 4 * tokens * features * 5 / 16,
                    10 * tokens * features * 2 * 70 / 16.0 - 10 * tokens * features * 5 / 16});
  CHECK(operations_of(2) == std::vector{4 * tokens * features * 16, 10 * tokens * features * 16});
}

TEST_CASE("the predicted time of a step follows the window") {
  const auto seconds_of = [](int window) {
    return rankc::cost_model::predict_step(attention_family::plan_of_window(window), rankc::cost_model::h200)
        .attention;
  };
  CHECK(seconds_of(1024) < seconds_of(8192));
  CHECK(seconds_of(8192) < seconds_of(0));
  CHECK(seconds_of(32768) == seconds_of(0));
}

}  // namespace attention_lowering_test
