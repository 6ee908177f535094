// SPDX-License-Identifier: Apache-2.0
// How the ranks of a program become processes: found in the variables of torchrun, mpirun or srun, or
// started by the program itself.
#pragma once
#include <rankc/runtime/placement.hpp>
#include <rankc/runtime/program.hpp>

#include <optional>

namespace rankc::runtime {

/// The rank that a launcher has made this process; nothing where none has started several processes.
/// Reads RANK, WORLD_SIZE and LOCAL_RANK (torchrun, and this program), else those of Open MPI, of a Slurm
/// step, or of MPICH; the meeting point is MASTER_ADDR and MASTER_PORT, or on one machine needs neither.
/// Errors: failure (2) where the variables contradict the plan or one is missing.
std::optional<placement> launched_placement(const description&);

/// Refuse a launcher's several processes, for a program that has all ranks in one.
/// Errors: failure (2) naming the variable.
void refuse_launchers();

/// Start this program once for each rank, wait for all, and end them all when one fails.
/// Returns: 0, or the exit code of the rank that failed first (128 + n where signal n ended it).
int launch_processes(const description&, char** argv);

/// From here on SIGTERM, which a launcher sends when another rank has failed, ends this process with 77.
void end_as_victim_on_sigterm();

}  // namespace rankc::runtime
