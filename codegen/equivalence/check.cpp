// SPDX-License-Identifier: Apache-2.0
#include <rankc/codegen/equivalence.hpp>

#include <random>
#include <stdexcept>

#include "chance.hpp"
#include "claims.hpp"
#include "interpret.hpp"
#include "model.hpp"
#include "places.hpp"

namespace rankc::codegen {

std::uint64_t random_seed() {
  std::random_device entropy;
  return std::uint64_t{entropy()} << 32 | entropy();
}

equivalence check_equivalence(const program& p, const verdict& order, const specification& s,
                              std::uint64_t seed) {
  equivalence result;
  const algebra::fields drawn = algebra::draw_fields(seed);
  result.drawn = {seed, {drawn.a.prime, drawn.b.prime}};
  if (!order.ok) {
    result.reasons.push_back(
        runtime::say("RC7455: the program is not proven, so it is not compared with the model"));
    return result;
  }
  const algebra::drawn scope(drawn);
  try {
    const algebra::model m(s);
    algebra::claims claimed(p, m);
    try {
      algebra::interpreter(p, m, claimed).run(order);
    } catch (const algebra::missing_tokens&) {  // once more, to see whose they are
      algebra::contributions made;
      algebra::claims again(p, m);
      algebra::interpreter(p, m, again, &made).run(order);
    }
    claimed.check_all();
    algebra::check_places(p);
    result.claims = claimed.sentences();
    result.holds = true;
    result.drawn.chance = algebra::chance_of_wrong_accept(p, s, m.known_terms());
  } catch (const algebra::unknown_row& why) {
    result.has_unknown_row = true;
    result.reasons.push_back(why.what());
  } catch (const algebra::refusal& why) {
    result.reasons.push_back(why.what());
  } catch (const std::out_of_range&) {
    result.reasons.push_back(runtime::say("RC7456: an op names an operand that it does not have"));
  }
  return result;
}

}  // namespace rankc::codegen
