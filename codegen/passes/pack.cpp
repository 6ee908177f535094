// SPDX-License-Identifier: Apache-2.0
// Packing: linears of one input whose weights are neighbours (query, key, value; gate, up) as one product. What they
// make, and its gradient, are columns of packed rows, which other ops read and write by a stride.
#include <rankc/ops/fused.hpp>

#include "node.hpp"
#include "passes.hpp"

namespace rankc::codegen {

namespace {

/// One linear of a pack, and the nodes that have to do with it; indices into forward and backward.
struct part {
  int weight = -1, bias = -1;  // parameters
  operand made{}, dy{};        // its result, and the gradient of it, as linear's own nodes name them
  extent width;
  int forward = -1, dx = -1, dw = -1, db = -1;
};

bool is_linear(const node& n) { return n.is(ops::linear) || n.is(ops::linear_bias); }

class packer {
 public:
  packer(layer_program& p, const std::vector<layer_parameter>& parameters, dtype type)
      : p_(p), parameters_(parameters), placed_(lay_out(parameters)), type_(type) {}

  void run() {
    for (int i = 0; i < static_cast<int>(p_.forward.size()); ++i) {
      std::vector<part> parts = neighbours(i);
      if (parts.size() > 1 && find_backward(parts) && all_take_strides(parts)) pack(parts);
    }
  }

 private:
  /// Whether parameter b's elements begin where a's end.
  bool follows(int a, int b) const {
    const auto &at_a = placed_.of_parameter[a], &at_b = placed_.of_parameter[b];
    return at_a.in == at_b.in && at_a.in != group::shared && at_a.offset + parameters_[a].elements() == at_b.offset;
  }

  std::vector<part> neighbours(int i) const {
    std::vector<part> parts;
    if (!is_linear(p_.forward[i])) return parts;
    for (int j = i; j < static_cast<int>(p_.forward.size()); ++j) {
      const node& n = p_.forward[j];
      if (n.row != p_.forward[i].row || !(n["x"] == p_.forward[i]["x"].at) || !p_.is_inner(n["y"].at)) continue;
      part q{.weight = n["w"].at.index, .made = n["y"].at, .width = n.size("out"), .forward = j};
      if (n.is(ops::linear_bias)) q.bias = n["b"].at.index;
      if (!parts.empty() && !(follows(parts.back().weight, q.weight) && (q.bias < 0 || follows(parts.back().bias, q.bias)))) continue;
      parts.push_back(q);
    }
    return parts;
  }

  /// Whether a parameter is used once: one node writes its gradient.
  bool is_used_once(int parameter) const {
    return std::count_if(p_.backward.begin(), p_.backward.end(), [&](const node& n) { return n.writes({space::gradient, parameter}); }) == 1;
  }

  /// The backward nodes of each part. False where they do not make a product of packed rows.
  bool find_backward(std::vector<part>& parts) const {
    const nodes& list = p_.backward;
    for (part& q : parts) {
      if (!is_used_once(q.weight) || (q.bias >= 0 && !is_used_once(q.bias))) return false;
      for (int i = 0; i < static_cast<int>(list.size()); ++i) {
        const node& n = list[i];
        if (n.is(ops::linear_dx) && n["w"] == operand{space::weight, q.weight}) q.dx = i;
        if (n.is(ops::linear_dw) && n["dw"] == operand{space::gradient, q.weight}) q.dw = i;
        if (n.is(ops::bias_grad) && n["db"] == operand{space::gradient, q.bias}) q.db = i;
      }
      const part& first = parts.front();
      if (q.dw < 0 || (q.db < 0 && q.bias >= 0) || (q.dx < 0) != (first.dx < 0)) return false;
      q.dy = list[q.dw]["dy"].at;
      if (!p_.is_inner(q.dy) || (q.bias >= 0 && !(list[q.db]["dy"] == q.dy))) return false;
      if (q.dx >= 0 && !(list[q.dx]["dy"] == q.dy && list[q.dx]["dx"] == list[first.dx]["dx"].at)) return false;
    }
    return true;
  }

  /// Whether a value touches, besides the part's own nodes, only ports that take a stride.
  bool is_strided(const operand& o, const part& q) const {
    if (!p_.is_inner(o)) return false;
    for (const nodes* list : {&p_.forward, &p_.backward})
      for (int i = 0; i < static_cast<int>(list->size()); ++i) {
        const bool own = list == &p_.forward ? i == q.forward : i == q.dx || i == q.dw || i == q.db;
        if (own) continue;
        const node& n = (*list)[i];
        for (std::size_t p = 0; p < n.ports.size(); ++p)
          if (n.ports[p] == o && n.row->ports[p].shape.stride.empty()) return false;
      }
    return true;
  }

