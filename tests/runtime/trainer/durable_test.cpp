// SPDX-License-Identifier: Apache-2.0
// The files on disk at each moment of a save: the order of its calls, and the files that remain if the
// process ends before any call.
#include <rankc/trainer/checkpoint.hpp>
#include <rankc/trainer/export.hpp>
#include <rankc/trainer/metrics_file.hpp>

#include "../../exit_with.hpp"
#include "checkpoints.hpp"
#include "file_calls.hpp"
#include "scratch.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cstring>
#include <functional>
#include <regex>

using namespace rankc::runtime;
using rankc::test::exit_of, rankc::test::exit_with;
using testing::file_calls;
namespace fs = std::filesystem;

namespace {

/// The calls that write a file durably: open, `writes` writes, flush.
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

/// A checkpoint is written to a temporary folder and flushed: files first, then the folder's entries. COMMIT
/// is written when all other files are on disk.
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

/// An engine whose first weight identifies the save.
struct saver {
  fake_program program{1, 1, 1};
  fake_engine engine{program};
  saver() { fill_engine(engine); }
  void save(double mark, std::int64_t step, const std::string& folder) {
    engine.of(0, region::weights)[0] = mark;
    save_checkpoint(engine, example_state(program.about, step), folder);
  }
  /// The identifying weight of the checkpoint that a folder's `latest` leads to; all of the checkpoint is
  /// read.
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
  for (const int step : {1, 2})  // the step of the existing checkpoint, and a new step
    for (const bool exchanges : {true, false}) {
      if (step == 2 && !exchanges) continue;  // there is no folder to exchange
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
        if (WEXITSTATUS(status) != 0) calls = end + 1;  // the process made all calls
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
        const exit_with seen = exit_of([&] { s.save(2, step, files.path()); });
        if (static_cast<int>(calls.seen.size()) <= at) break;  // there are no more calls
        const double mark = s.latest(files.path());
        REQUIRE((mark == 1 || mark == 2));
        if (calls.seen[static_cast<std::size_t>(at)].starts_with("remove")) continue;
        REQUIRE(seen.code == 65);
        REQUIRE(seen.message.id == 5005);
        REQUIRE(seen.message.arguments.at(1) == "No space left on device");
        ++failed;
        REQUIRE_FALSE(
            fs::exists(files.path(".step_00000" + std::to_string(step) + ".unfinished")));  // it is removed
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
    CHECK(exit_of([&] { s.save(2, 2, files.path()); }).code == 65);
    const double mark = s.latest(files.path());
    CHECK((mark == 1 || (mark == 2 && from >= 16)));  // from call 16 on, the folder has its name
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

TEST_CASE("a checkpoint that has its name is saved, whatever happens while older ones are removed") {
  for (const bool throws : {false, true}) {
    CAPTURE(throws);
    const scratch files;
    saver s;
    s.save(1, 1, files.path());
    file_calls calls(files.path());
    s.save(2, 2, files.path());
    const int saved = static_cast<int>(calls.seen.size());
    calls.seen.clear();
    calls.fail_from = saved + throws;  // renaming the older checkpoint fails, or the flush after it throws
    calls.fail_until = 1000;
    calls.error = EIO;
    calls.throws = throws;
    s.engine.of(0, region::weights)[0] = 3;
    CHECK_NOTHROW(write_checkpoint(s.program.about, snapshot(s.engine, example_state(s.program.about, 3)),
                                   files.path(), {}, 1));
    REQUIRE(static_cast<int>(calls.seen.size()) == saved + 1 + throws);
    CHECK(calls.seen[static_cast<std::size_t>(saved)] == "rename step_000002 -> .step_000002.removed");
    CHECK(s.latest(files.path()) == 3);
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
    CHECK(exit_of([&] { write_durably(files.path("there/c"), "3"); }) ==
          exit_with{65, {5005, {files.path("there/c"), "File exists"}}});
    calls.seen.resize(3);
    CHECK(calls.seen == std::vector<std::string>{"open there/c", "write there/c", "flush there/c"});
  }
  CHECK(contents(files.path("there/b")) == "1");
  CHECK(exchange_durably(files.path("there/b"), files.path("there/c")));
  CHECK(contents(files.path("there/b")) == "2");
  CHECK(contents(files.path("there/c")) == "1");
  const auto missing = [](const std::string& name) {
    return exit_with{65, {5005, {name, "No such file or directory"}}};
  };
  CHECK(exit_of([&] { exchange_durably(files.path("none"), files.path("there")); }) ==
        missing(files.path("there")));
  CHECK(exit_of([&] { rename_durably(files.path("none"), files.path("x")); }) == missing(files.path("x")));
  CHECK(exit_of([&] { write_durably(files.path("none/x"), ""); }) == missing(files.path("none/x")));
  CHECK(exit_of([&] { write_output("/dev/full", "x", 65); }) ==
        exit_with{65, {5005, {"/dev/full", "No space left on device"}}});
  CHECK(exit_of([&] { flush_folder(files.path("none")); }) == missing(files.path("none")));
}

namespace {

/// A call without the process and file numbers in its names.
std::string plain(const std::string& call) {
  return std::regex_replace(call, std::regex("[0-9]+-[0-9]+"), "N");
}

std::vector<std::string> plain(const std::vector<std::string>& calls) {
  std::vector<std::string> all;
  for (const std::string& call : calls) all.push_back(plain(call));
  return all;
}

std::size_t entries_in(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), {}));
}

/// Runs `act` in a process that ends before one of its calls.
/// Returns: true if it made all calls.
bool ends_before(int call, const scratch& files, const std::function<void()>& act) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    file_calls seen(files.path());
    seen.end_before = call;
    act();
    _exit(1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status) == 1;
}

}  // namespace

