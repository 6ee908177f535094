// SPDX-License-Identifier: Apache-2.0
// Launchers without GPUs: which rank their variables make of a process, and the processes that a program starts itself.
#include <rankc/runtime/tools/launch.hpp>

#include "fake_engine.hpp"
#include "scratch.hpp"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <map>
#include <set>
#include <thread>

using namespace rankc::runtime;

namespace {

/// Exactly these of the variables that a launcher may set, while this lives.
class variables {
 public:
  using values = std::map<std::string, std::string>;
  explicit variables(const values& now) {
    for (const char* name : names) unsetenv(name);
    for (const auto& [name, value] : now) {
      REQUIRE(std::count(std::begin(names), std::end(names), name) == 1);
      setenv(name.c_str(), value.c_str(), 1);
    }
  }
  ~variables() {
    for (const char* name : names) unsetenv(name);
  }
  variables(const variables&) = delete;

 private:
  static constexpr const char* names[] = {
      "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_USE_AGENT_STORE",
      "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", "PMIX_NAMESPACE",
      "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_NUM_NODES", "SLURM_JOB_ID",
      "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "PMI_PORT", "MASTER_ADDR", "MASTER_PORT"};
};

const fake_program eight(2, 2, 2);

std::string refusal_with(const variables::values& now) {
  const variables set(now);
  return refusal_of([] { launched_placement(eight.about); });
}

variables::values changed(variables::values values, const std::string& name, const std::string& value) {
  values[name] = value;
  return values;
}

variables::values without(variables::values values, const std::string& name) {
  values.erase(name);
  return values;
}

const variables::values torchrun{{"RANK", "5"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "1"}, {"LOCAL_WORLD_SIZE", "4"},
                                 {"TORCHELASTIC_RUN_ID", "a"}, {"MASTER_ADDR", "node0"}, {"MASTER_PORT", "29500"}};

}  // namespace

TEST_CASE("a process that no launcher has started has no place") {
  for (const variables::values& now : {variables::values{}, {{"WORLD_SIZE", "1"}, {"RANK", "0"}}, {{"SLURM_JOB_ID", "7"}, {"SLURM_PROCID", "0"}}}) {
    const variables set(now);
    CHECK_FALSE(launched_placement(eight.about));
    CHECK(refusal_of([] { refuse_launchers(); }) == "nothing was thrown");
  }
}

TEST_CASE("each launcher's variables: the rank among all, the device among those of its machine, and where they meet") {
  struct row {
    variables::values now;
    std::string world, meeting;
  };
  const row rows[]{
      {torchrun, "WORLD_SIZE", "node0:29500"},
      {changed(torchrun, "TORCHELASTIC_USE_AGENT_STORE", "True"), "WORLD_SIZE", "node0:29501"},
      {{{"OMPI_COMM_WORLD_RANK", "5"}, {"OMPI_COMM_WORLD_SIZE", "8"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
        {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"}, {"PMIX_NAMESPACE", "x"}, {"MASTER_ADDR", "10.0.0.1"}, {"MASTER_PORT", "5000"}},
       "OMPI_COMM_WORLD_SIZE", "10.0.0.1:5000"},
      {{{"SLURM_PROCID", "5"}, {"SLURM_STEP_NUM_TASKS", "8"}, {"SLURM_LOCALID", "1"}, {"SLURM_STEP_NUM_NODES", "2"},
        {"SLURM_JOB_ID", "7"}, {"MASTER_ADDR", "n1"}, {"MASTER_PORT", "5001"}},
       "SLURM_STEP_NUM_TASKS", "n1:5001"},
      {{{"PMI_RANK", "5"}, {"PMI_SIZE", "8"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "4"}, {"MASTER_ADDR", "n2"},
        {"MASTER_PORT", "5002"}},
       "PMI_SIZE", "n2:5002"}};
  for (const row& r : rows) {
    CAPTURE(r.meeting);
    const variables set(r.now);
    const auto where = launched_placement(eight.about);
    REQUIRE(where);
    CHECK(where->rank == 5);
    CHECK(where->device == 1);
    CHECK(where->meeting == r.meeting);
    CHECK(where->is_one_rank());
    CHECK(refusal_of([] { refuse_launchers(); }) ==
          "2: " + r.world + " is 8: this version runs all ranks in one process; start it once, without torchrun, mpirun or srun");
  }
}

TEST_CASE("the processes of a job on one machine meet there, at a port that the job's name gives") {
  const variables::values one{{"SLURM_PROCID", "3"}, {"SLURM_STEP_NUM_TASKS", "8"}, {"SLURM_LOCALID", "3"},
                              {"SLURM_STEP_NUM_NODES", "1"}, {"SLURM_JOB_ID", "7"}};
  const auto meeting = [](const variables::values& now) {
    const variables set(now);
    return launched_placement(eight.about)->meeting;
  };
  std::set<std::string> of_ranks, of_jobs;
  for (const char* rank : {"0", "3", "7"}) of_ranks.insert(meeting(changed(one, "SLURM_PROCID", rank)));
  CHECK(of_ranks.size() == 1);
  for (const char* job : {"7", "8", "9", "70"}) of_jobs.insert(meeting(changed(one, "SLURM_JOB_ID", job)));
  CHECK(of_jobs.size() == 4);
  for (const std::string& at : of_jobs) {
    REQUIRE(at.starts_with("127.0.0.1:"));
    const int port = std::stoi(at.substr(10));
    CHECK(port >= 20000);
    CHECK(port < 40000);
  }
  const variables::values torch{{"RANK", "3"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "3"}, {"LOCAL_WORLD_SIZE", "8"}};
  CHECK(meeting(torch).starts_with("127.0.0.1:"));
  const std::string nowhere = "2: MASTER_ADDR: is not set, and the ranks are on several machines; set it to the address of rank 0's machine, "
                              "and MASTER_PORT to a free port there";
  CHECK(refusal_with(changed(torch, "LOCAL_WORLD_SIZE", "4")) == nowhere);
  CHECK(refusal_with(without(torch, "LOCAL_WORLD_SIZE")) == nowhere);
  CHECK(refusal_with(changed(one, "SLURM_STEP_NUM_NODES", "2")) == nowhere);
  CHECK(refusal_with(without(one, "SLURM_STEP_NUM_NODES")) == nowhere);
}

TEST_CASE("variables that contradict the plan, or are no numbers, are named") {
  CHECK(refusal_with(changed(torchrun, "WORLD_SIZE", "4")) ==
        "2: WORLD_SIZE is 4: the plan has 8 ranks (pp 2, dp 2, tp 2); start as many processes");
  CHECK(refusal_with(changed(torchrun, "WORLD_SIZE", "16")) ==
        "2: WORLD_SIZE is 16: the plan has 8 ranks (pp 2, dp 2, tp 2); start as many processes");
  CHECK(refusal_with(changed(torchrun, "RANK", "7")) == "nothing was thrown");
  CHECK(refusal_with(changed(torchrun, "RANK", "8")) == "2: RANK is 8: ranks are 0 to 7");
  CHECK(refusal_with(changed(torchrun, "RANK", "9")) == "2: RANK is 9: ranks are 0 to 7");
  for (const char* name : {"RANK", "LOCAL_RANK"}) {
    const std::string unset = "2: " + std::string(name) +
                              ": the launcher has not set it to a number; start the program with torchrun, mpirun or srun, or with "
                              "--launch processes";
    for (const char* value : {"-1", "", "x", "1.5", "1 "}) CHECK(refusal_with(changed(torchrun, name, value)) == unset);
    CHECK(refusal_with(without(torchrun, name)) == unset);
  }
}

TEST_CASE("a process that a launcher stops ends as a victim") {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    end_as_victim_on_sigterm();
    raise(SIGTERM);
    _exit(0);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 77);
}

namespace {

void wait_for_everyone(const std::string& folder) {
  for (const char* rank : {"0", "1", "2"})
    while (contents(folder + "/" + rank).empty()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

}  // namespace

// What launch_processes starts is this executable again, with this test case alone; RANKC_TEST_LAUNCH says what it does.
TEST_CASE("one of the processes" * doctest::skip()) {
  std::signal(SIGTERM, SIG_DFL);
  const std::string what = std::getenv("RANKC_TEST_LAUNCH"), rank = std::getenv("RANK"), folder = std::getenv("RANKC_TEST_FOLDER");
  std::string said;
  for (const char* name : {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"})
    said += std::string(std::getenv(name)) + " ";
  std::ofstream(folder + "/" + rank) << said;
  if (what == "succeed") _exit(0);
  if (rank == "1") {
    wait_for_everyone(folder);
    if (what == "fail") _exit(3);
    if (what == "die") raise(SIGKILL);
  }
  std::this_thread::sleep_for(std::chrono::seconds(60));
  _exit(0);
}

namespace {

struct launched {
  int code;
  double seconds;
  std::vector<std::string> said;  // by each rank
};
launched launch(const char* what, int stop_with = 0) {
  const scratch files;
  const fake_program three(3, 1, 1);
  const auto start = std::chrono::steady_clock::now();
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const variables none({});
    setenv("RANKC_TEST_LAUNCH", what, 1);
    setenv("RANKC_TEST_FOLDER", files.path().c_str(), 1);
    char name[] = "test", only[] = "-tc=one of the processes", skipped[] = "-ns", quiet[] = "-m";
    char* argv[] = {name, only, skipped, quiet, nullptr};
    _exit(launch_processes(three.about, argv));
  }
  if (stop_with != 0) {
    wait_for_everyone(files.path());
    kill(child, stop_with);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  launched l{WEXITSTATUS(status), std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), {}};
  for (const char* rank : {"0", "1", "2"}) l.said.push_back(contents(files.path(rank)));
  return l;
}

}  // namespace

TEST_CASE("a program starts itself once for each rank, and tells each which it is") {
  const launched l = launch("succeed");
  CHECK(l.code == 0);
  const std::string meeting = l.said[0].substr(std::string("0 0 3 3 ").size());
  CHECK(meeting.starts_with("127.0.0.1 "));
  CHECK(std::stoi(meeting.substr(10)) > 0);
  for (const std::string rank : {"0", "1", "2"}) CHECK(l.said[std::stoul(rank)] == rank + " " + rank + " 3 3 " + meeting);
}

TEST_CASE("the process that fails first gives the exit code, and the others are stopped") {
  for (const auto& [what, code] : {std::pair{"fail", 3}, {"die", 128 + SIGKILL}}) {
    CAPTURE(what);
    const launched l = launch(what);
    CHECK(l.code == code);
    CHECK(l.seconds < 8);  // after 10 they would be killed, after 60 they would end
  }
  for (const int signal : {SIGTERM, SIGINT}) {
    const launched l = launch("wait", signal);
    CHECK(l.code == 128 + signal);
    CHECK(l.seconds < 8);
  }
}
