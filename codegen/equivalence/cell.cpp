// SPDX-License-Identifier: Apache-2.0
#include "cell.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "collectives.hpp"

namespace rankc::codegen::algebra {

interval cell::extent(const operand& o, const axis_use& a, bool is_row) const {
  if (a.of < 'a') return {0, is_row ? o.rows : o.cols};
  const interval r = range[slot(a.of)];
  return a.unit ? interval{r.begin * o.unit, r.end * o.unit} : r;
}

const holding* cell::find(const operand& o, const port& p) const {
  if (o.tiles.size() == 1 && o.tiles[0].holds->any) return o.tiles[0].holds;
  const interval rows = p.axes.size() == 2 ? extent(o, p.axes[0], true) : interval{0, 1};
  const interval cols = p.axes.empty() ? interval{0, 1} : extent(o, p.axes.back(), false);
  for (int i = 0; i < o.tiles.size(); ++i) {
    const tile& t = o.tiles[i];
    if (rows.begin < t.row || rows.end > t.row + t.rows || cols.begin < t.col || cols.end > t.col + t.cols)
      continue;
    if (t.holds->any || (rows.size() == t.rows && cols.size() == t.cols)) return t.holds;
    return space_.keep(cut(*t.holds, rows.begin - t.row, rows.size(), cols.begin - t.col, cols.size()));
  }
  throw refusal("RC7410: operand {} has no known value in rows {}..{}, columns {}..{}", p.name, rows.begin,
                rows.end - 1, cols.begin, cols.end - 1);
}

void cell::bind_axis(const std::string& name, const axis_use& a, std::int64_t unit, const part& given) {
  part p = given;
  if (a.unit) {
    if (given.size % unit || !given.at.to_units(unit, p.at))
      throw refusal(
          "RC7411: operand {} has {}, counted in elements; expected complete groups of {} elements, such as "
          "a head or the slots of a token",
          name, text_of(a.of, given.at), unit);
    p.size = given.size / unit;
    if (a.of == 't' && p.arranged != order_)
      throw refusal("RC7412: the expert slots of operand {} are in another order than the op expects", name);
    p.arranged = zero;
    bound_[slot(a.unit)] = {runs(0, unit), unit};
    is_bound_[slot(a.unit)] = true;
  }
  if (a.of < 'a') {
    if (!p.is_whole() || p.size != a.of - '0')
      throw refusal("RC7413: operand {} has {} of {}; expected all of {}", name, text_of('w', p.at), p.size,
                    a.of);
    return;
  }
  const std::size_t s = slot(a.of);
  if (!is_bound_[s]) {
    bound_[s] = std::move(p);
    is_bound_[s] = true;
  } else if (!(bound_[s] == p)) {
    throw refusal("RC7414: operand {} has {} of {}; expected {} of {}, as another operand has", name,
                  text_of(a.of, p.at), p.size, text_of(a.of, bound_[s].at), bound_[s].size);
  }
}

void cell::bind(const std::vector<operand>& ports, const attributes& with) {
  is_bound_.fill(false);
  order_ = find_order(ports);
  for (std::size_t i = static_cast<std::size_t>(fact_.results); i < fact_.ports.size(); ++i) {
    const port& p = fact_.ports[i];
    const holding& h = *(held_[i] = find(ports[i], p));
    if (h.any) continue;
    check_share(p, h, with);
    if (h.box.size() != static_cast<int>(p.axes.size()))
      throw refusal("RC7415: operand {} holds a tensor of {} dims; expected {}", p.name, h.box.size(),
                    p.axes.size());
    for (std::size_t a = 0; a < p.axes.size(); ++a) {
      part of = h.box[static_cast<int>(a)];
      if (static_cast<int>(i) == fact_.by && !fact_.segments)
        of.arranged = zero;  // places give the order, and are not in it themselves
      bind_axis(p.name, p.axes[a], ports[i].unit, of);
    }
  }
  if (fact_.segments) bind_experts();
  check_needs(ports);
  check_order();
  if (fact_.grouped) bind_group(with);
  if (fact_.pooled) bind_sequences(with);
  const auto given = static_cast<std::size_t>(fact_.results);
  if (fact_.reads_seq && !fact_.grouped) check_number_of_sequences(with);
  if (fact_.positions) check_positions(ports[given].first, with);
  if (fact_.sequences) check_sequences(with);
  if (fact_.shares) check_shares(with);
  for (std::size_t i = given; i < fact_.ports.size(); ++i) {
    if (fact_.documents && (fact_.ports[i].name == "q" || (fact_.positions && i == given)))
      check_documents(ports[i].first, with);
    if (fact_.ports[i].name != "q") continue;
    if (fact_.ring) check_ring(ports[i].first, with);
    else if (fact_.chunks && !fact_.positions) check_chunks(ports[i].first, with);
  }
}

term cell::find_order(const std::vector<operand>& ports) const {
  if (fact_.by < 0) return zero;
  const auto by = static_cast<std::size_t>(fact_.by);
  const holding& h = *find(ports[by], fact_.ports[by]);
  term order = h.box.size() == 2 ? h.box[1].arranged : zero;
  if (order.is_zero() && h.sum.size() == 1) order = model_.arrangement(h.sum[0].of);
  if (order.is_zero())
    throw refusal("RC7416: operand {} does not determine the order of expert slots", fact_.ports[by].name);
  return order;
}

void cell::bind_experts() {
  const std::size_t r = slot('r'), g = slot('g');
  if (!is_bound_[g]) return;
  const part segments = bound_[g];
  if (!segments.is_arranged() && !segments.is_whole())
    throw refusal("RC7417: the op has segments of {}; expected those of all experts",
                  text_of('e', segments.at));
  if (is_bound_[r] && (!(bound_[r].at == segments.at) || bound_[r].size != segments.size))
    throw refusal("RC7418: the op has weights of {} and slots of {}; expected the same experts",
                  text_of('e', bound_[r].at), text_of('e', segments.at));
  if (range[g].size() % range[r].size())
    throw refusal("RC7419: the op has {} segments of {} experts; expected a multiple", range[g].size(),
                  range[r].size());
  bound_[r] = {segments.at, segments.size};
  is_bound_[r] = true;
}

void cell::check_order() const {
  const auto is_of_tokens = [](const axis_use& a) { return a.of == 't'; };
  const bool takes_order = fact_.by >= 0 || fact_.arranges || fact_.positions || fact_.sequences ||
                           fact_.chunks || fact_.ring || fact_.grouped;
  if (!takes_order || !is_bound_[slot('t')]) return;
  const part& tokens = bound_[slot('t')];
  if (tokens.is_arranged())
    throw refusal("RC7420: the op expects tokens in sequence order; its operand has expert slots");
  if (fact_.by < 0) return;
  const port& p = fact_.ports[static_cast<std::size_t>(fact_.by)];
  if (std::any_of(p.axes.begin(), p.axes.end(), is_of_tokens))
    return;  // the port has axis t, so its tokens are those of all operands
  const summand& s = held_[static_cast<std::size_t>(fact_.by)]->sum[0];
  runs counted(0, tokens.size), own = tokens.at;
  if (!s.is_whole()) counted = s.over[0].done;
  if (interval twice; s.over.size() > 1 || !own.sort(twice) || !(counted == own))
    refuse_counted(counted, own);
}

void cell::bind_group(const attributes& with) {
  if (!is_bound_[slot('t')]) return;
  const part& tokens = bound_[slot('t')];
  if (with.seq < 1 || tokens.size % with.seq)
    throw refusal("RC7421: {} tokens do not divide into groups of {}", tokens.size, with.seq);
  group_ = tokens.at[0].begin / with.seq;
  for (int i = 0; i < tokens.at.count(); ++i)
    if (tokens.at[i].begin / with.seq != group_ || (tokens.at[i].end - 1) / with.seq != group_)
      throw refusal("RC7422: {} are in several groups of {} tokens; expected one", text_of('t', tokens.at),
                    with.seq);
  const part groups{runs(group_, group_ + 1), tokens.size / with.seq};
  if (is_bound_[slot('m')] && !(bound_[slot('m')] == groups))
    throw refusal("RC7423: {} are in {} of {}; an operand has {} of {}", text_of('t', tokens.at),
                  text_of('m', groups.at), groups.size, text_of('m', bound_[slot('m')].at),
                  bound_[slot('m')].size);
  bound_[slot('m')] = groups;
  is_bound_[slot('m')] = true;
}

void cell::check_needs(const std::vector<operand>& ports) const {
  for (const char letter : fact_.whole)
    if (const std::size_t s = slot(letter); is_bound_[s] && !bound_[s].is_whole())
      throw refusal("RC7424: the op has {} of {}; expected all", text_of(letter, bound_[s].at),
                    bound_[s].size);
  for (std::size_t i = static_cast<std::size_t>(fact_.results);
       i < fact_.ports.size() && !fact_.first.empty(); ++i)
    for (const axis_use& a : fact_.ports[i].axes) {
      if (fact_.first.find(a.of) == std::string::npos || !is_bound_[slot(a.of)]) continue;
      const std::size_t s = slot(a.of);
      const std::int64_t begin = ports[i].first + range[s].begin;
      if (!bound_[s].at.is(begin, begin + range[s].size()))
        throw refusal("RC7425: the call gives {} the first index {}; operand {} has {}", axis_name(a.of),
                      ports[i].first, fact_.ports[i].name, text_of(a.of, bound_[s].at));
    }
  if (!fact_.groups) return;
  const part &h = bound_[slot('h')], &k = bound_[slot('k')];
  if (!is_bound_[slot('h')] || !is_bound_[slot('k')]) return;
  if (h.size % k.size || !(k.at.from_units(h.size / k.size) == h.at))
    throw refusal(
        "RC7426: the queries' {} of {} come with the keys' {} of {}; expected the query heads of these key "
        "heads",
        text_of('h', h.at), h.size, text_of('k', k.at), k.size);
}

void carry(const holding& h, few<pending, 1>& over) {
  if (h.sum.size() == 1) {
    for (int a = 0; a < h.sum[0].over.size(); ++a) over.push_back(h.sum[0].over[a]);
    return;
  }
  std::vector<const summand*> order;  // the sums are joined over the concatenation of their axes
  for (int i = 0; i < h.sum.size(); ++i) order.push_back(&h.sum[i]);
  std::sort(order.begin(), order.end(), [](const summand* x, const summand* y) { return x->of < y->of; });
  pending all;
  hasher id(hash_of::axes_in_line);
  all.letter = '+';
  for (const summand* s : order) {
    if (s->over.size() > 1)
      throw refusal(
          "RC7427: an operand is an incomplete sum of several values over several axes; expected one value "
          "or one axis");
    const std::int64_t size = s->over.empty() ? 1 : s->over[0].size;
    all.done.append(s->over.empty() ? runs(all.size, all.size + 1) : s->over[0].done.shifted(all.size));
    all.size += size;
    id << s->of << (s->over.empty() ? zero : s->over[0].id);
  }
  all.id = id;
  over.push_back(std::move(all));
}

std::string text_of_missing(const holding& h, const model& m) {
  std::vector<std::string> parts;
  for (int i = 0; i < h.sum.size(); ++i)
    for (int a = 0; a < h.sum[i].over.size(); ++a) {
      const pending& p = h.sum[i].over[a];
      std::string part = text_of(p.letter, p.done.gaps(p.size));
      if (h.sum.size() > 1 || a > 0) part += " of " + m.name(h.sum[i].of);
      if (std::find(parts.begin(), parts.end(), part) == parts.end()) parts.push_back(std::move(part));
    }
  return fmt::format("{}", fmt::join(parts, "; "));
}

term cell::take(int operand, bool linear, few<pending, 1>& over, bool& has_pending) const {
  const holding& h = *held_[static_cast<std::size_t>(operand)];
  if (h.is_whole() || operand == fact_.by) return h.closed();
  const std::string& name = fact_.ports[static_cast<std::size_t>(operand)].name;
  if (!linear || !h.unfinished().empty())
    throw refusal(
        "RC7428: operand {} is {} without {}; the op is not linear in it, so it needs the complete value",
        name, model_.name(h.closed()), text_of_missing(h, model_));
  if (has_pending)
    throw refusal(
        "RC7429: operand {} is {} without {}, and another operand is incomplete too; expected at most one "
        "incomplete operand",
        name, model_.name(h.closed()), text_of_missing(h, model_));
  has_pending = true;
  carry(h, over);
  if (!fact_.commutative)
    for (int a = 0; a < over.size(); ++a)
      over[a].id = hasher(hash_of::axis_of_operand) << over[a].id << static_cast<word>(operand);
  return h.closed();
}

void cell::take_experts(const equation& e, few<pending, 1>& over, bool has_pending) const {
  if (fact_.by < 0 || fact_.segments) return;
  const holding& places = *held_[static_cast<std::size_t>(fact_.by)];
  const bool of_slots = fact_.ports[static_cast<std::size_t>(e.results[0])].axes[0].unit != 0;
  if (of_slots || places.is_whole()) return;
  if (has_pending)
    throw refusal(
        "RC7430: operand {} has the slots of some experts only, and another operand is incomplete; expected "
        "at most one incomplete operand",
        fact_.ports[static_cast<std::size_t>(fact_.by)].name);
  carry(places, over);
}

few<part, 2> cell::box_of(int result, const operand& shape, term of) const {
  few<part, 2> box;
  const port& p = fact_.ports[static_cast<std::size_t>(result)];
  for (std::size_t a = 0; a < p.axes.size(); ++a) {
    const axis_use& axis = p.axes[a];
    if (axis.of < 'a') {
      box.push_back({runs(0, axis.of - '0'), axis.of - '0'});
      continue;
    }
    const std::size_t s = slot(axis.of);
    const std::int64_t unit = axis.unit ? shape.unit : 1;
    if (is_bound_[s] && axis.unit) {
      box.push_back({bound_[s].at.from_units(unit), bound_[s].size * unit, axis.of == 't' ? order_ : zero});
    } else if (is_bound_[s]) {
      box.push_back(bound_[s]);
    } else if (fact_.first.find(axis.of) != std::string::npos) {
      const std::int64_t begin = shape.first + range[s].begin, size = model_.size(of, a);
      if (begin < 0 || begin + range[s].size() > size)
        throw refusal("RC7431: result {} has {} {}..{}; the model has {} of them", p.name, axis_name(axis.of),
                      begin, begin + range[s].size() - 1, size);
      box.push_back({runs(begin, begin + range[s].size()), size});
    } else if (fact_.whole.find(axis.of) != std::string::npos) {
      const std::int64_t given = length[s] * unit, size = model_.size(of, a);
      if (size >= 0 && given != size)
        throw refusal("RC7785: result {} has {} {}; the model has {} of them", p.name, given,
                      axis_name(axis.of), size);
      box.push_back({runs(0, given), given});
    } else {
      throw refusal("RC7432: no operand gives the {} of result {}", axis_name(axis.of), p.name);
    }
  }
  return box;
}

holding cell::zeros(int result, const operand& shape) const {
  holding made;
  for (const axis_use& axis : fact_.ports[static_cast<std::size_t>(result)].axes)
    made.any |= axis.of >= 'a' && !is_bound_[slot(axis.of)];
  if (!made.any) made.box = box_of(result, shape, zero);
  return made;
}

void cell::refuse_result(term, const std::vector<int>& operands) const {
  std::string text;
  for (int o : operands)
    text += (text.empty() ? "" : ", ") + model_.name(held_[static_cast<std::size_t>(o)]->closed());
  throw refusal("RC7433: the op computes {} of {}, which the model does not compute anywhere", fact_.row,
                text);
}

void cell::check_sums_no_slots(const equation& e) const {
  for (const char letter : e.over)
    if (is_bound_[slot(letter)] && bound_[slot(letter)].is_arranged())
      throw refusal(
          "RC7735: the op sums over expert slots, and its call does not say which of them tokens fill; "
          "expected a sum over tokens");
}

/// Whether the result is a sum over tokens. Places and offsets do not count: they are integer counts.
static bool sums_over_tokens(const fact& f, const equation& e) {
  return !f.arranges && e.how == joining::sum && e.over.find_first_of("tm") != std::string::npos;
}

holding cell::function(int equation, const std::vector<operand>& ports, const attributes& with) {
  const auto& e = fact_.equations[static_cast<std::size_t>(equation)];
  check_sums_no_slots(e);
  holding made;
  summand s;
  std::array<term, 16> given;
  bool has_pending = false;
  for (std::size_t i = 0; i < e.operands.size(); ++i)
    given[i] = take(e.operands[i], e.linear[i], s.over, has_pending);
  take_experts(e, s.over, has_pending);
  s.of = result_of(fact_, equation, given.data(), with);
  if (s.of.is_zero()) return zeros(e.results[0], ports[static_cast<std::size_t>(e.results[0])]);
  if (!model_.has(s.of)) refuse_result(s.of, e.operands);
  check_rounding(e, ports, s.of);
  made.of_tokens = sums_over_tokens(fact_, e);
  made.box = box_of(e.results[0], ports[static_cast<std::size_t>(e.results[0])], s.of);
  made.share = share_of(fact_.ports[static_cast<std::size_t>(e.results[0])], with);
  for (const char letter : e.over) {
    const bool of_group = fact_.grouped && letter == 't';
    const part& all = bound_[slot(letter)];
    const part p = of_group ? part{all.at.shifted(-group_ * with.seq), with.seq} : all;
    if (p.is_whole()) continue;
    const bool adds_nothing = e.how == joining::sum && p.at.count() == 0;
    if (adds_nothing) return zeros(e.results[0], ports[static_cast<std::size_t>(e.results[0])]);
    if (e.how != joining::sum && !s.over.empty())
      throw refusal("RC7434: the op takes a maximum or a softmax of an incomplete operand");
    pending over{hasher(hash_of::axis) << s.of << static_cast<word>(letter), letter, e.how, p.size, p.at};
    if (e.how == joining::softmax)
      over.id = hasher(hash_of::keys) << scores_of(fact_, given[0], given[1], with);
    if (interval twice; !over.done.sort(twice))
      throw counted_twice(text_of(letter, {twice.begin, twice.end}));
    if (!over.done.is(0, p.size)) s.over.push_back(std::move(over));  // all elements, in any order, are whole
  }
  made.sum.push_back(std::move(s));
  return made;
}

holding cell::merge(int equation, const attributes& with) {
  const auto& e = fact_.equations[static_cast<std::size_t>(equation)];
  const auto held = [&](int name) -> const holding& { return *held_[static_cast<std::size_t>(name)]; };
  holding made = held(e.operands[0]);
  merge_parts(made, held(e.weights[0]), held(e.operands[1]), held(e.weights[1]));
  for (std::int64_t row = 0; row < with.rows; ++row)
    if (const runs own = positions_of_queries(row, with);
        !has_keys(held(e.operands[0]), own) && !has_keys(held(e.operands[1]), own))
      throw refusal(
          "RC7804: two parts of a softmax are merged, and neither is over the keys at the {} of its queries; "
          "a query that sees no key of either would get no log-sum-exp",
          text_of('p', own));
  return made;
}

holding cell::sum(int equation, const std::vector<operand>& ports, const attributes& with) {
  const auto& e = fact_.equations[static_cast<std::size_t>(equation)];
  holding made;
  for (std::size_t i = 0; i < e.operands.size(); ++i) {
    const holding& h = *held_[static_cast<std::size_t>(e.operands[i])];
    check_addable(h);
    made.of_tokens |= h.of_tokens;
    made.in_bf16 |= h.in_bf16;
    if (e.same[i]) {
      for (int k = 0; k < h.sum.size(); ++k) add(made.sum, h.sum[k]);
      continue;
    }
    summand s;
    bool has_pending = false;
    s.of =
        addend_of(fact_, equation, static_cast<int>(i), take(e.operands[i], true, s.over, has_pending), with);
    if (!s.of.is_zero()) add(made.sum, std::move(s));
  }
  const operand& shape = ports[static_cast<std::size_t>(e.results[0])];
  if (made.sum.empty()) return zeros(e.results[0], shape);
  made.box = box_of(e.results[0], shape, made.closed());
  return made;
}

}  // namespace rankc::codegen::algebra
