// SPDX-License-Identifier: Apache-2.0
// JSON lines: one object in, one object out, in order. A line that cannot be read is answered with a
// diagnostic, and the run continues.
#pragma once
#include <rankc/base/diagnostic.hpp>
#include <rankc/runtime/failure.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstddef>
#include <functional>
#include <iosfwd>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace rankc::tool {

using json = nlohmann::ordered_json;

/// Adds a diagnostic of the rule RC300. Its text is a sentence with its own id.
template <class... Arguments>
void refuse(report& out, runtime::sentence<std::type_identity_t<Arguments>...> about,
            const Arguments&... values) {
  rankc::refuse(out, 300) << runtime::say(about, values...);
}

/// The fields of one line. A field with an unexpected value gets a diagnostic (RC8030 to RC8044).
class fields {
 public:
  fields(const json& line, report& out) : line_(line), out_(out) {}

  /// True if a field is there and not null.
  bool has(const char* name) const { return find(name) != nullptr; }
  /// A field's value; nothing if it is absent, null or refused. Whole numbers have 32 bits.
  std::optional<int> whole(const char* name) const;
  std::optional<double> number(const char* name) const;  // at least 0
  std::optional<int> count(const char* name) const;      // a whole number of at least 1
  std::optional<int> count(const char* name, int most) const;
  std::optional<int> degree(const char* name) const;  // a whole number, or `infer` for "infer"
  std::optional<bool> flag(const char* name) const;
  std::optional<std::string> text(const char* name) const;
  std::optional<std::vector<int>> whole_numbers(const char* name) const;
  std::optional<std::vector<double>> numbers(const char* name) const;  // each at least 0
  std::optional<std::vector<std::vector<std::string>>> lists_of_text(const char* name) const;
  /// The index of a field's text in the list of its legal names.
  std::optional<std::size_t> one_of(const char* name, std::span<const std::string_view> legal) const;
  /// The object in a field; an empty one if it is absent.
  const json& object(const char* name) const;

  /// Adds a diagnostic for each field without a legal name. `object`: the field that contains these; empty:
  /// the line.
  void only(std::span<const std::string_view> legal, std::string_view object = "") const;

  /// Adds a diagnostic if `value` is missing because the field is absent.
  template <class T>
  std::optional<T> need(const char* name, std::optional<T> value) const {
    if (!value && find(name) == nullptr) refuse_missing(name);
    return value;
  }

 private:
  const json* find(const char* name) const;
  void refuse_missing(const char* name) const;
  void refuse_value(runtime::sentence<std::string, std::string> about, const char* name,
                    const json& value) const;

  const json& line_;
  report& out_;
};

/// The names of things that have one, for fields::one_of.
template <class Named>
std::vector<std::string_view> names_of(const Named& all) {
  std::vector<std::string_view> names;
  for (const auto& x : all) names.push_back(x.name);
  return names;
}

/// Offences of one kind: the first is reported in full, the others as a number. The destructor reports.
class offences {
 public:
  offences(report& out, int id) : out_(out), id_(id) {}
  offences(const offences&) = delete;
  ~offences() {
    if (count_ == 0) return;
    sentence& s = refuse(out_, id_) << first_;
    if (count_ > 1) s << " (and " << count_ - 1 << " more such)";
  }
  template <class... T>
  void add(fmt::format_string<T...> text, T&&... facts) {
    if (count_++ == 0) first_ = fmt::format(text, std::forward<T>(facts)...);
  }

 private:
  report& out_;
  int id_;
  int count_ = 0;
  std::string first_;
};

/// The diagnostics as JSON: [{"id":"RC301","text":"..."}].
json to_json(const report&);

/// Prints the diagnostics for a person, one a line.
void print(const report&, std::ostream&);

/// Answers one line: fills the answer, or the report. The answer is a JSON object. If its lists are long, it
/// is the text of its members without the braces.
class answerer {
 public:
  answerer(void (*answer)(const json& line, json& answer, report& out));
  answerer(void (*answer)(const json& line, std::string& members, report& out)) : answer_(answer) {}
  void operator()(const json& line, std::string& members, report& out) const { answer_(line, members, out); }

 private:
  std::function<void(const json&, std::string&, report&)> answer_;
};

/// The most bytes of a line. An endless file without line breaks, such as /dev/zero, would fill the memory.
inline constexpr std::size_t longest_line = std::size_t{1} << 26;

/// The answer to one line, without a line break: "ok" and "diagnostics", then what `answer` adds.
std::string answer_line(std::string_view line, const answerer& answer);

/// Answers every line of `in`, up to one that is too long. Returns: true if all answers were written.
bool answer_lines(std::istream& in, std::ostream& out, const answerer& answer);

}  // namespace rankc::tool
