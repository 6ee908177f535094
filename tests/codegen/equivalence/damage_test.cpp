// SPDX-License-Identifier: Apache-2.0
// A damaged certificate is refused with a message, by `verify` or by the check of its claims, or it still
// holds. No damage leads to a crash.
#include <doctest/doctest.h>

#include <rankc/codegen/certificate.hpp>
#include <rankc/codegen/verify.hpp>

#include <cctype>
#include <iterator>
#include <random>
#include <string>

#include "plans.hpp"
#include "../../some_of.hpp"
#include "subject.hpp"

namespace damage_test {

using namespace equivalence_tests;

namespace {

/// Replace a number in the text by another number.
void damage(std::string& text, std::mt19937& random) {
  constexpr const char* numbers[]{"0",     "1",    "-1", "2", "7", "4294967296", "9223372036854775807",
                                  "1e300", "65536"};
  std::size_t at = text.find_first_of("0123456789", random() % text.size());
  if (at == std::string::npos) at = text.find_first_of("0123456789");
  std::size_t end = at;
  while (end < text.size() && std::isdigit(static_cast<unsigned char>(text[end]))) ++end;
  text.replace(at, end - at, numbers[random() % std::size(numbers)]);
}

}  // namespace

TEST_CASE("a damaged certificate crashes neither the checker of the proof nor that of the model") {
  const subject sound(small_llama(), target::cuda, dtype::bf16);
  const std::string text = certificate({{sound.p, sound.order}}, sound.model);
  std::mt19937 random(1);
  int unverified = 0, refused = 0, unharmed = 0;
  const int damages = rankc::test::some_of(1000);
  for (int n = 0; n < damages; ++n) {
    std::string damaged = text;
    for (unsigned k = 0; k <= random() % 2; ++k) damage(damaged, random);
    if (!verify(damaged).empty()) {
      ++unverified;
      continue;
    }
    const certified c = read_certificate(damaged);
    const equivalence e = check_equivalence(c.steps[0].program, c.steps[0].verdict, c.model);
    CHECK(e.holds == e.reasons.empty());
    ++(e.holds ? unharmed : refused);
  }
  CHECK(unverified * 2 > damages);
  CHECK(refused * 20 > damages * 3);
  CHECK(unharmed * 5 < damages);  // names, numbers of actions, the hash
}

}  // namespace damage_test
