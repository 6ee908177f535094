// SPDX-License-Identifier: Apache-2.0
#include <rankc/codegen/generator.hpp>

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <rankc/codegen/certificate.hpp>
#include <rankc/codegen/gate.hpp>
#include <rankc/codegen/prove.hpp>
#include <rankc/runtime/output_rules.hpp>
#include <rankc/runtime/write_signals.hpp>
#include <rankc/version.hpp>

#include "command_line.hpp"
#include "earlier_output.hpp"
#include "emit/emit.hpp"
#include "passes/explain.hpp"
#include "read_file.hpp"
#include "write_files.hpp"

namespace rankc::codegen {

namespace {

/// Where standard error cannot be written, the exit code still says what came of it.
void print_error(const std::string& line) { std::fputs((line + "\n").c_str(), stderr); }

void print_diagnostics(const plan_data& plan) {
  for (const diagnostic& d : plan.diagnostics)
    print_error(fmt::format("{}[RC{}]: {}", d.warning ? "warning" : "error", d.id, d.text.view()));
}

std::string timeline_text(const plan_data& plan, const std::string& format, const std::string& measured) {
  if (format == "csv") return schedule_csv(plan);
  if (format == "svg") return schedule_svg(plan);
  if (format == "trace") return schedule_trace(plan);
  if (format == "text") return schedule_text(plan);
  if (measured.empty()) return schedule_html(plan, "");
  const std::string trace = read_file(measured);
  try {
    return schedule_html(plan, trace);
  } catch (const runtime::failure& e) {
    throw runtime::failure(1, "RC7905: --measured {} is not a step of this plan: {}", measured, e.what());
  }
}

precision precision_for(const plan_data& plan, const std::string& wanted) {
  if (wanted == "f64") return f64;
  if (wanted == "f32") return f32;
  return wanted == "bf16" ? bf16 : plan.recipe.precision;
}

/// The type to compute in: the one that is asked for, else the recipe's. The host computes a bf16 recipe in
/// f32.
dtype type_for(const plan_data& plan, const std::string& wanted, target to) {
  const precision asked = precision_for(plan, wanted);
  if (to == target::cuda && asked == f64)
    throw runtime::failure(
        1, "RC7906: the cuda target does not compute in f64; pass --dtype bf16 or f32, or --target host");
  if (to == target::host && wanted == "bf16")
    throw runtime::failure(
        1, "RC7907: the host target does not compute in bf16; pass --dtype f32 or f64, or --target cuda");
  if (asked == f64) return dtype::f64;
  return asked == bf16 && to == target::cuda ? dtype::bf16 : dtype::f32;
}

proven prove_step(program p) {
  verdict v = prove(p);
  return {std::move(p), std::move(v)};
}

struct proven_plan {
  lowered program;
  std::vector<step_hash> hashes;
};

proven_plan lower_and_prove(const plan_data& plan, dtype type, target to) {
  lowered l = lower(plan, type, to);
  gated passed = check_or_throw(l);
  if (!passed.not_compared.empty())
    print_error("warning: " +
                runtime::say("RC8123: the programs of {} are proven sound and not compared with "
                             "the model: {}",
                             plan.name, passed.not_compared));
  return {std::move(l), std::move(passed.hashes)};
}

/// Errors: failure (2) where `out` is the measured step, or a file of something else.
void refuse_other_files(const CLI::App& time, const CLI::App& proof, const std::string& out,
                        const std::string& measured) {
  const runtime::named_file to{"--out " + out, out};
  if (time && !out.empty()) {
    if (!measured.empty()) runtime::refuse_same_file(to, {{"--measured " + measured, measured}});
    runtime::refuse_other_kind(to, "a timeline", is_timeline);
  }
  if (proof) runtime::refuse_other_kind(to, "a certificate", is_certificate);
}

}  // namespace

int generator_main(const plan_data& plan, int argc, char** argv) {
  runtime::fail_writes_without_signals();
  CLI::App app{fmt::format("Generator of the plan {}.", plan.name)};
  app.require_subcommand(1);
  app.failure_message([](const CLI::App*, const CLI::Error& e) { return usage_error(e); });
  app.set_version_flag("--version", version);
  std::string target_name = "host", out, type, format = "text", measured, pass;
  bool as_json = false;
  auto with_type = [&](CLI::App* c) {
    c->add_option("--target", target_name, "host or cuda")->check(CLI::IsMember({"host", "cuda"}));
    c->add_option("--dtype", type, "f32, f64 or bf16; default: the recipe's")
        ->check(CLI::IsMember({"f32", "f64", "bf16"}));
    return c;
  };
  CLI::App* check = app.add_subcommand("check", "all diagnostics in full");
  CLI::App* emitting = with_type(app.add_subcommand("emit", "write the rank programs"));
  emitting->add_option("--out", out, "folder to write to");
  emitting
      ->add_option("--explain", pass,
                   "print what a pass is given and what it makes of that: lines that are gone are marked -, "
                   "new ones +")
      ->check(CLI::IsMember(pass_names()));
  CLI::App* describe =
      with_type(app.add_subcommand("describe", "dims, groups, stages, bytes and collectives"));
  describe->add_flag("--json", as_json);
  CLI::App* time = app.add_subcommand("timeline", "the schedule over time");
  time->add_option("--format", format)->check(CLI::IsMember({"text", "csv", "svg", "html", "trace"}));
  time->add_option("--measured", measured,
                   "a step that the program measured (--trace FILE.json), shown below the plan; for html");
  time->add_option("--out", out, "file to write; default: standard output");
  CLI::App* proof = with_type(app.add_subcommand("certificate", "the proof, for `rankc verify`"));
  proof->add_option("--out", out)->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    return app.exit(e) == 0 ? 0 : 2;
  }
  if (!measured.empty() && format != "html") {
    print_error("error: " + runtime::say("RC7908: --measured {} needs --format html; found --format {}",
                                         measured, format));
    return 2;
  }

