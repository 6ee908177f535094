// SPDX-License-Identifier: Apache-2.0
#include <rankc/launch/environment.hpp>

#include <rankc/runtime/failure.hpp>
#include <rankc/runtime/fnv1a.hpp>
#include <rankc/launch/nodelist.hpp>
#include <rankc/runtime/parse.hpp>

#include <sys/socket.h>

#include <initializer_list>

namespace rankc::runtime {
namespace {

/// The variables of one launcher. Slurm has the local size only in a list by nodes.
struct family {
  const char *name, *rank, *world, *local_rank, *local_size, *node;
  std::initializer_list<const char*> job;  // the first variable differs between jobs
};
const family families[] = {
    {"rankc",
     "RANKC_RANK",
     "RANKC_WORLD",
     "RANKC_LOCAL_RANK",
     "RANKC_LOCAL_SIZE",
     "RANKC_NODE",
     {"RANKC_JOB"}},
    {"torchrun",
     "RANK",
     "WORLD_SIZE",
     "LOCAL_RANK",
     "LOCAL_WORLD_SIZE",
     "GROUP_RANK",
     {"TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT"}},
    {"Open MPI",
     "OMPI_COMM_WORLD_RANK",
     "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE",
     nullptr,
     {"PMIX_NAMESPACE"}},
    {"MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", nullptr, {}},
    {"Slurm",
     "SLURM_PROCID",
     "SLURM_STEP_NUM_TASKS",
     "SLURM_LOCALID",
     nullptr,
     "SLURM_NODEID",
     {"SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT"}}};
const family &own_launcher = families[0], &mpich = families[3], &slurm = families[4];

constexpr int port_offset_under_torchrun = 1;     // torchrun itself listens at MASTER_PORT
constexpr int first_port = 20000, ports = 12000;  // below Linux's range for clients

class reader {
 public:
  explicit reader(const environment& get) : get_(get) {}

  std::string text(const char* name) const {
    const char* value = name != nullptr ? get_(name) : nullptr;
    return value != nullptr ? value : "";
  }
  std::optional<int> number(const char* name) const { return parse_number<int>(text(name)); }

  int needed(const char* name, const family& f) const {
    const auto value = number(name);
    if (!value || *value < 0)
      throw failure(
          2,
          "RC5311: {} is set, and {} is not set to a number; start the program with torchrun, mpirun "
          "or srun, which set both, or unset {}; train and eval also take --launch, which uses "
          "neither",
          f.world, name, f.world);
    return *value;
  }

  bool is_complete(const family& f) const {
    if (&f == &mpich && !text("SLURM_STEP_ID").empty()) return false;  // srun --mpi=pmi2 sets these too
    // Under other launchers, a single process is a plain start.
    const int fewest = &f == &own_launcher ? 1 : 2;
    return number(f.world).value_or(0) >= fewest;
  }

