// SPDX-License-Identifier: Apache-2.0
// What is on disk at each moment of a save: the order of its calls, and what a process leaves that ends
// before any of them.
#include <rankc/trainer/checkpoint.hpp>
#include <rankc/runtime/durable.hpp>

#include "checkpoints.hpp"
#include "file_calls.hpp"
#include "scratch.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace rankc::runtime;
using testing::file_calls;
namespace fs = std::filesystem;

namespace {

/// A file that is written durably: opened, written in so many calls, and on disk.
std::vector<std::string> durable(const std::string& file, int writes) {
  std::vector<std::string> calls{"open " + file};
  calls.insert(calls.end(), static_cast<std::size_t>(writes), "write " + file);
  calls.push_back("flush " + file);
  return calls;
}

std::vector<std::string> joined(std::vector<std::vector<std::string>> parts) {
  std::vector<std::string> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

/// Written beside its place, and on disk: files first, then the folder's entries; COMMIT when all else is
/// there.
const std::string beside = ".step_000001.unfinished";
const std::vector<std::string> write_files =
    joined({durable(beside + "/rank_00000.safetensors", 4),  // length, header, data, checksums
            durable(beside + "/index.json", 1),
            durable(beside + "/run.json", 1),
            {"flush " + beside},
            durable(beside + "/COMMIT", 1),
            {"flush " + beside}});
const std::vector<std::string> name_latest =
    joined({durable(".latest.unfinished", 1), {"rename .latest.unfinished -> latest", "flush ."}});

/// An engine whose first weight says which save it is.
struct saver {
  fake_program program{1, 1, 1};
  fake_engine engine{program};
  saver() { fill_engine(engine); }
  void save(double mark, std::int64_t step, const std::string& folder) {
    engine.of(0, region::weights)[0] = mark;
    save_checkpoint(engine, example_state(program.about, step), folder);
  }
  /// The mark of the checkpoint that a folder's `latest` stands for; all of it is read.
  double latest(const std::string& folder) {
    fake_engine to(program);
    const fs::path found = find_checkpoint(folder);
    load_checkpoint(to, found);
    return to.of(0, region::weights)[0];
  }
};

std::string named_by_latest(const scratch& files) {
  const std::string line = contents(files.path("latest"));
  return line.substr(0, line.find('\n'));
}

}  // namespace

TEST_CASE("a checkpoint is whole and on disk before it has its name, and has its name before latest does") {
  const scratch files;
  saver s;
  file_calls calls(files.path());
  s.save(1, 1, files.path());
  CHECK(calls.seen ==
        joined({write_files, {"rename .step_000001.unfinished -> step_000001", "flush ."}, name_latest}));
}

TEST_CASE("one of the same step goes last") {
  const scratch files;
  saver s;
  s.save(1, 1, files.path());
  file_calls calls(files.path());
  s.save(2, 1, files.path());
  CHECK(calls.seen == joined({write_files,
                              {"exchange .step_000001.unfinished <-> step_000001", "flush ."},
                              name_latest,
                              {"remove .step_000001.unfinished"}}));
  calls.seen.clear();
  calls.exchanges = false;
  s.save(3, 1, files.path());
  CHECK(calls.seen == joined({write_files,
                              {"rename step_000001 -> .step_000001.replaced", "flush .",
                               "rename .step_000001.unfinished -> step_000001", "flush ."},
                              name_latest,
                              {"remove .step_000001.replaced"}}));
  CHECK(s.latest(files.path()) == 3);
}

TEST_CASE(
    "ended before any call of a save, latest stands for a whole checkpoint, and the next save succeeds") {
  saver s;
  for (const int step : {1, 2})  // that of the checkpoint that is there, and a new one
    for (const bool exchanges : {true, false}) {
      if (step == 2 && !exchanges) continue;  // nothing is there to be exchanged
      CAPTURE(step);
      CAPTURE(exchanges);
      int calls = -1, before = 0, after = 0;
      for (int end = 0; end != calls; ++end) {
        CAPTURE(end);
        const scratch files;
        s.save(1, 1, files.path());
        const pid_t child = fork();
        REQUIRE(child >= 0);
        if (child == 0) {
          file_calls seen(files.path());
          seen.exchanges = exchanges;
          seen.end_before = end;
          s.save(2, step, files.path());
          _exit(static_cast<int>(seen.seen.size()));
        }
        int status = 0;
        REQUIRE(waitpid(child, &status, 0) == child);
        REQUIRE(WIFEXITED(status));
        if (WEXITSTATUS(status) != 0) calls = end + 1;  // it has made them all
        if (exchanges) REQUIRE(fs::exists(files.path(named_by_latest(files)) + "/COMMIT"));
        const double mark = s.latest(files.path());
        REQUIRE((mark == 1 || mark == 2));
        ++(mark == 1 ? before : after);
        if (WEXITSTATUS(status) != 0) CHECK(mark == 2);
        file_calls next(files.path());
        next.exchanges = exchanges;
        s.save(3, step, files.path());
        CHECK(s.latest(files.path()) == 3);
        CHECK(named_by_latest(files) == "step_00000" + std::to_string(step));
        int left = 0;
        for (const auto& entry : fs::directory_iterator(files.path()))
          left += entry.path().filename().string().starts_with(".");
        CHECK(left == 0);
      }
      CHECK(before >= 8);
      CHECK(after >= 2);
    }
}

TEST_CASE("a call of a save that fails costs that save alone, and the next one succeeds") {
  saver s;
  for (const int step : {1, 2})
    for (const bool exchanges : {true, false}) {
      if (step == 2 && !exchanges) continue;
      int failed = 0;
      for (int at = 0;; ++at) {
        CAPTURE(step);
        CAPTURE(at);
        const scratch files;
        s.save(1, 1, files.path());
        file_calls calls(files.path());
        calls.exchanges = exchanges;
        calls.fail_from = at;
        calls.fail_until = at + 1;
        calls.error = ENOSPC;
        const std::string said = refusal_of([&] { s.save(2, step, files.path()); });
        if (static_cast<int>(calls.seen.size()) <= at) break;  // that was all
        const double mark = s.latest(files.path());
        REQUIRE((mark == 1 || mark == 2));
        if (calls.seen[static_cast<std::size_t>(at)].starts_with("remove")) continue;
        REQUIRE(said.starts_with("65: "));
        REQUIRE(said.ends_with(": cannot be written: No space left on device"));
        ++failed;
        REQUIRE_FALSE(fs::exists(
            files.path(".step_00000" + std::to_string(step) + ".unfinished")));  // it keeps no room
        calls.fail_until = at;
        s.save(3, step, files.path());
        REQUIRE(s.latest(files.path()) == 3);
      }
      CHECK(failed >= 20);
    }
}

TEST_CASE("a disk that is full for all calls of a save leaves the checkpoint before it") {
  const scratch files;
  saver s;
  s.save(1, 1, files.path());
  file_calls calls(files.path());
  calls.error = ENOSPC;
  for (int from = 0; from < 20; ++from) {
    calls.seen.clear();
    calls.fail_from = from;
    calls.fail_until = 1000;
    CHECK(refusal_of([&] { s.save(2, 2, files.path()); }).starts_with("65: "));
    const double mark = s.latest(files.path());
    CHECK((mark == 1 || (mark == 2 && from >= 16)));  // it has its name, and latest cannot follow
  }
  calls.fail_until = 0;
  s.save(3, 2, files.path());
  CHECK(s.latest(files.path()) == 3);
}

TEST_CASE(
    "ended before any call of a save that removes older ones, a whole checkpoint is there that is not older "
    "than the last") {
  saver s;
  for (int end = 0, calls = -1; end != calls; ++end) {
    CAPTURE(end);
    const scratch files;
    for (const int step : {1, 2, 3}) s.save(step, step, files.path());
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      file_calls seen(files.path());
      seen.end_before = end;
      s.engine.of(0, region::weights)[0] = 4;
      write_checkpoint(s.program.about, snapshot(s.engine, example_state(s.program.about, 4)), files.path(),
                       {}, 2);
      _exit(static_cast<int>(seen.seen.size()));
    }
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status));
    if (WEXITSTATUS(status) != 0) calls = end + 1;
    const double mark = s.latest(files.path());
    REQUIRE((mark == 3 || mark == 4));
    if (WEXITSTATUS(status) != 0) CHECK(find_checkpoints(files.path()).size() == 2);
    CHECK(find_checkpoints(files.path()).size() >= 2);
  }
}

