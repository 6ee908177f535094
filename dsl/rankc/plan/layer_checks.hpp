// SPDX-License-Identifier: Apache-2.0
// The layers of a plan in their order. Each kind of layer is traced and checked once.
#pragma once
#include <rankc/models/one_device.hpp>
#include <rankc/rules/layers/attention.hpp>
#include <rankc/rules/layers/inputs.hpp>
#include <rankc/rules/layers/layers.hpp>
#include <rankc/rules/layers/linears.hpp>
#include <rankc/rules/layers/loss.hpp>
#include <rankc/rules/layers/norms.hpp>
#include <rankc/rules/layers/parameters.hpp>
#include <rankc/rules/layers/tuning.hpp>
#include <rankc/rules/values/recipe.hpp>
#include <rankc/stages/plan_data.hpp>
#include <rankc/stages/split_layers.hpp>

#include <type_traits>
#include <vector>

namespace rankc::detail {

/// The kinds of layers that are traced, by the id of their entry and the type of their input.
class traced_kinds {
 public:
  /// The index of a kind; a new one if no equal layer had such an input.
  constexpr int find(int id, const type& input) {
    for (std::size_t k = 0; k < known_.size(); ++k)
      if (known_[k].id == id && known_[k].input == input) return static_cast<int>(k);
    known_.push_back({id, input});
    return static_cast<int>(known_.size()) - 1;
  }

 private:
  struct kind {
    int id;
    type input;
  };
  std::vector<kind> known_;
};

/// The context that the layers of a plan are traced in. Its sizes break no rule.
constexpr layer_context context_of(const auto& model, const plan_data& p) {
  const parallel_dims& d = p.dims;
  const int ranks = static_cast<int>(batch_ranks(d));
  const dim tokens{"tokens", p.rows * ranks * p.recipe.seq};
  return {tokens,
          p.rows,
          p.recipe.seq,
          d.sequence_parallel,
          1.0 / (static_cast<double>(p.recipe.global_batch) * p.recipe.seq),
          d.ulysses > 1,
          ring_ranks(d),
          d.ep,
          d.etp,
          repeats_tokens(d),
          ranks * d.cp * token_shards(d),
          statistics_of(model, tokens.size, tokens.size, ranks),
          p.inputs,
          false,
          p.recipe.token_weights};
}

/// Checks all rules of one traced layer. `c` is the context in which it was traced, `alone` that of one
/// device.
constexpr void check_traced(plan_data& p, const auto& layer, const trace& t, const parallel_dims& given,
                            const layer_context& c, const layer_context& alone) {
  report& out = p.diagnostics;
  const parallel_dims& d = p.dims;
  check_shards(out, t, given, c);
  check_row_shards(out, t, given);
  check_expert_shards(out, t, given);
  check_expert_columns(out, t, d);
  check_tokens_of_experts(out, t, d);
  check_sequences(out, t, d, p.recipe.seq);
  check_limits(out, t, d, p.recipe.seq);
  check_documents(out, t, layer.name);
  check_heads(out, t, layer.name, p.machines);
  check_loss(out, layer, t, alone, p.recipe);
  check_label_losses(out, layer.name, t, p.recipe);
  check_groups(out, t, d);
  check_rings(out, t, d);
  check_norms(out, t, layer.name, d);
  check_vocabulary(out, t, layer.name, p.vocab_used);
  check_kernels(out, t, d);
  check_orders(out, t, d);
  check_gathers(out, t, d);
  check_tokens_alone(out, t, d);
  check_behind(out, t, layer.name, given, p.recipe.precision);
}

/// Traces the layers of a plan, appends their kinds and runs to it, and checks their rules. After a layer
/// whose types are wrong, the later layers are left out, because their errors would follow from it.
class layer_checks {
 public:
  /// `here` is the context of the plan's layers, and `alone` that of one device. With `with_costs` the stack
  /// contains the costs of layers.
  constexpr layer_checks(plan_data& plan, const parallel_dims& given, const layer_context& here,
                         const layer_context& alone, bool with_costs)
      : plan_(plan),
        given_(given),
        here_(here),
        alone_(alone),
        with_costs_(with_costs),
        x_(first_type(here)) {}

