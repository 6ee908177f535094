// SPDX-License-Identifier: Apache-2.0
// The one error type of the runtime and the generator. Every sentence has a stable id, as in
// "RC6101: corpus.txt cannot be read: No such file or directory"; `rankc explain RC6101` shows the sentence,
// and codegen/tool/messages.txt lists all of them.
#pragma once
#include <charconv>
#include <concepts>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace rankc::runtime {

namespace detail {

/// Length of "RC6101: ".
inline constexpr std::size_t id_length = 8;

constexpr bool has_id(std::string_view text) {
  if (text.size() <= id_length || !text.starts_with("RC") || text.substr(6, 2) != ": ") return false;
  for (const char digit : text.substr(2, 4))
    if (digit < '0' || digit > '9') return false;
  return true;
}

constexpr std::size_t count_holes(std::string_view text) {
  std::size_t n = 0;
  for (std::size_t at = text.find("{}"); at != text.npos; at = text.find("{}", at + 2)) ++n;
  return n;
}

/// Numbers, text, and paths of std::filesystem as text.
template <class Value>
std::string as_text(const Value& value) {
  if constexpr (std::convertible_to<const Value&, std::string_view>) {
    return std::string(std::string_view(value));
  } else if constexpr (std::same_as<Value, char>) {
    return std::string(1, value);
  } else if constexpr (std::integral<Value> || std::floating_point<Value>) {
    char digits[64];
    return std::string(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
  } else {
    return value.string();
  }
}

/// A sentence with its holes filled in, in their order.
inline std::string fill(std::string_view text, const std::vector<std::string>& arguments) {
  std::string out;
  for (const std::string& argument : arguments) {
    const std::size_t hole = text.find("{}");
    out += text.substr(0, hole);
    out += argument;
    text.remove_prefix(hole + 2);
  }
  return out.append(text);
}

}  // namespace detail

/// A sentence that begins with its id and has one hole, {}, for each argument. Both are checked at compile
/// time.
template <class... Arguments>
struct sentence {
  template <std::size_t N>
  consteval sentence(const char (&literal)[N]) : text(literal, N - 1) {
    if (!detail::has_id(text)) throw "a sentence begins with RC, four digits, a colon and a blank";
    if (detail::count_holes(text) != sizeof...(Arguments)) throw "a sentence has one {} for each argument";
  }
  std::string_view text;
};

/// The sentence with its holes filled in.
template <class... Arguments>
std::string say(sentence<std::type_identity_t<Arguments>...> about, const Arguments&... arguments) {
  return detail::fill(about.text, {detail::as_text(arguments)...});
}

/// An error that ends a program with the exit code `code`. Tests compare `id` and `arguments`; people read
/// `what()`.
struct failure : std::runtime_error {
  template <class... Arguments>
  failure(int exit_code, sentence<std::type_identity_t<Arguments>...> about, const Arguments&... values)
      : failure(exit_code, about.text, std::vector<std::string>{detail::as_text(values)...}) {}

  /// An error that another rank or thread has reported as text. Its id is 0 if the text begins with none.
  static failure reported(int exit_code, const std::string& text) {
    return failure(exit_code, text, std::vector<std::string>{});
  }

  int code;
  int id = 0;
  std::vector<std::string> arguments;

 private:
  failure(int exit_code, std::string_view text, std::vector<std::string> values)
      : std::runtime_error(detail::fill(text, values)), code(exit_code), arguments(std::move(values)) {
    if (detail::has_id(text)) std::from_chars(text.data() + 2, text.data() + 6, id);
  }
};

}  // namespace rankc::runtime
