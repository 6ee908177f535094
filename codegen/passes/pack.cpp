// SPDX-License-Identifier: Apache-2.0
// Packing: linears of one input whose weights are neighbours (query, key, value; gate, up) as one product. What they
// make, and its gradient, are columns of packed rows, which rope, attention and swiglu read and write by a stride.
#include <optional>

#include "calls.hpp"
#include "passes.hpp"

namespace rankc::codegen {

namespace {

/// One linear of a pack, and the calls that have to do with it; indices into forward and backward.
struct part {
  operand weight, bias, gradient, bias_gradient;
  operand made, dy;  // its result, and the gradient of it, as linear's own calls name them
  extent width;
  int forward = -1, dx = -1, dw = -1, db = -1;
};

class packer {
 public:
  packer(value_program& p, const std::vector<layer_parameter>& parameters, dtype type)
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
    return at_a.in == at_b.in && at_a.offset + parameters_[a].elements() == at_b.offset;
  }

  std::vector<part> neighbours(int i) const {
    std::vector<part> parts;
    const std::string& function = p_.forward[i].call.function;
    if (function != "linear" && function != "linear_bias") return parts;
    for (int j = i; j < static_cast<int>(p_.forward.size()); ++j) {
      const value_call& c = p_.forward[j];
      if (c.call.function != function || !(c.reads[0] == p_.forward[i].reads[0]) || !is_inner(p_, c.writes[0])) continue;
      const bool biased = c.reads.size() > 2;
      if (!parts.empty() && !(follows(parts.back().weight.index, c.reads[1].index) &&
                              (!biased || follows(parts.back().bias.index, c.reads[2].index))))
        continue;
      part q;
      q.weight = c.reads[1];
      q.gradient = {space::gradient, q.weight.index};
      if (biased) q.bias = c.reads[2], q.bias_gradient = {space::gradient, q.bias.index};
      q.made = c.writes[0];
      q.width = c.call.sizes[2];
      q.forward = j;
      parts.push_back(q);
    }
    return parts;
  }

  /// Whether a weight is used once: its gradient is written by one call.
  bool is_used_once(const operand& gradient) const {
    return std::count_if(p_.backward.begin(), p_.backward.end(), [&](const value_call& c) { return holds(c.writes, gradient); }) == 1;
  }

  /// The backward calls of each part. False where they do not make a product of packed rows.
  bool find_backward(std::vector<part>& parts) const {
    const calls& list = p_.backward;
    for (part& q : parts) {
      if (!is_used_once(q.gradient) || (q.bias.where == space::weight && !is_used_once(q.bias_gradient))) return false;
      for (int i = 0; i < static_cast<int>(list.size()); ++i) {
        const value_call& c = list[i];
        if (c.call.function == "linear_dx" && c.reads[1] == q.weight) q.dx = i;
        if (c.call.function == "linear_dw" && c.writes[0] == q.gradient) q.dw = i;
        if (c.call.function == "bias_grad" && c.writes[0] == q.bias_gradient) q.db = i;
      }
      const part& first = parts.front();
      const bool biased = q.bias.where == space::weight;
      if (q.dw < 0 || (q.db < 0 && biased) || (q.dx < 0) != (first.dx < 0)) return false;
      q.dy = list[q.dw].reads[0];
      if (!is_inner(p_, q.dy) || (biased && !(list[q.db].reads[0] == q.dy))) return false;
      if (q.dx >= 0 && !(list[q.dx].reads[0] == q.dy && list[q.dx].writes[0] == list[first.dx].writes[0])) return false;
    }
    return true;
  }

  static bool takes_strides(const value_call& c) {
    for (const char* f : {"rope", "rope_grad", "attention", "attention_grad", "swiglu", "swiglu_grad"})
      if (c.call.function == f) return true;
    return false;
  }

  /// Whether a value touches, besides the part's own products, only calls that take a stride.
  bool strided(const operand& o, const part& q) const {
    if (!is_inner(p_, o)) return false;
    for (const calls* list : {&p_.forward, &p_.backward})
      for (int i = 0; i < static_cast<int>(list->size()); ++i) {
        if (!mentions((*list)[i], o) || takes_strides((*list)[i])) continue;
        const bool own = list == &p_.forward ? i == q.forward : i == q.dx || i == q.dw || i == q.db;
        if (!own) return false;
      }
    return true;
  }

