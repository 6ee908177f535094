// SPDX-License-Identifier: Apache-2.0
// Checks that the tokens of an op's operands match its sequences, chunks and documents.
#include "cell.hpp"

#include <algorithm>
#include <cmath>

#include "sight.hpp"

namespace rankc::codegen::algebra {

namespace {

void check_length(const attributes& with) {
  if (with.seq < 1) throw refusal("RC7435: the call has no length of a sequence (seq)");
}

/// The sharding of an op's sequences: the number of ranks, and the length of a chunk. With several ranks,
/// each holds one chunk from the front of a sequence and its mirror image from the back. One rank holds whole
/// sequences.
struct sharing {
  std::int64_t ranks = 1, chunk = 0;
  sharing(const fact& f, const attributes& with) {
    check_length(with);
    if (f.chunks)
      ranks = with.number >= 2 && with.number <= static_cast<double>(with.seq)
                  ? static_cast<std::int64_t>(with.number)
                  : 0;
    if (ranks < 1 || with.seq % (ranks == 1 ? 1 : 2 * ranks))
      throw refusal("RC7436: sequences of {} tokens do not divide into two chunks for each of {} ranks",
                    with.seq, with.number);
    chunk = ranks == 1 ? with.seq : with.seq / (2 * ranks);
  }
  sharing(std::int64_t ranks, std::int64_t seq) : ranks(ranks), chunk(seq / (2 * ranks)) {}
  /// The positions of a sequence that a rank holds, in the rank's order.
  runs of_rank(std::int64_t rank, std::int64_t from = 0) const {
    runs all(from + rank * chunk, from + (rank + 1) * chunk);
    if (ranks > 1)
      all.append(interval{from + (2 * ranks - 1 - rank) * chunk, from + (2 * ranks - rank) * chunk});
    return all;
  }
};

[[noreturn]] void refuse_positions(const runs& tokens, std::int64_t first, std::int64_t seq) {
  throw refusal("RC7437: the op uses {} as positions from {} on, in sequences of {}", text_of('t', tokens),
                first, seq);
}

/// The rank whose queries an op computes, from the index of its first query among those of all ranks.
std::int64_t rank_of_queries(std::int64_t first, std::int64_t tokens, std::int64_t ranks) {
  const std::int64_t rank = first / tokens;
  if (first % tokens || rank < 0 || rank >= ranks)
    throw refusal("RC7438: the call's first query is token {}; expected a multiple of {} below {}", first,
                  tokens, tokens * ranks);
  return rank;
}

bool sums_over_positions(const fact& f) {
  return std::any_of(f.equations.begin(), f.equations.end(), [](const equation& e) { return e.over == "p"; });
}

/// Whether all runs are within a sequence.
bool is_within(const runs& positions, std::int64_t seq) {
  for (int i = 0; i < positions.count(); ++i)
    if (positions[i].begin < 0 || positions[i].end > seq) return false;
  return true;
}

}  // namespace

void cell::check_number_of_sequences(const attributes& with) const {
  const std::int64_t in_range = range[slot('t')].size() / std::max<std::int64_t>(with.seq, 1),
                     sequences = std::max(with.rows, in_range);
  if (sequences > most_sequences)
    throw refusal("RC7453: the op has {} sequences of {} tokens; expected {} sequences at most", sequences,
                  with.seq, most_sequences);
}

void cell::check_positions(std::int64_t first, const attributes& with) const {
  const std::size_t t = slot('t');
  if (!is_bound_[t] || (fact_.listed && !is_bound_[slot('s')])) return;
  runs order;  // the positions that the op assumes for successive tokens, repeated
  std::int64_t period = with.seq;
  if (fact_.listed) {
    order = bound_[slot('s')].at;
    period = bound_[slot('s')].size;
    if (order.size() != with.seq)
      throw refusal("RC7439: the call has {} positions; the op's table has {}", with.seq, order.size());
  } else {
    const sharing by(fact_, with);
    for (std::int64_t rank = 0; rank < by.ranks; ++rank)
      for (std::int64_t row = 0; row < (by.ranks == 1 ? 1 : with.rows); ++row) order.append(by.of_rank(rank));
  }
  if (order.size() < 1) throw refusal("RC7440: the call has 0 positions; expected at least 1");
  std::int64_t at = range[t].begin + first;
  for (int i = 0; i < bound_[t].at.count(); ++i) {
    for (interval run = bound_[t].at[i]; run.size() > 0;) {
      const std::int64_t from = (at % order.size() + order.size()) % order.size();
      const interval taken = order.slice(from, order.size() - from)[0];
      if (run.begin % period != taken.begin) refuse_positions(bound_[t].at, taken.begin, period);
      const std::int64_t step = std::min(taken.size(), run.size());
      run.begin += step;
      at += step;
    }
  }
}

void cell::check_sequences(const attributes& with) const {
  const std::size_t t = slot('t');
  if (!is_bound_[t]) return;
  check_length(with);
  if (with.rows * with.seq != range[t].size())
    throw refusal("RC7441: the call has {} sequences of {} tokens; the op has {} tokens", with.rows, with.seq,
                  range[t].size());
  for (int i = 0; i < bound_[t].at.count(); ++i)
    if (const interval& run = bound_[t].at[i]; run.begin % with.seq || run.size() % with.seq)
      refuse_positions(bound_[t].at, 0, with.seq);
}

/// Checks that queries and keys are of the tokens that the op assumes.
void cell::check_tokens(const runs& queries, const runs& keys) const {
  const part &given = bound_[slot('t')], &given_keys = bound_[slot('u')];
  if (!(queries == given.at))
    throw refusal("RC7442: the queries are of {}; the op expects those of {}", text_of('t', given.at),
                  text_of('t', queries));
  if (is_bound_[slot('u')] && !(keys == given_keys.at))
    throw refusal("RC7443: the keys are of {}; the op expects those of {}", text_of('t', given_keys.at),
                  text_of('t', keys));
}

void cell::check_chunks(std::int64_t first, const attributes& with) {
  const std::size_t t = slot('t'), u = slot('u');
  const sharing by(fact_, with);
  const std::int64_t of_row = with.seq / by.ranks, tokens = range[t].size();
  if (with.rows * of_row != tokens || range[u].size() != tokens * by.ranks)
    throw refusal(
        "RC7444: the call has {} sequences of {} tokens on {} ranks; the op has {} tokens and {} keys",
        with.rows, with.seq, by.ranks, tokens, range[u].size());
  const std::int64_t own = rank_of_queries(first, tokens, by.ranks);

  if (is_bound_[t]) {
    std::vector<std::int64_t> begins;  // first token of each sequence
    runs queries, keys;
    for (std::int64_t row = 0; row < with.rows; ++row) {
      const std::int64_t token = bound_[t].at.slice(row * of_row, 1)[0].begin;
      begins.push_back(token - token % with.seq);
      queries.append(by.of_rank(own, begins.back()));
    }
    for (std::int64_t rank = 0; rank < by.ranks; ++rank)
      for (const std::int64_t begin : begins) keys.append(by.of_rank(rank, begin));
    check_tokens(queries, keys);
  }
  if (!sums_over_positions(fact_)) return;
  bound_[slot('p')] = {by.of_rank(own), with.seq};  // positions of queries to sum over
  is_bound_[slot('p')] = true;
}

void cell::check_shares(const attributes& with) const {
  const std::size_t t = slot('t');
  if (!is_bound_[t]) return;
  const std::int64_t tokens = range[t].size(), each = with.rows > 0 ? tokens / with.rows : 0;
  if (with.seq < 1 || each < 1 || each * with.rows != tokens)
    throw refusal("RC7445: {} tokens are not equal parts of {} sequences of {}", tokens, with.rows, with.seq);
  std::int64_t before = -1;
  for (std::int64_t row = 0; row < with.rows; ++row) {
    const runs share = bound_[t].at.slice(row * each, each);
    const std::int64_t sequence = share[0].begin / with.seq;
    for (int i = 0; i < share.count(); ++i)
      if (share[i].begin / with.seq != sequence || (share[i].end - 1) / with.seq != sequence ||
          sequence == before)
        throw refusal("RC7446: {} are not equal parts of {} different sequences of {}",
                      text_of('t', bound_[t].at), with.rows, with.seq);
    before = sequence;
  }
  for (std::size_t i = static_cast<std::size_t>(fact_.results); i < fact_.ports.size(); ++i)
    if (const holding& h = *held_[i];
        fact_.ports[i].by_heads && h.sum.size() == 1 && model_.sequence(h.sum[0].of) != with.seq)
      throw refusal("RC7447: operand {} consists of sequences of {} tokens; the call has sequences of {}",
                    fact_.ports[i].name, model_.sequence(h.sum[0].of), with.seq);
}

runs cell::positions_of_queries(std::int64_t row, const attributes& with) const {
  if (!is_bound_[slot('t')]) return {};
  const runs& tokens = bound_[slot('t')].at;
  const std::int64_t each = tokens.size() / with.rows;
  const runs own = tokens.slice(row * each, each);
  return own.shifted(-(own[0].begin / with.seq * with.seq));
}

std::int64_t cell::share_of(const port& p, const attributes& with) const {
  return p.by_heads && with.rows > 0 ? range[slot('t')].size() / with.rows : 0;
}

void cell::check_share(const port& p, const holding& h, const attributes& with) const {
  if (const std::int64_t share = share_of(p, with); h.share != share)
    throw refusal(
        "RC7786: operand {} is stored by head, in runs of {} tokens of a sequence; the op expects runs of {} "
        "(0: stored by token)",
        p.name, h.share, share);
}

void cell::bind_sequences(const attributes& with) {
  const std::size_t t = slot('t'), m = slot('m');
  if (!is_bound_[t]) return;
  const std::int64_t tokens = range[t].size(), each = with.rows > 0 ? tokens / with.rows : 0;
  if (with.seq < 1 || each < 1 || each * with.rows != tokens)
    throw refusal(
        "RC7780: the op takes the means of {} sequences of {}, but {} tokens are not equal parts of these",
        with.rows, with.seq, tokens);
  part positions{{}, with.seq}, sequences{{}, bound_[t].size / with.seq};
  for (std::int64_t row = 0; row < with.rows; ++row) {
    const runs share = bound_[t].at.slice(row * each, each);
    const std::int64_t sequence = share[0].begin / with.seq;
    const runs here = share.shifted(-sequence * with.seq);
    if (row == 0) positions.at = here;
    if (!(here == positions.at) || !is_within(here, with.seq))
      throw refusal("RC7781: {} are not at the same positions of {} sequences of {}",
                    text_of('t', bound_[t].at), with.rows, with.seq);
    sequences.at.append(interval{sequence, sequence + 1});
  }
  if (is_bound_[m] && !(bound_[m] == sequences))
    throw refusal("RC7782: {} are of sequences {}; an operand has {}", text_of('t', bound_[t].at),
                  text_of('m', sequences.at), text_of('m', bound_[m].at));
  bound_[m] = sequences;
  is_bound_[m] = true;
  if (!sums_over_positions(fact_)) return;
  bound_[slot('p')] = positions;
  is_bound_[slot('p')] = true;
}

/// Checks that queries are of the rank that the op assumes, and that keys are of the rank `number` places
/// before it. A result for queries is a part over the keys that some of them see. A gradient of keys is a
/// part over the queries that see some of them. The step of a rank's own keys also counts all positions that
/// add nothing in any step.
void cell::check_ring(std::int64_t first, const attributes& with) {
  const std::size_t t = slot('t'), u = slot('u');
  const std::int64_t tokens = range[t].size(), whole = with.rows * with.seq;
  if (with.seq < 1 || with.rows < 1 || whole % tokens || whole == tokens ||
      with.seq % (2 * (whole / tokens)) || range[u].size() != tokens)
    throw refusal(
        "RC7448: {} queries and {} keys are not a rank's two chunks of each of {} sequences of {} tokens",
        tokens, range[u].size(), with.rows, with.seq);
  const std::int64_t ranks = whole / tokens, own = rank_of_queries(first, tokens, ranks),
                     each = with.seq / ranks;

  if (!(with.number >= 0 && with.number < static_cast<double>(ranks)) ||
      with.number != std::floor(with.number))
    throw refusal("RC7449: the call has step {} of a ring; expected a whole number from 0 to {}", with.number,
                  ranks - 1);
  const std::int64_t other = (own - static_cast<std::int64_t>(with.number) + ranks) % ranks;
  const sharing by(ranks, with.seq);
  if (is_bound_[t]) {
    runs queries, keys;
    for (std::int64_t row = 0; row < with.rows; ++row) {
      const std::int64_t token = bound_[t].at.slice(row * each, 1)[0].begin, begin = token - token % with.seq;
      queries.append(by.of_rank(own, begin));
      keys.append(by.of_rank(other, begin));
    }
    check_tokens(queries, keys);
  }
  const sight mask(with.attention.causal, with.attention.window, with.seq);
  const runs queries = by.of_rank(own), keys = by.of_rank(other);
  for (const equation& e : fact_.equations) {
    if (e.over.empty()) continue;
    const bool over_queries = e.over[0] == 'p';
    const runs seen = over_queries ? mask.queries_that_see(keys) : mask.keys_seen_by(queries);
    part& of = bound_[slot(e.over[0])];
    of = {common(over_queries ? queries : keys, seen), with.seq};
    interval twice;
    if (own == other) of.at.unite(seen.gaps(with.seq), twice);
    is_bound_[slot(e.over[0])] = true;
  }
}

/// Checks that each token of the op has the start that the op assumes for it. Starts are of whole sequences,
/// in the order of their positions.
void cell::check_documents(std::int64_t first, const attributes& with) const {
  const std::size_t t = slot('t'), n = slot('n');
  if (!is_bound_[t] || !is_bound_[n]) return;
  const std::int64_t tokens = range[t].size(), whole = range[n].size();
  if (with.rows < 1 || with.rows * with.seq != whole || (fact_.ring && whole % tokens))
    throw refusal("RC7450: the call has {} sequences of {} tokens; the op has document starts of {} tokens",
                  with.rows, with.seq, whole);
  const sharing by = fact_.ring ? sharing(whole / tokens, with.seq) : sharing(fact_, with);
  runs order, taken;  // indices of starts, rank after rank; the tokens at these indices
  for (std::int64_t rank = 0; rank < by.ranks; ++rank)
    for (std::int64_t row = 0; row < with.rows; ++row) order.append(by.of_rank(rank, row * with.seq));
  const std::int64_t begin = first + range[t].begin;
  if (begin < 0 || begin + tokens > order.size())
    throw refusal(
        "RC7451: the call puts the {} tokens of the op at {} of {} document starts; expected all of them "
        "within these",
        tokens, begin, order.size());
  const runs places = order.slice(begin, tokens);
  for (int i = 0; i < places.count(); ++i)
    taken.append(bound_[n].at.slice(places[i].begin, places[i].size()));
  if (!(taken == bound_[t].at))
    throw refusal("RC7452: the op reads the document starts of {}; expected those of its own {}",
                  text_of('t', taken), text_of('t', bound_[t].at));
}

}  // namespace rankc::codegen::algebra
