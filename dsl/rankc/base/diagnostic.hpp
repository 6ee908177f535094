// SPDX-License-Identifier: Apache-2.0
// Rules that are checked both at compile time and at run time. A rule is a constexpr function that appends
// diagnostics to a report. The command-line tools call it at run time. The concept `valid` calls it at
// compile time and puts the sentences into the name of a type, which g++ and clang print once, at the user's
// static_assert.
#pragma once
#include <rankc/base/text.hpp>

#include <cstddef>
#include <vector>

namespace rankc {

/// A broken rule: its number and a sentence with the values, the rule and the legal alternatives. The number
/// of RC101 is 101; 1xx are dims and cluster, 2xx model and recipe, 3xx schedule, 4xx memory, 5xx runtime. A
/// warning is for a plan that is legal but slower or larger than it needs to be.
struct diagnostic {
  int id;
  sentence text;
  bool warning = false;
};
using report = std::vector<diagnostic>;

/// True if nothing is refused; warnings are accepted.
constexpr bool accepts(const report& r) {
  for (const diagnostic& d : r)
    if (!d.warning) return false;
  return true;
}

/// Starts a diagnostic and returns its sentence.
constexpr sentence& refuse(report& r, int id) {
  r.push_back({id, {}, false});
  return r.back().text;
}

/// Starts a warning and returns its sentence.
constexpr sentence& warn(report& r, int id) {
  r.push_back({id, {}, true});
  return r.back().text;
}

/// Text without padding, as a template argument: clang prints padded text as numbers.
template <std::size_t N>
struct because {
  char text[N + 1]{};
};

namespace detail {

struct spoken {
  char text[4096]{};
  std::size_t size = 0;
  constexpr void put(std::string_view s) {
    for (char c : s) text[size++] = c;
  }
};

/// All sentences except warnings, as "RC101: ... RC202: ...". Sentences for which there is no room are
/// counted.
constexpr spoken speak(const report& all) {
  constexpr std::size_t room_to_count = 64;
  spoken out;
  report r;
  for (const diagnostic& d : all)
    if (!d.warning) r.push_back(d);
  for (std::size_t i = 0; i < r.size(); ++i) {
    sentence s;
    s << (i ? ". RC" : "RC") << r[i].id << ": " << r[i].text.view();
    const bool fits = out.size + s.view().size() + room_to_count < sizeof out.text;
    if (!fits) s = sentence{} << ". And " << r.size() - i << " more";
    out.put(s.view());
    if (!fits) break;
  }
  return out;
}

// These are variable templates, so that the rules run once per plan, and a compiler whose evaluation budget
// is too small reports that. In a concept, the constraint would be unsatisfied without an error.
template <const auto& Plan>
inline constexpr spoken said = speak(Plan.diagnose());
template <const spoken& Said>
inline constexpr auto sentences_of = [] {
  because<Said.size> b;
  for (std::size_t i = 0; i < Said.size; ++i) b.text[i] = Said.text[i];
  b.text[Said.size] = '\0';  // without an explicit '\0', clang prints texts of 2^n characters as numbers
  return b;
}();
template <const auto& Plan>
inline constexpr auto why = sentences_of<said<Plan>>;
template <class T>
concept accepted = T::is_valid;

constexpr bool can_copy(auto) { return true; }
template <bool>
struct constant;
template <const auto& Plan>
concept declared_constexpr = requires { typename constant<can_copy(Plan)>; };

}  // namespace detail

template <because sentences>
struct refused {
  static constexpr bool is_valid = sizeof sentences.text == 1;
};

/// A plan, or any value with a constexpr `diagnose()`, that breaks no rule. `fits` (rankc/peak_bytes.hpp)
/// adds the rule of memory.
template <const auto& Plan>
concept valid = detail::declared_constexpr<Plan> && detail::accepted<refused<detail::why<Plan>>>;

}  // namespace rankc
