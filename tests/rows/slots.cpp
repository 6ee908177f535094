// SPDX-License-Identifier: Apache-2.0
// Rows with slots, on parts of the tokens, each arranged separately, and on some of the experts.
#include "laws.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace rankc::test::rows {

namespace {

constexpr int tokens = 11, picks = 3, experts = 5, in = 4, out = 6;

/// The results of all rows with slots, by name. Results on slots are in the order of tokens and their picks.
struct passed {
  std::map<std::string, values> of;
};

values rows_of(const values& v, int begin, int end, int width) {
  return {v.begin() + begin * width, v.begin() + end * width};
}

setting sizes_of(int count) {
  setting s;
  s.size = {{'t', count}, {'l', picks}, {'r', experts}, {'g', experts}, {'e', experts},
            {'i', in},    {'f', out},   {'w', in},      {'s', 1},       {'v', 1}};
  return s;
}

values run(machine& on, std::string_view name, const setting& s, const std::vector<values>& given,
           std::size_t result = 0) {
  const row& r = find_row(name);
  operands o(r.ports.size());
  std::copy(given.begin(), given.end(), o.begin() + static_cast<std::ptrdiff_t>(r.results()));
  return on.run(r, s, o)[result];
}

/// Slots reordered to the order of tokens and their picks.
values by_tokens(const values& slots, const values& places, int width) {
  values all;
  for (const double place : places) {
    const auto from = slots.begin() + static_cast<std::ptrdiff_t>(place) * width;
    all.insert(all.end(), from, from + width);
  }
  return all;
}

/// Run all rows with slots, one after another, on tokens [begin, end).
passed pass(machine& on, const std::map<std::string, values>& given, int begin, int end) {
  const setting s = sizes_of(end - begin);
  const auto part = [&](const char* name, int width) { return rows_of(given.at(name), begin, end, width); };
  const values chosen = part("chosen", picks), places = run(on, "arrange", s, {chosen}),
               offsets = run(on, "arrange", s, {chosen}, 1);
  const values x = part("x", in), weights = part("weights", picks), dy = part("dy", in), &w = given.at("w");
  const values rows = run(on, "dispatch", s, {x, places}), up = run(on, "expert_up", s, {rows, w, offsets}),
               down = run(on, "expert_down", s, {up, w, offsets});
  const std::vector<values> gradient{dy, down, weights, places};
  const values dslots = run(on, "combine_grad", s, gradient);
  return {{{"rows", by_tokens(rows, places, in)},
           {"up", by_tokens(up, places, out)},
           {"down", by_tokens(down, places, in)},
           {"combined", run(on, "combine", s, {down, weights, places})},
           {"collected", run(on, "collect", s, {down, places})},
           {"dslots", by_tokens(dslots, places, in)},
           {"dweights", run(on, "combine_grad", s, gradient, 1)},
           {"dw", run(on, "expert_dw", s, {dslots, up, offsets})}}};
}

/// Columns [begin, end) of a table of offsets of all experts.
values columns(const values& offsets, int begin, int end) {
  values some(offsets.begin() + begin, offsets.begin() + end);
  some.insert(some.end(), offsets.begin() + experts + begin, offsets.begin() + experts + end);
  return some;
}

/// Experts [begin, end), with their segments and matrices alone, must give the results of all experts on
/// these slots, and their part of the gradient. The same must hold for the slots of two ranks one after the
/// other, with each rank's segments.
void check_experts(machine& on, const values& chosen, const values& slots, const values& gradient,
                   const values& w, int begin, int end) {
  const setting s = sizes_of(tokens);
  setting some = s, twice = sizes_of(2 * tokens);
  some.size['r'] = some.size['g'] = twice.size['r'] = end - begin;
  twice.size['g'] = 2 * (end - begin);
  const values offsets = run(on, "arrange", s, {chosen}, 1), own = columns(offsets, begin, end),
               of_own = rows_of(w, begin * in, end * in, out);
  // The first rank's segments, then the second's, in either row.
  values both, in_line = slots, gradients_in_line = gradient;
  for (const int row : {0, 1})
    for (const int rank : {0, 1})
      for (int e = 0; e < end - begin; ++e)
        both.push_back(own[static_cast<std::size_t>(row * (end - begin) + e)] + rank * tokens * picks);
  in_line.insert(in_line.end(), slots.begin(), slots.end());
  gradients_in_line.insert(gradients_in_line.end(), gradient.begin(), gradient.end());
  const int first = static_cast<int>(offsets[static_cast<std::size_t>(begin)]),
            last = static_cast<int>(offsets[static_cast<std::size_t>(experts + end - 1)]);
  const values up = run(on, "expert_up", s, {slots, w, offsets}),
               down = run(on, "expert_down", s, {gradient, w, offsets}),
               dw = rows_of(run(on, "expert_dw", s, {slots, gradient, offsets}), begin * in, end * in, out);
  const auto expect = [&](const values& got, const values& want) {
    CHECK(deviation(got, want) <= on.tolerance());
  };
  for (const int rank : {0, 1}) {
    const setting& of = rank == 0 ? some : twice;
    const int from = first + rank * tokens * picks, to = last + rank * tokens * picks;
    const values &x = rank == 0 ? slots : in_line, &g = rank == 0 ? gradient : gradients_in_line,
                 &by = rank == 0 ? own : both;
    INFO(on.name() << " experts " << begin << " to " << end << (rank == 0 ? "" : ", of two ranks"));
    expect(rows_of(run(on, "expert_up", of, {x, of_own, by}), from, to, out), rows_of(up, first, last, out));
    expect(rows_of(run(on, "expert_down", of, {g, of_own, by}), from, to, in),
           rows_of(down, first, last, in));
    values sum = dw;
    for (double& element : sum) element *= 1 + rank;
    expect(run(on, "expert_dw", of, {x, g, by}), sum);
  }
}

/// Check own_slots by its definition: the places and offsets of experts [begin, end), out of all experts'.
void check_own(machine& on, const values& places, const values& offsets, int begin, int end) {
  setting s = sizes_of(static_cast<int>(places.size()) / picks);
  s.size['g'] = end - begin;
  s.first = begin;
  const double from = offsets[static_cast<std::size_t>(begin)],
               to = offsets[static_cast<std::size_t>(experts + end - 1)];
  values own = places, of_own = columns(offsets, begin, end);
  for (double& place : own) place = place >= from && place < to ? place - from : -1;
  for (double& slot : of_own) slot -= from;
  INFO(on.name() << " own slots of experts " << begin << " to " << end);
  CHECK(run(on, "own_slots", s, {places, offsets}) == own);
  CHECK(run(on, "own_slots", s, {places, offsets}, 1) == of_own);
}

/// The results of experts [0, middle) and of the others, on their own slots, must sum to those of all
/// experts.
void check_own_add_up(machine& on, const std::map<std::string, values>& given, int middle) {
  const setting all = sizes_of(tokens);
  const values chosen = given.at("chosen"), places = run(on, "arrange", all, {chosen}),
               offsets = run(on, "arrange", all, {chosen}, 1);
  const passed whole = pass(on, given, 0, tokens);
  std::map<std::string, values> sum;
  for (const auto& [begin, end] : {std::pair(0, middle), {middle, experts}}) {
    check_own(on, places, offsets, begin, end);
    setting s = all;
    s.size['r'] = s.size['g'] = end - begin;
    s.first = begin;
    setting of_places = all;
    of_places.size['g'] = end - begin;
    of_places.first = begin;
    const values own = run(on, "own_slots", of_places, {places, offsets}),
                 by = run(on, "own_slots", of_places, {places, offsets}, 1),
                 w = rows_of(given.at("w"), begin * in, end * in, out),
                 rows = run(on, "dispatch", s, {given.at("x"), own}),
                 up = run(on, "expert_up", s, {rows, w, by}), down = run(on, "expert_down", s, {up, w, by});
    const std::vector<values> gradient{given.at("dy"), down, given.at("weights"), own};
    const values dw = run(on, "expert_dw", s, {run(on, "combine_grad", s, gradient), up, by});
    for (const auto& [name, part] :
         {std::pair("combined", run(on, "combine", s, {down, given.at("weights"), own})),
          {"collected", run(on, "collect", s, {down, own})},
          {"dweights", run(on, "combine_grad", s, gradient, 1)}}) {
      values& to = sum[name];
      to.resize(part.size());
      for (std::size_t i = 0; i < part.size(); ++i) to[i] += part[i];
    }
    sum["dw"].insert(sum["dw"].end(), dw.begin(), dw.end());
  }
  for (const auto& [name, got] : sum) {
    INFO(on.name() << " " << name << " of experts below " << middle << " and the others");
    CHECK(deviation(got, whole.of.at(name)) <= on.tolerance());
  }
}

/// The place of each pick by the definition: an expert takes the first picks of each group, and its slots are
/// in the order of tokens.
values places_by_definition(const values& chosen, int group, int most, values& offsets) {
  values places(chosen.size(), -1.0);
  offsets.assign(2 * experts, 0.0);
  int next = 0;
  for (int e = 0; e < experts; ++e) {
    offsets[static_cast<std::size_t>(e)] = next;
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      const std::size_t begin = i - i % static_cast<std::size_t>(group * picks);
      const auto before = std::count(chosen.begin() + static_cast<std::ptrdiff_t>(begin),
                                     chosen.begin() + static_cast<std::ptrdiff_t>(i), e);
      if (chosen[i] == e && before < most) places[i] = next++;
    }
    offsets[static_cast<std::size_t>(experts + e)] = next;
  }
  return places;
}

