// SPDX-License-Identifier: Apache-2.0
// Signals x moments x launches. Each run ends in time with an exit code of runtime/exit_codes.md, leaves
// no process, and has saved a complete checkpoint if training had begun. RANKC_TEST_EVERY=N selects each N-th
// run.
#include "program_runs.hpp"

#include <doctest/doctest.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <map>
#include <set>

#ifdef RANKC_INJECT
namespace {

using namespace rankc::test;
namespace fs = std::filesystem;

enum class moment { start, rendezvous, step, save, end };
enum class launch { threads, processes, torchrun };
constexpr const char* moment_names[]{"start", "rendezvous", "step", "save", "end"};
constexpr const char* launch_names[]{"threads", "processes", "torchrun"};

/// Signals that are sent in quick succession.
struct telling {
  const char* name;
  std::vector<int> signals;
};
const std::vector<telling> tellings{
    {"INT", {SIGINT}},   {"TERM", {SIGTERM}}, {"HUP", {SIGHUP}},   {"USR1", {SIGUSR1}},
    {"XCPU", {SIGXCPU}}, {"PIPE", {SIGPIPE}}, {"QUIT", {SIGQUIT}}, {"TERM and INT", {SIGTERM, SIGINT}}};

/// The processes of one run that the test itself starts: a single one, or one per rank as torchrun does.
class job {
 public:
  job(const scratch& files, std::vector<std::string> words, launch how, moment when) : files_(files) {
    words.insert(words.begin(), program);
    if (how == launch::processes) words.insert(words.end(), {"--launch", "processes"});
    // At the rendezvous, rank 0 alone waits for the other one.
    const int ranks = how == launch::torchrun && when != moment::rendezvous ? 2 : 1;
    const std::string port = std::to_string(free_port());
    int executed[2];  // stays open in a child until it runs the program
    REQUIRE(pipe2(executed, O_CLOEXEC) == 0);
    for (int rank = 0; rank < ranks; ++rank) {
      const pid_t child = fork();
      REQUIRE(child >= 0);
      if (child == 0) become(words, how == launch::torchrun, rank, port);
      processes_.push_back(child);
    }
    close(executed[1]);
    char none;
    while (read(executed[0], &none, 1) < 0 && errno == EINTR) continue;
    close(executed[0]);
  }
  ~job() {
    for (const pid_t p : processes_) ::kill(-p, SIGKILL);
    for (const pid_t p : processes_) waitpid(p, nullptr, 0);
  }
  job(const job&) = delete;

  void tell(int signal) const {
    for (const pid_t p : processes_) ::kill(p, signal);
  }

  /// Wait until all processes have ended. Returns: their codes, 128 + n if signal n ended one; empty if one
  /// is still running.
  std::set<int> wait(std::chrono::duration<double> limit) {
    std::set<int> codes;
    const auto until = clock_of_test::now() + limit;
    while (!processes_.empty() && clock_of_test::now() < until) {
      int status = 0;
      const pid_t ended = waitpid(processes_.back(), &status, WNOHANG);
      if (ended == 0) {
        std::this_thread::sleep_for(2ms);
        continue;
      }
      codes.insert(WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status));
      groups_.push_back(processes_.back());
      processes_.pop_back();
    }
    return processes_.empty() ? codes : std::set<int>();
  }

