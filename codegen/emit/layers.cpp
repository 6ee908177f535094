// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include <rankc/ops/memory.hpp>
#include <rankc/templates.hpp>
#include <rankc/version.hpp>

#include "../passes/roles.hpp"
#include "../passes/input_text.hpp"
#include "emit.hpp"

namespace rankc::codegen {

namespace {

/// "{.window = 8, .scale = 0.25}"
std::string setting_text(const attention_setting& s) {
  std::vector<std::string> members;
  s.each_set([&](std::string_view name, double x) {
    members.push_back(name == "causal" ? ".causal = false" : fmt::format(".{} = {}", name, x));
  });
  return fmt::format("{{{}}}", fmt::join(members, ", "));
}

/// Emits the text of one layer.
class layer_text {
 public:
  layer_text(const lowered& l, const body& b, const group_layout& g, const kernel_names& kernels)
      : l_(l), b_(b), groups_(g), kernels_(kernels), types_(b) {}

  std::string run() {
    const std::string functions = all_functions(), types = aliases() + parameters() + kept();
    return heading() + "namespace " + layer_namespace(b_) + " {\n\n" + constants(types + functions) + types +
           functions + "}  // namespace " + layer_namespace(b_) + "\n";
  }

 private:
  std::string heading() {
    std::size_t elements = 0;
    for (const layer_parameter& p : b_.parameters) elements += p.elements();
    return fmt::format("// ---- {}: {} parameters per rank, {} kept per microbatch\n", b_.name, elements,
                       readable_bytes(b_.saved_bytes));
  }

  std::string constants(const std::string& text) {
    std::vector<std::string> words;
    for (const constant& c : b_.names.constants)
      if (has_word(text, c.name)) words.push_back(fmt::format("{} = {}", c.name, c.value));
    return words.empty() ? "" : "constexpr std::size_t " + wrap(words, ",", "    ") + ";\n\n";
  }

  /// The types of the values that layers pass to each other.
  std::string aliases() {
    std::string out;
    for (const auto& [where, name] : {std::pair(space::x, "input"), std::pair(space::y, "output")})
      if (const std::string type = type_between(where); !type.empty())
        out += fmt::format("using {} = {};\n", name, type);
    return out.empty() ? "" : out + "\n";
  }

  std::string type_between(space where) {
    std::string rows, statistics;
    std::size_t offset = 0;
    for (const value& v : b_.values) {
      if (v.where != where) continue;
      (v.offset > 0 ? statistics : rows) = types_.of(v);
      offset = std::max(offset, v.offset);
    }
    return statistics.empty() ? rows : fmt::format("stream<{}, {}, {}>", rows, statistics, offset);
  }

  static constexpr std::string_view without_gradients = "{}";
  std::string parameters() {
    if (b_.parameters.empty()) return "";
    std::string out =
        "/// Weights as T, or their gradients: in pieces that are summed over ranks alike.\n"
        "template <class T>\nstruct parameters {\n";
    for (int g = 0; g < n_groups; ++g)
      if (groups_.size[g])
        out += fmt::format("  vector<T, {}> {}{};\n", groups_.size[g], group_names[g],
                           g == static_cast<int>(group::frozen) ? without_gradients : "");
    for (int shared : groups_.shared) {
      const auto p = static_cast<std::size_t>(shared);
      out += fmt::format("  {} {}{};\n", types_.of_parameter(p), b_.names.parameters[p],
                         b_.parameters[p].trainable ? "" : without_gradients);
    }
    for (std::size_t i = 0; i < b_.parameters.size(); ++i)
      if (groups_.of_parameter[i].in != group::shared)
        out += member(types_.of_parameter(i), b_.names.parameters[i], i);
    for (const auto& [first, packed] : types_.packed) out += member(packed.type, packed.name, first);
    return out + "};\n\n";
  }
  std::string member(const std::string& type, const std::string& name, std::size_t parameter) {
    const auto [in, offset] = groups_.of_parameter[parameter];
    return fmt::format("  {} {}{{{}[{}]}};\n", type, name, group_names[static_cast<int>(in)], offset);
  }

