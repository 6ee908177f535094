// SPDX-License-Identifier: Apache-2.0
// Reads this process's rank, and the address where the job's ranks meet, from a launcher's environment
// variables.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace rankc::runtime {

/// A function that returns the value of a variable, or null if it is not set. `std::getenv` is one.
using environment = std::function<const char*(const char*)>;

/// The place of a process in its job.
struct launched {
  const char* family;  // the launcher: "torchrun", "Open MPI", ...
  int rank, world;
  int local_rank, local_size;  // number among the ranks of its machine, and their count
  int node;                    // number of its machine; -1 if the launcher does not say
  std::string host;            // rank 0's host
  int port;                    // at which rank 0 listens
  std::string job;             // the name of this start of the job
  bool is_job_named = true;    // whether the name is unique to this job
  std::string secret{};        // the value of RANKC_SECRET; empty if it is not set
  int listens_on = -1;         // descriptor of a listening socket, for rank 0 under rankc's own launcher
  int board = -1;              // descriptor of memory that rankc's own launcher shares
  std::string warning{};       // other launchers' variables that differ; empty if there are none

  bool is_on_one_machine() const { return local_size == world; }
};

/// Called with the number of processes, and the name of its variable, before all other variables are read.
using check_world = std::function<void(const char* name, int world)>;

/// The secret that the ranks of a job share: the value of RANKC_SECRET if it has 32 hexadecimal digits, or
/// the content of the file that it names; empty if it is not set.
/// Errors: failure (2) for any other value. The sentence does not contain the value.
std::string read_secret(const environment&);

/// The variable that rankc's own launcher sets in each process that it starts.
inline constexpr const char* spawned_variable = "RANKC_SPAWNED";

/// Whether rankc's own launcher has started this process as a rank.
bool is_spawned(const environment&);

/// A note that --launch is given although another launcher's variables, which it names, give this process a
/// place; empty if there are none.
std::string note_of_unused_place(const environment&, const std::string& launch);

/// The place that the variables give; empty if neither a launcher has started several processes, nor rankc's
/// own one has started this. The first family with rank and world set is taken: RANKC_* (--launch processes),
/// RANK and WORLD_SIZE (torchrun), OMPI_COMM_WORLD_* (Open MPI), PMI_* outside a Slurm step (MPICH), SLURM_*
/// of a step (srun). MASTER_ADDR and MASTER_PORT say where rank 0 is. If they are not set, Slurm's list of
/// hosts says it, or all ranks are on one machine.
/// Errors: failure (2) naming the variable that is missing or wrong.
std::optional<launched> read_environment(const environment&, const check_world& = {});

}  // namespace rankc::runtime
