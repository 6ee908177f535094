// SPDX-License-Identifier: Apache-2.0
// Injected faults: each kind, in every phase of a step, after it and in a save, on each rank in turn. Every
// run must name its cause in the first line, end with its code in time, leave no process, and leave a
// checkpoint that loads.
#include "../../said.hpp"
#include "../../slowness.hpp"
#include "../trainer/scratch.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ios>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

namespace {

using rankc::runtime::contents;
using rankc::runtime::scratch;
using rankc::test::said_in;
namespace fs = std::filesystem;

constexpr int faulty_step = 3;  // two checkpoints have been saved before

struct program {
  std::string file;
  int world;
};
const program programs[]{{RANKC_FAULTS_FOUR, 4}, {RANKC_FAULTS_EIGHT, 8}};

struct trial {
  const program* of;
  int rank;
  std::string at, fault;  // the values for --inject
};

struct result {
  int code = 0;
  double seconds = 0;
  std::string err, first;
  bool left_a_process = false, loads = false;
};

/// The files in this machine's shared memory.
std::set<std::string> shared_memory() {
  std::set<std::string> names;
  if (fs::exists("/dev/shm"))
    for (const auto& entry : fs::directory_iterator("/dev/shm"))
      names.insert(entry.path().filename().string());
  return names;
}

/// Words followed by a time limit in seconds.
std::string within(const std::string& words, double seconds) {
  return words + std::to_string(rankc::test::scaled(seconds).count()) + " ";
}

std::string quoted(const std::string& text) { return "'" + text + "'"; }

/// The command line of a process; empty if it has ended meanwhile.
std::string words_of(const fs::path& process) {
  try {
    return contents(process / "cmdline");
  } catch (const std::ios_base::failure&) {
    return "";
  }
}

/// Whether a process with this text in its command line is alive.
bool is_there(const std::string& word) {
  for (const auto& entry : fs::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") == std::string::npos &&
        words_of(entry.path()).find(word) != std::string::npos)
      return true;
  }
  return false;
}

result run(const trial& t) {
  const scratch files;
  const std::string save = files.path("run"), err = files.path("err");
  const std::string limits =
      within("RANKC_STEP_TIMEOUT=", 2) + (t.fault == "stop" ? within("RANKC_SILENCE_TIMEOUT=", 3) : "");
  const std::string inject = "rank=" + std::to_string(t.rank) + ",op=" + t.at +
                             ",step=" + std::to_string(faulty_step) + "," + t.fault;
  const auto start = std::chrono::steady_clock::now();
  const int status = std::system((limits + within("timeout -k 1 ", 30) + t.of->file +
                                  " train --steps 4 --save-every 1 --save " + quoted(save) +
                                  " --launch processes --inject " + inject + " >/dev/null 2>" + err)
                                     .c_str());
  result r;
  r.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  r.code = WEXITSTATUS(status);
  r.err = contents(err);
  r.first = r.err.substr(0, r.err.find('\n'));
  r.left_a_process = is_there(save);
  r.loads =
      std::system((t.of->file + " eval --steps 1 --load " + quoted(save) + " >/dev/null 2>&1").c_str()) == 0;
  return r;
}

/// The expected exit code, and parts of the first line.
struct expectation {
  int code, id;
  std::map<std::size_t, std::string> arguments{};           // by number
  std::map<std::size_t, std::vector<std::string>> parts{};  // parts of arguments, by number
  std::string place{};                                      // text before the sentence
  double seconds = 5;
};

