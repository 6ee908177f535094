// SPDX-License-Identifier: Apache-2.0
// Every option and argument of a program, of its generator and of rankc, with extreme values. Each run ends
// within seconds, with a code from the table of exit codes, and a refusal is one sentence that names the
// option or its value. The options are read from --help.
#include "bounded_run.hpp"
#include "options_of_help.hpp"

#include "../runtime/trainer/scratch.hpp"
#include "../slowness.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>

namespace {

using namespace rankc::test;
using rankc::runtime::scratch;
using words = std::vector<std::string>;

const std::string program = RANKC_EXTREMES_PROGRAM, generator = RANKC_EXTREMES_GENERATOR,
                  tool = RANKC_EXTREMES_TOOL;

/// A command of an executable, and the arguments that it needs in addition to the tested option.
struct command {
  std::string file, name;
  words beside;       // options of every run, unless they are tested: name, value, name, value
  words arguments{};  // positional
};

/// The input files of the commands.
struct prepared {
  scratch files;
  std::string checkpoint = files.path("checkpoint"), certificate = files.path("certificate.json"),
              text = files.write("text.txt", std::string(2000, 'x')), folder = files.path("folder"),
              fifo = files.path("fifo"), times = files.write("times.jsonl", "{}\n");
  prepared() {
    REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
    std::filesystem::create_directory(folder);
    REQUIRE(run({program, "train", "--steps", "1", "--save", checkpoint}).code == 0);
    REQUIRE(run({generator, "certificate", "--out", certificate}).code == 0);
  }
  /// Run in a temporary folder.
  bounded_run run(const words& all, double told_after = 1e9) const {
    const scratch here;
    return run_bounded(all, here.path(), scaled(told_after), scaled(60));
  }
};

std::vector<command> commands_of(const prepared& p) {
  return {
      {program, "train", {"--steps", "1", "--eval-batches", "1"}},
      {program, "eval", {"--steps", "1"}},
      {program, "generate", {"--load", p.checkpoint, "--tokens", "3"}},
      {program, "describe", {"--measured", ""}},
      {program, "export", {"--load", p.checkpoint, "--out", "exported"}},
      {generator, "check", {}},
      {generator, "emit", {"--out", "emitted"}},
      {generator, "describe", {}},
      {generator, "timeline", {"--format", "html"}},
      {generator, "certificate", {"--out", "other.json"}},
      {tool, "dims", {"--world", "8", "--dp-replicate", "infer", "--global-batch", "8", "--microbatch", "1"}},
      {tool, "schedule", {}},
      {tool,
       "search",
       {"--model", "llama3-8b", "--cluster", "h200", "--gpus", "8", "--seq", "1024", "--global-batch", "8"}},
      {tool, "calibrate", {}, {p.times}},
      {tool, "init", {}, {"starter"}},
      {tool, "verify", {}, {p.certificate}},
      {tool, "explain", {}, {"RC201"}},
      {tool, "tokens", {"--out", "tokens.bin"}, {p.text}}};
}

words values(const prepared& p) {
  return {"",      "0",         "-1",        "2147483648",   "9223372036854775808",
          "1e400", "nan",       "\xff\xfe",  "/proc/none/x", p.folder,
          p.fifo,  "/dev/full", "/dev/null", p.text,         std::string(100'000, 'x')};
}

/// The beginning of a value as errors print it.
std::string shown(const std::string& value) {
  return value == "\xff\xfe" ? "\\xff\\xfe" : value.substr(0, 20);
}

/// The lines of standard error that are neither notes nor a list of options.
words errors_of(const std::string& err) {
  words all;
  std::istringstream in(err);
  static const std::regex sentence("(error: |[a-z0-9_-]+: )?RC[0-9]{4}: .*|error\\[RC[0-9]{3,4}\\]: .*");
  for (std::string line; std::getline(in, line);)
    if (std::regex_match(line.substr(0, 200), sentence)) all.push_back(line);
  return all;
}

/// Whether a sentence contains an option, as given or as a JSON field, or its value.
bool names(const std::string& line, const std::string& option, const std::string& value) {
  std::string field = option.substr(option.find_first_not_of('-'));
  std::ranges::replace(field, '-', '_');
  const auto has = [&](const std::string& part) { return line.find(part) != std::string::npos; };
  return has(option) || has(field) || (!value.empty() && has(shown(value)));
}

/// The faults of a run; empty if there are none.
std::string complaint(const command& c, const std::string& option, const std::string& value,
                      const bounded_run& r) {
  static const std::regex library(
      "terminate called|what\\(\\)|std::|basic_|json\\.exception|stoi|bad_alloc|Assertion|filesystem error");
  std::set<int> codes{0, 1, 2, 65};
  if (c.name == "verify") codes.insert(3);
  if (r.was_told) codes = {128 + 15};
  std::string wrong;
  if (r.hung) wrong += " it did not end;";
  if (!codes.contains(r.code)) wrong += " code " + std::to_string(r.code) + ";";
  if (r.err.find('\xff') != std::string::npos) wrong += " bytes that are no text;";
  if (r.err.size() > 8000) wrong += " " + std::to_string(r.err.size()) + " bytes of text;";
  if (std::regex_search(r.err.substr(0, 4000), library)) wrong += " a library's text;";
  if (r.code == 0 || r.was_told) return wrong;
  const words errors = errors_of(r.err);
  const bool are_diagnostics = !errors.empty() && errors[0].starts_with("error[");
  if (errors.empty() || (errors.size() > 1 && !are_diagnostics))
    return wrong + " " + std::to_string(errors.size()) + " sentences;";
  if (std::ranges::none_of(errors, [&](const std::string& line) { return names(line, option, value); }))
    wrong += " no sentence names the option or the value;";
  return wrong;
}

/// The arguments of a run with a value for an option or a positional argument.
words arguments_of(const command& c, const std::string& option, const std::string& value) {
  words all{c.file, c.name};
  for (std::size_t i = 0; i < c.beside.size(); i += 2)
    if (c.beside[i] != option) {
      all.push_back(c.beside[i]);
      if (!c.beside[i + 1].empty()) all.push_back(c.beside[i + 1]);
    }
  if (option.starts_with("--")) {
    all.insert(all.end(), {option, value});
    all.insert(all.end(), c.arguments.begin(), c.arguments.end());
  } else {
    all.insert(all.end(), {"--", value});
  }
  return all;
}

/// Valid values that make a run take years.
bool is_endless(const std::string& option, const std::string& value) {
  return value == "2147483648" && (option == "--steps" || option == "--tokens");
}

}  // namespace

TEST_CASE("extremes: each option with each value ends in time, with a code of the table and one sentence") {
  const prepared p;
  const char* set = std::getenv("RANKC_TEST_EVERY");
  const char* only = std::getenv("RANKC_EXTREMES_OF");
  const std::size_t every = set != nullptr ? std::strtoul(set, nullptr, 10) : 1;
  const words all_values = values(p);
  std::size_t next = 0, wrong = 0, options = 0;
  std::map<int, int> codes;
  for (const command& c : commands_of(p)) {
    if (only != nullptr && c.file.substr(c.file.rfind('/') + 1) + " " + c.name != only) continue;
    const listed all = read_help(p.run({c.file, c.name, "--help"}).out);
    words tested = all.options;
    tested.insert(tested.end(), all.positionals.begin(), all.positionals.end());
    options += tested.size();
    for (const std::string& option : tested)
      for (const std::string& value : all_values) {
        if (next++ % every != 0) continue;
        const bounded_run r = p.run(arguments_of(c, option, value), is_endless(option, value) ? 0.5 : 1e9);
        ++codes[r.code];
        const std::string bad = complaint(c, option, value, r);
        wrong += !bad.empty();
        if (!bad.empty())
          std::printf("%s %s %s '%s':%s\n    %s\n", c.file.substr(c.file.rfind('/') + 1).c_str(),
                      c.name.c_str(), option.c_str(), shown(value).c_str(), bad.c_str(),
                      r.err.substr(0, 250).c_str());
      }
  }
  std::size_t runs = 0;
  for (const auto& [code, count] : codes) {
    std::printf("code %3d: %d runs\n", code, count);
    runs += static_cast<std::size_t>(count);
  }
  std::printf("%zu runs of %zu options\n", runs, options);
  CHECK(wrong == 0);
}
