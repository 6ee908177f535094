// SPDX-License-Identifier: Apache-2.0
#include "node.hpp"
#include "roles.hpp"

#include <rankc/check_layers.hpp>
#include <rankc/ops/fused.hpp>
#include <rankc/ops/memory.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>

namespace rankc::codegen {

namespace {

/// What the text of a layer calls its own, and the kernels that it calls.
std::vector<std::string_view> reserved_names() {
  std::vector<std::string_view> names{
      "on", "w", "dw", "s", "work", "rope_table", "ids", "targets", "x", "y", "loss", "dy", "dx", "accumulate", "accumulate_shared",
      "parameters", "saved", "place", "keep", "forward", "backward", "backward_input", "backward_weight", "slot", "region", "size", "own",
      "over_tp", "shared", "at", "real", "bf16", "rank", "lane", "over", "reduction", "event", "message", "rankc", "std", "host", "cuda",
      "runtime", "copy", "clear"};
  for (const op_row* row : ops::all) names.push_back(row->name);
  for (const fusion& f : ops::forward_fusions) names.push_back(f.into.kind->name);
  for (const fusion& f : ops::backward_fusions) names.push_back(f.into.kind->name);
  return names;
}

class selector {
 public:
  selector(const layer_kind& layer, const std::string& name, const std::vector<layer_parameter>& parameters, const plan_data& plan,
           dtype type, target target)
      : name_(name), parameters_(parameters), t_(layer.ops), plan_(plan), type_(type), target_(target) {
    out_.scope = name_scope(reserved_names());
    out_.alias.resize(t_.values.size());
    for (std::size_t i = 0; i < t_.values.size(); ++i) out_.alias[i] = static_cast<int>(i);
    out_.names.resize(t_.values.size());
    parameter_of_.assign(t_.values.size(), -1);
    for (std::size_t w = 0; w < t_.weights.size(); ++w) parameter_of_[t_.weights[w].id] = static_cast<int>(w);
    gradient_of_.assign(t_.values.size(), -1);
    for (const op& o : t_.ops)
      for (int j = 0; j < max_outputs; ++j)
        if (o.adds_to[j] >= 0) gradient_of_[o.out[j]] = o.adds_to[j];
    if (plan.dims.tp > 1) name_constant("tp", plan.dims.tp);
  }

  layer_program run() {
    name_values();
    for (std::size_t v = 0; v < t_.values.size(); ++v) {
      const bool is_buffer = parameter_of_[v] < 0 && gradient_of_[v] < 0;
      out_.bytes.push_back(is_buffer ? elements(t_.values[v]).value * bytes_per_element(t_.values[v].holds) : 0);
      out_.shapes.push_back(is_buffer ? shape(t_.values[v]) : "");
      out_.wide.push_back(t_.values[v].holds == element::wide);
    }
    for (std::size_t i = 0; i < t_.ops.size(); ++i) select(t_.ops[i], i < t_.forward_ops ? out_.forward : out_.backward);
    hand_on();
    clear_sums();
    return std::move(out_);
  }

 private:
  // ---- sizes
  std::size_t bytes_per_element(element e) const {
    if (e == element::index) return 4;
    return e == element::wide && type_ == dtype::bf16 ? 4 : runtime::size_of(type_);
  }
  /// The identifier of a size: one for each name and value.
  std::string name_constant(std::string_view name, std::int64_t value) {
    const auto [known, is_new] = constant_of_.try_emplace({std::string(name), value});
    if (is_new) {
      known->second = out_.scope.take(name);
      out_.constants.push_back({known->second, value});
    }
    return known->second;
  }
  extent named(std::string_view name, int value) { return {value, name_constant(name, value)}; }
  /// Dim i of a type on this rank: "heads / tp" units. Axes that share out sequences go without saying.
  local_dim local(const type& v, int i) {
    const dim& d = v.shape[i];
    int here = d.count();
    for (axis a : axes)
      if (v[a] == V(i) && row(a).shares == part::sequences) here /= degree(a);
    local_dim l{.count = named(d.name, here)};
    for (axis a : axes) {
      if (v[a] != V(i) || row(a).shares == part::sequences || degree(a) == 1) continue;
      l.count.value /= degree(a);
      l.count.text += " / " + name_constant(rankc::name(a), degree(a));
    }
    if (d.unit != 1) l.unit = named(d.unit_name, d.unit);
    if (v[axis::tp] == V(i) && plan_.dims.tp > 1) l.first.text = "on.index_in(over::tp) * (" + codegen::width(l).text + ")";
    return l;
  }
  extent width(const type& v, int i) { return codegen::width(local(v, i)); }
  extent elements(const type& s) {
    if (s.ndim == 0) return {1, "1"};
    const extent e = width(s, 0);
    return s.ndim == 1 ? e : times(e, width(s, 1));
  }
  std::string shape(const type& v) {
    std::string s;
    for (int i = 0; i < v.ndim; ++i) s += (i ? " x " : "") + width(v, i).text;
    return s;
  }
  local_shape local(const type& v) {
    local_shape s;
    for (int i = 0; i < v.ndim; ++i) s.dims.push_back(local(v, i));
    if (v.ndim > 1) s.stride = codegen::width(s.dims[1]);
    return s;
  }

