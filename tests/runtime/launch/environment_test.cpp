// SPDX-License-Identifier: Apache-2.0
// A process's rank from launchers' environment variables: recorded ones of real launchers, and changed ones.
#include <rankc/launch/session.hpp>

#include "../../said.hpp"
#include "../trainer/fake_engine.hpp"
#include "../trainer/scratch.hpp"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <map>
#include <set>
#include <sstream>

namespace environment_test {

using namespace rankc::runtime;
using rankc::test::said;
using rankc::test::said_in;

namespace {

using values = std::map<std::string, std::string>;

environment reading(const values& all) {
  return [all](const char* name) -> const char* {
    const auto found = all.find(name);
    return found != all.end() ? found->second.c_str() : nullptr;
  };
}

/// The variables of each rank, as a launcher has set them.
std::vector<values> recorded(const std::string& launcher) {
  std::istringstream in(contents(RANKC_ORACLES "/" + launcher + ".env"));
  std::vector<values> ranks;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("[rank")) ranks.emplace_back();
    else if (const auto equals = line.find('='); equals != line.npos)
      ranks.back()[line.substr(0, equals)] = line.substr(equals + 1);
  }
  REQUIRE_FALSE(ranks.empty());
  return ranks;
}

values changed(values v, const std::string& name, const std::string& value) {
  v[name] = value;
  return v;
}
values without(values v, const std::string& name) {
  v.erase(name);
  return v;
}

std::optional<launched> read(const values& v) { return read_environment(reading(v)); }
/// The sentence of a start that fails with code 2.
template <class Call>
said refusal_in(Call call) {
  const std::string text = refusal_of(call);
  CHECK(text.starts_with("2: "));
  return said_in(text);
}
said refusal_with(const values& v) {
  return refusal_in([&] { read(v); });
}

}  // namespace

TEST_CASE("what real launchers set gives each rank its place, and all the same meeting point and job") {
  struct row {
    const char *file, *family, *host;
    std::vector<int> local_rank, local_size, node;
    int port;  // 0: derived from the job
  };
  const row rows[]{
      {"torchrun", "torchrun", "localhost", {0, 1}, {2, 2}, {0, 0}, 29501},
      {"torchrun_2nodes", "torchrun", "localhost", {0, 1, 0, 1}, {2, 2, 2, 2}, {0, 0, 1, 1}, 29501},
      {"mpirun", "Open MPI", "127.0.0.1", {0, 1}, {2, 2}, {-1, -1}, 0},
      {"mpirun_in_salloc", "Open MPI", "127.0.0.1", {0, 1}, {2, 2}, {-1, -1}, 0},
      {"mpich", "MPICH", "127.0.0.1", {0, 1}, {2, 2}, {-1, -1}, 0},
      {"srun", "Slurm", "127.0.0.1", {0, 1}, {2, 2}, {0, 0}, 0},
      {"srun_in_sbatch", "Slurm", "127.0.0.1", {0, 1}, {2, 2}, {0, 0}, 0},
      {"srun_2nodes", "Slurm", "node1", {0, 1, 0, 1}, {2, 2, 2, 2}, {0, 0, 1, 1}, 0}};
  for (const row& r : rows) {
    CAPTURE(r.file);
    const std::vector<values> ranks = recorded(r.file);
    REQUIRE(ranks.size() == r.local_rank.size());
    std::set<std::string> jobs;
    std::set<int> ports;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      CAPTURE(i);
      const auto place = read(ranks[i]);
      REQUIRE(place);
      CHECK(place->family == std::string(r.family));
      CHECK(place->rank == static_cast<int>(i));
      CHECK(place->world == static_cast<int>(ranks.size()));
      CHECK(place->local_rank == r.local_rank[i]);
      CHECK(place->local_size == r.local_size[i]);
      CHECK(place->node == r.node[i]);
      CHECK(place->host == r.host);
      CHECK(place->warning == "");
      jobs.insert(place->job);
      ports.insert(place->port);
    }
    CHECK(jobs.size() == 1);
    REQUIRE(ports.size() == 1);
    if (r.port != 0) CHECK(*ports.begin() == r.port);
    CHECK(*ports.begin() >= 20000);
    CHECK(*ports.begin() < 32000);
  }
}

TEST_CASE("a process that no launcher has started several of has no place: a batch script, or none at all") {
  CHECK_FALSE(read({}));
  CHECK_FALSE(read(recorded("sbatch_script")[0]));
  CHECK_FALSE(read({{"WORLD_SIZE", "1"}, {"RANK", "0"}}));
  CHECK_FALSE(read({{"SLURM_JOB_ID", "7"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}}));
}

