// SPDX-License-Identifier: Apache-2.0
// Times of collectives and messages, against those of the Python original.
#include <doctest/doctest.h>

#include "oracle.hpp"

using namespace oracle;

namespace {

link_time time_of(const setting& on, std::string_view type, group ranks) {
  if (type == "p2p") return message_time(on.gpu, ranks.in_domain > 1);
  if (type == "allreduce") return collective_time(on, collective::all_reduce, ranks);
  const bool rooted = type == "broadcast" || type == "reduce";
  return collective_time(on, rooted ? collective::rooted : collective::sharded, ranks);
}

}  // namespace

TEST_CASE("collectives take the Python's times") {
  int count = 0;
  for (const std::string& line : lines_of("comm.csv", 1)) {
    CAPTURE(line);
    fields f(line);
    const std::string_view type = f.word(), name = f.word();
    const setting on{{}, system_of(name, f.integer())};
    const group ranks{.size = f.integer(), .in_domain = f.integer()};
    const double volume = f.number(), theirs = f.number();
    CHECK(same(time_of(on, type, ranks).of(volume), theirs));
    ++count;
  }
  CHECK(count == 1174);
}
