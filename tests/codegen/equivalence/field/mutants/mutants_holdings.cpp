// SPDX-License-Identifier: Apache-2.0
// Faults in the declared state at the beginning and the end: another box, another parameter, tokens of
// another microbatch.
#include "mutator.hpp"

namespace field {

namespace {

/// Change a holding of begin, of end, or of both if they are equal.
template <class Suits, class Change>
fault change_holding(mutator& m, const char* kind, Suits suits, Change change) {
  op &first = m.ops().front(), &last = m.ops().back();
  const bool at_begin = m.below(2), both = m.below(4) == 0;
  std::vector<holding*> found;
  for (holding& h : (at_begin ? first : last).holds)
    if (suits(h)) found.push_back(&h);
  if (found.empty()) return {};
  holding& chosen = *m.one_of(found);
  const holding before = chosen;
  change(chosen);
  if (chosen.kind == before.kind && chosen.name == before.name && chosen.box == before.box &&
      chosen.theta == before.theta && chosen.scaling == before.scaling &&
      chosen.positions == before.positions)
    return {};
  if (both)
    for (op* o : {&first, &last})
      for (holding& h : o->holds)
        if (&h != &chosen && h.kind == before.kind && h.name == before.name && h.box == before.box)
          h = chosen;
  m.i = at_begin ? 0 : static_cast<int>(m.ops().size()) - 1;
  const std::string what =
      m.text() + " " + holding_names[static_cast<int>(before.kind)] + " of " + before.name;
  return {kind, what + (both ? ", at begin and end" : "")};
}
bool has_box(const holding& h) { return !h.box.empty(); }

fault shift_box(mutator& m) {
  const auto count = static_cast<std::int64_t>(1 + m.below(2));
  const bool whole = m.below(2), back = m.below(2);
  return change_holding(m, "box", has_box, [&](holding& h) {
    box_range& r = m.one_of(h.box);
    const std::int64_t by = whole ? r.count : count;
    r.first = back ? r.first - std::min(by, r.first) : r.first + by;
  });
}
fault resize_box(mutator& m) {
  return change_holding(m, "box's size", has_box, [&](holding& h) {
    box_range& r = m.one_of(h.box);
    if (m.below(2)) r.count -= 1;
    else std::swap(h.box.front().count, h.box.back().count);
  });
}
fault name_another(mutator& m) {
  std::vector<std::string> names;
  for (const holding& h : m.ops().front().holds)
    if (!h.name.empty()) names.push_back(h.name);
  if (names.empty()) return {};
  const std::string name = m.one_of(names);
  return change_holding(
      m, "another parameter", [&](const holding& h) { return !h.name.empty() && h.name != name; },
      [&](holding& h) { h.name = name; });
}
fault change_kind(mutator& m) {
  const auto kind = static_cast<holding_kind>(m.below(static_cast<int>(holding_kind::norm) + 1));
  return change_holding(
      m, "kind of holding", [&](const holding& h) { return h.kind != kind; },
      [&](holding& h) { h.kind = kind; });
}
/// The kinds of inputs that a rank may begin with.
std::vector<holding_kind> kinds_of_inputs(mutator& m) {
  std::vector<holding_kind> kinds{holding_kind::ids, holding_kind::targets};
  for (const holding_kind kind : {holding_kind::starts, holding_kind::input})
    if (std::ranges::any_of(m.ops().front().holds, [&](const holding& h) { return h.kind == kind; }))
      kinds.push_back(kind);
  return kinds;
}
/// Exchange the ids, the targets, the starts or the weights of two microbatches, or use one for the other.
fault exchange_tokens(mutator& m) {
  const std::vector<holding_kind> kinds = kinds_of_inputs(m);
  const holding_kind kind = kinds[static_cast<std::size_t>(m.below(static_cast<int>(kinds.size())))];
  std::vector<holding*> found;
  for (holding& h : m.ops().front().holds)
    if (h.kind == kind) found.push_back(&h);
  if (found.size() < 2) return {};
  holding &a = *m.one_of(found), &b = *m.one_of(found);
  if (a.box == b.box) return {};
  if (m.below(2)) std::swap(a.box, b.box);
  else a.box = b.box;
  return {"tokens", "rank " + std::to_string(m.rank) + ": " + holding_names[static_cast<int>(kind)]};
}
/// Exchange two parameters of one shape at the start and at the end of the step, on this rank or on all.
fault exchange_parameters(mutator& m) {
  const std::vector<holding> holds = m.ops().front().holds;
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const holding& a : holds)
    for (const holding& b : holds)
      if (a.kind == holding_kind::weight && b.kind == a.kind && a.name < b.name && a.box == b.box)
        pairs.push_back({a.name, b.name});
  if (pairs.empty()) return {};
  const auto [one, other] = m.one_of(pairs);
  const bool everywhere = m.below(2), with_moments = m.below(4) > 0;
  for (std::size_t r = 0; r < m.p.ranks.size(); ++r) {
    if (static_cast<int>(r) != m.rank && !everywhere) continue;
    for (op* o : {&m.p.ranks[r].ops.front(), &m.p.ranks[r].ops.back()})
      for (holding& h : o->holds) {
        if (h.kind == holding_kind::first_moment && !with_moments) continue;
        if (h.name == one) h.name = other;
        else if (h.name == other) h.name = one;
      }
  }
  m.i = 0;
  return {"two parameters", m.text() + " " + one + " and " + other};
}
fault change_rotary(mutator& m) {
  const int way = m.below(4);
  return change_holding(
      m, "rotary table", [](const holding& h) { return h.kind == holding_kind::rotary; },
      [&](holding& h) {
        if (way == 0) h.theta *= 2;
        else if (way == 1) {
          h.positions *= 2;
          h.dim /= 2;
        } else if (way == 2) h.scaling = {.by = rankc::rope_scaling::linear, .factor = 2 * h.scaling.factor};
        else h.positions += 1;
      });
}
fault leave_out_holding(mutator& m) {
  op& last = m.ops().back();
  if (last.holds.empty() || last.holds.size() != last.reads.size()) return {};
  const int k = m.below(static_cast<int>(last.holds.size()));
  m.i = static_cast<int>(m.ops().size()) - 1;
  const holding h = last.holds[static_cast<std::size_t>(k)];
  last.holds.erase(last.holds.begin() + k);
  last.reads.erase(last.reads.begin() + k);
  return {"leave out a holding", m.text() + " " + holding_names[static_cast<int>(h.kind)] + " of " + h.name};
}

}  // namespace

const std::vector<fault_kind> faults_of_holdings{shift_box, resize_box, name_another, change_kind,
                                                 change_rotary};
const std::vector<fault_kind> edits_of_holdings{exchange_tokens, exchange_parameters, leave_out_holding};

}  // namespace field
