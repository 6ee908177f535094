// SPDX-License-Identifier: Apache-2.0
// The ports of a line of the table of facts: "+dw(o i)", "gate(t w)/e4m3:s", "y(t w)^x,residual".
#include <algorithm>
#include <iterator>
#include <utility>

#include "facts_text.hpp"
#include "refusal.hpp"

namespace rankc::codegen::algebra {

namespace {

constexpr std::string_view types[]{"e4m3", "e5m2", "e4m3_rows", "i32", "wide"};

bool is_letter(char c) { return c >= 'a' && c <= 'z'; }
bool is_name(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](char c) {
    return is_letter(c) || c == '_' || (c >= '0' && c <= '9');
  });
}

/// Reads one port; `rest_` is what follows.
class port_reader {
 public:
  port_reader(const line& of, std::string_view text) : of_(of), text_(text), rest_(text) {}

  port read() {
    port p;
    p.adds = take('+');
    p.name = take_until("(");
    if (!is_name(p.name) || !take('(')) refuse();
    p.by_heads = p.name.starts_with("lse");
    for (const std::string& axis : parts_of(take_until(")"), " ")) p.axes.push_back(axis_of(axis));
    if (!take(')')) refuse();
    if (take('/')) set_type(p, take_until(":^"));
    if (take(':')) p.stride = letter_of(take_until("^"));
    if (take('^')) p.over = parts_of(take_until(""), ",");
    if (!rest_.empty()) refuse();
    return p;
  }

 private:
  bool take(char c) {
    const bool is_there = rest_.starts_with(c);
    if (is_there) rest_.remove_prefix(1);
    return is_there;
  }
  std::string take_until(std::string_view stops) {
    const std::size_t end = std::min(rest_.find_first_of(stops), rest_.size());
    const std::string word(rest_.substr(0, end));
    rest_.remove_prefix(end);
    return word;
  }

  axis_use axis_of(const std::string& text) const {
    const bool is_plain = text.size() == 1 && (is_letter(text[0]) || (text[0] >= '1' && text[0] <= '9'));
    const bool is_of_units = text.size() == 3 && is_letter(text[0]) && text[1] == '*' && is_letter(text[2]);
    if (!is_plain && !is_of_units) refuse();
    return {text[0], is_of_units ? text[2] : '\0'};
  }
  void set_type(port& p, std::string word) const {
    if (std::find(std::begin(types), std::end(types), word) == std::end(types)) refuse();
    p.is_wide = word == "wide";
    if (!p.is_wide) p.holds = std::move(word);
  }
  char letter_of(const std::string& word) const {
    if (word.size() != 1 || !is_letter(word[0])) refuse();
    return word[0];
  }

  [[noreturn]] void refuse() const {
    throw refusal("RC7710: the facts of row {} have a port \"{}\", which cannot be read", of_.row, text_);
  }

  const line& of_;
  std::string_view text_, rest_;
};

/// The end of a port: the first blank after its axes.
std::size_t end_of_port(std::string_view text) {
  const std::size_t close = std::min(text.find(')'), text.size());
  return std::min(text.find(' ', close), text.size());
}

}  // namespace

std::vector<port> read_ports(const line& l) {
  std::vector<port> all;
  for (std::string_view rest = l.ports; !rest.empty();) {
    const std::size_t end = end_of_port(rest);
    all.push_back(port_reader(l, rest.substr(0, end)).read());
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t k = 0; k < i; ++k)
      if (all[i].name == all[k].name)
        throw refusal("RC7747: the facts of row {} have two ports {}", l.row, all[i].name);
  for (const port& p : all)
    for (const std::string& name : p.over)
      if (std::none_of(all.begin(), all.end(), [&](const port& of) { return of.name == name; }))
        throw refusal("RC7711: the facts of row {} let a result overwrite {}; the row has no such port",
                      l.row, name);
  return all;
}

}  // namespace rankc::codegen::algebra
