// SPDX-License-Identifier: Apache-2.0
// The command line of a generated program. A generated main has two lines: it includes this and returns
// program_main with its description and its target's install.
#pragma once
#include <rankc/runtime/engine.hpp>

#include <functional>
#include <memory>

namespace rankc::runtime {

/// Run `train`, `eval`, `describe` or `--version` as `argv` says; `install` is called once, where ranks are
/// needed. Errors: nothing is thrown; the exit code is 0 done, 1 user error, 2 usage, 65 checkpoint, or the
/// failure's own.
int program_main(const description&, std::function<std::unique_ptr<engine>()> install, int argc, char** argv);

}  // namespace rankc::runtime