  std::string kept() {
    return kept_in(space::saved, "saved", "What forward keeps for backward") +
           kept_in(space::halfway, "halfway", "What the first half of backward keeps for the second");
  }
  std::string kept_in(space where, const std::string& name, const std::string& what) {
    std::string members;
    for (std::size_t i = 0; i < b_.values.size(); ++i)
      if (const value& v = b_.values[i]; v.where == where)
        members += fmt::format("  {} {}{{base + {}}};  // {}, {}\n", types_.of(v), b_.names.values[i],
                               v.offset, readable_bytes(v.bytes),
                               kernels_name(b_.backward[static_cast<std::size_t>(v.backward.last)]));
    return members.empty()
               ? ""
               : fmt::format("/// {}: when it is last read there.\nstruct {} {{\n  at base;\n{}}};\n\n", what,
                             name, members);
  }
  std::string kernels_name(const node& n) const {
    if (n.row->communicates()) return std::string(b_.function(n));
    return n.is(ops::clear) ? std::string(n.row->name) : kernels_.at(n.row);
  }

  // ---- operands
  std::string name(const port_use& u) const {
    const value& v = b_.values[static_cast<std::size_t>(u.at.value)];
    const bool of_gradients = v.where == space::gradient;
    switch (v.where) {
      case space::x:
        return "x" + part_of(v, space::x);
      case space::y:
        return "y" + part_of(v, space::y);
      case space::dy:
        return "dy" + part_of(v, space::y);
      case space::dx:
        return "dx" + part_of(v, space::x);
      case space::saved:
        return "s." + made_name(u, v);
      case space::halfway:
        return "mid." + made_name(u, v);
      case space::temp:
        return made_name(u, v);
      case space::weight:
      case space::gradient:
        return (of_gradients ? "dw." : "w.") +
               (u.run < 0 ? b_.names.parameters[v.of] : types_.packed.at(v.of).name);
      case space::rope:
        return rope_name(static_cast<std::size_t>(v.of), b_.ropes.size());
      case space::input:
        return input_name(v.of);
      case space::loss:
        return "loss";
      case space::routers:
        return "routers";
    }
    return "";
  }
  std::string input_name(int index) const {
    return text_of_input(l_.plan->inputs[static_cast<std::size_t>(index)]).formal;
  }
  /// The part of a value between layers: the rows, or the carried value behind them.
  std::string part_of(const value& v, space like) const {
    if (bytes_carried(b_, like) == 0) return "";
    return v.offset > 0 ? ".statistics" : ".rows";
  }
  std::string made_name(const port_use& u, const value& v) const {
    return b_.names.values[u.at.value] + columns(u, v);
  }
  /// The columns of packed rows that a port uses.
  std::string columns(const port_use& u, const value& v) const {
    if (u.shape < 0 || v.shape < 0 || b_.shape(v).ndim < 2) return "";
    const local_dim &part = b_.shape(u).dims[1], &whole = b_.shape(v).dims[1];
    if (part.width() == whole.width()) return "";
    return fmt::format(".columns<{}>({})", width_text(b_, part), u.at.offset / b_.setting.bytes(v.holds));
  }

  // ---- statements
  std::string temporaries(phase p) {
    std::string out;
    std::vector<int> seen;
    const std::span<const node> list = b_.calls(p);
    for (const node& n : list)
      for (const port_use& u : n.ports) {
        const value& v = b_.values[static_cast<std::size_t>(u.at.value)];
        if (v.where != space::temp || std::find(seen.begin(), seen.end(), u.at.value) != seen.end()) continue;
        seen.push_back(u.at.value);
        out +=
            fmt::format("  const {} {}{{work + {}}};  // {}, {}\n", types_.of(v), b_.names.values[u.at.value],
                        v.offset, readable_bytes(v.bytes), lives(list, u.at.value));
      }
    return out;
  }
  /// The first and the last kernel that touch a value.
  std::string lives(std::span<const node> list, int of) const {
    const auto touches = [&](const node& n) { return n.mentions(of); };
    const auto first = std::find_if(list.begin(), list.end(), touches);
    const auto last = std::find_if(list.rbegin(), list.rend(), touches);
    return &*first == &*last ? kernels_name(*first) : kernels_name(*first) + " .. " + kernels_name(*last);
  }

  std::string into_name(int flag) const {
    if (flag == flag_of_experts) return "into_experts";
    return flag == flag_of_others ? "into" : "into_" + b_.names.parameters[static_cast<std::size_t>(flag)];
  }
  std::string into(const node& n) const {
    switch (n.accumulate) {
      case accumulation::add:
        return "store::add";
      case accumulation::after_first:
        return into_name(find_flag(b_, n));
      default:
        return "store::overwrite";
    }
  }

  /// The number of elements of a gradient, including its padding if it has any.
  std::string count_of_cleared(const node& n) const {
    const layer_parameter& p =
        b_.parameters[static_cast<std::size_t>(b_.values[static_cast<std::size_t>(n.ports[0].at.value)].of)];
    return p.has_padding() ? std::to_string(p.stored()) : name(n.ports[0]) + ".count";
  }