expectation expected(const trial& t) {
  const std::string number = std::to_string(t.rank), rank = "rank " + number,
                    step = "step " + std::to_string(faulty_step);
  const bool in_step = t.at != "after" && t.at != "save";
  const std::string place = in_step ? "in " + step : "between steps, after " + step,
                    op = in_step ? "op " + t.at : "op ";
  if (t.fault == "kill")
    return {.code = 137, .id = 5302, .arguments = {{0, number}, {3, "9"}}, .parts = {{5, {place, op}}}};
  if (t.fault == "abort")
    return {.code = 134, .id = 5302, .arguments = {{0, number}, {3, "6"}}, .parts = {{5, {place, op}}}};
  if (t.fault == "exit=0")
    return {.code = 70, .id = 5303, .arguments = {{0, number}, {3, "0"}}, .parts = {{4, {place, op}}}};
  if (t.fault == "exit=3")
    return {.code = 3, .id = 5303, .arguments = {{0, number}, {3, "3"}}, .parts = {{4, {place, op}}}};
  if (t.fault == "throw") return {.code = 70, .id = 5055, .place = in_step ? rank + ", " + step : ""};
  if (t.fault == "stop" && t.rank == 0)
    return {.code = 70, .id = 5329, .parts = {{0, {rank + " at "}}}, .seconds = 10};
  if (t.fault == "stop") return {.code = 70, .id = 5347, .parts = {{0, {rank + " ("}}}, .seconds = 10};
  if (t.fault == "delay=60")
    return {.code = 70, .id = 5353, .parts = {{0, {rank + " ("}}, {1, {"in " + step, op}}}, .seconds = 10};
  if (t.fault == "drop") return {.code = 70, .id = 5354, .parts = {{1, {rank + " ("}}}, .seconds = 10};
  return {.code = 70, .id = 5052, .place = rank + ", " + step, .seconds = 10};  // corrupt
}

/// The faults of a run; empty if there are none.
std::string complaint(const trial& t, const result& r) {
  const expectation e = expected(t);
  std::string wrong;
  if (r.code != e.code) wrong += " code " + std::to_string(r.code) + " for " + std::to_string(e.code) + ";";
  const rankc::test::said first = said_in(r.first, e.id);
  if (first.id == 0) wrong += " the first line has no RC" + std::to_string(e.id) + ";";
  const auto argument = [&](std::size_t i) {
    return i < first.arguments.size() ? first.arguments[i] : std::string();
  };
  for (const auto& [i, wanted] : e.arguments)
    if (argument(i) != wanted) wrong += " argument " + std::to_string(i) + " is not \"" + wanted + "\";";
  for (const auto& [i, parts] : e.parts)
    for (const std::string& part : parts)
      if (argument(i).find(part) == std::string::npos)
        wrong += " argument " + std::to_string(i) + " has no \"" + part + "\";";
  if (r.first.find(e.place) == std::string::npos) wrong += " the first line has no \"" + e.place + "\";";
  if (r.seconds > rankc::test::scaled(e.seconds).count())
    wrong += " it took " + std::to_string(r.seconds) + " s;";
  if (r.left_a_process) wrong += " a process is left;";
  if (!r.loads) wrong += " no checkpoint loads;";
  return wrong.empty() ? "" : wrong + "\n    " + r.err;
}

/// The action in which a rank issues a call of a step, from the place in an injected exception; empty past
/// the last call.
std::string action_at(const program& p, int rank, int op) {
  const scratch files;
  const std::string err = files.path("err"),
                    at = "rank=" + std::to_string(rank) + ",op=" + std::to_string(op);
  const int status =
      std::system((p.file + " train --steps 1 --inject " + at + ",step=1,throw >/dev/null 2>" + err).c_str());
  if (status == 0) return "";
  const std::string said = contents(err), before = "step 1, ";
  const std::size_t begin = said.find(before) + before.size();
  REQUIRE_MESSAGE(said.find(": RC5055: ") != std::string::npos, said);
  return said.substr(begin, said.find(": RC5055: ") - begin);
}

/// The calls of a rank's step by phase: forward, backward, gradient reductions and optimizer step. `0F2` is
/// in phase F.
using phases = std::map<std::string, std::vector<int>>;

