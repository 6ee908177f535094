// SPDX-License-Identifier: Apache-2.0
#include "token.hpp"

#include <charconv>
#include <utility>

namespace rankc::tool {

namespace {

constexpr std::pair<std::string_view, token_kind> spellings[]{{"F", token_kind::F},
                                                              {"B", token_kind::B},
                                                              {"I", token_kind::I},
                                                              {"W", token_kind::W},
                                                              {"R", token_kind::R},
                                                              {"SEND_F", token_kind::SEND_F},
                                                              {"RECV_F", token_kind::RECV_F},
                                                              {"SEND_B", token_kind::SEND_B},
                                                              {"RECV_B", token_kind::RECV_B},
                                                              {"UNSHARD", token_kind::UNSHARD},
                                                              {"RESHARD", token_kind::RESHARD},
                                                              {"REDUCE_GRAD", token_kind::REDUCE_GRAD},
                                                              {"STEP", token_kind::STEP}};

item_kind kind_of(token_kind k) {
  if (k <= token_kind::R) return item_kind::compute;
  return k <= token_kind::RECV_B ? item_kind::message : item_kind::sharding;
}

/// Takes a number of at most nine digits off the front of `text`.
std::optional<int> take_number(std::string_view& text) {
  int n = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
  if (error != std::errc{} || text[0] == '-' || n > 999'999'999) return {};
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return n;
}

std::optional<token> read_token(std::string_view text) {
  const auto stage = take_number(text);
  if (!stage) return {};
  const std::string_view letters = text.substr(0, text.find_first_of("0123456789"));
  text.remove_prefix(letters.size());
  for (const auto& [spelling, kind] : spellings) {
    if (letters != spelling) continue;
    token t{kind, *stage, 0, -1};
    if (kind_of(kind) == item_kind::sharding) return text.empty() ? std::optional(t) : std::nullopt;
    const auto microbatch = take_number(text);
    if (!microbatch) return {};
    t.microbatch = *microbatch;
    if (text.starts_with('.')) {
      text.remove_prefix(1);
      const auto split = take_number(text);
      if (!split) return {};
      t.split = *split;
    }
    return text.empty() ? std::optional(t) : std::nullopt;
  }
  return {};
}

/// The tokens of "NAME(token,token)", all of one kind.
std::optional<item> read_list(std::string_view text, std::string_view name, item_kind kind) {
  text = text.substr(name.size() + 1, text.size() - name.size() - 2);
  item out{kind, {}};
  for (bool more = true; more;) {
    const std::size_t comma = text.find(',');
    const auto t = read_token(text.substr(0, comma));
    if (!t || kind_of(t->kind) != kind) return {};
    out.tokens.push_back(*t);
    more = comma != text.npos;
    if (more) text.remove_prefix(comma + 1);
  }
  return out;
}

}  // namespace

std::string spell(const token& t) {
  std::string out = std::to_string(t.stage);
  for (const auto& [spelling, kind] : spellings)
    if (kind == t.kind) out += spelling;
  if (kind_of(t.kind) != item_kind::sharding) out += std::to_string(t.microbatch);
  if (t.split >= 0) out += "." + std::to_string(t.split);
  return out;
}

std::optional<item> read_item(std::string_view text) {
  if (text.starts_with("BATCH(") && text.ends_with(')')) return read_list(text, "BATCH", item_kind::message);
  if (text.starts_with("OVERLAP(") && text.ends_with(')')) {
    auto pair = read_list(text, "OVERLAP", item_kind::compute);
    if (pair && pair->tokens.size() != 2) return {};
    return pair;
  }
  const auto t = read_token(text);
  if (!t) return {};
  return item{kind_of(t->kind), {*t}};
}

}  // namespace rankc::tool
