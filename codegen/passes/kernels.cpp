// SPDX-License-Identifier: Apache-2.0
#include "kernels.hpp"

#include <rankc/runtime/cuda/attention_scratch.hpp>
#include <rankc/typed/ops.hpp>

#include <algorithm>
#include <stdexcept>

namespace rankc::codegen {

namespace {

class selector {
 public:
  selector(const layer_kind& layer, const plan_data& plan, dtype type, target target)
      : layer_(layer), t_(layer.ops), plan_(plan), type_(type), cuda_(target == target::cuda) {
    out_.alias.resize(t_.values.size());
    for (std::size_t i = 0; i < t_.values.size(); ++i) out_.alias[i] = static_cast<int>(i);
    out_.names.resize(t_.values.size());
    if (plan.dims.tp > 1) name_constant("tp", plan.dims.tp);
  }

  value_program run() {
    name_values();
    for (std::size_t i = 0; i < t_.ops.size(); ++i) {
      std::vector<value_call>& list = i < t_.forward_ops ? out_.forward : out_.backward;
      if (auto c = select(t_.ops[i])) list.push_back(std::move(*c));
    }
    for (std::size_t v = 0; v < t_.values.size(); ++v) {
      out_.bytes.push_back(elements(static_cast<int>(v)).value * bytes_per_element(t_.values[v].holds));
      out_.shapes.push_back(shape(t_.values[v]));
    }
    return std::move(out_);
  }

 private:
  // ---- sizes
  std::size_t bytes_per_element(element e) const {
    if (e == element::index) return 4;
    return e == element::wide && type_ == dtype::bf16 ? 4 : runtime::size_of(type_);
  }
  void name_constant(std::string_view name, std::int64_t value) {
    for (const constant& c : out_.constants)
      if (c.name == name) return;
    out_.constants.push_back({std::string(name), value});
  }
  /// Whole units of dim i of a type on this rank: "heads / tp". The dp axes share out the sequences.
  extent count(const type& v, int i) {
    const dim& d = v.shape[i];
    const bool per_dp = v[axis::dp_replicate] == V(i);
    const int here = d.count() / (per_dp ? plan_.dims.dp_replicate : 1);
    name_constant(d.name, here);
    const bool split = v[axis::tp] == V(i) && plan_.dims.tp > 1;
    return {split ? here / plan_.dims.tp : here, std::string(d.name) + (split ? " / tp" : "")};
  }
  extent width(const type& v, int i) {
    extent e = count(v, i);
    const dim& d = v.shape[i];
    if (d.unit == 1) return e;
    name_constant(d.unit_name, d.unit);
    return {e.value * d.unit, e.text + " * " + std::string(d.unit_name)};
  }
  extent times(extent a, const extent& b) { return {a.value * b.value, a.text + " * " + b.text}; }
  extent elements(int v) {
    const type& s = t_.values[v];
    if (s.ndim == 0) return {1, "1"};
    extent e = width(s, 0);
    return s.ndim == 1 ? e : times(e, width(s, 1));
  }
  std::string shape(const type& v) {
    std::string s;
    for (int i = 0; i < v.ndim; ++i) s += (i ? " x " : "") + width(v, i).text;
    return s;
  }
  extent tokens(int v) { return width(t_.values[v], 0); }
  extent features(int v) { return width(t_.values[v], 1); }
  extent named(std::string_view name, int value) {
    name_constant(name, value);
    return {value, std::string(name)};
  }
  /// Where this rank's part of dim 0 or 1 begins: "r.row->tp * (vocab / tp)".
  extent first(const type& v, int i) {
    if (v[axis::tp] != V(i) || plan_.dims.tp == 1) return {0, "0"};
    return {0, "r.row->tp * (" + width(v, i).text + ")"};
  }

  // ---- operands
  int find(int v) const { return out_.alias[v]; }
  operand of(int v) const {
    if (t_.values[v].holds == element::index) return {v == t_.input ? space::tokens : space::targets, 0};
    if (v == t_.result && t_.values[v].ndim == 0) return {space::loss, 0};
    return {space::temp, find(v)};
  }
  value_call call(const op& o, std::initializer_list<int> outs, std::initializer_list<operand> ins) {
    value_call c;
    c.call.function = std::string(o.kind->name);
    for (int i : outs) c.writes.push_back(of(o.out[i]));
    c.reads.assign(ins);
    return c;
  }
  void merge(int from, int into) {
    for (int& a : out_.alias)
      if (a == from) a = into;
  }

