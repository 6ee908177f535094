// SPDX-License-Identifier: Apache-2.0
// The generator's commands as a build meets them: exit codes, sentences and files.
#include <doctest/doctest.h>

#include <rankc/codegen/generator.hpp>
#include <rankc/codegen/verify.hpp>

#include <passes/explain.hpp>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "../../capture.hpp"
#include "../../runtime/trainer/scratch.hpp"
#include "../../said.hpp"
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
    "kernels.hpp",    "layers.hpp",     "main.cpp",    "memory_0.hpp", "memory_1.hpp",
    "pipeline_0.hpp", "pipeline_1.hpp", "plan.txt",    "program.cpp",  "program.hpp",
    "schedule.csv",   "schedule.svg",   "stage_0.hpp", "stage_1.hpp"};

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
  CHECK(run(plan, {"check"}).out == plan.name + ": no rule is broken\n");
  CHECK(files_in(files.path("out")) == std::vector<std::string>{"program", "proof.json"});
  CHECK(files_in(files.path("out/program")) == program_files);
  CHECK(rankc::codegen::verify(contents(files.path("out/proof.json"))) == "");
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
  rankc::plan_data plan = small_plan();  // could be lowered
  plan.diagnostics = illegal.diagnostics;
  REQUIRE_FALSE(rankc::accepts(plan.diagnostics));
  const scratch files;
  auto all = commands(files);
  all.insert(all.end(), {{"timeline"}, {"timeline", "--out", files.path("timeline.txt")}});
  for (const auto& words : all) {
    CAPTURE(words[0]);
    const outcome refused = run(plan, words);
    CHECK(refused.code == 1);
    CHECK(refused.err.starts_with("error: RC2"));
    for (std::size_t at = 0; at < refused.err.size(); at = refused.err.find('\n', at) + 1)
      CHECK(refused.err.substr(at).starts_with("error: RC2"));  // the rules say it all
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

TEST_CASE("a write that fails is exit code 1 and leaves the files that were there") {
  const rankc::plan_data plan = small_plan();
  const scratch files;
  const std::string folder = files.path("out");
  files.write("out/main.cpp", "old");
  files.write("out/program.cpp", "old");
  fs::create_symlink("/dev/full", folder + "/stage_1.hpp.unfinished");  // the last of the files
  const outcome failed = run(plan, {"emit", "--out", folder});
  CHECK(failed.code == 1);
  CHECK(failed.err == "error: cannot write " + folder + "/stage_1.hpp: No space left on device\n");
  CHECK(files_in(folder) == std::vector<std::string>{"main.cpp", "program.cpp"});
  CHECK(contents(folder + "/main.cpp") == "old");
  CHECK(contents(folder + "/program.cpp") == "old");

  const std::string blocked = files.write("file", "") + "/out";
  for (const char* command : {"emit", "certificate", "timeline"}) {
    CAPTURE(command);
    const outcome refused = run(plan, {command, "--out", blocked});
    CHECK(refused.code == 1);
    CHECK(refused.err.starts_with("error: "));
    CHECK(refused.err.find(blocked) != std::string::npos);
    CHECK(refused.err.find("Not a directory") != std::string::npos);
  }
  CHECK(run(plan, {"certificate", "--out", "/dev/full"}).err ==
        "error: cannot write /dev/full: No space left on device\n");
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
  files.write("out/stage_1.hpp", "changed");
  make_old();
  REQUIRE(run(plan, {"emit", "--out", folder}).code == 0);
  CHECK(written() == std::vector<std::string>{"program.cpp", "stage_1.hpp"});
  CHECK(contents(folder + "/stage_1.hpp") != "changed");
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
      {{"timeline", "--format", "html", "--measured", "/"}, {7902, {"/", "Is a directory"}}}};
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
