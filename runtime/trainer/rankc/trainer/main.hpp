// SPDX-License-Identifier: Apache-2.0
// The command line of a generated program. A generated main has two lines: it includes this and returns
// program_main with its description and its target's install.
#pragma once
#include <rankc/runtime/engine.hpp>
#include <rankc/runtime/placement.hpp>

#include <functional>
#include <memory>

namespace rankc::runtime {

/// Run `train`, `eval`, `describe` or `--version` as `argv` says; `install` is called once, where ranks are
/// needed. Errors: nothing is thrown; the exit code is 0 done, 1 user error, 2 usage or ranks that do not
/// agree, 65 checkpoint, 70 the rank that failed, 75 ranks that do not meet (try again), 77 stopped because
/// another rank failed.
int program_main(const description&, std::function<std::unique_ptr<engine>()> install, int argc, char** argv);

/// The same for a target whose ranks can be processes of their own: `--launch processes` starts them, and
/// under torchrun, mpirun or srun this process is one of them. `--launch processes` ends with the code of the
/// rank that failed, 128 + n where signal n ended it.
int program_main(const description&, std::function<std::unique_ptr<engine>(const placement&)> install,
                 int argc, char** argv);

/// Return from main, but for what libraries do when they are unloaded: OpenBLAS then waits for threads that a
/// lack of memory has kept from starting.
[[noreturn]] void end_process(int code);

}  // namespace rankc::runtime
