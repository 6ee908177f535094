// SPDX-License-Identifier: Apache-2.0
// The generator's commands as a build calls them: exit codes, messages and files.
#include <doctest/doctest.h>

#include <rankc/codegen/generator.hpp>
#include <rankc/codegen/verify.hpp>

#include <passes/explain.hpp>

#include <sys/resource.h>
#include <sys/stat.h>
#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "../capture.hpp"
#include "../runtime/trainer/scratch.hpp"
#include "../said.hpp"
#include "plans.hpp"

namespace commands_test {

namespace {

namespace fs = std::filesystem;
using rankc::runtime::contents;
using rankc::runtime::scratch;
using rankc::test::said;
using rankc::test::said_in;

struct outcome {
  int code;
  std::string out, err;
};

outcome run(const rankc::plan_data& plan, std::vector<std::string> words) {
  words.insert(words.begin(), "generator");
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  outcome result{};
  testing::capture out(stdout), err(stderr);
  result.code = rankc::codegen::generator_main(plan, static_cast<int>(argv.size()), argv.data());
  result.err = err.end();
  result.out = out.end();
  return result;
}

std::vector<std::string> files_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

rankc::plan_data small_plan() {
  return programs::make({"tiny_gpt2", "files", programs::order::one_f_one_b, 1, 1, 2, 2});
}

const std::vector<std::string> program_files{
    "calls.hpp",    "kernels.hpp",    "layers.hpp",     "layouts.hpp",  "main.cpp",      "memory_0.hpp",
    "memory_1.hpp", "pipeline_0.hpp", "pipeline_1.hpp", "plan.txt",     "plan_text.hpp", "program.cpp",
    "program.hpp",  "proven.hpp",     "schedule.csv",   "schedule.svg", "stage_0.hpp",   "stage_1.hpp"};

/// Every command that lowers the plan.
std::vector<std::vector<std::string>> commands(const scratch& files) {
  return {{"check"},
          {"emit", "--out", files.path("out/program")},
          {"emit", "--explain", "schedule_items"},
          {"describe"},
          {"certificate", "--out", files.path("out/proof.json")}};
}

}  // namespace

TEST_CASE("a plan that is sound is checked, written, described and certified") {
  const rankc::plan_data plan = small_plan();
  const scratch files;
  fs::create_directory(files.path("out"));
  for (const auto& words : commands(files)) {
    CAPTURE(words[0]);
    const outcome done = run(plan, words);
    CHECK(done.code == 0);
    CHECK(done.err == "");
    CHECK((done.out == "") == (words[1 % words.size()] == "--out"));
  }
  CHECK(run(plan, {"check"}).out == std::string(plan.name) + " for host: no rule is broken\n");
  rankc::plan_data of_gpus = plan;
  of_gpus.machines = rankc::clusters::h200<1>;
  of_gpus.recipe.precision = rankc::f32;
  CHECK(run(of_gpus, {"check"}).out == std::string(plan.name) + " for cuda: no rule is broken\n");
  CHECK(run(of_gpus, {"check", "--target", "host"}).out ==
        std::string(plan.name) + " for host: no rule is broken\n");
  const std::string described = run(of_gpus, {"describe"}).out;
  CHECK(described.substr(0, described.find('\n')).ends_with(", f32 for cuda"));
  CHECK(files_in(files.path("out")) == std::vector<std::string>{"program", "proof.json"});
  CHECK(files_in(files.path("out/program")) == program_files);
  CHECK(rankc::codegen::verify(contents(files.path("out/proof.json"))) == "");
}

TEST_CASE("what is not compared with the model is said of every program that is lowered") {
  rankc::plan_data plan = small_plan();
  rankc::op& first = plan.on_one_device[1].ops[0];
  rankc::op_row own = *first.kind;
  own.name = "an_op_of_the_users";
  own.header = "users.hpp";
  own.dual = nullptr;
  first.kind = &own;
  const scratch files;
  fs::create_directory(files.path("out"));
  for (const auto& words : commands(files)) {
    CAPTURE(words[0]);
    const outcome done = run(plan, words);
    CHECK(done.code == 0);
    CHECK(done.err.starts_with("warning: RC8123: "));
    CHECK(std::count(done.err.begin(), done.err.end(), '\n') == 1);
    CHECK(rankc::test::said_in(done.err).arguments.at(0) == plan.name);
    CHECK(rankc::test::said_in(done.err, 7745).arguments ==
          std::vector<std::string>{"an_op_of_the_users", "it has no dual"});
  }
}

TEST_CASE("each pass that the help names can be explained") {
  const rankc::plan_data plan = small_plan();
  const std::string help = run(plan, {"emit", "--help"}).out;
  const std::size_t begin = help.find('{', help.find("--explain")), end = help.find('}', begin);
  REQUIRE(end != std::string::npos);
  std::istringstream listed(help.substr(begin + 1, end - begin - 1));
  std::vector<std::string> passes;
  for (std::string pass; std::getline(listed, pass, ',');) {
    CAPTURE(pass);
    const outcome done = run(plan, {"emit", "--explain", pass});
    CHECK(done.code == 0);
    CHECK(done.out.find(", " + pass) != std::string::npos);
    passes.push_back(pass);
  }
  CHECK(passes == rankc::codegen::pass_names());
}

TEST_CASE("an illegal plan: its rules, exit code 1, nothing written") {
  const rankc::plan_data illegal =
      programs::make({"tiny_gpt2", "illegal", programs::order::one_f_one_b, 1, 3, 2, 2});
  rankc::plan_data plan = small_plan();  // this plan itself could be lowered
  plan.diagnostics = illegal.diagnostics;
  REQUIRE_FALSE(rankc::accepts(plan.diagnostics));
  const scratch files;
  auto all = commands(files);
  all.insert(all.end(), {{"timeline"}, {"timeline", "--out", files.path("timeline.txt")}});
  for (const auto& words : all) {
    CAPTURE(words[0]);
    const outcome refused = run(plan, words);
    CHECK(refused.code == 1);
    CHECK(refused.err.starts_with("error[RC2"));
    for (std::size_t at = 0; at < refused.err.size(); at = refused.err.find('\n', at) + 1)
      CHECK(refused.err.substr(at).starts_with("error[RC2"));  // nothing but the rules is printed
    CHECK(refused.out == "");
    CHECK(files_in(files.path()).empty());
  }
}

TEST_CASE("a program too large for its devices: exit code 1, nothing written") {
  rankc::plan_data plan = small_plan();
  plan.machines.memory = 1000;
  const scratch files;
  for (const auto& words : commands(files)) {
    CAPTURE(words[0]);
    const outcome refused = run(plan, words);
    CHECK(refused.code == 1);
    CHECK(refused.err.starts_with("error: RC401: the ranks of pipeline coordinate 0 need "));
    CHECK(refused.out == "");
    CHECK_FALSE(fs::exists(files.path("out")));
  }
}

namespace {

/// While it lives, files cannot grow beyond a limit, as under a quota or on a full disk.
class file_limit {
 public:
  explicit file_limit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~file_limit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int);
};

/// The single line on standard error.
said error_in(const outcome& o) {
  CHECK(o.err.starts_with("error: RC"));
  CHECK(std::count(o.err.begin(), o.err.end(), '\n') == 1);
  return said_in(o.err);
}

const std::string other_text = "a text of someone's\n";

/// Every command that writes one file.
const std::pair<std::vector<std::string>, const char*> one_file[]{
    {{"timeline"}, "a timeline"},
    {{"timeline", "--format", "csv"}, "a timeline"},
    {{"timeline", "--format", "svg"}, "a timeline"},
    {{"timeline", "--format", "html"}, "a timeline"},
    {{"timeline", "--format", "trace"}, "a timeline"},
    {{"certificate"}, "a certificate"}};

std::vector<std::string> with_out(std::vector<std::string> words, const std::string& out) {
  words.insert(words.end(), {"--out", out});
  return words;
}

}  // namespace