  /// The values that are this part of the packed rows: rope turns in place.
  std::vector<operand> forward_values(const part& q) const {
    std::vector<operand> values{q.made};
    for (const value_call& c : p_.forward)
      if (c.call.function == "rope" && c.reads[0] == q.made) values.push_back(c.writes[0]);
    return values;
  }
  std::vector<operand> backward_values(const part& q) const {
    std::vector<operand> values{q.dy};
    for (const value_call& c : p_.backward)
      if (c.call.function == "rope_grad" && c.writes[0] == q.dy) values.push_back(c.reads[0]);
    return values;
  }

  bool all_take_strides(const std::vector<part>& parts) const {
    for (const part& q : parts) {
      for (const operand& o : forward_values(q))
        if (!strided(o, q)) return false;
      for (const operand& o : backward_values(q))
        if (!strided(o, q)) return false;
    }
    return share_strides(parts);
  }

  /// Whether the operands of a call that have one stride are parts all, or none: keys and values, gate and up.
  bool share_strides(const std::vector<part>& parts) const {
    const auto is_part = [&](const operand& o) {
      return std::any_of(parts.begin(), parts.end(), [&](const part& q) { return holds(forward_values(q), o); });
    };
    return std::all_of(p_.forward.begin(), p_.forward.end(), [&](const value_call& c) {
      if (c.call.function == "attention") return is_part(c.reads[1]) == is_part(c.reads[2]);
      if (c.call.function == "swiglu") return is_part(c.reads[0]) == is_part(c.reads[1]);
      return true;
    });
  }

  void replace(const operand& from, const operand& to) {
    for (calls* list : {&p_.forward, &p_.backward})
      for (value_call& c : *list)
        for (auto* side : {&c.reads, &c.writes})
          for (operand& o : *side)
            if (o == from) o = to;
  }

  void pack(const std::vector<part>& parts) {
    std::string name;
    extent whole;
    std::size_t bytes = 0, gradient_bytes = 0;
    for (const part& q : parts) {
      name += (name.empty() ? "" : "_") + parameters_[q.weight.index].name;
      whole.value += q.width.value;
      bytes += p_.bytes[q.made.index];
      gradient_bytes += p_.bytes[q.dy.index];
    }
    whole.text = p_.scope.take(name);
    p_.constants.push_back({whole.text, whole.value});
    const std::string shape = p_.forward[parts[0].forward].call.sizes[0].text + " x " + whole.text;
    const int made = p_.add_value(name + "_out", shape, bytes), gradient = p_.add_value("d_" + name + "_out", shape, gradient_bytes);

    std::size_t offset = 0;
    for (const part& q : parts) {
      const std::vector<operand> forward = forward_values(q), backward = backward_values(q);
      for (const operand& o : forward) replace(o, {space::temp, made, offset});
      for (const operand& o : backward) replace(o, {space::temp, gradient, offset});
      offset += q.width.value * runtime::size_of(type_);
    }
    set_strides(made, gradient, whole);
    join_products(parts, made, gradient, whole);
    join_ropes(p_.forward, "rope", made);
    join_ropes(p_.backward, "rope_grad", gradient);
  }

  void set_strides(int made, int gradient, const extent& whole) {
    const auto packed = [&](const operand& o) { return o.where == space::temp && (o.index == made || o.index == gradient); };
    for (calls* list : {&p_.forward, &p_.backward})
      for (value_call& c : *list) {
        const std::string& f = c.call.function;
        std::vector<extent>& sizes = c.call.sizes;
        const bool forward = list == &p_.forward;
        if ((f == "rope" || f == "rope_grad") && packed(c.reads[0])) {
          sizes.back() = whole;
          c.in_place.clear();
        } else if ((f == "swiglu" || f == "swiglu_grad") && packed(c.reads[forward ? 0 : 1])) {
          sizes.back() = whole;
        } else if (f == "attention" || f == "attention_grad") {
          const std::size_t q = forward ? 0 : 1;
          if (packed(c.reads[q])) sizes[5] = whole;
          if (packed(c.reads[q + 1])) sizes[6] = whole;
        }
      }
  }