  // ---- operands
  int find(int v) const { return out_.alias[v]; }
  operand of(int v) const {
    if (parameter_of_[v] >= 0) return {space::weight, parameter_of_[v]};
    if (gradient_of_[v] >= 0) return {space::gradient, gradient_of_[v]};
    if (t_.values[v].holds == element::index) return {v == t_.input ? space::tokens : space::targets, 0};
    if (v == t_.result && t_.values[v].ndim == 0) return {space::loss, 0};
    return {space::temp, find(v)};
  }
  port_use use_of(int v) { return {of(v), {}, local(t_.values[v])}; }
  port_use rope_table(const op& o) {
    const dim& heads = t_.values[o.in[0]].shape[1];
    const rope_use wanted{o.with.seq, heads.unit, o.with.number};
    const auto known = std::find(out_.ropes.begin(), out_.ropes.end(), wanted);
    const int index = static_cast<int>(known - out_.ropes.begin());
    if (known == out_.ropes.end()) out_.ropes.push_back(wanted);
    return {{space::rope, index}, {}, {{{.count = named("seq", o.with.seq)}, {.count = named(heads.unit_name, heads.unit)}}, {}}};
  }
  void merge(int from, int into) {
    for (int& a : out_.alias)
      if (a == from) a = into;
  }
  /// A copy of a class of values that are like `v`, by a node at the list's end; returns its class.
  int copy(nodes& list, int from, int v) {
    const int made = out_.add_value(out_.names[v].empty() ? "handed" : out_.names[v] + "_copy", out_.shapes[v], out_.bytes[v], out_.wide[v]);
    node n{.row = &ops::copy};
    n.ports = {{{space::temp, made}, {}, local(t_.values[v])}, {{space::temp, from}, {}, local(t_.values[v])}};
    n.wide = t_.values[v].holds == element::wide;
    list.push_back(n);
    return made;
  }

  // ---- what the list of ops does not say
  /// What is handed in and on lies where the caller says: a copy, where it is something else too.
  void hand_on() {
    const auto is_read = [&](const nodes& list, int value) {
      return std::any_of(list.begin(), list.end(), [&](const node& n) { return n.reads({space::temp, value}); });
    };
    const bool takes_ids = t_.values[t_.input].holds == element::index, gives_loss = t_.values[t_.result].ndim == 0;
    if (!takes_ids) out_.x = find(t_.input);
    if (!gives_loss) {
      out_.y = find(t_.result);
      out_.dy = find(t_.result_gradient);
      if (out_.y == out_.x || is_read(out_.backward, out_.y)) out_.y = copy(out_.forward, out_.y, t_.result);
    }
    if (!takes_ids) {
      out_.dx = find(t_.gradients[t_.input]);
      if (out_.dx == out_.dy) out_.dx = copy(out_.backward, out_.dx, t_.gradients[t_.input]);
    }
  }

