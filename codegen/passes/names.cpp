// SPDX-License-Identifier: Apache-2.0
// Names a layer's values after the ops that made them, and the constants of its sizes.
#include "names.hpp"

#include "input_text.hpp"

#include <rankc/codegen/names.hpp>
#include <rankc/ops/fp8.hpp>
#include <rankc/ops/table.hpp>

#include <algorithm>
#include <stdexcept>

namespace rankc::codegen {

namespace {

using rankc::lowering::name_source;

/// The identifiers that the text of a layer uses itself, and the kernels that it calls.
std::vector<std::string_view> reserved_names() {
  std::vector<std::string_view> names{"on",
                                      "during",
                                      "step",
                                      "beside",
                                      "follow",
                                      "w",
                                      "dw",
                                      "s",
                                      "work",
                                      "rope_table",
                                      "ids",
                                      "targets",
                                      "starts",
                                      "label_count",
                                      "x",
                                      "y",
                                      "loss",
                                      "routers",
                                      "dy",
                                      "dx",
                                      "parameters",
                                      "saved",
                                      "halfway",
                                      "mid",
                                      "place",
                                      "keep",
                                      "forward",
                                      "backward",
                                      "backward_input",
                                      "backward_weight",
                                      "recompute",
                                      "slot",
                                      "region",
                                      "size",
                                      "own",
                                      "over_tp",
                                      "own_experts",
                                      "shared",
                                      "at",
                                      "real",
                                      "bf16",
                                      "rank",
                                      "lane",
                                      "over",
                                      "reduction",
                                      "event",
                                      "message",
                                      "rankc",
                                      "std",
                                      "host",
                                      "cuda",
                                      "runtime",
                                      "copy",
                                      "clear",
                                      "matrix",
                                      "vector",
                                      "stream",
                                      "workspace",
                                      "size_constant",
                                      "store",
                                      "run",
                                      "input",
                                      "output",
                                      "into",
                                      "base",
                                      "wide",
                                      "send",
                                      "receive",
                                      "sum_squares",
                                      "std",
                                      "T"};
  for (const optimizer_row* row : optimizer_rows) names.push_back(row->name);
  for (const op_row* row : ops::all) names.push_back(row->name);
  ops::each_fusion([&](const fusion& f) { names.push_back(f.into.kind->name); });
  ops::each_fp8_row([&](const op_row& row) { names.push_back(row.name); });
  return names;
}

class namer {
 public:
  namer(const body& b, const trace& t)
      : b_(b), t_(t), scope_(reserved_names()), traced_(t.values.size()), named_(t.values.size()) {}

  body_names run() {
    for (const layer_parameter& p : b_.parameters)
      if (p.shared) scope_.take("into_" + p.name.text());
    scope_.take("into_experts");
    for (const input_value& i : t_.inputs)
      if (const input_text t = text_of_input(i.is); t.held == holding_kind::input) scope_.take(t.formal);
    if (const int ranks = region_ranks(b_.setting.dims); ranks > 1)
      name_constant(rankc::name(region_axis), ranks);
    name_traced();
    name_sizes();
    name_made();
    std::vector<std::string_view> taken{"parameters",  "at",     "T",      "own",   "over_tp",
                                        "own_experts", "shared", "vector", "matrix"};
    for (const constant& c : out_.constants) taken.push_back(c.name);
    name_scope ids(taken);
    for (const layer_parameter& p : b_.parameters) out_.parameters.push_back(ids.take(p.name.text()));
    for (int v = 0; v < static_cast<int>(traced_.size()); ++v) out_.converted.push_back(converted_name(v));
    return std::move(out_);
  }

 private:
  std::string converted_name(int v) const {
    if (v == t_.result_gradient) return "dy";
    if (v == t_.input) return "x";
    for (const carried_value& c : t_.carried)
      if (v == c.in) return std::string(c.name);
    return traced_[static_cast<std::size_t>(v)];
  }