/// With at most `most` picks per group and expert, check which picks are kept, and that dropped picks have no
/// effect.
void check_limited(machine& on, int all, int group, int most) {
  setting s = sizes_of(all);
  s.size['s'] = group;
  s.number = most;
  INFO(on.name() << " " << all << " tokens in groups of " << group << ", of which an expert takes " << most);
  const row& arrange = find_row("arrange_limited");
  const values chosen = random_port(on, arrange, 2, s, 1), places = run(on, "arrange_limited", s, {chosen});
  values offsets;
  CHECK(places == places_by_definition(chosen, group, most, offsets));
  CHECK(run(on, "arrange_limited", s, {chosen}, 1) == offsets);
  for (const auto& [begin, end] : {std::pair(0, 2), {2, 5}, {1, 2}})
    check_own(on, places, offsets, begin, end);
  const values x = random_port(on, find_row("dispatch"), 1, s, 2),
               dy = random_port(on, find_row("dispatch"), 1, s, 3),
               weights = random_port(on, find_row("combine"), 2, s, 4),
               slots = random_port(on, find_row("combine"), 1, s, 5);
  const values rows = run(on, "dispatch", s, {x, places}),
               dslots = run(on, "combine_grad", s, {dy, slots, weights, places}),
               dweights = run(on, "combine_grad", s, {dy, slots, weights, places}, 1);
  values combined(x.size(), 0.0), collected = combined, made_rows, made_dslots, want_rows, want_dslots,
                                  want_dweights;
  int dropped = 0;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const std::size_t token = i / picks * in;
    dropped += places[i] < 0;
    want_dweights.push_back(0);
    for (std::size_t c = 0; places[i] >= 0 && c < in; ++c) {
      const std::size_t slot = static_cast<std::size_t>(places[i]) * in + c;
      combined[token + c] += weights[i] * slots[slot];
      collected[token + c] += slots[slot];
      want_dweights.back() += dy[token + c] * slots[slot];
      made_rows.push_back(rows[slot]);
      want_rows.push_back(x[token + c]);
      made_dslots.push_back(dslots[slot]);
      want_dslots.push_back(weights[i] * dy[token + c]);
    }
  }
  CHECK(made_rows == want_rows);
  CHECK(deviation(run(on, "combine", s, {slots, weights, places}), combined) <= on.tolerance());
  CHECK(deviation(run(on, "collect", s, {slots, places}), collected) <= on.tolerance());
  CHECK(deviation(made_dslots, want_dslots) <= on.tolerance());
  CHECK(deviation(dweights, want_dweights) <= on.tolerance());
  for (std::size_t i = 0; i < places.size(); ++i) CHECK((places[i] >= 0 || dweights[i] == 0));
  s.size['l'] = 3;
  s.size['i'] = picks;
  s.size['m'] = 1;
  values counts(3 * experts, 0.0);
  counts[2 * experts + 1] = dropped;
  CHECK(run(on, "dropped_statistics", s, {places}) == counts);
  CHECK((dropped > 0) == (most < group));
}

}  // namespace