  /// The other side of a port that works on columns in place: of an output, the input that it may replace, and back.
  static const port_use* in_place(const node& n, std::size_t p) {
    const port& here = n.row->ports[p];
    for (std::size_t q = 0; q < n.ports.size(); ++q) {
      const port& other = n.row->ports[q];
      const bool replaces = here.is_written() ? here.may_replace[0] == other.name : other.may_replace[0] == here.name;
      if (replaces && !here.shape.stride.empty() && here.shape.stride == other.shape.stride) return &n.ports[q];
    }
    return nullptr;
  }
  /// The values that are this part of the packed rows: `made`, and what a node turns in place where no other needs it.
  static std::vector<operand> values(const nodes& list, const operand& made, bool (port::*from)() const) {
    std::vector<operand> out{made};
    for (const node& n : list)
      for (std::size_t p = 0; p < n.ports.size(); ++p)
        if ((n.row->ports[p].*from)() && n.ports[p] == made)
          if (const port_use* turned = in_place(n, p)) out.push_back(turned->at);
    return out;
  }
  std::vector<operand> forward_values(const part& q) const { return values(p_.forward, q.made, &port::is_read); }
  std::vector<operand> backward_values(const part& q) const { return values(p_.backward, q.dy, &port::is_written); }

  bool all_take_strides(const std::vector<part>& parts) const {
    for (const part& q : parts) {
      const std::vector<operand> forward = forward_values(q), backward = backward_values(q);
      for (const auto* list : {&forward, &backward})
        if (!std::all_of(list->begin(), list->end(), [&](const operand& o) { return is_strided(o, q); })) return false;
      if (forward.size() > 2 || (forward.size() == 2 && p_.mentions(q.made) != 2)) return false;  // read as it was, too
    }
    return share_strides(parts);
  }

  /// Whether the operands of a node that have one stride are parts all, or none: keys and values, gate and up.
  bool share_strides(const std::vector<part>& parts) const {
    const auto is_part = [&](const operand& o) {
      return std::any_of(parts.begin(), parts.end(), [&](const part& q) {
        const std::vector<operand> forward = forward_values(q), backward = backward_values(q);
        return std::find(forward.begin(), forward.end(), o) != forward.end() || std::find(backward.begin(), backward.end(), o) != backward.end();
      });
    };
    const auto agrees = [&](const node& n) {
      for (std::size_t p = 0; p < n.ports.size(); ++p)
        for (std::size_t q = 0; q < p; ++q)
          if (!n.row->ports[p].shape.stride.empty() && n.row->ports[p].shape.stride == n.row->ports[q].shape.stride &&
              is_part(n.ports[p].at) != is_part(n.ports[q].at))
            return false;
      return true;
    };
    return std::all_of(p_.forward.begin(), p_.forward.end(), agrees) && std::all_of(p_.backward.begin(), p_.backward.end(), agrees);
  }

  void replace(const operand& from, const operand& to) {
    for (nodes* list : {&p_.forward, &p_.backward})
      for (node& n : *list)
        for (port_use& u : n.ports)
          if (u == from) u.at = to;
  }

  /// What the model calls the parts, "qkv" or "gate_up"; empty where it does not name them all.
  std::string join_names(const std::vector<part>& parts) const {
    std::string joined;
    for (const part& q : parts) {
      std::string of_part;
      for (const operand& o : forward_values(q))
        if (p_.named[o.index]) of_part = p_.names[o.index];
      if (of_part.empty()) return "";
      joined += (joined.empty() || of_part.size() == 1 ? "" : "_") + of_part;
    }
    return joined;
  }

  void pack(const std::vector<part>& parts) {
    std::string name;
    extent whole;
    std::size_t bytes = 0, gradient_bytes = 0;
    for (const part& q : parts) {
      name += (name.empty() ? "" : "_") + parameters_[q.weight].name;
      whole.value += q.width.value;
      bytes += p_.bytes[q.made.index];
      gradient_bytes += p_.bytes[q.dy.index];
    }
    whole.text = p_.scope.take(name);
    const std::string given = join_names(parts), made_name = given.empty() ? name + "_out" : given;
    p_.constants.push_back({whole.text, whole.value});
    const std::string shape = p_.forward[parts[0].forward].size("tokens").text + " x " + whole.text;
    const int made = p_.add_value(made_name, shape, bytes), gradient = p_.add_value("d_" + made_name, shape, gradient_bytes);

    std::size_t offset = 0;
    for (const part& q : parts) {
      const std::vector<operand> forward = forward_values(q), backward = backward_values(q);
      for (const operand& o : forward) replace(o, {space::temp, made, offset});
      for (const operand& o : backward) replace(o, {space::temp, gradient, offset});
      offset += q.width.value * runtime::size_of(type_);
    }
    for (nodes* list : {&p_.forward, &p_.backward})
      for (node& n : *list)
        for (port_use& u : n.ports)
          if (u.at.where == space::temp && (u.at.index == made || u.at.index == gradient)) u.shape.stride = whole;
    join_products(parts, made, gradient, whole);
    join_ropes(p_.forward, ops::rope, made);
    join_ropes(p_.backward, ops::rope_grad, gradient);
  }

