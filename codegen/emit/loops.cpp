// SPDX-License-Identifier: Apache-2.0
#include "loops.hpp"

#include <rankc/codegen/text_template.hpp>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <utility>

namespace rankc::codegen {

namespace {

/// A statement, or a part of a function, that may repeat.
struct section {
  int form = 0;  // equal for sections that differ at most by numbers
  int lines = 0;
  std::vector<rolled> statements = {};
  std::vector<number> numbers = {};
  /// Where each number stands: in the quoted text of this index, in a name, or elsewhere.
  std::vector<int> places = {};
  std::set<std::string> quoted = {};  // forms of the quoted texts that have numbers
};

constexpr int elsewhere = -1, in_name = -2;

/// The step of a number from one repetition to the next, if it can be an expression of a loop's variable.
std::optional<long> step_between(const number& from, const number& to, bool in_word) {
  if (from.factors != to.factors || from.cycle != to.cycle) return {};
  long step = to.constant - from.constant;
  if (from.cycle > 0) step = (step + from.cycle) % from.cycle;
  if (in_word && std::abs(step) > 1) return {};
  return step;
}

/// Sections that repeat.
struct repetition {
  std::size_t first = 0, length = 0, times = 1;
  long saved = 0;  // lines
};

/// The steps of all numbers from `length` sections to the next `length`; none if these are no repetition.
std::optional<std::vector<long>> steps_at(std::span<const section> all, std::size_t first,
                                          std::size_t length) {
  std::vector<long> steps;
  for (std::size_t i = first; i < first + length; ++i) {
    const section &a = all[i], &b = all[i + length];
    if (a.form != b.form) return {};
    int varied = elsewhere;  // the last quoted text with a number that varies; it has no other
    for (std::size_t n = 0; n < a.numbers.size(); ++n) {
      const auto step = step_between(a.numbers[n], b.numbers[n], a.places[n] != elsewhere);
      if (!step) return {};
      steps.push_back(*step);
      if (a.places[n] < 0 || (*step == 0 && !a.numbers[n].varies())) continue;
      if (varied == a.places[n]) return {};
      varied = a.places[n];
    }
  }
  return steps;
}

repetition repetition_at(std::span<const section> all, std::size_t first, std::size_t length) {
  repetition found{first, length};
  const auto steps = steps_at(all, first, length);
  if (!steps) return found;
  found.times = 2;
  while (first + (found.times + 1) * length <= all.size() &&
         steps_at(all, first + (found.times - 1) * length, length) == steps)
    ++found.times;
  long lines = 0;
  std::set<std::string> quoted;
  for (std::size_t i = first; i < first + length; ++i) {
    lines += all[i].lines;
    quoted.insert(all[i].quoted.begin(), all[i].quoted.end());
  }
  // A loop adds two lines, and a declaration for each quoted text that varies.
  found.saved = static_cast<long>(found.times - 1) * lines - 2 - 2 * static_cast<long>(quoted.size());
  return found;
}

/// The fewest lines that a loop must save; more if it runs only twice.
constexpr long least_saved = 4, least_saved_by_two = 20;

std::optional<repetition> find_repetition(std::span<const section> all, std::size_t longest) {
  std::optional<repetition> best;
  for (std::size_t length = 1; length <= std::min(longest, all.size() / 2); ++length)
    for (std::size_t first = 0; first + 2 * length <= all.size();) {
      const repetition found = repetition_at(all, first, length);
      const long least = found.times == 2 ? least_saved_by_two : least_saved;
      if (found.times > 1 && found.saved >= std::max(least, best ? best->saved + 1 : 0)) best = found;
      first += found.times > 2 ? (found.times - 2) * length + 1 : 1;
    }
  return best;
}

/// Rolls one function.
class roller {
 public:
  explicit roller(const numbered_names& names) : names_(names) {}

  std::vector<rolled> run(const std::vector<statement>& all) {
    std::vector<section> parts;
    for (const statement& s : all) {
      if (parts.empty() || s.begins_part) parts.emplace_back();
      parts.back().statements.push_back({cut(on_one_line(s.text), names_), s.text, s.begins_part});
    }
    for (section& p : parts) p = section_of(std::move(p.statements));
    return roll_parts(parts, 0);
  }

 private:
  section section_of(std::vector<rolled> statements) {
    section made{.statements = std::move(statements)};
    std::string form;
    int n_quoted = 0;
    for (const rolled& s : made.statements) {
      form += form_of(s.text) + '\n';
      made.lines += 1 + static_cast<int>(std::ranges::count(s.plain, '\n'));
      for (const piece& p : s.text) {
        made.numbers.insert(made.numbers.end(), p.numbers.begin(), p.numbers.end());
        int place = p.is == piece::kind::name ? in_name : elsewhere;
        if (p.is == piece::kind::quoted) place = n_quoted++;
        made.places.insert(made.places.end(), p.numbers.size(), place);
        if (p.is == piece::kind::quoted && !p.numbers.empty()) made.quoted.insert(form_of({p}));
      }
    }
    made.lines += made.statements.front().begins_part;
    made.form = forms_.try_emplace(form, static_cast<int>(forms_.size())).first->second;
    return made;
  }