TEST_CASE("a rename to another folder flushes that one, and folders that cannot change names say why") {
  const scratch files;
  files.write("a", "1");
  fs::create_directory(files.path("there"));
  {
    file_calls calls(files.path());
    rename_durably(files.path("a"), files.path("there/b"));
    CHECK(calls.seen == std::vector<std::string>{"rename a -> there/b", "flush there"});
    calls.seen.clear();
    write_durably(files.path("there/c"), "2");
    CHECK(calls.seen == std::vector<std::string>{"open there/c", "write there/c", "flush there/c"});
  }
  CHECK(contents(files.path("there/b")) == "1");
  CHECK(exchange_durably(files.path("there/b"), files.path("there/c")));
  CHECK(contents(files.path("there/b")) == "2");
  CHECK(contents(files.path("there/c")) == "1");
  CHECK(refusal_of([&] { exchange_durably(files.path("none"), files.path("there")); }) ==
        "65: " + files.path("there") + ": cannot be written: No such file or directory");
  CHECK(refusal_of([&] { rename_durably(files.path("none"), files.path("x")); }) ==
        "65: " + files.path("x") + ": cannot be written: No such file or directory");
  CHECK(refusal_of([&] { write_durably(files.path("none/x"), ""); }) ==
        "65: " + files.path("none/x") + ": cannot be written: No such file or directory");
  CHECK(refusal_of([&] { write_durably("/dev/full", "x"); }) ==
        "65: /dev/full: cannot be written: No space left on device");
  CHECK(refusal_of([&] { flush_folder(files.path("none")); }) ==
        "65: " + files.path("none") + ": cannot be written: No such file or directory");
}
