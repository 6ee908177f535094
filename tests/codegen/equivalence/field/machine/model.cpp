// SPDX-License-Identifier: Apache-2.0
#include "model.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace field {

namespace {

using rankc::codegen::specification;

extent extent_of(const specification::tensor& t) { return field::extent_of(t.shape, t.unit); }

std::vector<element> drawn(element (*draw_one)(std::uint64_t), std::string_view what, const std::string& name,
                           std::size_t count) {
  std::vector<element> all(count);
  const std::uint64_t key = mix(key_of(what), key_of(name));
  for (std::size_t i = 0; i < count; ++i) all[i] = draw_one(mix(key, i));
  return all;
}

/// Whether an op computes what a step's loss is divided by: the number of labels, or the sum of their
/// weights.
bool is_count(const specification::op& o) { return o.row == "count_labels" || o.row == "sum_weights"; }

void add_to(std::optional<matrix>& sum, const matrix& one) {
  if (!sum) sum = one;
  else std::transform(one.of.begin(), one.of.end(), sum->of.begin(), sum->of.begin(), add);
}

const std::vector<element>& input_of(const model_run& m, const std::string& name) {
  if (name == "targets") return m.targets;
  if (name == "starts") return m.starts;
  expect(name == "weights" && !m.weights.empty(), "an input that is not drawn");
  return m.weights;
}

/// One use of a layer in a run: its values and their gradients.
class layer_run {
 public:
  layer_run(const specification::layer& l, const specification::use& use, model_run& m)
      : l_(l),
        statistics_(l.find_carried("statistics")),
        use_(use),
        m_(m),
        values_(l.values.size()),
        gradients_(l.values.size()) {}

  /// The values that one layer passes to the next: activations, and the routers' sums if there are any.
  struct handed {
    std::optional<matrix> rows, statistics;
  };

  void forward(const handed& x) {
    values_.at(static_cast<std::size_t>(l_.input)) = in_units_of(l_.input, x.rows.value());
    if (statistics_.before >= 0) {
      expect(x.statistics.has_value(), "a layer is handed no sums of routers");
      values_.at(static_cast<std::size_t>(statistics_.before)) =
          in_units_of(statistics_.before, *x.statistics);
    }
    for (const specification::layer_input& i : l_.inputs) {
      const std::vector<element>& given = input_of(m_, i.name);
      values_.at(static_cast<std::size_t>(i.value)).of = given;
      values_.at(static_cast<std::size_t>(i.value)).is = {1, static_cast<std::int64_t>(given.size())};
    }
    for (std::size_t k = 0; k < l_.parameters.size(); ++k) {
      const parameter_run& p = m_.parameters.at(use_.parameters[k]);
      matrix& value = values_.at(static_cast<std::size_t>(l_.parameters[k].value));
      value = matrix(extent_of(l_.values[static_cast<std::size_t>(l_.parameters[k].value)]));
      value.of = p.weight;
    }
    for (const specification::op& o : l_.ops) run_forward(o);
  }
  const matrix& value(int v) const { return values_.at(static_cast<std::size_t>(v)); }
  handed result() const {
    handed y{value(l_.result), {}};
    if (statistics_.after >= 0) y.statistics = value(statistics_.after);
    return y;
  }

  /// Backward from the gradients of its outputs and a gradient of 1 for each loss.
  void backward(const handed& of_result) {
    gradients_[static_cast<std::size_t>(l_.result)] = in_units_of(l_.result, of_result.rows.value());
    if (statistics_.after >= 0 && of_result.statistics)
      add_to(gradients_[static_cast<std::size_t>(statistics_.after)],
             in_units_of(statistics_.after, *of_result.statistics));
    for (int loss : l_.side_losses) gradients_[static_cast<std::size_t>(loss)] = one();
    for (auto o = l_.ops.rbegin(); o != l_.ops.rend(); ++o) run_backward(*o);
    for (std::size_t k = 0; k < l_.parameters.size(); ++k) {
      const std::optional<matrix>& g = gradients_[static_cast<std::size_t>(l_.parameters[k].value)];
      std::vector<element>& sum = m_.parameters.at(use_.parameters[k]).gradient;
      if (g) std::transform(g->of.begin(), g->of.end(), sum.begin(), sum.begin(), add);
    }
  }
  /// The gradients of its inputs; empty if the layer reads ids.
  handed gradient() const {
    handed of{gradients_[static_cast<std::size_t>(l_.input)], {}};
    if (statistics_.before >= 0) of.statistics = gradients_[static_cast<std::size_t>(statistics_.before)];
    return of;
  }

  static matrix one() {
    matrix m(extent{1, 1});
    m.of[0] = 1;
    return m;
  }

