// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <rankc/codegen/names.hpp>

#include <algorithm>

#include "listing.hpp"
#include "input_text.hpp"
#include "names.hpp"

namespace rankc::codegen {

namespace {

std::string join(const std::vector<std::string>& words, const char* between = ", ") {
  return fmt::format("{}", fmt::join(words, between));
}

/// "[512, 4 x 32 of 384]": tokens, four heads of 32, in rows of 384.
std::string text_of(const local_shape& s) {
  if (s.ndim == 0) return "";
  std::vector<std::string> dims;
  for (int d = 0; d < s.ndim; ++d)
    dims.push_back(s.dims[d].unit == 1 ? fmt::format("{}", s.dims[d].count)
                                       : fmt::format("{} x {}", s.dims[d].count, s.dims[d].unit));
  const bool strided = s.ndim > 1 && s.stride.width() != s.dims[s.ndim - 1].width();
  return fmt::format("[{}{}]", join(dims), strided ? fmt::format(" of {}", s.stride.width()) : "");
}

/// "y = linear(x, w), over tp"
std::string equation(const std::vector<std::string>& made, std::string_view op,
                     const std::vector<std::string>& of, const std::vector<std::string>& notes) {
  return fmt::format("{} = {}({}){}{}", join(made), op, join(of), notes.empty() ? "" : ", ", join(notes));
}

void note_attributes(std::vector<std::string>& notes, int rows, int seq, double number,
                     const attention_setting& s) {
  if (rows) notes.push_back(fmt::format("rows {}", rows));
  if (seq) notes.push_back(fmt::format("seq {}", seq));
  if (number != 0) notes.push_back(fmt::format("number {}", number));
  s.each_set([&](std::string_view name, double x) {
    notes.push_back(name == "causal" ? "not causal" : fmt::format("{} {}", name, x));
  });
}

// ---- typed ops
class op_lister {
 public:
  op_lister(const body& b, const trace& t) : t_(t), names_(name_layer(b, t)) {}

  std::string line(const rankc::op& o) const {
    std::vector<std::string> made, of, notes;
    for (int j = 0; j < max_outputs && o.out[j] >= 0; ++j)
      made.push_back(o.adds_to[j] >= 0
                         ? "dw." + identifier(t_.weights[o.adds_to[j]].name.text()) + shape(o.out[j])
                         : operand(o.out[j]));
    for (int v : o.in)
      if (v >= 0) of.push_back(operand(v));
    if (o.over != no_axis) notes.push_back(fmt::format("over {}", rankc::name(o.over)));
    note_attributes(notes, o.with.rows, o.with.seq, o.number(), o.with.attention);
    return equation(made, o.kind->name, of, notes);
  }

 private:
  std::string shape(int v) const {
    local_shape whole{.ndim = t_.values[v].ndim};
    for (int d = 0; d < whole.ndim; ++d)
      whole.dims[d] = {.count = t_.values[v].shape[d].count(), .unit = t_.values[v].shape[d].unit};
    if (whole.ndim > 1) whole.stride = whole.dims[1];
    return text_of(whole);
  }
  std::string operand(int v) const {
    if (const int w = t_.find_parameter(v); w >= 0)
      return "w." + identifier(t_.weights[w].name.text()) + shape(v);
    for (const input_value& i : t_.inputs)
      if (i.id == v) return text_of_input(i.is).formal + shape(v);
    if (v == t_.result) return t_.values[v].ndim == 0 ? "loss" : "y" + shape(v);
    if (v == t_.gradients[t_.input]) return "dx" + shape(v);
    return names_.converted[v] + shape(v);
  }

  const trace& t_;
  const body_names names_;
};

// ---- nodes
class layer_lister {
 public:
  layer_lister(const body& b, const trace& t) : b_(b), inputs_(t.inputs) { b_.names = name_layer(b_, t); }

  listing run() const {
    listing all{{"values", values()}, {"forward", lines(b_.forward, [](const node&) { return true; })}};
    const bool in_halves =
        std::any_of(b_.backward.begin(), b_.backward.end(), [](const node& n) { return n.for_weights; });
    all.push_back({in_halves ? "backward_input" : "backward",
                   lines(b_.backward, [](const node& n) { return !n.for_weights; })});
    all.push_back({"backward_weight", lines(b_.backward, [](const node& n) { return n.for_weights; })});
    all.push_back({"storage", storage()});
    return all;
  }

 private:
  static bool is_own(const value& v) {
    return v.where == space::saved || v.where == space::halfway || v.where == space::temp;
  }
  static bool is_scratch(const value& v) { return v.holds == element_kind::bytes; }

