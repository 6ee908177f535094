// SPDX-License-Identifier: Apache-2.0
// The command line of a generated program. A generated main has two lines: it includes this and returns
// program_main with its description and its target's install.
#pragma once
#include <rankc/runtime/engine.hpp>
#include <rankc/runtime/placement.hpp>

#include <functional>
#include <memory>

namespace rankc::runtime {

/// Runs the command in `argv`, such as `train`, `eval` or `describe`; `install` is called once, if the
/// command needs ranks.
/// Returns: the exit code: 0 done, 1 user error, 2 usage or ranks that do not agree, 65 checkpoint, 70 the
/// rank that failed, 75 ranks that could not connect (try again), 77 stopped because another rank failed.
/// Errors: no exception leaves the function.
int program_main(const description&, std::function<std::unique_ptr<engine>()> install, int argc, char** argv);

/// The same for a target whose ranks can be separate processes. `--launch processes` starts them and returns
/// the code of the rank that failed, or 128 + n if signal n ended it. Under torchrun, mpirun or srun, this
/// process is one of them.
int program_main(const description&, std::function<std::unique_ptr<engine>(const placement&)> install,
                 int argc, char** argv);

/// Ends the process without unloading libraries: OpenBLAS would wait at unload for threads that could not
/// start for lack of memory.
[[noreturn]] void end_process(int code);

}  // namespace rankc::runtime
