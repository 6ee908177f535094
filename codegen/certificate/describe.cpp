// SPDX-License-Identifier: Apache-2.0
// Writes the page FORMAT.md from the schema.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "model_schema.hpp"

namespace rankc::codegen::schema {

namespace {

template <class T>
std::string type_of(const T&) {
  if constexpr (std::is_same_v<T, bool>) return "flag";
  else if constexpr (std::is_floating_point_v<T>) return "number";
  else if constexpr (std::is_integral_v<T>) return "whole number";
  else if constexpr (requires(const T& list) { list.push_back; }) return "";
  else return "text";
}
template <class T>
std::string type_of(const std::vector<T>&) {
  return fmt::format("list of {}s", type_of(T{}));
}

/// Collects the sections of a page, each struct once.
struct page {
  std::string text;
  std::vector<std::string> described;
};

/// A visitor that writes one struct as a section, followed by the structs that it contains.
class describer {
 public:
  template <class Schema, class T>
  static void add(page& to) {
    if (std::find(to.described.begin(), to.described.end(), Schema::what) != to.described.end()) return;
    to.described.push_back(Schema::what);
    describer f(to);
    T value{};
    Schema::list(f, value);
    to.text +=
        fmt::format("\n## {}\n\nA JSON {}.\n\n| {} | type | |\n|---|---|---|\n{}", Schema::what,
                    Schema::is_line ? "array" : "object", Schema::is_line ? "element" : "field", f.rows_);
    for (const std::string& rule : f.rules_) to.text += fmt::format("\nExpected: {}.\n", rule);
    to.text += f.parts_.text;
    to.described = f.parts_.described;
  }

  template <class T>
  void operator()(const char* name, T& value, const char* about) {
    row(name, type_of(value), about);
  }
  template <class Word>
  void word(const char* name, Word&, std::span<const char* const> words, const char* about) {
    row(name, fmt::format("`\"{}\"`", fmt::join(words, "\"`, `\"")), about);
  }
  template <class List>
  void sizes(const char* name, List&, const char* about) {
    row(name, "list of whole numbers", about);
  }
  template <class Schema, class T>
  void list(const char* name, std::vector<T>&, const char* about) {
    row(name, fmt::format("list; each is {}", Schema::what), about);
    add<Schema, T>(parts_);
  }
  template <class Schema, class T>
  void one(const char* name, T&, const char* about) {
    row(name, Schema::what, about);
    add<Schema, T>(parts_);
  }
  void optional(const char*, bool, const auto& list) { when(true, "optional", list); }
  void nullable(const char*, bool, const auto& list) { list(); }
  void when(bool, const char* text, const auto& list) {
    const std::string before = std::exchange(condition_, text);
    list();
    condition_ = before;
  }
  void expect(bool, const char* text) { rules_.emplace_back(text); }
  void named(const char*, const std::string&) {}

 private:
  explicit describer(const page& before) { parts_.described = before.described; }
  void row(const char* name, const std::string& type, const char* about) {
    const std::string of = condition_.empty() ? "" : fmt::format(" ({})", condition_);
    rows_ += fmt::format("| {}{} | {} | {} |\n", name, of, type, about);
  }

  std::string rows_, condition_;
  std::vector<std::string> rules_;
  page parts_;
};

}  // namespace

std::string describe() {
  page all{
      fmt::format(
          "# {}\n\nWritten from `schema.hpp` and `model_schema.hpp`. Every field is there, and no other.\n",
          format),
      {}};
  describer::add<file_schema, file>(all);
  return all.text;
}

}  // namespace rankc::codegen::schema