TEST_CASE("of two launchers' variables the inner one's count, and where they differ a line says so") {
  const values srun = recorded("srun")[1], torch = recorded("torchrun_2nodes")[2],
               mpich = recorded("mpich")[0];
  values both = srun;
  for (const auto& [name, value] : torch) both[name] = value;
  const auto place = read(both);
  REQUIRE(place);
  CHECK(place->rank == 2);
  CHECK(place->world == 4);
  CHECK(said_in(place->warning) ==
        said{5314,
             {"torchrun", "RANK", "2", "WORLD_SIZE", "4", "SLURM_PROCID", "1", "SLURM_STEP_NUM_TASKS", "2"}});
  CHECK(said_in(read(without(both, "SLURM_PROCID"))->warning).arguments.at(6) == "not set");
  values pmi2 = srun;  // by srun --mpi=pmi2
  for (const auto& [name, value] : mpich) pmi2[name] = value;
  CHECK(read(pmi2)->family == std::string("Slurm"));
  CHECK(read(pmi2)->rank == 1);
  values ours = both;
  for (const auto& [name, value] : values{{"RANKC_RANK", "0"},
                                          {"RANKC_WORLD", "3"},
                                          {"RANKC_LOCAL_RANK", "0"},
                                          {"RANKC_LOCAL_SIZE", "3"},
                                          {"RANKC_ADDR", "127.0.0.1"},
                                          {"RANKC_PORT", "4567"},
                                          {"RANKC_JOB", "x"},
                                          {"RANKC_LISTENS_ON", "5"}})
    ours[name] = value;
  CHECK(read(ours)->family == std::string("rankc"));
  CHECK(read(ours)->port == 4567);  // not torchrun's port offset: its agent is not here
  CHECK(read(ours)->listens_on == 5);
  CHECK(read(ours)->warning.empty());
}

TEST_CASE("jobs of one machine are told apart, and so are attempts of one job") {
  std::set<std::string> jobs;
  const values srun = recorded("srun")[0], torch = recorded("torchrun")[0];
  for (const char* id : {"7", "8", "70"}) jobs.insert(read(changed(srun, "SLURM_JOB_ID", id))->job);
  for (const char* id : {"1", "2"}) jobs.insert(read(changed(srun, "SLURM_STEP_ID", id))->job);
  for (const char* attempt : {"1", "2"})
    jobs.insert(read(changed(torch, "TORCHELASTIC_RESTART_COUNT", attempt))->job);
  for (const char* id : {"a", "b"}) jobs.insert(read(changed(recorded("mpich")[0], "RANKC_JOB", id))->job);
  CHECK(jobs.size() == 9);
}

TEST_CASE("a launcher that does not name its jobs, or names all alike, is known") {
  const values torch = recorded("torchrun")[0];
  CHECK(read(recorded("srun")[0])->is_job_named);
  CHECK(read(recorded("mpirun")[0])->is_job_named);
  CHECK(read(changed(torch, "TORCHELASTIC_RUN_ID", "7"))->is_job_named);
  CHECK_FALSE(read(changed(torch, "TORCHELASTIC_RUN_ID", "none"))->is_job_named);
  CHECK_FALSE(read(without(torch, "TORCHELASTIC_RUN_ID"))->is_job_named);
  CHECK(read(changed(without(torch, "TORCHELASTIC_RUN_ID"), "RANKC_JOB", "mine"))->is_job_named);
}

TEST_CASE("jobs of MPICH on one machine are named by the process that made their sockets") {
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  const values mpich = recorded("mpich")[0];
  CHECK_FALSE(read(without(mpich, "PMI_FD"))->is_job_named);
  std::set<std::string> jobs{read(without(mpich, "PMI_FD"))->job};
  for (const int end : ends) {
    const auto place = read(changed(mpich, "PMI_FD", std::to_string(end)));
    CHECK(place->is_job_named);
    jobs.insert(place->job);
    close(end);
  }
  CHECK(jobs.size() == 2);
  CHECK(jobs.contains("MPICH/" + std::to_string(getpid())));
}

TEST_CASE("the secret is 32 hexadecimal digits or a file, and is not in the sentence that refuses it") {
  const scratch files;
  const std::string digits = "00112233445566778899aabbccddeeff";
  const auto secret = [&](const std::string& value) {
    return read_secret(reading({{"RANKC_SECRET", value}}));
  };
  CHECK(read_secret(reading({})) == "");
  CHECK(secret(digits) == digits);
  CHECK(secret("00112233445566778899AABBCCDDEEFF") == digits);
  CHECK(secret(files.write("good", "sixteen letters.\n")) == "sixteen letters.");
  CHECK(read(changed(recorded("srun")[0], "RANKC_SECRET", digits))->secret == digits);
  const std::string typo = digits.substr(1);
  CHECK(refusal_in([&] { secret(typo); }) == said{5365, {"31", "32", "No such file or directory"}});
  CHECK(refusal_of([&] { secret(typo); }).find(typo) == std::string::npos);
  CHECK(refusal_in([&] { secret(""); }) == said{5365, {"0", "32", "it is empty"}});
  const std::string fifo = files.path("fifo");
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  CHECK(refusal_in([&] { secret(fifo); }) ==
        said{5365, {std::to_string(fifo.size()), "32", "it is a FIFO, not a regular file"}});
  CHECK(refusal_in([&] { secret(files.write("short", "fifteen letters")); }) ==
        said{5366, {"15", "16", "4096"}});
  CHECK(refusal_in([&] { secret(files.write("long", std::string(4097, 'x'))); }).id == 5366);
}

