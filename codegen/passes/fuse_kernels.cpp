// SPDX-License-Identifier: Apache-2.0
// The CUDA target's fusions. Each function knows one pattern: a call, its neighbours in the dataflow, and the kernel of
// fused.hpp that does their work at once. Values that lived between the calls are gone afterwards.
#include <array>

#include "calls.hpp"

namespace rankc::codegen {

namespace {

class fuser {
 public:
  fuser(value_program& p, const std::vector<layer_parameter>& parameters) : p_(p), parameters_(parameters) {}

  void forward() {
    for (int i = 0; i < static_cast<int>(p_.forward.size()); ++i) {
      gelu_after_linear(i);
      add_after(i);
      norm_after_add(i);
      sums_after_row_max(i);
    }
  }
  void backward() {
    for (int i = 0; i < static_cast<int>(p_.backward.size()); ++i) {
      gelu_before_linear(i);
      whole_norm(i);
      softmax_before_loss(i);
    }
    for (int i = 0; i < static_cast<int>(p_.backward.size()); ++i) bias_of_linear(i);
  }

 private:
  static bool is(const value_call& c, std::string_view f) { return c.call.function == f; }
  static bool is_linear(const value_call& c) { return is(c, "linear") || is(c, "linear_bias"); }
  static bool same_half(const value_call& a, const value_call& b) { return a.call.for_weights == b.call.for_weights; }
  bool is_shared(const operand& gradient) const { return parameters_[gradient.index].shared; }
  bool goes(const operand& o, int n) const { return is_only_in(p_, o, n); }

  /// Whether calls after `from` and before `to` leave a value as it is.
  static bool unwritten(const calls& list, int from, int to, const operand& o) {
    for (int i = from + 1; i < to; ++i)
      if (holds(list[i].writes, o)) return false;
    return true;
  }
  /// Whether a value is complete before call `i`.
  static bool known_before(const calls& list, int i, const operand& o) {
    for (int j = i; j < static_cast<int>(list.size()); ++j)
      if (holds(list[j].writes, o)) return false;
    return true;
  }

  /// u = linear(..); g = gelu(u)   ->   g, u = linear_gelu(..)
  void gelu_after_linear(int i) {
    calls& list = p_.forward;
    if (!is_linear(list[i])) return;
    const operand before = list[i].writes[0];
    const int g = reader(list, i, before);
    if (g < 0 || !is(list[g], "gelu")) return;
    list[i].call.function += "_gelu";
    list[i].writes = {list[g].writes[0], before};
    erase(list, g);
  }

  /// part = linear(..) or bias(..); y = residual + part   ->   y = linear_add(.., residual) or bias_add(.., residual)
  void add_after(int i) {
    calls& list = p_.forward;
    if (!is_linear(list[i]) && !is(list[i], "bias")) return;
    const operand part = list[i].writes[0];
    const int a = reader(list, i, part);
    if (a < 0 || !is(list[a], "add") || !goes(part, 2)) return;
    const operand residual = other(list[a], part);
    if (residual == part || !known_before(list, i, residual)) return;
    value_call& c = list[i];
    c.call.function += "_add";
    c.writes = {list[a].writes[0]};
    c.in_place.push_back({0, static_cast<int>(c.reads.size())});
    c.reads.push_back(residual);
    erase(list, a);
  }

  /// sum = add(..) or bias_add(..); y, stats = norm(sum)   ->   sum, y, stats = add_norm(..)
  void norm_after_add(int i) {
    calls& list = p_.forward;
    if (!is(list[i], "add") && !is(list[i], "bias_add")) return;
    const operand sum = list[i].writes[0];
    const int n = reader(list, i, sum);
    if (n < 0 || !(is(list[n], "layer_norm") || (is(list[n], "rms_norm") && is(list[i], "add")))) return;
    value_call& c = list[i];
    c.call.function += "_" + list[n].call.function;
    c.writes = {sum, list[n].writes[0], list[n].writes[1]};
    c.reads.insert(c.reads.end(), list[n].reads.begin() + 1, list[n].reads.end());
    c.call.sizes = list[n].call.sizes;
    erase(list, n);
  }

  /// top = row_max(logits); sums = exp_sums(logits, top, targets)   ->   top, sums = softmax_sums(logits, targets)
  void sums_after_row_max(int i) {
    calls& list = p_.forward;
    if (!is(list[i], "row_max") || i + 1 == static_cast<int>(list.size()) || !is(list[i + 1], "exp_sums")) return;
    value_call& c = list[i];
    if (list[i + 1].reads[0] != c.reads[0] || list[i + 1].reads[1] != c.writes[0]) return;  // of other logits
    c.call.function = "softmax_sums";
    c.writes.push_back(list[i + 1].writes[0]);
    c.reads = {list[i + 1].reads[0], list[i + 1].reads[2]};
    erase(list, i + 1);
  }

