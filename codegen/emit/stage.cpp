// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <rankc/templates.hpp>
#include <rankc/version.hpp>

#include "../passes/input_text.hpp"
#include "emit.hpp"
#include "rank_text.hpp"

namespace rankc::codegen {

namespace {

std::string phase_name(phase p) { return std::string(phase_names[static_cast<int>(p)]); }

/// "layers_2", "layers_2_halfway", "layers_2_out", "d_layers_2_out": a member of a slot.
std::string kept_name(const stage_plan& s, kept what, int layer) {
  const std::string& id = s.layers[layer].id;
  switch (what) {
    case kept::saved:
      return id;
    case kept::halfway:
      return id + "_halfway";
    case kept::output_gradient:
      return "d_" + id + "_out";
    default:
      return id + "_out";
  }
}

/// Adds "block_layer::parameters<real> layers_2{.own = {weights[0]}}": a layer's weights, or their gradients,
/// in their regions.
void add_parameters_of(const lowered& l, const layer_use& use, bool gradients,
                       std::vector<declared_constant>& to) {
  const std::string weights = l.has_working_copy() ? "working_copy" : "weights";
  const std::string kept = gradients ? "gradients" : weights;
  const std::string gathered = gradients ? "full_gradients" : "gathered";
  const auto region = [&](group g) {
    return rankc::lowering::is_shared_out(g, l.plan->dims) ? gathered : kept;
  };
  std::vector<std::string> pieces;
  for (int g = 0; g < n_groups; ++g)
    if (l.groups[use.kind].size[g] && !(gradients && g == static_cast<int>(group::frozen)))
      pieces.push_back(fmt::format(".{} = {{{}[{}]}}", group_names[g], region(static_cast<group>(g)),
                                   (gradients ? use.summed_base : use.gathered_base)[g]));
  const body& b = l.bodies[use.kind];
  for (std::size_t s = 0; s < use.shared.size(); ++s) {
    const auto p = static_cast<std::size_t>(l.groups[use.kind].shared[s]);
    if (gradients && !b.parameters[p].trainable) continue;
    pieces.push_back(fmt::format(".{} = {{{}[{}]}}", b.names.parameters[p], region(group::shared),
                                 gradients ? use.shared[s].summed : use.shared[s].gathered));
  }
  if (pieces.empty()) return;
  declared_constant made{(gradients ? "d_" : "") + use.id,
                         fmt::format("{}::parameters<{}>", layer_namespace(b), gradients ? "wide" : "real"),
                         fmt::format("{}", fmt::join(pieces, ", ")),
                         {}};
  pieces.front() = fmt::format("constexpr {} {}{{", made.type, made.name) + pieces.front();
  made.plain = wrap(pieces, ",", "    ", 0) + "};\n";
  to.push_back(std::move(made));
}

void add_parameters(const lowered& l, const stage_plan& s, std::vector<declared_constant>& to) {
  for (const layer_use& use : s.layers) {
    if (l.bodies[use.kind].parameters.empty()) continue;
    add_parameters_of(l, use, false, to);
    if (l.trains()) add_parameters_of(l, use, true, to);
  }
}

/// Adds the gradients between the layers of a stage that are not in its slots.
void add_chained(const lowered& l, const stage_plan& s, std::vector<declared_constant>& to) {
  if (!l.trains() || l.splits_backward()) return;
  for (std::size_t layer = 0; layer + 1 < s.layers.size(); ++layer) {
    declared_constant made{kept_name(s, kept::output_gradient, static_cast<int>(layer)),
                           layer_namespace(l.bodies[s.layers[layer].kind]) + "::output",
                           fmt::format("chain[{}]", layer % 2),
                           {}};
    made.plain = fmt::format("constexpr {} {}{{{}}};\n", made.type, made.name, made.value);
    to.push_back(std::move(made));
  }
}

std::string_view type_name(kept what) {
  if (what == kept::saved) return "saved";
  return what == kept::halfway ? "halfway" : "output";
}

/// "block_layer::saved layers_2;"
std::string members_text(const std::vector<declared_constant>& members, const families& of) {
  std::string out;
  for (const families::group& g : of.groups_of(members))
    out += fmt::format("{} {};\n", type_of_array(g), g.name);
  return out;
}

/// The places of a slot's members, in braces. `capture`: of the rules of members.
std::string slot_text(const lowered& l, const stage_plan& s, const std::vector<std::size_t>& places,
                      const families& of, std::string_view capture) {
  std::vector<declared_constant> members = slot_members(l, s);
  for (std::size_t m = 0; m < members.size(); ++m) members[m].value = fmt::format("{{{}}}", places[m]);
  std::vector<std::string> words;
  for (const families::group& g : of.groups_of(members)) {
    std::string value = "{" + g.all.front()->value + "}";
    if (!g.count.empty()) {
      value = rule_text(g, capture);
      if (value.empty()) value = values_text(g);
    }
    words.push_back("." + g.name + " = " + value);
  }
  return wrap(words, ",", "    ");
}

/// The rule that places slot after slot; empty if there is none.
std::string slots_rule(const lowered& l, const stage_plan& s, const families& of) {
  std::vector<declared_constant> slots;
  for (const std::vector<std::size_t>& each : s.slots)
    slots.push_back({"", "slot", slot_text(l, s, each, of, "="), ""});
  families::group all{"slots", "slot", {0}, {static_cast<long>(slots.size())}, {}, {"m"}};
  for (const declared_constant& each : slots) all.all.push_back(&each);
  const auto value = value_rule(all);
  if (!value) return "";
  return fmt::format("constexpr auto slots = each<0, {}>([](std::size_t m) {{\n  return slot{{{}}};\n}});\n",
                     slots.size(), indented(*value, 2).substr(2));
}

std::string slots_text(const lowered& l, const stage_plan& s, const families& of) {
  constexpr std::size_t fewest_for_rule = 3;
  if (s.slots.size() >= fewest_for_rule)
    if (std::string rule = slots_rule(l, s, of); !rule.empty()) return rule;
  std::string out = "constexpr slot slots[]{\n";
  for (const std::vector<std::size_t>& slot : s.slots)
    out += indented("{" + slot_text(l, s, slot, of, "") + "},", 4) + "\n";
  return out + "};\n";
}

/// A parameter of a stage's function. `input` is the index of an input of the step.
struct stage_formal {
  formal as;
  std::string name;
  int input = -1;
};

/// The names that a stage's function has around a layer's call.
layer_surroundings stage_names(const pipeline_rank& r) {
  std::vector<std::string> inputs;
  for (const placed_input& i : r.inputs) inputs.push_back(text_of_input(i.is).formal);
  return {"on", "during", "beside", "", "s", "work", inputs, "routers", "x", "y", "dy", "dx", "into", "into"};
}

/// The possible parameters of a stage's function after lane and slot, in this order, with the names of `in`.
std::vector<stage_formal> stage_formals(const layer_surroundings& in) {
  std::vector<stage_formal> all{
      {formal::during, in.during}, {formal::beside, in.beside}, {formal::work, in.work}};
  for (std::size_t i = 0; i < in.inputs.size(); ++i)
    all.push_back({formal::input, in.inputs[i], static_cast<int>(i)});
  const stage_formal others[]{
      {formal::routers, in.routers}, {formal::x, in.x},   {formal::y, in.y},
      {formal::dy, in.dy},           {formal::dx, in.dx}, {formal::accumulate, in.accumulate}};
  all.insert(all.end(), std::begin(others), std::end(others));
  return all;
}

std::string type_of(const lowered& l, const pipeline_rank& r, const stage_plan& s,
                    const stage_formal& parameter) {
  const formal f = parameter.as;
  if (f == formal::during) return "step";
  if (f == formal::beside) return "const lane&";
  if (f == formal::work) return "at";
  if (f == formal::input) return text_of_input(r.inputs[static_cast<std::size_t>(parameter.input)].is).type;
  if (f == formal::accumulate) return "store";
  if (f == formal::routers) return "router_sums";
  const bool at_front = f == formal::x || f == formal::dx;
  return layer_namespace(l.bodies[(at_front ? s.layers.front() : s.layers.back()).kind]) +
         (at_front ? "::input" : "::output");
}

bool takes(const pipeline_rank& r, const stage_plan& s, phase p, const stage_formal& parameter) {
  const formal f = parameter.as;
  if (f == formal::work) return r.overlaps;
  for (int layer = 0; layer < static_cast<int>(s.layers.size()); ++layer)
    for (const phase each : phases_of(s, p, layer))
      for (const actual& a : s.calls[static_cast<int>(each)][layer].given)
        if (f == formal::accumulate ? a.from == source::adds || a.from == source::adds_kept
                                    : a.as == f && (f != formal::input || a.index == parameter.input) &&
                                          (a.from == source::boundary || a.from == source::rank))
          return true;
  return false;
}

stage_function function_of(const lowered& l, const pipeline_rank& r, const stage_plan& s, phase p) {
  const layer_surroundings names = stage_names(r);
  stage_function made;
  std::string body;
  const int n = static_cast<int>(s.layers.size());
  for (int i = 0; i < n; ++i) {
    const int layer = p == phase::forward ? i : n - 1 - i;
    for (const phase each : phases_of(s, p, layer)) {
      if (l.bodies[s.layers[layer].kind].calls(each).empty()) continue;
      made.body.push_back({layer_call_text(l, r, s, layer, each, names)});
      body += made.body.back().text + "\n";
    }
  }
  std::vector<std::string> parameters{"const lane& on", "const slot& s"};
  for (const stage_formal& f : stage_formals(names))
    if (takes(r, s, p, f)) parameters.push_back(type_of(l, r, s, f) + " " + f.name);
  for (std::string& q : parameters)  // an unused parameter has no name
    if (const std::size_t space = q.rfind(' '); !has_word(body, q.substr(space + 1))) q.resize(space);
  made.head = call("inline void " + phase_name(p), parameters, 0, " {");
  return made;
}

/// An argument of a layer's call that comes from the rank, the step or the lane.
std::string text_of_rank(const pipeline_rank& r, const actual& a, const layer_surroundings& in) {
  switch (a.as) {
    case formal::during:
      return in.during;
    case formal::beside:
      return in.beside;
    case formal::work:
      return in.work;
    case formal::rope:
      return rope_name(static_cast<std::size_t>(a.index), r.arena.ropes.size());
    case formal::input:
      return in.inputs[static_cast<std::size_t>(a.index)];
    case formal::routers:
      return in.routers;
    default:
      return "loss";
  }
}

/// An argument of a layer's call, in the names around the call.
std::string text_of(const pipeline_rank& r, const stage_plan& s, const layer_call& c, const actual& a,
                    const layer_surroundings& in) {
  switch (a.from) {
    case source::parameters:
      return in.scope + (a.as == formal::gradients ? "d_" : "") + s.layers[c.layer].id;
    case source::slot:
      return in.slot + "." + kept_name(s, a.what, a.index);
    case source::boundary:
      if (a.what == kept::gradient) return a.index ? in.dy : in.dx;
      return a.index ? in.y : in.x;
    case source::chain:
      return in.scope + kept_name(s, kept::output_gradient, a.as == formal::dy ? c.layer : c.layer - 1);
    case source::adds:
      return in.accumulate;
    case source::adds_kept:
      return in.accumulate_kept;
    case source::always:
      return "store::add";
    case source::rank:
      break;
  }
  return text_of_rank(r, a, in);
}

}  // namespace

std::string layer_call_text(const lowered& l, const pipeline_rank& r, const stage_plan& s, int layer, phase p,
                            const layer_surroundings& in) {
  const layer_call& c = s.calls[static_cast<int>(p)][layer];
  std::vector<std::string> arguments{in.lane};
  for (const actual& a : c.given) arguments.push_back(text_of(r, s, c, a, in));
  return call(layer_namespace(l.bodies[s.layers[layer].kind]) + "::" + phase_name(p), arguments, 2);
}

std::string stage_call_text(const pipeline_rank& r, const item& i, phase p, const layer_surroundings& in) {
  const stage_plan& s = r.stages[i.stage];
  std::vector<std::string> arguments{in.lane, fmt::format("{}slots[{}]", in.scope, i.slot)};
  for (const stage_formal& f : stage_formals(in))
    if (takes(r, s, p, f)) arguments.push_back(f.name);
  return call(in.scope + phase_name(p), arguments, 2);
}

std::vector<declared_constant> stage_constants(const lowered& l, const stage_plan& s) {
  std::vector<declared_constant> all;
  add_parameters(l, s, all);
  add_chained(l, s, all);
  return all;
}

std::vector<declared_constant> slot_members(const lowered& l, const stage_plan& s) {
  std::vector<declared_constant> all;
  for (const auto& [what, layer] : s.members)
    all.push_back({"." + kept_name(s, what, layer),
                   fmt::format(".{}::{}", layer_namespace(l.bodies[s.layers[layer].kind]), type_name(what)),
                   {},
                   {}});
  return all;
}

std::vector<stage_function> stage_functions(const lowered& l, const pipeline_rank& r, const stage_plan& s) {
  std::vector<phase> phases{phase::forward};
  if (repeats_first(l, s)) phases.push_back(phase::recompute);
  if (l.uses(action_kind::B, s.stage)) phases.push_back(phase::backward);
  if (l.uses(action_kind::I, s.stage)) {
    phases.push_back(phase::backward_input);
    phases.push_back(phase::backward_weight);
  }
  std::vector<stage_function> all;
  for (const phase p : phases) all.push_back(function_of(l, r, s, p));
  return all;
}

std::string emit_stage(const lowered& l, const pipeline_rank& r, const stage_plan& s,
                       const rolled_rank& text) {
  std::string contents;
  for (const layer_use& use : s.layers) contents += (contents.empty() ? "" : ", ") + use.name;
  std::size_t bytes = 0;
  for (const auto& [what, layer] : s.members)
    bytes += aligned(bytes_of(l.bodies[s.layers[layer].kind], what));
  std::string functions;
  for (const rolled_function& f : text.functions[static_cast<std::size_t>(&s - r.stages.data())])
    functions += (functions.empty() ? "" : "\n") + function_text(f, text.of);
  return fill(templates::program_stage_hpp, {{"version", version},
                                             {"plan", std::string(l.plan->name)},
                                             {"plan_id", identifier(l.plan->name)},
                                             {"pipeline", std::to_string(r.index)},
                                             {"stage", s.name},
                                             {"contents", contents},
                                             {"parameters", declare(stage_constants(l, s), text.of)},
                                             {"slot_size", readable_bytes(bytes)},
                                             {"slot_members", members_text(slot_members(l, s), text.of)},
                                             {"slots", slots_text(l, s, text.of)},
                                             {"functions", functions}});
}

}  // namespace rankc::codegen
