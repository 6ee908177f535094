// SPDX-License-Identifier: Apache-2.0
#include "explain.hpp"

#include <fmt/format.h>

#include <rankc/codegen/text_template.hpp>

namespace rankc::codegen {

namespace {

std::string operand_name(const body& b, const operand& o) {
  constexpr std::string_view spaces[]{"x", "y", "dy", "dx", "saved", "temp", "w", "dw", "rope", "ids", "targets", "loss"};
  const value& v = b.at(o);
  const std::string_view space = spaces[static_cast<int>(v.where)];
  if (v.where == space::saved || v.where == space::temp) return fmt::format("{}:{}", space, b.names.values[o.at.value]);
  if (v.where == space::weight || v.where == space::gradient) return fmt::format("{}:{}", space, b.parameters[v.of].name);
  return std::string(space);
}

std::string bodies(const lowered& l) {
  std::string out;
  for (const body& b : l.bodies)
    for (const phase p : {phase::forward, phase::backward, phase::backward_input, phase::backward_weight}) {
      if (b.calls(p).empty()) continue;
      out += fmt::format("{} {}\n", b.name, phase_names[static_cast<int>(p)]);
      for (const node& n : b.calls(p)) {
        std::vector<std::string> to, from;
        for (const operand& o : writes_of(b, n)) to.push_back(operand_name(b, o));
        for (const operand& o : reads_of(b, n)) from.push_back(operand_name(b, o));
        out += fmt::format("  {} = {}({})\n", fmt::join(to, ", "), b.function(n), fmt::join(from, ", "));
      }
    }
  return out;
}

std::string parameters(const lowered& l) {
  std::string out;
  for (const pipeline_rank& r : l.ranks) {
    out += fmt::format("pipeline rank {}: {} elements\n", r.index, r.parameter_elements);
    for (const placed_parameter& p : r.parameters)
      out += fmt::format("  {:>10} {:<24} {} x {}{}{}\n", p.element, p.name, p.as.rows, p.as.cols,
                         p.as.shard_dim >= 0 ? fmt::format(", dim {} sharded over tp", p.as.shard_dim) : "", p.copy ? ", copy" : "");
    for (const bucket& b : r.buckets)
      out += fmt::format("  bucket {}: elements {} + {}{}{}{}\n", b.name, b.first, b.count, b.over_tp ? ", sum over tp" : "",
                         b.over_dp ? ", sum over dp" : "", b.tied ? ", sum with its copy" : "");
  }
  return out;
}

std::string communicators(const lowered& l) {
  std::string out;
  for (const communicator& c : l.communicators) out += fmt::format("{}: {}\n", c.name, fmt::join(c.ranks, " "));
  return out;
}

std::string items(const lowered& l) {
  std::string out;
  for (const pipeline_rank& r : l.ranks)
    for (const auto* list : {&r.train, &r.evaluate}) {
      out += fmt::format("pipeline rank {} {}\n", r.index, list == &r.train ? "train" : "evaluate");
      for (const item& i : list->items) {
        std::vector<std::string> waits;
        for (int w : i.waits) waits.push_back(r.events[list->items[w].event]);
        out += fmt::format("  {:<10} {}{}{}\n", r.lanes[static_cast<std::size_t>(i.on)].name, i.name,
                           waits.empty() ? "" : fmt::format(" after {}", fmt::join(waits, ", ")),
                           i.event < 0 ? "" : " records " + r.events[i.event]);
      }
    }
  return out;
}

std::string arena(const lowered& l) {
  std::string out;
  for (const pipeline_rank& r : l.ranks) {
    const arena_plan& a = r.arena;
    out += fmt::format("pipeline rank {}: {} bytes\n  weights {} gradients {} moments {} {} loss {} norm {} work {} + {}\n", r.index,
                       a.bytes, a.weights, a.gradients, a.first_moment, a.second_moment, a.loss, a.norm, a.work, a.work_bytes);
    for (const pool& p : a.pools)
      out += fmt::format("  {} {} x {} at {}\n", kept_names[static_cast<int>(p.what)], p.count, p.unit, p.where);
  }
  return out;
}

std::string ops(const lowered& l) {
  std::string out;
  const program p = expand_train(l);
  for (std::size_t r = 0; r < p.ranks.size(); ++r) {
    out += fmt::format("rank {}\n", r);
    const int number = p.ranks[r].number < 0 ? static_cast<int>(r) : p.ranks[r].number;
    const std::vector<lane>& lanes = l.ranks[layout(l.plan->dims).at(number)[axis::pp]].lanes;
    for (std::size_t i = 0; i < p.ranks[r].ops.size(); ++i) {
      const auto& o = p.ranks[r].ops[i];
      out += fmt::format("  {:>5} {:<10} {}{}\n", i, lanes[static_cast<std::size_t>(o.stream)].name, o.name,
                         o.waits.empty() ? "" : fmt::format(" after {}", fmt::join(o.waits, ", ")));
    }
  }
  return out;
}

struct pass {
  const char* name;
  std::string (*print)(const lowered&);
};
constexpr pass passes[]{{"bodies", bodies}, {"parameters", parameters}, {"communicators", communicators},
                        {"items", items},   {"arena", arena},           {"program", ops}};

}  // namespace

std::vector<std::string> pass_names() {
  std::vector<std::string> names;
  for (const pass& p : passes) names.push_back(p.name);
  return names;
}

std::string explain(const lowered& l, const std::string& name) {
  for (const pass& p : passes)
    if (name == p.name) return p.print(l);
  return "";
}

}  // namespace rankc::codegen
