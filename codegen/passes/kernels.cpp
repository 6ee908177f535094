// SPDX-License-Identifier: Apache-2.0
#include "kernels.hpp"
#include "roles.hpp"

#include <rankc/runtime/cuda/attention_scratch.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <stdexcept>

namespace rankc::codegen {

namespace {

/// What the text of a layer calls its own, and what it calls.
const std::vector<std::string_view> of_the_runtime{
    "r", "w", "dw", "s", "work", "rope_table", "ids", "targets", "x", "y", "loss", "dy", "dx", "accumulate", "accumulate_shared",
    "parameters", "saved", "place", "keep", "forward", "backward", "backward_input", "backward_weight", "slot", "region", "size", "own",
    "over_tp", "shared", "at", "real", "bf16", "rank", "stream", "role", "reduction", "event", "message", "rankc", "std", "host", "cuda",
    "runtime", "copy", "clear", "add", "gelu", "gelu_grad", "swiglu", "swiglu_grad", "linear", "linear_dx", "linear_dw", "bias", "bias_grad",
    "layer_norm", "layer_norm_dx", "layer_norm_dw", "rms_norm", "rms_norm_dx", "rms_norm_dw", "rope", "rope_grad", "position",
    "position_grad", "attention", "attention_grad", "embedding", "embedding_grad", "row_max", "exp_sums", "exp_sums_grad", "cross_entropy",
    "cross_entropy_grad", "softmax_sums", "softmax_grad", "all_reduce", "all_gather", "reduce_scatter"};

class selector {
 public:
  selector(const layer_kind& layer, const std::string& name, const std::vector<layer_parameter>& parameters, const plan_data& plan,
           dtype type, target target)
      : name_(name), parameters_(parameters), t_(layer.ops), plan_(plan), type_(type), cuda_(target == target::cuda) {
    out_.scope = name_scope(of_the_runtime);
    out_.alias.resize(t_.values.size());
    for (std::size_t i = 0; i < t_.values.size(); ++i) out_.alias[i] = static_cast<int>(i);
    out_.names.resize(t_.values.size());
    if (plan.dims.tp > 1) name_constant("tp", plan.dims.tp);
  }

