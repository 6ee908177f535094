// SPDX-License-Identifier: Apache-2.0
#include "mutations.hpp"

#include <algorithm>
#include <span>
#include <utility>

namespace rankc::codegen::testing {

namespace {

bool communicates(const op& o) {
  return o.kind == op_kind::send || o.kind == op_kind::receive || o.kind == op_kind::collective;
}

template <class Map>
void renumber_waits(std::vector<op>& ops, Map to) {
  for (auto& o : ops) {
    for (int& w : o.waits) w = to(w);
    std::erase(o.waits, -1);
  }
}

void rename_reads(std::vector<op>& ops, int from, int to) {
  for (auto& o : ops)
    for (auto& a : o.reads)
      if (a.value == from) a.value = to;
}

/// Remove an op. Ops that came after it, by an event or on its stream, now come after all its predecessors.
void take_out(std::vector<op>& ops, int k) {
  const auto neighbour = [&](int step) {
    int n = k + step;
    while (n >= 0 && n < static_cast<int>(ops.size()) && ops[n].stream != ops[k].stream) n += step;
    return n < static_cast<int>(ops.size()) ? n : -1;
  };
  std::vector<int> before = ops[k].waits;
  if (const int previous = neighbour(-1); previous >= 0) before.push_back(previous);
  const int next = neighbour(1);
  for (int n = 0; n < static_cast<int>(ops.size()); ++n)
    if (n == next || std::find(ops[n].waits.begin(), ops[n].waits.end(), k) != ops[n].waits.end())
      ops[n].waits.insert(ops[n].waits.end(), before.begin(), before.end());
  renumber_waits(ops, [&](int w) { return w == k ? -1 : w - (w > k); });
  ops.erase(ops.begin() + k);
}

/// Remove a collective in place: readers of its results read its inputs.
void skip(std::vector<op>& ops, int k) {
  for (std::size_t a = 0; a < ops[k].writes.size(); ++a)
    rename_reads(ops, ops[k].writes[a].value, ops[k].reads[a].value);
  take_out(ops, k);
}

/// One draw of a mutation of one rank. Waits stay with their op when it moves.
struct mutator {
  program& p;
  std::mt19937& random;
  int rank = below(static_cast<int>(p.ranks.size()));
  std::vector<op>& ops = p.ranks[rank].ops;
  int i = below(static_cast<int>(ops.size()));

  int below(int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); }
  std::string at(int k) const { return "rank " + std::to_string(rank) + ": \"" + ops[k].name + "\""; }
  /// Pick an op that satisfies a condition. Returns: false if the rank has no such op.
  template <class Condition>
  bool turn_to(Condition suits) {
    std::vector<int> found;
    for (int k = 0; k < static_cast<int>(ops.size()); ++k)
      if (suits(ops[k])) found.push_back(k);
    if (!found.empty()) i = found[below(static_cast<int>(found.size()))];
    return !found.empty();
  }
  template <class Map>
  void renumber_waits(Map to) {
    testing::renumber_waits(ops, to);
  }

  mutation drop() {
    const auto text = at(i);
    renumber_waits([&](int w) { return w == i ? -1 : w - (w > i); });
    ops.erase(ops.begin() + i);
    return {"drop", text};
  }
  mutation swap() {
    const int size = static_cast<int>(ops.size());
    const int j = below(2) ? std::min(i + 1 + below(4), size - 1) : below(size);
    if (i == j) return {};
    renumber_waits([&](int w) {
      if (w == i) return j;
      return w == j ? i : w;
    });
    std::swap(ops[i], ops[j]);
    return {"swap", at(i) + " and " + at(j)};
  }
  mutation duplicate() {
    const int to = i + 1 + below(static_cast<int>(ops.size()) - i);
    renumber_waits([&](int w) { return w + (w >= to); });
    ops.insert(ops.begin() + to, op(ops[i]));
    return {"duplicate", at(i)};
  }
  mutation retarget_peer() {
    if (!turn_to([](const op& o) { return o.kind == op_kind::send || o.kind == op_kind::receive; }))
      return {};
    const int old = std::exchange(ops[i].peer, below(static_cast<int>(p.ranks.size())));
    return old == ops[i].peer ? mutation{} : mutation{"retarget peer", at(i)};
  }
  mutation retarget_communicator() {
    if (!turn_to(communicates)) return {};
    const int old = std::exchange(ops[i].communicator, below(static_cast<int>(p.communicators.size())));
    return old == ops[i].communicator ? mutation{} : mutation{"retarget communicator", at(i)};
  }
  mutation change_message() {
    if (!turn_to(communicates)) return {};
    switch (below(3)) {
      case 0:
        ops[i].bytes += 64;
        break;
      case 1:
        ops[i].message += 1;
        break;
      default:
        ops[i].name += "'";
    }
    return {"change message", at(i)};
  }
  mutation remove_wait() {
    if (!turn_to([](const op& o) { return !o.waits.empty(); })) return {};
    auto& waits = ops[i].waits;
    waits.erase(waits.begin() + below(static_cast<int>(waits.size())));
    return {"remove wait", at(i)};
  }
  mutation move_wait() {
    if (!turn_to([](const op& o) { return !o.waits.empty(); })) return {};
    auto& waits = ops[i].waits;
    int& wait = waits[below(static_cast<int>(waits.size()))];
    const int old = std::exchange(wait, below(i));
    return old == wait ? mutation{} : mutation{"move wait", at(i)};
  }
  mutation move_stream() {
    const int stream = below(p.streams);
    if (stream == ops[i].stream) return {};
    ops[i].stream = stream;
    return {"move stream", at(i)};
  }

