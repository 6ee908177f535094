// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <rankc/codegen/intervals.hpp>
#include <rankc/templates.hpp>
#include <rankc/version.hpp>

#include "../passes/lanes.hpp"
#include "emit.hpp"

namespace rankc::codegen {

namespace {

/// "place(weights, 0, 4096)": a layer's parameters in a region.
std::string place_call(const lowered& l, const layer_use& use, const std::string& region) {
  std::vector<std::string> arguments{region};
  if (l.has_working_copy()) {
    if (region == "weights") arguments = {"working_copy", "sizeof(bf16)"};
    else arguments.push_back("sizeof(float)");
  }
  for (int g = 0; g < n_groups; ++g)
    if (l.groups[use.kind].size[g]) arguments.push_back(std::to_string(use.base[g]));
  return call(layer_namespace(l.bodies[use.kind]) + "::place", arguments, 0);
}

std::string name_of(phase p) { return std::string(phase_names[static_cast<int>(p)]); }

/// What of a stage's surroundings its forward or backward needs.
struct surroundings {
  bool ids = false, targets = false, x = false, y = false, dy = false, dx = false, accumulate = false;
};
surroundings needs(const lowered& l, const stage_plan& s, phase p) {
  surroundings n;
  for (const layer_use& use : s.layers) {
    const function_shape f = shape_of(l.bodies[use.kind], p);
    n.ids |= f.ids;
    n.targets |= f.targets;
    n.accumulate |= f.accumulate || (f.accumulate_shared && !use.adds_to_shared);
  }
  const function_shape first = shape_of(l.bodies[s.layers.front().kind], p), last = shape_of(l.bodies[s.layers.back().kind], p);
  n.x = first.x, n.dx = first.dx, n.y = last.y, n.dy = last.dy;
  return n;
}

std::vector<std::string> stage_parameters(const lowered& l, const pipeline_rank& r, const stage_plan& s, phase does) {
  const surroundings n = needs(l, s, does);
  std::vector<std::string> p{"const lane& on", "const slot& s"};
  if (r.overlaps) p.push_back("at work");
  if (n.ids) p.push_back("at ids");
  if (n.targets) p.push_back("at targets");
  if (n.x) p.push_back("at x");
  if (n.y) p.push_back("at y");
  if (n.dy) p.push_back("at dy");
  if (n.dx) p.push_back("at dx");
  if (n.accumulate) p.push_back("bool accumulate");
  return p;
}

std::string function(const lowered& l, const pipeline_rank& r, const stage_plan& s, phase p) {
  const layer_surroundings names{"on", "", "s", "work", "ids", "targets", "x", "y", "dy", "dx", "accumulate"};
  std::string body;
  const int n = static_cast<int>(s.layers.size());
  for (int i = 0; i < n; ++i) {
    const int layer = p == phase::forward ? i : n - 1 - i;
    if (!l.bodies[s.layers[layer].kind].calls(p).empty()) body += layer_call(l, r, s, layer, p, names);
  }
  std::vector<std::string> parameters = stage_parameters(l, r, s, p);
  for (std::string& q : parameters)  // what is not used has no name
    if (const std::size_t space = q.rfind(' '); !has_word(body, q.substr(space + 1))) q.resize(space);
  return call("inline void " + name_of(p), parameters, 0, " {\n") + body + "}\n";
}

std::string functions(const lowered& l, const pipeline_rank& r, const stage_plan& s) {
  std::string out = function(l, r, s, phase::forward);
  if (l.uses(action_kind::B, s.stage)) out += "\n" + function(l, r, s, phase::backward);
  if (l.uses(action_kind::I, s.stage))
    out += "\n" + function(l, r, s, phase::backward_input) + "\n" + function(l, r, s, phase::backward_weight);
  return out;
}

/// Where the gradient of a layer's output lies, if the stage goes on after it.
std::string gradient_of(const lowered& l, const stage_plan& s, int layer, const layer_surroundings& in) {
  return l.splits_backward() ? in.slot + ".d_after_" + s.layers[layer].id : fmt::format("chain[{}]", layer % 2);
}

}  // namespace

std::string layer_call(const lowered& l, const pipeline_rank& r, const stage_plan& s, int layer, phase p, const layer_surroundings& in) {
  const layer_use& use = s.layers[layer];
  const body& b = l.bodies[use.kind];
  const function_shape f = shape_of(b, p);
  const int last = static_cast<int>(s.layers.size()) - 1;
  const std::string& me = use.id;
  std::vector<std::string> arguments{in.lane};
  auto take = [&](bool is, const std::string& text) {
    if (is) arguments.push_back(text);
  };
  take(f.weights, in.scope + me);
  take(f.gradients, in.scope + "d_" + me);
  take(f.saved, in.slot + "." + me);
  take(f.work, in.work);
  for (int t : f.ropes) take(true, rope_name(r.arena.find_rope(b.ropes[static_cast<std::size_t>(t)]), r.arena.ropes.size()));
  take(f.ids, in.ids);
  take(f.targets, in.targets);
  take(f.x, layer == 0 ? in.x : in.slot + ".after_" + s.layers[layer - 1].id);
  take(f.y, layer == last ? in.y : in.slot + ".after_" + me);
  take(f.loss, "loss");
  take(f.dy, layer == last ? in.dy : gradient_of(l, s, layer, in));
  take(f.dx, layer == 0 ? in.dx : gradient_of(l, s, layer - 1, in));
  take(f.accumulate, in.accumulate);
  take(f.accumulate_shared, use.adds_to_shared ? "true" : in.accumulate);
  std::string line = "  " + call(layer_namespace(b) + "::" + name_of(p), arguments, 2) + "\n";
  for (std::size_t at = 0; (at = line.find("\n    ", at)) != line.npos; at += 3) line.insert(at + 1, "  ");
  return line;
}

std::string stage_call(const lowered& l, const pipeline_rank& r, const item& i) {
  const stage_plan& s = r.stages[i.stage];
  const surroundings n = needs(l, s, i.does);
  const layer_surroundings at = surroundings_of(r, i);
  std::vector<std::string> arguments{at.lane, fmt::format("{}at_slot(slot_{}[{}])", at.scope, s.stage, i.slot)};
  if (r.overlaps) arguments.push_back(at.work);
  if (n.ids) arguments.push_back(at.ids);
  if (n.targets) arguments.push_back(at.targets);
  if (n.x) arguments.push_back(at.x);
  if (n.y) arguments.push_back(at.y);
  if (n.dy) arguments.push_back(at.dy);
  if (n.dx) arguments.push_back(at.dx);
  if (n.accumulate) arguments.push_back(at.accumulate);
  return call(at.scope + name_of(i.does), arguments, 2);
}

std::string slot_name(const pipeline_rank& r, const stage_plan& s) {
  return r.stages.size() > 1 ? fmt::format("s{}", s.stage) : "s";
}

layer_surroundings surroundings_of(const pipeline_rank& r, const item& i) {
  const stage_plan& s = r.stages[i.stage];
  auto boundary = [](int index) { return fmt::format("boundary[{}]", index); };
  auto of_microbatch = [&](const char* name) {
    return i.microbatch ? fmt::format("{} + {} * ids_bytes", name, i.microbatch) : std::string(name);
  };
  return {i.on == compute_lane ? r.lanes[i.on].name : "on", s.name + "::", slot_name(r, s), i.on == compute_lane ? "work" : "work_beside", of_microbatch("ids"), of_microbatch("targets"),
          boundary(i.x), boundary(i.y), boundary(i.dy), boundary(i.dx), i.first ? "false" : "true"};
}

std::string emit_stage(const lowered& l, const pipeline_rank& r, const stage_plan& s) {
  std::string parameters, contents;
  std::vector<std::string> members, kinds;
  std::string places;
  std::string previous_kind, declaration;
  for (std::size_t i = 0; i < s.layers.size(); ++i) {
    const layer_use& use = s.layers[i];
    const body& b = l.bodies[use.kind];
    const std::string& me = use.id;
    kinds.push_back(use.name);
    for (const char* region : {"weights", "gradients"})
      if (!b.parameters.empty() && (region[0] == 'w' || l.trains())) parameters += fmt::format("constexpr {}::parameters {}{} = {}\n", layer_namespace(b), region[0] == 'w' ? "" : "d_", me,
                                place_call(l, use, region));
    if (b.saved_bytes) {
      members.push_back(fmt::format("{}::saved {};", layer_namespace(b), me));
      places += fmt::format(".{} = {}::keep(base + {}),\n", me, layer_namespace(b), use.saved);
    }
    if (i + 1 < s.layers.size()) {
      members.push_back(fmt::format("at after_{};", me));
      places += fmt::format(".after_{} = base + {},\n", me, use.output);
      if (!l.splits_backward()) continue;
      members.push_back(fmt::format("at d_after_{};", me));
      places += fmt::format(".d_after_{} = base + {},\n", me, use.output_gradient);
    }
  }
  for (std::size_t i = 0; i < kinds.size(); ++i) contents += (i ? ", " : "") + kinds[i];
  std::string member_text;
  for (const std::string& m : members) member_text += m + "\n";
  return fill(templates::program_stage_hpp,
              {{"version", version}, {"plan", l.plan->name}, {"plan_id", identifier(l.plan->name)},
               {"pipeline", std::to_string(r.index)}, {"stage", s.name}, {"contents", contents},
               {"parameters", parameters}, {"slot_size", readable_bytes(s.slot_bytes)}, {"slot_members", member_text},
               {"slot_places", places}, {"base", places.empty() ? "" : " base"}, {"functions", functions(l, r, s)}});
}

}  // namespace rankc::codegen