  try {
    refuse_other_files(*time, *proof, out, measured);
  } catch (const runtime::failure& f) {
    print_error(fmt::format("error: {}", f.what()));
    return f.code;
  }

  const target to = target_name == "cuda" ? target::cuda : target::host;
  print_diagnostics(plan);
  if (!accepts(plan.diagnostics)) return 1;
  try {
    if (*check) {
      lower_and_prove(plan, type_for(plan, "f32", to), to);
      fmt::print("{}: no rule is broken\n", plan.name);
    } else if (*emitting) {
      const dtype as = type_for(plan, type, to);
      const auto [l, hashes] = lower_and_prove(plan, as, to);
      if (!pass.empty()) fmt::print("{}", explain(plan, as, to, pass));
      else if (out.empty()) throw runtime::failure(1, "RC7909: emit needs --out DIR or --explain PASS");
      if (!out.empty()) {
        const std::filesystem::path folder(out);
        const auto files = emit(l, target_name, hashes);
        refuse_other_sources(folder, files);
        make_folder(folder);
        const bool changed = write_files(folder, files);
        // A build system knows this file alone: it is new whenever what it includes is.
        const auto source = folder / "program.cpp";
        if (changed) std::filesystem::last_write_time(source, std::filesystem::file_time_type::clock::now());
      }
    } else if (*describe) {
      const lowered l = lower_and_prove(plan, type_for(plan, type, to), to).program;
      fmt::print("{}{}", as_json ? describe_json(l) : describe_text(l), as_json ? "\n" : "");
    } else if (*time) {
      const std::string text = timeline_text(plan, format, measured);
      if (out.empty()) fmt::print("{}", text);
      else runtime::write_output(out, text, 1);
    } else if (*proof) {
      const lowered l = lower_and_prove(plan, type_for(plan, type, to), to).program;
      std::vector<proven> steps;
      if (l.trains()) steps.push_back(prove_step(expand_train(l)));
      steps.push_back(prove_step(expand_evaluate(l)));
      runtime::write_output(out, certificate(steps, specify(plan)), 1);
    }
  } catch (const std::exception& e) {
    print_error("error: " + sentence_of(e));
    return exit_code_of(e);
  }
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return 0;
  print_error("error: " + output_error());
  return 1;
}

}  // namespace rankc::codegen
