// SPDX-License-Identifier: Apache-2.0
#include <rankc/launch/limits.hpp>

namespace rankc::runtime {

limits read_limits(const environment& get) {
  limits l;
  const auto read = [&](const char* variable, std::chrono::milliseconds& into) {
    into = time_limit(variable, get(variable), into);
  };
  read("RANKC_JOIN_TIMEOUT", l.join);
  read("RANKC_SILENCE_TIMEOUT", l.silence);
  read(exchange_timeout, l.exchange);
  read("RANKC_STEP_TIMEOUT", l.step);
  return l;
}

}  // namespace rankc::runtime
