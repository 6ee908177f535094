// SPDX-License-Identifier: Apache-2.0
// The generated programs that the tests train.
#pragma once
#include <rankc/runtime/host/rank.hpp>

#include <string>
#include <vector>

struct registered {
  std::string job, layout, type;
  const rankc::host::program* program;
};
extern const std::vector<registered> registry;
