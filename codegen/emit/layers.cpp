// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include <rankc/ops/memory.hpp>
#include <rankc/templates.hpp>
#include <rankc/version.hpp>

#include "emit.hpp"

namespace rankc::codegen {

namespace {

constexpr std::string_view group_names[]{"own", "over_tp", "shared"};

/// Whether a kernel sums into a gradient that another layer shares.
bool sums_into_shared(const body& b, const kernel& k) {
  return std::any_of(k.writes.begin(), k.writes.end(), [&](const operand& o) { return o.where == space::gradient && b.parameters[o.index].shared; });
}

/// One layer's text.
class layer_text {
 public:
  layer_text(const lowered& l, const body& b, const group_layout& g) : l_(l), b_(b), groups_(g) {}

  std::string run() {
    std::string out = heading();
    out += "namespace " + layer_namespace(b_) + " {\n\n" + constants() + "\n" + parameters() + saved();
    for (const phase p : {phase::forward, phase::backward_input, phase::backward_weight, phase::backward})
      if (!b_.calls(p).empty() && (p != phase::backward || l_.uses(action_kind::B))) out += function(p) + "\n";
    out.pop_back();
    return out + "\n}  // namespace " + layer_namespace(b_) + "\n";
  }

 private:
  std::string heading() {
    std::size_t elements = 0;
    for (const layer_parameter& p : b_.parameters) elements += p.elements();
    return fmt::format("// ---- {}: {} parameters per rank, {} kept per microbatch\n", b_.name, elements,
                       readable_bytes(b_.saved_bytes));
  }

  std::string constants() {
    std::vector<std::string> words;
    for (const constant& c : b_.constants)
      if (is_printed(c.name)) words.push_back(fmt::format("{} = {}", c.name, c.value));
    return words.empty() ? "" : "constexpr std::size_t " + wrap(words, ",", "    ") + ";\n";
  }

  bool is_printed(const std::string& constant_name) const {
    for (const auto* list : {&b_.forward, &b_.backward})
      for (const kernel& k : *list) {
        std::vector<const extent*> sizes;
        for (const extent& e : k.sizes) sizes.push_back(&e);
        if (k.collective_) sizes.push_back(&k.collective_->count);
        for (const extent* e : sizes)
          if (has_word(e->text, constant_name)) return true;
      }
    return false;
  }

  std::string parameters() {
    if (b_.parameters.empty()) return "";
    std::vector<std::string> names;
    for (const layer_parameter& p : b_.parameters) names.push_back(p.id);
    std::string out = "/// Where each parameter starts: in the weights, and alike in the gradients and moments.\nstruct parameters {\n  at " +
                      wrap(names, ",", "      ") + ";\n};\n";
    std::vector<std::string> arguments{"at region"};
    if (l_.has_working_copy()) arguments.push_back("std::size_t size");
    const std::string size = l_.has_working_copy() ? "size" : "sizeof(real)";
    for (int g = 0; g < n_groups; ++g)
      if (groups_.size[g]) arguments.push_back("std::size_t " + std::string(group_names[g]));
    out += call("constexpr parameters place", arguments, 0, "") + " {\n  return {\n";
    for (std::size_t i = 0; i < b_.parameters.size(); ++i) {
      const layer_parameter& p = b_.parameters[i];
      const auto [in, offset] = groups_.of_parameter[i];
      const std::string shape = p.ndim > 1 ? fmt::format("{} x {}", p.rows, p.cols) : std::to_string(p.rows);
      out += fmt::format("      .{} = region + ({} + {}) * {},  // {}\n", p.id,
                         group_names[static_cast<int>(in)], offset, size, shape);
    }
    return out + "  };\n}\n\n";
  }

  bool is_saved(const buffer& b) const {
    for (const auto* list : {&b_.forward, &b_.backward})
      for (const kernel& k : *list)
        for (const auto* side : {&k.writes, &k.reads})
          for (const operand& o : *side)
            if (o.where == space::saved && &b_.buffers[o.index] == &b) return true;
    return false;
  }