  // ---- names of values, after what made them
  void name_values() {
    std::vector<int> gradient_of(t_.values.size(), -1);
    for (std::size_t v = 0; v < t_.gradients.size(); ++v)
      if (t_.gradients[v] >= 0 && gradient_of[t_.gradients[v]] < 0) gradient_of[t_.gradients[v]] = static_cast<int>(v);
    for (std::size_t i = 0; i < t_.ops.size(); ++i) {
      const op& o = t_.ops[i];
      const bool forward = i < t_.forward_ops;
      const bool unary = o.weight[0] < 0 && forward && o.in[1] < 0 && !out_.names[o.in[0]].empty();
      std::string base = unary ? stem(out_.names[o.in[0]]) + "_" + std::string(o.kind->name)
                               : std::string(o.weight[0] >= 0 && forward ? t_.weights[o.weight[0]].name : o.kind->name);
      std::replace(base.begin(), base.end(), '.', '_');
      for (int j = 0; j < 3 && o.out[j] >= 0; ++j) {
        std::string n = base + (j == 0 ? (unary ? "" : "_out") : o.kind->name == "attention" ? "_lse" : "_statistics");
        if (!forward) {
          const int of = gradient_of[o.out[j]];
          n = of >= 0 && !out_.names[of].empty() ? "d_" + out_.names[of] : of == t_.input ? "d_x" : "d_" + base;
        }
        out_.names[o.out[j]] = unique(n);
      }
    }
  }
  static std::string stem(const std::string& name) { return name.ends_with("_out") ? name.substr(0, name.size() - 4) : name; }
  std::string unique(const std::string& wanted) const {
    std::string n = wanted;
    for (int i = 2; std::find(out_.names.begin(), out_.names.end(), n) != out_.names.end(); ++i)
      n = wanted + "_" + std::to_string(i);
    return n;
  }