TEST_CASE("a file of something else is refused, and a file of the same command is replaced") {
  const rankc::plan_data plan = small_plan();
  for (const auto& [words, kind] : one_file) {
    CAPTURE(words.back());
    const scratch files;
    const std::string text = files.write("t", other_text), out = files.path("out");
    const outcome refused = run(plan, with_out(words, text));
    CHECK(refused.code == 2);
    CHECK(error_in(refused) == said{5021, {"--out " + text, kind}});
    CHECK(contents(text) == other_text);
    REQUIRE(run(plan, with_out(words, out)).code == 0);
    const std::string whole = contents(out), longer = whole + " ";
    files.write("out", longer);
    CHECK(run(plan, with_out(words, out)).code == 0);
    CHECK(contents(out) == whole);
    for (const bool hard : {false, true}) {
      files.write("out", longer);
      const std::string link = files.path(hard ? "hard" : "soft");
      if (hard) fs::create_hard_link(out, link);
      else fs::create_symlink(out, link);
      CHECK(run(plan, with_out(words, link)).code == 0);
      CHECK(contents(link) == whole);
      CHECK(contents(out) == longer);
    }
    // Standard error is captured in a file, which the limit would cut, too.
    if (whole.size() <= 120) continue;
    const file_limit full(120);
    const outcome failed = run(plan, with_out(words, out));
    CHECK(failed.code == 1);
    CHECK(error_in(failed) == said{5005, {out, "File too large"}});
    CHECK(contents(out) == longer);
    CHECK(files_in(files.path()) == std::vector<std::string>{"hard", "out", "soft", "t"});
  }
}

