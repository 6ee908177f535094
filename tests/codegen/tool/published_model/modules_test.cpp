// SPDX-License-Identifier: Apache-2.0
// Tables of the ops of a layer, and the steps computed from them, against the Python original: fused and
// other attention, recomputation, data parallelism with and without overlap.
#include <doctest/doctest.h>

#include "oracle.hpp"

using namespace oracle;

namespace {

struct module_case {
  std::string_view kind;
  setting on;
  strategy by = {};
  plan at = {};
  attention_form form = {};
  bool overlap = true;
  int microbatches = 1;
};

attention_form form_of(std::string_view kind, bool flash, bool recompute) {
  if (kind == "sa_2d_only") return attention_form::summa;
  if (flash) return attention_form::fused;
  return recompute ? attention_form::recomputed : attention_form::unfused;
}

module_case read_case(fields f) {
  module_case c;
  c.kind = f.word();
  c.by = strategy_of(c.kind);
  c.on.model = model_of(f.word());
  const std::string_view system = f.word();
  c.on.gpu = system_of(system, f.integer());
  c.at.mbs = f.integer();
  for (int* number : {&c.at.tp1, &c.at.tp2, &c.at.nv_tp1, &c.at.nv_tp2, &c.at.nb}) *number = f.integer();
  const bool flash = f.integer() != 0, recompute = f.integer() != 0;
  c.form = form_of(c.kind, flash, recompute);
  c.at.dp = f.integer();
  c.at.nv_dp = f.integer();
  c.overlap = f.integer() != 0;
  c.at.pp = f.integer();
  c.at.nv_pp = f.integer();
  c.microbatches = f.integer();
  return c;
}

/// An op's row in the Python's table.
std::vector<double> row_of(const module_case& c, const op& x) {
  const axis_times axes = times_of_axes(c.on, {c.at.tp1, c.at.nv_tp1}, {c.at.tp2, c.at.nv_tp2});
  const work_time forward = time_of_work(c.on, x, x.forward), backward = time_of_work(c.on, x, x.backward);
  const auto [sent_forward, sent_backward] =
      time_of_transfers(c.on, x.first, x.second, x.panels, {forward.total(), backward.total()}, axes);
  const double volume_forward = x.first.volume * x.first.forward + x.second.volume * x.second.forward;
  const double volume_backward = x.first.volume * x.first.backward + x.second.volume * x.second.backward;
  const double t_forward = forward.total() + sent_forward;
  const double t_backward = backward.total() + sent_backward + (x.recomputed ? t_forward : 0);
  return {x.weights,
          x.weights,
          counted_flops(c.on, x.forward),
          x.stored,
          volume_forward,
          counted_flops(c.on, x.backward),
          volume_backward,
          t_forward,
          sent_forward,
          forward.compute,
          forward.exposed_memory(),
          forward.compute / forward.memory,
          t_backward,
          sent_backward,
          backward.compute,
          backward.exposed_memory(),
          backward.compute / backward.memory,
          t_forward + t_backward};
}

std::vector<op> ops_of(const module_case& c) {
  const layer_split split{c.by, c.at.tp1, c.at.tp2, c.at.mbs, c.at.nb};
  std::vector<op> ops;
  const auto add = [&](const op& x) { ops.push_back(x); };
  if (c.kind != "sa_2d_only") visit_mlp(c.on, split, add);
  visit_attention(c.on, split, c.form, add);
  return ops;
}

}  // namespace

TEST_CASE("ops and steps cost what the Python's cost") {
  module_case c;
  std::vector<op> ops;
  step_cost step{};
  std::size_t at = 0;
  int cases = 0, steps = 0;
  for (const std::string& line : lines_of("modules.csv", 5)) {
    CAPTURE(cases);
    CAPTURE(line);
    fields f(line);
    const std::string_view what = f.word();
    if (what == "case") {
      CHECK(at == ops.size());
      c = read_case(f);
      ops = ops_of(c);
      at = 0;
      step = cost_of_step(c.on, c.by, c.at, c.microbatches * c.at.mbs * c.at.dp, c.form, c.overlap);
      ++cases;
    } else if (what == "op") {
      REQUIRE(at < ops.size());
      CHECK(f.word() == ops[at].name);
      for (const double ours : row_of(c, ops[at])) CHECK(same(ours, f.number()));
      ++at;
    } else if (what == "dp" || what == "pp") {
      CHECK(same(what == "dp" ? step.t_dp_comm : step.t_pp_comm, f.number() + f.number()));
    } else {
      REQUIRE(what == "totals");
      for (const step_cost_field& field : step_cost_fields) {
        if (field.at != &step_cost::throughput) CHECK(same(step.*field.at, f.number()));
      }
      ++steps;
    }
  }
  CHECK(at == ops.size());
  CHECK(cases == 66);
  CHECK(steps == 57);
}