  std::vector<rolled> roll_parts(std::span<section> parts, std::size_t depth) {
    std::vector<rolled> out;
    const auto add = [&](std::vector<rolled> more) { std::ranges::move(more, std::back_inserter(out)); };
    if (const auto found = find_repetition(parts, parts.size())) {
      add(roll_parts(parts.first(found->first), depth));
      out.push_back(loop_of(parts, *found, depth, {"m", "n", "microbatch"}));
      add(roll_parts(parts.subspan(found->first + found->length * found->times), depth));
      return out;
    }
    for (section& p : parts) {
      std::vector<section> each;
      for (rolled& s : p.statements) {
        std::vector<rolled> one;
        one.push_back(std::move(s));
        each.push_back(section_of(std::move(one)));
      }
      add(roll_statements(each, depth));
    }
    return out;
  }

  std::vector<rolled> roll_statements(std::span<section> all, std::size_t depth) {
    std::vector<rolled> out;
    const auto add = [&](std::vector<rolled> more) { std::ranges::move(more, std::back_inserter(out)); };
    constexpr std::size_t longest = 64;
    const auto found = find_repetition(all, longest);
    if (!found) {
      for (section& s : all) add(std::move(s.statements));
      return out;
    }
    add(roll_statements(all.first(found->first), depth));
    out.push_back(loop_of(all, *found, depth, {"i", "j", "layer"}));
    add(roll_statements(all.subspan(found->first + found->length * found->times), depth));
    return out;
  }

  /// A loop whose variable is the number that occurs most often and that changes by one.
  rolled loop_of(std::span<section> all, const repetition& r, std::size_t depth,
                 const std::vector<std::string>& variables) {
    const std::vector<long> steps = *steps_at(all, r.first, r.length);
    std::vector<section> body;
    for (section& each : all.subspan(r.first, r.length)) body.push_back(std::move(each));
    const auto [start, step] = variable_of(body, steps);
    const auto count = static_cast<long>(r.times);
    rolled made{.begins_part = body.front().statements.front().begins_part,
                .first = start,
                .last = start + step * (count - 1)};
    made.variable = free_name(body, variables);
    scope_.push_back(made.variable);
    std::size_t n = 0;
    std::vector<section> varied;
    for (section& s : body) {
      for (rolled& each : s.statements) vary(each, steps, n, {start, step, count}, depth);
      varied.push_back(section_of(std::move(s.statements)));
    }
    const bool has_parts =
        std::ranges::any_of(varied, [](const section& s) { return s.statements.front().begins_part; });
    made.body = has_parts ? roll_parts(varied, depth + 1) : roll_statements(varied, depth + 1);
    made.body.front().begins_part = false;
    scope_.pop_back();
    return made;
  }

  static std::pair<long, long> variable_of(const std::vector<section>& body, const std::vector<long>& steps) {
    std::vector<std::pair<std::pair<long, long>, int>> counts;
    std::size_t n = 0;
    for (const section& s : body)
      for (const number& each : s.numbers) {
        const long step = steps[n++];
        if (std::abs(step) != 1 || each.cycle > 0 || each.varies()) continue;
        const std::pair of{each.constant, step};
        const auto known = std::ranges::find(counts, of, [](const auto& c) { return c.first; });
        if (known == counts.end()) counts.push_back({of, 1});
        else ++known->second;
      }
    if (counts.empty()) return {0, 1};
    return std::ranges::max_element(counts, {}, [](const auto& c) { return c.second; })->first;
  }

  struct range {
    long first, step, count;
  };
  /// Makes the numbers of a statement expressions of the loop's variable.
  static void vary(rolled& s, const std::vector<long>& steps, std::size_t& n, const range& of,
                   std::size_t depth) {
    for (piece& p : s.text)
      for (number& each : p.numbers) {
        const long step = steps[n++], factor = step * of.step;
        if (factor == 0) continue;
        if (each.constant + step * (of.count - 1) < each.cycle) each.cycle = 0;  // one turn
        each.factors.resize(depth + 1);
        each.factors[depth] = factor;
        each.constant -= factor * of.first;
        if (each.cycle == 0) continue;
        each.factors[depth] = (factor + each.cycle) % each.cycle;
        each.constant = (each.constant % each.cycle + each.cycle) % each.cycle;
      }
  }

  std::string free_name(const std::vector<section>& body, const std::vector<std::string>& names) const {
    for (const std::string& name : names) {
      if (std::ranges::find(scope_, name) != scope_.end()) continue;
      const bool taken = std::ranges::any_of(body, [&](const section& s) {
        return std::ranges::any_of(s.statements, [&](const rolled& each) {
          return std::ranges::any_of(each.text, [&](const piece& p) {
            return p.is == piece::kind::code && has_word(p.parts.front(), name);
          });
        });
      });
      if (!taken) return name;
    }
    return names.back() + "_";
  }

  const numbered_names& names_;
  std::vector<std::string> scope_;  // the variables of the loops around
  std::unordered_map<std::string, int> forms_;
};

}  // namespace

std::vector<rolled> roll(const std::vector<statement>& all, const numbered_names& names) {
  if (all.empty()) return {};
  return roller(names).run(all);
}

std::vector<rolled> unrolled(const std::vector<statement>& all) {
  std::vector<rolled> made;
  for (const statement& s : all) made.push_back({{}, s.text, s.begins_part});
  return made;
}

}  // namespace rankc::codegen