 private:
  const environment& get_;
};

int local_size(const reader& from, const family& f, int world, int node) {
  if (&f != &slurm) return from.number(f.local_size).value_or(0);
  const std::string list = from.text("SLURM_STEP_TASKS_PER_NODE");
  if (list.empty()) return from.text("SLURM_STEP_NUM_NODES") == "1" ? world : 0;
  const std::vector<int> counts = expand_counts(list);
  return node >= 0 && static_cast<std::size_t>(node) < counts.size() ? counts[static_cast<std::size_t>(node)]
                                                                     : 0;
}

/// The process manager on this machine, which differs between jobs. MPICH itself does not name its jobs.
std::string process_manager(const reader& from) {
  ucred made_by{};
  socklen_t size = sizeof made_by;
  const auto fd = from.number("PMI_FD");
  if (!fd || getsockopt(*fd, SOL_SOCKET, SO_PEERCRED, &made_by, &size) != 0 || made_by.pid <= 0) return "";
  return std::to_string(made_by.pid);
}

void name_job(launched& place, const reader& from, const family& f) {
  place.job = from.text("RANKC_JOB");
  if (!place.job.empty()) return;
  place.job = f.name;
  for (const char* name : f.job) place.job += "/" + from.text(name);
  const std::string first = f.job.size() > 0 ? from.text(*f.job.begin()) : "";
  place.is_job_named = !first.empty() && first != "none";  // torchrun without --rdzv-id has "none"
  if (&f != &mpich || !place.is_on_one_machine()) return;
  const std::string manager = process_manager(from);
  place.job += "/" + manager;
  place.is_job_named = !manager.empty();
}

std::string host_of_first(const reader& from, const family& f, bool one_machine) {
  const std::string given = from.text(&f == &own_launcher ? "RANKC_ADDR" : "MASTER_ADDR");
  if (!given.empty()) return given;
  if (one_machine) return "127.0.0.1";
  if (const std::string list = from.text("SLURM_STEP_NODELIST"); &f == &slurm && !list.empty())
    return expand_hosts(list).front();
  throw failure(
      2,
      "RC5312: MASTER_ADDR is not set, and the ranks are on several machines; set it to the address of "
      "rank 0's machine, and MASTER_PORT to a free port there");
}

int port_of_first(const reader& from, const family& f, const std::string& job) {
  const char* name = &f == &own_launcher ? "RANKC_PORT" : "MASTER_PORT";
  if (from.text(name).empty()) return first_port + static_cast<int>(fnv1a64(job) % ports);
  const int offset = from.text("TORCHELASTIC_USE_AGENT_STORE") == "True" && &f != &own_launcher
                         ? port_offset_under_torchrun
                         : 0;
  const int port = from.needed(name, f) + offset;
  if (port < 1 || port > 65535)
    throw failure(2, "RC5313: {} is {}; it must be a port, 1 to {}", name, from.text(name), 65535 - offset);
  return port;
}

/// A sentence about another launcher's variables that differ; empty if there are none. rankc's own launcher
/// has been chosen by --launch, and ignores the others.
std::string disagreement(const reader& from, const family& taken, const launched& place) {
  if (&taken == &own_launcher) return "";
  for (const family& other : families) {
    if (&other == &taken || !from.is_complete(other)) continue;
    const auto rank = from.number(other.rank), world = from.number(other.world);
    if (rank == place.rank && world == place.world) continue;
    return say("RC5314: {} sets {} to {} and {} to {}; {} is {} and {} is {}, which differs and is not used",
               taken.name, taken.rank, place.rank, taken.world, place.world, other.rank,
               rank ? from.text(other.rank) : "not set", other.world, from.text(other.world));
  }
  return "";
}

launched place_of(const reader& from, const family& f) {
  launched place{.family = f.name,
                 .rank = from.needed(f.rank, f),
                 .world = from.needed(f.world, f),
                 .local_rank = from.needed(f.local_rank, f),
                 .local_size = 0,
                 .node = from.number(f.node).value_or(-1),
                 .host = {},
                 .port = 0,
                 .job = {}};
  if (place.rank >= place.world)
    throw failure(2, "RC5315: {} is {}; it must be a rank, 0 to {}", f.rank, place.rank, place.world - 1);
  place.local_size = local_size(from, f, place.world, place.node);
  name_job(place, from, f);
  place.host = host_of_first(from, f, place.is_on_one_machine());
  place.port = port_of_first(from, f, place.job);
  if (&f == &own_launcher) {
    place.listens_on = from.number("RANKC_LISTENS_ON").value_or(-1);
    place.board = from.number("RANKC_BOARD").value_or(-1);
  }
  place.warning = disagreement(from, f, place);
  return place;
}

}  // namespace

bool is_spawned(const environment& get) {
  const reader from(get);
  return !from.text(spawned_variable).empty() && from.is_complete(own_launcher);
}

std::string note_of_unused_place(const environment& get, const std::string& launch) {
  const reader from(get);
  for (const family& f : families)
    if (from.is_complete(f))
      return say(
          "RC5372: --launch {} is given, so this process starts all ranks, and {}={} and {}={} are ignored; "
          "leave --launch out to start one rank in each process of {}, or unset both",
          launch, f.rank, from.text(f.rank), f.world, from.text(f.world), f.name);
  return "";
}

std::optional<launched> read_environment(const environment& get, const check_world& check) {
  const reader from(get);
  for (const family& f : families) {
    if (!from.is_complete(f)) continue;
    if (check) check(f.world, from.needed(f.world, f));
    launched place = place_of(from, f);
    place.secret = read_secret(get);
    return place;
  }
  return std::nullopt;
}

}  // namespace rankc::runtime
