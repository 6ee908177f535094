// SPDX-License-Identifier: Apache-2.0
// Reading the variables of launchers.
#include <rankc/runtime/tools/launch.hpp>

#include "refusal.hpp"
#include <rankc/runtime/tools/parse.hpp>

#include <csignal>
#include <cstdlib>
#include <string>
#include <unistd.h>

namespace rankc::runtime {
namespace {

/// The variables of one launcher; `job` tells its runs on one machine apart.
struct family {
  const char *rank, *world, *local_rank, *local_world, *job;
};
constexpr family families[] = {
    {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "TORCHELASTIC_RUN_ID"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE", "PMIX_NAMESPACE"},
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_NUM_TASKS", "SLURM_JOB_ID"},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "PMI_PORT"}};

std::optional<int> number(const char* name) {
  const char* text = std::getenv(name);
  return text != nullptr ? parse_number<int>(text) : std::nullopt;
}

int needed(const char* name) {
  const auto value = number(name);
  if (!value || *value < 0)
    throw refusal(2,
                  "{}: the launcher has not set it to a number; start the program with torchrun, mpirun or "
                  "srun, or with --launch processes",
                  name);
  return *value;
}

std::string text(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

/// A port that the processes of one job agree on without being told.
int port_of(const std::string& job) {
  unsigned hash = 2166136261u;
  for (const char c : job) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return 20000 + static_cast<int>(hash % 20000u);
}

std::string meeting_point(const family& f, int world) {
  std::string host = text("MASTER_ADDR");
  const bool one_machine =
      number(f.local_world) == world && (f.world != families[2].world || text("SLURM_STEP_NUM_NODES") == "1");
  if (host.empty() && one_machine) host = "127.0.0.1";
  if (host.empty())
    throw refusal(2,
                  "MASTER_ADDR: is not set, and the ranks are on several machines; set it to the address of "
                  "rank 0's machine, and MASTER_PORT to a free port there");
  int port = number("MASTER_PORT").value_or(port_of(text(f.job)));
  if (!text("TORCHELASTIC_USE_AGENT_STORE").empty()) ++port;  // torchrun itself listens on the other
  return host + ":" + std::to_string(port);
}

void end_as_victim(int) { _exit(77); }

}  // namespace

std::optional<placement> launched_placement(const description& about) {
  for (const family& f : families) {
    const int world = number(f.world).value_or(1);
    if (world <= 1) continue;
    if (world != about.world())
      throw refusal(2, "{} is {}: the plan has {} ranks (pp {}, dp {}, tp {}); start as many processes",
                    f.world, world, about.world(), about.pp, about.dp, about.tp);
    const int rank = needed(f.rank);
    if (rank >= world) throw refusal(2, "{} is {}: ranks are 0 to {}", f.rank, rank, world - 1);
    placement where;
    where.rank = rank;
    where.device = needed(f.local_rank);
    where.meeting = meeting_point(f, world);
    return where;
  }
  return std::nullopt;
}

void refuse_launchers() {
  for (const family& f : families)
    if (const int processes = number(f.world).value_or(1); processes > 1)
      throw refusal(2,
                    "{} is {}: this version runs all ranks in one process; start it once, without torchrun, "
                    "mpirun or srun",
                    f.world, processes);
}

void end_as_victim_on_sigterm() { std::signal(SIGTERM, end_as_victim); }

}  // namespace rankc::runtime
