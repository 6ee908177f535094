// SPDX-License-Identifier: Apache-2.0
// The model of a plan as plain data: the forward ops of its layers, as traced for one device. No pass has
// changed them.
#include <rankc/codegen/declared_facts.hpp>
#include <rankc/codegen/lowered.hpp>
#include <rankc/ops/table.hpp>
#include <rankc/rules/layers/linears.hpp>

#include <algorithm>
#include <utility>

#include "input_text.hpp"
#include "row_attributes.hpp"
#include "traced_ports.hpp"

namespace rankc::codegen {

namespace {

specification::op recorded(const rankc::op& o) {
  specification::op made{.row = std::string(o.kind->name), .in = {}, .out = {}};
  for (int v : o.in)
    if (v >= 0) made.in.push_back(v);
  for (int v : o.out)
    if (v >= 0) made.out.push_back(v);
  if (records_sequences(*o.kind)) {
    made.rows = o.with.rows;
    made.seq = o.with.seq;
  }
  if (ops::is_known(o.kind) || o.kind->takes("number")) made.number = o.number();
  made.scaling = o.with.scaling;
  made.attention = o.with.attention;
  return made;
}

/// Replaces the attention op whose result add_sinks reads by one op that includes the sinks.
void add_sinks(const rankc::op& o, std::vector<specification::op>& recorded) {
  const auto attention = std::find_if(recorded.begin(), recorded.end(), [&](const specification::op& made) {
    return !made.out.empty() && made.out[0] == o.in[0];
  });
  specification::op whole = *attention;
  recorded.erase(attention);
  const bool of_documents = whole.in.size() > 3;
  whole.row = (of_documents ? ops::document_sink_attention : ops::sink_attention).name;
  whole.in.insert(whole.in.begin() + 3, o.in[2]);
  whole.out = {o.out[0], o.out[1]};
  recorded.push_back(std::move(whole));
}

/// Records the units in which an op uses dims of its values.
void record_units(const trace& t, const rankc::op& o, std::vector<specification::tensor>& values) {
  for (const traced_port& p : traced_ports(o))
    for (int d = 0; p.value >= 0 && d < t.values[p.value].ndim && d < p.of->shape.ndim; ++d) {
      if (p.of->shape.dim[d].unit.empty()) continue;
      specification::tensor& taken = values[static_cast<std::size_t>(p.value)];
      (d + 1 == t.values[p.value].ndim ? taken.unit : taken.unit_of_rows) = t.values[p.value].shape[d].unit;
    }
}

/// How the recipe rounds the operands of each linear op of a layer, in order. It depends on their sizes on a
/// rank.
std::vector<specification::rounding> roundings(const plan_data& p, const layer_kind& kind) {
  using rounding = specification::rounding;
  const rounding by = p.recipe.linears == fp8 ? rounding::fp8 : rounding::fp8_rows;
  std::vector<rounding> all;
  for (std::size_t i = 0; i < kind.ops.forward_ops; ++i) {
    const rankc::op& o = kind.ops.ops[i];
    if (o.kind != &ops::linear) continue;
    const bool is_rounded = p.recipe.linears != linear_precision::plain && kind.repeated &&
                            detail::is_fp8_linear(kind.ops, o, p.dims);
    all.push_back(is_rounded ? by : rounding::none);
  }
  return all;
}

/// Clears the shapes of values that only backward uses: they are no values of the model.
void clear_unused(specification::layer& l) {
  std::vector<bool> is_used(l.values.size(), false);
  const auto use = [&](int v) { is_used[static_cast<std::size_t>(v)] = true; };
  for (const specification::op& o : l.ops) {
    for (int v : o.in) use(v);
    for (int v : o.out) use(v);
  }
  for (const specification::parameter& p : l.parameters) use(p.value);
  for (std::size_t v = 0; v < l.values.size(); ++v)
    if (!is_used[v]) l.values[v] = {};
}

specification::layer recorded(std::string name, const trace& t,
                              const std::vector<specification::rounding>& of_products, bool trains) {
  specification::layer l{.name = std::move(name),
                         .values = {},
                         .ops = {},
                         .input = t.input,
                         .result = t.result,
                         .inputs = {},
                         .carried = {},
                         .side_losses = t.side_losses,
                         .parameters = {}};
  for (const type& v : t.values) {
    specification::tensor s;
    for (int d = 0; d < v.ndim; ++d) s.shape.push_back(v.shape[d].size);
    l.values.push_back(std::move(s));
  }
  std::size_t product = 0;
  for (std::size_t i = 0; i < t.forward_ops; ++i) {
    if (t.ops[i].kind == &ops::add_sinks) add_sinks(t.ops[i], l.ops);
    else l.ops.push_back(recorded(t.ops[i]));
    if (t.ops[i].kind == &ops::linear) l.ops.back().operands = of_products.at(product++);
    record_units(t, t.ops[i], l.values);
  }
  for (const input_value& i : t.inputs)
    if (i.id >= 0 && i.id != t.input) l.inputs.push_back({std::string(i.is.name), i.id});
  for (const carried_value& c : t.carried)
    l.carried.push_back({std::string(c.name), c.in, c.gradient < 0 ? -1 : c.result});
  for (const weight_info& w : t.weights)
    l.parameters.push_back({w.name.text(), w.id, trains && w.trainable, w.balances});
  clear_unused(l);
  return l;
}

/// An input with the extent of a step is a list of its numbers.
specification::input recorded(const named_input& i, int global_batch) {
  if (i.extent == input_extent::step) return {std::string(i.name), 0, i.width()};
  return {std::string(i.name), i.features.size, i.extent == input_extent::token ? -1 : global_batch};
}

/// True if another layer of the model has the parameter too.
bool is_shared(const plan_data& p, std::size_t kind, const weight_info& w) {
  for (std::size_t k = 0; k < p.on_one_device.size(); ++k)
    for (const weight_info& o : p.on_one_device[k].weights)
      if (k != kind && is_same_parameter(o, w)) return true;
  return false;
}

}  // namespace

specification specify(const plan_data& p) {
  specification s;
  for (std::size_t k = 0; k < p.kinds.size(); ++k)
    s.layers.push_back(recorded(std::string(p.kinds[k].name), p.on_one_device.at(k), roundings(p, p.kinds[k]),
                                !p.actions.inference));
  int number = 0;  // of the next repeated layer
  for (const layer_run& run : p.runs) {
    const auto k = static_cast<std::size_t>(run.kind);
    const layer_kind& kind = p.kinds[k];
    for (int i = 0; i < run.count; ++i) {
      specification::use u{
          run.kind, kind.repeated ? "layers." + std::to_string(number++) : std::string(kind.name), {}};
      for (const weight_info& w : p.on_one_device[k].weights)
        u.parameters.push_back((kind.repeated && !is_shared(p, k, w) ? u.name + "." : "") + w.name.text());
      s.uses.push_back(std::move(u));
    }
  }
  const training& r = p.recipe;
  s.optimizer = {.row = std::string(r.optimizer.row->name),
                 .moments = static_cast<int>(r.optimizer.moments().size()),
                 .bf16_weights = !r.master_weights,
                 .bf16_moments = r.moments == bf16,
                 .bf16_reductions = r.reductions == bf16};
  s.rows = declared_facts(p.on_one_device);
  for (const named_input& i : p.inputs)
    if (text_of_input(i).held == holding_kind::input) s.inputs.push_back(recorded(i, p.recipe.global_batch));
  if (!reads_tokens(p)) s.first_input = p.inputs.front().name;
  s.tokens = static_cast<std::int64_t>(p.recipe.global_batch) * p.recipe.seq;
  return s;
}

}  // namespace rankc::codegen
