// SPDX-License-Identifier: Apache-2.0
#include "connect.hpp"

#include <rankc/runtime/engine.hpp>

namespace rankc::runtime {

std::unique_ptr<transport> connect_all(const exchange_function&, const data_end&) {
  throw failure::reported(1,
                          "this build has no Gloo, which carries data between processes on the host; install "
                          "libgloo-dev and build "
                          "again, or start all ranks in one process (--launch threads)");
}

}  // namespace rankc::runtime
