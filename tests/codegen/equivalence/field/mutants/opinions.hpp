// SPDX-License-Identifier: Apache-2.0
// The verdicts of the checker and of the oracles about a mutant. The oracles share no code with the checker:
// they run the mutant over the field, in f64, and in the interleavings of the execution model.
#pragma once
#include "mutant.hpp"

#include <rankc/codegen/prove.hpp>

#include <functional>
#include <string>

namespace field {

/// The checker's reason for refusing a program whose order is proven; empty if the program computes the
/// model.
using opinion = std::function<std::string(const rankc::codegen::program&, const rankc::codegen::verdict&,
                                          const rankc::codegen::specification&)>;

struct opinions {
  bool proven = false;  // accepted by the proof of order
  std::string refusal;  // by the proof or by the checker
  std::string failure;  // exception of the checker
  execution::outcome exact, f64;
  std::string harm;  // shown by an interleaving

  bool accepted() const { return refusal.empty(); }
  bool different() const { return !exact.equal || !f64.equal || !harm.empty(); }
};

/// Ask all oracles, or stop at the first that finds a difference.
enum class asked { all, until_different };

/// Ask the oracles about a mutant. Interleavings are tried only if both runs are equal.
opinions ask(const judged&, const opinion& checker, unsigned seed, asked);

/// The reason why an unmodified program is refused or different; empty if it is neither.
std::string find_wrong(const judged&, const opinion& checker);

}  // namespace field
