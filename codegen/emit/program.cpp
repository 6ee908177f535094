// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include <rankc/stages/expected.hpp>
#include <rankc/rules/values/batch.hpp>
#include <rankc/templates.hpp>
#include <rankc/ops/table.hpp>
#include <rankc/version.hpp>

#include "attention_engines.hpp"
#include "emit.hpp"
#include "layouts.hpp"
#include "predicted.hpp"
#include "rank_text.hpp"
#include "rank_rules.hpp"
#include "separators.hpp"

namespace rankc::codegen {

namespace {

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
  if (l.plan->recipe.token_weights) out += " .token_weights = true,";
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

std::string emit_program(const lowered& l, const std::string& target) {
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
       {"tables", rank_rules_text(l) + "\n" + predicted.table},
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

/// Whether a file has C++ to be read. The text of describe and the hashes are data.
static bool is_code(std::string_view name) {
  return (name.ends_with(".hpp") || name.ends_with(".cpp")) && name != "plan_text.hpp" &&
         name != "proven.hpp";
}

std::map<std::string, std::string> emit(const lowered& l, const std::string& target, const gated& passed) {
  std::map<std::string, std::string> files;
  const holes common{
      {"version", version}, {"plan", std::string(l.plan->name)}, {"plan_id", identifier(l.plan->name)}};
  files["kernels.hpp"] = emit_kernels(l, target);
  files["layers.hpp"] = emit_layers(l);
  std::vector<std::size_t> events;  // by pipeline coordinate
  for (const pipeline_rank& r : l.ranks) {
    rank_files of_rank = emit_rank(l, r);
    events.push_back(of_rank.events);
    files.merge(of_rank.text);
  }
  files["proven.hpp"] = emit_proven(l, passed.hashes);
  files["plan_text.hpp"] = emit_plan_text(l);
  files.merge(emit_layouts(l, passed.logits, events));
  files["program.cpp"] = emit_program(l, target);
  holes header_holes = common, main_holes = common;
  header_holes.emplace_back("target", target);
  files["program.hpp"] = fill(templates::program_program_hpp, header_holes);
  main_holes.emplace_back("prepare", target == "host" ? "rankc::host::prepare(argv);" : "");
  main_holes.emplace_back("target", target);
  files["main.cpp"] = fill(templates::program_main_cpp, main_holes);
  files["plan.txt"] = describe_text(l);
  files["schedule.csv"] = schedule_csv(*l.plan);
  files["schedule.svg"] = schedule_svg(*l.plan);
  for (auto& [name, text] : files)
    if (is_code(name)) text = with_separators(text);
  return files;
}

}  // namespace rankc::codegen
