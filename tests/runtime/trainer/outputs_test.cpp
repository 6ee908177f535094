// SPDX-License-Identifier: Apache-2.0
// Files that commands write. Inputs, files of other kinds and targets of links are never overwritten, and no
// output of an earlier run is lost.
#include <rankc/launch/error_file.hpp>
#include <rankc/runtime/output_rules.hpp>
#include <rankc/trainer/metrics_file.hpp>

#include "../../exit_with.hpp"
#include "fake_run.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <chrono>
#include <thread>

using namespace rankc::runtime;
using rankc::test::exit_with, rankc::test::said, rankc::test::said_in;
namespace fs = std::filesystem;

namespace {

const std::string other_text = "a text of someone's\n";

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<int> steps_of(const std::string& file) {
  std::vector<int> steps;
  for (const auto& line : lines_of(file)) steps.push_back(line["step"]);
  return steps;
}

/// The failure of a run that ends before its ranks start.
exit_with refused(const outcome& o) {
  CHECK(o.installs == 0);
  CHECK(o.err.starts_with("fake: RC"));
  CHECK(std::count(o.err.begin(), o.err.end(), '\n') == 1);
  return {o.code, said_in(o.err)};
}

/// A run of some steps with a metrics file.
outcome train(const fake_program& program, const std::string& steps, const std::string& metrics,
              std::vector<std::string> more = {}) {
  more.insert(more.begin(), {"train", "--steps", steps, "--metrics", metrics});
  return run(program, more);
}

/// Another name of a file: a link to it, or the same inode.
std::string link_to(const scratch& files, const std::string& file, bool hard) {
  const std::string name = files.path(hard ? "hard" : "soft");
  if (hard) fs::create_hard_link(files.path(file), name);
  else fs::create_symlink(files.path(file), name);
  return name;
}

}  // namespace

TEST_CASE("a file of something else is refused before anything is installed, and stays") {
  const scratch files;
  const fake_program program(1, 1, 1);
  const std::string text = files.write("t.txt", other_text);
  for (const std::string& name : {text, link_to(files, "t.txt", false), link_to(files, "t.txt", true)}) {
    CAPTURE(name);
    CHECK(refused(run(program, {"train", "--steps", "2", "--metrics", name})) ==
          exit_with{2, {5021, {"--metrics " + name, "one of metrics"}}});
    CHECK(refused(run(program, {"train", "--steps", "2", "--trace", name})) ==
          exit_with{2, {5021, {"--trace " + name, "a trace of a step"}}});
    CHECK(contents(text) == other_text);
  }
}

TEST_CASE("an output that the run reads, or that another option names, is refused") {
  const scratch files;
  const fake_program program(1, 1, 1);
  const std::string metrics = files.path("m");
  for (int line = 0; line < 20; ++line) REQUIRE((line > 0 || train(program, "6", metrics).code == 0));
  const std::string before = contents(metrics), save = files.path("s");
  REQUIRE(run(program, {"train", "--steps", "2", "--data", metrics, "--save", save}).code == 0);
  for (const std::string& name : {metrics, link_to(files, "m", false), link_to(files, "m", true)}) {
    CAPTURE(name);
    const exit_with same{2, {5020, {"--metrics " + name, "--data " + metrics}}};
    CHECK(refused(train(program, "4", name, {"--data", metrics})) == same);
    CHECK(refused(train(program, "4", name, {"--load", save})) ==
          same);  // the checkpoint names the metrics file as its data
    CHECK(train(program, "4", name, {"--eval-data", metrics}).code == 2);
  }
  CHECK(contents(metrics) == before);
  const std::string one = files.path("new");
  CHECK(refused(train(program, "2", one, {"--trace", files.path("./new")})) ==
        exit_with{2, {5020, {"--trace " + files.path("./new"), "--metrics " + one}}});
  CHECK_FALSE(fs::exists(one));
}

TEST_CASE("metrics of an earlier run are kept aside, and links are not followed") {
  const scratch files;
  const fake_program program(1, 1, 1);
  const std::string metrics = files.path("m");
  REQUIRE(train(program, "3", metrics).code == 0);
  const std::string first = contents(metrics);
  const outcome second = train(program, "2", metrics);
  CHECK(second.out.find("note: the metrics of an earlier run are now " + metrics + ".1\n") !=
        std::string::npos);
  CHECK(train(program, "1", metrics).code == 0);
  CHECK(steps_of(metrics) == std::vector{1});
  CHECK(contents(metrics + ".1") == first);
  CHECK(steps_of(metrics + ".2") == std::vector{1, 2});
  for (const bool hard : {false, true}) {
    const std::string link = link_to(files, "m.1", hard);
    CHECK(train(program, "2", link).code == 0);
    CHECK(train(program, "5", link,
                {"--load",
                 [&] {
                   const std::string save = files.path(hard ? "s1" : "s0");
                   REQUIRE(run(program, {"train", "--steps", "1", "--save", save}).code == 0);
                   return save;
                 }()})
              .code == 0);
    CHECK(steps_of(link) == std::vector{1, 2, 3, 4, 5});
    CHECK(contents(files.path("m.1")) == first);
  }
  CHECK(fs::is_symlink(files.path("soft.1")));
  for (const std::string& name : names_in(files.path())) CHECK(name.find("unfinished") == std::string::npos);
  fs::create_symlink(files.path("nowhere"), files.path("dangling"));
  CHECK(train(program, "2", files.path("dangling")).code == 0);
  CHECK_FALSE(fs::exists(files.path("nowhere")));
}