  // ---- the table
  std::optional<value_call> select(const op& o) {
    const std::string_view k = o.kind->name;
    const operand w{space::weight, o.weight[0]}, b{space::weight, o.weight[1]}, dw{space::gradient, o.weight[0]},
        db{space::gradient, o.weight[1]}, in0 = o.in[0] >= 0 ? of(o.in[0]) : operand{}, in1 = o.in[1] >= 0 ? of(o.in[1]) : operand{},
        in2 = o.in[2] >= 0 ? of(o.in[2]) : operand{};
    auto at_weight = [&](int i) { return width(t_.weights[o.weight[0]].holds, i); };
    value_call c;
    auto into_gradient = [&](std::initializer_list<operand> to, std::initializer_list<operand> from) {
      c = call(o, {}, from);
      c.writes.assign(to);
      c.call.accumulate = accumulation::after_first;
    };

    if (k == "replicate" || (o.kind->communicates && degree(o.over) == 1)) {
      merge(find(o.out[0]), find(o.in[0]));
      return std::nullopt;
    }
    if (o.kind->communicates) return collective_call(o);

    if (k == "add") {
      c = call(o, {0}, {in0, in1});
      c.in_place = {{0, 0}, {0, 1}};
      c.call.sizes = {elements(o.out[0])};
    } else if (k == "gelu") {
      c = call(o, {0}, {in0});
      c.call.sizes = {elements(o.out[0])};
    } else if (k == "gelu_grad") {
      c = call(o, {0}, {in1, in0});
      c.in_place = {{0, 0}};
      c.call.sizes = {elements(o.out[0])};
    } else if (k == "swiglu") {
      c = call(o, {0}, {in0, in1});
      c.call.sizes = swiglu_sizes(o);
    } else if (k == "swiglu_grad") {
      c = call(o, {0, 1}, {in2, in0, in1});
      c.call.sizes = swiglu_sizes(o);
    } else if (k == "linear") {
      c = call(o, {0}, {in0, w});
      c.call.sizes = {tokens(o.in[0]), at_weight(1), at_weight(0)};
    } else if (k == "linear_dx") {
      c = call(o, {0}, {in0, w});
      c.call.sizes = {tokens(o.in[0]), at_weight(1), at_weight(0)};
      c.call.accumulate = accumulation::overwrite;
    } else if (k == "linear_dw") {
      into_gradient({dw}, {in0, in1});
      c.call.sizes = {tokens(o.in[0]), at_weight(1), at_weight(0)};
    } else if (k == "bias") {
      c = call(o, {0}, {in0, w});
      c.in_place = {{0, 0}};
      c.call.sizes = {tokens(o.in[0]), features(o.in[0])};
    } else if (k == "bias_grad") {
      into_gradient({dw}, {in0});
      c.call.sizes = {tokens(o.in[0]), features(o.in[0])};
    } else if (k == "layer_norm" || k == "rms_norm") {
      c = call(o, {0, 1}, {in0, w});
      if (o.weight[1] >= 0) c.reads.push_back(b);
      c.call.sizes = {tokens(o.in[0]), features(o.in[0])};
    } else if (k == "layer_norm_dx" || k == "rms_norm_dx") {
      c = call(o, {0}, {in0, in1, in2, w});
      c.in_place = {{0, 0}};
      c.call.sizes = {tokens(o.in[0]), features(o.in[0])};
    } else if (k == "layer_norm_dw") {
      into_gradient({dw, db}, {in0, in1, in2});
      c.call.sizes = {tokens(o.in[0]), features(o.in[0])};
    } else if (k == "rms_norm_dw") {
      into_gradient({dw}, {in0, in1, in2});
      c.call.sizes = {tokens(o.in[0]), features(o.in[0])};
    } else if (k == "rope" || k == "rope_grad") {
      const type& x = t_.values[o.in[0]];
      c = call(o, {0}, {in0, {space::rope, 0}});
      c.in_place = {{0, 0}};
      c.call.sizes = {tokens(o.in[0]), count(x, 1), named(x.shape[1].unit_name, x.shape[1].unit), named("seq", o.with.seq)};
      if (cuda_) c.call.sizes.push_back(features(o.in[0]));
      out_.rope = {o.with.seq, x.shape[1].unit, o.with.number};
    } else if (k == "position") {
      c = call(o, {0}, {in0, w});
      c.in_place = {{0, 0}};
      c.call.sizes = {tokens(o.in[0]), features(o.in[0]), named("seq", o.with.seq), first(t_.values[o.in[0]], 0)};
    } else if (k == "position_grad") {
      into_gradient({dw}, {in0});
      c.call.sizes = {tokens(o.in[0]), features(o.in[0]), named("seq", o.with.seq), first(t_.values[o.in[0]], 0)};
    } else if (k == "attention") {
      c = call(o, {0, 1}, {in0, in1, in2});
      c.call.sizes = attention_sizes(o);
      c.scratch_bytes = cuda_ ? cuda::attention_scratch(shape_of(c)) : static_cast<std::size_t>(o.with.seq) * o.with.seq * runtime::size_of(type_);
    } else if (k == "attention_grad") {  // q, k, v, o, lse, gradient
      c = call(o, {0, 1, 2}, {of(o.in[5]), in0, in1, in2, of(o.in[3]), of(o.in[4])});
      c.call.sizes = attention_sizes(o);
      c.scratch_bytes = cuda_ ? cuda::attention_grad_scratch(shape_of(c)) : (2 * static_cast<std::size_t>(o.with.seq) + 1) * o.with.seq * runtime::size_of(type_);
    } else if (k == "embedding") {
      c = call(o, {0}, {in0, w});
      c.call.sizes = {tokens(o.in[0]), at_weight(0), at_weight(1), first(t_.weights[o.weight[0]].holds, 0)};
    } else if (k == "embedding_grad") {
      into_gradient({dw}, {in0, in1});
      c.call.sizes = {tokens(o.in[0]), at_weight(0), at_weight(1), first(t_.weights[o.weight[0]].holds, 0)};
    } else if (k == "row_max") {
      c = call(o, {0}, {in0});
      c.call.sizes = {tokens(o.in[0]), features(o.in[0])};
    } else if (k == "exp_sums") {
      c = call(o, {0}, {in0, in1, in2});
      c.call.sizes = {tokens(o.in[0]), features(o.in[0]), first(t_.values[o.in[0]], 1)};
    } else if (k == "exp_sums_grad") {
      c = call(o, {0}, {in0, in1, in2, of(o.in[3])});
      c.in_place = {{0, 1}};
      c.call.sizes = {tokens(o.in[1]), features(o.in[1]), first(t_.values[o.in[1]], 1)};
    } else if (k == "cross_entropy") {
      c = call(o, {0}, {in0});
      c.call.sizes = {tokens(o.in[0]), scale(o)};
      c.call.accumulate = accumulation::after_first;
    } else if (k == "cross_entropy_grad") {
      c = call(o, {0}, {in0});
      c.call.sizes = {tokens(o.in[0]), scale(o)};
    } else {
      throw std::logic_error("no kernel for op '" + std::string(k) + "' in layer '" + layer_.name + "'");
    }
    return c;
  }

