// SPDX-License-Identifier: Apache-2.0
// The place that a launcher's variables give to this process: its rank, and where the ranks of the job meet.
#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

namespace rankc::runtime {

/// The value of a variable; null where it is not set. `std::getenv` is such a function.
using environment = std::function<const char*(const char*)>;

/// The place of a process in its job.
struct launched {
  const char* family;  // of variables: "torchrun", "Open MPI", ...
  int rank, world;
  int local_rank, local_size;  // among the ranks of its machine
  int node;                    // of its machine; -1 where the launcher does not say
  std::string host;            // of rank 0
  int port;                    // at which rank 0 listens
  std::string job;             // the name of this start of this job
  bool is_job_named = true;    // whether no other job has that name
  std::string secret{};        // of RANKC_SECRET; empty where it is not set
  int listens_on = -1;    // descriptor of a socket that listens; only of rankc's own launcher, for rank 0
  int board = -1;         // descriptor of memory that rankc's own launcher shares
  std::string warning{};  // other launchers' variables that differ; empty where there are none

  bool is_on_one_machine() const { return local_size == world; }
};

/// Called with the number of processes, and the name of its variable, before all other variables are read.
using check_world = std::function<void(const char* name, int world)>;

/// The secret that the ranks of a job share: the value of RANKC_SECRET where that has 32 hexadecimal digits,
/// or the content of the file that it names; empty where it is not set.
/// Errors: failure (2) for any other value. The sentence does not contain the value.
std::string read_secret(const environment&);

/// Whether rankc's own launcher has started this process as a rank.
bool is_spawned(const environment&);

/// A note that --launch is given though another launcher's variables, which it names, give this process a
/// place; empty where there are none.
std::string note_of_unused_place(const environment&, const std::string& launch);

/// The place that the variables give; nothing where no launcher has started several processes, nor rankc's
/// own one. The first family is taken whose rank and world are set: RANKC_* (--launch processes), RANK and
/// WORLD_SIZE (torchrun), OMPI_COMM_WORLD_* (Open MPI), PMI_* outside a Slurm step (MPICH), SLURM_* of a step
/// (srun). MASTER_ADDR and MASTER_PORT say where rank 0 is. Where they are not set, Slurm's list of hosts
/// does, or all ranks are on one machine.
/// Errors: failure (2) naming the variable that is missing or wrong.
std::optional<launched> read_environment(const environment&, const check_world& = {});

}  // namespace rankc::runtime