  // ---- values of the trace: names of the model, or of the ops that made them
  /// A gradient of several named values is named after the last of them, for which it was made.
  void take_names_of_model() {
    for (const value_name& n : t_.names) {
      traced_[n.id] = scope_.take(n.name);
      named_[n.id] = true;
    }
    for (auto n = t_.names.rbegin(); n != t_.names.rend(); ++n) {
      const int gradient = t_.gradients[n->id];
      if (gradient < 0 || named_[gradient]) continue;
      traced_[gradient] = scope_.take("d_" + std::string(n->name));
      named_[gradient] = true;
    }
  }
  void name_traced() {
    take_names_of_model();
    std::vector<int> gradient_of(t_.values.size(), -1);
    for (std::size_t v = 0; v < t_.gradients.size(); ++v)
      if (t_.gradients[v] >= 0 && gradient_of[t_.gradients[v]] < 0)
        gradient_of[t_.gradients[v]] = static_cast<int>(v);
    for (std::size_t i = 0; i < t_.ops.size(); ++i) {
      const rankc::op& o = t_.ops[i];
      const bool forward = i < t_.forward_ops;
      const bool unary = forward && is_unary(o);
      std::string base = forward ? forward_base(o, unary) : std::string(o.kind->name);
      std::replace(base.begin(), base.end(), '.', '_');
      for (int j = 0; j < max_outputs && o.out[j] >= 0; ++j) {
        if (o.adds_to[j] >= 0 || named_[o.out[j]]) continue;
        traced_[o.out[j]] = scope_.take(forward ? result_name(o, base, j, unary)
                                                : gradient_name(o, base, gradient_of[o.out[j]]));
      }
    }
  }
  /// True if an op reads one named value only.
  bool is_unary(const rankc::op& o) const {
    return parameter_read_by(o) < 0 && o.in[0] >= 0 && o.in[1] < 0 && !traced_[o.in[0]].empty();
  }
  std::string forward_base(const rankc::op& o, bool unary) const {
    if (named_[o.out[0]]) return traced_[o.out[0]];
    if (unary) return stem(traced_[o.in[0]]) + "_" + std::string(o.kind->name);
    const int weight = parameter_read_by(o);
    return weight >= 0 ? t_.weights[weight].name.text() : std::string(o.kind->name);
  }
  static std::string result_name(const rankc::op& o, const std::string& base, int place, bool unary) {
    if (place > 0) return base + "_" + std::string(output_port(*o.kind, place).name);
    return unary ? base : base + "_out";
  }
  /// `of`: the value whose gradient the result is; -1: none.
  std::string gradient_name(const rankc::op& o, const std::string& base, int of) const {
    if (of >= 0 && !traced_[of].empty()) return "d_" + traced_[of];
    if (of == t_.input) return "d_x";
    // Keys and values that backward sends around the ring are no gradients.
    const bool is_of_forward = of < 0 && o.kind->is_shift();
    return is_of_forward ? base + "_out" : "d_" + base;
  }
  int parameter_read_by(const rankc::op& o) const {
    for (int v : o.in)
      if (const int w = v < 0 ? -1 : t_.find_parameter(v); w >= 0) return w;
    return -1;
  }
  static const port& output_port(const op_row& row, int place) {
    for (const port& p : row.used_ports())
      if (p.is_written() && place-- == 0) return p;
    throw std::logic_error("op '" + std::string(row.name) + "' has fewer results");
  }
  static std::string stem(const std::string& name) {
    return name.ends_with("_out") ? name.substr(0, name.size() - 4) : name;
  }

  // ---- constants
  void name_constant(std::string_view name, std::int64_t value) {
    const auto [known, is_new] = out_.constant_of.try_emplace({name, value});
    if (!is_new) return;
    known->second = scope_.take(name);
    out_.constants.push_back({known->second, value});
  }
  void name_dims(const type& t) {
    for (int i = 0; i < t.ndim; ++i) {
      const local_dim d = rankc::lowering::local(t, i, b_.setting.dims);
      std::int64_t whole = d.count;
      d.each_axis([&](axis a) { whole *= ranks_along(b_.setting.dims, a); });
      name_constant(d.name, whole);
      d.each_axis([&](axis a) { name_constant(rankc::name(a), ranks_along(b_.setting.dims, a)); });
      if (d.unit != 1) name_constant(d.unit_name, d.unit);
    }
  }
  /// Names the sizes of values first, without parameters and their gradients; then those of the ops, in
  /// order.
  void name_sizes() {
    std::vector<char> of_parameter(t_.values.size(), 0);
    for (const weight_info& w : t_.weights) of_parameter[w.id] = 1;
    for (const rankc::op& o : t_.ops)
      for (int j = 0; j < max_outputs; ++j)
        if (o.adds_to[j] >= 0) of_parameter[o.out[j]] = 1;
    for (std::size_t v = 0; v < t_.values.size(); ++v)
      if (!of_parameter[v]) name_dims(t_.values[v]);
    for (const rankc::op& o : t_.ops)
      if (o.kind->converts == conversion::none || o.with.seq) name_sizes(o);
  }
  void name_sizes(const rankc::op& o) {
    int read = 0, written = 0;
    for (const port& p : o.kind->used_ports()) {
      if (p.is_traced()) name_dims(t_.values[p.is_written() ? o.out[written++] : o.in[read++]]);
      if (p.as != use::rotary) continue;
      const dim& heads = t_.values[o.in[0]].shape[1];
      name_constant(heads.unit_name, heads.unit);
    }
    if (const int rows = rankc::lowering::rows_of_op(t_, o, b_.setting.dims)) name_constant("rows", rows);
    if (o.with.seq) name_constant("seq", o.with.seq);
    if (o.with.ring) name_constant("ring", o.with.ring);
  }

