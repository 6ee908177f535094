// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include <rankc/stages/expected.hpp>
#include <rankc/rules/values/batch.hpp>
#include <rankc/templates.hpp>
#include <rankc/ops/table.hpp>
#include <rankc/version.hpp>

#include "../passes/input_text.hpp"
#include "../passes/lanes.hpp"
#include "attention_engines.hpp"
#include "calls_of_step.hpp"
#include "emit.hpp"
#include "predicted.hpp"
#include "rank_rules.hpp"

namespace rankc::codegen {

namespace {

constexpr std::string_view fill_names[]{"fill::zeros", "fill::ones", "fill::uniform"};

bool has_experts(const pipeline_rank& r) {
  return std::any_of(r.parameters.begin(), r.parameters.end(),
                     [](const placed_parameter& p) { return p.as.experts; });
}

/// The dim of a parameter that ranks shard; -1: none.
/// Errors: std::logic_error if they shard both dims, which the runtime's tables cannot express.
int sharded_dim(const placed_parameter& p) {
  const auto& [rows, cols] = p.as.shards_of_dim;
  if (rows.ranks > 1 && cols.ranks > 1)
    throw std::logic_error("parameter '" + p.name +
                           "' is sharded along both of its dims; a program shards one");
  if (rows.ranks > 1) return 0;
  return cols.ranks > 1 ? 1 : -1;
}

std::string parameter_table(const pipeline_rank& r) {
  if (r.parameters.empty()) return "";
  std::string out = fmt::format(
      "// name, rows, cols, dim sharded over tp, first element, start, std, matrix, copy{}\n"
      "constexpr parameter parameters_{}[]{{\n",
      has_experts(r) ? ", experts" : "", r.index);
  for (const placed_parameter& p : r.parameters)
    out += fmt::format("    {{\"{}\", {}, {}, {}, {}, {}, {}, {}, {}{}}},\n", p.name, p.as.rows, p.as.cols,
                       sharded_dim(p), p.element, fill_names[static_cast<int>(p.as.start)], p.as.std,
                       p.as.ndim > 1, p.copy, p.as.experts ? ", true" : "");
  return out + "};\n";
}

/// ", {rankc::rope_scaling::linear, 8, 1, 4, 8192}"
std::string scaling_row(const rope_scaling& s) {
  if (s.by == rope_scaling::none) return "";
  return fmt::format(", {{rankc::rope_scaling::{}, {}, {}, {}, {}}}", name_of(s.by), s.factor,
                     s.low_freq_factor, s.high_freq_factor, s.original_positions);
}
std::string rope_tables(const pipeline_rank& r) {
  if (r.arena.ropes.empty()) return "";
  std::vector<std::string> tables;
  for (const placed_rope& t : r.arena.ropes)
    tables.push_back(fmt::format("{{{{{}}}, {}, {}, {}{}}}", t.where, t.as.positions, t.as.dim, t.as.theta,
                                 scaling_row(t.as.scaling)));
  return fmt::format("constexpr rope_table ropes_{}[]{{{}}};\n", r.index, fmt::join(tables, ", "));
}

std::string lane_table(const lowered& l, const pipeline_rank& r) {
  std::vector<std::string> lanes;
  const bool rounds = l.rounds_reductions();
  for (const lane& each : r.lanes)
    lanes.push_back(fmt::format("{{\"{}\", {}{}}}", each.name, each.computes,
                                rounds && &each == &r.lanes[reduce_lane] ? ", true" : ""));
  return fmt::format("// name, whether it computes{}\nconstexpr lane_row lanes_{}[]{{{}}};\n",
                     rounds ? ", whether it sends sums in bf16" : "", r.index, wrap(lanes, ",", "    "));
}

std::string call_table(const lowered& l, const pipeline_rank& r) {
  constexpr std::string_view kinds[]{"product", "attention", "pass", "optimizer", "communication"};
  std::string out;
  for (const calls_of_step& c : count_calls(l, r))
    out += fmt::format("    {{\"{}\", call_kind::{}, {}, {:.6g}, {:.6g}, {:.6g}}},\n", c.name,
                       kinds[static_cast<int>(c.kind)], c.count, c.operations, c.bytes, 1e3 * c.least);
  return out.empty() ? ""
                     : fmt::format(
                           "// name, what bounds it, how often in a step; operations, bytes, and "
                           "milliseconds at least, of all\nconstexpr call_row calls_{}[]{{\n{}}};\n",
                           r.index, out);
}

/// The member with the places where the evaluation program keeps logits; empty if it keeps none.
std::string logits_text(const kept_logits& k) {
  if (k.rows == 0) return "";
  return fmt::format(
      ",\n     .logits = {{.where = {{{}}}, .rows = {}, .columns = {}, .stride = {}, .microbatch = {}}}",
      k.where, k.rows, k.columns, k.stride, k.microbatch);
}

/// The coefficients of the losses of routers, as members of a routers_place.
std::string coefficients_text(const router_losses& by) {
  if (!by.any()) return "";
  return fmt::format(".balance = {}, .z = {}, ", by.balance, by.z);
}

/// The sums of routers that a step reports; null without any.
const dim* find_reported_sums(const plan_data& p) {
  for (const layer_kind& k : p.kinds)
    if (k.ops.reported >= 0) return &k.ops.values[static_cast<std::size_t>(k.ops.reported)].shape[1];
  return nullptr;
}

/// The member with the place where a step leaves router statistics, on the rank that has all microbatches,
/// and with the coefficients of router losses; else empty.
std::string routers_text(const lowered& l, const pipeline_rank& r) {
  const model_routers& of = l.plan->model.experts.routers;
  const std::string coefficients = coefficients_text(of.losses);
  const dim* const sums = find_reported_sums(*l.plan);
  if (r.arena.routers_bytes == 0 || l.plan->actions.bidirectional() || sums == nullptr)
    return coefficients.empty()
               ? ""
               : fmt::format(",\n     .routers = {{.where = {{}}, {}.fails = false}}", coefficients);
  return fmt::format(
      ",\n     .routers = {{.where = {{{}}}, .rows = {}, .experts = {}, {}.of_each_layer = {}{}{}}}",
      r.arena.routers, sums->count(), sums->unit, coefficients,
      of.losses.balance != 0 && of.losses.over == router_losses::each_layer,
      find_limit(*l.plan) ? ", .limited = true" : "", of.fails() ? ", .fails = true" : "");
}

/// The first byte of an input; 0 if the rank does not have it.
std::size_t place_of(const pipeline_rank& r, const named_input& i) {
  const placed_input* const placed = r.find_input(i.name);
  return placed ? placed->where : 0;
}

/// The inputs that the model declares and the rank reads.
std::vector<placed_input> declared_inputs(const pipeline_rank& r) {
  std::vector<placed_input> all;
  for (const placed_input& i : r.inputs)
    if (i.read && text_of_input(i.is).held == holding_kind::input) all.push_back(i);
  return all;
}
std::string input_table(const pipeline_rank& r) {
  constexpr std::string_view types[]{"real", "wide", "index"}, extents[]{"token", "sequence", "step"};
  std::string rows;
  for (const placed_input& i : declared_inputs(r))
    rows += fmt::format("    {{\"{}\", {{{}}}, {}, input_type::{}, input_rows::{}, {}, {}}},\n", i.is.name,
                        i.where, i.is.width(), types[static_cast<int>(i.is.holds)],
                        extents[static_cast<int>(i.is.extent)], i.is.whole_sequences, i.is.below);
  return rows.empty() ? ""
                      : fmt::format(
                            "// name, place, numbers of a row, their type, what has a row, whether the rank "
                            "has all tokens\n// of its sequences, the limit of indices\n"
                            "constexpr input_row inputs_{}[]{{\n{}}};\n",
                            r.index, rows);
}

/// Whether a rank ends a step with the loss although it reads no targets.
bool has_loss_without_targets(const lowered& l, const pipeline_rank& r) {
  return !r.reads(inputs::targets) && (r.stages.back().last || l.sums_losses_over_pp());
}

std::string layout_entry(const lowered& l, const pipeline_rank& r, const kept_logits& logits,
                         const std::string& calls) {
  const arena_plan& a = r.arena;
  const std::size_t frozen = r.parameter_elements - r.trained_elements;
  return fmt::format(
      "    {{.arena_bytes = {},\n     .weights = {{{}}}, .gradients = {{{}}}, .first_moment = {{{}}}, "
      ".second_moment = {{{}}},{}\n"
      "     .parameter_count = {},{} .parameters = {},\n     .ropes = {}, .tokens = {{{}}}, .targets = "
      "{{{}}},\n"
      "     .reads_tokens = {}, .reads_targets = {}, .loss = {{{}}}, .norm = {{{}}}, .events = {}, .lanes = "
      "lanes_{}{}{}{}{}{}{}}},\n",
      a.bytes, a.weights, a.gradients, a.first_moment, a.second_moment,
      l.has_working_copy() ? fmt::format("\n     .working_copy = {{{}}},", a.working_copy)
                           : " .working_copy = {},",
      r.parameter_elements, frozen > 0 ? fmt::format(" .frozen_count = {},", frozen) : "",
      r.parameters.empty() ? "{}" : fmt::format("parameters_{}", r.index),
      r.arena.ropes.empty() ? "{}" : fmt::format("ropes_{}", r.index), place_of(r, inputs::tokens),
      place_of(r, inputs::targets), r.reads(inputs::tokens), r.reads(inputs::targets), a.loss, a.norm,
      r.events.size(), r.index,
      r.reads(inputs::starts)
          ? fmt::format(", .starts = {{{}}}, .reads_starts = true", place_of(r, inputs::starts))
          : "",
      has_loss_without_targets(l, r) ? ", .has_loss = true" : "",
      declared_inputs(r).empty() ? "" : fmt::format(",\n     .inputs = inputs_{}", r.index),
      logits_text(logits), routers_text(l, r),
      calls.empty() ? "" : fmt::format(",\n     .calls = calls_{}", r.index));
}

std::string tables(const lowered& l, const std::vector<kept_logits>& logits) {
  std::string out, layouts;
  for (const pipeline_rank& r : l.ranks) {
    const std::string calls = call_table(l, r);
    out += parameter_table(r) + rope_tables(r) + input_table(r) + lane_table(l, r) + calls;
    layouts += layout_entry(l, r, logits[static_cast<std::size_t>(r.index)], calls);
  }
  return out + "\nconstexpr layout layouts[]{\n" + layouts + "};\n\n" + rank_rules_text(l);
}

/// The moments that the optimizer keeps, unless these are two in the type of gradients.
std::string state_text(const lowered& l) {
  std::string out;
  if (const int n = l.state().moments; l.trains() && n != 2) out += fmt::format(" .moments = {},", n);
  if (l.has_bf16_moments()) out += " .bf16_moments = true,";
  if (l.has_bf16_weights()) out += " .bf16_weights = true,";
  return out;
}

/// The members that describe the sharding over ranks, each only if the plan uses it.
std::string shares_text(const lowered& l) {
  const parallel_dims& d = l.plan->dims;
  std::string out = d.cp > 1 ? fmt::format(" .cp = {},", d.cp) : "";
  if (weight_shards(d) > 1) out += fmt::format(" .shards = {},", weight_shards(d));
  if (d.cp > 1 && d.cp_weights == cp_weights::shard) out += " .cp_shares_weights = true,";
  if (d.ep > 1) out += fmt::format(" .ep = {},", d.ep);
  if (d.ep > 1 && d.etp > 1) out += fmt::format(" .etp = {},", d.etp);
  if (spreads_experts_over_replicas(d)) out += " .experts_over_replicas = true,";
  if (repeats_tokens(d)) out += " .independent_experts = true,";
  if (l.plan->recipe.has_documents())
    out += fmt::format(" .end_of_document = {},", l.plan->recipe.end_of_document);
  if (l.plan->recipe.ignores_labels())
    out += fmt::format(" .ignored_label = {},", l.plan->recipe.ignored_label);
  if (l.plan->recipe.ignore_across_documents) out += " .ignore_across_documents = true,";
  return out;
}

/// A hyperparameter of AdamW; its default if the optimizer does not have it, and then no kernel reads it.
double adam_number(const training& t, std::string_view name) {
  return t.optimizer.number(name, optimizer(adamw{}).number(name));
}

std::string rest_of_recipe(const training& t) {
  std::string out;
  if (const double momentum = t.optimizer.number("momentum"); momentum > 0)
    out += fmt::format(", .momentum = {}", momentum);
  if (t.optimizer.number("nesterov") != 0) out += ", .nesterov = true";
  if (t.rounding_seed != 0)
    out += fmt::format(", .rounding_seed = {}", static_cast<std::uint32_t>(t.rounding_seed));
  if (t.lr_schedule.any()) {
    constexpr const char* shapes[]{"constant", "linear", "cosine"};
    out += ",\n              .schedule = {";
    for (int i = 0; i < t.lr_schedule.count; ++i) {
      const runtime::lr_piece& piece = t.lr_schedule.pieces[i];
      out += fmt::format("{}lr_piece{{lr_shape::{}, {}, {}}}", i > 0 ? ", " : "",
                         shapes[static_cast<int>(piece.shape)], piece.steps,
                         piece.to == runtime::peak ? "peak" : fmt::format("{}", piece.to));
    }
    out += "}";
  }
  return out;
}

/// The note that the program prints before it runs.
std::string note_text(const lowered& l) {
  const std::string note =
      l.plan->recipe.precision == bf16 && l.type != dtype::bf16
          ? fmt::format("the recipe's precision is bf16; this program computes in {}", name_of(l.type))
          : slow_attention(l);
  return note.empty() ? "" : fmt::format("\n    .note = \"{}\",", note);
}

/// The predicted times of a step and its actions, if they are known: a table, and the member that names it.
struct prediction_text {
  std::string table, member;
};
prediction_text text_of_prediction(const lowered& l) {
  const auto known = predict(l);
  if (!known) return {};
  std::set<std::string> done;  // "0F", without microbatches
  for (const action& a : l.plan->actions.actions)
    done.insert(std::to_string(a.stage) + std::string(action_names[static_cast<int>(a.kind)]));
  const double busy = known->step.step - known->step.bubble,
               slowed = busy / (busy - known->step.limited);  // by the GPU's power limit
  std::vector<std::string> rows;
  const auto row = [&](const std::string& action, double seconds) {
    if (action == "STEP" || done.count(action))
      rows.push_back(fmt::format("{{\"{}\", {:.6g}}}", action, 1e3 * slowed * seconds));
  };
  for (std::size_t s = 0; s < known->stages.size(); ++s) {
    const auto& [forward, input, weight] = known->stages[s];
    const std::string stage = std::to_string(s);
    row(stage + "F", forward);
    row(stage + "B", input + weight);
    row(stage + "I", input);
    row(stage + "W", weight);
  }
  row("STEP", known->step.optimizer);
  return {fmt::format("\nconstexpr rankc::runtime::predicted_action predicted[] = {{{}}};\n",
                      fmt::join(rows, ", ")),
          fmt::format("\n    .predicted = {{{:.6g}, predicted}},", 1e3 * known->step.step)};
}

std::string emit_plan_text(const lowered& l) {
  return fill(templates::program_plan_text_hpp, {{"version", version},
                                                 {"plan", std::string(l.plan->name)},
                                                 {"plan_id", identifier(l.plan->name)},
                                                 {"text", describe_text(l)},
                                                 {"json", describe_json(l)}});
}

}  // namespace

std::string emit_program(const lowered& l, const std::string& target,
                         const std::vector<kept_logits>& logits) {
  const plan_data& p = *l.plan;
  const training& t = p.recipe;
  std::string includes;
  std::vector<std::string> train, evaluate;
  for (const pipeline_rank& r : l.ranks) {
    includes += fmt::format("#include \"pipeline_{}.hpp\"\n", r.index);
    train.push_back(fmt::format("pipeline_{}::train", r.index));
    evaluate.push_back(fmt::format("pipeline_{}::evaluate", r.index));
  }
  const trace& first = p.kinds.front().ops;
  int vocab = p.vocab_used;  // rows of the table that token ids look up
  for (const rankc::op& o : first.ops)
    if (o.kind == &ops::embedding) vocab = first.values[o.in[1]].shape[0].size;
  const prediction_text predicted = text_of_prediction(l);
  return fill(
      templates::program_program_cpp,
      {{"version", version},
       {"plan", std::string(p.name)},
       {"plan_id", identifier(p.name)},
       {"target", target},
       {"includes", includes},
       {"interface", std::to_string(runtime::interface_version)},
       {"tables", tables(l, logits) + predicted.table},
       {"train", l.trains() ? "train" : "nullptr"},
       {"train_table",
        l.trains() ? fmt::format("void (*const train[])(rank&){{{}}};", fmt::join(train, ", ")) : ""},
       {"evaluate", fmt::format("{}", fmt::join(evaluate, ", "))},
       {"hash", fmt::format("{:#018x}", l.hash)},
       {"dtype", name_of(l.type)},
       {"pp", std::to_string(p.dims.pp)},
       {"dp", std::to_string(batch_ranks(p.dims))},
       {"tp", std::to_string(region_ranks(p.dims))},
       {"shards", shares_text(l)},
       {"microbatches", std::to_string(p.actions.microbatches)},
       {"rows", std::to_string(p.rows)},
       {"seq", std::to_string(t.seq)},
       {"vocab", std::to_string(vocab)},
       {"vocab_used", std::to_string(p.vocab_used)},
       {"flops", fmt::format("{:.1f}", flops_per_token(p.kinds, p.on_one_device))},
       {"peak_flops", fmt::format("{:.1f}", p.machines.flops)},
       {"predicted", predicted.member},
       {"state", state_text(l)},
       {"deterministic", t.deterministic ? "true" : "false"},
       {"lora", t.lora.any() ? fmt::format(" .lora_scale = {},", t.lora.alpha / t.lora.rank) : ""},
       {"trains", l.trains() ? "true" : "false"},
       {"recipe",
        fmt::format(
            ".lr = {}, .weight_decay = {}, .clip = {}, .beta1 = {}, .beta2 = {}, .eps = {},\n              "
            ".warmup_steps = {}, .decay_steps = {}, .min_lr = {}{}",
            t.lr, t.weight_decay, t.clip, adam_number(t, "beta1"), adam_number(t, "beta2"),
            adam_number(t, "eps"), t.warmup_steps, t.decay_steps, t.min_lr, rest_of_recipe(t))},
       {"note", note_text(l)}});
}

std::map<std::string, std::string> emit(const lowered& l, const std::string& target, const gated& passed) {
  std::map<std::string, std::string> files;
  const holes common{
      {"version", version}, {"plan", std::string(l.plan->name)}, {"plan_id", identifier(l.plan->name)}};
  files["kernels.hpp"] = emit_kernels(l, target);
  files["layers.hpp"] = emit_layers(l);
  for (const pipeline_rank& r : l.ranks) {
    files[fmt::format("memory_{}.hpp", r.index)] = emit_memory(l, r);
    files[fmt::format("pipeline_{}.hpp", r.index)] = emit_pipeline(l, r);
    for (const stage_plan& s : r.stages) files[s.name + ".hpp"] = emit_stage(l, r, s);
  }
  files["proven.hpp"] = emit_proven(l, passed.hashes);
  files["plan_text.hpp"] = emit_plan_text(l);
  files["program.cpp"] = emit_program(l, target, passed.logits);
  holes header_holes = common, main_holes = common;
  header_holes.emplace_back("target", target);
  files["program.hpp"] = fill(templates::program_program_hpp, header_holes);
  main_holes.emplace_back("prepare", target == "host" ? "rankc::host::prepare(argv);" : "");
  main_holes.emplace_back("target", target);
  files["main.cpp"] = fill(templates::program_main_cpp, main_holes);
  files["plan.txt"] = describe_text(l);
  files["schedule.csv"] = schedule_csv(*l.plan);
  files["schedule.svg"] = schedule_svg(*l.plan);
  return files;
}

}  // namespace rankc::codegen
