// SPDX-License-Identifier: Apache-2.0
#include "model_shapes.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "model.hpp"

namespace rankc::codegen::algebra {

namespace {

/// The dims of values that some op takes in units: the value and the dim.
using unit_uses = std::set<std::pair<int, std::size_t>>;

/// Checks the shapes of one op of a layer: an axis of its row has one size in all values.
class op_shapes {
 public:
  op_shapes(const specification::layer& l, const specification::op& o, const fact& f, unit_uses& units)
      : layer_(l),
        op_(o),
        units_(units),
        fact_(f),
        has_table_(fact_.positions && ports() < fact_.ports.size()) {}

  void check() {
    const std::size_t expected = fact_.ports.size() - (has_table_ ? 1 : 0);
    if (ports() != expected || op_.out.size() != static_cast<std::size_t>(fact_.results)) return;  // RC7604
    if (is_of_any_dims()) return check_alike();
    for (std::size_t p = 0; p < ports(); ++p) check_port(p);
    check_parts();
    check_attributes();
  }

 private:
  std::size_t ports() const { return op_.in.size() + op_.out.size(); }
  int index(std::size_t port) const {
    const std::size_t results = op_.out.size();
    return port < results ? op_.out[port] : op_.in[port - results];
  }
  const specification::tensor& value(std::size_t port) const {
    return layer_.values[static_cast<std::size_t>(index(port))];
  }
  [[noreturn]] void refuse(const std::string& what, std::int64_t found, std::int64_t expected) const {
    throw refusal("RC7708: {} of {} in \"{}\" of the model is {}; expected {}", what, op_.row, layer_.name,
                  found, expected);
  }

  /// Whether the op is an elementwise sum or copy, which takes values of any dims.
  bool is_of_any_dims() const {
    return std::all_of(fact_.equations.begin(), fact_.equations.end(), [](const equation& e) {
      const bool is_sum = e.is == equation::kind::sum && std::count(e.same.begin(), e.same.end(), false) == 0;
      return is_sum || e.is == equation::kind::multiple || e.is == equation::kind::zero;
    });
  }
  void check_alike() const {
    for (const equation& e : fact_.equations)
      for (const int o : e.operands)
        if (value(static_cast<std::size_t>(e.results[0])).shape != value(static_cast<std::size_t>(o)).shape)
          throw refusal("RC7709: {} in \"{}\" of the model makes a value of another shape than it is given",
                        op_.row, layer_.name);
    check_attributes();
  }

  void is(const std::string& what, std::int64_t found, std::int64_t expected) const {
    if (found != expected) refuse(what, found, expected);
  }
  /// Checks that a size is the same in all values. The first value determines it.
  void is_known(const std::string& what, std::int64_t found) {
    const std::int64_t expected = known_.try_emplace(what, found).first->second;
    is("the " + what, found, expected);
  }

  void check_port(std::size_t p) {
    const std::vector<axis_use>& axes = fact_.ports[p].axes;
    const specification::tensor& t = value(p);
    is("the number of dims of " + fact_.ports[p].name, static_cast<std::int64_t>(t.shape.size()),
       static_cast<std::int64_t>(axes.size()));
    for (std::size_t d = 0; d < axes.size(); ++d) {
      if (axes[d].unit) units_.insert({index(p), d});
      check_axis(axes[d], t.shape[d], t.unit_of(d));
    }
  }
  void check_axis(const axis_use& a, std::int64_t size, std::int64_t unit) {
    if (a.of < 'a') return is("a size", size, a.of - '0');
    const std::string letter(1, a.of);
    if (!a.unit) return is_known("size of axis " + letter, size);
    if (unit < 1 || size % unit) refuse("the unit of axis " + letter, unit, size);
    is_known("size of axis " + letter, size / unit);
    is_known("size of axis " + std::string(1, a.unit), unit);
  }

  std::int64_t size(const std::string& letter) const {
    const auto at = known_.find("size of axis " + letter);
    return at == known_.end() ? -1 : at->second;
  }
  /// Checks that the two parts of a value together have its size.
  void check_parts() const {
    if (fact_.parts && size("w") >= 0) is("the size of both parts", size("l") + size("r"), size("w"));
  }
  void check_attributes() const {
    if (!fact_.reads_rows) is("rows", op_.rows, 0);
    if (!fact_.reads_seq) is("seq", op_.seq, 0);
    if (fact_.arranges) is("rows", op_.rows, 0);
    else if (fact_.sequences) is("rows times seq", op_.rows * op_.seq, size("t"));
    if (fact_.documents) is("rows times seq", op_.rows * op_.seq, size("n"));
    if (fact_.grouped) check_groups();
    if (fact_.pooled) {
      is("rows", op_.rows, size("m"));
      is("rows times seq", op_.rows * op_.seq, size("t"));
    }
    if (const attention_setting& s = op_.attention; !fact_.attention && !s.is_plain())
      throw refusal(
          "RC7767: {} in \"{}\" of the model has window {}, softcap {}, scale {} and causal {}, which its "
          "row does not take; expected 0, 0, 0 and true",
          op_.row, layer_.name, s.window, s.softcap, s.scale, s.causal ? "true" : "false");
    const bool takes_number = fact_.reads_number || has_table_;
    if ((!takes_number && op_.number != 0) || (!has_table_ && op_.scaling != rope_scaling{}))
      throw refusal(
          "RC7729: {} in \"{}\" of the model has number {} or a scaling, which its row does not take",
          op_.row, layer_.name, op_.number);
  }

