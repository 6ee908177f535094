// SPDX-License-Identifier: Apache-2.0
// How the ranks of a program on the host start together as processes, and how a wrong start is reported.
#include "../../said.hpp"
#include "program_runs.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <sched.h>
#include <algorithm>
#include <fstream>
#include <set>

namespace {

using namespace rankc::test;
namespace fs = std::filesystem;

/// While it lives, started programs use one core. On a busy machine, OpenBLAS threads that spin for each
/// other would take seconds for a step.
class one_core {
 public:
  one_core() {
    sched_getaffinity(0, sizeof all_, &all_);
    cpu_set_t first;
    CPU_ZERO(&first);
    for (int cpu = 0; CPU_COUNT(&first) == 0; ++cpu)
      if (CPU_ISSET(cpu, &all_)) CPU_SET(cpu, &first);
    sched_setaffinity(0, sizeof first, &first);
  }
  ~one_core() { sched_setaffinity(0, sizeof all_, &all_); }
  one_core(const one_core&) = delete;

 private:
  cpu_set_t all_;
};

/// Start both ranks by hand, each with a prefix.
std::string by_hand(const std::string& first, const std::string& second, const std::string& words, int port) {
  const std::string common =
      "export WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 RANKC_JOIN_TIMEOUT=10 "
      "RANKC_SECRET=${RANKC_SECRET-00112233445566778899aabbccddeeff} MASTER_PORT=" +
      std::to_string(port);
  return common + "\nRANK=1 LOCAL_RANK=1 " + second + words + " &\nRANK=0 LOCAL_RANK=0 " + first + words +
         "\ncode=$?\nwait $!\necho $? >&2\nexit $code";
}

/// Sanitizers reserve terabytes of address space, and must be loaded before other libraries.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool is_sanitized = true;
#else
constexpr bool is_sanitized = false;
#endif

/// Run one step with `kib` KiB of address space. It must train, or end with one line that names the limit.
outcome run_limited(const scratch& files, const std::string& kib, const std::string& started) {
  const outcome limited =
      run(files, "ulimit -v " + kib + "\ntimeout -s KILL 30 " + started + " train --steps 1");
  CAPTURE(kib);
  CAPTURE(limited.err);
  if (limited.code == 0) return limited;
  CHECK(limited.code == 70);
  CHECK(std::ranges::count(limited.err, '\n') == 1);
  for (const char* part : {"ulimit -v allows ", "this process has "})
    CHECK(limited.err.find(part) != std::string::npos);
  return limited;
}

}  // namespace

TEST_CASE("starts: another world, plan, binary or job is refused, and what differs is said once") {
  const scratch files;
  const int port = free_port();
  const std::string train = " train --steps 1";
  const outcome world = run(files, "RANK=0 LOCAL_RANK=0 WORLD_SIZE=3 " + program + train);
  CHECK(world.code == 2);
  CHECK(world.err.starts_with("gpt_pp2: RC5334: "));
  CHECK(said_in(world.err) == said{5334, {"WORLD_SIZE", "3", "2", "2", "1", "1", "1"}});

  const outcome plan = run(files, by_hand(program, other_plan, train, port));
  CAPTURE(plan.err);
  CHECK(plan.code == 2);
  const auto plans = said_in(plan.err, 5323).arguments;
  REQUIRE(plans.size() == 8);
  CHECK(plans[0].starts_with("rank 1 ("));
  CHECK(plans[4] == "1");
  CHECK(plans[5].starts_with("plan gpt_gated: pp 1, dp 1, tp 2, "));
  CHECK(plans[6] == "0");
  CHECK(plans[7].starts_with("plan gpt_pp2: pp 2, dp 1, tp 1, "));
  const auto of_file = said_in(plan.err, 5320).arguments;
  REQUIRE(of_file.size() == 5);
  CHECK(of_file[0] == "the proven program");
  CHECK(of_file[1].starts_with("rank 1 ("));
  CHECK(plan.err.ends_with("\n2\n"));
  CHECK(std::count(plan.err.begin(), plan.err.end(), '\n') == 2);  // one message, and rank 1's code

  const std::string late = "TORCHELASTIC_RESTART_COUNT=1 RANKC_JOIN_TIMEOUT=5 " + program,
                    other = "RANKC_JOIN_TIMEOUT=3 " + program;
  const outcome job = run(files, by_hand(late, other, train, port));
  CAPTURE(job.err);
  CHECK(job.code == 75);
  CHECK(said_in(job.err, 5325).arguments.at(1) == std::to_string(port));
  const auto missing = said_in(job.err, 5317).arguments;
  REQUIRE(missing.size() == 2);
  CHECK(missing[0] == "1");
  CHECK(missing[1].starts_with("1 of "));
  CHECK(said_in(job.err, 5363).arguments.at(2) == "1");
  CHECK(job.err.ends_with("\n75\n"));

  const outcome alone =
      run(files, "RANK=1 LOCAL_RANK=1 WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 RANKC_JOIN_TIMEOUT=1 MASTER_PORT=" +
                     std::to_string(port) + " " + program + train);
  CHECK(alone.code == 75);
  CHECK(alone.err.starts_with("gpt_pp2: RC5337: "));
  auto unanswered = said_in(alone.err).arguments;
  REQUIRE(unanswered.size() == 6);
  unanswered.resize(4);
  CHECK(unanswered == std::vector<std::string>{"127.0.0.1", std::to_string(port), "127.0.0.1", "1"});
}