TEST_CASE("a run that is resumed has each step once in its metrics, and in its curves") {
  const scratch files;
  const fake_program program(1, 1, 1);
  const std::string metrics = files.path("m"), save = files.path("s"), curves = files.path("tb");
  REQUIRE(train(program, "8", metrics, {"--save", save, "--save-every", "5", "--tensorboard", curves}).code ==
          0);
  const std::vector<double> whole = losses_of(metrics);
  const std::string cut = contents(metrics) + "{\"step\":9,\"lo";  // as if killed in the middle of a line
  fs::create_hard_link(files.write("m", cut), files.path("kept"));
  fs::remove_all(curves);
  const outcome resumed =
      train(program, "8", metrics, {"--load", save + "/step_000005", "--tensorboard", curves});
  CHECK(resumed.out.find("note: " + metrics +
                         ": 4 lines of steps after 5 are removed, for these come again\n") !=
        std::string::npos);
  CHECK(steps_of(metrics) == std::vector{1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(losses_of(metrics) == whole);
  CHECK(contents(files.path("kept")) == cut);
  const std::string events = contents(*fs::directory_iterator(curves));
  // An event for step 6 and a new session: TensorBoard drops older events of that and later steps.
  CHECK(events.find("\x10\x06\x3a\x02\x08\x01") != std::string::npos);
  fs::remove_all(curves);
  REQUIRE(run(program, {"train", "--steps", "6", "--tensorboard", curves}).code == 0);
  CHECK(contents(*fs::directory_iterator(curves)).find("\x3a\x02\x08\x01") == std::string::npos);
}

TEST_CASE("two runs cannot write one metrics file") {
  const scratch files;
  const fake_program program(1, 1, 1);
  const std::string metrics = files.path("m"), save = files.path("s");
  REQUIRE(run(program, {"train", "--steps", "2", "--save", save}).code == 0);
  {
    const metrics_file first(metrics, std::nullopt);
    CHECK(first.notes().empty());
    const exit_with taken{2, {6125, {metrics}}};
    CHECK(refused(train(program, "2", metrics)) == taken);
    CHECK(refused(train(program, "4", metrics, {"--load", save})) == taken);
    CHECK(names_in(files.path()) == std::vector<std::string>{"m", "s"});
  }
  CHECK(train(program, "2", metrics).code == 0);
}

TEST_CASE("a trace replaces that of an earlier run, and a link to it") {
  const scratch files;
  const fake_program program(1, 1, 1);
  const std::string trace = files.path("t");
  REQUIRE(run(program, {"train", "--steps", "2", "--trace", trace}).code == 0);
  const std::string first = contents(trace);
  REQUIRE(run(program, {"train", "--steps", "3", "--trace", trace}).code == 0);
  CHECK(contents(trace) != first);
  for (const bool hard : {false, true}) {
    const std::string link = link_to(files, "t", hard), before = contents(trace);
    REQUIRE(run(program, {"train", "--steps", "2", "--trace", link}).code == 0);
    CHECK(contents(link) == first);
    CHECK(contents(trace) == before);
  }
}

TEST_CASE("a trace that cannot be written is told after the save and the ending") {
  const scratch files;
  const fake_program program(1, 1, 1);
  fs::create_directory(files.path("gone"));
  const std::string trace = files.path("gone/t"), save = files.path("s");
  const outcome done = run(program, {"train", "--steps", "2", "--trace", trace, "--save", save},
                           [&](fake_engine&) { fs::remove_all(files.path("gone")); });
  CHECK(done.code == 1);
  CHECK(done.err.starts_with("fake: RC"));
  CHECK(said_in(done.err) == said{5005, {trace, "No such file or directory"}});
  for (const char* line : {"\nsaved ", "\ndone: step 2 of 2", "\nnext: "})
    CHECK(done.out.find(line) != std::string::npos);
  CHECK(refused(run(program, {"train", "--steps", "2", "--trace", trace})).code == 1);
}

TEST_CASE("devices and pipes are written as they are") {
  const scratch files;
  const fake_program program(1, 1, 1);
  CHECK(run(program, {"train", "--steps", "2", "--metrics", "/dev/null", "--trace", "/dev/null"}).code == 0);
  CHECK(fs::is_character_file("/dev/null"));
  CHECK(is_stream("/dev/stdout"));
  CHECK(is_stream("/proc/self/fd/1"));
  CHECK_FALSE(is_stream(files.write("f", "")));
  CHECK_FALSE(is_stream(files.path()));
  CHECK_FALSE(is_stream(files.path("none")));
  const outcome full = train(program, "2", "/dev/full");
  CHECK(full.code == 0);
  CHECK(said_in(full.err) ==
        said{5005, {"/dev/full", "No space left on device; training continues without it from step 1 on"}});
}

TEST_CASE("a FIFO without a reader is refused, and one with a reader is written") {
  const scratch files;
  const fake_program program(1, 1, 1);
  const std::string pipe = files.path("pipe");
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  for (const char* option : {"--metrics", "--trace"})
    CHECK(refused(run(program, {"train", "--steps", "2", option, pipe})) == exit_with{1, {5024, {pipe}}});
  std::string read;
  std::thread reader([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    read = contents(pipe);
  });
  CHECK(train(program, "2", pipe).code == 0);
  reader.join();
  CHECK(std::count(read.begin(), read.end(), '\n') == 2);
}

TEST_CASE("a run whose curves hide those of an earlier run says so") {
  const scratch files;
  const fake_program program(1, 1, 1);
  const std::string curves = files.path("tb"), save = files.path("s");
  const auto train_into = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"train", "--tensorboard", curves});
    return run(program, more).out.find("note: RC6128: --tensorboard " + curves) != std::string::npos;
  };
  CHECK_FALSE(train_into({"--steps", "2", "--save", save}));
  CHECK_FALSE(train_into({"--steps", "4", "--load", save}));
  CHECK(train_into({"--steps", "2"}));
  const fs::directory_iterator all(curves);
  CHECK(std::count_if(begin(all), end(all), [](const auto& entry) {  // a file with step 1 and a new session
          return contents(entry.path().string()).find("\x10\x01\x3a\x02\x08\x01") != std::string::npos;
        }) == 1);
}

