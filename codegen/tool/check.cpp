// SPDX-License-Identifier: Apache-2.0
#include "check.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

namespace rankc::tool {

namespace {

/// Visits every token with its position.
void each_token(const text_program& p, auto visit) {
  for (std::size_t r = 0; r < p.ranks.size(); ++r)
    for (std::size_t i = 0; i < p.ranks[r].size(); ++i)
      for (const token& t : p.ranks[r][i].tokens)
        visit(p.ranks[r][i].kind, t, place{static_cast<int>(r), static_cast<int>(i)});
}

bool runs_on(const text_program& p, int stage, int rank) {
  const auto holds = [&](const std::vector<int>& rank_of) {
    return !rank_of.empty() && rank_of[static_cast<std::size_t>(stage)] == rank;
  };
  return holds(p.rank_of_stage) || holds(p.reversed_rank_of_stage);
}

/// Reports the rank that has the stage of a misplaced token.
void misplace(const text_program& p, const token& t, place at, offences& misplaced) {
  const int rank = p.rank_of(t.stage, t.microbatch);
  if (rank < 0)
    misplaced.add("rank {} has {} (item {}), but stage {} has no forward on any rank", at.rank, spell(t),
                  at.index, t.stage);
  else
    misplaced.add("rank {} has {} (item {}), but stage {} is on rank {}", at.rank, spell(t), at.index,
                  t.stage, rank);
}

}  // namespace

void check_places(report& out, const text_program& p, token_index& index) {
  offences outside(out, 302), misplaced(out, 302), twice(out, 302);
  each_token(p, [&](item_kind kind, const token& t, place at) {
    const bool is_sharding = kind == item_kind::sharding;
    const bool split_fits = p.split_sequences ? t.split >= 0 && t.split < p.splits : t.split < 0;
    if (t.stage >= p.stages || (!is_sharding && (t.microbatch >= p.microbatches || !split_fits)))
      return outside.add(
          "rank {} has {} (item {}), but there are {} stages, {} microbatches and {} splits of a sequence",
          at.rank, spell(t), at.index, p.stages, p.microbatches, p.splits);
    if (is_sharding ? !runs_on(p, t.stage, at.rank) : p.rank_of(t.stage, t.microbatch) != at.rank)
      return misplace(p, t, at, misplaced);
    if (is_sharding) return;
    if (const auto earlier = index.add(t, at))
      twice.add("rank {} runs {} twice, as items {} and {}", at.rank, spell(t), earlier->index, at.index);
  });
}

void check_complete(report& out, const text_program& p, const token_index& index) {
  for (int s = 0; s < p.stages; ++s)
    for (int m = 0; m < p.microbatches; ++m)
      for (int k = 0; k < p.splits; ++k) {
        const auto has = [&](token_kind kind) { return index.has(p.make(kind, s, m, k)); };
        const auto name = [&](token_kind kind) { return spell(p.make(kind, s, m, k)); };
        if (!has(token_kind::F)) {
          refuse(out, 303) << "stage " << s << " never runs its forward " << name(token_kind::F);
          return;
        }
        const bool whole = has(token_kind::B), input = has(token_kind::I), weight = has(token_kind::W);
        if (!p.training) {
          if (!whole && !input && !weight && !has(token_kind::R)) continue;
          refuse(out, 302) << "stage " << s << " runs a backward of microbatch " << m
                           << ", but the program is for inference";
        } else if (whole && (input || weight)) {
          refuse(out, 302) << "stage " << s << " runs its backward " << name(token_kind::B)
                           << " and also a part of it, an I or a W";
        } else if (input && !weight) {
          refuse(out, 303) << "stage " << s << " never runs the weight gradient " << name(token_kind::W)
                           << ", the other half of its I";
        } else if (!whole && weight && !input) {
          refuse(out, 303) << "stage " << s << " never runs the input gradient " << name(token_kind::I)
                           << ", the other half of its W";
        } else if (!whole && !input) {
          refuse(out, 303) << "stage " << s << " never runs its backward " << name(token_kind::B);
        } else {
          continue;
        }
        return;
      }
}

void check_order(report& out, const text_program& p, const token_index& index) {
  offences late(out, 304);
  each_token(p, [&](item_kind kind, const token& t, place at) {
    if (kind != item_kind::compute) return;
    for (const token& needs : producers(p, index, t)) {
      const auto made = index.find(needs);
      if (!made || made->rank != at.rank || made->index < at.index) continue;
      if (made->index == at.index)
        late.add(
            "rank {} overlaps {} with {}, which it needs (item {}); order each rank's actions by their data",
            at.rank, spell(t), spell(needs), at.index);
      else
        late.add(
            "rank {} has {} (item {}) before {} (item {}), which it needs; order each rank's actions by "
            "their data",
            at.rank, spell(t), at.index, spell(needs), made->index);
    }
  });
}

void check_sharding(report& out, const text_program& p) {
  struct state {
    bool sharded = true;
    int reduced_at = -1, stepped_at = -1;
  };
  std::set<std::pair<int, int>> gathered;  // pairs of rank and stage that have such tokens
  each_token(p, [&](item_kind, const token& t, place at) {
    if (t.kind == token_kind::UNSHARD || t.kind == token_kind::RESHARD) gathered.insert({at.rank, t.stage});
  });
  std::map<std::pair<int, int>, state> states;
  offences wrong(out, 310);
  each_token(p, [&](item_kind kind, const token& t, place at) {
    if (kind == item_kind::message) return;
    state& s = states[{at.rank, t.stage}];
    if (s.stepped_at >= 0)
      wrong.add("rank {}: {} (item {}) comes after the stage's STEP (item {})", at.rank, spell(t), at.index,
                s.stepped_at);
    if (t.kind == token_kind::STEP) {
      s.stepped_at = at.index;
    } else if (t.kind == token_kind::UNSHARD || t.kind == token_kind::RESHARD) {
      if (s.sharded == (t.kind == token_kind::RESHARD))
        wrong.add("rank {}: {} (item {}) finds stage {} {} already", at.rank, spell(t), at.index, t.stage,
                  s.sharded ? "sharded" : "gathered");
      s.sharded = t.kind == token_kind::RESHARD;
    } else if (t.kind == token_kind::REDUCE_GRAD) {
      if (s.reduced_at >= 0)
        wrong.add("rank {}: {} (item {}) reduces gradients twice", at.rank, spell(t), at.index);
      s.reduced_at = at.index;
    } else {
      if (s.sharded && gathered.contains({at.rank, t.stage}))
        wrong.add("rank {}: {} (item {}) runs while stage {} is sharded; put {}UNSHARD before it", at.rank,
                  spell(t), at.index, t.stage, t.stage);
      if (s.reduced_at >= 0 && t.kind != token_kind::F && t.kind != token_kind::R)
        wrong.add("rank {}: {} (item {}) adds to gradients that item {} has reduced", at.rank, spell(t),
                  at.index, s.reduced_at);
    }
  });
  if (std::none_of(states.begin(), states.end(), [](const auto& s) { return s.second.stepped_at >= 0; }))
    return;
  for (std::size_t r = 0; r < p.ranks.size(); ++r)
    for (int stage = 0; stage < p.stages; ++stage) {
      const state& s = states[{static_cast<int>(r), stage}];
      if (!runs_on(p, stage, static_cast<int>(r)) || (s.stepped_at >= 0 && s.reduced_at >= 0)) continue;
      refuse(out, 303)
          << "rank " << r << " never runs "
          << spell({s.reduced_at < 0 ? token_kind::REDUCE_GRAD : token_kind::STEP, stage, 0, -1})
          << "; a program with any STEP has REDUCE_GRAD and STEP of every stage, on each rank that has it";
      return;
    }
}

void answer_check(const json& line, json&, report& out) {
  const auto p = read_program(line, out);
  if (!p) return;
  token_index index;
  check_places(out, *p, index);
  if (!out.empty()) return;
  check_complete(out, *p, index);
  check_sharding(out, *p);
  if (!out.empty()) return;
  check_order(out, *p, index);
  if (p->has_messages) check_messages(out, *p, index);
  if (out.empty()) check_progress(out, *p, index);
}

}  // namespace rankc::tool
