// SPDX-License-Identifier: Apache-2.0
#include <rankc/launch/limits.hpp>

#include <rankc/runtime/failure.hpp>
#include <rankc/runtime/parse.hpp>

namespace rankc::runtime {
namespace {

constexpr double fewest_seconds = 0.001;
constexpr int most_seconds = 1'000'000;

void read(const environment& get, const char* name, std::chrono::milliseconds& into) {
  const char* text = get(name);
  if (text == nullptr) return;
  const auto seconds = parse_number<double>(text);
  if (!seconds || !(*seconds >= fewest_seconds) || *seconds > most_seconds)
    throw failure(2, "RC5324: {} is '{}'; it must be a number of seconds from {} to {}", name, text,
                  fewest_seconds, most_seconds);
  into = std::chrono::milliseconds(static_cast<std::int64_t>(*seconds * 1000));
}

}  // namespace

limits read_limits(const environment& get) {
  limits l;
  read(get, "RANKC_JOIN_TIMEOUT", l.join);
  read(get, "RANKC_SILENCE_TIMEOUT", l.silence);
  read(get, "RANKC_EXCHANGE_TIMEOUT", l.exchange);
  read(get, "RANKC_STEP_TIMEOUT", l.step);
  return l;
}

}  // namespace rankc::runtime