  std::string name(int of) const {
    constexpr std::string_view spaces[]{"x",  "y",   "dy",         "dx", "",     "",       "",
                                        "w.", "dw.", "rope_table", "",   "loss", "routers"};
    const value& v = b_.values[of];
    if (v.where == space::input) return text_of_input(inputs_[static_cast<std::size_t>(v.of)].is).formal;
    const std::string_view space = spaces[static_cast<int>(v.where)];
    if (is_own(v)) return b_.names.values[of];
    if (v.where == space::weight || v.where == space::gradient)
      return fmt::format("{}{}", space, b_.names.parameters[v.of]);
    return std::string(space) + (v.offset > 0 ? ".statistics" : "");
  }
  std::string operand(const port_use& u) const {
    std::string text = name(u.at.value);
    if (u.run >= 0)
      for (int more : b_.runs[u.run]) text += " " + name(more);
    if (u.at.offset) text += fmt::format("@{}", u.at.offset);
    return text + (u.shape < 0 ? "" : text_of(b_.shape(u)));
  }
  std::string line(const node& n) const {
    std::vector<std::string> made, of, notes;
    for (std::size_t p = 0; p < n.ports.size(); ++p)
      (n.row->ports[p].is_read() ? of : made).push_back(operand(n.ports[p]));
    if (n.over != no_axis) notes.push_back(fmt::format("over {}", rankc::name(n.over)));
    note_attributes(notes, n.rows, n.seq, n.number, n.attention);
    if (n.only != in_step::any)
      notes.push_back(n.only == in_step::training ? "of training alone" : "of evaluation alone");
    if (n.accumulate == accumulation::add) notes.push_back("added");
    if (n.accumulate == accumulation::after_first) notes.push_back("added after the first microbatch");
    return equation(made, n.row->name, of, notes);
  }
  std::vector<std::string> lines(const nodes& list, auto wanted) const {
    std::vector<std::string> out;
    for (const node& n : list)
      if (wanted(n)) out.push_back(line(n));
    return out;
  }

  /// The layer's own values that nodes touch; scratch last, as in storage.
  std::vector<std::string> values() const {
    std::vector<std::string> out;
    for (const bool scratch : {false, true})
      for (std::size_t v = 0; v < b_.values.size(); ++v) {
        const value& of = b_.values[v];
        if (!is_own(of) || is_scratch(of) != scratch || !b_.mentions(static_cast<int>(v))) continue;
        out.push_back(fmt::format("{}{}, {} bytes", b_.names.values[v],
                                  of.shape < 0 ? "" : text_of(b_.shape(of)), of.bytes));
      }
    return out;
  }

  /// The values of each memory by offset, with the first and the last node that touch them.
  std::vector<std::string> storage() const {
    std::vector<std::string> out;
    const auto lives = [](const char* phase, const rankc::lowering::node_range& r) {
      return r.any() ? fmt::format(", {} {} .. {}", phase, r.first, r.last) : "";
    };
    const auto list = [&](const char* title, std::size_t bytes, auto wanted) {
      std::vector<const value*> here;
      for (const value& v : b_.values)
        if (wanted(v)) here.push_back(&v);
      std::stable_sort(here.begin(), here.end(), [](auto* a, auto* b) { return a->offset < b->offset; });
      if (!here.empty()) out.push_back(fmt::format("{}: {} bytes", title, bytes));
      for (const value* v : here)
        out.push_back(fmt::format("  {} + {}: {}{}{}", v->offset, v->bytes,
                                  name(static_cast<int>(v - b_.values.data())), lives("forward", v->forward),
                                  lives("backward", v->backward)));
    };
    list("kept for backward", b_.saved_bytes, [](const value& v) { return v.where == space::saved; });
    list("kept between the halves of backward", b_.halfway_bytes,
         [](const value& v) { return v.where == space::halfway; });
    list("work of forward", b_.forward_temp,
         [](const value& v) { return v.where == space::temp && v.forward.any(); });
    list("work of backward", b_.backward_temp,
         [](const value& v) { return v.where == space::temp && v.backward.any(); });
    return out;
  }

  body b_;
  const std::vector<input_value> inputs_;
};

}  // namespace

listing list_ops(const body& b, const trace& t) {
  const op_lister lister(b, t);
  listing all{{"forward", {}}, {"backward", {}}};
  for (std::size_t i = 0; i < t.ops.size(); ++i)
    all[i >= t.forward_ops].lines.push_back(lister.line(t.ops[i]));
  return all;
}

listing list_layer(const body& b, const trace& t) { return layer_lister(b, t).run(); }

}  // namespace rankc::codegen