  /// A gradient that several nodes sum into is cleared in front of them in the first microbatch, and so are those that
  /// such a node writes beside it. So are the two of a node one of which is shared with another layer, and begins where
  /// that layer does.
  void clear_sums() {
    std::vector<int> sums(t_.weights.size());
    const auto gradients = [](const node& n) {
      std::vector<std::size_t> of;
      n.each_write([&](const port_use& p) {
        if (p.at.where == space::gradient) of.push_back(static_cast<std::size_t>(p.at.index));
      });
      return of;
    };
    const auto is_cleared = [&](const std::vector<std::size_t>& of) {
      return std::any_of(of.begin(), of.end(), [&](std::size_t w) { return sums[w] > 1; });
    };
    for (const node& n : out_.backward) {
      const auto of = gradients(n);
      const auto shared = std::count_if(of.begin(), of.end(), [&](std::size_t w) { return parameters_[w].shared; });
      const bool mixed = shared > 0 && shared < static_cast<std::ptrdiff_t>(of.size());
      for (std::size_t w : of) sums[w] += mixed ? 2 : 1;
    }
    for (std::size_t pass = 0; pass < sums.size(); ++pass)  // until no node has one that is cleared beside one that is not
      for (const node& n : out_.backward)
        if (const auto of = gradients(n); is_cleared(of))
          for (std::size_t w : of) sums[w] = std::max(sums[w], 2);
    for (node& n : out_.backward)
      if (is_cleared(gradients(n))) n.accumulate = accumulation::add;
    nodes cleared;
    for (std::size_t w = 0; w < sums.size(); ++w) {
      if (sums[w] < 2) continue;
      node& n = cleared.emplace_back();
      n.row = &ops::clear;
      n.accumulate = accumulation::after_first;
      n.wide = true;
      n.ports = {{{space::gradient, static_cast<int>(w)}, {}, {{{.count = elements(t_.weights[w].holds)}}, {}}}};
    }
    out_.backward.insert(out_.backward.begin(), cleared.begin(), cleared.end());
  }

  // ---- names of values, after what made them
  void name_values() {
    std::vector<int> gradient_of(t_.values.size(), -1);
    for (std::size_t v = 0; v < t_.gradients.size(); ++v)
      if (t_.gradients[v] >= 0 && gradient_of[t_.gradients[v]] < 0) gradient_of[t_.gradients[v]] = static_cast<int>(v);
    for (std::size_t i = 0; i < t_.ops.size(); ++i) {
      const op& o = t_.ops[i];
      const bool forward = i < t_.forward_ops;
      const int weight = parameter_read_by(o);
      const bool unary = weight < 0 && forward && o.in[0] >= 0 && o.in[1] < 0 && !out_.names[o.in[0]].empty();
      std::string base = unary ? stem(out_.names[o.in[0]]) + "_" + std::string(o.kind->name)
                               : std::string(weight >= 0 && forward ? t_.weights[weight].name : o.kind->name);
      std::replace(base.begin(), base.end(), '.', '_');
      for (int j = 0; j < max_outputs && o.out[j] >= 0; ++j) {
        if (gradient_of_[o.out[j]] >= 0) continue;
        std::string n = base + (j > 0 ? "_" + std::string(output_port(*o.kind, j).name) : unary ? "" : "_out");
        if (!forward) {
          const int of = gradient_of[o.out[j]];
          n = of >= 0 && !out_.names[of].empty() ? "d_" + out_.names[of] : of == t_.input ? "d_x" : "d_" + base;
        }
        out_.names[o.out[j]] = out_.scope.take(n);
      }
    }
  }
  int parameter_read_by(const op& o) const {
    for (int v : o.in)
      if (v >= 0 && parameter_of_[v] >= 0) return parameter_of_[v];
    return -1;
  }
  static const port& output_port(const op_row& row, int place) {
    for (const port& p : row.used_ports())
      if (p.is_written() && place-- == 0) return p;
    throw std::logic_error("op '" + std::string(row.name) + "' has fewer results");
  }
  static std::string stem(const std::string& name) { return name.ends_with("_out") ? name.substr(0, name.size() - 4) : name; }

