// SPDX-License-Identifier: Apache-2.0
#include <rankc/codegen/gate.hpp>

#include <fmt/format.h>

#include <rankc/codegen/prove.hpp>
#include <rankc/codegen/text_template.hpp>
#include <stdexcept>

namespace rankc::codegen {
namespace {

void fit_or_throw(const lowered& l) {
  for (const pipeline_rank& r : l.ranks) {
    const std::size_t needed = r.arena.bytes + bytes_beside_arena(l, r);
    if (l.plan->machines.memory > 0 && needed > static_cast<std::size_t>(l.plan->machines.memory))
      throw std::runtime_error(fmt::format("RC401: the ranks of pipeline coordinate {} need {} of {}; use more tp or pp, "
                                           "or fewer rows per microbatch",
                                           r.index, readable_bytes(needed), readable_bytes(l.plan->machines.memory)));
  }
}

void prove_or_throw(const lowered& l) {
  for (const auto expand : {expand_train, expand_evaluate})
    if (const verdict v = prove(expand(l)); !v.ok)
      throw std::logic_error(fmt::format("the lowered program is not sound: {}", fmt::join(v.reasons, "; ")));
}

}  // namespace

void check_or_throw(const lowered& l) {
  fit_or_throw(l);
  prove_or_throw(l);
}

}  // namespace rankc::codegen