TEST_CASE("a timeline is not written over the step that it shows") {
  const rankc::plan_data plan = small_plan();
  const scratch files;
  const std::string trace = files.path("step.json");
  REQUIRE(run(plan, {"timeline", "--format", "trace", "--out", trace}).code == 0);
  const std::string before = contents(trace);
  fs::create_symlink(trace, files.path("link"));
  for (const std::string& out : {trace, files.path("link")}) {
    const outcome refused = run(plan, {"timeline", "--format", "html", "--measured", trace, "--out", out});
    CHECK(refused.code == 2);
    CHECK(error_in(refused) == said{5020, {"--out " + out, "--measured " + trace}});
    CHECK(contents(trace) == before);
  }
}

TEST_CASE("sources of someone else are refused, and links among those of emit are replaced") {
  const rankc::plan_data plan = small_plan();
  const scratch files;
  const std::string folder = files.path("out");
  for (const char* name : {"main.cpp", "plan.txt"}) {
    files.write("out/" + std::string(name), other_text);
    const outcome refused = run(plan, {"emit", "--out", folder});
    CHECK(refused.code == 2);
    CHECK(error_in(refused) == said{5021, {"--out " + folder + "/" + name, "one of emit"}});
    CHECK(files_in(folder) == std::vector<std::string>{name});
    CHECK(contents(folder + "/" + name) == other_text);
    fs::remove(folder + "/" + name);
  }
  REQUIRE(run(plan, {"emit", "--out", folder}).code == 0);
  const std::string main = folder + "/main.cpp", whole = contents(main);
  fs::rename(main, files.path("kept"));
  fs::create_symlink("../kept", main);
  fs::create_directory(folder + "/.rankc.unfinished");  // left behind by an emit that was killed
  CHECK(run(plan, {"emit", "--out", folder}).code == 0);
  CHECK_FALSE(fs::is_symlink(main));
  CHECK(contents(main) == whole);
  CHECK(files_in(folder) == program_files);
}

TEST_CASE("a write that fails is exit code 1 and leaves the files that were there") {
  const rankc::plan_data plan = small_plan();
  const scratch files;
  const std::string folder = files.path("out");
  REQUIRE(run(plan, {"emit", "--out", folder}).code == 0);
  const std::string first = contents(folder + "/program.hpp"), longest = contents(folder + "/kernels.hpp");
  const std::string changed = first.substr(0, first.find('\n') + 1);
  for (const std::string& name : program_files) fs::remove(folder + "/" + name);
  files.write("out/main.cpp", changed);
  files.write("out/program.cpp", changed);
  {
    const file_limit full(longest.size() - 1);
    const outcome failed = run(plan, {"emit", "--out", folder});
    CHECK(failed.code == 1);
    CHECK(error_in(failed) == said{5005, {folder + "/kernels.hpp", "File too large"}});
  }
  CHECK(files_in(folder) == std::vector<std::string>{"main.cpp", "program.cpp"});
  CHECK(contents(folder + "/main.cpp") == changed);
  CHECK(contents(folder + "/program.cpp") == changed);

  const std::string blocked = files.write("file", "") + "/out";
  for (const char* command : {"emit", "certificate", "timeline"}) {
    CAPTURE(command);
    const outcome refused = run(plan, {command, "--out", blocked});
    CHECK(refused.code == 1);
    CHECK(error_in(refused) ==
          said{command == std::string("emit") ? 7911 : 5005, {blocked, "Not a directory"}});
  }
  CHECK(error_in(run(plan, {"certificate", "--out", "/dev/full"})) ==
        said{5005, {"/dev/full", "No space left on device"}});
  CHECK(run(plan, {"timeline", "--out", files.path("none/t.txt")}).code == 1);
}

