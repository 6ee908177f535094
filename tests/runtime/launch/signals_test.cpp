// SPDX-License-Identifier: Apache-2.0
// Signals to a program, to its launcher and to its ranks: a run saves when it must stop, and reports how it
// dies, and a failed write loses only the data that it was to write.
#include "program_runs.hpp"

#include <doctest/doctest.h>
#include <algorithm>
#include <csignal>
#include <tuple>

namespace {

using namespace rankc::test;
namespace fs = std::filesystem;

const std::vector<bool> both_launches{false, true};  // threads, processes

std::vector<std::string> trains(const std::vector<std::string>& also = {}) {
  std::vector<std::string> words{"train", "--steps", "1000000"};
  words.insert(words.end(), also.begin(), also.end());
  return words;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// Check that `signal` has stopped the run, and that it was saved.
void check_stopped(const scratch& files, running& r, int signal, const std::string& name) {
  const running::end e = r.wait();
  CAPTURE(e.err);
  CHECK(e.code == 128 + signal);
  CHECK(e.took < scaled(5));
  CHECK(e.all_gone);
  CHECK(e.err.starts_with("gpt_pp2: RC"));
  check_stopped_by(name, e.err, files.path("save"));
  CHECK(std::count(e.err.begin(), e.err.end(), '\n') == 1);
  CHECK(has(e.out, "\nsaved " + files.path("save") + "/step_"));
  CHECK(run(files, program + " eval --steps 1 --load " + files.path("save")).code == 0);
}

std::string with_launch(const std::string& words, bool processes) {
  return program + " " + words + (processes ? " --launch processes" : "");
}

}  // namespace

TEST_CASE("signals: each that asks a run to stop makes it save") {
  // signal_matrix_test.cpp has every signal, moment and launch.
  for (const auto& [signal, name, processes] : {std::tuple{SIGTERM, "SIGTERM", false},
                                                {SIGTERM, "SIGTERM", true},
                                                {SIGINT, "SIGINT", true},
                                                {SIGHUP, "SIGHUP", false},
                                                {SIGUSR1, "SIGUSR1", true},
                                                {SIGXCPU, "SIGXCPU", false}}) {
    CAPTURE(processes);
    CAPTURE(name);
    const scratch files;
    running r(files, {.words = trains({"--save", files.path("save")}), .processes = processes});
    kill(r.launcher(), signal);
    check_stopped(files, r, signal, name);
  }
}

TEST_CASE("signals: two of them within a second count as one") {
  for (const bool processes : both_launches) {
    CAPTURE(processes);
    const scratch files;
    running r(files, {.words = trains({"--save", files.path("save")}), .processes = processes});
    kill(r.launcher(), SIGTERM);
    std::this_thread::sleep_for(100us);  // as `timeout` does
    kill(r.launcher(), SIGTERM);
    std::this_thread::sleep_for(20ms);
    kill(r.launcher(), SIGINT);
    check_stopped(files, r, SIGTERM, "SIGTERM");
  }
}

TEST_CASE("signals: the launcher and its ranks may be told together, in any order") {
  for (const bool launcher_first : {false, true}) {
    CAPTURE(launcher_first);
    const scratch files;
    running r(files, {.words = trains({"--save", files.path("save")})});
    if (launcher_first) kill(r.launcher(), SIGTERM);
    for (const std::size_t rank : {0, 1}) kill(r.rank(rank), SIGTERM);
    if (!launcher_first) kill(r.launcher(), SIGTERM);
    check_stopped(files, r, SIGTERM, "SIGTERM");
  }
}

TEST_CASE("signals: ranks that are told twice, one before the other has left its loop, end with one code") {
  for (const auto pause : {6ms, 10ms, 20ms}) {
    const scratch files;
    running r(files);
    for (const std::size_t rank : {0, 1, 0, 1}) {
      kill(r.rank(rank), SIGTERM);
      std::this_thread::sleep_for(pause);
    }
    const running::end e = r.wait();
    CAPTURE(e.err);
    CHECK(e.code == 128 + SIGTERM);
    CHECK(e.err.starts_with("gpt_pp2: RC"));
    check_stopped_by("SIGTERM", e.err);
    CHECK(std::count(e.err.begin(), e.err.end(), '\n') == 1);
  }
}

TEST_CASE("signals: nohup keeps a run from ending with its terminal") {
  for (const bool processes : both_launches) {
    CAPTURE(processes);
    const scratch files;
    running r(files, {.words = trains({"--save", files.path("save")}), .processes = processes, .before = [] {
                        std::signal(SIGHUP, SIG_IGN);
                      }});
    kill(r.launcher(), SIGHUP);
    std::this_thread::sleep_for(200ms);
    CHECK_FALSE(r.has_ended());
    kill(r.launcher(), SIGTERM);
    check_stopped(files, r, SIGTERM, "SIGTERM");
  }
}

#ifdef RANKC_INJECT
// Rank 0's save after step 3 is delayed.
TEST_CASE("signals: in a save the second one is answered, and the third one ends the program") {
  for (const bool processes : both_launches)
    for (const bool third : {false, true}) {
      CAPTURE(processes);
      CAPTURE(third);
      const scratch files;
      const std::string fault =
          "rank=0,op=save,step=3,delay=" + std::to_string(third ? 60.0 : 2 * scaled(1).count());
      running r(files,
                {.words = trains({"--save", files.path("save"), "--save-every", "3", "--inject", fault}),
                 .processes = processes});
      const auto until = clock_of_test::now() + scaled(20);
      while (std::ranges::count(contents(files.path("metrics")), '\n') < 3 && clock_of_test::now() < until)
        std::this_thread::sleep_for(10ms);
      for (int told = 1; told <= (third ? 3 : 2); ++told) {
        if (told > 1) std::this_thread::sleep_for(1100ms);
        kill(r.launcher(), SIGTERM);
      }
      const running::end e = r.wait();
      CAPTURE(e.err);
      CHECK(e.code == 128 + SIGTERM);
      CHECK(e.all_gone);
      CHECK(e.took < scaled(10));
      CHECK(e.err.starts_with("the run is being saved; one more signal ends the program at once\n"));
      CHECK(std::ranges::count(e.err, '\n') == (third ? 1 : 2));
      CHECK(has(e.out, "\nsaved ") == !third);
      if (!third) check_stopped_by("SIGTERM", e.err, files.path("save"));
    }
}
#endif

TEST_CASE("signals: eval ends by them") {
  enum class told { threads, launcher, one_rank };
  for (const told whom : {told::threads, told::launcher, told::one_rank})
    for (const int signal : {SIGTERM, SIGINT, SIGUSR1}) {
      CAPTURE(whom);
      CAPTURE(signal);
      const scratch files;
      running r(files, {.words = {"eval", "--steps", "1000000"}, .processes = whom != told::threads});
      std::this_thread::sleep_for(100ms);
      kill(whom == told::one_rank ? r.rank(1) : r.launcher(), signal);
      const running::end e = r.wait();
      CAPTURE(e.err);
      CHECK(e.code == 128 + signal);
      CHECK(e.took < scaled(5));
      CHECK(e.all_gone);
    }
}

TEST_CASE("signals: where all ranks are killed, the launcher says how") {
  const scratch files;
  running r(files);
  for (const std::size_t rank : {0, 1}) kill(r.rank(rank), SIGSTOP);
  for (const std::size_t rank : {0, 1}) kill(r.rank(rank), SIGBUS);
  for (const std::size_t rank : {0, 1}) kill(r.rank(rank), SIGCONT);
  const pid_t ranks[]{r.rank(0), r.rank(1)};
  const running::end e = r.wait();
  CAPTURE(e.err);
  CHECK(e.code == 128 + SIGBUS);
  for (const std::size_t rank : {0, 1}) {
    const std::size_t line = e.err.find("gpt_pp2: RC5302: rank " + std::to_string(rank) + " (");
    REQUIRE(line != e.err.npos);
    check_killed(e.err.substr(line), rank, ranks[rank], "7", "Bus error");
  }
  CHECK(std::count(e.err.begin(), e.err.end(), '\n') == 2);
}

TEST_CASE("signals: a data file that becomes shorter under a run is named") {
  for (const bool processes : both_launches) {
    CAPTURE(processes);
    const scratch files;
    const std::string data = files.write("text.txt", std::string(100'000, 'x'));
    running r(files, {.words = trains({"--data", data}), .processes = processes});
    fs::resize_file(data, 0);
    const running::end e = r.wait();
    CAPTURE(e.err);
    CHECK(e.code == 128 + SIGBUS);
    CHECK(e.took < scaled(10));
    CHECK(said_in(e.err, 6005) == said{6005, {data}});
  }
}

TEST_CASE("signals: a reader that goes costs a run its lines, and another command its purpose") {
  const scratch files;
  const std::string save = files.path("save"), after_the_reader = "set -o pipefail\n(sleep 0.2; ";
  for (const bool processes : both_launches) {
    CAPTURE(processes);
    const std::string words = "train --steps 3 --save " + save + (processes ? "/p" : "/t");
    const outcome piped = run(files, after_the_reader + with_launch(words, processes) + ") | true");
    CAPTURE(piped.err);
    CHECK(piped.code == 0);
    CHECK(piped.err.starts_with("RC"));
    CHECK(std::ranges::count(piped.err, '\n') == 1);
    CHECK(said_in(piped.err) == said{6040, {"Broken pipe"}});
    CHECK(fs::exists(save + (processes ? "/p" : "/t") + "/step_000003/COMMIT"));
  }
  const std::string generate = "generate --tokens 5 --load " + save + "/t";
  for (const std::string& words : {std::string("describe --json"), generate}) {
    CAPTURE(words);
    const outcome piped = run(files, after_the_reader + program + " " + words + ") | true");
    CHECK(piped.code == 1);
    CHECK(piped.err.starts_with("gpt_pp2: RC"));
    CHECK(std::ranges::count(piped.err, '\n') == 1);
    CHECK(said_in(piped.err) == said{6041, {"Broken pipe"}});
  }
}

TEST_CASE("signals: a file past the limit costs what a full disk costs") {
  for (const bool processes : both_launches) {
    CAPTURE(processes);
    const scratch files;
    const std::string save = files.path("save"), limit = "ulimit -f 1\n";  // in KiB
    const outcome saved = run(files, limit + with_launch("train --steps 3 --save " + save, processes));
    CAPTURE(saved.err);
    CHECK(saved.code == 65);
    CHECK(has(saved.err, "File too large"));
    CHECK(said_in(saved.err, 6167) == said{6167, {save}});
    const std::size_t last_line = saved.err.rfind('\n', saved.err.size() - 2) + 1;
    CHECK(saved.err.substr(last_line).starts_with("gpt_pp2: RC6167: "));
    const std::string metrics = files.path("metrics");
    const outcome told =
        run(files, limit + with_launch("train --steps 10 --metrics " + metrics, processes) + " >/dev/null");
    CAPTURE(told.err);
    CHECK(told.code == 0);
    const said unwritten = said_in(told.err);
    CHECK(unwritten.id == 5005);
    CHECK(unwritten.arguments.at(0) == metrics);
    CHECK(unwritten.arguments.at(1).starts_with("File too large; training continues without it from step "));
  }
  const scratch files;
  REQUIRE(run(files, program + " train --steps 1 --save " + files.path("save")).code == 0);
  const outcome exported = run(files, "ulimit -f 1\n" + program + " export --load " + files.path("save") +
                                          " --out " + files.path("o"));
  CHECK(exported.code == 65);
  CHECK(has(exported.err, "File too large"));
}

TEST_CASE("signals: closed or broken standard files get no text into other files, and end nothing") {
  for (const bool processes : both_launches)
    for (const std::string closed : {" >&-", " <&- >&- 2>&-"}) {
      CAPTURE(processes);
      CAPTURE(closed);
      const scratch files;
      const std::string metrics = files.path("metrics");
      CHECK(run(files, with_launch("train --steps 3 --metrics " + metrics, processes) + closed).code == 0);
      const std::string lines = contents(metrics);
      CHECK(std::count(lines.begin(), lines.end(), '\n') == 3);
      CHECK(lines.starts_with("{\"step\":1,"));
    }
  const scratch files;
  const std::string refused = program + " train --steps 1 --data /none.txt";
  CHECK(run(files, refused + " 2>&-").code == 1);
  CHECK(run(files, "set -o pipefail\n(sleep 0.2; " + refused + " 2>&1 >/dev/null) | true").code == 1);
  CHECK(run(files, refused + " --launch processes 2>&-").code == 1);
}
