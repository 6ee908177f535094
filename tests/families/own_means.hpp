// SPDX-License-Identifier: Apache-2.0
// Programs that divide by a rank's or a microbatch's own labels, so that a step's loss is a mean of means.
#pragma once
#include "../codegen/equivalence/subject.hpp"
#include "../some_of.hpp"
#include "split_plan.hpp"

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

namespace own_means {

using equivalence_tests::subject;

/// The names of the ops that sum labels over ranks or microbatches.
inline std::set<std::string> sums_of_labels(subject& s, const std::vector<std::string>& kinds) {
  std::set<std::string> names;
  for (int r = 0; r < static_cast<int>(s.p.ranks.size()); ++r)
    for (const std::string& kind : kinds)
      for (const auto* o : s.find(r, kind)) names.insert(o->name);
  return names;
}

/// Leaves out each sum of each plan's step and evaluation on all ranks, and checks that it is refused.
/// Without RANKC_EVERY_MUTANT only every twentieth program is made. Returns the number of refused programs.
inline int refuse_all(const std::vector<split_plan>& plans, const std::vector<std::string>& kinds) {
  std::size_t program = 0;
  int refused = 0;
  for (const split_plan& one : plans)
    for (const bool evaluates : {false, true}) {
      if (!rankc::test::plants_all() && program++ % 20 != 0) continue;
      CAPTURE(one.job);
      CAPTURE(one.layout);
      CAPTURE(evaluates);
      subject whole(one.plan, rankc::codegen::target::host, rankc::codegen::dtype::f64, evaluates);
      REQUIRE(whole.reason() == "");
      for (const std::string& name : sums_of_labels(whole, kinds)) {
        CAPTURE(name);
        subject s = whole;
        for (int r = 0; r < static_cast<int>(s.p.ranks.size()); ++r)
          for (auto* o : s.find(r, name))
            if (o->name == name) s.leave_out(r, *o);
        const std::string reason = s.reason();
        CAPTURE(reason);
        // Without its first number a sum is no sum of labels at all.
        CHECK(reason.find(name.ends_with("microbatch 0") ? "RC7" : "RC7428") != reason.npos);
        ++refused;
      }
    }
  return refused;
}

}  // namespace own_means