TEST_CASE("starts: another build of the same program joins, and a note says so") {
  const scratch files;
  const std::string copy = files.path("copy");
  fs::copy_file(program, copy);
  std::ofstream(copy, std::ios::app) << "x";
  const outcome both = run(files, by_hand(program, copy, " train --steps 1", free_port()));
  CAPTURE(both.err);
  CHECK(both.code == 0);
  CHECK(both.err.starts_with("gpt_pp2: note: RC5364: "));
  CHECK(said_in(both.err).arguments.at(0).starts_with("rank 1 ("));
}

TEST_CASE("starts: without a secret a note says what the job is known by; other secrets do not meet") {
  const scratch files;
  const std::string train = " train --steps 1";
  const auto without_secret = [&](const std::string& job) {
    const std::string script = by_hand(program, program, train, free_port());
    return run(files, job + std::string(script).insert(script.find('\n'), "\nunset RANKC_SECRET"));
  };
  const outcome unnamed = without_secret("");
  CHECK(unnamed.code == 0);
  CHECK(said_in(unnamed.err) == said{5371, {"torchrun", std::to_string(free_port())}});
  const outcome named = without_secret("export RANKC_JOB=mine\n");
  CHECK(named.code == 0);
  CHECK(said_in(named.err) == said{5370, {"mine", std::to_string(free_port())}});

  const std::string other = "RANKC_JOIN_TIMEOUT=2 RANKC_SECRET=ffeeddccbbaa99887766554433221100 " + program;
  const outcome apart = run(files, by_hand("RANKC_JOIN_TIMEOUT=3 " + program, other, train, free_port()));
  CAPTURE(apart.err);
  CHECK(apart.code == 75);
  CHECK(said_in(apart.err, 5325).id == 5325);
  CHECK(apart.err.ends_with("\n75\n"));
  CHECK(apart.err.find("ffeedd") == std::string::npos);
}

TEST_CASE("starts: --launch wins over variables of a launcher, and names them") {
  const scratch files;
  const std::string half = "WORLD_SIZE=2 RANK=0 ", whole = half + "LOCAL_RANK=0 MASTER_ADDR=no.such.host ",
                    mpi = "OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=1 ",
                    own = "RANKC_WORLD=2 RANKC_RANK=1 RANKC_LISTENS_ON=99 ", train = " train --steps 1";
  const auto note = [&](const std::string& variables, const std::string& way) {
    const outcome started = run(files, variables + program + train + " --launch " + way);
    CAPTURE(started.err);
    CHECK(started.code == 0);
    CHECK(started.out.find("weights: ") != std::string::npos);
    CHECK(std::count(started.err.begin(), started.err.end(), '\n') == 1);
    return said_in(started.err);
  };
  CHECK(note(half, "threads") == said{5372, {"threads", "RANK", "0", "WORLD_SIZE", "2", "torchrun"}});
  CHECK(note(whole, "processes") == said{5372, {"processes", "RANK", "0", "WORLD_SIZE", "2", "torchrun"}});
  CHECK(note(mpi, "processes") ==
        said{5372, {"processes", "OMPI_COMM_WORLD_RANK", "1", "OMPI_COMM_WORLD_SIZE", "2", "Open MPI"}});
  CHECK(note(own, "processes") == said{5372, {"processes", "RANKC_RANK", "1", "RANKC_WORLD", "2", "rankc"}});
  const outcome by_variables = run(files, half + program + train);
  CHECK(by_variables.code == 2);
  CHECK(said_in(by_variables.err) == said{5311, {"WORLD_SIZE", "LOCAL_RANK", "WORLD_SIZE"}});
}

