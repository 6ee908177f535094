// SPDX-License-Identifier: Apache-2.0
#include "connect.hpp"

#include <rankc/runtime/failure.hpp>

namespace rankc::runtime {

std::unique_ptr<transport> connect_all(const exchange_function&, const data_end&) {
  throw failure(1,
                "RC5310: this build has no Gloo, which carries data between processes on the host; install "
                "libgloo-dev and build "
                "again, or start all ranks in one process (--launch threads)");
}

}  // namespace rankc::runtime
