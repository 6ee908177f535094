// SPDX-License-Identifier: Apache-2.0
// Slots of tokens go to the ranks of their experts, with offsets that identify them, and return to their
// origin.
#include "../runtime/core/host/plan.hpp"
#include "row.hpp"

#include <algorithm>
#include <random>
#include <tuple>

namespace rankc::test::rows {
namespace {

/// A member's slots in the order of their experts, and the experts' offsets.
struct own_slots {
  std::vector<double> rows;
  std::vector<std::int32_t> offsets;
};
own_slots draw(std::mt19937& generator, const runtime::slot_exchange& by) {
  own_slots m{std::vector<double>(static_cast<std::size_t>(by.slots * by.width)),
              std::vector<std::int32_t>(static_cast<std::size_t>(2 * by.experts))};
  for (double& x : m.rows) x = 1 + static_cast<double>(generator() % 1000);
  std::vector<int> expert_of(static_cast<std::size_t>(by.slots));
  for (int& e : expert_of) e = static_cast<int>(generator() % static_cast<unsigned>(by.experts));
  std::sort(expert_of.begin(), expert_of.end());
  for (int e = 0; e < by.experts; ++e) {
    const auto [first, end] = std::equal_range(expert_of.begin(), expert_of.end(), e);
    m.offsets[static_cast<std::size_t>(e)] = static_cast<int>(first - expert_of.begin());
    m.offsets[static_cast<std::size_t>(by.experts + e)] = static_cast<int>(end - expert_of.begin());
  }
  return m;
}

/// The slots that a member has received, their segments, and the slots that come back.
struct exchanged_slots {
  std::vector<double> received, back;
  std::vector<std::int32_t> segments;
};
std::vector<exchanged_slots> send_around(const std::vector<own_slots>& given,
                                         const runtime::slot_exchange& by) {
  std::vector<exchanged_slots> made(given.size());
  plan p(1, by.ranks, 1);
  train_body = [&](rank& r) {
    const own_slots& own = given[static_cast<std::size_t>(r.index)];
    const std::size_t own_bytes = 8 * own.rows.size(),
                      room = static_cast<std::size_t>(by.ranks * by.slab * by.width), bytes = 8 * room,
                      few = 64 * static_cast<std::size_t>(by.experts);
    const at rows = data<double>(0), received = rows + own_bytes, scratch = received + bytes,
             offsets = scratch + bytes, segments = offsets + few, between = segments + few;
    std::copy(own.rows.begin(), own.rows.end(), r.at<double>(rows));
    std::copy(own.offsets.begin(), own.offsets.end(), r.at<std::int32_t>(offsets));
    std::fill_n(r.at<double>(received), room, -1.0);
    share_offsets(r[compute], over::dp, {0, "offsets"}, segments, between, offsets, by);
    to_experts<double>(r[compute], over::dp, {1, "slots"}, received, scratch, rows, offsets, by);
    std::fill_n(r.at<double>(rows), own.rows.size(), -1.0);
    from_experts<double>(r[compute], over::dp, {2, "back"}, rows, scratch, received, offsets, by);
    exchanged_slots& out = made[static_cast<std::size_t>(r.index)];
    out.received.assign(r.at<double>(received), r.at<double>(received) + room);
    out.back.assign(r.at<double>(rows), r.at<double>(rows) + own.rows.size());
    out.segments.assign(r.at<std::int32_t>(segments), r.at<std::int32_t>(segments) + 2 * by.experts);
  };
  p.install()->step(input(1));
  return made;
}

TEST_CASE(
    "a member gets the slots of its experts of each other, as its segments say, and gives them back to where "
    "they lay") {
  std::mt19937 generator(5);
  int kept = 0, dropped = 0;
  for (const int ranks : {2, 3, 5})
    for (const auto& [each, slots, width, slab] : {std::tuple(1, 12, 1, 12), {2, 8, 3, 8}, {3, 30, 2, 4}}) {
      const runtime::slot_exchange by{ranks, slab, ranks * each, slots, width};
      std::vector<own_slots> given;
      for (int m = 0; m < ranks; ++m) given.push_back(draw(generator, by));
      const std::vector<exchanged_slots> made = send_around(given, by);
      CAPTURE(ranks);
      CAPTURE(slab);
      for (int m = 0; m < ranks; ++m)
        for (int from = 0; from < ranks; ++from) {
          const own_slots& source = given[static_cast<std::size_t>(from)];
          const int first = source.offsets[static_cast<std::size_t>(m * each)];
          std::vector<bool> is_slot(static_cast<std::size_t>(slab), false);
          for (int e = m * each; e < (m + 1) * each; ++e) {
            const auto segment = static_cast<std::size_t>(from * each + e % each);
            const exchanged_slots& here = made[static_cast<std::size_t>(m)];
            const int begin = here.segments[segment] - from * slab,
                      end = here.segments[segment + static_cast<std::size_t>(by.experts)] - from * slab;
            const int all = source.offsets[static_cast<std::size_t>(by.experts + e)] -
                            source.offsets[static_cast<std::size_t>(e)];
            const int room = std::clamp(slab - (source.offsets[static_cast<std::size_t>(e)] - first), 0, all);
            CHECK(end - begin == room);
            for (int i = 0; i < room; ++i) {
              is_slot[static_cast<std::size_t>(begin + i)] = true;
              for (int c = 0; c < width; ++c)
                CHECK(here.received[static_cast<std::size_t>((from * slab + begin + i) * width + c)] ==
                      source.rows[static_cast<std::size_t>(
                          (source.offsets[static_cast<std::size_t>(e)] + i) * width + c)]);
            }
            for (int i = 0; i < all; ++i)
              for (int c = 0; c < width; ++c) {
                const auto at =
                    static_cast<std::size_t>((source.offsets[static_cast<std::size_t>(e)] + i) * width + c);
                CHECK(made[static_cast<std::size_t>(from)].back[at] == (i < room ? source.rows[at] : 0));
              }
            kept += room;
            dropped += all - room;
          }
          for (int row = 0; row < slab; ++row)
            if (!is_slot[static_cast<std::size_t>(row)])
              CHECK(made[static_cast<std::size_t>(m)]
                        .received[static_cast<std::size_t>((from * slab + row) * width)] == 0);
        }
    }
  CHECK(kept > 100);
  CHECK(dropped > 20);  // slabs have less room than there are slots
}

TEST_CASE(
    "a member gets the segments of all, each member's as of the rows behind those of the members before") {
  for (const int ranks : {2, 3, 5})
    for (const auto& [each, slab] : {std::pair(1, 6), {4, 16}, {9, 2}}) {
      const runtime::slot_exchange by{ranks, slab, ranks * each};
      const auto offset = [&, n = each](int member, int which, int s) {
        return (7 * member + 3 * (which * n + s)) % (slab + 1);
      };
      std::vector<std::vector<std::int32_t>> made(static_cast<std::size_t>(ranks));
      plan p(1, ranks, 1);
      train_body = [&, n = each](rank& r) {
        const std::size_t few = 64 * static_cast<std::size_t>(by.experts);
        const at segments = data<double>(0), all = segments + few, scratch = all + few;
        for (int which = 0; which < 2; ++which)
          for (int s = 0; s < n; ++s) r.at<std::int32_t>(segments)[which * n + s] = offset(r.index, which, s);
        gather_offsets(r[compute], over::dp, {0, "offsets"}, all, scratch, segments, by);
        made[static_cast<std::size_t>(r.index)].assign(r.at<std::int32_t>(all),
                                                       r.at<std::int32_t>(all) + 2 * by.experts);
      };
      p.install()->step(input(1));
      CAPTURE(ranks);
      CAPTURE(slab);
      for (const std::vector<std::int32_t>& m : made)
        for (int from = 0; from < ranks; ++from)
          for (int which = 0; which < 2; ++which)
            for (int s = 0; s < each; ++s)
              CHECK(m[static_cast<std::size_t>(which * by.experts + from * each + s)] ==
                    from * slab + offset(from, which, s));
    }
}

}  // namespace
}  // namespace rankc::test::rows