TEST_CASE("export replaces its own files, and refuses those of others") {
  const scratch files;
  const fake_program program(1, 1, 1);
  const std::string save = files.path("s"), out = files.path("out"), model = out + "/model.safetensors";
  REQUIRE(run(program, {"train", "--steps", "2", "--save", save, "--save-every", "1"}).code == 0);
  const auto exported = [&](const std::string& step) {
    return run(program, {"export", "--load", save + "/step_00000" + step, "--out", out});
  };
  CHECK(exported("1").code == 0);
  const std::string first = contents(model);
  files.write("out/tokenizer.json", other_text);
  fs::create_directory(out + "/.rankc.unfinished");  // left by an export that was killed
  files.write("out/.rankc.unfinished/model.safetensors", "half");
  CHECK(exported("2").code == 0);
  const std::string second = contents(model);
  CHECK(second != first);
  CHECK(names_in(out) == std::vector<std::string>{"model.safetensors", "tokenizer.json"});
  for (const bool hard : {false, true}) {  // links as in a snapshot of the Hub, or as rsync makes them
    fs::remove(model);
    files.write("blob", first);
    if (hard) fs::create_hard_link(files.path("blob"), model);
    else fs::create_symlink("../blob", model);
    CHECK(exported("2").code == 0);
    CHECK(contents(files.path("blob")) == first);
    CHECK(contents(model) == second);
    CHECK_FALSE(fs::is_symlink(model));
  }
  files.write("out/config.json", "{\"model_type\": \"llama\"}\n");
  files.write("out/model-00001-of-00002.safetensors", other_text);
  CHECK(refused(exported("1")) ==
        exit_with{2, {6525, {out, "config.json, model-00001-of-00002.safetensors"}}});
  CHECK(contents(model) == second);
}

TEST_CASE("a report for the launcher is written whole, not through links and not over other files") {
  const scratch files;
  std::string report = files.path("r");
  const environment get = [&](const char*) { return report.c_str(); };
  write_error_file(get, "first", false);
  write_error_file(get, "second", false);
  CHECK(contents(report).find("second") != std::string::npos);
  const std::string text = files.write("t.txt", other_text);
  fs::create_symlink(files.write("empty", ""), files.path("soft"));
  report = files.path("soft");
  write_error_file(get, "third", false);
  CHECK(contents(report).find("third") != std::string::npos);
  CHECK(contents(files.path("empty")).empty());
  report = text;
  write_error_file(get, "fourth", false);
  CHECK(contents(text) == other_text);
}
