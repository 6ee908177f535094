// SPDX-License-Identifier: Apache-2.0
// Checks that GEMMs take fp8 operands exactly where the recipe rounds them.
#include <algorithm>

#include "cell.hpp"

namespace rankc::codegen::algebra {

namespace {

using rounding = specification::rounding;

std::string_view rounding_name(rounding r) { return r == rounding::fp8_rows ? "fp8_rows" : "fp8"; }

rounding rounding_of(element_type t) {
  if (!is_fp8(t)) return rounding::none;
  return t == element_type::e4m3_rows ? rounding::fp8_rows : rounding::fp8;
}

}  // namespace

void cell::check_rounding(const equation& e, const std::vector<operand>& ports, term of) const {
  rounding found = rounding::none;
  for (const int o : e.operands)
    found = std::max(found, rounding_of(ports[static_cast<std::size_t>(o)].type));
  const rounding expected = model_.rounding_of(of);
  if (found == expected) return;
  if (expected == rounding::none)
    throw refusal("RC7700: the op makes {} of numbers rounded to {}; the recipe does not round them",
                  model_.name(of), rounding_name(found));
  if (found == rounding::none)
    throw refusal("RC7701: the op makes {} of numbers that are not rounded; the recipe rounds them to {}",
                  model_.name(of), rounding_name(expected));
  throw refusal("RC7702: the op makes {} of numbers rounded to {}; the recipe rounds them to {}",
                model_.name(of), rounding_name(found), rounding_name(expected));
}

}  // namespace rankc::codegen::algebra