TEST_CASE("a choice by --launch names the variables that it leaves unused") {
  CHECK(note_of_unused_place(reading({}), "threads") == "");
  CHECK(note_of_unused_place(reading({{"WORLD_SIZE", "1"}, {"RANK", "0"}}), "threads") == "");
  const values by_hand{{"WORLD_SIZE", "2"}, {"RANK", "0"}};
  CHECK(said_in(note_of_unused_place(reading(by_hand), "processes")) ==
        said{5372, {"processes", "RANK", "0", "WORLD_SIZE", "2", "torchrun"}});
  CHECK(said_in(note_of_unused_place(reading(recorded("mpirun")[1]), "threads")) ==
        said{5372, {"threads", "OMPI_COMM_WORLD_RANK", "1", "OMPI_COMM_WORLD_SIZE", "2", "Open MPI"}});
}

TEST_CASE("where ranks are on several machines somebody must say where rank 0 is") {
  const said nowhere{5312, {}};
  const values mpi = recorded("mpirun")[1];
  CHECK(refusal_with(changed(mpi, "OMPI_COMM_WORLD_LOCAL_SIZE", "1")) == nowhere);
  CHECK(refusal_with(without(mpi, "OMPI_COMM_WORLD_LOCAL_SIZE")) == nowhere);
  const auto place =
      read(changed(changed(changed(mpi, "OMPI_COMM_WORLD_LOCAL_SIZE", "1"), "MASTER_ADDR", "10.0.0.1"),
                   "MASTER_PORT", "5000"));
  REQUIRE(place);
  CHECK(place->host == "10.0.0.1");
  CHECK(place->port == 5000);
  CHECK(read(changed(recorded("srun_2nodes")[3], "SLURM_STEP_NODELIST", "gpu-a[07-08],b"))->host ==
        "gpu-a07");
  CHECK(read(changed(recorded("srun_2nodes")[3], "MASTER_ADDR", "::1"))->host == "::1");
}

TEST_CASE("variables that contradict the plan, or are no numbers, are named") {
  const fake_program two(2, 1, 1), eight(2, 2, 2);
  const values torch = recorded("torchrun")[1];
  CHECK(launched_place(two.about, reading(torch))->rank == 1);
  CHECK(refusal_in([&] { launched_place(eight.about, reading(torch)); }) ==
        said{5334, {"WORLD_SIZE", "2", "8", "2", "2", "1", "2"}});
  CHECK(refusal_in([&] {
          launched_place(two.about, reading(changed(recorded("srun")[0], "SLURM_STEP_NUM_TASKS", "3")));
        }) == said{5334, {"SLURM_STEP_NUM_TASKS", "3", "2", "2", "1", "1", "1"}});
  CHECK(refusal_with(changed(torch, "RANK", "2")) == said{5315, {"RANK", "2", "1"}});
  for (const char* name : {"RANK", "LOCAL_RANK"}) {
    const said unset{5311, {"WORLD_SIZE", name, "WORLD_SIZE"}};
    for (const char* value : {"-1", "", "x", "1.5", "1 "})
      CHECK(refusal_with(changed(torch, name, value)) == unset);
    CHECK(refusal_with(without(torch, name)) == unset);
  }
  CHECK(refusal_with(changed(torch, "MASTER_PORT", "65535")) ==
        said{5313, {"MASTER_PORT", "65535", "65534"}});
  CHECK(refusal_with(changed(torch, "MASTER_PORT", "x")) ==
        said{5311, {"WORLD_SIZE", "MASTER_PORT", "WORLD_SIZE"}});
}

TEST_CASE("how long ranks wait for each other can be set, in seconds") {
  const limits usual = read_limits(reading({})),
               set = read_limits(reading({{"RANKC_JOIN_TIMEOUT", "1.5"}, {"RANKC_SILENCE_TIMEOUT", "60"}}));
  CHECK(set.join == std::chrono::milliseconds(1500));
  CHECK(set.silence == std::chrono::seconds(60));
  CHECK(set.exchange == usual.exchange);
  for (const char* value : {"", "0", "-1", "x", "1s", "nan", "1e9", "1e-9"})
    CHECK(refusal_in([&] { read_limits(reading({{"RANKC_JOIN_TIMEOUT", value}})); }) ==
          said{5324, {"RANKC_JOIN_TIMEOUT", value, "0.001", "1000000"}});
}

TEST_CASE("one process alone is a rank where rankc's own launcher has started it, and else a plain start") {
  const values own{{"RANKC_RANK", "0"},       {"RANKC_WORLD", "1"},   {"RANKC_LOCAL_RANK", "0"},
                   {"RANKC_LOCAL_SIZE", "1"}, {"RANKC_PORT", "4000"}, {"RANKC_JOB", "x"}};
  const auto place = read(own);
  REQUIRE(place.has_value());
  CHECK(place->world == 1);
  CHECK(place->port == 4000);
  CHECK_FALSE(read({{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"LOCAL_RANK", "0"}}).has_value());
  CHECK_FALSE(is_spawned(reading(own)));
  CHECK(is_spawned(reading(changed(own, "RANKC_SPAWNED", "1"))));
}

}  // namespace environment_test
