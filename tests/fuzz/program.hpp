// SPDX-License-Identifier: Apache-2.0
// The interface of a generated program in a batch.
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
