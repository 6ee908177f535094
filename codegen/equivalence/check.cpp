// SPDX-License-Identifier: Apache-2.0
#include <rankc/codegen/equivalence.hpp>

#include <stdexcept>

#include "claims.hpp"
#include "interpret.hpp"
#include "model.hpp"
#include "places.hpp"

namespace rankc::codegen {

equivalence check_equivalence(const program& p, const verdict& order, const specification& s) {
  equivalence result;
  if (!order.ok) {
    result.reasons.push_back(
        runtime::say("RC7455: the program is not proven, so it is not compared with the model"));
    return result;
  }
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