 private:
  extent size_of(int v) const { return extent_of(l_.values.at(static_cast<std::size_t>(v))); }
  /// A value from another layer, with this layer's unit.
  matrix in_units_of(int v, matrix handed) const {
    handed.is.unit = size_of(v).unit;
    return handed;
  }
  call call_of(const specification::op& o) const {
    call c;
    c.rows = o.rows;
    c.seq = o.seq;
    c.number = o.number;
    c.attention = o.attention;
    c.rounds = o.operands;
    c.noted_by = &m_.attributes;
    return c;
  }

  void run_forward(const specification::op& o) {
    const row& r = find_row(o.row);
    const signature& ports = ports_of(r);
    call c = call_of(o);
    std::size_t next = 0;
    for (std::string_view p : ports.in)
      if (is_rotary(r, p)) give_rotary(c, o);
      else c.give(p, value(o.in.at(next++)));
    expect(next == o.in.size() && ports.out.size() == o.out.size(),
           "an op of another number of operands than its row");
    for (std::size_t i = 0; i < o.out.size(); ++i) c.want(ports.out[i], size_of(o.out[i]));
    run(r, c);
    for (std::size_t i = 0; i < o.out.size(); ++i)
      values_[static_cast<std::size_t>(o.out[i])] = c.result(ports.out[i]);
    if (is_count(o) && !std::exchange(m_.counts_labels, true)) add_skip(value(o.out.at(0)));
  }
  /// Add to the norm the term by which ranks skip a step without labels.
  void add_skip(const matrix& count) {
    call c;
    c.give("count", count);
    c.want("total", {1, 1});
    run(find_row("skip_unlabeled"), c);
    m_.norm = add(m_.norm, c.result("total").of.at(0));
  }
  static bool is_rotary(const row& r, std::string_view port) { return r.name == "rope" && port == "table"; }
  void give_rotary(call& c, const specification::op& o) const {
    c.give("table", tables::rotary(o.seq, size_of(o.in.at(0)).unit, o.number, o.scaling));
  }

  /// The value at a port of a forward op; -1 for a rotary table.
  static int value_of(const specification::op& o, const row& r, std::string_view port) {
    const signature& ports = ports_of(r);
    for (std::size_t i = 0; i < ports.out.size(); ++i)
      if (ports.out[i] == port) return o.out[i];
    std::size_t next = 0;
    for (std::string_view p : ports.in) {
      const bool counts = !is_rotary(r, p);
      if (p == port) return counts ? o.in.at(next) : -1;
      next += counts;
    }
    throw malformed("a backward names a port that its row has not");
  }

  void run_backward(const specification::op& o) {
    const row& r = find_row(o.row);
    const auto reached = [&](int v) { return gradients_[static_cast<std::size_t>(v)].has_value(); };
    if (std::none_of(o.out.begin(), o.out.end(), reached)) return;
    for (const statement& s : backward_of(r)) {
      call c = call_of(o);
      const signature& ports = ports_of(*s.does);
      for (std::size_t i = 0; i < s.in.size(); ++i) {
        const bool is_gradient = s.in[i].starts_with("d_");
        const int v = value_of(o, r, is_gradient ? s.in[i].substr(2) : s.in[i]);
        if (v < 0) give_rotary(c, o);
        else if (!is_gradient) c.give(ports.in[i], value(v));
        else c.give(ports.in[i], reached(v) ? *gradients_[static_cast<std::size_t>(v)] : matrix(size_of(v)));
      }
      for (std::size_t i = 0; i < s.out.size(); ++i)
        c.want(ports.out[i], size_of(value_of(o, r, s.out[i].substr(2))));
      run(*s.does, c);
      for (std::size_t i = 0; i < s.out.size(); ++i)
        add_to(gradients_[static_cast<std::size_t>(value_of(o, r, s.out[i].substr(2)))],
               c.result(ports.out[i]));
    }
  }