  // ---- values that lowering made
  void name_made() {
    out_.values.resize(b_.values.size());
    out_.packed.resize(b_.composed.size());
    const auto with_endings = [](const std::string& text, const name_source& s) {
      return text + (s.again ? "_again" : "") + (s.rounded.empty() ? "" : "_" + std::string(s.rounded));
    };
    each_from(name_source::traced, [&](const name_source& s) {
      if (s.of < 0 || (!s.again && s.rounded.empty())) return s.of < 0 ? "" : traced_[s.of];
      std::string text = traced_[s.of].empty() ? "made" : traced_[s.of];
      if (const int weight = t_.find_parameter(s.of); weight >= 0) text = t_.weights[weight].name.text();
      return scope_.take(with_endings(text, s));
    });
    each_from(name_source::copy, [&](const name_source& s) {
      return scope_.take(with_endings(traced_[s.of].empty() ? "handed" : traced_[s.of] + "_copy", s));
    });
    for (std::size_t c = 0; c < b_.composed.size(); ++c) {
      if (b_.composed[c].how != rankc::lowering::composed_dim::packed) continue;
      std::string name;
      std::int64_t width = 0;
      for (int w : b_.composed[c].parameters) {
        name += (name.empty() ? "" : "_") + b_.parameters[w].name.text();
        width += b_.parameters[w].rows;
      }
      out_.packed[c] = scope_.take(name + "_width");
      out_.constants.push_back({out_.packed[c], width});
      const std::string given = join_names(b_.composed[c]), made = given.empty() ? name + "_out" : given;
      const auto is_of = [&](const name_source& s) { return s.of == static_cast<int>(c); };
      each_from(
          name_source::packed, [&](const name_source& s) { return scope_.take(with_endings(made, s)); },
          is_of);
      each_from(
          name_source::packed_gradient,
          [&](const name_source& s) { return scope_.take(with_endings("d_" + made, s)); }, is_of);
      each_from(
          name_source::packed_weight,
          [&](const name_source& s) { return scope_.take(with_endings(name, s)); }, is_of);
    }
    each_from(name_source::scratch,
              [&](const name_source& s) { return scope_.take(std::string(s.row->name) + "_scratch"); });
  }
  /// The model's name of packed columns: "qkv" or "gate_up".
  std::string join_names(const rankc::lowering::composed_dim& packed) const {
    std::string joined;
    for (int v : packed.named) joined += (joined.empty() || traced_[v].size() == 1 ? "" : "_") + traced_[v];
    return joined;
  }
  void each_from(name_source::kind kind, auto name, auto wanted) {
    for (std::size_t v = 0; v < b_.values.size(); ++v)
      if (const name_source& s = b_.values[v].name; s.from == kind && wanted(s)) out_.values[v] = name(s);
  }
  void each_from(name_source::kind kind, auto name) {
    each_from(kind, name, [](const name_source&) { return true; });
  }

  const body& b_;
  const trace& t_;
  name_scope scope_;
  std::vector<std::string> traced_;
  std::vector<bool> named_;  // values with a name of the model, and gradients of such values
  body_names out_;
};

}  // namespace

body_names name_layer(const body& b, const trace& t) { return namer(b, t).run(); }

}  // namespace rankc::codegen
