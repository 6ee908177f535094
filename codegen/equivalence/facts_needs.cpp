// SPDX-License-Identifier: Apache-2.0
// Reads the needs and the attributes of a line of the table of facts.
#include <algorithm>
#include <map>

#include "facts_text.hpp"
#include "refusal.hpp"

namespace rankc::codegen::algebra {

namespace {

using flag = bool fact::*;

const std::map<std::string_view, std::vector<flag>> plain_needs{{"positions", {&fact::positions}},
                                                                {"listed", {&fact::positions, &fact::listed}},
                                                                {"sequences", {&fact::sequences}},
                                                                {"documents", {&fact::documents}},
                                                                {"chunks", {&fact::chunks}},
                                                                {"ring", {&fact::ring}},
                                                                {"shares", {&fact::shares}},
                                                                {"groups", {&fact::groups}},
                                                                {"commutative", {&fact::commutative}},
                                                                {"arranges", {&fact::arranges}},
                                                                {"owns", {&fact::owns}},
                                                                {"grouped", {&fact::grouped}},
                                                                {"pooled", {&fact::pooled}},
                                                                {"segments", {&fact::segments}},
                                                                {"counts", {&fact::counts}},
                                                                {"converts", {&fact::converts}},
                                                                {"modelled", {&fact::modelled}},
                                                                {"scratch", {&fact::scratch}}};

const std::map<std::string_view, flag> plain_attributes{
    {"seq", &fact::seq}, {"number", &fact::number}, {"parts", &fact::parts}, {"attention", &fact::attention}};

bool has_axis(const fact& f, const std::string& letter) {
  const auto uses = [&](const axis_use& a) {
    return letter.size() == 1 && (a.of == letter[0] || a.unit == letter[0]);
  };
  return std::any_of(f.ports.begin(), f.ports.end(),
                     [&](const port& p) { return std::any_of(p.axes.begin(), p.axes.end(), uses); });
}

/// The axes in the brackets of "whole(l e)".
std::string axes_of(const fact& f, const std::string& need, const std::string& axes) {
  std::string letters;
  for (const std::string& letter : parts_of(axes, " ")) {
    if (!has_axis(f, letter))
      throw refusal("RC7712: the facts of row {} need {} of axis {}; no port of the row has that axis", f.row,
                    need, letter);
    letters += letter;
  }
  return letters;
}

/// Reads the needs one word after another. A word may be followed by brackets.
class needs_reader {
 public:
  needs_reader(const line& l, fact& f, const std::vector<fact>& all) : rest_(l.needs), fact_(f), all_(all) {}

  void read() {
    for (std::string word = take_word(); !word.empty(); word = take_word()) {
      fact_.needs.push_back(word);
      if (const auto plain = plain_needs.find(word); plain != plain_needs.end()) {
        for (const flag of : plain->second) fact_.*of = true;
      } else if (word == "whole") {
        fact_.whole = axes_of(fact_, word, take_brackets());
      } else if (word == "first") {
        fact_.first = axes_of(fact_, word, take_brackets());
      } else if (word == "by") {
        fact_.by = port_of(fact_, take_brackets());
      } else if (word == "like") {
        const std::string other = take_word();
        fact_.key = all_[static_cast<std::size_t>(find_row(all_, other, fact_))].key;
      } else {
        refuse(word);
      }
    }
  }

 private:
  std::string take_word() {
    while (rest_.starts_with(' ')) rest_.remove_prefix(1);
    const std::size_t end = std::min(rest_.find_first_of(" ("), rest_.size());
    std::string word(rest_.substr(0, end));
    rest_.remove_prefix(end);
    if (word.empty() && !rest_.empty()) refuse(rest_);  // brackets without a word
    return word;
  }
  std::string take_brackets() {
    const std::size_t close = rest_.find(')');
    if (!rest_.starts_with('(') || close == std::string_view::npos) refuse(rest_);
    const std::string inside(rest_.substr(1, close - 1));
    rest_.remove_prefix(close + 1);
    return inside;
  }

  [[noreturn]] void refuse(std::string_view word) const {
    throw refusal("RC7714: the facts of row {} have an unknown need \"{}\"", fact_.row, word);
  }

  std::string_view rest_;
  fact& fact_;
  const std::vector<fact>& all_;
};

/// The axes whose sizes are in a result's term, in alphabetical order. All rows that are like one row have
/// the same axes.
std::string sizes_of(const fact& f) {
  std::string letters;
  for (const port& p : f.ports)
    for (const axis_use& a : p.axes) {
      if (a.unit) letters += a.unit;
      if (f.parts && (a.of == 'l' || a.of == 'r')) letters += a.of;
    }
  std::sort(letters.begin(), letters.end());
  letters.erase(std::unique(letters.begin(), letters.end()), letters.end());
  return letters;
}

}  // namespace

int port_of(const fact& f, const std::string& name) {
  for (std::size_t p = 0; p < f.ports.size(); ++p)
    if (f.ports[p].name == name) return static_cast<int>(p);
  throw refusal("RC7713: the facts of row {} name port {}; the row has no such port", f.row, name);
}

void read_needs(const line& l, fact& f, const std::vector<fact>& all) {
  needs_reader(l, f, all).read();
  for (const std::string& word : parts_of(l.attributes, " ")) {
    const auto known = plain_attributes.find(word);
    if (known == plain_attributes.end())
      throw refusal(
          "RC7715: the facts of row {} have an unknown attribute \"{}\"; expected seq, number or parts",
          f.row, word);
    f.*known->second = true;
  }
  f.sizes = sizes_of(f);
}

}  // namespace rankc::codegen::algebra
