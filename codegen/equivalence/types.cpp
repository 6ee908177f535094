// SPDX-License-Identifier: Apache-2.0
#include "types.hpp"

#include <array>
#include <string_view>

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
    case holding_kind::input:
      return t == element_type::i32 || is_real(t);
    case holding_kind::weight:
      return is_wide(t) || (by.bf16_weights && t == element_type::bf16);
    case holding_kind::first_moment:
    case holding_kind::second_moment:
      return is_wide(t) || (by.bf16_moments && t == element_type::bf16);
    case holding_kind::working_copy:
    case holding_kind::padding:
      return is_real(t);
    case holding_kind::rotary:
    case holding_kind::loss:
    case holding_kind::norm:
      return is_wide(t);
  }
  return false;
}

/// The types of a kernel's floating-point tensors.
class number_types {
 public:
  explicit number_types(const kernel_set& calls) : on_host_(calls.on_host) {}

  void add(const port& p, element_type type) {
    if (type == (on_host_ ? element_type::bf16 : element_type::f64))
      throw refusal("RC7764: tensor {} is in {}; the kernels of {} compute in {}", p.name, type_name(type),
                    on_host_ ? "the host" : "CUDA", on_host_ ? "f32 or f64" : "bf16 or f32");
    first& known = p.is_wide ? wide_ : real_;
    if (!known.of) known = {&p, type};
    if (type != known.type)
      throw refusal("RC7762: tensor {} is in {} and tensor {} in {}; their kernel takes one type",
                    known.of->name, type_name(known.type), p.name, type_name(type));
  }
  void check_wide() const {
    if (!wide_.of) return;
    const element_type computed = real_.of ? real_.type : wide_.type,
                       expected = computed == element_type::f64 ? computed : element_type::f32;
    if (wide_.type != expected)
      throw refusal("RC7763: tensor {} is in {}; its kernel takes f32, or f64 where it computes in f64",
                    wide_.of->name, type_name(wide_.type));
  }

 private:
  struct first {
    const port* of = nullptr;
    element_type type = element_type::bytes;
  };
  const bool on_host_;
  first real_, wide_;
};

}  // namespace

void check_number_types(const op& o, const fact& f, const kernel_set& calls) {
  number_types numbers(calls);
  for (std::size_t i = 0; i < f.ports.size(); ++i) {
    const view& v = o.views[i];
    if (!f.ports[i].holds.empty()) continue;
    for (const int a : v.accesses)
      numbers.add(f.ports[i], (v.written ? o.writes : o.reads)[static_cast<std::size_t>(a)].type);
  }
  numbers.check_wide();
}

/// Whether a program has a tensor of each type, by type.
static std::array<bool, std::size(element_type_names)> types_of(const program& p) {
  std::array<bool, std::size(element_type_names)> has{};
  for (const rank_program& r : p.ranks)
    for (const op& o : r.ops)
      for (const auto* accesses : {&o.reads, &o.writes})
        for (const access& a : *accesses) has[static_cast<std::size_t>(a.type)] = true;
  return has;
}

void check_number_types(const program& p) {
  const auto types = types_of(p);
  const auto has = [&](element_type t) { return types[static_cast<std::size_t>(t)]; };
  if (has(element_type::f64) && has(element_type::f32))
    throw refusal("RC7765: the step has tensors in f32 and in f64; expected one of the types");
}

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
