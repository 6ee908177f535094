// SPDX-License-Identifier: Apache-2.0
// Which rank the variables of launchers make of a process: those that real launchers have set, and changed
// ones.
#include <rankc/launch/session.hpp>

#include "../trainer/fake_engine.hpp"
#include "../trainer/scratch.hpp"

#include <doctest/doctest.h>
#include <map>
#include <set>
#include <sstream>

namespace environment_test {

using namespace rankc::runtime;

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
std::string refusal_with(const values& v) {
  return refusal_of([&] { read(v); });
}

}  // namespace

TEST_CASE("what real launchers set gives each rank its place, and all the same meeting point and job") {
  struct row {
    const char *file, *family, *host;
    std::vector<int> local_rank, local_size, node;
    int port;  // 0: from the job
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
    std::set<std::uint64_t> jobs;
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
  CHECK(place->warning ==
        "RANK is 2 and WORLD_SIZE 4, as torchrun says; SLURM_PROCID of 1 and SLURM_STEP_NUM_TASKS of 2 say "
        "otherwise "
        "and are not used");
  values pmi2 = srun;  // srun --mpi=pmi2
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
  CHECK(read(ours)->port == 4567);  // torchrun's agent does not listen there
  CHECK(read(ours)->listens_on == 5);
}

TEST_CASE("jobs of one machine are told apart, and so are attempts of one job") {
  std::set<std::uint64_t> jobs;
  const values srun = recorded("srun")[0], torch = recorded("torchrun")[0];
  for (const char* id : {"7", "8", "70"}) jobs.insert(read(changed(srun, "SLURM_JOB_ID", id))->job);
  for (const char* id : {"1", "2"}) jobs.insert(read(changed(srun, "SLURM_STEP_ID", id))->job);
  for (const char* attempt : {"1", "2"})
    jobs.insert(read(changed(torch, "TORCHELASTIC_RESTART_COUNT", attempt))->job);
  for (const char* id : {"a", "b"}) jobs.insert(read(changed(recorded("mpich")[0], "RANKC_JOB", id))->job);
  CHECK(jobs.size() == 9);
}

TEST_CASE("where ranks are on several machines somebody must say where rank 0 is") {
  const std::string nowhere =
      "2: MASTER_ADDR: is not set, and the ranks are on several machines; set it to the address of rank 0's "
      "machine, "
      "and MASTER_PORT to a free port there";
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
  CHECK(refusal_of([&] { launched_place(eight.about, reading(torch)); }) ==
        "2: WORLD_SIZE is 2: the plan has 8 ranks (pp 2, dp 2, tp 2); start as many processes");
  CHECK(refusal_of([&] {
          launched_place(two.about, reading(changed(recorded("srun")[0], "SLURM_STEP_NUM_TASKS", "3")));
        }) ==
        "2: SLURM_STEP_NUM_TASKS is 3: the plan has 2 ranks (pp 2, dp 1, tp 1); start as many processes");
  CHECK(refusal_with(changed(torch, "RANK", "2")) == "2: RANK is 2: ranks are 0 to 1");
  for (const char* name : {"RANK", "LOCAL_RANK"}) {
    const std::string unset =
        "2: " + std::string(name) +
        ": the launcher has not set it to a number; start the program with torchrun, mpirun or srun, or with "
        "--launch processes";
    for (const char* value : {"-1", "", "x", "1.5", "1 "})
      CHECK(refusal_with(changed(torch, name, value)) == unset);
    CHECK(refusal_with(without(torch, name)) == unset);
  }
  CHECK(refusal_with(changed(torch, "MASTER_PORT", "65535")) ==
        "2: MASTER_PORT is 65535: ports are 1 to 65534");
  CHECK(refusal_with(changed(torch, "MASTER_PORT", "x"))
            .starts_with("2: MASTER_PORT: the launcher has not set it to a number"));
}

TEST_CASE("how long ranks wait for each other can be set, in seconds") {
  const limits usual = read_limits(reading({})),
               set = read_limits(reading({{"RANKC_JOIN_TIMEOUT", "1.5"}, {"RANKC_SILENCE_TIMEOUT", "60"}}));
  CHECK(set.join == std::chrono::milliseconds(1500));
  CHECK(set.silence == std::chrono::seconds(60));
  CHECK(set.exchange == usual.exchange);
  for (const char* value : {"", "0", "-1", "x", "1s", "nan", "1e9"})
    CHECK(refusal_of([&] { read_limits(reading({{"RANKC_JOIN_TIMEOUT", value}})); }) ==
          "2: RANKC_JOIN_TIMEOUT is '" + std::string(value) +
              "': it must be a number of seconds above 0, at most 1000000");
}

TEST_CASE("one process alone is a rank where rankc's own launcher has started it, and else a plain start") {
  const values own{{"RANKC_RANK", "0"},       {"RANKC_WORLD", "1"},   {"RANKC_LOCAL_RANK", "0"},
                   {"RANKC_LOCAL_SIZE", "1"}, {"RANKC_PORT", "4000"}, {"RANKC_JOB", "x"}};
  const auto place = read(own);
  REQUIRE(place.has_value());
  CHECK(place->world == 1);
  CHECK(place->port == 4000);
  CHECK_FALSE(read({{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"LOCAL_RANK", "0"}}).has_value());
}

}  // namespace environment_test
