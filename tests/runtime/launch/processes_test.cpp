// SPDX-License-Identifier: Apache-2.0
// A program on the host whose ranks are processes, as users start it: by itself, by mpirun, srun and
// torchrun. The losses are those of threads. A start that is wrong, and a process that ends, are reported.
#include "../../said.hpp"
#include "program_runs.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <sched.h>
#include <algorithm>
#include <initializer_list>

namespace {

using namespace rankc::test;
namespace fs = std::filesystem;

bool is_there(const std::string& tool) {
  return std::system(("command -v " + tool + " >/dev/null 2>&1").c_str()) == 0;
}

/// End the test as skipped where a launcher is not there.
void need(std::initializer_list<const char*> tools) {
  for (const char* tool : tools)
    if (!is_there(tool)) std::_Exit(77);
}

/// While this lives, programs that are started have one core: OpenBLAS threads that spin for each other take
/// seconds for a step on a busy machine.
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

/// Train for three steps under a launcher, and compare with threads.
void check_losses(const std::string& launcher, const std::string& before = "",
                  const std::string& words = "") {
  const scratch files;
  const std::string train = " train --steps 3 --metrics ";
  const outcome threads = run(files, program + train + files.path("threads"));
  REQUIRE(threads.code == 0);
  const outcome apart = run(files, before + launcher + " " + program + train + files.path("apart") + words);
  CAPTURE(apart.out);
  CAPTURE(apart.err);
  CHECK(apart.code == 0);
  const std::string wanted = losses(files.path("threads"));
  CHECK(std::count(wanted.begin(), wanted.end(), '\n') == 3);
  CHECK(losses(files.path("apart")) == wanted);
  CHECK(apart.out.find("weights: ") != std::string::npos);
  CHECK(apart.out.find("weights: ") == apart.out.rfind("weights: "));
}

/// Both ranks by hand, each with what is put before it.
std::string by_hand(const std::string& first, const std::string& second, const std::string& words, int port) {
  const std::string common =
      "export WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 RANKC_JOIN_TIMEOUT=10 "
      "RANKC_SECRET=${RANKC_SECRET-00112233445566778899aabbccddeeff} MASTER_PORT=" +
      std::to_string(port);
  return common + "\nRANK=1 LOCAL_RANK=1 " + second + words + " &\nRANK=0 LOCAL_RANK=0 " + first + words +
         "\ncode=$?\nwait $!\necho $? >&2\nexit $code";
}

/// A port that is free now: of this test's own part of the range.
int free_port() { return 20000 + static_cast<int>(getpid() % 10000); }

}  // namespace

TEST_CASE("own launcher: the same losses, checkpoints and evaluations as threads") {
  check_losses("", "", " --launch processes");
  const scratch files;
  const std::string save = " train --steps 2 --save ";
  REQUIRE(run(files, program + save + files.path("together")).code == 0);
  const outcome apart = run(files, program + save + files.path("apart") + " --launch processes");
  REQUIRE(apart.code == 0);
  CHECK(apart.out.find("saved") == apart.out.rfind("saved"));
  int compared = 0;
  for (const auto& file : fs::directory_iterator(files.path("together/step_000002"))) {
    CAPTURE(file.path().string());
    CHECK(contents(file.path()) ==
          contents(files.path("apart/step_000002/" + file.path().filename().string())));
    ++compared;
  }
  CHECK(compared >= 4);
  std::string evaluated[2];
  for (const int way : {0, 1}) {
    const outcome e =
        run(files, program + " eval --steps 2 --load " + files.path(way == 0 ? "apart" : "together") +
                       (way == 0 ? "" : " --launch processes"));
    REQUIRE(e.code == 0);
    evaluated[way] = e.out.substr(e.out.find("eval: "));
  }
  CHECK(evaluated[0] == evaluated[1]);
  const outcome traced =
      run(files, program + " train --steps 1 --launch processes --trace " + files.path("trace"));
  REQUIRE(traced.code == 0);
  const std::string trace = contents(files.path("trace"));
  for (const char* action : {"0F0", "1F0"}) CHECK(trace.find(action) != std::string::npos);
}

TEST_CASE("mpirun: the same losses") {
  need({"mpirun"});
  // As root too, and where there is no ssh, which one machine does not need.
  check_losses(
      "mpirun --oversubscribe -np 2",
      "export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_plm_rsh_agent=true\n");
}

TEST_CASE("srun: the same losses") {
  need({"srun", "slurmd", "slurmctld", "munged"});
  const scratch slurm;
  const std::string script = "bash " RANKC_SLURM_LOCAL, folder = slurm.path("s");
  const std::string ports = "export CTLD_PORT=" + std::to_string(free_port()) +
                            " SLURMD_PORT=" + std::to_string(free_port() + 1) + "\n";
  const bool up = run(slurm, ports + script + " start " + folder).code == 0;
  if (up) check_losses("srun -n 2", "export SLURM_CONF=" + slurm.path("s/slurm.conf") + "\n");
  run(slurm, script + " stop " + folder);
  if (!up) std::_Exit(77);  // a machine that Slurm does not start on
}

TEST_CASE("torchrun: the same losses, and it shows the text of the rank that failed") {
  need({"torchrun"});
  const std::string works = "torchrun --standalone --nproc_per_node 1 --no_python true >/dev/null 2>&1";
  if (std::system(works.c_str()) != 0) std::_Exit(77);  // Debian's own does not, with its Python
  const std::string torchrun = "torchrun --standalone --nproc_per_node 2 --no_python";
  check_losses(torchrun);
  const scratch files;
  const outcome failed =
      run(files, torchrun + " " + program + " train --steps 1 --data " + files.path("none.txt"));
  CHECK(failed.code == 1);
  CHECK(said_in(failed.err, 6101).arguments.at(0) == files.path("none.txt"));
  CHECK(failed.err.find("exitcode  : 1 ") != std::string::npos);
}

