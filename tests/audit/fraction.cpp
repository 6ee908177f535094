// SPDX-License-Identifier: Apache-2.0
#include "fraction.hpp"

#include <cctype>
#include <stdexcept>

namespace audit {

namespace {

class parser {
 public:
  parser(std::string_view text, const variables& of) : text_(text), of_(of) {}

  fraction run() {
    const fraction all = sum();
    if (at_ != text_.size()) refuse("what follows is no formula");
    return all;
  }

 private:
  char next() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(char c) {
    if (next() != c) return false;
    ++at_;
    return true;
  }
  [[noreturn]] void refuse(const std::string& why) const {
    throw std::invalid_argument("\"" + std::string(text_) + "\", from character " + std::to_string(at_) +
                                " on: " + why);
  }

  fraction sum() {
    fraction all = product();
    while (next() == '+' || next() == '-') all = take('+') ? all + product() : (++at_, all - product());
    return all;
  }
  fraction product() {
    fraction all = factor();
    while (next() == '*' || next() == '/') all = take('*') ? all * factor() : (++at_, all / factor());
    return all;
  }
  fraction factor() {
    if (take('(')) {
      const fraction inner = sum();
      if (!take(')')) refuse("a bracket is not closed");
      return inner;
    }
    const std::size_t first = at_;
    while (std::isalnum(static_cast<unsigned char>(next())) || next() == '_') ++at_;
    const std::string_view word = text_.substr(first, at_ - first);
    if (word.empty()) refuse("a number or a name is missing");
    if (std::isdigit(static_cast<unsigned char>(word.front()))) return std::stoll(std::string(word));
    const auto found = of_.find(word);
    if (found == of_.end()) refuse("nothing is given for " + std::string(word));
    return found->second;
  }

  std::string_view text_;
  const variables& of_;
  std::size_t at_ = 0;
};

}  // namespace

fraction evaluate(std::string_view formula, const variables& of) { return parser(formula, of).run(); }

}  // namespace audit