  // ---- nodes
  void select(const op& o, nodes& list) {
    if (o.kind->converts != conversion::none) return convert(o, list);
    const kernel_row& kernel = kernel_of(*o.kind, target_);
    if (kernel.name.empty()) throw std::logic_error("no kernel for op '" + std::string(o.kind->name) + "' in layer '" + name_ + "'");
    node n{.row = o.kind};
    int read = 0, written = 0;
    for (const port& p : o.kind->used_ports()) {
      if (p.as == use::rotary) n.ports.push_back(rope_table(o));
      else if (p.as == use::scratch) n.ports.emplace_back();
      else n.ports.push_back(use_of(p.is_written() ? o.out[written++] : o.in[read++]));
      if (p.as == use::sum) n.accumulate = accumulation::after_first;
      if (p.adds) n.accumulate = accumulation::overwrite;
    }
    if (o.with.rows) n.rows = named("rows", o.with.rows);
    if (o.with.seq) n.seq = named("seq", o.with.seq);
    if (kernel.sizes.find("number") != kernel.sizes.npos) n.number = number(o);
    n.wide = o.kind == &ops::zeros && t_.values[o.out[0]].holds == element::wide;
    if (kernel.scratch) n.scratch_bytes = kernel.scratch(numbers(n), {runtime::size_of(type_), plan_.recipe.deterministic});
    list.push_back(std::move(n));
  }

  /// The local sizes of a node, as the table asks for them.
  static op_sizes numbers(const node& n) {
    op_sizes s(*n.row);
    for (std::size_t p = 0; p < n.ports.size(); ++p)
      for (std::size_t d = 0; d < n.ports[p].shape.dims.size(); ++d)
        s.bind(static_cast<int>(p), static_cast<int>(d), n.ports[p].shape.dims[d].count.value, n.ports[p].shape.dims[d].unit.value);
    s.bind_attributes(n.rows.value, n.seq.value);
    return s;
  }
  /// An op's number as text; 1 / tokens of a step as a quotient of whole numbers.
  extent number(const op& o) const {
    const std::int64_t tokens = static_cast<std::int64_t>(plan_.recipe.global_batch) * plan_.recipe.seq;
    if (o.with.number == 1.0 / static_cast<double>(tokens)) return {0, "1.0 / " + std::to_string(tokens)};
    return {0, fmt::format("{}", o.with.number)};
  }
  int degree(axis a) const { return plan_.dims.*row(a).degree; }

  std::string name_of(int v) const {
    return v == t_.result_gradient ? "dy" : v == t_.input ? "x" : out_.names[v];
  }

  /// Over one rank a conversion changes a placement alone, and so does `replicate` over several.
  void convert(const op& o, nodes& list) {
    if (degree(o.over) > 1 && row(o.over).lowered != lowering::all)
      throw std::logic_error("layer '" + name_ + "': " + std::string(o.kind->name) + " over " + std::string(rankc::name(o.over)) + " is not lowered");
    if (degree(o.over) == 1 || !o.kind->communicates()) return merge(find(o.out[0]), find(o.in[0]));
    communicate(o, list);
  }
  void communicate(const op& o, nodes& list) {
    node n{.row = o.kind};
    const bool maximum = o.kind->converts == conversion::all_reduce_max, reduces = maximum || o.kind->converts == conversion::all_reduce;
    const type& part = t_.values[o.kind->converts == conversion::reduce_scatter ? o.out[0] : o.in[0]];
    collective g{role_over(o.over), elements(part), 0, maximum, name_ + ": " + std::string(o.kind->name) + " of " + name_of(o.in[0])};
    g.bytes = g.count.value * bytes_per_element(part.holds);
    n.wide = part.holds == element::wide;
    if (reduces) {
      int uses = 0;
      for (const op& other : t_.ops)
        for (int in : other.in) uses += in >= 0 && find(in) == find(o.in[0]);
      // The sum is made in place, or in a copy where the pending one is used besides.
      merge(find(o.out[0]), uses == 1 ? find(o.in[0]) : copy(list, find(o.in[0]), o.in[0]));
    }
    n.ports = {use_of(o.out[0]), use_of(o.in[0])};
    if (reduces) n.ports[1].at = n.ports[0].at;
    n.collective_ = g;
    list.push_back(std::move(n));
  }

  const std::string& name_;
  const std::vector<layer_parameter>& parameters_;
  const trace& t_;
  const plan_data& plan_;
  const dtype type_;
  const target target_;
  std::vector<int> parameter_of_, gradient_of_;  // of each value: the parameter that it is, or to whose gradient it adds
  std::map<std::pair<std::string, std::int64_t>, std::string> constant_of_;
  layer_program out_;
};

}  // namespace

layer_program select_nodes(const layer_kind& layer, const std::string& name, const std::vector<layer_parameter>& parameters,
                           const plan_data& plan, dtype type, target target) {
  return selector(layer, name, parameters, plan, type, target).run();
}

}  // namespace rankc::codegen
