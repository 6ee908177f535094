// SPDX-License-Identifier: Apache-2.0
// Ends a process with ranks as threads if a step hangs: no other way stops code that does not return. If
// ranks are processes, the coordinator does that (launch/).
#pragma once
#include <rankc/runtime/engine.hpp>
#include <rankc/launch/limits.hpp>

#include <functional>
#include <string>
#include <thread>

namespace rankc::runtime {

class watchdog {
 public:
  /// Watch the engine until this object is destroyed, which must be before the engine. `end` is called once,
  /// from another thread, with the rank that is stuck and its position.
  watchdog(engine&, const limits&, std::function<void(const std::string&)> end);

 private:
  std::jthread thread_;
};

}  // namespace rankc::runtime