/// Add the calls [first, last) by bisection: calls of one action are contiguous, so if both ends are in one
/// action, all are.
void add_phases(phases& into, const program& p, int rank, int first, int last, const std::string& at_first,
                const std::string& at_last) {
  if (at_first == at_last || last - first < 2) {
    for (int op = first; op < last && !at_first.empty(); ++op) {
      const std::size_t letter = at_first.find_first_not_of("0123456789");
      into[at_first.substr(letter, at_first.find_first_of("0123456789", letter) - letter)].push_back(op);
    }
    return;
  }
  const int middle = (first + last) / 2;
  const std::string at_middle = action_at(p, rank, middle);
  add_phases(into, p, rank, first, middle, at_first, at_middle);
  add_phases(into, p, rank, middle, last, at_middle, at_last);
}
phases phases_of(const program& p, int rank) {
  int last = 1;
  while (!action_at(p, rank, last).empty()) last *= 2;
  phases all;
  add_phases(all, p, rank, 1, last, action_at(p, rank, 1), "");
  return all;
}

const std::vector<std::string> kinds{"kill", "exit=0",   "abort", "throw",  "exit=3",
                                     "stop", "delay=60", "drop",  "corrupt"};

/// How many of the phases F, B, REDUCE_GRAD, STEP, after and save can show a fault. A fault that does not end
/// the process shows in later communication alone. A replica writes nothing in a save.
std::size_t count_phases(const std::string& fault, bool is_replica) {
  if (fault == "drop" || fault == "corrupt") return 2;
  const bool ends_at_once = fault == "kill" || fault == "abort" || fault.starts_with("exit");
  if (!ends_at_once) return 4;
  return is_replica ? 5 : 6;
}

/// Draw the wanted number of trials: kinds, phases and ranks alternate, and calls are spread over their
/// phase. Ranks of one pipeline stage issue the same calls.
std::vector<trial> draw(int wanted) {
  std::vector<std::vector<phases>> of(std::size(programs));  // by stage
  for (std::size_t p = 0; p < std::size(programs); ++p)
    for (int stage = 0; stage < 2; ++stage)
      of[p].push_back(phases_of(programs[p], stage * programs[p].world / 2));
  std::vector<trial> all;
  for (int i = 0; i < wanted; ++i) {
    const std::size_t which = i % 3 == 2 ? 1 : 0;
    const program& p = programs[which];
    const std::string& fault = kinds[static_cast<std::size_t>(i) % kinds.size()];
    const int round = i / static_cast<int>(kinds.size()), rank = (i / 3 + i) % p.world;
    const bool is_replica = rank % (p.world / 2) >= p.world / 4;
    std::vector<std::string> at{"F", "B", "REDUCE_GRAD", "STEP", "after", "save"};
    at.resize(count_phases(fault, is_replica));
    const std::string& phase = at[static_cast<std::size_t>(round) % at.size()];
    if (phase == "after" || phase == "save") {
      all.push_back({&p, rank, phase, fault});
      continue;
    }
    const std::vector<int>& calls = of[which][static_cast<std::size_t>(rank / (p.world / 2))].at(phase);
    all.push_back({&p, rank,
                   std::to_string(calls[static_cast<std::size_t>(round) * 37 % 100 * calls.size() / 100]),
                   fault});
  }
  return all;
}

}  // namespace

