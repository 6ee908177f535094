// SPDX-License-Identifier: Apache-2.0
// All rules of a plan, model x dims x schedule x recipe x cluster, by the same functions in the compiler and
// in the generator.
#pragma once
#include <rankc/recipe/cluster.hpp>
#include <rankc/rules/layers/layers.hpp>
#include <rankc/rules/layers/linears.hpp>
#include <rankc/rules/layers/loss.hpp>
#include <rankc/rules/layers/parameters.hpp>
#include <rankc/rules/layers/tuning.hpp>
#include <rankc/mesh/layout.hpp>
#include <rankc/recipe/training.hpp>
#include <rankc/rules/values/batch.hpp>
#include <rankc/rules/values/cluster.hpp>
#include <rankc/rules/values/dims.hpp>
#include <rankc/rules/values/model.hpp>
#include <rankc/stages/kinds_of_stages.hpp>
#include <rankc/stages/split_layers.hpp>
#include <rankc/rules/values/pipeline.hpp>
#include <rankc/rules/values/recipe.hpp>
#include <rankc/schedule/check.hpp>
#include <rankc/schedule/complete.hpp>
#include <rankc/rules/layers/lowerable.hpp>

namespace rankc {

namespace detail {

/// "dp_replicate, tp and pp": what is lowered, all of it or for tokens.
constexpr sentence lowered_degrees() {
  sentence names;
  int all = 0, i = 0;
  for (const named_degree& a : written_degrees) all += row(a.along).lowered != lowered_values::nothing;
  for (const named_degree& a : written_degrees)
    if (row(a.along).lowered != lowered_values::nothing) names << list_separator(i++, all) << a.name;
  return names;
}

/// RC103: where experts are spread over ranks, the layouts that are lowered.
constexpr void check_experts_lowered(report& out, const parallel_dims& d) {
  constexpr std::string_view region = name(region_axis);
  const int of_region = region_ranks(d);
  if (d.ep == 1) {
    if (d.etp > 1 && d.etp != of_region)
      refuse(out, 103) << "etp=" << d.etp << " with ep=1 and " << region << "=" << of_region
                       << " is not lowered in this version; experts that are on all ranks "
                       << "are split over " << region << ": set etp=" << of_region << ", or ep above 1";
    return;
  }
  if (repeats_tokens(d) && d.etp > 1)
    refuse(out, 103) << "expert_layout=independent with etp=" << d.etp
                     << " is not lowered in this version: set etp=1, or expert_layout=folded";
  else if (repeats_tokens(d) && replicates_over_cp(d))
    refuse(out, 103) << "expert_layout=independent with cp_weights=replicate and cp=" << d.cp
                     << " is not lowered in this version: set cp_weights=shard, or expert_layout=folded";
  else if (of_region > 1 && !d.sequence_parallel)
    refuse(out, 103)
        << "ep=" << d.ep << " with " << region << "=" << of_region
        << " and whole tokens on each of its ranks is not lowered in this version, for each would "
        << "send the same tokens to experts, which compute them " << region
        << " times: set sequence_parallel=true, or " << region << "=1";
  else if (replicates_over_cp(d) && d.dp_replicate > 1 && !spreads_experts_over_replicas(d))
    refuse(out, 103) << "cp_weights=replicate with ep=" << d.ep << " and dp_replicate=" << d.dp_replicate
                     << " is not lowered in this version, for ranks of cp "
                     << "have other experts and replicas the same: set cp_weights=shard, or "
                        "expert_layout=folded_over_replicas";
  for (const axis_row& r : axis_rows)
    if (holds_replicas(r) && r.id != axis::dp_replicate && d.*r.degree > 1 &&
        !spreads_experts_over_replicas(d))
      refuse(out, 103) << r.name << "=" << d.*r.degree << " with ep=" << d.ep
                       << " and dp_replicate=" << d.dp_replicate
                       << " is not lowered in this version, for ranks of " << r.name
                       << " have other experts and replicas the same: set " << r.name
                       << "=1, or expert_layout=folded_over_replicas";
}

/// RC103: degrees that may be declared but that no pass lowers yet.
constexpr void check_lowered(report& out, const parallel_dims& d) {
  for (const named_degree& a : all_degrees)
    if (d.*a.degree > 1 && row(a.along).lowered == lowered_values::nothing)
      refuse(out, 103) << a.name << "=" << d.*a.degree << " is not lowered in this version; "
                       << lowered_degrees().view() << " are: set " << a.name << "=1";
  if (d.ulysses > 1 && d.ulysses < d.cp && d.cp_attention == cp_attention::gather)
    refuse(out, 103) << "ulysses=" << d.ulysses << " with cp=" << d.cp << " and cp_attention=gather is "
                     << d.cp / d.ulysses
                     << " groups that exchange heads and gather keys and values, which is not lowered in "
                        "this version: set "
                     << "cp_attention=ring, ulysses=1 or ulysses=" << d.cp;
  check_experts_lowered(out, d);
}

/// The model's own judgement of its sizes, and the rules of those that it offers.
constexpr void check_sizes_of(report& out, const auto& model, const parallel_dims& given,
                              const training& recipe) {
  const std::size_t before = out.size();
  model.check(out);
  if constexpr (!requires { model.sizes(); }) {
    check_vocabulary_used(out, model.vocab, model.vocab_used);
    if (resolve(given).cp > 1) check_length(out, recipe.seq, given);
  } else {
    if (out.size() > before) return;  // what is no size has no divisors
    model_sizes sizes = model.sizes();
    sizes.tied_embeddings = false;  // lowered: nothing is needed of the user
    check_model(out, sizes, given);
    if (resolve(given).cp > 1)
      check_length(out, recipe.seq, given);  // else sequences are sharded end to end, as tokens
  }
}

/// What a schedule refuses by itself, and its stages.
constexpr void check_schedule(report& out, const auto& schedule, const parallel_dims& given,
                              block_count blocks, std::span<const int> stage_layers) {
  const int pp = resolve(given).pp;
  const std::size_t before = out.size();
  if constexpr (requires { schedule.check(out, pp); })
    if (pp >= 1) schedule.check(out, pp);
  if (out.size() > before) return;  // what is no schedule has no stages
  const int stages = pp >= 1 ? count_stages(schedule, pp) : schedule.stages_per_rank;
  if (pp >= 1 && stages < pp) {
    refuse(out, 301) << "the schedule has " << stages << (stages == 1 ? " stage" : " stages")
                     << " (stages_per_rank=" << schedule.stages_per_rank << ") for pp=" << pp
                     << " ranks; each rank has at least 1 stage";
    return;
  }
  if (blocks.blocks > 0 && !blocks.missing.empty()) {
    refuse(out, 206) << "layer '" << blocks.missing
                     << "' is repeated less than once; a layer is repeated at least 1 time";
    return;
  }
  const bool equal = pp < 1 || stages % pp == 0;
  if (blocks.repeats)
    check_pipeline(out, blocks.blocks, given, equal ? stages / std::max(pp, 1) : 1, stage_layers,
                   equal ? 0 : stages, blocks.ends);
  else if (stages > 1 || !stage_layers.empty())
    refuse(out, 227) << "the model has no repeated layers, and they are what fills " << stages
                     << (stages == 1 ? " stage" : " stages")
                     << "; write repeat{count, layer}, or take one stage without stage_layers";
}

/// The stages of the layers that have a parameter in common.
constexpr std::vector<std::vector<int>> find_stages(const parameter_book& book,
                                                    std::span<const int> blocks_of_stage) {
  std::vector<std::vector<int>> stages;
  for (const parameter_use& p : book.uses()) {
    if (p.at.size() < 2) continue;
    stages.emplace_back();
    for (int blocks : p.at)
      stages.back().push_back(static_cast<int>(stage_of_alone(blocks, blocks_of_stage)));
  }
  return stages;
}

/// All rules but those of the layers: what says whether these can be traced.
constexpr void check_before_layers(report& out, const auto& model, const parallel_dims& given,
                                   const auto& schedule, const training& recipe, const cluster& machines,
                                   std::span<const int> stage_layers = {}) {
  if (check_dims(out, given)) check_lowered(out, resolve(given));
  check_sizes_of(out, model, given, recipe);
  check_batch(out,
              {.global_batch = recipe.global_batch, .microbatches = schedule.microbatches, .seq = recipe.seq},
              given);
  check_recipe(out, recipe);
  check_schedule(out, schedule, given, count_blocks(model), stage_layers);
  check_cluster(out, machines, given);
}

}  // namespace detail

/// Check a plan given as values, all rules at once, and visit each of its layers as traced. Later rules
/// assume earlier ones: sizes before shapes.
constexpr void check_plan(report& out, const auto& model, const parallel_dims& given, const auto& schedule,
                          const training& recipe, const cluster& machines, auto visit,
                          std::span<const int> stage_layers = {}) {
  detail::check_before_layers(out, model, given, schedule, recipe, machines, stage_layers);
  if (!accepts(out)) return;

  const parallel_dims d = resolve(given);
  const detail::block_count blocks = detail::count_blocks(model);
  const int ranks = static_cast<int>(batch_ranks(d)),
            rows = recipe.global_batch / schedule.microbatches / ranks;
  const dim tokens{"tokens", rows * ranks * recipe.seq};
  const layer_context c{tokens,
                        rows,
                        recipe.seq,
                        d.sequence_parallel,
                        1.0 / (static_cast<double>(recipe.global_batch) * recipe.seq),
                        {},
                        d.ulysses > 1,
                        ring_ranks(d),
                        d.ep,
                        d.etp,
                        repeats_tokens(d),
                        ranks * d.cp * token_shards(d),
                        detail::statistics_of(model, tokens.size, tokens.size, ranks)};
  type x = detail::token_type(tokens);
  const int used = model.vocab_used ? model.vocab_used : model.vocab;
  detail::check_end_of_document(out, recipe, used);
  detail::parameter_book parameters;
  detail::tuning tuned;
  std::vector<costed_entry> stack;
  int number = 0;  // of the next repeated layer
  int routers = 0;
  bool typed = true;               // so far; what follows a mistake is a consequence
  bool families[n_op_families]{};  // of the ops of repeated layers
  bool has_fp8_linear = false;     // of repeated layers
  each_entry(model, [&](const auto& entry) {
    if (!typed) return;
    constexpr bool repeated = detail::is_repeat<std::decay_t<decltype(entry)>>;
    const auto& layer = detail::layer_of(entry);
    const int count = detail::count_of(entry);
    const trace t = detail::trace_layer(layer, x, c, recipe);
    typed = detail::check_layer(out, t, layer.name, count);
    if (!typed) return;
    detail::check_shards(out, t, given, c);
    detail::check_row_shards(out, t, given);
    detail::check_expert_shards(out, t, given);
    detail::check_expert_columns(out, t, d);
    detail::check_tokens_of_experts(out, t, d);
    detail::check_sequences(out, t, d, recipe.seq);
    detail::check_limits(out, t, d, recipe.seq);
    detail::check_documents(out, t, layer.name);
    detail::check_loss(out, layer, t, one_device_context(model, recipe, schedule.microbatches, ranks),
                       recipe);
    detail::check_groups(out, t, d);
    detail::check_rings(out, t, d);
    detail::check_vocabulary(out, t, layer.name, used);
    detail::check_kernels(out, t, d);
    detail::check_orders(out, t, d);
    detail::check_gathers(out, t, d);
    detail::check_tokens_alone(out, t, d);
    detail::check_behind(out, t, layer.name, given, recipe.precision);
    parameters.add(out, t, layer.name, repeated, number, count);
    tuned.add(t);
    for (std::size_t i = 0; repeated && i < t.forward_ops; ++i)
      families[static_cast<int>(t.ops[i].kind->family)] = true;
    has_fp8_linear |= repeated && recipe.linears != linear_precision::plain && detail::has_fp8_linear(t, d);
    if (repeated) number += count;
    routers += count * detail::count_routers(t);
    const bool decides = d.pp > 1 && stage_layers.empty();  // on which rank a layer is
    stack.push_back({decides ? cost_of(t, d) : layer_cost{}, count, repeated});
    visit(layer.name, count, repeated, t);
    x = t.values[t.result];
  });
  if (typed && x.ndim != 0) {
    complaint::put_shape(refuse(out, 212) << "the last layer's result is ", x);
    out.back().text << "; expected a loss: end the model with cross_entropy";
  }
  if (typed) detail::check_routers(out, c.routers, routers);
  const action_table actions = complete(schedule, d.pp);
  if (typed) tuned.check(out, recipe, actions.inference);
  if (typed) detail::check_linears(out, recipe, machines, has_fp8_linear);
  if (typed)
    check_recompute(out, recipe.recompute, blocks.repeats ? blocks.blocks : 0, actions.inference, families);
  const std::size_t before = out.size();
  check_actions(out, actions);
  if (out.size() > before) return;
  const std::vector<int> blocks_of_stage = split_layers(stack, actions, stage_layers);
  check_lowerable(out, actions, detail::find_stages(parameters, blocks_of_stage));
}

}  // namespace rankc
