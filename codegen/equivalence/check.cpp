// SPDX-License-Identifier: Apache-2.0
#include <rankc/codegen/equivalence.hpp>

#include <memory>
#include <random>
#include <stdexcept>

#include "chance.hpp"
#include "claims.hpp"
#include "inputs.hpp"
#include "interpret.hpp"
#include "model.hpp"
#include "places.hpp"
#include "types.hpp"

namespace rankc::codegen {

std::uint64_t random_seed() {
  std::random_device entropy;
  return std::uint64_t{entropy()} << 32 | entropy();
}

namespace {

/// Runs `check`, and adds the reason of a refusal.
template <class Check>
void explain_refusal(equivalence& result, Check check) {
  try {
    check();
  } catch (const algebra::unknown_row& why) {
    result.has_unknown_row = true;
    result.reasons.push_back(why.what());
  } catch (const algebra::refusal& why) {
    result.reasons.push_back(why.what());
  } catch (const std::out_of_range&) {
    result.reasons.push_back(runtime::say("RC7456: an op names an operand that it does not have"));
  }
}

/// Interprets a program. If tokens are missing, interprets it again with a record of contributions, to name
/// the op.
void interpret(const program& p, const algebra::model& m, const verdict& order, algebra::claims& claimed) {
  try {
    algebra::interpreter(p, m, claimed).run(order);
  } catch (const algebra::missing_tokens&) {
    algebra::contributions made;
    algebra::claims again(p, m);
    algebra::interpreter(p, m, again, &made).run(order);
  }
}

/// The model as terms of drawn fields.
struct model_terms {
  algebra::fields drawn;
  algebra::model model;
};

equivalence check_program(const program& p, const verdict& order, const model_terms& terms,
                          const specification& s, equivalence result) {
  const algebra::drawn scope(terms.drawn);
  explain_refusal(result, [&] {
    algebra::claims claimed(p, terms.model);
    interpret(p, terms.model, order, claimed);
    claimed.check_all();
    algebra::check_places(p);
    algebra::check_inputs(p, terms.model);
    algebra::check_number_types(p);
    result.claims = claimed.sentences();
    result.holds = true;
    result.drawn.chance = algebra::chance_of_wrong_accept(p, s, terms.model.known_terms());
  });
  return result;
}

}  // namespace

equivalence_check check_against(const specification& s, std::uint64_t seed) {
  equivalence begun;  // the draw, and the reasons for which the model is refused
  std::shared_ptr<const model_terms> terms;
  const algebra::fields fields = algebra::draw_fields(seed);
  begun.drawn = {seed, {fields.a.prime, fields.b.prime}};
  const algebra::drawn scope(fields);
  explain_refusal(begun, [&] { terms.reset(new model_terms{fields, algebra::model(s)}); });
  return [&s, begun, terms](const program& p, const verdict& order) {
    if (order.ok) return terms ? check_program(p, order, *terms, s, begun) : begun;
    equivalence unproven;
    unproven.drawn = begun.drawn;
    unproven.reasons = {
        runtime::say("RC7455: the program is not proven, so it is not compared with the model")};
    return unproven;
  };
}

equivalence check_equivalence(const program& p, const verdict& order, const specification& s,
                              std::uint64_t seed) {
  return check_against(s, seed)(p, order);
}

}  // namespace rankc::codegen
