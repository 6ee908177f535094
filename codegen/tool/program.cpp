// SPDX-License-Identifier: Apache-2.0
#include "program.hpp"

#include <algorithm>
#include <utility>

namespace rankc::tool {

namespace {

/// The largest numbers in the tokens, for values that the line leaves out.
struct extent {
  int stage = -1, microbatch = -1, split = -1;
  long long tokens = 0;
};

/// RC8080: refuses items that do not follow the grammar.
void refuse_unreadable(report& out, const std::vector<std::vector<std::string>>& ranks,
                       const std::vector<place>& unreadable) {
  if (unreadable.empty()) return;
  const auto [rank, index] = unreadable[0];
  const std::string& text = ranks[static_cast<std::size_t>(rank)][static_cast<std::size_t>(index)];
  refuse(out,
         "RC8080: items that are not tokens: {}; the first is \"{}\", item {} of rank {}; tokens are 3F5, "
         "3SEND_F5, OVERLAP(3F5,3B4), BATCH(3SEND_F5,3RECV_B4), 3UNSHARD",
         unreadable.size(), text.substr(0, 40), index, rank);
}

extent read_items(const std::vector<std::vector<std::string>>& ranks, text_program& p, report& out) {
  extent most;
  std::vector<place> unreadable;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    auto& items = p.ranks.emplace_back();
    for (std::size_t i = 0; i < ranks[r].size(); ++i) {
      auto read = read_item(ranks[r][i]);
      if (!read) unreadable.push_back({static_cast<int>(r), static_cast<int>(i)});
      items.push_back(read.value_or(item{}));
      for (const token& t : items.back().tokens) {
        ++most.tokens;
        most.stage = std::max(most.stage, t.stage);
        most.microbatch = std::max(most.microbatch, t.microbatch);
        most.split = std::max(most.split, t.split);
        p.training |= t.kind == token_kind::B || t.kind == token_kind::I;
        p.has_messages |= items.back().kind == item_kind::message;
      }
    }
  }
  refuse_unreadable(out, ranks, unreadable);
  return most;
}

/// Without a given placement, a stage is on the rank of its first forward.
std::vector<int> find_placement(const text_program& p) {
  std::vector<int> rank_of(static_cast<std::size_t>(p.stages), -1);
  for (std::size_t r = 0; r < p.ranks.size(); ++r)
    for (const item& i : p.ranks[r])
      for (const token& t : i.tokens)
        if (t.kind == token_kind::F && t.stage < p.stages && rank_of[static_cast<std::size_t>(t.stage)] < 0)
          rank_of[static_cast<std::size_t>(t.stage)] = static_cast<int>(r);
  return rank_of;
}

void check_placement(const text_program& p, const std::vector<int>& rank_of, const char* name, report& out) {
  for (int r : rank_of)
    if (r < 0 || r >= static_cast<int>(p.ranks.size())) {
      refuse(out, "RC8081: {} names rank {}, but \"ranks\" has {} lists", name, r, p.ranks.size());
      return;
    }
}

void read_queues(const fields& f, text_program& p) {
  const std::string source = f.text("source").value_or("rankc");
  p.by = source.starts_with("rankc") ? queues::edge : queues::rank;
  static constexpr std::string_view names[]{"edge", "pair", "rank"};
  if (const auto i = f.one_of("queues", names)) p.by = static_cast<queues>(*i);
}

}  // namespace

