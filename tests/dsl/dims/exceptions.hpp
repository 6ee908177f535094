// SPDX-License-Identifier: Apache-2.0
// Verdicts of rankc against those of other systems, but for classes of exceptions.
#pragma once
#include <doctest/doctest.h>

#include "systems.hpp"

namespace rankc::test {

/// A class of configurations about which rankc and a system differ, or agree for other reasons. The first
/// that applies to a configuration is its class.
struct exception {
  std::string reason;  // with the ids of the rule, conflict or defect among those of the systems
  bool (*applies)(const oracle&);
  bool theirs, ours;  // accepted
  int count;
};

/// Check all configurations: those of a class are as it says, all others have one verdict. Returns their
/// number.
inline int check_verdicts(const std::vector<oracle>& oracles, const std::vector<exception>& classes,
                          bool (*theirs)(const oracle&), bool (*ours)(const oracle&)) {
  std::vector<int> seen(classes.size());
  int agreed = 0;
  for (const oracle& o : oracles) {
    CAPTURE(o.system);
    CAPTURE(o.record.dump());
    const auto e =
        std::find_if(classes.begin(), classes.end(), [&](const exception& x) { return x.applies(o); });
    if (e == classes.end()) {
      CHECK(ours(o) == theirs(o));
      ++agreed;
    } else {
      CAPTURE(e->reason);
      CHECK(theirs(o) == e->theirs);
      CHECK(ours(o) == e->ours);
      ++seen[static_cast<std::size_t>(e - classes.begin())];
    }
  }
  for (std::size_t i = 0; i < classes.size(); ++i) {
    CAPTURE(classes[i].reason);
    CHECK(seen[i] == classes[i].count);
  }
  return agreed;
}

}  // namespace rankc::test
