// SPDX-License-Identifier: Apache-2.0
// The opinions of the checker and of the oracles about a mutant. The oracles share nothing with the checker:
// they run it over the field, in f64, and in the interleavings of the execution model.
#pragma once
#include "mutant.hpp"

#include <rankc/codegen/prove.hpp>

#include <functional>
#include <string>

namespace field {

/// Why a program is refused that the proof of order accepts; empty: it computes the model.
using opinion = std::function<std::string(const rankc::codegen::program&, const rankc::codegen::verdict&,
                                          const rankc::codegen::specification&)>;

struct opinions {
  bool proven = false;  // accepted by the proof of order
  std::string refusal;  // of the proof or of the checker
  std::string failure;  // of the checker, which threw
  execution::outcome exact, f64;
  std::string harm;  // in an interleaving

  bool accepted() const { return refusal.empty(); }
  bool different() const { return !exact.equal || !f64.equal || !harm.empty(); }
};

/// Ask all oracles, or stop at the first that says "different".
enum class asked { all, until_different };

/// Interleavings are searched where both runs are equal.
opinions ask(const judged&, const opinion& checker, unsigned seed, asked);

/// Why a program that is no mutant is refused or different; empty: it is neither.
std::string find_wrong(const judged&, const opinion& checker);

}  // namespace field
