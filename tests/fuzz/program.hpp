// SPDX-License-Identifier: Apache-2.0
// A generated program as a batch of them offers it.
#pragma once
#include <rankc/runtime/engine.hpp>

#include <memory>

namespace fuzz {

struct program {
  const char* name;
  const rankc::runtime::description* about;
  std::unique_ptr<rankc::runtime::engine> (*install)();
};

}  // namespace fuzz
