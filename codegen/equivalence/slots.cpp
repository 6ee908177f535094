// SPDX-License-Identifier: Apache-2.0
// Sends expert slots to the ranks of their experts, and back. The order of slots follows from a choice. On
// the way out, an exchange turns it into the order of the slots that a member receives of all members. On the
// way back, it restores the order before.

#include <algorithm>

#include "collectives.hpp"

namespace rankc::codegen::algebra {

namespace {

const holding& only(const content& c, const char* what) {
  if (c.pieces.size() != 1 || c.pieces[0].holds.any ||
      c.pieces[0].at.rows * c.pieces[0].at.cols != c.elements() || c.pieces[0].holds.box.size() != 2)
    throw refusal("RC7650: a member of the exchange has {} that are not one complete, known matrix", what);
  return c.pieces[0].holds;
}

void check_counts_tokens(const holding& offsets) {
  if (offsets.sum[0].over.size() > 1)
    throw refusal("RC7651: offsets are sums over {} axes; expected one, the tokens",
                  offsets.sum[0].over.size());
}

/// The meaning of a member's offsets: the order of its slots, and the tokens to which they belong.
struct counted {
  const holding* offsets;
  term order;
  runs tokens;
};
counted read_offsets(const content& c, const slabs& as) {
  const holding& h = only(c, "offsets");
  const bool are_of_all = h.sum.size() == 1 && !h.box[1].is_arranged();
  const term order = are_of_all ? as.order_of(h.sum[0].of) : zero;
  if (order.is_zero() || !h.box[1].is_whole())
    throw refusal(
        "RC7652: a member of the exchange gives offsets that do not give the order of its tokens' slots");
  if (h.box[1].size % as.members)
    throw refusal("RC7653: {} experts do not divide by {} members", h.box[1].size, as.members);
  check_counts_tokens(h);
  return {&h, order, h.is_whole() ? runs(0, as.tokens) : h.sum[0].over[0].done};
}

/// The experts that a member holds.
interval experts_of(const holding& offsets, std::int64_t member, const slabs& as) {
  const std::int64_t each = offsets.box[1].size / as.members;
  return {member * each, (member + 1) * each};
}

/// The order of the slots that a member received of all members.
term order_of_received(term order, const interval& experts, const slabs& as) {
  return hasher(hash_of::slots_received)
         << order << static_cast<word>(experts.begin) << static_cast<word>(experts.end)
         << static_cast<word>(as.members) << static_cast<word>(as.rows);
}

void check_alike(const holding& x, const holding& y) {
  if (!holds_same_sum(x, y) || !(x.box[1] == y.box[1]) || x.box[0].size != y.box[0].size)
    throw different_values();
}

refusal different_choices() {
  return refusal("RC7654: the members of the exchange give offsets of different choices or experts");
}

/// The maximum number of slots that one member's tokens can have at another's experts. A token has at most
/// min(picks, experts) slots there. With a limit, each of these experts takes at most `most` slots of a
/// group; the tokens are then whole groups, because their choice was arranged in groups.
std::int64_t most_slots(std::int64_t picks, const counted& by, const slabs& as) {
  const std::int64_t experts = by.offsets->box[1].size / as.members,
                     all = by.tokens.size() * std::min(picks, experts);
  const taken_of_group limit = as.limit_of(by.order);
  return limit.tokens == 0 ? all : std::min(all, by.tokens.size() / limit.tokens * experts * limit.most);
}

/// The number of slots of each token. Checks that a slab has room for all slots that a member can send to
/// another's experts.
std::int64_t picks_of(const holding& slots, const counted& by, const slabs& as) {
  const std::int64_t picks = slots.box[0].size / as.tokens;
  if (picks < 1 || slots.box[0].size % as.tokens)
    throw refusal(
        "RC7655: the exchange is given {} rows for {} tokens; expected a multiple, the slots of each token",
        slots.box[0].size, as.tokens);
  if (const std::int64_t most = most_slots(picks, by, as); as.rows < most)
    throw refusal(
        "RC7656: the slabs of the exchange have {} rows; expected at least {}, the maximum number of slots "
        "that {} tokens can have at the experts of one member",
        as.rows, most, by.tokens.size());
  return picks;
}

content like(const content& c, const place& at, holding h) {
  content made{static_cast<std::size_t>(at.rows * at.cols * size_of(c.type)), c.type, {}};
  made.pieces.push_back({at, std::move(h)});
  return made;
}

/// The difference between the fingerprints of the orders of gathered slots and of one member's slots.
term difference_of_gathered(std::int64_t members, std::int64_t rows) {
  return hasher(hash_of::slots_gathered) << static_cast<word>(members) << static_cast<word>(rows);
}

}  // namespace

void refuse_counted(const runs& counted, const runs& slots) {
  throw refusal("RC7657: offsets are counted over {}; the slots are of {}", text_of('t', counted),
                text_of('t', slots));
}

/// The holding that covers a whole operand.
static const holding& only(const operand& o, const char* what) {
  const bool is_one = o.tiles.size() == 1 && o.tiles[0].rows == o.rows && o.tiles[0].cols == o.cols;
  if (!is_one || o.tiles[0].holds->any || o.tiles[0].holds->box.size() != 2 ||
      o.tiles[0].holds->sum.size() != 1)
    throw refusal("RC7658: the op has {} that are not one complete, known matrix", what);
  return *o.tiles[0].holds;
}

void own_slots(std::vector<operand>& ports, const model& m, workspace& space) {
  const holding &places = only(ports[2], "places"), &offsets = only(ports[3], "offsets");
  const term order = m.arrangement(places.sum[0].of);
  const bool are_of_all = places.is_whole() && !places.box[1].is_arranged() && places.box[1].is_whole() &&
                          !offsets.box[1].is_arranged() && offsets.box[1].is_whole();
  if (order.is_zero() || !are_of_all || m.arrangement(offsets.sum[0].of) != order)
    throw refusal(
        "RC7659: the op has places and offsets that do not determine one order of the slots of all experts");
  runs tokens = places.box[0].at, counted(0, places.box[0].size);
  check_counts_tokens(offsets);
  if (!offsets.is_whole()) counted = offsets.sum[0].over[0].done;
  if (interval twice; !tokens.sort(twice) || !(tokens == counted)) refuse_counted(counted, tokens);
  const std::int64_t experts = offsets.box[1].size;
  const interval own{ports[1].first, ports[1].first + ports[1].cols};
  if (own.begin < 0 || own.end > experts)
    throw refusal("RC7660: the call has experts {}..{}; there are {}", own.begin, own.end - 1, experts);
  const term own_order = hasher(hash_of::slots_of_experts)
                         << order << static_cast<word>(own.begin) << static_cast<word>(own.end);
  holding &places_of_own = space.make(), &offsets_of_own = space.make();
  places_of_own = places;
  offsets_of_own = offsets;
  places_of_own.box[1].arranged = own_order;
  offsets_of_own.box[1] = {runs(own.begin, own.end), experts, own_order};
  if (own.end - own.begin < experts) {
    const term all_experts = hasher(hash_of::experts) << order;
    places_of_own.sum[0].over.push_back({all_experts, 'e', joining::sum, experts, runs(own.begin, own.end)});
  }
  for (const int result : {0, 1}) {
    operand& o = ports[static_cast<std::size_t>(result)];
    o.tiles.push_back({0, 0, o.rows, o.cols, result == 0 ? &places_of_own : &offsets_of_own});
  }
}

term order_of_gathered(term order, std::int64_t members, std::int64_t rows) {
  return order + difference_of_gathered(members, rows);
}
term order_of_member(term order, std::int64_t members, std::int64_t rows) {
  return order - difference_of_gathered(members, rows);
}

std::vector<content> send_to_experts(const std::vector<const content*>& given,
                                     const std::vector<const content*>& offsets, const slabs& as) {
  runs all;
  for (std::size_t m = 0; m < given.size(); ++m) {
    const holding& h = only(*given[m], "slots");
    const counted by = read_offsets(*offsets[m], as);
    check_alike(only(*given[0], "slots"), h);
    runs own, set;
    interval twice;
    if (!h.box[0].at.to_units(picks_of(h, by, as), own) || !(set = own).sort(twice) || !(set == by.tokens))
      refuse_counted(by.tokens, own);
    if (h.box[0].arranged != by.order)
      throw refusal("RC7661: a member sends expert slots in an order that differs from its offsets");
    all.append(h.box[0].at);
  }
  std::vector<content> made;
  const std::int64_t width = given[0]->pieces[0].at.cols, rows = as.members * as.rows;
  for (std::size_t m = 0; m < given.size(); ++m) {
    const counted by = read_offsets(*offsets[m], as);
    holding h = given[m]->pieces[0].holds;
    h.box[0] = {all, h.box[0].size,
                order_of_received(by.order, experts_of(*by.offsets, static_cast<std::int64_t>(m), as), as)};
    made.push_back(like(*given[m], {0, rows, width, width}, std::move(h)));
  }
  return made;
}

std::vector<content> send_from_experts(const std::vector<const content*>& given,
                                       const std::vector<const content*>& offsets, const slabs& as) {
  std::vector<content> made;
  std::int64_t before = 0;
  for (std::size_t m = 0; m < given.size(); ++m) {
    const holding& h = only(*given[m], "slots");
    const counted by = read_offsets(*offsets[m], as);
    check_alike(only(*given[0], "slots"), h);
    if (!(h.box[0].at == given[0]->pieces[0].holds.box[0].at))
      throw refusal("RC7662: the members of the exchange send back slots of different tokens");
    if (h.box[0].arranged !=
        order_of_received(by.order, experts_of(*by.offsets, static_cast<std::int64_t>(m), as), as))
      throw refusal(
          "RC7663: a member sends slots back in an order that differs from the order in which it received "
          "them");
    const std::int64_t picks = picks_of(h, by, as), slots = by.tokens.size() * picks,
                       width = given[m]->pieces[0].at.cols;
    holding back = h;
    back.box[0] = {h.box[0].at.slice(before, slots), h.box[0].size, by.order};
    runs own;
    interval twice;
    if (!back.box[0].at.to_units(picks, own) || !own.sort(twice) || !(own == by.tokens))
      refuse_counted(by.tokens, own);
    made.push_back(like(*given[m], {0, slots, width, width}, std::move(back)));
    before += slots;
  }
  if (before != given[0]->pieces[0].holds.box[0].at.size())
    throw refusal("RC7664: {} slots are sent back, and the members' tokens have {}",
                  given[0]->pieces[0].holds.box[0].at.size(), before);
  return made;
}

std::vector<content> send_offsets(const std::vector<const content*>& given, const slabs& as) {
  holding all;
  for (const content* c : given) {
    const counted by = read_offsets(*c, as);
    if (c == given[0]) {
      all = *by.offsets;
      continue;
    }
    if (by.order != read_offsets(*given[0], as).order) throw different_choices();
    add_of_member(all, *by.offsets);
  }
  std::vector<content> made;
  for (std::size_t m = 0; m < given.size(); ++m) {
    const counted by = read_offsets(*given[m], as);
    const interval own = experts_of(*by.offsets, static_cast<std::int64_t>(m), as);
    holding h = all;
    h.box[1] = {runs(own.begin, own.end), all.box[1].size, order_of_received(by.order, own, as)};
    made.push_back(like(*given[m], given[m]->pieces[0].at, std::move(h)));
  }
  return made;
}

std::vector<content> gather_offsets(const std::vector<const content*>& given, const slabs& as) {
  holding all = only(*given[0], "offsets");
  for (const content* c : given) {
    const holding& h = only(*c, "offsets");
    if (!h.box[1].is_arranged())
      throw refusal(
          "RC7665: a member gathers offsets that do not determine the order of the slots that it received");
    if (!(h.box[1] == all.box[1])) throw different_choices();
    if (c != given[0]) add_of_member(all, h);
  }
  all.box[1].arranged = order_of_gathered(all.box[1].arranged, as.members, as.rows);
  const std::int64_t segments = as.members * given[0]->pieces[0].at.cols;
  return std::vector<content>(given.size(), like(*given[0], {0, 2, segments, segments}, all));
}

}  // namespace rankc::codegen::algebra
