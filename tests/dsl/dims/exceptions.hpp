// SPDX-License-Identifier: Apache-2.0
// Compares rankc's verdicts with those of other systems, with classes of exceptions.
#pragma once
#include <doctest/doctest.h>

#include "systems.hpp"

namespace rankc::test {

/// A class of configurations about which rankc and another system differ, or agree for different reasons. A
/// configuration belongs to the first class that applies.
struct exception {
  std::string reason;  // with the ids of the systems' rule, conflict or defect
  bool (*applies)(const oracle&);
  bool theirs, ours;  // whether each accepts
  int count;
};

/// Check all configurations: those in a class have the class's verdicts, and the systems agree on all others.
/// Returns: the number of configurations.
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
