// SPDX-License-Identifier: Apache-2.0
// Reads a schedule in PyTorch's notation: one line for each rank, with its actions between commas,
//   0F0, 0F1, 0B0, 0B1
//   1F0, 1B0, 1F1, 1B1
// Blank fields are waits and are ignored. Two actions that overlap are OVERLAP(0F1,2B0), or in PyTorch's form
// (0F1;2B0)OVERLAP_F_B. The actions of a whole stage are 0UNSHARD, 0RESHARD, 0REDUCE_GRAD and 0STEP. A
// schedule whose only computations are forwards is for inference.
#pragma once
#include <rankc/schedule/actions.hpp>

#include <algorithm>
#include <iterator>

namespace rankc {

namespace detail {

constexpr bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

constexpr std::string_view trim(std::string_view s) {
  while (!s.empty() && is_blank(s.front())) s.remove_prefix(1);
  while (!s.empty() && is_blank(s.back())) s.remove_suffix(1);
  return s;
}

/// Removes the text up to the first `separator` outside of parentheses, and the separator, from the front of
/// `rest`. Returns the text.
constexpr std::string_view take_until(std::string_view& rest, char separator) {
  std::size_t end = 0;
  for (int depth = 0; end < rest.size() && (depth > 0 || rest[end] != separator); ++end) {
    if (rest[end] == '(') ++depth;
    else if (rest[end] == ')' && depth > 0) --depth;
  }
  const std::string_view taken = rest.substr(0, end);
  rest.remove_prefix(end < rest.size() ? end + 1 : end);
  return taken;
}

/// Removes a number of at most 5 digits from the front; -1 if there is none. The limit bounds the memory that
/// a mistyped number can request.
constexpr int take_number(std::string_view& rest) {
  int n = 0;
  std::size_t digits = 0;
  for (; digits < rest.size() && rest[digits] >= '0' && rest[digits] <= '9' && digits < 6; ++digits)
    n = 10 * n + (rest[digits] - '0');
  rest.remove_prefix(digits);
  return digits >= 1 && digits <= 5 ? n : -1;
}

constexpr bool read_action(action& to, std::string_view text) {
  text = trim(text);
  to = {};
  to.stage = take_number(text);
  const std::string_view name = text.substr(0, text.find_first_of("0123456789"));
  const auto known = std::find(std::begin(action_names), std::end(action_names), name);
  if (to.stage < 0 || known == std::end(action_names)) return false;
  to.kind = static_cast<action_kind>(known - std::begin(action_names));
  text.remove_prefix(name.size());
  if (computes(to.kind)) to.microbatch = take_number(text);
  return to.microbatch >= 0 && text.empty();
}

/// Appends the one or two actions of a token; false if it cannot be read.
constexpr bool read_token(std::vector<action>& to, std::string_view text) {
  constexpr std::string_view ours = "OVERLAP(", pytorchs = ")OVERLAP_F_B";
  action a;
  if (read_action(a, text)) {
    to.push_back(a);
    return true;
  }
  char separator = ',';
  if (text.starts_with(ours) && text.ends_with(')')) {
    text.remove_prefix(ours.size());
    text.remove_suffix(1);
  } else if (text.starts_with('(') && text.ends_with(pytorchs)) {
    text.remove_prefix(1);
    text.remove_suffix(pytorchs.size());
    separator = ';';
  } else {
    return false;
  }
  action b;
  if (!read_action(a, take_until(text, separator)) || !read_action(b, text)) return false;
  a.overlaps_next = true;
  to.push_back(a);
  to.push_back(b);
  return true;
}

/// RC313: each number from 0 to the largest has a forward. Otherwise the largest is a typing error, and
/// checking all numbers below it would take too long.
constexpr bool check_counted(report& out, const std::vector<char>& has_forward, std::string_view of) {
  for (std::size_t i = 0; i < has_forward.size(); ++i)
    if (!has_forward[i]) {
      refuse(out, 313) << "no line has a forward of " << of << " " << i << ", but they go up to "
                       << has_forward.size() - 1;
      return false;
    }
  return true;
}

/// Places each stage on the rank that runs its forward of microbatch 0. The direction is reversed from the
/// first microbatch on whose first and last stage have exchanged their ranks.
constexpr void place_stages(action_table& t) {
  const int last = t.stages() - 1;
  auto each_forward = [&](auto visit) {
    for (int r = 0; r < t.ranks(); ++r)
      for (int i = t.begin[r]; i < t.begin[r + 1]; ++i)
        if (t.actions[i].kind == action_kind::F) visit(r, t.actions[i]);
  };
  each_forward([&](int rank, const action& a) {
    if (t.rank_of_stage[a.stage] < 0 || a.microbatch == 0) t.rank_of_stage[a.stage] = rank;
  });
  const int top = t.rank_of_stage[0], bottom = t.rank_of_stage[last];
  if (top == bottom) return;
  std::vector<int> changed(static_cast<std::size_t>(t.microbatches), 0);  // 2: first and last stage
  each_forward([&](int rank, const action& a) {
    changed[a.microbatch] += (a.stage == 0 && rank == bottom) + (a.stage == last && rank == top);
  });
  for (int m = 0; m < t.microbatches && !t.bidirectional(); ++m)
    if (changed[m] == 2) {
      t.reversed_from = m;
      t.reversed_rank_of_stage.assign(t.rank_of_stage.rbegin(), t.rank_of_stage.rend());
    }
}

}  // namespace detail

/// The actions in `text` and the placement of its stages. check_actions checks them.
/// Errors: RC313 if the text cannot be read; the table is then empty.
constexpr action_table parse_csv(report& out, std::string_view text) {
  action_table t;
  const std::size_t before = out.size();
  for (int line = 1; !text.empty(); ++line) {
    const std::size_t end = text.find('\n');
    std::string_view rest = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (detail::trim(rest).empty()) continue;
    t.begin.push_back(static_cast<int>(t.actions.size()));
    for (int n = 1; !rest.empty(); ++n) {
      const std::string_view token = detail::trim(detail::take_until(rest, ','));
      if (token.empty() || detail::read_token(t.actions, token)) continue;
      refuse(out, 313) << "line " << line << ", token " << n << ": '" << token
                       << "' is not an action; write the stage, one of FBIW, and the microbatch, as 0F0, or "
                          "two of them as OVERLAP(0F1,2B0), "
                       << "or 0UNSHARD, 0RESHARD, 0REDUCE_GRAD, 0STEP";
    }
  }
  t.begin.push_back(static_cast<int>(t.actions.size()));
  if (out.size() == before && t.actions.empty())
    refuse(out, 313) << "the text has no actions; write a line for each rank, as 0F0, 0B0";
  std::vector<char> stages, microbatches;  // indices that have a forward
  t.inference = true;
  for (const action& a : t.actions) {
    const std::size_t s = static_cast<std::size_t>(a.stage), m = static_cast<std::size_t>(a.microbatch);
    if (s >= stages.size()) stages.resize(s + 1, 0);
    if (m >= microbatches.size()) microbatches.resize(m + 1, 0);
    if (a.kind == action_kind::F) stages[s] = microbatches[m] = true;
    else if (a.kind != action_kind::unshard && a.kind != action_kind::reshard) t.inference = false;
  }
  if (out.size() != before || !detail::check_counted(out, stages, "stage") ||
      !detail::check_counted(out, microbatches, "microbatch"))
    return {.actions = {}, .begin = {0}, .rank_of_stage = {}};
  t.microbatches = static_cast<int>(microbatches.size());
  t.rank_of_stage.assign(stages.size(), -1);
  detail::place_stages(t);
  return t;
}

}  // namespace rankc
