// SPDX-License-Identifier: Apache-2.0
// What a launcher's variables say of a process: which rank it is, and where the ranks of the job meet.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace rankc::runtime {

/// The value of a variable; null where it is not set. `std::getenv` is one.
using environment = std::function<const char*(const char*)>;

/// The place of a process in its job.
struct launched {
  const char* family;  // of variables: "torchrun", "Open MPI", ...
  int rank, world;
  int local_rank, local_size;  // among the ranks of its machine
  int node;                    // of its machine; -1 where the launcher does not say
  std::string host;            // of rank 0
  int port;                    // at which rank 0 listens
  std::uint64_t job;           // tells this start of this job from all others
  int listens_on = -1;         // rank 0 of the program's own launcher: a socket that listens already
  int board = -1;              // and memory that it shares
  std::string warning;         // another launcher's variables say otherwise; empty: none do
};

/// What to do with the number of processes, and the variable that has it, before anything else is looked at.
using check_world = std::function<void(const char* name, int world)>;

/// The place that the variables give; nothing where no launcher has started several processes, nor rankc's
/// own one.
/// The first family of which rank and world are set is taken: RANKC_* (--launch processes), RANK and
/// WORLD_SIZE (torchrun), OMPI_COMM_WORLD_* (Open MPI), PMI_* outside a Slurm step (MPICH), SLURM_* of a step
/// (srun). MASTER_ADDR and MASTER_PORT, where they are set, say where rank 0 is; else Slurm's list of hosts
/// does, or all are on one machine. Errors: failure (2) naming the variable that is missing or wrong.
std::optional<launched> read_environment(const environment&, const check_world& = {});

}  // namespace rankc::runtime