std::optional<text_program> read_program(const json& line, report& out) {
  const fields f(line, out);
  const auto ranks = f.need("ranks", f.lists_of_text("ranks"));
  const auto given = f.whole_numbers("stage_to_rank"), reversed = f.whole_numbers("stage_to_rank_rev");
  const auto pp = f.whole("pp"), per_rank = f.whole("stages_per_rank"),
             microbatches = f.whole("microbatches"), splits = f.whole("seq_splits"),
             from = f.whole("mb_split");
  const auto inference = f.flag("inference");
  text_program p;
  read_queues(f, p);
  if (!out.empty()) return {};
  if (ranks->empty()) {
    refuse(out, "RC8082: \"ranks\" is empty; a program has one list of tokens for each rank");
    return {};
  }
  if (pp && *pp != static_cast<int>(ranks->size()))
    refuse(out, "RC8083: pp is {}, but \"ranks\" has {} lists; give one for each rank", *pp, ranks->size());
  const extent most = read_items(*ranks, p, out);
  if (!out.empty()) return {};

  // DualPipe (mb_split) holds every stage on two ranks.
  const long long expected = 1LL * static_cast<long long>(ranks->size()) * (from ? 1 : per_rank.value_or(1));
  long long stages = most.stage + 1;
  if (given) stages = static_cast<long long>(given->size());
  else if (per_rank || from) stages = expected;
  p.microbatches = microbatches.value_or(most.microbatch + 1);
  p.split_sequences = splits || most.split >= 0;
  p.splits = splits.value_or(std::max(most.split, 0) + 1);
  if (inference) p.training = !*inference;
  if (stages < 1 || p.microbatches < 1 || p.splits < 1)
    refuse(
        out,
        "RC8084: the program has {} stages, {} microbatches and {} splits of a sequence; it needs at least 1 "
        "of each",
        stages, p.microbatches, p.splits);
  else if (stages > most.tokens)
    refuse(out, 303) << "the program has " << stages << " stages and only " << most.tokens
                     << " tokens; every stage runs";
  if (per_rank && stages != expected)
    refuse(out, stages < expected ? 303 : 302)
        << "stage_to_rank has " << stages << " stages, but " << ranks->size()
        << " ranks of stages_per_rank=" << *per_rank << " have " << expected;
  if (!out.empty()) return {};
  p.stages = static_cast<int>(stages);

  p.rank_of_stage = given ? *given : find_placement(p);
  if (given) check_placement(p, *given, "stage_to_rank", out);
  if (from) {
    p.reversed_from = *from;
    p.reversed_rank_of_stage =
        reversed.value_or(std::vector<int>(p.rank_of_stage.rbegin(), p.rank_of_stage.rend()));
    if (reversed) check_placement(p, *reversed, "stage_to_rank_rev", out);
    if (p.reversed_rank_of_stage.size() != p.rank_of_stage.size())
      refuse(out, "RC8085: stage_to_rank_rev has {} stages, but stage_to_rank has {}",
             p.reversed_rank_of_stage.size(), p.rank_of_stage.size());
  }
  return out.empty() ? std::optional(std::move(p)) : std::nullopt;
}

std::optional<place> token_index::add(const token& t, place where) {
  const auto [found, is_new] = places_.try_emplace(t, where);
  return is_new ? std::nullopt : std::optional(found->second);
}

std::optional<place> token_index::find(const token& t) const {
  const auto found = places_.find(t);
  return found == places_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<token> producers(const text_program& p, const token_index& index, const token& t) {
  const auto same = [&](token_kind kind, int stage, int split) {
    return token{kind, stage, t.microbatch, split};
  };
  const auto gradient = [&](int stage, int split) {  // of the stage's input: part of B, or an I
    const token whole = same(token_kind::B, stage, split);
    return index.has(whole) ? whole : same(token_kind::I, stage, split);
  };
  std::vector<token> out;
  switch (t.kind) {
    case token_kind::F:
      if (t.stage > 0) out.push_back(same(token_kind::F, t.stage - 1, t.split));
      if (t.split > 0)
        out.push_back(same(token_kind::F, t.stage, t.split - 1));  // attention reads the splits before it
      break;
    case token_kind::B:
    case token_kind::I:
      out.push_back(same(token_kind::F, t.stage, t.split));
      if (t.stage + 1 < p.stages) out.push_back(gradient(t.stage + 1, t.split));
      if (p.split_sequences && t.split + 1 < p.splits) out.push_back(gradient(t.stage, t.split + 1));
      if (const token again = same(token_kind::R, t.stage, t.split); index.has(again)) out.push_back(again);
      break;
    case token_kind::W:
      out.push_back(same(token_kind::I, t.stage, t.split));
      break;
    case token_kind::R:
      out.push_back(same(token_kind::F, t.stage, t.split));
      break;
    default:
      break;
  }
  return out;
}

}  // namespace rankc::tool
