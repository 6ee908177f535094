// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <utility>

#include "check.hpp"

namespace rankc::tool {

namespace {

/// RC308 for the messages of one direction: checks that all results that cross ranks are sent and received,
/// at the right positions.
void check_ends(report& out, const text_program& p, const token_index& index, bool backward) {
  offences unsent(out, 308), unreceived(out, 308), early(out, 308), late(out, 308);
  const auto gradient = [&](int s, int m, int k) {
    const token whole = p.make(token_kind::B, s, m, k);
    return index.has(whole) ? whole : p.make(token_kind::I, s, m, k);
  };
  for (int s = 0; s + 1 < p.stages; ++s)
    for (int m = 0; m < p.microbatches; ++m)
      for (int k = 0; k < p.splits; ++k) {
        const int from = backward ? s + 1 : s, to = backward ? s : s + 1;
        const int source = p.rank_of(from, m), sink = p.rank_of(to, m);
        if (source == sink) continue;
        const token makes = backward ? gradient(from, m, k) : p.make(token_kind::F, from, m, k);
        const token uses = backward ? gradient(to, m, k) : p.make(token_kind::F, to, m, k);
        const token sends = p.make(backward ? token_kind::SEND_B : token_kind::SEND_F, from, m, k);
        const token receives = p.make(backward ? token_kind::RECV_B : token_kind::RECV_F, to, m, k);
        const auto made = index.find(makes), used = index.find(uses), sent = index.find(sends),
                   received = index.find(receives);
        if (!sent)
          unsent.add("rank {} never sends the result of {} to rank {}: {} is missing", source, spell(makes),
                     sink, spell(sends));
        else if (sent->index < made->index)
          early.add("rank {} sends {} (item {}) before {} (item {}) has made it", source, spell(sends),
                    sent->index, spell(makes), made->index);
        if (!received)
          unreceived.add("rank {} never receives from rank {} what {} needs: {} is missing", sink, source,
                         spell(uses), spell(receives));
        else if (received->index > used->index)
          late.add("rank {} receives {} (item {}) after {} (item {}) has used it", sink, spell(receives),
                   received->index, spell(uses), used->index);
      }
}

/// True if the other end of a message exists and is on another rank.
bool crosses(const text_program& p, const token& t) {
  const bool up = t.kind == token_kind::SEND_F || t.kind == token_kind::RECV_B;
  const int other = t.stage + (up ? 1 : -1);
  const bool backward = t.kind == token_kind::SEND_B || t.kind == token_kind::RECV_B;
  return other >= 0 && other < p.stages && (!backward || p.training) &&
         p.rank_of(other, t.microbatch) != p.rank_of(t.stage, t.microbatch);
}

token sent_as(const token& t) {
  if (t.kind == token_kind::RECV_F) return {token_kind::SEND_F, t.stage - 1, t.microbatch, t.split};
  if (t.kind == token_kind::RECV_B) return {token_kind::SEND_B, t.stage + 1, t.microbatch, t.split};
  return t;
}

}  // namespace

void check_messages(report& out, const text_program& p, const token_index& index) {
  const std::size_t before = out.size();
  check_ends(out, p, index, false);
  if (p.training) check_ends(out, p, index, true);

  using tokens = std::vector<std::pair<token, int>>;      // with the index of the item
  std::map<std::pair<int, int>, tokens> sends, receives;  // for each edge
  {
    offences useless(out, 308);
    for (int r = 0; r < static_cast<int>(p.ranks.size()); ++r)
      for (std::size_t i = 0; i < p.ranks[r].size(); ++i) {
        if (p.ranks[r][i].kind != item_kind::message) continue;
        for (const token& t : p.ranks[r][i].tokens) {
          if (!crosses(p, t)) {
            useless.add("rank {}: {} (item {}) has no other end on another rank", r, spell(t), i);
            continue;
          }
          const bool is_send = t.kind == token_kind::SEND_F || t.kind == token_kind::SEND_B;
          const int ahead = t.kind == token_kind::SEND_F ? 1 : -1;
          const int peer = p.rank_of(is_send ? t.stage + ahead : sent_as(t).stage, t.microbatch);
          (is_send ? sends[{r, peer}] : receives[{peer, r}]).emplace_back(t, static_cast<int>(i));
        }
      }
  }
  if (out.size() > before) return;

  offences crossed(out, 309);
  for (const auto& [edge, sent] : sends)
    for (std::size_t i = 0; i < sent.size(); ++i) {
      const auto& [t, at] = receives[edge][i];
      if (sent_as(t) == sent[i].first) continue;
      crossed.add(
          "message {} from rank {} to rank {} is sent as {} (item {}) and received as {} (item {}); messages "
          "have no tags, receive them in the order they are sent",
          i, edge.first, edge.second, spell(sent[i].first), sent[i].second, spell(t), at);
      break;
    }
}

}  // namespace rankc::tool
