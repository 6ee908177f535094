// SPDX-License-Identifier: Apache-2.0
#include "checker.hpp"

#include <rankc/codegen/equivalence.hpp>
#include <rankc/codegen/prove.hpp>

namespace field {

std::string check_terms(const rankc::codegen::program& p, const rankc::codegen::specification& s) {
  const rankc::codegen::equivalence e = check_equivalence(p, rankc::codegen::prove(p), s);
  if (e.holds) return {};
  return e.reasons.empty() ? "refused without a reason" : e.reasons.front();
}

}  // namespace field
