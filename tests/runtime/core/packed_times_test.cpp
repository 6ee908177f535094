// SPDX-License-Identifier: Apache-2.0
#include <rankc/runtime/packed_times.hpp>

#include <doctest/doctest.h>

namespace rankc::runtime {
namespace {

TEST_CASE("times that go to another process arrive as they were") {
  const std::vector<traced> times{{3, 0, "1F0", 0, 0.125},
                                  {3, 5, "B11: stage 2 -> 1", 1e7, 1.00000001e7},
                                  {3, 1, "", -1, 2},
                                  {3, 1, "four", 1, 2},
                                  {3, 0, "1F0", 5, 6}};
  std::string bytes = packed(times);
  std::set<std::string> names;
  std::vector<traced> got{{0, 0, "before", 1, 2}};
  unpack(bytes, names, got);
  bytes.assign(bytes.size(), 'x');
  REQUIRE(got.size() == 1 + times.size());
  for (std::size_t i = 0; i < times.size(); ++i) {
    CAPTURE(i);
    CHECK(got[i + 1].rank == times[i].rank);
    CHECK(got[i + 1].lane == times[i].lane);
    CHECK(std::string(got[i + 1].name) == times[i].name);
    CHECK(got[i + 1].begin == times[i].begin);
    CHECK(got[i + 1].end == times[i].end);
  }
  CHECK(names.size() == 4);
  unpack({}, names, got);
  CHECK(got.size() == 1 + times.size());
}

}  // namespace
}  // namespace rankc::runtime
