// SPDX-License-Identifier: Apache-2.0
// The generated programs that the tests train: a list for each target.
#pragma once
#include <rankc/runtime/targets.hpp>
#include <rankc/runtime/engine.hpp>
#include <rankc/runtime/placement.hpp>

#include <memory>
#include <string>
#include <variant>
#include <vector>

namespace rankc::runtime::host {
struct program;
}
namespace rankc::runtime::cuda {
struct program;
}

struct registered {
  std::string job, layout, type;
  const rankc::runtime::description* about;
  std::variant<const rankc::host::program*, const rankc::cuda::program*> program;
  std::unique_ptr<rankc::runtime::engine> (*make)(const rankc::runtime::placement&);
  std::unique_ptr<rankc::runtime::engine> install(const rankc::runtime::placement& where = {}) const {
    return make(where);
  }
};
extern const std::vector<registered> host_registry, cuda_registry;