  std::string statement(const node& n) {
    if (n.is(ops::clear))  // in the first microbatch alone
      return fmt::format("  if ({} == store::overwrite) clear<wide>(on, {}.where, {});\n", into(n),
                         name(n.ports[0]), count_of_cleared(n));
    const std::string order = std::string(n.joins ? "  follow(on, beside);\n" : "") +
                              (n.is_beside() ? "  follow(beside, on);\n" : "");
    const bool always = n.only == in_step::any;
    return order + condition(n) + "  " +
           structure(fmt::format("run({}, ", n.is_beside() ? "beside" : "on"), n, ");", always ? 2 : 4) +
           "\n";
  }
  /// The line that restricts a node to one kind of step; empty if it runs in all.
  static std::string condition(const node& n) {
    if (n.only == in_step::any) return "";
    return fmt::format("  if (during == step::{})\n  ", n.only == in_step::training ? "train" : "evaluate");
  }
  /// The call that runs the first and the last node at once, overlapped with the nodes between them. It waits
  /// first for everything that either of the two waits for.
  std::string statement_by_rows(std::span<const node> all) {
    const node &earlier = all.front(), &later = all.back();
    const auto argument = [&](const std::string& before, const node& n, const std::string& after,
                              int column) {
      return n.row->communicates()
                 ? structure(before, n, after, column)
                 : structure(before + "[&](auto part) { return ", n, "; }" + after, column, true);
    };
    std::string out = earlier.joins || later.joins ? "  follow(on, beside);\n" : "";
    out += "  " + argument("run_by_rows(on, ", earlier, ",", 2) + "\n      " +
           argument("", later, all.size() > 2 ? "," : ");", 6) + "\n";
    for (const node& meanwhile : all.subspan(1, all.size() - 2))
      out += "      " + structure("", meanwhile, ");", 6) + "\n";
    return out;
  }
  /// A call with its operands. `of_part`: the call is for a part of the rows.
  std::string structure(const std::string& before, const node& n, const std::string& after, int column,
                        bool of_part = false) {
    std::vector<std::string> members;
    const auto give = [&](std::string_view member, const std::string& what) {
      members.push_back(fmt::format(".{} = {}", member, what));
    };
    if (n.row->communicates()) communicate(n, give);
    else compute(n, give, of_part);
    members.front() = before + kernels_name(n) + "{" + members.front();
    members.back() += "}" + after;
    return wrap(members, ",", std::string(static_cast<std::size_t>(column) + 4, ' '), column);
  }
  void compute(const node& n, auto give, bool of_part) {
    const kernel_members m = members_of(*n.row, l_.target, !n.attention.is_plain());
    const auto part = [&](bool has_rows, const std::string& of) {
      return of_part && has_rows ? "part(" + of + ")" : of;
    };
    for (std::size_t p = 0; p < n.ports.size(); ++p)
      give(m.operands[p], part(rankc::lowering::has_token_rows(n.row->ports[p]), name(n.ports[p])));
    for (const auto& [symbol, member] : m.given) give(member, "size<" + size_of(b_, n, symbol).text + ">");
    for (const auto& [symbol, member] : m.run_time) give(member, size_of(b_, n, symbol).text);
    if (!m.setting.empty()) give(m.setting, setting_text(n.attention));
    if (!m.into.empty() && !(m.may_add && n.accumulate == accumulation::overwrite))
      give(m.into, part(n.sums(), into(n)));
  }
  void communicate(const node& n, auto give) {
    const std::string message = b_.message(n);
    const bool shifts = n.row->is_shift();
    give("over", std::string("over::") + role_name(role_over(n.over)));
    const bool in_place =
        n.row->converts == conversion::all_reduce || n.row->converts == conversion::all_reduce_max;
    give(in_place ? "data" : "to", name(n.ports[0]));
    if (shifts) {
      give("second_to", name(n.ports[1]));
      give("from", name(n.ports[2]));
      give("second_from", name(n.ports[3]));
    }
    if (n.row->converts == conversion::all_to_all || n.slab > 0) give("scratch", name(n.ports[1]));
    if (!in_place && !shifts) give("from", name(n.ports[n.slab > 0 ? 2 : n.ports.size() - 1]));
    if (n.slab > 0 && n.ports.size() > 3) give("offsets", name(n.ports[3]));
    if (n.row->converts == conversion::all_to_all) give("seq", "size<" + size_of(b_, n, "seq").text + ">");
    if (n.slab > 0) {
      give("ranks", fmt::format("size<{}>", rankc::name(n.over)));
      give("slab", fmt::format("size<{}>", n.slab));
    }
    give("site", fmt::format("{{{}, \"{}\"}}", l_.find_message(message), message));
    if (n.row->converts == conversion::all_reduce_max) give("how", "reduction::max");
  }

