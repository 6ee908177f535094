// SPDX-License-Identifier: Apache-2.0
// The table of facts, read: names become indices. A line that cannot be read is an error of this program.
#include <algorithm>
#include <map>
#include <stdexcept>

#include "facts.hpp"

namespace rankc::codegen::algebra {

namespace {

/// The parts of a text between separators, without blanks around them; none of a blank text.
std::vector<std::string> parts_of(std::string_view text, std::string_view separators) {
  std::vector<std::string> all;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(separators), text.size());
    std::string_view part = text.substr(0, end);
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    if (!part.empty()) all.emplace_back(part);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return all;
}

unsigned long long key_of(std::string_view row) {
  unsigned long long key = 0;
  for (const char c : row)
    key = (key ^ static_cast<unsigned char>(c)) * 0x100000001B3ull + 0x9E3779B97F4A7C15ull;
  return key;
}

class reader {
 public:
  explicit reader(std::vector<fact>& all) : all_(all) {}

  /// The ports of a row; its equations may be of rows that come later.
  void read_ports(const line& l) {
    fact f;
    f.row = l.row;
    for (std::string_view rest = l.ports; !rest.empty();) {
      const std::size_t open = rest.find('('), close = rest.find(')'),
                        end = std::min(rest.find(' ', close), rest.size());
      port p{std::string(rest.substr(0, open)), {}, rest[0] == '+', '\0', {}, {}};
      if (p.adds) p.name.erase(0, 1);
      for (const std::string& axis : parts_of(rest.substr(open + 1, close - open - 1), " "))
        p.axes.push_back({axis[0], axis.size() == 3 ? axis[2] : '\0'});
      std::string_view after = rest.substr(close + 1, end - close - 1);
      if (after.starts_with('/')) {
        p.in_fp8 = after.substr(1, after.find(':') - 1);
        after.remove_prefix(1 + p.in_fp8.size());
      }
      if (after.starts_with(':')) p.stride = after[1];
      if (const std::size_t over = after.find('^'); over != std::string_view::npos)
        p.over = parts_of(after.substr(over + 1), ",");
      f.names.push_back(p.name);
      f.ports.push_back(std::move(p));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
    std::string letters;
    for (const port& p : f.ports)
      for (const axis_use& a : p.axes)
        for (const char letter : {a.of, a.unit}) add_letter(f, letter, letters);
    for (const char letter : {'p', 'j'})
      if (std::string_view(l.rule).find(std::string{'(', letter, ')'}) != std::string_view::npos)
        add_letter(f, letter, letters);
    if (letters.size() > max_letters) throw std::logic_error(f.row + ": its facts have too many letters");
    f.key = key_of(f.row);
    all_.push_back(std::move(f));
  }

  void read_rule(const line& l, fact& f) {
    for (const std::string& text : parts_of(l.rule, ";")) f.equations.push_back(read_equation(f, text));
    const auto is_result = [&](int p) {
      return std::any_of(f.equations.begin(), f.equations.end(), [&](const equation& e) {
        return std::find(e.results.begin(), e.results.end(), p) != e.results.end();
      });
    };
    for (equation& e : f.equations)
      for (int o : e.operands) {
        const auto axes = [&](int p) {
          return p < static_cast<int>(f.ports.size()) ? &f.ports[static_cast<std::size_t>(p)].axes : nullptr;
        };
        e.same.push_back(axes(o) && axes(e.results[0]) && *axes(o) == *axes(e.results[0]));
      }
    while (f.results < static_cast<int>(f.ports.size()) && is_result(f.results)) ++f.results;
    read_needs(l, f);
    for (const std::string& text : parts_of(l.gradients, ";"))
      f.derivatives.push_back(read_derivative(f, text));
  }

 private:
  static void add_letter(fact& f, char letter, std::string& known) {
    if (letter < 'a' || known.find(letter) != std::string::npos) return;
    f.place[static_cast<std::size_t>(letter - 'a')] = static_cast<unsigned char>(known.size());
    known += letter;
  }

  static int find(const std::vector<std::string>& names, std::string_view name) {
    return static_cast<int>(std::find(names.begin(), names.end(), name) - names.begin());
  }
  static int name_of(fact& f, const std::string& name) {
    const int at = find(f.names, name);
    if (at == static_cast<int>(f.names.size())) f.names.push_back(name);
    return at;
  }

  static joining joining_of(const std::string& word) {
    if (word == "max") return joining::maximum;
    return word == "parts" ? joining::softmax : joining::sum;
  }

  equation read_equation(fact& f, const std::string& text) const {
    const std::vector<std::string> sides = parts_of(text, "=");
    equation e;
    for (const std::string& name : parts_of(sides.at(0), " ")) e.results.push_back(name_of(f, name));
    std::string right = sides.at(1);
    const auto operand = [&](std::string name) {
      e.linear.push_back(name.ends_with('\''));
      if (e.linear.back()) name.pop_back();
      e.operands.push_back(name_of(f, name));
    };
    const std::size_t open = right.find('('), plus = right.find('+'), times = right.find('*');
    const std::string before = right.substr(0, std::min(open, right.size()));
    if (right == "0") {
      e.is = equation::kind::zero;
    } else if (plus != std::string::npos) {
      e.is = equation::kind::sum;
      for (const std::string& name : parts_of(right, "+")) operand(name);
    } else if (times != std::string::npos) {
      e.is = equation::kind::multiple;
      f.number |= right.starts_with("number");
      operand(parts_of(right, "*").at(1));
    } else if (open != std::string::npos && before != "sum" && before != "max" && before != "parts" &&
               before != "merge") {
      e.is = equation::kind::call;
      e.row = row_of(before);
      for (const std::string& name : parts_of(right.substr(open + 1), ",) ")) operand(name);
    } else {
      if (open != std::string::npos) {
        if (before == "merge") e.is = equation::kind::merge;
        e.how = joining_of(before);
        for (const std::string& name : parts_of(right.substr(open + 1, right.find(')') - open - 1), " "))
          if (before == "merge") e.weights.push_back(name_of(f, name));
          else e.over += name;
        right = right.substr(right.find(')') + 1);
      }
      for (const std::string& name : parts_of(right, " ")) operand(name);
    }
    return e;
  }

  void read_needs(const line& l, fact& f) const {
    for (const std::string& need : parts_of(l.needs, ")")) {
      std::vector<std::string> words = parts_of(need, " (");
      for (std::size_t i = 0; i < words.size(); ++i) {
        if (words[i] == "positions") f.positions = true;
        else if (words[i] == "listed") f.positions = f.listed = true;
        else if (words[i] == "sequences") f.sequences = true;
        else if (words[i] == "documents") f.documents = true;
        else if (words[i] == "chunks") f.chunks = true;
        else if (words[i] == "ring") f.ring = true;
        else if (words[i] == "shares") f.shares = true;
        else if (words[i] == "like") f.key = all_[static_cast<std::size_t>(row_of(words.at(++i)))].key;
        else if (words[i] == "groups") f.groups = true;
        else if (words[i] == "commutative") f.commutative = true;
        else if (words[i] == "arranges") f.arranges = true;
        else if (words[i] == "owns") f.owns = true;
        else if (words[i] == "grouped") f.grouped = true;
        else if (words[i] == "segments") f.segments = true;
        else if (words[i] == "counts") f.counts = true;
        else if (words[i] == "by") f.by = find(f.names, words.at(++i));
        else
          for (std::string& letters = words[i] == "whole" ? f.whole : f.first; i + 1 < words.size();)
            letters += words[++i];
      }
    }
    const std::vector<std::string> attributes = parts_of(l.attributes, " ");
    const auto depends_on = [&](const char* what) {
      return find(attributes, what) < static_cast<int>(attributes.size());
    };
    f.seq = depends_on("seq");
    f.number |= depends_on("number");
    f.parts = depends_on("parts");
  }

  derivative read_derivative(const fact& f, const std::string& text) const {
    const std::vector<std::string> sides = parts_of(text, "=");
    const auto known = [&](const std::string& name) {
      const int at = find(f.names, name);
      if (at >= static_cast<int>(f.ports.size()))
        throw std::logic_error(f.row + ": its facts name \"" + name + "\", which it has not");
      return at;
    };
    const auto read_factor = [&](const std::string& name) {
      if (find(f.names, name) < static_cast<int>(f.ports.size())) return factor{known(name), false};
      return factor{known(name.substr(1)), true};
    };
    derivative d;
    for (const std::string& name : parts_of(sides.at(0), " ")) d.of.push_back(known(name));
    const std::size_t open = sides.at(1).find('(');
    if (open == std::string::npos) {
      d.from.push_back(read_factor(sides[1]));
    } else {
      d.row = row_of(sides[1].substr(0, open));
      for (const std::string& name : parts_of(sides[1].substr(open + 1), ",) "))
        d.from.push_back(read_factor(name));
    }
    return d;
  }

  int row_of(std::string_view name) const {
    for (std::size_t i = 0; i < all_.size(); ++i)
      if (all_[i].row == name) return static_cast<int>(i);
    throw std::logic_error("the facts name a row \"" + std::string(name) + "\", which they have not");
  }

  std::vector<fact>& all_;
};

/// Whether a result is a sum over tokens, by an equation of the row or of one that it calls.
bool sums_tokens(const std::vector<fact>& all, const fact& f, int result) {
  for (const equation& e : f.equations) {
    const auto at = std::find(e.results.begin(), e.results.end(), result);
    if (at == e.results.end()) continue;
    if (e.is == equation::kind::call)
      return sums_tokens(all, all[static_cast<std::size_t>(e.row)], static_cast<int>(at - e.results.begin()));
    return e.how == joining::sum && e.over.find('t') != std::string::npos;
  }
  return false;
}

/// The hash of a row's name tells rows apart, except of those that are like another.
void check_keys(const std::vector<fact>& all) {
  std::map<unsigned long long, std::string_view> rows;
  for (const fact& f : all)
    if (const auto [at, is_new] = rows.try_emplace(key_of(f.row), f.row); !is_new)
      throw std::logic_error("the facts have one key for " + std::string(at->second) + " and " + f.row);
}

std::vector<fact> read_table() {
  std::vector<fact> all;
  reader r(all);
  for (const line& l : table()) r.read_ports(l);
  for (std::size_t i = 0; i < all.size(); ++i) r.read_rule(table()[i], all[i]);
  check_keys(all);
  for (fact& f : all)
    for (int result = 0; result < f.results; ++result)
      f.ports[static_cast<std::size_t>(result)].sums_tokens = sums_tokens(all, f, result);
  return all;
}

}  // namespace

const std::vector<fact>& facts() {
  static const std::vector<fact> all = read_table();
  return all;
}

int find_fact(std::string_view row) {
  static const std::map<std::string_view, int> index = [] {
    std::map<std::string_view, int> made;
    for (std::size_t i = 0; i < facts().size(); ++i) made[facts()[i].row] = static_cast<int>(i);
    return made;
  }();
  const auto at = index.find(row);
  return at == index.end() ? -1 : at->second;
}

}  // namespace rankc::codegen::algebra