TEST_CASE("starts: a plan of one rank has one process, which starts no other, for every command") {
  const scratch files;
  const one_core narrow;
  const std::string limited = one_rank + " ", apart = " --launch processes", save = files.path("save");
  const outcome trained = run(files, limited + "train --steps 2 --save " + save + apart);
  CAPTURE(trained.err);
  CHECK(trained.code == 0);
  CHECK(trained.err.empty());
  const std::string of_threads = run(files, one_rank + " eval --steps 2 --load " + save).out;
  const outcome evaluated = run(files, limited + "eval --steps 2 --load " + save + apart);
  CHECK(evaluated.code == 0);
  CHECK(evaluated.out == of_threads);
  CHECK(run(files, limited + "describe --measured" + apart).code == 0);
  for (const char* words : {"generate --load x", "export --load x --out y"})  // these commands start no ranks
    CHECK(run(files, limited + words + apart).code == 2);

  const outcome inner = run(files, "RANKC_SPAWNED=1 " + limited + "train --steps 1" + apart);
  CHECK(inner.code == 2);
  CHECK(inner.err.starts_with("gpt_one_rank: RC5341: "));
  CHECK(said_in(inner.err) == said{5341, {"RANKC_SPAWNED"}});
}

TEST_CASE("starts: the launcher ends with its ranks where its parent ignores SIGCHLD") {
  const scratch files;
  running job(files, {.words = {"train", "--steps", "3"}, .before = [] { signal(SIGCHLD, SIG_IGN); }});
  const running::end ended = job.wait();
  CHECK(ended.code == 0);
  CHECK(ended.all_gone);
}

TEST_CASE("starts: a run that may not have its memory ends with one line, and does not loop" *
          doctest::skip(is_sanitized)) {
  const scratch files;
  std::set<int> causes;
  for (const char* kib : {"150000", "300000", "400000", "500000", "530000", "900000"}) {
    const outcome limited = run_limited(files, kib, program);
    if (limited.code != 0) causes.insert(said_in(limited.err).id);  // libraries differ between machines
  }
  CHECK(std::ranges::includes(std::set{5025, 5026, 6098}, causes));
  CHECK(causes.contains(5025));
}

TEST_CASE("starts: ranks as processes that may not have their memory end with sentences" *
          doctest::skip(is_sanitized)) {
  const scratch files;
  for (const char* kib : {"60000", "80000", "90000", "100000", "110000", "130000", "150000"}) {
    CAPTURE(kib);
    const outcome limited = run(files, std::string("ulimit -v ") + kib + "\ntimeout -s KILL 30 " + program +
                                           " train --steps 1 --launch processes");
    CAPTURE(limited.err);
    CHECK((limited.code == 70 || limited.code == 75));
    CHECK(said_in(limited.err).id != 0);
    CHECK(limited.err.find("terminate called") == std::string::npos);
  }
}

TEST_CASE("starts: with 32 cores and limited memory OpenBLAS starts the threads that the limit allows" *
          doctest::skip(is_sanitized)) {
  const scratch files;
  const std::string with_cores = "env LD_PRELOAD=" RANKC_TEST_MANY_CORES " ";
  const std::string counted = with_cores + "bash -c 'test $(nproc) = 32 && exec \"$0\" \"$@\"' " + program;
  CHECK(run_limited(files, "150000", counted).code == 70);
  CHECK(run_limited(files, "300000", counted).code == 70);
  CHECK(run_limited(files, "900000", counted).code == 0);
  CHECK(run_limited(files, "2000000", counted).code == 0);
  CHECK(run_limited(files, "2000000", with_cores + "OPENBLAS_NUM_THREADS=3 " + program).code == 0);
}