  /// t = linear_dx(dy, w); du = gelu_grad(t, u); db = bias_grad(du)   ->   du, db = linear_dx_gelu_bias(dy, w, u)
  void gelu_before_linear(int i) {
    calls& list = p_.backward;
    if (!is(list[i], "linear_dx") || list[i].call.accumulate != accumulation::overwrite) return;
    const operand t = list[i].writes[0];
    const int g = reader(list, i, t);
    if (g < 0 || !is(list[g], "gelu_grad") || !goes(t, 2)) return;
    value_call& c = list[i];
    const operand du = list[g].writes[0];
    c.call.function = "linear_dx_gelu";
    c.call.accumulate = accumulation::none;
    c.writes = {du};
    c.reads.push_back(list[g].reads[1]);
    erase(list, g);
    for (int b = i + 1; b < static_cast<int>(list.size()); ++b) {
      if (!is(list[b], "bias_grad") || !holds(list[b].reads, du) || !same_half(list[b], list[i]) || !unwritten(list, i, b, du)) continue;
      list[i].call.function = "linear_dx_gelu_bias";
      list[i].call.accumulate = list[b].call.accumulate;
      list[i].writes.push_back(list[b].writes[0]);
      erase(list, b);
      break;
    }
  }

  /// n = norm_dx(dy, x, stats, gain); dx = residual + n; dgain = norm_dw(dy, x, stats)
  ///   ->   dx, dgain = norm_grad_add(dy, x, stats, gain, residual)
  void whole_norm(int i) {
    calls& list = p_.backward;
    const bool layer = is(list[i], "layer_norm_dx");
    if (!layer && !is(list[i], "rms_norm_dx")) return;
    const operand dy = list[i].reads[0];
    int w = -1;
    for (int j = i + 1; j < static_cast<int>(list.size()); ++j)
      if (is(list[j], layer ? "layer_norm_dw" : "rms_norm_dw") && list[j].reads[0] == dy && list[j].reads[1] == list[i].reads[1] &&
          list[j].reads[2] == list[i].reads[2] && same_half(list[j], list[i]))
        w = j;
    if (w < 0 || !unwritten(list, i, w, dy)) return;
    value_call& c = list[i];
    const std::string name = layer ? "layer_norm_grad" : "rms_norm_grad";
    const operand n = c.writes[0];
    c.call.function = name;
    c.call.accumulate = list[w].call.accumulate;
    c.writes.insert(c.writes.end(), list[w].writes.begin(), list[w].writes.end());
    erase(list, w);
    const int a = reader(list, i, n);
    if (a < 0 || !is(list[a], "add") || !goes(n, 2)) return;
    const operand residual = other(list[a], n);
    if (residual == n || !known_before(list, i, residual)) return;
    list[i].call.function = name + "_add";
    list[i].writes[0] = list[a].writes[0];
    list[i].reads.push_back(residual);
    list[i].in_place = {{0, 4}, {0, 0}};
    erase(list, a);
  }

  /// dsums = cross_entropy_grad(sums); dlogits = exp_sums_grad(dsums, logits, top, targets)
  ///   ->   dlogits = softmax_grad(sums, logits, top, targets)
  void softmax_before_loss(int i) {
    calls& list = p_.backward;
    if (!is(list[i], "cross_entropy_grad")) return;
    const operand dsums = list[i].writes[0];
    const int s = reader(list, i, dsums);
    if (s < 0 || !is(list[s], "exp_sums_grad") || !goes(dsums, 2)) return;
    value_call& c = list[s];
    c.call.function = "softmax_grad";
    c.reads[0] = list[i].reads[0];
    c.call.sizes.push_back(list[i].call.sizes[1]);
    erase(list, i);
  }

  /// dw = linear_dw(dy, x); db = bias_grad(dy)   ->   dw, db = linear_dw_bias(dy, x)
  void bias_of_linear(int i) {
    calls& list = p_.backward;
    if (!is(list[i], "linear_dw")) return;
    for (int b = 0; b < static_cast<int>(list.size()); ++b) {
      if (!is(list[b], "bias_grad") || !(list[b].reads[0] == list[i].reads[0])) continue;
      if (list[b].call.accumulate != list[i].call.accumulate || is_shared(list[b].writes[0]) != is_shared(list[i].writes[0])) continue;
      list[i].call.function = "linear_dw_bias";
      list[i].writes.insert(list[i].writes.end(), list[b].writes.begin(), list[b].writes.end());
      erase(list, b);
      return;
    }
  }

  static operand other(const value_call& add, const operand& part) { return add.reads[0] == part ? add.reads[1] : add.reads[0]; }

  value_program& p_;
  const std::vector<layer_parameter>& parameters_;
};

}  // namespace

void fuse_linear_bias(value_program& p) {
  calls& list = p.forward;
  for (int i = 0; i < static_cast<int>(list.size()); ++i) {
    if (list[i].call.function != "linear") continue;
    const operand part = list[i].writes[0];
    const int b = reader(list, i, part);
    if (b < 0 || list[b].call.function != "bias" || !is_only_in(p, part, 2)) continue;
    list[i].call.function = "linear_bias";
    list[i].writes = list[b].writes;
    list[i].reads.push_back(list[b].reads[1]);
    erase(list, b);
  }
}

void fuse_kernels(value_program& p, const std::vector<layer_parameter>& parameters) {
  fuser f(p, parameters);
  f.forward();
  f.backward();
}

}  // namespace rankc::codegen
