// SPDX-License-Identifier: Apache-2.0
// Programs without the ops that count labels, or add up their weights.
#pragma once
#include <doctest/doctest.h>

#include <array>
#include <string>

#include "../codegen/equivalence/subject.hpp"

namespace masked {

inline bool is_refused_as(const std::string& reason, const std::string& id) {
  return reason.find(id) != std::string::npos;
}

/// The verdict on a program without the ops of a name, on all ranks.
inline std::string reason_without(const rankc::plan_data& plan, const char* op_name, bool evaluates = false) {
  equivalence_tests::subject s(plan, rankc::codegen::target::host, rankc::codegen::dtype::f64, evaluates);
  REQUIRE(s.reason() == "");
  bool any = false;
  for (int r = 0; r < static_cast<int>(s.p.ranks.size()); ++r)
    for (rankc::codegen::op* o : s.find(r, op_name)) {
      s.leave_out(r, *o);
      any = true;
    }
  REQUIRE(any);
  return s.reason();
}

/// A recipe with fp8, with LoRA, and with sums in bf16.
inline std::array<rankc::training, 3> variants_of(const rankc::training& recipe) {
  std::array<rankc::training, 3> all{recipe, recipe, recipe};
  all[0].linears = rankc::fp8;
  all[1].lora = {.rank = 2, .alpha = 4, .targets = {"wq", "wv"}};
  all[2].reductions = rankc::bf16;
  return all;
}

}  // namespace masked
