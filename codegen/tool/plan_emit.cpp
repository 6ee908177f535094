// SPDX-License-Identifier: Apache-2.0
#include <command_line.hpp>
#include <rankc/runtime/output_rules.hpp>

#include <ostream>
#include <string_view>

#include "plan_page.hpp"
#include "plan_progress.hpp"

namespace rankc::tool {

namespace {

std::string text_of(const parallel_dims& d) {
  std::string out = fmt::format("parallel_dims{{.world = {}", d.world);
  for (const named_degree& a : all_degrees)
    if (d.*a.degree != 1 && a.degree != &parallel_dims::ulysses)
      out += fmt::format(", .{} = {}", a.name, d.*a.degree);
  if (d.ulysses != 1) out += fmt::format(", .ulysses = {}", d.ulysses);
  if (d.sequence_parallel) out += ", .sequence_parallel = true";
  if (d.reshard == reshard::after_step) out += ", .reshard = reshard::after_step";
  return out + "}";
}

std::string recipe_text(const training& t, const recomputation& r) {
  std::string out =
      fmt::format("training{{.seq = {}, .global_batch = {}, .precision = bf16", t.seq, t.global_batch);
  if (r.full) out += ", .recompute = {.full = true}";
  else if (r.any()) out += ", .recompute = {.activations = true, .norms = true}";
  return out + "}";
}

std::string cluster_text(const plan_request& r) {
  const cluster& c = r.of.machines;
  if (!r.cluster.empty()) return fmt::format("clusters::{}<{}>", r.cluster, c.nodes);
  return fmt::format("cluster{{{}, {}, {}, {:.4g}, {:.4g}, {:.4g}, \"{}\"}}", c.nodes, c.ranks_per_node,
                     c.memory, c.flops, c.within_node, c.between_nodes, c.gpu);
}

constexpr std::string_view predicted_line = "\n// Predicted: ";

std::string header_of(const plan_request& r, const judged_plan& best) {
  const plan_choice& c = best.choice;
  const std::string stages =
      c.schedule.has_free_stages() ? fmt::format(", .stages_per_rank = {}", c.schedule.stages_per_rank) : "";
  std::string text =
      fmt::format("// {} on {} GPUs {}: {}.{}{:.1f} ms a step, {:.1f} GB on the rank that needs most.\n",
                  r.model.empty() ? "A model" : r.model, r.of.gpus, r.of.gpu->name, tool::text_of(c),
                  predicted_line, 1e3 * best.time.step, static_cast<double>(best.bytes) / 1e9);
  text += fmt::format(
      "#pragma once\n#include <rankc/peak_bytes.hpp>\n#include <rankc/rankc.hpp>\n#include "
      "<rankc/models/{}.hpp>\n#include <rankc/schedules/{}.hpp>\n\nnamespace plans {{\nusing namespace "
      "rankc;\n\n",
      family_of(r.of.model).name, c.schedule.name);
  text += fmt::format(
      "inline constexpr auto best = plan{{.model = {},\n                                  .dims = {},\n",
      tool::text_of(r.of.model), text_of(c.dims));
  text += fmt::format(
      "                                  .schedule = schedules::{}{{.microbatches = {}{}}},\n                "
      "                  .recipe = {},\n",
      c.schedule.name, c.microbatches, stages, recipe_text(r.of.recipe, c.recompute));
  return text + fmt::format(
                    "                                  .cluster = {}}};\nstatic_assert(valid<best>);\n"
                    "static_assert(fits<best>);\n\n}}  // namespace plans\n",
                    cluster_text(r));
}

/// Errors: failure (2) if a name is that of an existing file of another kind, or both names are the same.
void refuse_other_files(const plan_files& files) {
  using namespace runtime;
  const named_file header{"--emit " + files.header, files.header}, page{"--html " + files.page, files.page};
  if (!files.header.empty())
    refuse_other_kind(header, "a header of --emit",
                      [](std::string_view text) { return text.find(predicted_line) != text.npos; });
  if (files.page.empty()) return;
  refuse_other_kind(page, "a page of --html", is_plans_page);
  if (!files.header.empty()) refuse_same_file(page, {header});
}

}  // namespace

int write_plans(const json& line, const plan_files& files, std::ostream& errors, bool on_terminal) try {
  refuse_other_files(files);
  report said;
  const plan_request r = read_plan_request(line, said);
  print(said, errors);
  if (!accepts(said)) return 1;
  progress_line progress(errors, on_terminal);
  plan_findings f;
  if (files.page.empty()) f.found = rank_plans(r.of, {}, progress.hears());
  else f = find_plans(r, true, progress.hears());
  if (f.found.top.empty()) f.why = why_none(r.of, count_choices(r.of));
  progress.clear();
  if (f.found.top.empty()) {
    errors << "error: " << runtime::say("RC8060: no plan is written: {}", f.why) << "\n";
    return 1;
  }
  if (!files.header.empty()) runtime::write_output(files.header, header_of(r, f.found.top.front()), 1);
  if (!files.page.empty()) runtime::write_output(files.page, page_of(r, f), 1);
  return 0;
} catch (const std::exception& e) {
  errors << "error: " << codegen::sentence_of(e) << "\n";
  return codegen::exit_code_of(e);
}

}  // namespace rankc::tool