void check_slots(machine& on) {
  for (const auto& [all, group, most] : {std::tuple(12, 12, 3),
                                         {12, 4, 1},
                                         {12, 3, 1},
                                         {12, 12, 12},
                                         {2000, 1000, 350},
                                         {2000, 20, 4},
                                         {2000, 2, 1}})
    check_limited(on, all, group, most);
  std::map<std::string, values> given;
  const setting s = sizes_of(tokens);
  given["chosen"] = random_port(on, find_row("arrange"), 2, s, 1);
  const row &dispatch = find_row("dispatch"), &combine = find_row("combine"), &up = find_row("expert_up");
  given["x"] = random_port(on, dispatch, 1, s, 2);
  given["dy"] = random_port(on, dispatch, 1, s, 3);
  given["weights"] = random_port(on, combine, 2, s, 4);
  given["w"] = random_port(on, up, 2, s, 5);
  for (const auto& [begin, end] : {std::pair(0, 2), {2, 5}, {1, 2}})
    check_experts(on, given["chosen"], random_port(on, up, 1, s, 6),
                  random_port(on, find_row("expert_down"), 1, s, 7), given["w"], begin, end);
  for (const int middle : {1, 2, 4}) check_own_add_up(on, given, middle);
  const passed all = pass(on, given, 0, tokens);
  for (const int middle : {1, 4, 10}) {
    const passed first = pass(on, given, 0, middle), second = pass(on, given, middle, tokens);
    for (const auto& [name, want] : all.of) {
      values got = first.of.at(name);
      const values& rest = second.of.at(name);
      if (name == "dw")
        for (std::size_t i = 0; i < got.size(); ++i) got[i] += rest[i];
      else got.insert(got.end(), rest.begin(), rest.end());
      INFO(on.name() << " " << name << " of " << middle << " tokens and the others");
      CHECK(deviation(got, want) <= on.tolerance());
    }
  }
}

}  // namespace rankc::test::rows