  const specification::layer& l_;
  const specification::carried_value statistics_;
  const specification::use& use_;
  model_run& m_;
  std::vector<matrix> values_;
  std::vector<std::optional<matrix>> gradients_;
};

/// The smallest vocabulary: rows of a table, or columns of logits.
std::int64_t vocabulary_of(const specification& s) {
  std::int64_t least = std::int64_t{1} << 20;
  for (const specification::layer& l : s.layers)
    for (const specification::op& o : l.ops) {
      const auto of = [&](int v) { return extent_of(l.values.at(static_cast<std::size_t>(v))); };
      if (o.row == "embedding") least = std::min(least, of(o.in.at(1)).rows);
      if (o.row == "exp_sums") least = std::min(least, of(o.in.at(0)).cols);
    }
  return least;
}

void make_parameters(const specification& s, model_run& m) {
  for (const specification::use& u : s.uses) {
    const specification::layer& l = s.layers.at(static_cast<std::size_t>(u.layer));
    for (std::size_t k = 0; k < l.parameters.size(); ++k) {
      const specification::tensor& t = l.values.at(static_cast<std::size_t>(l.parameters[k].value));
      const extent e = extent_of(t);
      const auto count = static_cast<std::size_t>(e.size());
      const std::string& name = u.parameters.at(k);
      const auto [at, is_new] = m.parameters.try_emplace(name);
      expect(is_new || at->second.is.size() == e.size(), "a parameter of two sizes");
      if (is_new)
        at->second = {
            e,
            t.shape.size(),
            l.parameters[k].trainable,
            l.parameters[k].balances,
            drawn(draw, "weight", name, count),
            s.optimizer.moments > 0 ? drawn(draw, "first moment", name, count) : std::vector<element>(count),
            s.optimizer.moments > 1 ? drawn(draw_nonzero, "second moment", name, count)
                                    : std::vector<element>(count),
            std::vector<element>(count),
            {},
            {},
            {}};
    }
  }
}

bool has_op(const specification& s, auto is_it) {
  return std::ranges::any_of(
      s.layers, [&](const specification::layer& l) { return std::ranges::any_of(l.ops, is_it); });
}

void make_tokens(const specification& s, model_run& m) {
  const bool ignores = has_op(s, is_count),
             have_weights = has_op(s, [](const specification::op& o) { return o.row == "sum_weights"; });
  const auto vocab = static_cast<std::uint64_t>(vocabulary_of(s)),
             tokens = static_cast<std::uint64_t>(s.tokens);
  for (std::uint64_t t = 0; t < tokens; ++t) {
    m.ids.push_back(draw_below(mix(key_of("ids"), t), vocab));
    m.targets.push_back(draw_below(mix(key_of("targets"), t), vocab));
    if (ignores && draw_below(mix(key_of("ignored"), t), 3) == 0) m.targets.back() = losses::ignored_label;
    if (have_weights) m.weights.push_back(draw_nonzero(mix(key_of("weights"), t)));
  }
}

/// The length of sequences with documents; 0 if there are none.
std::int64_t sequence_of_documents(const specification& s) {
  for (const specification::layer& l : s.layers)
    for (const specification::op& o : l.ops)
      if (o.row.starts_with("document_")) return o.seq;
  return 0;
}

void make_starts(const specification& s, model_run& m) {
  const std::int64_t seq = sequence_of_documents(s);
  for (std::int64_t t = 0; seq > 0 && t < s.tokens; ++t) {
    const bool begins =
        t % seq == 0 || draw_below(mix(key_of("starts"), static_cast<std::uint64_t>(t)), 3) == 0;
    m.starts.push_back(begins ? static_cast<element>(t % seq) : m.starts.back());
  }
}

/// Run all layers forward and add up their losses.
std::vector<layer_run> run_forward(const specification& s, model_run& m) {
  std::vector<layer_run> layers;
  layer_run::handed x{matrix(extent{1, s.tokens}), {}};
  x.rows->of = m.ids;
  for (const specification::use& u : s.uses) {
    const specification::layer& l = s.layers.at(static_cast<std::size_t>(u.layer));
    layers.emplace_back(l, u, m).forward(x);
    x = layers.back().result();
    for (int loss : l.side_losses) m.loss = add(m.loss, layers.back().value(loss).of.at(0));
  }
  expect(x.rows->is.size() == 1, "the last layer's result is no number");
  m.loss = add(m.loss, x.rows->of[0]);
  return layers;
}

void update(model_run& m) {
  for (auto& [name, p] : m.parameters) {
    if (!p.trainable || p.balances.any()) continue;
    for (element g : p.gradient) m.norm = add(m.norm, multiply(g, g));
    m.largest_gradient = std::max(m.largest_gradient, largest(p.gradient));
  }
  for (auto& [name, p] : m.parameters) {
    p.new_weight = p.weight;
    p.new_first_moment = p.first_moment;
    p.new_second_moment = p.second_moment;
    if (!p.trainable) continue;
    for (std::size_t i = 0; i < p.weight.size(); ++i) {
      const updated u = field::update(m.optimizer.row, p.weight[i], p.gradient[i], p.first_moment[i],
                                      p.second_moment[i], m.norm, p.ndim > 1, p.balances);
      p.new_weight[i] = u.weight;
      p.new_first_moment[i] = u.first_moment;
      p.new_second_moment[i] = u.second_moment;
    }
  }
}

}  // namespace

model_run draw_start(const specification& s) {
  model_run m;
  m.optimizer = s.optimizer;
  make_parameters(s, m);
  make_tokens(s, m);
  make_starts(s, m);
  return m;
}

element loss_of(const specification& s, model_run m) {
  run_forward(s, m);
  return m.loss;
}

model_run run_model(const specification& s, model_run m) {
  std::vector<layer_run> layers = run_forward(s, m);
  layer_run::handed g{layer_run::one(), {}};
  for (auto l = layers.rbegin(); l != layers.rend() && g.rows; ++l) {
    l->backward(g);
    g = l->gradient();
  }
  update(m);
  return m;
}

}  // namespace field