  /// The weights, biases and gradients of the later parts, as continuations of the first's.
  static void append(std::vector<operand>& list, const std::vector<part>& parts, operand part::*which) {
    for (std::size_t i = 1; i < parts.size(); ++i) {
      list.push_back(parts[i].*which);
      list.back().implied = true;
    }
  }

  void join_products(const std::vector<part>& parts, int made, int gradient, const extent& whole) {
    const part& first = parts.front();
    const operand rows{space::temp, made}, dy{space::temp, gradient};
    const bool biased = first.bias.where == space::weight;
    value_call& linear = p_.forward[first.forward];
    linear.writes = {rows};
    linear.reads = {linear.reads[0], first.weight};
    append(linear.reads, parts, &part::weight);
    if (biased) {
      linear.reads.push_back(first.bias);
      append(linear.reads, parts, &part::bias);
    }
    linear.call.sizes[2] = whole;
    for (std::size_t i = parts.size(); i-- > 1;) erase(p_.forward, parts[i].forward);

    // Each joined call stands where the last of its parts stood; the sum overwrites if the first of them did.
    std::vector<int> gone;
    const auto join = [&](int part::*which) -> value_call& {
      int last = -1, earliest = static_cast<int>(p_.backward.size());
      for (const part& q : parts) last = std::max(last, q.*which), earliest = std::min(earliest, q.*which);
      for (const part& q : parts)
        if (q.*which != last) gone.push_back(q.*which);
      value_call& c = p_.backward[last];
      c.call.accumulate = p_.backward[earliest].call.accumulate;
      c.reads[0] = dy;
      return c;
    };
    value_call& dw = join(&part::dw);
    dw.writes = {first.gradient};
    append(dw.writes, parts, &part::gradient);
    dw.call.sizes[2] = whole;
    if (first.dx >= 0) {
      value_call& dx = join(&part::dx);
      dx.reads = {dy, first.weight};
      append(dx.reads, parts, &part::weight);
      dx.call.sizes[2] = whole;
    }
    if (biased) {
      value_call& db = join(&part::db);
      db.writes = {first.bias_gradient};
      append(db.writes, parts, &part::bias_gradient);
      db.call.sizes[1] = whole;
    }
    std::sort(gone.begin(), gone.end());
    while (!gone.empty()) erase(p_.backward, gone.back()), gone.pop_back();
  }

  /// Ropes of neighbouring columns in one call, where the last of them stood.
  void join_ropes(calls& list, std::string_view function, int packed) const {
    const auto is_rope = [&](const value_call& c) { return c.call.function == function && c.reads[0].where == space::temp && c.reads[0].index == packed; };
    for (int i = 0; i < static_cast<int>(list.size()); ++i) {
      if (!is_rope(list[i])) continue;
      for (int j = i + 1; j < static_cast<int>(list.size()); ++j) {
        if (!is_rope(list[j]) || list[i].reads[1] != list[j].reads[1]) continue;  // of other tables
        const bool ordered = list[i].reads[0].offset < list[j].reads[0].offset;
        const value_call &low = ordered ? list[i] : list[j], &high = ordered ? list[j] : list[i];
        const extent heads = low.call.sizes[1];
        if (low.reads[0].offset + heads.value * low.call.sizes[2].value * runtime::size_of(type_) != high.reads[0].offset) continue;
        value_call joined = low;
        joined.call.sizes[1] = {heads.value + high.call.sizes[1].value, heads.text + " + " + high.call.sizes[1].text};
        list[j] = joined;
        erase(list, i);
        --i;
        break;
      }
    }
  }

  value_program& p_;
  const std::vector<layer_parameter>& parameters_;
  const group_layout placed_;
  const dtype type_;
};

}  // namespace

void pack_linears(value_program& p, const std::vector<layer_parameter>& parameters, dtype type) {
  packer(p, parameters, type).run();
}

}  // namespace rankc::codegen