TEST_CASE("faults: the rank that is killed is named, gives the code, and nothing is left") {
  for (const std::size_t victim : {0u, 1u}) {
    CAPTURE(victim);
    const scratch files;
    running r(files);
    const pid_t killed = r.rank(victim);
    kill(killed, SIGKILL);
    const running::end e = r.wait();
    CAPTURE(e.err);
    CHECK(e.code == 128 + SIGKILL);
    CHECK(e.took < scaled(5));
    CHECK(e.all_gone);
    CHECK(e.err.starts_with("gpt_pp2: rank " + std::to_string(1 - victim) + ": RC5327: "));
    check_killed(e.err, victim, killed, "9", "Killed");
    CHECK(std::count(e.err.begin(), e.err.end(), '\n') == 1);
  }
}

TEST_CASE("faults: a rank that is stopped is named, and all end in ten seconds") {
  const scratch files;
  running r(files);
  kill(r.rank(1), SIGSTOP);
  const running::end e = r.wait();
  CAPTURE(e.err);
  CHECK(e.code == 70);
  CHECK(e.took < scaled(10));
  CHECK(e.all_gone);
  CHECK(e.err.starts_with("gpt_pp2: rank 0: RC5327: "));
  const auto silent = said_in(e.err, 5347).arguments;
  REQUIRE(silent.size() == 3);
  CHECK(silent[0].starts_with("rank 1 ("));
  CHECK(silent[1] == "6");
  CHECK(
      (silent[2].starts_with("in step ") || silent[2] == "unknown"));  // it may be stopped before it has told
}

TEST_CASE("faults: ranks end with their launcher, and when it is told to") {
  for (const int signal : {SIGKILL, SIGTERM}) {
    CAPTURE(signal);
    const scratch files;
    running r(files);
    kill(r.launcher(), signal);
    const running::end e = r.wait();
    CHECK(e.code == 128 + signal);
    CHECK(e.took < scaled(5));
    CHECK(e.all_gone);
  }
}

TEST_CASE("faults: ranks that are told to stop finish the step, save it and end together") {
  for (const int to : {0, 1, -1}) {  // one rank, or the launcher
    CAPTURE(to);
    const scratch files;
    running r(files, {.words = {"train", "--steps", "1000000", "--save", files.path("save")}});
    kill(to < 0 ? r.launcher() : r.rank(static_cast<std::size_t>(to)), SIGTERM);
    const running::end e = r.wait();
    CAPTURE(e.err);
    CHECK(e.code == 128 + SIGTERM);
    CHECK(e.took < scaled(5));
    CHECK(e.all_gone);
    CHECK(e.err.starts_with("gpt_pp2: RC"));
    check_stopped_by("SIGTERM", e.err, files.path("save"));
    CHECK(std::count(e.err.begin(), e.err.end(), '\n') == 1);
    CHECK(run(files, program + " eval --steps 1 --load " + files.path("save")).code == 0);
  }
}

TEST_CASE("faults: one rank that is told to stop ends all after the same step") {
  for (const std::size_t told : {0, 1}) {
    const scratch files;
    running r(files);
    kill(r.rank(told), SIGTERM);
    const running::end e = r.wait();
    CAPTURE(e.err);
    CHECK(e.code == 128 + SIGTERM);
    CHECK(e.took < scaled(5));
    CHECK(e.all_gone);
    const std::string steps = contents(files.path("metrics"));  // of rank 0, a line each
    const std::string last = std::to_string(std::count(steps.begin(), steps.end(), '\n'));
    CHECK(e.err.starts_with("gpt_pp2: RC"));
    CHECK(std::count(e.err.begin(), e.err.end(), '\n') == 1);
    CHECK(said_in(e.err) == said{6168, {"SIGTERM", last, "1000000"}});
  }
}

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
  CHECK(std::count(plan.err.begin(), plan.err.end(), '\n') == 2);  // one message, and the other's code

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
                    train = " train --steps 1 --launch ";
  for (const std::string way : {"threads", "processes"}) {
    CAPTURE(way);
    for (const std::string& variables : {half, whole}) {
      const outcome started = run(files, variables + program + train + way);
      CHECK(started.code == 0);
      CHECK(started.out.find("weights: ") != std::string::npos);
      CHECK(said_in(started.err) == said{5372, {way, "RANK", "0", "WORLD_SIZE", "2", "torchrun"}});
    }
    const outcome under_mpi = run(files, mpi + program + train + way);
    CHECK(under_mpi.code == 0);
    CHECK(said_in(under_mpi.err).arguments.at(1) == "OMPI_COMM_WORLD_RANK");
  }
  const outcome by_variables = run(files, half + program + " train --steps 1");
  CHECK(by_variables.code == 2);
  CHECK(said_in(by_variables.err) == said{5311, {"LOCAL_RANK"}});
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
  for (const char* words : {"generate --load x", "export --load x --out y"})  // they start no ranks
    CHECK(run(files, limited + words + apart).code == 2);

  const outcome inner = run(files, "RANKC_SPAWNED=1 " + limited + "train --steps 1" + apart);
  CHECK(inner.code == 2);
  CHECK(inner.err.starts_with("gpt_one_rank: RC5341: "));
  CHECK(said_in(inner.err) == said{5341, {"RANKC_SPAWNED"}});
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