  // ---- functions
  /// The parameters of a phase. Without types, the arguments of a call from a scope with the same names.
  std::vector<std::string> formals(phase p, bool with_types) const {
    const function_shape f = shape_of(b_, p);
    std::vector<std::string> out;
    const auto take = [&](bool is, const std::string& type, const std::string& name) {
      if (is) out.push_back(with_types ? type + " " + name : name);
    };
    const auto type_at = [&](space where, int of = 0) {
      const auto at = std::find_if(b_.values.begin(), b_.values.end(),
                                   [&](const value& v) { return v.where == where && v.of == of; });
      return at == b_.values.end() ? "" : types_.of(*at);
    };
    const auto type_of_input = [&](int i) {
      const named_input& is = l_.plan->inputs[static_cast<std::size_t>(i)];
      return is.computed ? text_of_input(is).type : type_at(space::input, i);
    };
    take(true, "const lane&", "on");
    take(f.during, "step", "during");
    take(f.beside, "const lane&", "beside");
    take(f.weights, "const parameters<real>&", "w");
    take(f.gradients, "const parameters<wide>&", "dw");
    take(f.saved, "const saved&", "s");
    take(f.halfway, "const halfway&", "mid");
    take(f.work, "at", "work");
    for (int t : f.ropes)
      take(true,
           fmt::format("matrix<wide, {}, {}>", b_.ropes[static_cast<std::size_t>(t)].positions,
                       b_.ropes[static_cast<std::size_t>(t)].dim),
           rope_name(static_cast<std::size_t>(t), b_.ropes.size()));
    for (int i : f.inputs) take(true, type_of_input(i), input_name(i));
    take(f.x, "input", "x");
    take(f.y, "output", "y");
    take(f.loss, "vector<wide, 1>", "loss");
    take(f.routers, type_at(space::routers), "routers");
    take(f.dy, "output", "dy");
    take(f.dx, "input", "dx");
    take(f.accumulate, "store", "into");
    for (int flag : f.accumulate_apart) take(true, "store", into_name(flag));
    return out;
  }

  std::string function(phase p) {
    const std::string name(phase_names[static_cast<int>(p)]);
    std::string out = call("inline void " + name, formals(p, true), 0, " {\n");
    if (p == phase::backward && l_.splits_backward()) {
      for (const phase half : {phase::backward_input, phase::backward_weight})
        if (!b_.calls(half).empty())
          out +=
              "  " + call(std::string(phase_names[static_cast<int>(half)]), formals(half, false), 2) + "\n";
      return out + "}\n";
    }
    const std::string places = temporaries(p);
    out += places.empty() ? "" : "  // Size, and the kernels that write and read it:\n" + places;
    const auto list = b_.calls(p);
    for (std::size_t i = 0; i < list.size(); ++i) {
      const std::size_t last = rankc::lowering::find_partner(list, i);
      out += last > i ? statement_by_rows(list.subspan(i, last - i + 1)) : statement(list[i]);
      i = last;
    }
    return out + "}\n";
  }
  std::string all_functions() {
    std::string out;
    for (const phase p :
         {phase::forward, phase::recompute, phase::backward_input, phase::backward_weight, phase::backward})
      if (!b_.calls(p).empty() && (p != phase::backward || l_.uses(action_kind::B)))
        out += function(p) + "\n";
    return out;
  }

  const lowered& l_;
  const body& b_;
  const group_layout& groups_;
  const kernel_names& kernels_;
  const tensor_types types_;
};

}  // namespace

std::string rope_name(std::size_t index, std::size_t count) {
  return count > 1 ? fmt::format("rope_table_{}", index) : "rope_table";
}

std::string emit_layers(const lowered& l) {
  const kernel_names kernels = name_kernels(l);
  std::string layers;
  for (std::size_t i = 0; i < l.bodies.size(); ++i)
    layers += layer_text(l, l.bodies[i], l.gathered_groups[i], kernels).run() + "\n";
  return fill(templates::program_layers_hpp, {{"version", version},
                                              {"plan", std::string(l.plan->name)},
                                              {"plan_id", identifier(l.plan->name)},
                                              {"layers", layers}});
}

}  // namespace rankc::codegen
