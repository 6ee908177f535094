// SPDX-License-Identifier: Apache-2.0
#include "model.hpp"

#include <algorithm>

#include "contents.hpp"
#include "model_shapes.hpp"

namespace rankc::codegen::algebra {

namespace {

hasher begin_hash(const fact& f, int equation, const attributes& with) {
  hasher h(hash_of::result);
  h << word{f.key} << static_cast<word>(equation);
  if (f.seq) h << static_cast<word>(with.seq);
  if (f.number) h << with.number;
  if (f.attention && !with.attention.is_plain())
    for (const double number : with.attention.numbers()) h << number;
  for (const char letter : f.sizes) h << static_cast<word>(with.size(letter));
  return h;
}

}  // namespace

term result_of(const fact& f, int equation, const term* operands, const attributes& with) {
  const auto& e = f.equations[static_cast<std::size_t>(equation)];
  hasher h = begin_hash(f, equation, with);
  for (std::size_t i = 0; i < e.operands.size(); ++i)
    if (e.linear[i] && operands[i].is_zero()) return zero;
  if (f.commutative && operands[1] < operands[0]) return h << operands[1] << operands[0];
  for (std::size_t i = 0; i < e.operands.size(); ++i) h << operands[i];
  return h;
}

term addend_of(const fact& f, int equation, int operand, term of, const attributes& with) {
  if (of.is_zero()) return zero;
  return begin_hash(f, equation, with) << static_cast<word>(operand) << of;
}

term scores_of(const fact& f, const term& queries, const term& keys, const attributes& with) {
  return begin_hash(f, 0, with) << queries << keys;
}

/// Checks the indices of a model that was read from a file: it may name values and layers that do not exist.
static void check_indices(const specification& s) {
  const auto check = [](int index, std::size_t count, const std::string& where) {
    if (index < 0 || static_cast<std::size_t>(index) >= count)
      throw refusal("RC7600: \"{}\" of the model has index {}; expected 0 or more, and less than {}", where,
                    index, count);
  };
  std::set<std::string> names;
  for (const specification::input& i : s.inputs)
    if (!names.insert(i.name).second)
      throw refusal("RC7790: the model declares the input {} twice; expected one input of a name", i.name);
  if (s.uses.empty()) throw refusal("RC7601: the model has 0 layers; expected at least 1");
  for (const specification::layer& l : s.layers) {
    const std::size_t values = l.values.size();
    for (const int v : {l.input, l.result}) check(v, values, l.name);
    for (const specification::layer_input& i : l.inputs) check(i.value, values, l.name);
    for (const specification::carried_value& c : l.carried)
      for (const int v : {c.before, c.after})
        if (v >= 0) check(v, values, l.name);
    for (const int v : l.side_losses) check(v, values, l.name);
    for (const specification::parameter& p : l.parameters) check(p.value, values, l.name);
    for (const specification::op& o : l.ops) {
      for (const int v : o.in) check(v, values, l.name);
      for (const int v : o.out) check(v, values, l.name);
    }
  }
  for (const specification::use& u : s.uses) {
    check(u.layer, s.layers.size(), u.name);
    if (u.parameters.size() != s.layers[static_cast<std::size_t>(u.layer)].parameters.size())
      throw refusal("RC7602: \"{}\" of the model names {} parameters; its layer has {}", u.name,
                    u.parameters.size(), s.layers[static_cast<std::size_t>(u.layer)].parameters.size());
  }
}

/// The term of a step's input. The inputs of the language have kinds of their own in certificates.
static term leaf_of_input(const std::string& name) {
  const bool has_kind = name == "targets" || name == "starts";
  return has_kind ? leaf(name, "") : leaf(holding_names[static_cast<int>(holding_kind::input)], name);
}

const specification::input& model::input_of(const std::string& name) const {
  for (const specification::input& i : spec_.inputs)
    if (i.name == name) return i;
  throw refusal(
      "RC7766: the step is given the input \"{}\"; the model declares {} inputs, and none of this name", name,
      spec_.inputs.size());
}

model::model(const specification& s) : spec_(s), facts_(s), index_(1 << 12, -1), uses_(s.uses.size()) {
  check_indices(s);
  check_shapes(s, facts_);
  begin();
  term x = s.first_input.empty() ? leaf("ids", "") : leaf_of_input(input_of(s.first_input).name);
  carried_terms carried;
  sum losses{{}, "the loss", std::vector<std::int64_t>{}},
      squares{{}, "the sum of the gradients' squares", std::vector<std::int64_t>{}};
  for (std::size_t u = 0; u < s.uses.size(); ++u) {
    forward(u, x, carried);
    const specification::layer& l = s.layers[static_cast<std::size_t>(s.uses[u].layer)];
    x = uses_[u].values[static_cast<std::size_t>(l.result)];
    carried.clear();
    for (const specification::carried_value& c : l.carried)
      if (c.after >= 0) carried[c.name] = uses_[u].values[static_cast<std::size_t>(c.after)];
    for (int side : l.side_losses) losses.addends.push_back(uses_[u].values[static_cast<std::size_t>(side)]);
  }
  last_loss_ = x;
  losses.addends.push_back(x);
  for (const term& loss : losses.addends) loss_ = loss_ + loss;
  for (std::size_t u = s.uses.size(); u-- > 0;) backward(u);
  for (auto& [name, p] : parameters_)
    if (p.trainable && !p.balances.any()) squares.addends.push_back(squares_of(p.gradient));
  for (const term& skipped : skipped_) squares.addends.push_back(skipped);
  for (const term& of : squares.addends) norm_ = norm_ + of;
  sums_.push_back(std::move(losses));
  sums_.push_back(std::move(squares));
  for (auto& [name, p] : parameters_) {
    for (int i = 0; i < 3; ++i)
      p.after[i] = p.trainable && !p.balances.any() ? updated(i, p.state, p.gradient, norm_) : p.state[i];
    if (p.trainable && p.balances.any()) p.after[0] = balanced(p.state[0], p.gradient, p.balances);
    sums_.push_back({p.addends, "the gradient of " + name, p.shape});
    know(squares_of(p.gradient), "the squares of a gradient", nullptr);
    know(p.gradient, "the gradient of " + name, &p.shape);
    know(p.after[0], name + " after the update", &p.shape);
  }
  know(loss_, "the loss", nullptr);
  know(norm_, "the sum of the gradients' squares", nullptr);
  know_sums();
}

void model::begin() {
  know(leaf("ids", ""), "the ids", nullptr);
  know(leaf("targets", ""), "the targets", nullptr);
  know(leaf("starts", ""), "the starts of documents", nullptr);
  for (const specification::input& i : spec_.inputs)
    know(leaf_of_input(i.name), "the input " + i.name, nullptr);
  for (const specification::use& u : spec_.uses) {
    const specification::layer& l = spec_.layers[static_cast<std::size_t>(u.layer)];
    for (std::size_t i = 0; i < l.parameters.size(); ++i) {
      const std::string& name = u.parameters.at(i);
      const std::vector<std::int64_t>& shape =
          l.values[static_cast<std::size_t>(l.parameters[i].value)].shape;
      const auto [at, is_new] = parameters_.try_emplace(name);
      if (is_new) {
        at->second = {shape,
                      l.parameters[i].trainable,
                      l.parameters[i].balances,
                      {leaf("weight", name), leaf("first moment", name), leaf("second moment", name)},
                      zero,
                      {}};
        know(at->second.state[0], name, &at->second.shape);
        known_[static_cast<std::size_t>(find(at->second.state[0]))].owner = &*at;
      } else if (at->second.shape != shape || at->second.trainable != l.parameters[i].trainable ||
                 at->second.balances != l.parameters[i].balances) {
        throw refusal("RC7603: layers share {} and disagree on its shape, or on whether it is trained", name);
      }
    }
  }
}

std::vector<term> model::operands(std::size_t use, const specification::op& o, const fact& f) const {
  std::vector<term> all(f.names.size(), zero);
  const std::vector<term>& values = uses_[use].values;
  const std::size_t results = static_cast<std::size_t>(f.results), given = f.ports.size() - results;
  for (std::size_t i = 0; i < o.out.size() && i < results; ++i)
    all[i] = values[static_cast<std::size_t>(o.out[i])];
  for (std::size_t i = 0; i < o.in.size() && i < given; ++i)
    all[results + i] = values[static_cast<std::size_t>(o.in[i])];
  if (o.in.size() + 1 == given && f.positions) {  // the rotary table is not a value
    const specification::layer& l = spec_.layers[static_cast<std::size_t>(spec_.uses[use].layer)];
    all[f.ports.size() - 1] =
        rotary_table(o.number, l.values[static_cast<std::size_t>(o.in[0])].unit, o.scaling);
  } else if (o.in.size() != given || o.out.size() != results) {
    throw refusal("RC7604: {} in \"{}\" of the model has {} operands and {} results; expected {} and {}",
                  o.row, spec_.uses[use].name, o.in.size(), o.out.size(), given, results);
  }
  return all;
}

attributes model::attributes_of(const specification::layer& l, const specification::op& o,
                                const fact& f) const {
  attributes a{o.rows, o.seq, o.number, {}, o.operands, o.attention};
  const std::size_t results = static_cast<std::size_t>(f.results);
  for (std::size_t p = 0; p < results + o.in.size(); ++p) {  // the rotary table is not a value
    const specification::tensor& t =
        l.values[static_cast<std::size_t>(p < results ? o.out[p] : o.in[p - results])];
    const std::vector<axis_use>& axes = f.ports[p].axes;
    for (std::size_t d = 0; d < axes.size() && d < t.shape.size(); ++d)
      for (const auto& [letter, size] : {std::pair(axes[d].of, t.shape[d]), {axes[d].unit, t.unit_of(d)}})
        if (f.sizes.find(letter) != std::string::npos) a.size(letter) = size;
  }
  return a;
}

/// Fills in a row's results, and records each term that it computes.
void model::apply(const fact& f, std::vector<term>& ports, const attributes& with, const std::string& where) {
  for (std::size_t k = 0; k < f.equations.size(); ++k) {
    const equation& e = f.equations[k];
    std::vector<term> given;
    for (int o : e.operands) given.push_back(ports[static_cast<std::size_t>(o)]);
    term& result = ports[static_cast<std::size_t>(e.results[0])];
    switch (e.is) {
      case equation::kind::zero:
        result = zero;
        break;
      case equation::kind::multiple:
        result = f.number ? with.number * given[0] : given[0];
        know(result, where, nullptr);
        break;
      case equation::kind::function:
        result = result_of(f, static_cast<int>(k), given.data(), with);
        know(result, where, nullptr);
        if (f.arranges) know_arrangement(f, result, given[0], with);
        if (f.sequences || f.shares) sequences_[result] = with.seq;
        if (with.operands != specification::rounding::none) roundings_[result] = with.operands;
        break;
      case equation::kind::sum:
        result = zero;
        for (std::size_t i = 0; i < given.size(); ++i)
          if (!e.same[i]) given[i] = addend_of(f, static_cast<int>(k), static_cast<int>(i), given[i], with);
        for (const term& addend : given) result = result + addend;
        know(result, where, nullptr);
        sums_.push_back({given, where});
        break;
      case equation::kind::merge:
        throw refusal("RC7605: \"{}\" of the model merges parts of a softmax; expected a model on one device",
                      where);
      case equation::kind::call: {
        const fact& callee = facts_[e.row];
        std::vector<term> inner(callee.names.size(), zero);
        std::copy(given.begin(), given.end(), inner.begin() + callee.results);
        apply(callee, inner, with, where);
        for (std::size_t i = 0; i < e.results.size(); ++i)
          ports[static_cast<std::size_t>(e.results[i])] = inner[i];
      }
    }
  }
}

/// Records the addend of the squared norm that is not finite if the count of labels, or the sum of
/// their weights, is 0.
void model::skip_without(const term& count) {
  std::vector<term> ports{zero, count};
  apply(facts_.of("skip_unlabeled"), ports, {}, "the skip of a step without labels");
  skipped_.insert(ports[0]);
}

/// Records an order of slots: it follows from the choice, and from the limit of each expert if there is one.
void model::know_arrangement(const fact& f, const term& result, const term& choice, const attributes& with) {
  if (!f.sequences) {
    arrangements_[result] = choice;
    return;
  }
  const term order = hasher(hash_of::choice_in_groups)
                     << static_cast<word>(with.seq) << with.number << choice;
  arrangements_[result] = order;
  const double most = std::clamp(with.number, 0.0, static_cast<double>(with.seq));  // a token picks it once
  limits_[order] = {with.seq, static_cast<std::int64_t>(most)};
}

void model::forward(std::size_t use, term input, const carried_terms& carried) {
  const specification::use& u = spec_.uses[use];
  const specification::layer& l = spec_.layers[static_cast<std::size_t>(u.layer)];
  std::vector<term>& values = uses_[use].values;
  values.assign(l.values.size(), zero);
  for (const specification::layer_input& i : l.inputs)
    values[static_cast<std::size_t>(i.value)] = leaf_of_input(i.name);
  values[static_cast<std::size_t>(l.input)] = input;
  for (const specification::carried_value& c : l.carried)
    if (const auto given = carried.find(c.name); c.before >= 0 && given != carried.end())
      values[static_cast<std::size_t>(c.before)] = given->second;
  for (std::size_t i = 0; i < l.parameters.size(); ++i)
    values[static_cast<std::size_t>(l.parameters[i].value)] = parameters_.at(u.parameters[i]).state[0];
  for (const specification::op& o : l.ops) {
    const fact& f = facts_.of(o.row);
    std::vector<term> ports = operands(use, o, f);
    if (f.positions && o.in.size() + o.out.size() < f.ports.size())
      know(ports[f.ports.size() - 1], "the rotary table", nullptr);
    apply(f, ports, attributes_of(l, o, f), u.name + ": " + o.row);
    if (o.row == "count_labels" || o.row == "sum_weights") skip_without(ports[0]);
    for (std::size_t i = 0; i < o.out.size(); ++i) {
      const auto value = static_cast<std::size_t>(o.out[i]);
      values[value] = ports[i];
      know(ports[i], u.name + ": " + o.row, &l.values[value].shape);
    }
  }
}

}  // namespace rankc::codegen::algebra