  std::vector<extent> attention_sizes(const op& o) {
    const type &q = t_.values[o.in[0]], &k = t_.values[o.in[1]];
    std::vector<extent> sizes{named("rows", o.with.rows), named("seq", o.with.seq), count(q, 1), count(k, 1),
                              named(q.shape[1].unit_name, q.shape[1].unit)};
    if (cuda_) sizes.insert(sizes.end(), {width(q, 1), width(k, 1)});  // strides
    return sizes;
  }
  cuda::attention_shape shape_of(const value_call& c) const {
    const auto size = [&](int i) { return static_cast<int>(c.call.sizes[i].value); };
    return {size(0), size(1), size(2), size(3), size(4), runtime::size_of(type_), plan_.recipe.deterministic};
  }
  std::vector<extent> swiglu_sizes(const op& o) {
    if (!cuda_) return {elements(o.out[0])};
    return {tokens(o.out[0]), features(o.out[0]), features(o.out[0])};
  }
  /// 1 / tokens of a step, as a quotient of whole numbers.
  extent scale(const op&) {
    return {0, "1.0 / " + std::to_string(static_cast<std::int64_t>(plan_.recipe.global_batch) * plan_.recipe.seq)};
  }
  int degree(axis a) const {
    return a == axis::tp ? plan_.dims.tp : a == axis::dp_replicate ? plan_.dims.dp_replicate : 1;
  }

  std::string name_of(int v) const {
    return v == t_.result_gradient ? "dy" : v == t_.input ? "x" : out_.names[v];
  }

  value_call collective_call(const op& o) {
    const std::string_view k = o.kind->name;
    value_call c;
    const bool reduces = k == "all_reduce" || k == "all_reduce_max";
    const int part = k == "reduce_scatter" ? o.out[0] : o.in[0];
    const std::size_t element_bytes = bytes_per_element(t_.values[part].holds);
    collective g{o.over == axis::tp ? runtime::role::tp : runtime::role::dp, elements(part), 0, k == "all_reduce_max",
                 layer_.name + ": " + std::string(k) + " of " + name_of(o.in[0])};
    g.bytes = g.count.value * element_bytes;
    g.wide = t_.values[part].holds == element::wide;
    if (reduces) {
      int uses = 0;
      for (const op& other : t_.ops)
        for (int in : other.in) uses += in >= 0 && find(in) == find(o.in[0]);
      if (uses > 1) throw std::logic_error("layer '" + layer_.name + "': a pending sum is used besides its reduction");
      merge(find(o.out[0]), find(o.in[0]));
      c.writes = c.reads = {of(o.in[0])};
    } else {
      c.writes = {of(o.out[0])};
      c.reads = {of(o.in[0])};
    }
    c.call.function = reduces ? "all_reduce" : std::string(k);
    c.call.collective_ = g;
    return c;
  }

  const layer_kind& layer_;
  const trace& t_;
  const plan_data& plan_;
  const dtype type_;
  const bool cuda_;
  value_program out_;
};

}  // namespace

value_program select_kernels(const layer_kind& layer, const plan_data& plan, dtype type, target target) {
  return selector(layer, plan, type, target).run();
}

}  // namespace rankc::codegen
