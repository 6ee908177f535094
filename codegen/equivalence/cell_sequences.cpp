// SPDX-License-Identifier: Apache-2.0
// Whether the tokens that an op is given are those of the sequences, chunks and documents that it is told of.
#include "cell.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace rankc::codegen::algebra {

namespace {

/// How an op takes sequences: the ranks that share out each, and how long the chunks are that these have, one
/// from the front and one from the back; one rank has it whole.
struct sharing {
  std::int64_t ranks = 1, chunk = 0;
  sharing(const fact& f, const attributes& with) {
    if (with.seq < 1) throw refusal("it is not told how long a sequence is");
    if (f.chunks)
      ranks = with.number >= 2 && with.number <= static_cast<double>(with.seq)
                  ? static_cast<std::int64_t>(with.number)
                  : 0;
    if (ranks < 1 || with.seq % (ranks == 1 ? 1 : 2 * ranks))
      throw refusal(fmt::format("sequences of {} do not divide into two chunks for each of {} ranks",
                                with.seq, with.number));
    chunk = ranks == 1 ? with.seq : with.seq / (2 * ranks);
  }
  sharing(std::int64_t ranks, std::int64_t seq) : ranks(ranks), chunk(seq / (2 * ranks)) {}
  /// Positions of a sequence that a rank has, in its order.
  runs of_rank(std::int64_t rank, std::int64_t from = 0) const {
    runs all(from + rank * chunk, from + (rank + 1) * chunk);
    if (ranks > 1)
      all.append(interval{from + (2 * ranks - 1 - rank) * chunk, from + (2 * ranks - rank) * chunk});
    return all;
  }
};

}  // namespace

void cell::check_positions(std::int64_t first, const attributes& with) const {
  const std::size_t t = slot('t');
  if (!is_bound_[t] || (fact_.listed && !is_bound_[slot('s')])) return;
  runs order;  // of the positions that the op takes one token after the other for, over and over
  std::int64_t period = with.seq;
  if (fact_.listed) {
    order = bound_[slot('s')].at;
    period = bound_[slot('s')].size;
    if (order.size() != with.seq)
      throw refusal(fmt::format("it is told of {} positions; its table has {}", with.seq, order.size()));
  } else {
    const sharing by(fact_, with);
    for (std::int64_t rank = 0; rank < by.ranks; ++rank)
      for (std::int64_t row = 0; row < (by.ranks == 1 ? 1 : with.rows); ++row) order.append(by.of_rank(rank));
  }
  if (order.size() < 1) throw refusal("it is told of no positions");
  std::int64_t at = range[t].begin + first;
  for (int i = 0; i < bound_[t].at.count(); ++i) {
    for (interval run = bound_[t].at[i]; run.size() > 0;) {
      const std::int64_t from = (at % order.size() + order.size()) % order.size();
      const interval taken = order.slice(from, order.size() - from)[0];
      if (run.begin % period != taken.begin)
        throw refusal(fmt::format("{} are taken for positions from {} on, in sequences of {}",
                                  text_of('t', bound_[t].at), taken.begin, period));
      const std::int64_t step = std::min(taken.size(), run.size());
      run.begin += step;
      at += step;
    }
  }
}

void cell::check_sequences(const attributes& with) const {
  const std::size_t t = slot('t');
  if (!is_bound_[t]) return;
  if (with.seq < 1) throw refusal("it is not told how long a sequence is");
  if (with.rows * with.seq != range[t].size())
    throw refusal(fmt::format("it is told of {} sequences of {}; expected {} tokens", with.rows, with.seq,
                              range[t].size()));
  for (int i = 0; i < bound_[t].at.count(); ++i)
    if (const interval& run = bound_[t].at[i]; run.begin % with.seq || run.size() % with.seq)
      throw refusal(fmt::format("{} are taken for positions from 0 on, in sequences of {}",
                                text_of('t', bound_[t].at), with.seq));
}

void cell::check_chunks(std::int64_t first, const attributes& with) {
  const std::size_t t = slot('t'), u = slot('u');
  const sharing by(fact_, with);
  const std::int64_t of_row = with.seq / by.ranks, tokens = range[t].size();
  if (with.rows * of_row != tokens || range[u].size() != tokens * by.ranks)
    throw refusal(fmt::format("it is told of {} sequences of {} on {} ranks; expected {} tokens and {} keys",
                              with.rows, with.seq, by.ranks, tokens, range[u].size()));
  const std::int64_t own = first / tokens;
  if (first % tokens || own < 0 || own >= by.ranks)
    throw refusal(
        fmt::format("its queries begin at {} of the keys; expected a multiple of {}", first, tokens));
  if (is_bound_[t]) {
    std::vector<std::int64_t> begins;  // of the sequences
    runs queries, keys;
    for (std::int64_t row = 0; row < with.rows; ++row) {
      const std::int64_t token = bound_[t].at.slice(row * of_row, 1)[0].begin;
      begins.push_back(token - token % with.seq);
      queries.append(by.of_rank(own, begins.back()));
    }
    for (std::int64_t rank = 0; rank < by.ranks; ++rank)
      for (const std::int64_t begin : begins) keys.append(by.of_rank(rank, begin));
    if (!(queries == bound_[t].at))
      throw refusal(fmt::format("{} are taken for {}", text_of('t', bound_[t].at), text_of('t', queries)));
    if (is_bound_[u] && !(keys == bound_[u].at))
      throw refusal(
          fmt::format("keys of {} are taken for {}", text_of('t', bound_[u].at), text_of('t', keys)));
  }
  const bool sums = std::any_of(fact_.equations.begin(), fact_.equations.end(),
                                [](const equation& e) { return e.over == "p"; });
  if (!sums) return;
  bound_[slot('p')] = {by.of_rank(own),
                       with.seq};  // of each sequence, those of the queries that the sum is over
  is_bound_[slot('p')] = true;
}