  bool has_ended() const {
    return std::ranges::all_of(processes_, [](pid_t p) {
      siginfo_t info{};
      return waitid(P_PID, static_cast<id_t>(p), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == p;
    });
  }

  /// Whether a process of the run is alive a second after its end.
  bool left_a_process() const {
    const auto until = clock_of_test::now() + scaled(1);
    const auto is_left = [](pid_t group) { return ::kill(-group, 0) == 0; };
    while (std::ranges::any_of(groups_, is_left)) {
      if (clock_of_test::now() > until) return true;
      std::this_thread::sleep_for(5ms);
    }
    return false;
  }

 private:
  [[noreturn]] void become(std::vector<std::string> words, bool is_rank, int rank,
                           const std::string& port) const {
    setpgid(0, 0);
    for (const auto& [file, descriptor] : {std::pair{"out", STDOUT_FILENO}, {"err", STDERR_FILENO}})
      if (dup2(open(files_.path(file).c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666), descriptor) < 0)
        _exit(1);
    if (is_rank) {
      const std::string number = std::to_string(rank);
      for (const auto& [name, value] :
           std::map<const char*, std::string>{{"RANK", number},
                                              {"LOCAL_RANK", number},
                                              {"WORLD_SIZE", "2"},
                                              {"LOCAL_WORLD_SIZE", "2"},
                                              {"MASTER_ADDR", "127.0.0.1"},
                                              {"MASTER_PORT", port},
                                              {"RANKC_SECRET", std::string(32, 'a')}})
        setenv(name, value.c_str(), 1);
    }
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    execv(argv[0], argv.data());
    _exit(1);
  }

  const scratch& files_;
  std::vector<pid_t> processes_, groups_;  // groups_: process groups of ended processes
};

/// The arguments of a run in which the moment lasts long enough. An injected delay holds up a save.
std::vector<std::string> words_for(const scratch& files, moment when) {
  const std::string step = when == moment::end ? "3" : "2",
                    held = "rank=0,op=save,step=" + step + ",delay=" + std::to_string(scaled(0.5).count());
  std::vector<std::string> words{"train",  "--metrics",        files.path("metrics"),
                                 "--save", files.path("save"), "--steps"};
  words.push_back(when == moment::end ? "3" : "1000000");
  if (when == moment::save) words.insert(words.end(), {"--save-every", "2"});
  if (when >= moment::save) words.insert(words.end(), {"--inject", held});
  return words;
}

void wait_for(const scratch& files, moment when) {
  if (when == moment::start) return std::this_thread::sleep_for(3ms);
  if (when == moment::rendezvous) return std::this_thread::sleep_for(scaled(0.2));
  const int lines = when == moment::step ? 1 : static_cast<int>(when) - 1;
  const auto until = clock_of_test::now() + scaled(20);
  while (std::ranges::count(contents(files.path("metrics")), '\n') < lines && clock_of_test::now() < until)
    std::this_thread::sleep_for(2ms);
  if (when >= moment::save) std::this_thread::sleep_for(scaled(0.1));
}

struct trial {
  const telling* told;
  moment when;
  launch how;
};

/// The codes with which a run may end.
std::set<int> codes_of(const trial& t) {
  std::set<int> codes;
  for (const int signal : t.told->signals) codes.insert(128 + signal);
  if (t.told->signals.front() == SIGPIPE && t.when != moment::start) codes = {128 + SIGTERM};
  if (t.told->signals.front() == SIGPIPE && t.when == moment::start) codes.insert(128 + SIGTERM);
  // Other launchers than rankc's send SIGTERM if another rank has failed.
  if (t.how == launch::torchrun && t.when <= moment::rendezvous) codes.insert(77);
  if (t.when == moment::end) codes.insert(0);
  return codes;
}

std::string text_of(const std::set<int>& codes) {
  std::string text;
  for (const int code : codes) text += " " + std::to_string(code);
  return text;
}

/// The faults of a run; empty if there are none.
std::string complaint(const trial& t) {
  const scratch files;
  job r(files, words_for(files, t.when), t.how, t.when);
  wait_for(files, t.when);
  for (const int signal : t.told->signals) r.tell(signal);
  std::string wrong;
  if (t.told->signals.front() == SIGPIPE) {
    std::this_thread::sleep_for(100ms);
    if (r.has_ended() && t.when != moment::start && t.when != moment::end) wrong += " it ended by SIGPIPE;";
    r.tell(SIGTERM);
  }
  const std::set<int> allowed = codes_of(t), codes = r.wait(scaled(8));
  if (codes.empty()) wrong += " it did not end;";
  for (const int code : codes)
    if (!allowed.contains(code)) wrong += " code " + std::to_string(code) + " for" + text_of(allowed) + ";";
  if (r.left_a_process()) wrong += " a process is left;";
  const bool saves = t.when >= moment::step && t.told->signals.front() != SIGQUIT;
  bool is_saved = false;
  if (fs::exists(files.path("save")))
    for (const auto& entry : fs::directory_iterator(files.path("save")))
      is_saved |= fs::exists(entry.path() / "COMMIT");
  if (saves && !is_saved) wrong += " nothing is saved;";
  return wrong.empty() ? "" : wrong + "\n    " + contents(files.path("err"));
}

}  // namespace

TEST_CASE("signal_matrix: signals x moments x launches") {
  const char* set = std::getenv("RANKC_TEST_EVERY");
  const int every = set != nullptr ? std::atoi(set) : 1;
  int next = 0, runs = 0, wrong = 0;
  for (const telling& told : tellings)
    for (const moment when : {moment::start, moment::rendezvous, moment::step, moment::save, moment::end})
      for (const launch how : {launch::threads, launch::processes, launch::torchrun}) {
        if (next++ % every != 0) continue;
        const std::string bad = complaint({&told, when, how});
        ++runs;
        wrong += !bad.empty();
        if (!bad.empty())
          std::printf("%s, %s, %s:%s\n", told.name, moment_names[static_cast<int>(when)],
                      launch_names[static_cast<int>(how)], bad.c_str());
      }
  std::printf("%d runs of %d\n", runs, next);
  CHECK(wrong == 0);
}
#endif
