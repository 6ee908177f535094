// SPDX-License-Identifier: Apache-2.0
#include "checker.hpp"

#include <rankc/codegen/equivalence.hpp>

namespace field {

std::string compare_terms(const rankc::codegen::program& p, const rankc::codegen::verdict& order,
                          const rankc::codegen::specification& s) {
  const rankc::codegen::equivalence e = check_equivalence(p, order, s);
  if (e.holds) return {};
  return e.reasons.empty() ? "refused without a reason" : e.reasons.front();
}

std::string check_terms(const rankc::codegen::program& p, const rankc::codegen::specification& s) {
  return compare_terms(p, rankc::codegen::prove(p), s);
}

}  // namespace field
