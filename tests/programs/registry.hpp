// SPDX-License-Identifier: Apache-2.0
// The generated programs that the tests train: a list for each target.
#pragma once
#include <rankc/contract/targets.hpp>
#include <rankc/runtime/engine.hpp>
#include <rankc/runtime/placement.hpp>

#include <algorithm>
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
extern const bool host_has_every_program;  // false: the registry lists a sample (families/sample.hpp)

/// The number of programs that a test must find: `all` of the family, or at least one of a sample. `found`:
/// the number that it did find.
inline int expected_of(int found, int all) {
  return host_has_every_program ? all : std::clamp(found, 1, all);
}
