// SPDX-License-Identifier: Apache-2.0
#include "byte_pairs.hpp"

#include <rankc/runtime/failure.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <tuple>
#include <utility>

namespace rankc::runtime {
namespace {

constexpr std::size_t words_kept = 1 << 16, longest_kept = 64;

}  // namespace

byte_pairs::byte_pairs(byte_pair_rules rules) : rules_(std::move(rules)), words_(words_kept) {}

void byte_pairs::encode(std::string_view word, std::vector<std::int32_t>& to) {
  if (word.size() > longest_kept) return merge_all(word, to);
  remembered& here = words_[text_hash()(word) % words_kept];
  if (here.word != word) {
    here.word.clear();
    here.tokens.clear();
    merge_all(word, here.tokens);
    here.word = word;
  }
  to.insert(to.end(), here.tokens.begin(), here.tokens.end());
}

void byte_pairs::merge_all(std::string_view word, std::vector<std::int32_t>& to) {
  if (const auto at = rules_.whole.find(word); at != rules_.whole.end()) {
    to.push_back(at->second);
    return;
  }
  place_symbols(word);
  candidates_.clear();
  for (std::size_t i = 0; i + 1 < symbols_.size(); ++i) add_candidate(static_cast<std::int32_t>(i));
  std::make_heap(candidates_.begin(), candidates_.end(), is_later);
  while (!candidates_.empty()) {
    std::pop_heap(candidates_.begin(), candidates_.end(), is_later);
    const candidate best = candidates_.back();
    candidates_.pop_back();
    merge(best);
  }
  for (const symbol& s : symbols_)
    if (!s.is_merged) to.push_back(s.token);
}

void byte_pairs::place_symbols(std::string_view word) {
  symbols_.clear();
  for (const char byte : word) {
    const auto& tokens = rules_.initial[static_cast<unsigned char>(byte)];
    if (tokens.empty())
      throw failure(1, "RC6702: the vocabulary has no token for the byte 0x{}, which the text has",
                    fmt::format("{:02X}", static_cast<unsigned char>(byte)));
    for (const std::int32_t token : tokens) {
      const auto place = static_cast<std::int32_t>(symbols_.size());
      symbols_.push_back({token, place - 1, place + 1, false});
    }
  }
  symbols_.back().next = -1;
}

bool byte_pairs::is_later(const candidate& a, const candidate& b) {
  return std::tie(a.rank, a.place) > std::tie(b.rank, b.place);
}

/// Appends the pair of a symbol and the next one if a rule merges it.
/// Returns: true if it did.
bool byte_pairs::add_candidate(std::int32_t place) {
  const symbol& left = at(place);
  if (left.next < 0) return false;
  const std::int32_t right = at(left.next).token;
  const merge_rule* rule =
      rules_.merges.find(static_cast<std::uint32_t>(left.token), static_cast<std::uint32_t>(right));
  if (rule == nullptr) return false;
  candidates_.push_back({rule->rank, place, left.token, right, rule->token});
  return true;
}

/// Merges a pair unless one of its symbols is already part of another pair.
void byte_pairs::merge(const candidate& best) {
  symbol& left = at(best.place);
  if (left.is_merged || left.token != best.left || left.next < 0) return;
  symbol& right = at(left.next);
  if (right.token != best.right) return;
  right.is_merged = true;
  left.token = best.token;
  left.next = right.next;
  if (left.next >= 0) at(left.next).previous = best.place;
  for (const std::int32_t place : {left.previous, best.place})
    if (place >= 0 && add_candidate(place)) std::push_heap(candidates_.begin(), candidates_.end(), is_later);
}

}  // namespace rankc::runtime
