// SPDX-License-Identifier: Apache-2.0
#include "types.hpp"

#include "claims.hpp"

namespace rankc::codegen::algebra {

namespace {

const char* type_name(element_type t) { return element_type_names[static_cast<int>(t)]; }

bool is_real(element_type t) { return is_wide(t) || t == element_type::bf16; }

bool may_be(element_type t, holding_kind kind, const specification::update& by) {
  switch (kind) {
    case holding_kind::ids:
    case holding_kind::targets:
    case holding_kind::starts:
      return t == element_type::i32;
    case holding_kind::weight:
      return is_wide(t) || (by.bf16_weights && t == element_type::bf16);
    case holding_kind::first_moment:
    case holding_kind::second_moment:
      return is_wide(t) || (by.bf16_moments && t == element_type::bf16);
    case holding_kind::working_copy:
    case holding_kind::padding:
    case holding_kind::rotary:
      return is_real(t);
    case holding_kind::loss:
    case holding_kind::norm:
      return is_wide(t);
  }
  return false;
}

}  // namespace

void check_type(const access& a, const codegen::holding& h, const specification::update& by) {
  if (!may_be(a.type, h.kind, by))
    throw refusal("RC7704: {} begins in {}, a type in which the recipe does not keep it", name_of(h),
                  type_name(a.type));
}

void check_updated_type(const view& v, element_type given, element_type made) {
  if (v.port == "working_copy" ? is_real(made) : made == given) return;
  throw refusal("RC7706: the optimizer writes {} in {}; expected {}", v.port, type_name(made),
                type_name(given));
}

}  // namespace rankc::codegen::algebra
