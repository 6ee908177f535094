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
#include <rankc/memory/worst_rank.hpp>
#include <rankc/runtime/output_rules.hpp>
#include <rankc/runtime/write_signals.hpp>
#include <rankc/version.hpp>

#include "command_line.hpp"
#include "earlier_output.hpp"
#include "empty_values.hpp"
#include "emit/emit.hpp"
#include "passes/explain.hpp"
#include "read_file.hpp"
#include "write_files.hpp"

namespace rankc::codegen {

namespace {

/// If standard error cannot be written, the exit code still tells the result.
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

/// The type to compute in: the requested one, or else the recipe's. The host computes a bf16 recipe in f32.
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
  gated passed;
};

proven_plan lower_and_prove(const plan_data& plan, dtype type, target to) {
  lowered l = lower(plan, type, to);
  gated passed = check_or_throw(l);
  if (!passed.not_compared.empty())
    print_error("warning: " +
                runtime::say("RC8123: the programs of {} are proven sound and not compared with "
                             "the model: {}",
                             plan.name, passed.not_compared));
  return {std::move(l), std::move(passed)};
}

/// The command line of a generator.
struct options {
  CLI::App app;
  CLI::App *check, *emit, *describe, *timeline, *certificate;
  std::string target_name, out, type, format = "text", measured, pass;
  bool as_json = false;

  explicit options(const plan_data& plan) : app(fmt::format("Generator of the plan {}.", plan.name)) {
    app.require_subcommand(1);
    app.failure_message([](const CLI::App*, const CLI::Error& e) { return usage_error(e); });
    app.set_version_flag("--version", version);
    const std::string judged = "default: cuda where the plan's cluster has GPUs, else host";
    check = with_type(app.add_subcommand("check", "all diagnostics in full"), judged);
    emit = with_type(app.add_subcommand("emit", "write the rank programs"), "default: host");
    emit->add_option("--out", out, "folder to write to");
    emit->add_option("--explain", pass,
                     "print what a pass is given and what it makes of that: lines that are gone are marked "
                     "-, new ones +")
        ->check(CLI::IsMember(pass_names()));
    describe =
        with_type(app.add_subcommand("describe", "dims, groups, stages, bytes and collectives"), judged);
    describe->add_flag("--json", as_json);
    timeline = app.add_subcommand("timeline", "the schedule over time");
    timeline->add_option("--format", format)->check(CLI::IsMember({"text", "csv", "svg", "html", "trace"}));
    timeline->add_option(
        "--measured", measured,
        "a step that the program measured (--trace FILE.json), shown below the plan; for html");
    timeline->add_option("--out", out, "file to write; default: standard output");
    certificate =
        with_type(app.add_subcommand("certificate", "the proof, for `rankc verify`"), "default: host");
    certificate->add_option("--out", out)->required();
  }

  /// The target to lower for. For check and describe it is by default the target of the plan's cluster.
  target lowered_for(const plan_data& plan) const {
    const bool judges = *check || *describe;
    if (target_name.empty() && judges && plan.recipe.precision != f64) return target_of(plan.machines);
    return target_name == "cuda" ? target::cuda : target::host;
  }

 private:
  CLI::App* with_type(CLI::App* command, const std::string& default_target) {
    command->add_option("--target", target_name, "host or cuda; " + default_target)
        ->check(CLI::IsMember({"host", "cuda"}));
    command->add_option("--dtype", type, "f32, f64 or bf16; default: the recipe's")
        ->check(CLI::IsMember({"f32", "f64", "bf16"}));
    return command;
  }
};

/// Errors: failure (2) if `--measured` has no effect or is the output, or if the output is a file of another
/// kind.
void check_files(const options& o) {
  if (!o.measured.empty() && o.format != "html")
    throw runtime::failure(2, "RC7908: --measured {} needs --format html; found --format {}", o.measured,
                           o.format);
  const runtime::named_file to{"--out " + o.out, o.out};
  if (*o.timeline && !o.out.empty()) {
    if (!o.measured.empty()) runtime::refuse_same_file(to, {{"--measured " + o.measured, o.measured}});
    runtime::refuse_other_kind(to, "a timeline", is_timeline);
  }
  if (*o.certificate) runtime::refuse_other_kind(to, "a certificate", is_certificate);
}

void write_program(const proven_plan& p, const options& o, target to) {
  const std::filesystem::path folder(o.out);
  const auto files = emit(p.program, name_of(to), p.passed);
  refuse_other_sources(folder, files);
  make_folder(folder);
  const bool changed = write_files(folder, files);
  // Build systems watch this file only. It gets a new time whenever a file that it includes changes.
  const auto source = folder / "program.cpp";
  if (changed) std::filesystem::last_write_time(source, std::filesystem::file_time_type::clock::now());
}

void write_certificate(const plan_data& plan, const lowered& l, const std::string& out) {
  std::vector<proven> steps;
  if (l.trains()) steps.push_back(prove_step(expand_train(l)));
  steps.push_back(prove_step(expand_evaluate(l)));
  runtime::write_output(out, certificate(steps, specify(plan)), 1);
}

void write_timeline(const plan_data& plan, const options& o) {
  const std::string text = timeline_text(plan, o.format, o.measured);
  if (o.out.empty()) fmt::print("{}", text);
  else runtime::write_output(o.out, text, 1);
}

/// Errors: any exception, with its sentence.
void run(const plan_data& plan, const options& o) {
  if (*o.timeline) return write_timeline(plan, o);
  const target to = o.lowered_for(plan);
  const dtype type = type_for(plan, o.type, to);
  const proven_plan p = lower_and_prove(plan, type, to);
  if (*o.check) return fmt::print("{} for {}: no rule is broken\n", plan.name, name_of(to));
  if (*o.describe && o.as_json) return fmt::print("{}\n", describe_json(p.program));
  if (*o.describe) return fmt::print("{}", describe_text(p.program));
  if (*o.certificate) return write_certificate(plan, p.program, o.out);
  if (!o.pass.empty()) fmt::print("{}", explain(plan, type, to, o.pass));
  else if (o.out.empty())
    throw runtime::failure(
        1, "RC7909: emit needs --out DIR, or --explain PASS to print the data before and after a pass");
  if (!o.out.empty()) write_program(p, o, to);
}

}  // namespace

int generator_main(const plan_data& plan, int argc, char** argv) {
  runtime::fail_writes_without_signals();
  options o(plan);
  try {
    o.app.parse(argc, argv);
    refuse_empty_values(o.app);
  } catch (const CLI::ParseError& e) {
    return o.app.exit(e) == 0 ? 0 : 2;
  }
  try {
    check_files(o);
    print_diagnostics(plan);
    if (!accepts(plan.diagnostics)) return 1;
    run(plan, o);
  } catch (const std::exception& e) {
    print_error("error: " + sentence_of(e));
    return exit_code_of(e);
  }
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return 0;
  print_error("error: " + output_error());
  return 1;
}

}  // namespace rankc::codegen
