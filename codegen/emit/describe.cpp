// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <numeric>
#include <rankc/ops/experts.hpp>
#include <rankc/stages/expected.hpp>
#include <rankc/rules/values/batch.hpp>
#include <rankc/schedule/gather.hpp>

#include "attention_engines.hpp"
#include "communications.hpp"
#include "describe_files.hpp"
#include "describe_inputs.hpp"
#include "emit.hpp"
#include "linear_operands.hpp"
#include "predicted.hpp"
#include "repetitions.hpp"

namespace rankc::codegen {

namespace {

struct parameter_count {
  std::size_t trained = 0, frozen = 0;
  std::size_t all() const { return trained + frozen; }
};
parameter_count parameters_of(const lowered& l) {
  parameter_count n;
  const auto parts = [&](const layer_parameter& p) {
    const int of_experts = p.experts ? l.plan->dims.ep : 1;
    return static_cast<std::size_t>(of_experts * p.shards_of_dim[0].ranks * p.shards_of_dim[1].ranks);
  };
  for (const pipeline_rank& r : l.ranks)
    for (const placed_parameter& p : r.parameters)
      if (!p.copy) (p.as.trainable ? n.trained : n.frozen) += p.as.elements() * parts(p.as);
  return n;
}

/// The number of trained parameters, if some are frozen.
std::string tuning_text(const lowered& l) {
  const parameter_count n = parameters_of(l);
  if (n.frozen == 0) return "";
  std::string out =
      fmt::format("trained: {} parameters, {:.2f} % of all; {} are frozen\n", n.trained,
                  100 * static_cast<double>(n.trained) / static_cast<double>(n.all()), n.frozen);
  const low_rank_adaptation& lora = l.plan->recipe.lora;
  if (lora.any())
    out += fmt::format("lora: rank {}, alpha {}, adapters of {}\n", lora.rank, lora.alpha,
                       fmt::join(lora.targets.all(), ", "));
  return out;
}

/// The losses of routers, in addition to the model's own loss.
std::string router_losses_text(const router_losses& by) {
  if (!by.any()) return "";
  std::string text;
  if (by.balance != 0)
    text = fmt::format("balance {} of {}, of a microbatch's tokens on {}", by.balance,
                       by.over == router_losses::all_layers ? "all layers at once" : "each layer",
                       by.local ? "each data-parallel rank" : "all ranks");
  if (by.z != 0) text += fmt::format("{}z {}", text.empty() ? "" : "; ", by.z);
  return "router losses: " + text + "\n";
}

}  // namespace

const rankc::op* find_limit(const plan_data& p) {
  for (const layer_kind& k : p.kinds)
    for (const rankc::op& o : k.ops.ops)
      if (o.kind == &ops::arrange_limited) return &o;
  return nullptr;
}

namespace {

/// The capacity of experts, if it is limited.
std::string capacity_text(const lowered& l) {
  const rankc::op* const limit = find_limit(*l.plan);
  if (!limit) return "";
  return fmt::format(
      "capacity: {}, an expert takes at most {} picks of each {} positions of a sequence; {}\n",
      l.plan->model.experts.capacity, limit->with.most, limit->with.seq,
      l.plan->model.experts.routers.fails() ? "a step that has more is not applied"
                                            : "the others are dropped and counted");
}

/// The ranks over which the experts are spread, if there are several.
std::string spread_text(const parallel_dims& d) {
  if (!spreads_experts(d)) return "";
  return fmt::format("; spread over ep {}", d.ep) + (d.etp == 1 ? "" : fmt::format(" x etp {}", d.etp)) +
         (d.dp_replicate > 1 && spreads_experts_over_replicas(d) ? " of all replicas" : "") +
         (repeats_tokens(d) ? ", which have the same tokens" : "");
}

/// The experts and the parameters that a token uses, if the model has experts.
std::string experts_text(const lowered& l) {
  const model_sizes& s = l.plan->model.sizes;
  if (l.plan->model.experts.ffn == 0) return "";
  int layers = 0;
  std::size_t of_experts = 0;
  for (const layer_kind& k : l.plan->kinds)
    for (const weight_info& w : k.ops.weights) {
      if (w.name.declared == "router") layers += k.count;
      if (w.name.declared.starts_with("experts."))
        of_experts += static_cast<std::size_t>(k.count) * static_cast<std::size_t>(w.holds.shape[0].size) *
                      static_cast<std::size_t>(w.holds.shape[1].size);
    }
  const auto experts = static_cast<std::size_t>(s.experts), picks = static_cast<std::size_t>(s.top_k);
  return fmt::format("experts: {} in each of {} layers, {} for a token, which meets {} parameters{}\n",
                     experts, layers, picks,
                     parameters_of(l).all() - of_experts / experts * (experts - picks),
                     spread_text(l.plan->dims)) +
         capacity_text(l) + router_losses_text(l.plan->model.experts.routers.losses);
}

/// "2", "2 x 4 shards"
std::string data_ranks_text(const parallel_dims& d) {
  return std::to_string(batch_ranks(d) / d.dp_shard) +
         (d.dp_shard > 1 ? fmt::format(" x {} shards", d.dp_shard) : "");
}

/// "cp 4 (ulysses 2) x ": the number of ranks that shard sequences, and the size of a group that exchanges
/// heads.
std::string context_ranks_text(const parallel_dims& d) {
  if (d.cp == 1) return "";
  return fmt::format("cp {}{} x ", d.cp, d.ulysses > 1 ? fmt::format(" (ulysses {})", d.ulysses) : "");
}

std::string layer_names(const stage_plan& s) {
  const std::string first = s.layers.front().name, last = s.layers.back().name;
  return first == last ? first : first + " .. " + last;
}

/// The share of each stage in the cost of all stages. Shapes: (stages). Units: 0..1.
std::vector<double> shares_of_stages(const plan_data& p) {
  std::vector<double> shares = costs_of_stages(p);
  const double all = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= all;
  return shares;
}

std::string wide_type(const lowered& l) { return name_of(l.type == dtype::bf16 ? dtype::f32 : l.type); }

/// The sizes of a rank's weights, gradients, moments and working copy. Regions of one size are listed
/// together.
std::string kept_text(const lowered& l, const pipeline_rank& r) {
  const optimizer_state kept = l.state();
  std::vector<std::string> wide, parts;
  const std::string_view moments = kept.moments == 2 ? "two moments" : l.optimizer().moments[0].name;
  if (!l.has_bf16_weights()) wide.emplace_back("weights");
  if (l.trains()) wide.emplace_back("gradients");
  if (kept.moments > 0 && !l.has_bf16_moments()) wide.emplace_back(moments);
  const std::size_t regions = wide.size() + (kept.moments == 2 && !l.has_bf16_moments());
  if (regions > 0)
    parts.push_back(fmt::format("{} x {} ({})", readable_bytes(r.trained_elements * l.wide_bytes()), regions,
                                fmt::join(wide, ", ")));
  const std::size_t all = r.parameter_elements, frozen = all - r.trained_elements;
  if (frozen > 0 && !l.has_bf16_weights() && !kept.working_copy)
    parts.push_back(fmt::format("{} (frozen weights)", readable_bytes(frozen * l.wide_bytes())));
  const auto add_bf16 = [&](std::size_t elements, int count, const std::string& what) {
    parts.push_back(fmt::format("{}{} ({})", readable_bytes(elements * 2),
                                count > 1 ? fmt::format(" x {}", count) : "", what));
  };
  if (l.has_bf16_weights()) add_bf16(all, 1, "bf16 weights, no master copy");
  if (l.has_bf16_moments()) add_bf16(r.trained_elements, kept.moments, fmt::format("bf16 {}", moments));
  if (kept.working_copy) add_bf16(all, 1, "bf16 working copy");
  return fmt::format("  parameters {}\n", fmt::join(parts, " + "));
}

/// "optimizer: SGD, momentum 0.9, Nesterov; moments in bf16, rounded stochastically"
std::string optimizer_text(const lowered& l) {
  const training& t = l.plan->recipe;
  if (!l.trains()) return "";
  std::string out = fmt::format("optimizer: {}", l.optimizer().title);
  for (const hyperparameter& h : l.optimizer().used_hyperparameters()) {
    const double x = t.optimizer.number(h.name);
    if (h.printed.empty() || x == 0) continue;
    out += fmt::format(", {}", h.printed);
    if (h.range != hyperparameter_range::flag) out += fmt::format(" {}", x);
  }
  std::vector<std::string_view> narrow;
  if (l.has_bf16_weights()) narrow.emplace_back("weights");
  if (l.has_bf16_moments()) narrow.emplace_back("moments");
  if (!narrow.empty())
    out += fmt::format("; {} in bf16, rounded {}", fmt::join(narrow, " and "),
                       t.rounding == stochastic ? "stochastically" : "to nearest");
  if (l.rounds_reductions()) out += "; gradients in bf16 between ranks of dp";
  return out + "\n";
}

/// The learning rate over the steps as a curve of characters, if it changes.
std::string learning_rate_text(const lowered& l) {
  constexpr int rows = 6, columns = 60;
  const training& t = l.plan->recipe;
  const lr_schedule schedule = t.schedule_of_lr();
  if (!l.trains() || !schedule.any()) return "";
  // The curve goes on for a tenth of the schedule beyond its end.
  const std::int64_t steps = schedule.steps() + std::max<std::int64_t>(1, schedule.steps() / 10);
  std::vector<std::string> lines(rows, std::string(columns, ' '));
  for (int column = 0; column < columns; ++column) {
    const std::int64_t step = 1 + (steps - 1) * column / (columns - 1);
    const double part = t.lr > 0 ? t.learning_rate(step) / t.lr : 0;
    lines[static_cast<std::size_t>(std::lround((1 - part) * (rows - 1)))][static_cast<std::size_t>(column)] =
        '*';
  }
  std::string out = "learning rate over the steps:\n";
  for (int row = 0; row < rows; ++row) {
    const std::string& line = lines[static_cast<std::size_t>(row)];
    std::string rate;
    if (row == 0) rate = fmt::format("{:.3g}", t.lr);
    else if (row == rows - 1) rate = "0";
    out += fmt::format("  {:>8} |{}\n", rate, line.substr(0, line.find_last_not_of(' ') + 1));
  }
  return out + fmt::format("  {:>8} 1{:>{}}\n\n", "step", steps, columns - 1);
}

/// Bytes that a rank keeps for the state of parameters, and bytes that it sends for them in a step.
struct state_cost {
  double kept = 0, sent = 0;
  std::string text() const {
    return fmt::format("{} and {} sent a step", readable_bytes(static_cast<std::size_t>(kept)),
                       readable_bytes(static_cast<std::size_t>(sent)));
  }
};

/// The cost of sharding for a rank in three cases: as the plan has it, with each weight gathered and each
/// gradient reduce-scattered once a step, and if all ranks were replicas.
struct sharding_costs {
  state_cost here, once, replicas;
};
sharding_costs costs_of_sharding(const lowered& l, const pipeline_rank& r) {
  const double real = static_cast<double>(l.real_bytes()), wide = static_cast<double>(l.wide_bytes()),
               summed = l.rounds_reductions() ? 2 : wide;
  const optimizer_state state = l.state();
  const double each =
      static_cast<double>(state.weight + static_cast<std::size_t>(state.moments) * state.moment) +
      (l.trains() ? wide : 0) + (state.working_copy ? real : 0);
  const double each_frozen = state.working_copy ? real : static_cast<double>(state.weight);
  const parallel_dims& d = l.plan->dims;
  sharding_costs c;
  double whole = 0, over_replicas = 0;  // bytes of full tensors; bytes between replicas
  for (const placed_parameter& p : r.parameters) {
    const bool trained = p.as.trainable && l.trains();
    const double elements = static_cast<double>(p.as.elements()), stored = static_cast<double>(p.as.stored()),
                 shards = p.as.shards;
    const double holders =
        p.as.experts ? d.world / (d.pp * d.ep * d.etp)
                     : weight_shards(d) * weight_replicas(d);  // ranks that hold it or a shard of it
    if (p.as.shards > 1) whole += stored * (real + (trained ? wide : 0));
    c.once.sent += (shards - 1) / shards * stored * (real + (trained ? summed : 0));
    c.replicas.kept += elements * (p.as.trainable ? each : each_frozen);
    if (trained) c.replicas.sent += 2 * (holders - 1) / holders * elements * summed;
  }
  const double kept = static_cast<double>(r.trained_elements) * each +
                      static_cast<double>(r.parameter_elements - r.trained_elements) * each_frozen;
  c.here.kept = kept + static_cast<double>(r.gathered_elements) * real +
                static_cast<double>(r.summed_elements + r.arriving_elements) * wide;
  for (const communications& x : count_communications(l, r))
    if (x.phase != "step")
      (x.axis == "dp_shard" || x.axis == "efsdp" ? c.here.sent : over_replicas) +=
          x.axis.starts_with("dp_") || x.axis == "efsdp" ? x.sent() : 0;
  c.once.kept = kept + whole;
  c.once.sent += over_replicas;
  c.here.sent += over_replicas;
  return c;
}

/// The share of sharded weights that each rank keeps.
std::string shards_text(const parallel_dims& d) {
  const std::string of_experts =
      spreads_experts(d) && expert_weight_shards(d) > 1 ? fmt::format("1/{}", expert_weight_shards(d)) : "";
  if (weight_shards(d) == 1) return "experts in shards of " + of_experts;
  return fmt::format("in shards of 1/{}{}", weight_shards(d),
                     of_experts.empty() ? "" : ", experts of " + of_experts);
}

/// How often the weights are gathered.
std::string_view gathering_text(const lowered& l) {
  if (l.reshards()) return "by layers in turn";
  return says_unshard(l.plan->actions) ? "by stages in turn" : "once a step";
}

/// The memory that a rank needs in addition to its shards, if weights are sharded.
std::string sharded_text(const lowered& l, const pipeline_rank& r) {
  std::size_t padding = 0;
  for (const placed_parameter& p : r.parameters) padding += p.as.stored() - p.as.elements();
  std::string out = fmt::format("  {}{}; gathered {}: weights {}", shards_text(l.plan->dims),
                                padding ? fmt::format(", {} elements of padding on all", padding) : "",
                                gathering_text(l), readable_bytes(r.gathered_elements * l.real_bytes()));
  if (l.trains())
    out += fmt::format(", whole gradients {}", readable_bytes(r.summed_elements * l.wide_bytes()));
  if (r.arriving_elements > 0)
    out += fmt::format(", sums that arrive {}", readable_bytes(r.arriving_elements * l.wide_bytes()));
  const sharding_costs c = costs_of_sharding(l, r);
  out +=
      fmt::format("\n  weights, gradients and moments: {}; as replicas {}", c.here.text(), c.replicas.text());
  return out +
         (l.reshards() || says_unshard(l.plan->actions) ? "; gathered once a step " + c.once.text() : "") +
         "\n";
}

/// The table of a rank's communications.
std::string communications_text(const std::vector<communications>& all) {
  if (all.empty()) return "";
  std::string out = fmt::format("  {:<9} {:<14} {:<12} {:>6} {:>8} {:>12} {:<5} {:>11}\n", "phase",
                                "communication", "over", "count", "tensors", "elements", "type", "sent");
  double sent = 0;
  for (const communications& c : all) {
    sent += c.sent();
    out += fmt::format("  {:<9} {:<14} {:<12} {:>6} {:>8} {:>12} {:<5} {:>11}\n", c.phase, c.kind, c.axis,
                       c.count, c.tensors, c.elements, c.type_name(),
                       readable_bytes(static_cast<std::size_t>(c.sent())));
  }
  return out + fmt::format("  sends {} a step\n", readable_bytes(static_cast<std::size_t>(sent)));
}

}  // namespace

std::string describe_text(const lowered& l) {
  const plan_data& p = *l.plan;
  const timing t = time(p.actions, p.expected);
  const std::vector<double> shares = shares_of_stages(p);
  std::string out = fmt::format(
      "{}: {} parameters, {} ranks = pp {} x dp {} x {}{}{} {}{}, {} for {}\n", p.name,
      parameters_of(l).all(), p.dims.world, p.dims.pp, data_ranks_text(p.dims),
      repeats_tokens(p.dims) ? fmt::format("ep {} x ", p.dims.ep) : "", context_ranks_text(p.dims),
      name(region_axis), region_ranks(p.dims), p.dims.sequence_parallel ? " with sequence parallelism" : "",
      name_of(l.type), name_of(l.target));
  out +=
      fmt::format("step: {} sequences of {} tokens = {} microbatches x {} dp ranks x {} rows\n",
                  p.recipe.global_batch, p.recipe.seq, p.actions.microbatches, batch_ranks(p.dims), p.rows);
  if (p.recipe.has_documents())
    out += fmt::format("documents: each ends with token {}; tokens attend to their own, from position 0 on\n",
                       p.recipe.end_of_document);
  if (p.recipe.ignores_labels())
    out += fmt::format("labels of {} are ignored{}\n", p.recipe.ignored_label,
                       p.recipe.token_weights ? "" : ": the loss is the mean over the others of a step");
  if (p.recipe.ignore_across_documents) out += "the label of a document's last token is ignored\n";
  if (p.recipe.token_weights)
    out += "labels have weights: the loss is the sum of weight x loss, over the sum of weights of a step\n";
  out += inputs_text(p) + experts_text(l) + linears_text(l) + attention_text(l) + tuning_text(l) +
         optimizer_text(l);
  out += fmt::format("schedule: {}, bubble {:.1f} %\n{}\n", p.schedule, 100 * t.bubble, predicted_text(l)) +
         schedule_text(p) + "\n" + learning_rate_text(l) + repetitions_text(l);
  std::map<std::string, int> tables;  // the first rank with each table
  for (const pipeline_rank& r : l.ranks) {
    out += fmt::format("pipeline rank {}: {} per rank\n", r.index, readable_bytes(r.arena.bytes));
    for (const stage_plan& s : r.stages)
      out += fmt::format("  stage {}: {}, {:.1f} % of the cost\n", s.stage, layer_names(s),
                         100 * shares[s.stage]);
    out += kept_text(l, r);
    if (l.is_sharded()) out += sharded_text(l, r);
    for (const pool& p : r.arena.pools)
      out += fmt::format("  {}: {} x {}\n", kept_names[static_cast<int>(p.what)], p.count,
                         readable_bytes(p.unit));
    out += fmt::format("  temporaries {}\n",
                       readable_bytes(r.arena.work_bytes + r.arena.chains * r.arena.chain_bytes));
    if (const std::size_t beside = bytes_beside_arena(l, r))
      out += fmt::format("  plus at most {} for CUDA and NCCL\n", readable_bytes(beside));
    const std::string table = communications_text(count_communications(l, r));
    const auto [same, is_new] = tables.try_emplace(table, r.index);
    out += is_new ? table : fmt::format("  communicates as pipeline rank {} does\n", same->second);
  }
  out += fmt::format("\ncommunicators: {}\n", l.communicators.size());
  return out;
}

/// The fields of a rope scaling: numbers if its rule reads them, otherwise null.
static nlohmann::json describe_scaling(const rope_scaling& s) {
  nlohmann::json j{{"rope_type", name_of(s.by)},
                   {"rope_factor", nullptr},
                   {"low_freq_factor", nullptr},
                   {"high_freq_factor", nullptr},
                   {"original_positions", nullptr}};
  if (s.by != rope_scaling::none) j["rope_factor"] = s.factor;
  if (s.share != 1) j["rope_share"] = s.share;
  if (s.has_bounds())
    j.update({{"low_freq_factor", s.low_freq_factor},
              {"high_freq_factor", s.high_freq_factor},
              {"original_positions", s.original_positions}});
  return j;
}

/// The coefficient of the balance loss over all layers and ranks; null if the loss has another scope.
static nlohmann::json describe_balance(const router_losses& losses) {
  if (losses.local || losses.over == router_losses::each_layer) return nullptr;
  return losses.balance;
}

std::string describe_json(const lowered& l) {
  using nlohmann::json;
  const plan_data& p = *l.plan;
  const timing t = time(p.actions, p.expected);
  const std::vector<double> shares = shares_of_stages(p);
  json j{{"plan", p.name},
         {"target", name_of(l.target)},
         {"dtype", name_of(l.type)},
         {"parameters", parameters_of(l).all()},
         {"dims", {{"world", p.dims.world}, {"sequence_parallel", p.dims.sequence_parallel}}},
         {"recipe",
          {{"seq", p.recipe.seq},
           {"global_batch", p.recipe.global_batch},
           {"microbatches", p.actions.microbatches},
           {"rows", p.rows}}},
         {"optimizer",
          {{"name", l.optimizer().name},
           {"moments", l.state().moments},
           {"moments_in", l.has_bf16_moments() ? "bf16" : wide_type(l)},
           {"weights_in", l.has_bf16_weights() ? "bf16" : wide_type(l)}}},
         {"schedule", p.schedule},
         {"bubble", t.bubble},
         {"bubble_per_rank", t.bubble_per_rank},
         {"peak_activations", t.peak_activations},
         {"plan_hash", fmt::format("{:016x}", l.hash)}};
  for (const named_degree& a : all_degrees)
    if (row(a.along).fills == fills::world) j["dims"][std::string(a.name)] = p.dims.*a.degree;
  if (p.dims.ulysses > 1) j["dims"]["ulysses"] = p.dims.ulysses;
  if (spreads_experts(p.dims))
    j["dims"].update({{"ep", p.dims.ep},
                      {"etp", p.dims.etp},
                      {"expert_layout", expert_layout_names[static_cast<int>(p.dims.expert_layout)]}});
  if (p.recipe.has_documents()) j["recipe"]["end_of_document"] = p.recipe.end_of_document;
  if (p.recipe.ignores_labels()) j["recipe"]["ignored_label"] = p.recipe.ignored_label;
  if (p.recipe.ignore_across_documents) j["recipe"]["ignore_across_documents"] = true;
  if (p.recipe.token_weights) j["recipe"]["token_weights"] = true;
  if (const json inputs = inputs_json(p); !inputs.empty()) j["inputs"] = inputs;
  if (const known_model& m = p.model; !m.family.empty()) {
    const model_sizes& s = m.sizes;
    j["model"] = {{"family", m.family},
                  {"layers", s.layers},
                  {"hidden", s.hidden},
                  {"heads", s.heads},
                  {"kv_heads", s.kv_heads ? s.kv_heads : s.heads},
                  {"head_dim", s.elements_of_head()},
                  {"ffn", s.ffn},
                  {"vocab", s.vocab},
                  {"tied", s.tied_embeddings},
                  {"theta", m.theta},
                  {"norm_eps", m.norm_eps}};
    if (s.rotary) j["model"].update(describe_scaling(m.scaling));
    if (const known_experts& e = m.experts; e.ffn > 0)
      j["model"].update({{"experts", s.experts},
                         {"top_k", s.top_k},
                         {"expert_ffn", e.ffn},
                         {"norm_topk_prob", e.normalized},
                         {"decoder_sparse_step", e.every},
                         {"mlp_only_layers", e.dense},
                         {"balance_loss", describe_balance(e.routers.losses)}});
  }
  if (const optimizer_row& row = l.optimizer(); row.has_own_hyperparameters())
    for (const hyperparameter& h : row.used_hyperparameters())
      j["optimizer"]["hyperparameters"][std::string(h.name)] = p.recipe.optimizer.number(h.name);
  if (!p.files.model_type.empty()) j["hugging_face"] = describe_files(p.files);
  if (const parameter_count n = parameters_of(l); n.frozen > 0) j["trained_parameters"] = n.trained;
  for (const rounded_linears& r : linears_in_fp8(l))
    j["linears"].push_back({{"layer", r.layer},
                            {"products", r.products},
                            {linear_precision_names[static_cast<int>(r.by)], r.in_fp8}});
  for (const attention_engine& e : attention_engines(l))
    j["attention"].push_back({{"engine", e.by_cudnn() ? "cudnn" : "rankc"},
                              {"forward_on_hopper", e.own_forward || !e.by_cudnn() ? "rankc" : "cudnn"},
                              {"gradients_on_hopper", e.own_gradient || !e.by_cudnn() ? "rankc" : "cudnn"},
                              {"layers", e.layers},
                              {"because", e.because}});
  if (const auto predicted = predict(l)) {
    j["predicted"] = {{"gpu", predicted->gpu}, {"step_s", predicted->step.step}};
    for (const auto& [name, seconds] : terms_of(predicted->step))
      j["predicted"]["terms"][std::string(name)] = seconds;
  }
  for (const pipeline_rank& r : l.ranks) {
    json rank{{"pp", r.index}, {"bytes", r.arena.bytes}, {"parameter_elements", r.parameter_elements}};
    for (const stage_plan& s : r.stages) {
      json layers = json::array();
      for (const layer_use& use : s.layers) layers.push_back(use.name);
      rank["stages"].push_back({{"stage", s.stage}, {"layers", layers}, {"share", shares[s.stage]}});
    }
    rank["collectives"] = rank["kept"] = json::array();
    for (const pool& p : r.arena.pools)
      rank["kept"].push_back(
          {{"what", kept_names[static_cast<int>(p.what)]}, {"count", p.count}, {"bytes", p.unit}});
    for (const communications& c : count_communications(l, r))
      rank["collectives"].push_back({{"phase", c.phase},
                                     {"kind", c.kind},
                                     {"axis", c.axis},
                                     {"dtype", c.type_name()},
                                     {"ranks", c.ranks},
                                     {"count", c.count},
                                     {"tensors", c.tensors},
                                     {"elements", c.elements},
                                     {"sent_bytes", c.sent()}});
    if (l.is_sharded()) {
      const auto [here, once, replicas] = costs_of_sharding(l, r);
      for (const auto& [name, cost] :
           {std::pair("kept", here), {"gathered_once", once}, {"replicas", replicas}})
        rank["sharding"][name] = {{"bytes", cost.kept}, {"sent_bytes", cost.sent}};
    }
    j["pipeline_ranks"].push_back(rank);
  }
  for (const repetition& n : repetitions(l))
    j["recomputation"].push_back({{"layer", n.layer},
                                  {"kept", n.kept},
                                  {"halfway", n.halfway},
                                  {"kept_without", n.without},
                                  {"ops", n.nodes},
                                  {"collectives", n.collectives},
                                  {"flops_per_token", n.flops}});
  for (const communicator& c : l.communicators)
    j["communicators"].push_back({{"name", c.name}, {"ranks", c.ranks}});
  return j.dump();
}

}  // namespace rankc::codegen