  value_program run() {
    name_values();
    for (std::size_t v = 0; v < t_.values.size(); ++v) {
      out_.bytes.push_back(elements(static_cast<int>(v)).value * bytes_per_element(t_.values[v].holds));
      out_.shapes.push_back(shape(t_.values[v]));
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
  /// Whole units of dim i of a type on this rank: "heads / tp". Axes that share out sequences go without saying.
  extent count(const type& v, int i) {
    int here = v.shape[i].count();
    for (axis a : axes)
      if (v[a] == V(i) && row(a).shares == part::sequences) here /= degree(a);
    extent e{here, name_constant(v.shape[i].name, here)};
    for (axis a : axes)
      if (v[a] == V(i) && row(a).shares != part::sequences && degree(a) > 1)
        e = {e.value / degree(a), e.text + " / " + name_constant(rankc::name(a), degree(a))};
    return e;
  }
  extent width(const type& v, int i) {
    extent e = count(v, i);
    const dim& d = v.shape[i];
    if (d.unit == 1) return e;
    return {e.value * d.unit, e.text + " * " + name_constant(d.unit_name, d.unit)};
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
  extent named(std::string_view name, int value) { return {value, name_constant(name, value)}; }
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
  operand rope_table(const op& o) {
    const rope_use wanted{o.with.seq, t_.values[o.in[0]].shape[1].unit, o.with.number};
    const auto known = std::find(out_.ropes.begin(), out_.ropes.end(), wanted);
    const int index = static_cast<int>(known - out_.ropes.begin());
    if (known == out_.ropes.end()) out_.ropes.push_back(wanted);
    return {space::rope, index};
  }
  /// A copy of a class of values that are like `v`, by a call at the list's end; returns its class.
  int copy(std::vector<value_call>& list, int from, int v) {
    const int made = out_.add_value(out_.names[v].empty() ? "handed" : out_.names[v] + "_copy", out_.shapes[v], out_.bytes[v]);
    value_call c;
    c.call.function = "copy";
    c.writes = {{space::temp, made}};
    c.reads = {{space::temp, from}};
    c.call.sizes = {elements(v)};
    c.call.wide = t_.values[v].holds == element::wide;
    list.push_back(c);
    return made;
  }

  // ---- what the list of ops does not say
  /// What is handed in and on lies where the caller says: a copy, where it is something else too.
  void hand_on() {
    const auto is_read = [&](const std::vector<value_call>& list, int value) {
      return std::any_of(list.begin(), list.end(), [&](const value_call& c) {
        return std::any_of(c.reads.begin(), c.reads.end(), [&](const operand& o) { return o.where == space::temp && o.index == value; });
      });
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

  /// A gradient that several calls sum into is cleared in front of them in the first microbatch, and so are those that
  /// such a call writes beside it. So are the two of a call one of which is shared with another layer, and begins where
  /// that layer does.
  void clear_sums() {
    std::vector<int> sums(t_.weights.size());
    const auto gradients = [](const value_call& c) {
      std::vector<std::size_t> of;
      for (const operand& o : c.writes)
        if (o.where == space::gradient) of.push_back(static_cast<std::size_t>(o.index));
      return of;
    };
    const auto is_cleared = [&](const std::vector<std::size_t>& of) {
      return std::any_of(of.begin(), of.end(), [&](std::size_t w) { return sums[w] > 1; });
    };
    for (const value_call& c : out_.backward) {
      const auto of = gradients(c);
      const auto shared = std::count_if(of.begin(), of.end(), [&](std::size_t w) { return parameters_[w].shared; });
      const bool mixed = shared > 0 && shared < static_cast<std::ptrdiff_t>(of.size());
      for (std::size_t w : of) sums[w] += mixed ? 2 : 1;
    }
    for (std::size_t pass = 0; pass < sums.size(); ++pass)  // until no call has one that is cleared beside one that is not
      for (const value_call& c : out_.backward)
        if (const auto of = gradients(c); is_cleared(of))
          for (std::size_t w : of) sums[w] = std::max(sums[w], 2);
    for (value_call& c : out_.backward)
      if (is_cleared(gradients(c))) c.call.accumulate = accumulation::add;
    std::vector<value_call> cleared;
    for (std::size_t w = 0; w < sums.size(); ++w) {
      if (sums[w] < 2) continue;
      const type& of = t_.weights[w].holds;
      value_call& c = cleared.emplace_back();
      c.call.function = "clear";
      c.call.accumulate = accumulation::after_first;
      c.call.wide = true;
      c.call.sizes = {of.ndim == 1 ? width(of, 0) : times(width(of, 0), width(of, 1))};
      c.writes = {{space::gradient, static_cast<int>(w)}};
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
        out_.names[o.out[j]] = out_.scope.take(n);
      }
    }
  }
  static std::string stem(const std::string& name) { return name.ends_with("_out") ? name.substr(0, name.size() - 4) : name; }

  // ---- the table
  void select(const op& o, std::vector<value_call>& list) {
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

    if (k == "replicate" || o.kind->communicates) return convert(o, list);

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
      c = call(o, {0}, {in0, rope_table(o)});
      c.in_place = {{0, 0}};
      c.call.sizes = {tokens(o.in[0]), count(x, 1), named(x.shape[1].unit_name, x.shape[1].unit), named("seq", o.with.seq)};
      if (cuda_) c.call.sizes.push_back(features(o.in[0]));
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
      throw std::logic_error("no kernel for op '" + std::string(k) + "' in layer '" + name_ + "'");
    }
    list.push_back(std::move(c));
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
  /// The factor of a loss; 1 / tokens of a step as a quotient of whole numbers.
  extent scale(const op& o) const {
    const std::int64_t tokens = static_cast<std::int64_t>(plan_.recipe.global_batch) * plan_.recipe.seq;
    if (o.with.number == 1.0 / static_cast<double>(tokens)) return {0, "1.0 / " + std::to_string(tokens)};
    return {0, fmt::format("{}", o.with.number)};
  }
  int degree(axis a) const { return plan_.dims.*row(a).degree; }

  std::string name_of(int v) const {
    return v == t_.result_gradient ? "dy" : v == t_.input ? "x" : out_.names[v];
  }

  /// Over one rank a conversion changes a placement alone, and so does `replicate` over several.
  void convert(const op& o, std::vector<value_call>& list) {
    if (degree(o.over) > 1 && row(o.over).lowered != lowering::all)
      throw std::logic_error("layer '" + name_ + "': " + std::string(o.kind->name) + " over " + std::string(rankc::name(o.over)) + " is not lowered");
    if (degree(o.over) == 1 || !o.kind->communicates) return merge(find(o.out[0]), find(o.in[0]));
    communicate(o, list);
  }
  void communicate(const op& o, std::vector<value_call>& list) {
    const std::string_view k = o.kind->name;
    value_call c;
    const bool reduces = k == "all_reduce" || k == "all_reduce_max";
    const int part = k == "reduce_scatter" ? o.out[0] : o.in[0];
    const std::size_t element_bytes = bytes_per_element(t_.values[part].holds);
    collective g{role_over(o.over), elements(part), 0, k == "all_reduce_max", name_ + ": " + std::string(k) + " of " + name_of(o.in[0])};
    g.bytes = g.count.value * element_bytes;
    c.call.wide = t_.values[part].holds == element::wide;
    if (reduces) {
      int uses = 0;
      for (const op& other : t_.ops)
        for (int in : other.in) uses += in >= 0 && find(in) == find(o.in[0]);
      // The sum is made in place, or in a copy where the pending one is used besides.
      merge(find(o.out[0]), uses == 1 ? find(o.in[0]) : copy(list, find(o.in[0]), o.in[0]));
      c.writes = c.reads = {of(o.out[0])};
    } else {
      c.writes = {of(o.out[0])};
      c.reads = {of(o.in[0])};
    }
    c.call.function = reduces ? "all_reduce" : std::string(k);
    c.call.collective_ = g;
    list.push_back(std::move(c));
  }

  const std::string& name_;
  const std::vector<layer_parameter>& parameters_;
  const trace& t_;
  const plan_data& plan_;
  const dtype type_;
  const bool cuda_;
  std::map<std::pair<std::string, std::int64_t>, std::string> constant_of_;
  value_program out_;
};

}  // namespace

value_program select_kernels(const layer_kind& layer, const std::string& name, const std::vector<layer_parameter>& parameters,
                             const plan_data& plan, dtype type, target target) {
  return selector(layer, name, parameters, plan, type, target).run();
}

}  // namespace rankc::codegen