  /// A port of all parts: the first's parameter, of which the others' are continuations; or the packed rows.
  static void join_parameters(port_use& u, space where, const std::vector<part>& parts, int part::*which, const extent& whole) {
    u.at = {where, parts.front().*which};
    for (std::size_t i = 1; i < parts.size(); ++i) u.rest.push_back({where, parts[i].*which});
    u.shape.dims[0] = {.count = whole};
  }
  static void widen(port_use& u, int value, const extent& whole) {
    u.at = {space::temp, value};
    u.shape.dims[1] = {.count = whole};
  }

  void join_products(const std::vector<part>& parts, int made, int gradient, const extent& whole) {
    const part& first = parts.front();
    node& linear = p_.forward[first.forward];
    widen(linear["y"], made, whole);
    join_parameters(linear["w"], space::weight, parts, &part::weight, whole);
    if (first.bias >= 0) join_parameters(linear["b"], space::weight, parts, &part::bias, whole);
    for (std::size_t i = parts.size(); i-- > 1;) p_.forward.erase(p_.forward.begin() + parts[i].forward);

    // Each joined node stands where the last of its parts stood; the sum overwrites if the first of them did.
    std::vector<int> gone;
    const auto join = [&](int part::*which) -> node& {
      int last = -1, earliest = static_cast<int>(p_.backward.size());
      for (const part& q : parts) last = std::max(last, q.*which), earliest = std::min(earliest, q.*which);
      for (const part& q : parts)
        if (q.*which != last) gone.push_back(q.*which);
      node& n = p_.backward[last];
      n.accumulate = p_.backward[earliest].accumulate;
      widen(n["dy"], gradient, whole);
      return n;
    };
    join_parameters(join(&part::dw)["dw"], space::gradient, parts, &part::weight, whole);
    if (first.dx >= 0) join_parameters(join(&part::dx)["w"], space::weight, parts, &part::weight, whole);
    if (first.bias >= 0) join_parameters(join(&part::db)["db"], space::gradient, parts, &part::bias, whole);
    std::sort(gone.begin(), gone.end());
    while (!gone.empty()) p_.backward.erase(p_.backward.begin() + gone.back()), gone.pop_back();
  }

  /// Ropes of neighbouring columns in one node, where the last of them stood.
  void join_ropes(nodes& list, const op_row& row, int packed) const {
    const auto is_rope = [&](const node& n) { return n.is(row) && n.ports[1].at.where == space::temp && n.ports[1].at.index == packed; };
    for (int i = 0; i < static_cast<int>(list.size()); ++i) {
      if (!is_rope(list[i])) continue;
      for (int j = i + 1; j < static_cast<int>(list.size()); ++j) {
        if (!is_rope(list[j]) || !(list[i]["table"] == list[j]["table"].at)) continue;
        const bool ordered = list[i].ports[1].at.offset < list[j].ports[1].at.offset;
        const node &low = ordered ? list[i] : list[j], &high = ordered ? list[j] : list[i];
        const extent heads = low.size("heads"), more = high.size("heads");
        if (low.ports[1].at.offset + heads.value * low.size("dim").value * runtime::size_of(type_) != high.ports[1].at.offset) continue;
        node joined = low;
        for (port_use* u : {&joined.ports[0], &joined.ports[1]}) u->shape.dims[1].count = {heads.value + more.value, heads.text + " + " + more.text};
        list[j] = joined;
        list.erase(list.begin() + i);
        --i;
        break;
      }
    }
  }

  layer_program& p_;
  const std::vector<layer_parameter>& parameters_;
  const group_layout placed_;
  const dtype type_;
};

}  // namespace

void pack_linears(layer_program& p, const std::vector<layer_parameter>& parameters, dtype type) {
  packer(p, parameters, type).run();
}

}  // namespace rankc::codegen
