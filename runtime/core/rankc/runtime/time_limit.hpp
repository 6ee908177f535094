// SPDX-License-Identifier: Apache-2.0
// Time limits that environment variables set, in seconds.
#pragma once
#include <rankc/runtime/failure.hpp>
#include <rankc/runtime/parse.hpp>

#include <chrono>
#include <cstdint>

namespace rankc::runtime {

/// The time limit for all ranks to reach one exchange, for one transfer, and for a phase of the install.
inline constexpr const char exchange_timeout[] = "RANKC_EXCHANGE_TIMEOUT";
inline constexpr std::chrono::milliseconds usual_exchange{600'000};

/// The limit that a variable sets. `text` is the variable's value; null means the usual limit.
/// Errors: failure (2) if the value is not a number of seconds in the range.
inline std::chrono::milliseconds time_limit(const char* variable, const char* text,
                                            std::chrono::milliseconds usual) {
  constexpr double least = 0.001;
  constexpr int most = 1'000'000;
  if (text == nullptr) return usual;
  const auto seconds = parse_number<double>(text);
  if (!seconds || !(*seconds >= least) || *seconds > most)
    throw failure(2, "RC5324: {} is '{}'; it must be a number of seconds from {} to {}", variable, text,
                  least, most);
  return std::chrono::milliseconds(static_cast<std::int64_t>(*seconds * 1000));
}

}  // namespace rankc::runtime