TEST_CASE("files that stay the same are not written again, and program.cpp is new whenever one changes") {
  const rankc::plan_data plan = small_plan();
  const scratch files;
  const std::string folder = files.path("out");
  REQUIRE(run(plan, {"emit", "--out", folder}).code == 0);
  const auto long_ago = fs::file_time_type::clock::now() - std::chrono::hours(1);
  const auto make_old = [&] {
    for (const std::string& name : program_files) fs::last_write_time(folder + "/" + name, long_ago);
  };
  const auto written = [&] {
    std::vector<std::string> names;
    for (const std::string& name : program_files)
      if (fs::last_write_time(folder + "/" + name) > long_ago + std::chrono::minutes(1))
        names.push_back(name);
    return names;
  };
  make_old();
  REQUIRE(run(plan, {"emit", "--out", folder}).code == 0);
  CHECK(written().empty());
  const std::string changed = contents(folder + "/stage_1.hpp") + "// changed\n";
  files.write("out/stage_1.hpp", changed);
  make_old();
  REQUIRE(run(plan, {"emit", "--out", folder}).code == 0);
  CHECK(written() == std::vector<std::string>{"program.cpp", "stage_1.hpp"});
  CHECK(contents(folder + "/stage_1.hpp") != changed);
  const std::string fifo = folder + "/stage_1.hpp";  // no process writes to it
  fs::remove(fifo);
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  REQUIRE(run(plan, {"emit", "--out", folder}).code == 0);
  CHECK(fs::is_regular_file(fifo));
}

TEST_CASE("usage errors are exit code 2, and what a target does not have is refused") {
  const rankc::plan_data plan = small_plan();
  const std::vector<std::vector<std::string>> wrong{{},
                                                    {"fly"},
                                                    {"emit", "--target", "tpu"},
                                                    {"emit", "--dtype", "f16"},
                                                    {"emit", "--explain", "nothing"},
                                                    {"certificate"},
                                                    {"timeline", "--format", "png"},
                                                    {"timeline", "--measured", "t.json"},
                                                    {"describe", "extra"}};
  for (const auto& words : wrong) {
    const std::string last = words.empty() ? "" : words.back();
    CAPTURE(last);
    const outcome refused = run(plan, words);
    CHECK(refused.code == 2);
    CHECK(refused.out == "");
    CHECK(refused.err.starts_with("error: RC"));
    CHECK(said_in(refused.err).id == (last == "t.json" ? 7908 : 7900));
  }
  CHECK(said_in(run(plan, {"timeline", "--measured", "t.json"}).err) == said{7908, {"t.json", "text"}});
  const std::pair<std::vector<std::string>, said> refusals[]{
      {{"emit"}, {7909, {}}},
      {{"describe", "--target", "cuda", "--dtype", "f64"}, {7906, {}}},
      {{"describe", "--dtype", "bf16"}, {7907, {}}},
      {{"timeline", "--format", "html", "--measured", "/none"},
       {7902, {"/none", "No such file or directory"}}},
      {{"timeline", "--format", "html", "--measured", "/"},
       {7902, {"/", "it is a folder, not a regular file"}}}};
  for (const auto& [words, sentence] : refusals) {
    const outcome refused = run(plan, words);
    CHECK(refused.code == 1);
    CHECK(refused.err.starts_with("error: RC"));
    CHECK(said_in(refused.err) == sentence);
    CHECK(refused.out == "");
  }
}

TEST_CASE("the certificate of forwards alone is of the forwards") {
  const rankc::plan_data plan =
      programs::make({"tiny_gpt2", "forwards", programs::order::looped_bfs, 1, 1, 2, 3, 2, 8, true});
  const scratch files;
  REQUIRE(run(plan, {"certificate", "--out", files.path("proof.json")}).code == 0);
  const std::string text = contents(files.path("proof.json"));
  CHECK(rankc::codegen::verify(text).empty());
  for (const char* op : {"0F0: ", "3F2: ", "F0: stage 0 -> 1", "cross_entropy"})
    CHECK_MESSAGE(text.find(op) != std::string::npos, op);
}

}  // namespace commands_test