  std::string saved() {
    if (b_.saved_bytes == 0) return "";
    std::vector<std::string> names;
    std::string places;
    for (const buffer& b : b_.buffers) {
      if (!is_saved(b)) continue;
      names.push_back(b.name);
      places += fmt::format("      .{} = slot + {},  // {}\n", b.name, b.offset, b.shape);
    }
    return std::string("/// What forward keeps for backward") + (l_.splits_backward() ? ", and the first half of backward for the second" : "") +
           ".\nstruct saved {\n  at " + wrap(names, ",", "      ") +
           ";\n};\nconstexpr saved keep(at slot) {\n  return {\n" + places + "  };\n}\n\n";
  }

  std::string name(const operand& o) const {
    switch (o.where) {
      case space::x: return "x";
      case space::y: return "y";
      case space::dy: return "dy";
      case space::dx: return "dx";
      case space::saved:
      case space::temp:
        return (o.where == space::saved ? "s." : "") + b_.buffers[o.index].name + (o.offset ? " + " + std::to_string(o.offset) : "");
      case space::weight: return "w." + b_.parameters[o.index].id;
      case space::gradient: return "dw." + b_.parameters[o.index].id;
      case space::rope: return rope_name(static_cast<std::size_t>(o.index), b_.ropes.size());
      case space::tokens: return "ids";
      case space::targets: return "targets";
      case space::loss: return "loss";
    }
    return "";
  }

  std::string temporaries(const std::vector<kernel>& list) {
    std::vector<std::string> words, seen;
    for (const kernel& k : list)
      for (const auto* side : {&k.writes, &k.reads})
        for (const operand& o : *side) {
          if (o.where != space::temp) continue;
          const std::string& n = b_.buffers[o.index].name;
          if (std::find(seen.begin(), seen.end(), n) != seen.end()) continue;
          seen.push_back(n);
          const std::size_t offset = b_.buffers[o.index].offset;
          words.push_back(offset ? fmt::format("{} = work + {}", n, offset) : n + " = work");
        }
    return words.empty() ? "" : "  const at " + wrap(words, ",", "      ") + ";\n";
  }

  /// In the first microbatch alone.
  std::string clear(const kernel& k) {
    return fmt::format("  if (!{}) clear<{}>(on, {}, {});\n", sums_into_shared(b_, k) ? "accumulate_shared" : "accumulate", wide_name(l_),
                       name(k.writes[0]), k.sizes[0].text);
  }

  std::string statement(const kernel& k) {
    if (k.row == &ops::clear) return clear(k);
    std::vector<std::string> arguments{"on"};
    if (k.collective_) {
      const collective& c = *k.collective_;
      arguments.push_back("over::" + std::string(runtime::over_names[static_cast<int>(c.over)]));
      arguments.push_back(fmt::format("{{{}, \"{}\"}}", l_.find_message(c.name), c.name));
      for (const operand& o : k.writes) arguments.push_back(name(o));
      if (k.function != "all_reduce")
        for (const operand& o : k.reads) arguments.push_back(name(o));
      arguments.push_back(c.count.text);
      if (c.maximum) arguments.push_back("reduction::max");
    } else {
      for (const auto* side : {&k.writes, &k.reads})
        for (const operand& o : *side)
          if (!o.implied) arguments.push_back(name(o));
      for (const extent& e : k.sizes) arguments.push_back(e.text);
      const bool shared = sums_into_shared(b_, k);
      switch (k.accumulate) {
        case accumulation::none: break;
        case accumulation::overwrite: arguments.push_back("false"); break;
        case accumulation::add: arguments.push_back("true"); break;
        case accumulation::after_first: arguments.push_back(shared ? "accumulate_shared" : "accumulate"); break;
      }
    }
    const std::string type = k.wide ? wide_name(l_) : "real";
    std::string line = "  " + call(k.function + "<" + type + ">", arguments, 2) + "\n";
    for (std::size_t at = 0; (at = line.find("\n    ", at)) != line.npos; at += 3) line.insert(at + 1, "  ");
    return line;
  }