TEST_CASE("starts: ranks that cannot be started say why" * doctest::skip(is_sanitized)) {
  const scratch files;
  const outcome none = run(files, "env RANKC_TEST_NO_EXEC=1 LD_PRELOAD=" RANKC_TEST_MANY_CORES " " + program +
                                      " train --steps 1 --launch processes");
  CAPTURE(none.err);
  CHECK(none.code == 75);
  CHECK(said_in(none.err, 6326).id == 6326);
  CHECK(said_in(none.err, 6326).arguments.at(1) == "No such file or directory");
}

TEST_CASE("starts: a launcher that cannot learn how its ranks ended says so" * doctest::skip(is_sanitized)) {
  const scratch files;
  const outcome unknown = run(files, "env RANKC_TEST_NO_CHILD=1 LD_PRELOAD=" RANKC_TEST_MANY_CORES " " +
                                         program + " train --steps 1 --launch processes");
  CAPTURE(unknown.err);
  CHECK(unknown.code == 70);
  CHECK(said_in(unknown.err, 5340) == said{5340, {}});
}

TEST_CASE("starts: a rank that waits for rank 0 says so after three seconds") {
  const scratch files;
  const std::string port = std::to_string(free_port());
  const outcome alone =
      run(files, "RANK=1 LOCAL_RANK=1 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=" + port +
                     " RANKC_JOIN_TIMEOUT=4 " + program + " train --steps 1");
  CAPTURE(alone.err);
  CHECK(alone.code == 75);
  CHECK(said_in(alone.err, 5369) == said{5369, {"1", "127.0.0.1", port, "Connection refused", "4"}});
  CHECK(said_in(alone.err, 5337).arguments.at(0) == "127.0.0.1");
}

TEST_CASE("starts: the second job at a port is refused, and the first goes on") {
  const scratch files;
  const int port = free_port();
  const std::string metrics = files.path("metrics");
  const std::string first = "(" + by_hand(program, program, " train --steps 40 --metrics " + metrics, port) +
                            ") & first=$!\n" + "while [ ! -s " + metrics + " ]; do sleep 0.05; done\n";
  const outcome both = run(files, first + "RANKC_JOB=second\nexport RANKC_JOB\n(" +
                                      by_hand(program, program, " train --steps 1", port) +
                                      ")\necho second $? >&2\nwait $first");
  CAPTURE(both.err);
  CHECK(both.code == 0);
  CHECK(both.err.find("gpt_pp2: RC5335: ") != std::string::npos);
  CHECK(said_in(both.err, 5335) == said{5335, {std::to_string(port)}});
  CHECK(both.err.find("second 75\n") != std::string::npos);
  const std::string lines = losses(metrics);
  CHECK(std::count(lines.begin(), lines.end(), '\n') == 40);
}

TEST_CASE(
    "starts: a parent that takes no notice of how children end, and children of another, change nothing") {
  const scratch files;
  const std::string train = program + " train --steps 2 --launch processes";
  CHECK(run(files, "timeout -k 1 20 env --ignore-signal=CHLD " + train).code == 0);
  CHECK(run(files, "(sleep 0.1; exit 3) &\nexec " + train).code == 0);
}

TEST_CASE("starts: a failure of all ranks alike is said once, and torchrun's file is filled in") {
  const scratch files;
  const std::string error = files.path("error");
  const outcome failed = run(files, "TORCHELASTIC_ERROR_FILE=" + error + " " + program +
                                        " train --steps 1 --launch processes --data /none.txt");
  CHECK(failed.code == 1);
  const said unread{6101, {"/none.txt", "No such file or directory"}};
  CHECK(failed.err.starts_with("gpt_pp2: RC"));
  CHECK(std::count(failed.err.begin(), failed.err.end(), '\n') == 1);
  CHECK(said_in(failed.err) == unread);
  const nlohmann::json file = nlohmann::json::parse(contents(error));
  const auto message = file["message"]["message"].get<std::string>();
  CHECK(message.starts_with("RC"));
  CHECK(said_in(message) == unread);
  CHECK(std::stol(file["message"]["extraInfo"]["timestamp"].get<std::string>()) > 1'000'000'000);
}