  /// Divides instead of multiplying, because sizes in a file may be so large that a product overflows.
  void check_groups() const {
    const std::int64_t group = std::max<std::int64_t>(op_.seq, 1);
    is("the number of groups", size("m"), size("t") / group);
    is("the number of tokens behind the last group", size("t") % group, 0);
  }

  const specification::layer& layer_;
  const specification::op& op_;
  unit_uses& units_;
  const fact& fact_;
  bool has_table_;  // whether it has a rotary table, which is not a value
  std::map<std::string, std::int64_t> known_;
};

}  // namespace

/// Checks that a value that no op or parameter uses has no shape, and that a dim that no op takes in units
/// has units of one element.
static void check_values(const specification::layer& l, const unit_uses& taken) {
  std::set<int> used;
  for (const specification::op& o : l.ops) {
    used.insert(o.in.begin(), o.in.end());
    used.insert(o.out.begin(), o.out.end());
  }
  for (const specification::parameter& p : l.parameters) used.insert(p.value);
  for (int v = 0; v < static_cast<int>(l.values.size()); ++v) {
    const specification::tensor& t = l.values[static_cast<std::size_t>(v)];
    const std::size_t dims = t.shape.size();
    const bool has_unit = dims > 0 && taken.contains({v, dims - 1}),
               has_unit_of_rows = dims == 2 && taken.contains({v, 0});
    if ((dims > 0 && !used.contains(v)) || (!has_unit && t.unit != 1) ||
        (!has_unit_of_rows && t.unit_of_rows != 1))
      throw refusal(
          "RC7727: value {} of \"{}\" of the model has {} dims, and units of {} and {}, that no op "
          "takes",
          v, l.name, dims, t.unit, t.unit_of_rows);
  }
}

namespace {

/// Checks the values between layers: each layer begins with the result of the layer before it.
class layer_boundaries {
 public:
  explicit layer_boundaries(const specification& s) : all_(s) {}

  void check() const {
    sizes result = all_.first_input.empty() ? sizes{all_.tokens} : sizes_of_input(all_.first_input);
    std::map<std::string, sizes> carried;
    for (const specification::use& u : all_.uses) {
      const specification::layer& l = all_.layers[static_cast<std::size_t>(u.layer)];
      expect(l, "input", l.input, result);
      for (const specification::layer_input& i : l.inputs) expect(l, i.name, i.value, sizes_of_input(i.name));
      for (const specification::carried_value& c : l.carried) expect(l, c.name, c.before, carried[c.name]);
      for (const int side : l.side_losses) expect(l, "side loss", side, {});
      if (l.result != l.input) result = shape_of(l, l.result);
      for (const specification::carried_value& c : l.carried)
        if (c.after != c.before) carried[c.name] = shape_of(l, c.after);
    }
    const specification::layer& last = all_.layers[static_cast<std::size_t>(all_.uses.back().layer)];
    expect(last, "loss", last.result, {});
  }

 private:
  using sizes = std::vector<std::int64_t>;

  /// The sizes of a value; none for a number, for a value that no op uses, and for a missing value (-1).
  static sizes shape_of(const specification::layer& l, int value) {
    return value < 0 ? sizes() : l.values[static_cast<std::size_t>(value)].shape;
  }
  /// The sizes of an input: one number for each token, unless the model declares others.
  sizes sizes_of_input(const std::string& name) const {
    for (const specification::input& i : all_.inputs) {
      if (i.name != name) continue;
      const std::int64_t rows = i.rows < 0 ? all_.tokens : i.rows;
      return i.width > 0 ? sizes{rows, i.width} : sizes{rows};
    }
    return {all_.tokens};
  }
  static void expect(const specification::layer& l, const std::string& what, int value,
                     const sizes& expected) {
    const sizes found = shape_of(l, value);
    if (!found.empty() && found != expected)
      throw refusal("RC7761: the {} of \"{}\" of the model has sizes {}; expected {}", what, l.name,
                    fmt::format("{}", found), fmt::format("{}", expected));
  }

  const specification& all_;
};

}  // namespace

void check_shapes(const specification& s, const fact_table& facts) {
  for (const specification::layer& l : s.layers) {
    unit_uses taken;
    for (const specification::op& o : l.ops) op_shapes(l, o, facts.of(o.row), taken).check();
    check_values(l, taken);
  }
  layer_boundaries(s).check();
}

}  // namespace rankc::codegen::algebra
