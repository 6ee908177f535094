// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <unistd.h>
#include <string>

namespace rankc::runtime {

/// The name of this machine; "?" where it has none.
inline std::string host_name() {
  char name[256] = "?";
  gethostname(name, sizeof name - 1);
  return name;
}

}  // namespace rankc::runtime