  /// The parameters of a phase, or what its caller passes where the names are the same.
  std::vector<std::string> surroundings(phase p, bool with_types) const {
    const function_shape f = shape_of(b_, p);
    std::vector<std::string> arguments;
    auto take = [&](bool is, const char* type, const char* name) {
      if (is) arguments.push_back(with_types ? std::string(type) + " " + name : name);
    };
    take(true, "const lane&", "on");
    take(f.weights, "const parameters&", "w");
    take(f.gradients, "const parameters&", "dw");
    take(f.saved, "const saved&", "s");
    take(f.work, "at", "work");
    for (int t : f.ropes) take(true, "at", rope_name(static_cast<std::size_t>(t), b_.ropes.size()).c_str());
    take(f.ids, "at", "ids");
    take(f.targets, "at", "targets");
    take(f.x, "at", "x");
    take(f.y, "at", "y");
    take(f.loss, "at", "loss");
    take(f.dy, "at", "dy");
    take(f.dx, "at", "dx");
    take(f.accumulate, "bool", "accumulate");
    take(f.accumulate_shared, "bool", "accumulate_shared");
    return arguments;
  }

  std::string function(phase p) {
    const std::string name(phase_names[static_cast<int>(p)]);
    std::string out = call("inline void " + name, surroundings(p, true), 0, " {\n");
    if (p == phase::backward && l_.splits_backward()) {
      for (const phase half : {phase::backward_input, phase::backward_weight})
        if (!b_.calls(half).empty()) out += "  " + call(std::string(phase_names[static_cast<int>(half)]), surroundings(half, false), 2) + "\n";
      return out + "}\n";
    }
    out += temporaries(b_.calls(p));
    for (const kernel& k : b_.calls(p)) out += statement(k);
    return out + "}\n";
  }

  const lowered& l_;
  const body& b_;
  const group_layout& groups_;
};

}  // namespace

/// Of ops that users wrote: where their kernels are declared.
static std::string headers(const lowered& l) {
  std::vector<std::string_view> all;
  for (const body& b : l.bodies)
    for (const auto* list : {&b.forward, &b.backward})
      for (const kernel& k : *list)
        if (!k.row->header.empty() && std::find(all.begin(), all.end(), k.row->header) == all.end()) all.push_back(k.row->header);
  std::string out = all.empty() ? "" : fmt::format("#define RANKC_{}_KERNELS  // what a header of ops declares here\n", l.target == target::cuda ? "CUDA" : "HOST");
  for (std::string_view h : all) out += fmt::format("#include \"{}\"\n", h);
  return out;
}

std::string rope_name(std::size_t index, std::size_t count) {
  return count > 1 ? fmt::format("rope_table_{}", index) : "rope_table";
}

function_shape shape_of(const body& b, phase p) {
  auto uses = [&](space s) { return b.uses(p, s); };
  function_shape f{uses(space::weight), uses(space::gradient), uses(space::saved), uses(space::temp), uses(space::x), uses(space::y),
                   uses(space::dy), uses(space::dx), uses(space::tokens), uses(space::targets), uses(space::loss), false, false, {}};
  for (int t = 0; t < static_cast<int>(b.ropes.size()); ++t)
    for (const kernel& k : b.calls(p))
      if (std::find(k.reads.begin(), k.reads.end(), operand{space::rope, t}) != k.reads.end()) {
        f.ropes.push_back(t);
        break;
      }
  for (const kernel& k : b.calls(p)) {
    if (k.accumulate != accumulation::after_first) continue;
    const bool shared = sums_into_shared(b, k);
    (shared ? f.accumulate_shared : f.accumulate) = true;
  }
  return f;
}

std::string emit_layers(const lowered& l, const std::string& target) {
  std::string layers;
  for (std::size_t i = 0; i < l.bodies.size(); ++i) layers += layer_text(l, l.bodies[i], l.groups[i]).run() + "\n";
  return fill(templates::program_layers_hpp, {{"version", version}, {"plan", l.plan->name}, {"target", target},
                                              {"plan_id", identifier(l.plan->name)},
                                              {"real", real_name(l)}, {"layers", layers}, {"headers", headers(l)}});
}

}  // namespace rankc::codegen
