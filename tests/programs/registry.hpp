// SPDX-License-Identifier: Apache-2.0
// The generated programs that the tests train: a list for each target.
#pragma once
#include <rankc/runtime/engine.hpp>

#include <memory>
#include <string>
#include <vector>

struct registered {
  std::string job, layout, type;
  const rankc::runtime::description* about;
  std::unique_ptr<rankc::runtime::engine> (*install)();
};
extern const std::vector<registered> host_registry, cuda_registry;