TEST_CASE("faults on purpose: the cause is named, all end in time, nothing is left, and a checkpoint loads") {
  const char* wanted = std::getenv("RANKC_FAULT_RUNS");
  const std::vector<trial> trials = draw(wanted != nullptr ? std::atoi(wanted) : 40);
  const std::set<std::string> at_first = shared_memory();
  std::atomic<std::size_t> next = 0;
  std::mutex one;
  std::map<std::string, std::vector<double>> times;  // by kind
  int wrong = 0;
  std::vector<std::thread> workers;
  for (int w = 0; w < RANKC_FAULTS_AT_ONCE; ++w)
    workers.emplace_back([&] {
      for (std::size_t i; (i = next++) < trials.size();) {
        const result r = run(trials[i]);
        const std::string bad = complaint(trials[i], r);
        const std::lock_guard lock(one);
        times[trials[i].fault].push_back(r.seconds);
        wrong += !bad.empty();
        if (!bad.empty())
          std::printf("%d ranks, rank=%d,op=%s,%s:%s\n", trials[i].of->world, trials[i].rank,
                      trials[i].at.c_str(), trials[i].fault.c_str(), bad.c_str());
      }
    });
  for (std::thread& t : workers) t.join();
  // No process is left, so no port is open. Other tests that run concurrently may have shared memory.
  if (wanted != nullptr) CHECK(shared_memory() == at_first);
  std::printf("fault      runs  median s  longest s\n");
  for (auto& [kind, seconds] : times) {
    std::sort(seconds.begin(), seconds.end());
    std::printf("%-9s %5zu %9.2f %10.2f\n", kind.c_str(), seconds.size(), seconds[seconds.size() / 2],
                seconds.back());
  }
  CHECK(wrong == 0);
  CHECK(times.size() == kinds.size());
}

TEST_CASE("faults on purpose: where ranks are threads, one that hangs is named, and the process ends") {
  const scratch files;
  const std::string err = files.path("err");
  const auto start = std::chrono::steady_clock::now();
  const int status =
      std::system((within("RANKC_STEP_TIMEOUT=", 0.5) + within("timeout -k 1 ", 30) + programs[0].file +
                   " train --steps 4 --inject rank=2,op=30,step=3,delay=60 >/dev/null 2>" + err)
                      .c_str());
  CHECK(WEXITSTATUS(status) == 70);
  CHECK(std::chrono::steady_clock::now() - start < rankc::test::scaled(5));
  const std::string said = contents(err);
  CAPTURE(said);
  CHECK(said.starts_with("faults_four: RC5354: "));
  CHECK(said_in(said, 5353) == rankc::test::said{5353, {"rank 2", "in step 3 at 1STEP, op 30"}});
  const auto waits = said_in(said, 5351).arguments;
  REQUIRE(waits.size() == 5);
  CHECK(waits[0] == "2");
  CHECK(waits[1] == "0 and 3");
  CHECK(waits[2] == "0");
  CHECK(waits[3].starts_with("in step 3 at 0STEP, op "));
  CHECK(std::count(said.begin(), said.end(), '\n') == 1);
}

TEST_CASE(
    "faults on purpose: a weight that changes on one of the ranks that hold it is found after the step") {
  for (const char* launch : {"threads", "processes"}) {
    const scratch files;
    const std::string err = files.path("err");
    const int status = std::system((programs[0].file + " train --steps 4 --check-replicas 1 --launch " +
                                    launch + " --inject rank=3,op=after,step=3,flip >/dev/null 2>" + err)
                                       .c_str());
    CHECK(WEXITSTATUS(status) == 70);
    const std::string said = contents(err);
    CAPTURE(said);
    CHECK(said.find("faults_four: RC6590: ") != std::string::npos);
    const std::vector<std::string> arguments = rankc::test::said_in(said, 6590).arguments;
    REQUIRE(arguments.size() == 5);
    CHECK(arguments[0] == "3");
    CHECK(arguments[1] == "weights");
    CHECK(arguments[3] == "2 and 3");
    CHECK(arguments[4] == "rank 2 and rank 3");
  }
}

TEST_CASE("faults on purpose: a number that is none leaves the step unapplied, and its place is named") {
  const scratch files;
  const std::string err = files.path("err");
  const int status =
      std::system((programs[0].file +
                   " train --steps 4 --launch processes --inject rank=2,op=5,step=3,nan >/dev/null 2>" + err)
                      .c_str());
  CHECK(WEXITSTATUS(status) == 70);
  const std::string said = contents(err);
  const std::vector<std::string> arguments = rankc::test::said_in(said, 6565).arguments;
  REQUIRE(arguments.size() == 6);
  CHECK(arguments[0] == "3");
  CHECK(arguments[4].starts_with("rank 2, 1F0, op 5, "));
  CHECK(arguments[5] == "3:3");
}