void cell::check_shares(const attributes& with) const {
  const std::size_t t = slot('t');
  if (!is_bound_[t]) return;
  const std::int64_t tokens = range[t].size(), each = with.rows > 0 ? tokens / with.rows : 0;
  if (with.seq < 1 || each < 1 || each * with.rows != tokens)
    throw refusal(
        fmt::format("{} tokens are taken for shares of {} sequences of {}", tokens, with.rows, with.seq));
  std::int64_t before = -1;
  for (std::int64_t row = 0; row < with.rows; ++row) {
    const runs share = bound_[t].at.slice(row * each, each);
    const std::int64_t sequence = share[0].begin / with.seq;
    for (int i = 0; i < share.count(); ++i)
      if (share[i].begin / with.seq != sequence || (share[i].end - 1) / with.seq != sequence ||
          sequence == before)
        throw refusal(fmt::format("{} are taken for shares of {} sequences of {}", text_of('t', bound_[t].at),
                                  with.rows, with.seq));
    before = sequence;
  }
  for (std::size_t i = static_cast<std::size_t>(fact_.results); i < fact_.ports.size();
       ++i)  // which lie sequence by sequence
    if (const holding& h = *held_[i]; h.sum.size() == 1 && model_.sequence(h.sum[0].of) != with.seq)
      throw refusal(fmt::format("{} is of sequences of {}, taken for sequences of {}", fact_.ports[i].name,
                                model_.sequence(h.sum[0].of), with.seq));
}

/// Queries are those of the rank that the op takes them for, and keys those of the rank that is the step
/// before it. What is made is over the keys of the one, or the queries of the other: of pairs that the mask
/// leaves out there is nothing to make.
void cell::check_ring(std::int64_t first, const attributes& with) {
  const std::size_t t = slot('t'), u = slot('u');
  const std::int64_t tokens = range[t].size(), whole = with.rows * with.seq;
  if (with.seq < 1 || with.rows < 1 || whole % tokens || whole == tokens ||
      with.seq % (2 * (whole / tokens)) || range[u].size() != tokens)
    throw refusal(
        fmt::format("{} queries and {} keys are no shares of {} sequences of {}, two chunks of each", tokens,
                    range[u].size(), with.rows, with.seq));
  const std::int64_t ranks = whole / tokens, own = first / tokens, each = with.seq / ranks;
  if (first % tokens || own < 0 || own >= ranks)
    throw refusal(fmt::format("its queries begin at {} of all; expected a multiple of {}", first, tokens));
  if (!(with.number >= 0 && with.number < static_cast<double>(ranks)) ||
      with.number != std::floor(with.number))
    throw refusal(fmt::format("it is told of step {}; expected one of {}", with.number, ranks));
  const std::int64_t other = (own - static_cast<std::int64_t>(with.number) + ranks) % ranks;
  const sharing by(ranks, with.seq);
  if (is_bound_[t]) {
    runs queries, keys;
    for (std::int64_t row = 0; row < with.rows; ++row) {
      const std::int64_t token = bound_[t].at.slice(row * each, 1)[0].begin, begin = token - token % with.seq;
      queries.append(by.of_rank(own, begin));
      keys.append(by.of_rank(other, begin));
    }
    if (!(queries == bound_[t].at))
      throw refusal(fmt::format("{} are taken for {}", text_of('t', bound_[t].at), text_of('t', queries)));
    if (is_bound_[u] && !(keys == bound_[u].at))
      throw refusal(
          fmt::format("keys of {} are taken for {}", text_of('t', bound_[u].at), text_of('t', keys)));
  }
  for (const equation& e : fact_.equations) {
    if (e.over.empty()) continue;
    bound_[slot(e.over[0])] = {by.of_rank(e.over[0] == 'p' ? own : other), with.seq};
    is_bound_[slot(e.over[0])] = true;
  }
}

/// Each of the op's tokens is the one whose start the op takes for it: starts are of whole sequences, in the
/// order of their positions.
void cell::check_documents(std::int64_t first, const attributes& with) const {
  const std::size_t t = slot('t'), n = slot('n');
  if (!is_bound_[t] || !is_bound_[n]) return;
  const std::int64_t tokens = range[t].size(), whole = range[n].size();
  if (with.rows < 1 || with.rows * with.seq != whole || (fact_.ring && whole % tokens))
    throw refusal(fmt::format("it is told of {} sequences of {}; expected starts of {} tokens", with.rows,
                              with.seq, whole));
  const sharing by = fact_.ring ? sharing(whole / tokens, with.seq) : sharing(fact_, with);
  runs order, taken;  // places of starts, rank after rank; the tokens that these are of
  for (std::int64_t rank = 0; rank < by.ranks; ++rank)
    for (std::int64_t row = 0; row < with.rows; ++row) order.append(by.of_rank(rank, row * with.seq));
  const std::int64_t begin = first + range[t].begin;
  if (begin < 0 || begin + tokens > order.size())
    throw refusal(fmt::format("its tokens begin at {} of {}", begin, order.size()));
  const runs places = order.slice(begin, tokens);
  for (int i = 0; i < places.count(); ++i)
    taken.append(bound_[n].at.slice(places[i].begin, places[i].size()));
  if (!(taken == bound_[t].at))
    throw refusal(
        fmt::format("starts of {} are taken for {}", text_of('t', taken), text_of('t', bound_[t].at)));
}

}  // namespace rankc::codegen::algebra
