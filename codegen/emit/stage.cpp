// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <rankc/templates.hpp>
#include <rankc/version.hpp>

#include "../passes/input_text.hpp"
#include "emit.hpp"

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

/// "block_layer::parameters<real> layers_2{.own = {weights[0]}}": a layer's weights, or their gradients, in
/// their regions.
std::string parameters_of(const lowered& l, const layer_use& use, bool gradients) {
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
  if (pieces.empty()) return "";
  pieces.front() = fmt::format("constexpr {}::parameters<{}> {}{}{{", layer_namespace(b),
                               gradients ? "wide" : "real", gradients ? "d_" : "", use.id) +
                   pieces.front();
  return wrap(pieces, ",", "    ", 0) + "};\n";
}

std::string parameters(const lowered& l, const stage_plan& s) {
  std::string out;
  for (const layer_use& use : s.layers) {
    if (l.bodies[use.kind].parameters.empty()) continue;
    out += parameters_of(l, use, false);
    if (l.trains()) out += parameters_of(l, use, true);
  }
  return out;
}

/// The gradients between the layers of a stage that are not in its slots.
std::string chained(const lowered& l, const stage_plan& s) {
  std::string out;
  if (!l.trains() || l.splits_backward()) return out;
  for (std::size_t layer = 0; layer + 1 < s.layers.size(); ++layer)
    out += fmt::format("constexpr {}::output {}{{chain[{}]}};\n",
                       layer_namespace(l.bodies[s.layers[layer].kind]),
                       kept_name(s, kept::output_gradient, static_cast<int>(layer)), layer % 2);
  return out;
}

std::string_view type_name(kept what) {
  if (what == kept::saved) return "saved";
  return what == kept::halfway ? "halfway" : "output";
}

std::string slot_members(const lowered& l, const stage_plan& s) {
  std::string out;
  for (const auto& [what, layer] : s.members) {
    out += fmt::format("{}::{} {};\n", layer_namespace(l.bodies[s.layers[layer].kind]), type_name(what),
                       kept_name(s, what, layer));
  }
  return out;
}

std::string slot_places(const stage_plan& s) {
  std::string out;
  for (const std::vector<std::size_t>& slot : s.slots) {
    std::vector<std::string> words;
    for (std::size_t m = 0; m < slot.size(); ++m)
      words.push_back(
          fmt::format(".{} = {{{{{}}}}}", kept_name(s, s.members[m].what, s.members[m].layer), slot[m]));
    out += "{" + wrap(words, ",", "    ") + "},\n";
  }
  return out;
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

std::string function(const lowered& l, const pipeline_rank& r, const stage_plan& s, phase p) {
  const layer_surroundings names = stage_names(r);
  std::string body;
  const int n = static_cast<int>(s.layers.size());
  for (int i = 0; i < n; ++i) {
    const int layer = p == phase::forward ? i : n - 1 - i;
    for (const phase each : phases_of(s, p, layer))
      if (!l.bodies[s.layers[layer].kind].calls(each).empty())
        body += layer_call_text(l, r, s, layer, each, names);
  }
  std::vector<std::string> parameters{"const lane& on", "const slot& s"};
  for (const stage_formal& f : stage_formals(names))
    if (takes(r, s, p, f)) parameters.push_back(type_of(l, r, s, f) + " " + f.name);
  for (std::string& q : parameters)  // an unused parameter has no name
    if (const std::size_t space = q.rfind(' '); !has_word(body, q.substr(space + 1))) q.resize(space);
  return call("inline void " + phase_name(p), parameters, 0, " {\n") + body + "}\n";
}

std::string functions(const lowered& l, const pipeline_rank& r, const stage_plan& s) {
  std::string out = function(l, r, s, phase::forward);
  if (repeats_first(l, s)) out += "\n" + function(l, r, s, phase::recompute);
  if (l.uses(action_kind::B, s.stage)) out += "\n" + function(l, r, s, phase::backward);
  if (l.uses(action_kind::I, s.stage))
    out += "\n" + function(l, r, s, phase::backward_input) + "\n" + function(l, r, s, phase::backward_weight);
  return out;
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
  std::string line =
      "  " + call(layer_namespace(l.bodies[s.layers[layer].kind]) + "::" + phase_name(p), arguments, 2) +
      "\n";
  for (std::size_t at = 0; (at = line.find("\n    ", at)) != line.npos; at += 3) line.insert(at + 1, "  ");
  return line;
}

std::string stage_call_text(const pipeline_rank& r, const item& i, phase p, const layer_surroundings& in) {
  const stage_plan& s = r.stages[i.stage];
  std::vector<std::string> arguments{in.lane, fmt::format("{}slots[{}]", in.scope, i.slot)};
  for (const stage_formal& f : stage_formals(in))
    if (takes(r, s, p, f)) arguments.push_back(f.name);
  return call(in.scope + phase_name(p), arguments, 2);
}

std::string emit_stage(const lowered& l, const pipeline_rank& r, const stage_plan& s) {
  std::string contents;
  for (const layer_use& use : s.layers) contents += (contents.empty() ? "" : ", ") + use.name;
  std::size_t bytes = 0;
  for (const auto& [what, layer] : s.members)
    bytes += aligned(bytes_of(l.bodies[s.layers[layer].kind], what));
  return fill(templates::program_stage_hpp, {{"version", version},
                                             {"plan", std::string(l.plan->name)},
                                             {"plan_id", identifier(l.plan->name)},
                                             {"pipeline", std::to_string(r.index)},
                                             {"stage", s.name},
                                             {"contents", contents},
                                             {"parameters", parameters(l, s) + chained(l, s)},
                                             {"slot_size", readable_bytes(bytes)},
                                             {"slot_members", slot_members(l, s)},
                                             {"slot_places", slot_places(s)},
                                             {"functions", functions(l, r, s)}});
}

}  // namespace rankc::codegen
