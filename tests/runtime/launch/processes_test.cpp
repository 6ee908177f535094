// SPDX-License-Identifier: Apache-2.0
// A program on the host with ranks as processes, as users start it: by itself, by mpirun, srun and torchrun.
// The losses equal those of threads, and the end of a process is reported.
#include "../../said.hpp"
#include "program_runs.hpp"

#include <doctest/doctest.h>
#include <algorithm>
#include <initializer_list>

namespace {

using namespace rankc::test;
namespace fs = std::filesystem;

bool is_there(const std::string& tool) {
  return std::system(("command -v " + tool + " >/dev/null 2>&1").c_str()) == 0;
}

/// End the test as skipped if a launcher is missing.
void need(std::initializer_list<const char*> tools) {
  for (const char* tool : tools)
    if (!is_there(tool)) std::_Exit(77);
}

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
  // The variables allow root, and a machine without ssh, which is not needed for one machine.
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
  if (!up) std::_Exit(77);  // Slurm does not start on this machine
}

TEST_CASE("torchrun: the same losses, and it shows the text of the rank that failed") {
  need({"torchrun"});
  const std::string works = "torchrun --standalone --nproc_per_node 1 --no_python true >/dev/null 2>&1";
  // Debian's torchrun does not work with Debian's Python.
  if (std::system(works.c_str()) != 0) std::_Exit(77);
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
  // It may have been stopped before its first report.
  CHECK((silent[2].starts_with("in step ") || silent[2] == "unknown"));
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
    const std::string steps = contents(files.path("metrics"));  // rank 0's metrics, a line per step
    const std::string last = std::to_string(std::count(steps.begin(), steps.end(), '\n'));
    CHECK(e.err.starts_with("gpt_pp2: RC"));
    CHECK(std::count(e.err.begin(), e.err.end(), '\n') == 1);
    CHECK(said_in(e.err) == said{6168, {"SIGTERM", last, "1000000"}});
  }
}
