// SPDX-License-Identifier: Apache-2.0
#include "mutations.hpp"

#include "execution_model.hpp"

#include <rankc/codegen/certificate.hpp>
#include <rankc/codegen/prove.hpp>
#include <rankc/codegen/verify.hpp>

#include <algorithm>
#include <cstdio>
#include <utility>

namespace rankc::codegen::testing {

namespace {

bool communicates(const op& o) {
  return o.kind == op_kind::send || o.kind == op_kind::receive || o.kind == op_kind::collective;
}

/// One draw of a mutation of one rank. Waits follow their op wherever it goes.
struct mutator {
  program& p;
  std::mt19937& random;
  int rank = below(static_cast<int>(p.ranks.size()));
  std::vector<op>& ops = p.ranks[rank].ops;
  int i = below(static_cast<int>(ops.size()));

  int below(int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); }
  std::string at(int k) const { return "rank " + std::to_string(rank) + ": \"" + ops[k].name + "\""; }
  template <class Map>
  void renumber_waits(Map to) {
    for (auto& o : ops) {
      for (int& w : o.waits) w = to(w);
      std::erase(o.waits, -1);
    }
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
    renumber_waits([&](int w) { return w == i ? j : w == j ? i : w; });
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
    if (ops[i].kind != op_kind::send && ops[i].kind != op_kind::receive) return {};
    const int old = std::exchange(ops[i].peer, below(static_cast<int>(p.ranks.size())));
    return old == ops[i].peer ? mutation{} : mutation{"retarget peer", at(i)};
  }
  mutation retarget_communicator() {
    if (!communicates(ops[i])) return {};
    const int old = std::exchange(ops[i].communicator, below(static_cast<int>(p.communicators.size())));
    return old == ops[i].communicator ? mutation{} : mutation{"retarget communicator", at(i)};
  }
  mutation change_message() {
    if (!communicates(ops[i])) return {};
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
    auto& waits = ops[i].waits;
    if (waits.empty()) return {};
    waits.erase(waits.begin() + below(static_cast<int>(waits.size())));
    return {"remove wait", at(i)};
  }
  mutation move_wait() {
    auto& waits = ops[i].waits;
    if (waits.empty()) return {};
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
  /// Somewhere else in the arena, in half the draws just beside.
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
    a->end = to + (a->end - a->begin), a->begin = to;
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
          if (a.begin >= buffer.begin && a.end <= buffer.end)
            a.begin = to + (a.begin - buffer.begin), a.end = to + (a.end - buffer.begin);
    return {"shift buffer", at(i)};
  }
  mutation change_value() {
    access* a = any_access();
    if (a == nullptr) return {};
    const int old = std::exchange(a->value, a->value + below(5) - 2);
    return old == a->value ? mutation{} : mutation{"change value", at(i)};
  }
};

constexpr mutation (mutator::*all_mutations[])() = {&mutator::drop,
                                                    &mutator::swap,
                                                    &mutator::duplicate,
                                                    &mutator::retarget_peer,
                                                    &mutator::retarget_communicator,
                                                    &mutator::change_message,
                                                    &mutator::remove_wait,
                                                    &mutator::move_wait,
                                                    &mutator::move_stream,
                                                    &mutator::shift_access,
                                                    &mutator::shift_buffer,
                                                    &mutator::change_value};

/// Look for harm. To delay each op in turn finds most pairs of accesses that nothing orders in one round;
/// small programs get more rounds, for those that show only when a third op comes between.
std::string find_harm(const program& p, unsigned seed) {
  execution_model model(p);
  for (int k = 0; k < 16; ++k)
    if (auto harm = model.run({seed + k, k / 4 % 2 == 1}); !harm.empty()) return harm;
  for (int k = 0; k < std::max(model.size(), 300); ++k)
    if (auto harm = model.run({seed + k, true, k % model.size()}); !harm.empty()) return harm;
  return {};
}

void count(mutation_tally& t, bool accepted, bool harm) {
  ++t.mutants;
  ++(accepted ? t.accepted : harm ? t.harmful : t.harmless);
}

template <class List>
void append(List& to, const List& from) {
  to.insert(to.end(), from.begin(), from.end());
}

}  // namespace

mutation mutate(program& p, std::mt19937& random) {
  mutator m{p, random};
  return (m.*all_mutations[m.below(std::size(all_mutations))])();
}

void judge(const program& p, const mutation& m, unsigned seed, mutation_report& report) {
  const auto verdict = prove(p);
  const auto refusal = verify(certificate(p, verdict));
  const auto what = m.kind + " " + m.text;
  if (verdict.ok != refusal.empty())
    report.disagreements.push_back(what + ": prove: " + (verdict.ok ? "ok" : verdict.reasons[0]) +
                                   "; verify: " + (refusal.empty() ? "ok" : refusal));
  const auto harm = find_harm(p, seed);
  if (verdict.ok && !harm.empty()) report.false_accepts.push_back(what + ": " + harm);
  if (!verdict.ok && harm.empty()) report.strict.push_back(what + ": " + verdict.reasons[0]);
  count(report.total, verdict.ok, !harm.empty());
  count(report.by_kind[m.kind], verdict.ok, !harm.empty());
}

mutation_report run_mutations(const program& p, int count, unsigned seed) {
  mutation_report report;
  std::mt19937 random(seed);
  while (report.total.mutants < count) {
    program mutant = p;
    if (const auto m = mutate(mutant, random); !m.kind.empty()) judge(mutant, m, seed, report);
  }
  return report;
}

mutation_report& operator+=(mutation_report& sum, const mutation_report& one) {
  const auto add = [](mutation_tally& to, const mutation_tally& t) {
    to.mutants += t.mutants, to.accepted += t.accepted, to.harmful += t.harmful, to.harmless += t.harmless;
  };
  add(sum.total, one.total);
  for (const auto& [kind, tally] : one.by_kind) add(sum.by_kind[kind], tally);
  append(sum.false_accepts, one.false_accepts);
  append(sum.disagreements, one.disagreements);
  append(sum.strict, one.strict);
  return sum;
}

std::string to_text(const mutation_report& report) {
  std::string text;
  const auto line = [&](const char* kind, const mutation_tally& t) {
    char buffer[128];
    std::snprintf(buffer, sizeof buffer, "%-22s %6d mutants %6d accepted %6d harmful %6d harmless\n", kind,
                  t.mutants, t.accepted, t.harmful, t.harmless);
    text += buffer;
  };
  for (const auto& [kind, tally] : report.by_kind) line(kind.c_str(), tally);
  line("all", report.total);
  return text;
}

}  // namespace rankc::codegen::testing