TEST_CASE("an output is on disk before it has its name") {
  const scratch files;
  files.write("out", "old");
  file_calls calls(files.path());
  write_output(files.path("out"), "new", 1);
  CHECK(plain(calls.seen) ==
        joined({durable(".out.N.unfinished", 1), {"rename .out.N.unfinished -> out", "flush ."}}));
  CHECK(contents(files.path("out")) == "new");
  CHECK(entries_in(files.path()) == 1);
}

TEST_CASE("ended before any call, an output is the old one or the new one, and the next run cleans up") {
  bool done = false;
  for (int call = 0; !done; ++call) {
    CAPTURE(call);
    const scratch files;
    files.write("out", "old");
    done = ends_before(call, files, [&] { write_output(files.path("out"), "new", 1); });
    const std::string there = contents(files.path("out"));
    CHECK((there == "new" || (there == "old" && !done)));
    write_output(files.path("out"), "newer", 1);
    CHECK(contents(files.path("out")) == "newer");
    CHECK(entries_in(files.path()) == 1);
  }
}

TEST_CASE("a call that fails leaves the old output and nothing beside it") {
  for (const int error : {ENOSPC, EFBIG}) {
    int failed = 0;
    for (int at = 0;; ++at) {
      const scratch files;
      files.write("out", "old");
      file_calls calls(files.path());
      calls.fail_from = at;
      calls.fail_until = at + 1;
      calls.error = error;
      const exit_with seen = exit_of([&] { write_output(files.path("out"), "new", 1); });
      if (static_cast<int>(calls.seen.size()) <= at) break;
      ++failed;
      const bool is_named = contents(files.path("out")) == "new";  // the folder is flushed last
      CHECK((is_named ? at == 4 : contents(files.path("out")) == "old"));
      CHECK(seen == exit_with{1, {5005, {files.path(is_named ? "" : "out"), std::strerror(error)}}});
      CHECK(entries_in(files.path()) == 1);
    }
    CHECK(failed == 5);
  }
}

TEST_CASE("what another process still writes is not taken for a leftover") {
  const scratch files;
  output_file first(files.path("out"), 1);
  first.append("first");
  write_output(files.path("out"), "second", 1);
  CHECK(entries_in(files.path()) == 2);
  first.put_in_place();
  CHECK(contents(files.path("out")) == "first");
  CHECK(entries_in(files.path()) == 1);
}

TEST_CASE("a line of metrics that does not fit is left out whole, and the run hears of it once") {
  const scratch files;
  const step_metrics one{};
  file_calls calls(files.path());
  metrics_file metrics(files.path("m"), std::nullopt);
  metrics.write(one);
  calls.error = ENOSPC;
  calls.fail_from = static_cast<int>(calls.seen.size());
  calls.fail_until = calls.fail_from + 1;
  metrics.write(one);
  metrics.write(one);
  CHECK(contents(files.path("m")) == json_line(one) + "\n");
}

TEST_CASE("a file system without locks is no reason not to write, and is said of metrics") {
  const scratch files;
  file_calls calls(files.path());
  calls.locks = false;
  const metrics_file metrics(files.path("m"), std::nullopt);
  CHECK(metrics.notes() ==
        std::vector{files.path("m") + ": its file system has no locks; a second run that writes it is not "
                                      "noticed"});
  write_output(files.path("out"), "new", 1);
  CHECK(contents(files.path("out")) == "new");
}

TEST_CASE("ended before any call of an export, its folder has the old weights or the new ones") {
  saver s;
  const scratch saved;
  s.save(1, 1, saved.path());
  s.save(2, 2, saved.path());
  const auto export_step = [&](const char* step, const scratch& to) {
    export_weights(s.program.about, saved.path(step), to.path("out"));
  };
  const scratch whole;
  export_step("step_000001", whole);
  const std::string first = contents(whole.path("out/model.safetensors"));
  export_step("step_000002", whole);
  const std::string second = contents(whole.path("out/model.safetensors"));
  REQUIRE(first != second);
  bool done = false;
  for (int call = 0; !done; ++call) {
    CAPTURE(call);
    const scratch files;
    export_step("step_000001", files);
    done = ends_before(call, files, [&] { export_step("step_000002", files); });
    const std::string there = contents(files.path("out/model.safetensors"));
    CHECK((there == second || (there == first && !done)));
    export_step("step_000002", files);
    CHECK(contents(files.path("out/model.safetensors")) == second);
    CHECK(entries_in(files.path("out")) == 1);
  }
}
