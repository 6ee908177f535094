// SPDX-License-Identifier: Apache-2.0
#include "numbers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace rankc::codegen {

namespace {

bool is_decimal(char c) { return std::isdigit(static_cast<unsigned char>(c)); }
bool is_of_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
/// The most digits of a number that may vary. Longer ones are text.
constexpr std::size_t most_digits = 15;

/// Cuts a text at its groups of digits.
piece cut_digits(piece::kind is, std::string_view text, std::string type = {}) {
  piece made{.is = is, .parts = {""}, .type = std::move(type)};
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t begin = at;
    while (at < text.size() && is_decimal(text[at])) ++at;
    const std::string digits(text.substr(begin, at - begin));
    const bool has_zeros = digits.size() > 1 && digits.front() == '0';
    if (digits.empty()) made.parts.back() += text[at++];
    else if (has_zeros || digits.size() > most_digits) made.parts.back() += digits;
    else {
      made.numbers.push_back({.constant = std::stol(digits)});
      made.parts.emplace_back();
    }
  }
  return made;
}

class cutter {
 public:
  cutter(std::string_view text, const numbered_names& names) : text_(text), names_(names) {}

  pieces run() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (text_.substr(at_).starts_with("//")) add_comment();
      else if (c == '"') add_quoted();
      else if (is_decimal(c)) add_integer();
      else if (is_of_name(c)) add_name();
      else if (c == '/') add_code(take(1));
      else add_code(take_while([](char each) { return !is_of_name(each) && each != '"' && each != '/'; }));
    }
    return std::move(out_);
  }

 private:
  std::string_view take(std::size_t characters) {
    const std::string_view taken = text_.substr(at_, characters);
    at_ += taken.size();
    return taken;
  }
  std::string_view take_while(auto wanted) {
    std::size_t end = at_;
    while (end < text_.size() && wanted(text_[end])) ++end;
    return take(end - at_);
  }
  void add_code(std::string_view code) {
    if (out_.empty() || out_.back().is != piece::kind::code) out_.push_back({.parts = {""}});
    out_.back().parts.back() += code;
  }
  void add_comment() {
    out_.push_back(cut_digits(piece::kind::comment, take_while([](char c) { return c != '\n'; })));
  }
  void add_quoted() {
    const std::size_t end = text_.find('"', at_ + 1);
    out_.push_back(cut_digits(piece::kind::quoted, take(end - at_ + 1)));
  }
  void add_integer() {
    const std::string_view text = take_while([](char c) { return is_of_name(c) || c == '.'; });
    if (!std::ranges::all_of(text, is_decimal) || text.size() > most_digits) return add_code(text);
    number n{.constant = std::stol(std::string(text))};
    for (const auto& [array, length] : names_.turns)
      if (!out_.empty() && out_.back().parts.back().ends_with(array)) n.cycle = length;
    out_.push_back({.is = piece::kind::integer, .parts = {"", ""}, .numbers = {n}});
  }
  void add_name() {
    const std::size_t begin = at_;
    const std::string_view name = take_while(is_of_name);
    if (std::ranges::none_of(name, is_decimal)) return add_code(name);
    const bool is_member = begin > 0 && text_[begin - 1] == '.';
    const auto known = names_.types.find(is_member ? text_.substr(begin - 1, name.size() + 1) : name);
    if (known == names_.types.end()) return add_code(name);
    out_.push_back(cut_digits(piece::kind::name, name, known->second));
  }

  std::string_view text_;
  const numbered_names& names_;
  std::size_t at_ = 0;
  pieces out_;
};

}  // namespace

bool number::varies() const {
  return std::ranges::any_of(factors, [](long f) { return f != 0; });
}

bool piece::varies() const { return std::ranges::any_of(numbers, &number::varies); }

pieces cut(std::string_view text, const numbered_names& names) { return cutter(text, names).run(); }

std::string form_of(const pieces& all) {
  std::string form;
  for (const piece& p : all) {
    form += static_cast<char>('0' + static_cast<int>(p.is));
    for (const std::string& part : p.parts) form += part + '\x01';
    form += p.type + '\x02';
  }
  return form;
}

std::vector<number> numbers_of(const pieces& all) {
  std::vector<number> numbers;
  for (const piece& p : all) numbers.insert(numbers.end(), p.numbers.begin(), p.numbers.end());
  return numbers;
}

std::string pattern_of(const piece& p) {
  std::string pattern = p.parts.front();
  for (std::size_t n = 0; n < p.numbers.size(); ++n)
    pattern += (p.numbers[n].varies() ? "#" : std::to_string(p.numbers[n].constant)) + p.parts[n + 1];
  return pattern;
}

std::string text_of(const number& n, const std::vector<std::string>& variables) {
  std::string sum;
  const auto add = [&](long factor, const std::string& variable) {
    const long size = std::abs(factor);
    const std::string term = size == 1 ? variable : fmt::format("{} * {}", size, variable);
    if (sum.empty()) sum = term;
    else sum += (factor < 0 ? " - " : " + ") + term;
  };
  const bool begins_with_constant = std::ranges::any_of(n.factors, [](long f) { return f < 0; });
  if (begins_with_constant || !n.varies()) sum = std::to_string(n.constant);
  for (std::size_t d = 0; d < n.factors.size(); ++d)
    if (n.factors[d] != 0) add(n.factors[d], variables.at(d));
  if (!begins_with_constant && n.varies() && n.constant != 0)
    sum += fmt::format(" {} {}", n.constant < 0 ? '-' : '+', std::abs(n.constant));
  if (n.cycle == 0 || !n.varies()) return sum;
  if (sum.find(' ') != sum.npos) sum = "(" + sum + ")";
  return fmt::format("{} % {}", sum, n.cycle);
}

}  // namespace rankc::codegen