  access* any_access() {
    auto& list = below(2) ? ops[i].reads : ops[i].writes;
    return list.empty() ? nullptr : &list[below(static_cast<int>(list.size()))];
  }
  /// Another address in the arena, in half of the draws right next to the old one.
  std::size_t place_for(const access& a) {
    const auto size = a.end - a.begin, arena = p.ranks[rank].arena_bytes;
    const auto step = std::max<std::size_t>(size / 2, 1);
    if (below(2))
      return below(2) ? std::min(a.begin + step, arena - size) : a.begin - std::min(a.begin, step);
    return (random() % (arena - size + 1)) / step * step;
  }
  mutation shift_access() {
    access* a = any_access();
    if (a == nullptr) return {};
    const auto to = place_for(*a);
    if (to == a->begin) return {};
    a->end = to + (a->end - a->begin);
    a->begin = to;
    return {"shift access", at(i)};
  }
  mutation shift_buffer() {
    const access* chosen = any_access();
    if (chosen == nullptr) return {};
    const access buffer = *chosen;
    const auto to = place_for(buffer);
    if (to == buffer.begin) return {};
    for (auto& o : ops)
      for (auto* list : {&o.reads, &o.writes})
        for (auto& a : *list)
          if (a.begin >= buffer.begin && a.end <= buffer.end) {
            a.begin = to + (a.begin - buffer.begin);
            a.end = to + (a.end - buffer.begin);
          }
    return {"shift buffer", at(i)};
  }
  mutation change_type() {
    access* a = any_access();
    if (a == nullptr) return {};
    a->type = static_cast<element_type>((static_cast<int>(a->type) + 1 + below(6)) % 7);
    return {"change type", at(i)};
  }

  mutation change_collective_bytes() {
    if (!turn_to([](const op& o) { return o.kind == op_kind::collective; })) return {};
    const int message = ops[i].message;
    const std::size_t bytes = below(2) ? ops[i].bytes * 2 : ops[i].bytes / 2;
    for (auto& r : p.ranks)
      for (op& o : r.ops)
        if (o.kind == op_kind::collective && o.message == message) o.bytes = bytes;
    return {"change collective bytes", at(i)};
  }
  /// All uses of the output follow it to its new address.
  mutation write_over_input() {
    const auto suits = [](const op& o) {
      return !o.reads.empty() &&
             std::any_of(o.writes.begin(), o.writes.end(), [](const access& a) { return a.replaces < 0; });
    };
    if (!turn_to(suits)) return {};
    access moved = ops[i].writes[below(static_cast<int>(ops[i].writes.size()))];
    const std::size_t to = ops[i].reads[below(static_cast<int>(ops[i].reads.size()))].begin;
    if (moved.replaces >= 0 || to == moved.begin ||
        to + (moved.end - moved.begin) > p.ranks[rank].arena_bytes)
      return {};
    for (auto& o : ops)
      for (auto* list : {&o.reads, &o.writes})
        for (auto& a : *list)
          if (a.value == moved.value) {
            a.end = to + (a.end - a.begin);
            a.begin = to;
          }
    return {"write over input", at(i)};
  }
  mutation change_value() {
    access* a = any_access();
    if (a == nullptr) return {};
    const int old = std::exchange(a->value, a->value + below(5) - 2);
    return old == a->value ? mutation{} : mutation{"change value", at(i)};
  }
};

using mutation_kind = mutation (mutator::*)();
constexpr mutation_kind of_fields[] = {&mutator::retarget_peer,          &mutator::retarget_communicator,
                                       &mutator::change_message,         &mutator::shift_access,
                                       &mutator::change_value,           &mutator::change_type,
                                       &mutator::change_collective_bytes};
constexpr mutation_kind of_structure[] = {
    &mutator::drop,      &mutator::swap,        &mutator::duplicate,    &mutator::remove_wait,
    &mutator::move_wait, &mutator::move_stream, &mutator::shift_buffer, &mutator::write_over_input};

mutation mutate(program& p, std::mt19937& random, std::span<const mutation_kind> kinds) {
  mutator m{p, random};
  return (m.*kinds[static_cast<std::size_t>(m.below(static_cast<int>(kinds.size())))])();
}

}  // namespace

mutation mutate_field(program& p, std::mt19937& random) { return mutate(p, random, of_fields); }
mutation mutate_structure(program& p, std::mt19937& random) { return mutate(p, random, of_structure); }

mutation mutate(program& p, std::mt19937& random) {
  const bool is_field = random() % (std::size(of_fields) + std::size(of_structure)) < std::size(of_fields);
  return is_field ? mutate_field(p, random) : mutate_structure(p, random);
}

void remove_collectives(program& p, const std::function<bool(const std::string&)>& named) {
  for (auto& r : p.ranks)
    for (int k = static_cast<int>(r.ops.size()) - 1; k >= 0; --k)
      if (r.ops[k].kind == op_kind::collective && named(r.ops[k].name)) skip(r.ops, k);
}

}  // namespace rankc::codegen::testing
