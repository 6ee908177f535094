// SPDX-License-Identifier: Apache-2.0
#include "expression.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace rankc::runtime {
namespace {

// Members of a class. \s is Unicode's White_Space; PCRE2's \s also has U+180E.
constexpr std::string_view space = R"(\t-\r\x{85}\p{Z})",
                           no_space = R"(\p{L}\p{M}\p{N}\p{P}\p{S}\p{Cf}\p{Co}\p{Cn})"
                                      R"(\x{00}-\x{08}\x{0e}-\x{1f}\x{7f}-\x{84}\x{86}-\x{9f})";
constexpr std::string_view groups[]{"(?:", "(?i:", "(?=", "(?!", "(?<=", "(?<!", "(?>"};

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_hexadecimal(char c) { return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'); }

class translator {
 public:
  explicit translator(std::string_view from) : from_(from) {}

  std::string translated() {
    while (at_ < from_.size()) translate_item();
    return std::move(out_);
  }

 private:
  char here() const { return at_ < from_.size() ? from_[at_] : '\0'; }
  bool follows(std::string_view text) const { return from_.substr(at_).starts_with(text); }

  [[noreturn]] void refuse(std::size_t bytes) const {
    throw std::invalid_argument(
        fmt::format("{} at byte {} is not supported", from_.substr(at_, bytes), at_ + 1));
  }

  void copy(std::size_t bytes) {
    out_ += from_.substr(at_, bytes);
    at_ += bytes;
  }

  void translate_item() {
    const char c = here();
    if (c == '\\') return translate_escape(false);
    if (c == '[') return translate_class();
    if (c == '(') return translate_group();
    if (c == '{') return translate_interval();
    if (c == '^' || c == '$' || c == '}' || c == ']') refuse(1);
    copy(1);
  }

  void translate_group() {
    if (!from_.substr(at_).starts_with("(?")) return copy(1);
    for (const std::string_view group : groups)
      if (follows(group)) return copy(group.size());
    refuse(3);
  }

  std::size_t digits_at(std::size_t from) const {
    return static_cast<std::size_t>(
        std::find_if_not(from_.begin() + static_cast<std::ptrdiff_t>(from), from_.end(), is_digit) -
        from_.begin() - static_cast<std::ptrdiff_t>(from));
  }

  /// Translates {2}, {2,} or {2,3}. A following + or ? has another meaning in Ruby.
  void translate_interval() {
    std::size_t end = at_ + 1;
    const std::size_t least = digits_at(end);
    end += least;
    if (end < from_.size() && from_[end] == ',') {
      ++end;
      end += digits_at(end);
    }
    const bool is_closed = end < from_.size() && from_[end] == '}';
    const bool has_suffix = end + 1 < from_.size() && (from_[end + 1] == '+' || from_[end + 1] == '?');
    if (least == 0 || !is_closed || has_suffix) refuse(end + 2 - at_);
    copy(end + 1 - at_);
  }

  void translate_class() {
    copy(1);
    if (here() == '^') copy(1);
    if (here() == ']') refuse(1);  // an empty class, or ] as a member
    while (here() != ']') {
      if (at_ >= from_.size()) throw std::invalid_argument("[ has no ]");
      if (here() == '[' || follows("&&")) refuse(2);
      if (here() == '\\') translate_escape(true);
      else copy(1);
    }
    copy(1);
  }

  void put_class(std::string_view members, std::string_view before, bool in_class) {
    if (in_class) out_ += members;
    else out_.append(before).append(members).append("]");
    at_ += 2;
  }

  void translate_escape(bool in_class) {
    const char c = at_ + 1 < from_.size() ? from_[at_ + 1] : '\0';
    switch (c) {
      case 's':
        return put_class(space, "[", in_class);
      case 'S':
        return in_class ? put_class(no_space, "[", true) : put_class(space, "[^", false);
      case 'd':
        return put_class(R"(\p{Nd})", "[", in_class);
      case 'D':
        return put_class(R"(\P{Nd})", "[", in_class);
      case 'v':
        return put_class(R"(\x0b)", "[", in_class);
      case 'n':
      case 'r':
      case 't':
      case 'f':
        return copy(2);
      case 'p':
      case 'P':
        return translate_property();
      case 'u':
        return translate_code(at_ + 2, 4);
      default:
        if (c == 'x' && at_ + 2 < from_.size() && from_[at_ + 2] == '{') {
          const std::size_t end = from_.find('}', at_);
          if (end == from_.npos) refuse(3);
          translate_code(at_ + 3, end - at_ - 3);
          at_ = end + 1;
          return;
        }
        const bool is_punctuation = c > ' ' && c < 0x7f && !is_letter(c) && !is_digit(c);
        if (!is_punctuation) refuse(2);
        copy(2);
    }
  }

  /// Translates a hexadecimal code point.
  void translate_code(std::size_t begin, std::size_t count) {
    const std::string_view digits = from_.substr(std::min(begin, from_.size()), count);
    if (count == 0 || count > 6 || digits.size() != count ||
        !std::all_of(digits.begin(), digits.end(), is_hexadecimal))
      refuse(2 + count);
    out_ += fmt::format("\\x{{{}}}", digits);
    at_ = begin + count;
  }

  /// Translates \p{L}, \p{Lu} or \p{Han}. Without sc, PCRE2's script names match more code points.
  void translate_property() {
    const std::size_t end = from_.find('}', at_);
    if (at_ + 2 >= from_.size() || from_[at_ + 2] != '{' || end == from_.npos) refuse(3);
    const std::string_view name = from_.substr(at_ + 3, end - at_ - 3);
    if (name.empty() ||
        !std::all_of(name.begin(), name.end(), [](char c) { return is_letter(c) || c == '_'; }))
      refuse(end + 1 - at_);
    out_ += fmt::format("\\{}{{{}{}}}", from_[at_ + 1], name.size() > 2 ? "sc:" : "", name);
    at_ = end + 1;
  }

  std::string_view from_;
  std::size_t at_ = 0;
  std::string out_;
};

}  // namespace

std::string pcre2_expression(std::string_view expression) { return translator(expression).translated(); }

std::string pcre2_literal(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool is_plain = is_letter(c) || is_digit(c) || static_cast<unsigned char>(c) >= 0x80;
    if (is_plain) out += c;
    else out += fmt::format("\\x{{{:02x}}}", static_cast<unsigned char>(c));
  }
  return out;
}

}  // namespace rankc::runtime