  /// Adds an entry of the model's stack. Entries with one `id` have equal layers.
  constexpr void add(const auto& entry, int id) {
    if (!typed_) return;
    constexpr bool repeated = is_repeat<std::decay_t<decltype(entry)>>;
    const auto& layer = layer_of(entry);
    const int count = count_of(entry), kind = known_.find(id, x_);
    if (repeated && x_.is_input && plan_.inputs.front() != inputs::tokens) {
      refuse_repeated_input(plan_.diagnostics, layer.name, plan_.inputs.front());
      typed_ = false;
      return;
    }
    plan_.runs.push_back({kind, count});
    if (kind == static_cast<int>(plan_.kinds.size()))
      plan_.kinds.push_back({layer.name, trace_layer(layer, x_, here_, plan_.recipe), 0, repeated});
    const bool is_new = plan_.kinds[kind].count == 0;
    plan_.kinds[kind].count += count;
    const trace& t = plan_.kinds[kind].ops;
    if (is_new) {
      typed_ = check_layer(plan_.diagnostics, t, layer.name, count);
      if (!typed_) return;
      check_traced(plan_, layer, t, given_, here_, alone_);
      reads_label_count_ |= reads_label_count(t);
      tuned_.add(t);
      if (repeated) record_ops(t);
    }
    parameters_.add(plan_.diagnostics, t, layer.name, repeated, number_, count);
    if (repeated) number_ += count;
    routers_ += count * count_routers(t);
    stack_.push_back({with_costs_ ? cost_of(t, plan_.dims) : layer_cost{}, count, repeated});
    x_ = t.values[t.result];
  }

  /// Checks the rules of all layers together. `blocks`: the repeated layers.
  /// Errors: RC212, RC271, RC273 and those of check_routers, tuning, check_linears and check_recompute.
  constexpr void check_all(int blocks, bool inference) const {
    if (!typed_) return;
    report& out = plan_.diagnostics;
    if (x_.ndim != 0) {
      complaint::put_shape(refuse(out, 212) << "the last layer's result is ", x_);
      out.back().text << "; expected a loss: end the model with cross_entropy";
    }
    check_label_count_is_read(out, plan_.recipe, reads_label_count_);
    check_routers(out, here_.routers, routers_);
    tuned_.check(out, plan_.recipe, inference);
    check_linears(out, plan_.recipe, plan_.machines, has_fp8_linear_);
    check_recompute(out, plan_.recipe.recompute, blocks, inference, families_);
  }

  constexpr const std::vector<costed_entry>& stack() const { return stack_; }
  constexpr const parameter_book& parameters() const { return parameters_; }

 private:
  /// Records the op families and fp8 linears of a repeated layer, for the rules of the recipe.
  constexpr void record_ops(const trace& t) {
    for (std::size_t i = 0; i < t.forward_ops; ++i) families_[static_cast<int>(t.ops[i].kind->family)] = true;
    has_fp8_linear_ |= plan_.recipe.linears != linear_precision::plain && has_fp8_linear(t, plan_.dims);
  }

  plan_data& plan_;
  const parallel_dims& given_;
  const layer_context here_, alone_;
  const bool with_costs_;
  type x_;  // the type of the next layer's input
  traced_kinds known_;
  parameter_book parameters_;
  tuning tuned_;
  std::vector<costed_entry> stack_;
  int number_ = 0;  // the number of the next repeated layer
  int routers_ = 0;
  bool typed_ = true;
  bool families_[n_op_families]{};  // op families that repeated layers have
  bool has_fp8_linear_ = false;     // true if a repeated layer has one
  bool reads_label_count_ = false;
};

}  // namespace rankc::detail
