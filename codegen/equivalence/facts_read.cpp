// SPDX-License-Identifier: Apache-2.0
// Reads the table of facts: names become indices. A line that cannot be read is an error of rankc itself.
#include <algorithm>
#include <map>
#include <stdexcept>

#include "call_numbers.hpp"
#include "facts_text.hpp"
#include "refusal.hpp"

namespace rankc::codegen::algebra {

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

int find_row(const std::vector<fact>& all, std::string_view name, const fact& from) {
  for (std::size_t i = 0; i < all.size(); ++i)
    if (all[i].row == name) return static_cast<int>(i);
  throw refusal("RC7716: the facts of row {} name row \"{}\", which the table does not have", from.row, name);
}

namespace {

unsigned long long key_of(std::string_view row) {
  unsigned long long key = 0;
  for (const char c : row)
    key = (key ^ static_cast<unsigned char>(c)) * 0x100000001B3ull + 0x9E3779B97F4A7C15ull;
  return key;
}

class reader {
 public:
  explicit reader(std::vector<fact>& all) : all_(all) {}

  /// Reads the ports of a row. Its equations are read later, because they may name later rows.
  void read_ports(const line& l) {
    fact f;
    f.row = l.row;
    f.ports = algebra::read_ports(l);
    for (const port& p : f.ports) f.names.push_back(p.name);
    std::string letters;
    for (const port& p : f.ports)
      for (const axis_use& a : p.axes)
        for (const char letter : {a.of, a.unit}) add_letter(f, letter, letters);
    for (const char letter : {'p', 'j'})
      if (std::string_view(l.rule).find(std::string{'(', letter, ')'}) != std::string_view::npos)
        add_letter(f, letter, letters);
    if (letters.size() > max_letters)
      throw refusal("RC7717: the facts of row {} have {} axes; expected at most {}", f.row, letters.size(),
                    max_letters);
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
    read_needs(l, f, all_);
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

  [[noreturn]] static void refuse_text(const fact& f, const std::string& text) {
    throw refusal("RC7718: the facts of row {} have \"{}\", which cannot be read", f.row, text);
  }
  /// The left and the right side of an equation.
  static std::vector<std::string> sides_of(const fact& f, const std::string& text) {
    std::vector<std::string> sides = parts_of(text, "=");
    if (sides.size() != 2) refuse_text(f, text);
    return sides;
  }
  /// "layer_norm(x, gain, shift)": the words in brackets.
  static std::vector<std::string> arguments_of(const fact& f, const std::string& call) {
    const std::size_t open = call.find('(');
    if (open == std::string::npos || !call.ends_with(')')) refuse_text(f, call);
    return parts_of(std::string_view(call).substr(open + 1, call.size() - open - 2), ", ");
  }
  /// The index of the row that an equation calls. The call must name as many ports as the row has.
  int called(const fact& f, const std::string& name, std::size_t ports) const {
    const int row = find_row(all_, name, f);
    const std::size_t expected = all_[static_cast<std::size_t>(row)].ports.size();
    if (ports != expected)
      throw refusal("RC7719: the facts of row {} call row {} with {} results and operands; expected {}",
                    f.row, name, ports, expected);
    return row;
  }

  /// The index of an operand: a port, or the result of an earlier equation.
  static int operand_of(const fact& f, const std::string& name) {
    const int at = find(f.names, name);
    return at == static_cast<int>(f.names.size()) ? port_of(f, name) : at;
  }
  static void add_operand(const fact& f, equation& e, std::string name) {
    e.linear.push_back(name.ends_with('\''));
    if (e.linear.back()) name.pop_back();
    e.operands.push_back(operand_of(f, name));
  }
  static void add_operands(const fact& f, equation& e, const std::vector<std::string>& names) {
    for (const std::string& name : names) add_operand(f, e, name);
  }

  equation read_equation(fact& f, const std::string& text) const {
    const std::vector<std::string> sides = sides_of(f, text);
    const std::string& right = sides[1];
    const std::string before = right.substr(0, std::min(right.find('('), right.size()));
    equation e;
    if (right == "0") {
      e.is = equation::kind::zero;
    } else if (right.find('+') != std::string::npos) {
      e.is = equation::kind::sum;
      add_operands(f, e, parts_of(right, "+"));
    } else if (right.find('*') != std::string::npos) {
      read_multiple(f, e, right);
    } else if (before == right || before == "sum" || before == "max" || before == "parts" ||
               before == "merge") {
      read_function(f, e, right, before);
    } else {
      e.is = equation::kind::call;
      const std::vector<std::string> arguments = arguments_of(f, right);
      add_operands(f, e, arguments);
      e.row = called(f, before, parts_of(sides[0], " ").size() + arguments.size());
    }
    for (const std::string& name : parts_of(sides[0], " ")) e.results.push_back(name_of(f, name));
    return e;
  }

  /// "number * x", "1 * x"
  static void read_multiple(fact& f, equation& e, const std::string& right) {
    const std::vector<std::string> factors = parts_of(right, "*");
    if (factors.size() != 2 || (factors[0] != "number" && factors[0] != "1")) refuse_text(f, right);
    e.is = equation::kind::multiple;
    f.number |= factors[0] == "number";
    add_operand(f, e, factors[1]);
  }

  /// "sum(i) x' w'", "merge(a b) x y", "x gain"
  static void read_function(const fact& f, equation& e, const std::string& right, const std::string& before) {
    std::string operands = right;
    if (before != right) {
      const std::size_t close = right.find(')');
      if (close == std::string::npos) refuse_text(f, right);
      e.how = joining_of(before);
      if (before == "merge") e.is = equation::kind::merge;
      for (const std::string& name : arguments_of(f, right.substr(0, close + 1))) {
        if (before == "merge") e.weights.push_back(operand_of(f, name));
        else if (name.size() != 1 || name[0] < 'a' || name[0] > 'z') refuse_text(f, right);
        else e.over += name;
      }
      operands = right.substr(close + 1);
    }
    add_operands(f, e, parts_of(operands, " "));
  }

  derivative read_derivative(fact& f, const std::string& text) const {
    const std::vector<std::string> sides = sides_of(f, text), left = parts_of(sides[0], " ");
    const std::string& right = sides[1];
    derivative d;
    if (right.find('(') == std::string::npos) {
      d.from.push_back(read_factor(f, right));
    } else {
      for (const std::string& name : arguments_of(f, right)) d.from.push_back(read_factor(f, name));
      d.row = called(f, right.substr(0, right.find('(')), left.size() + d.from.size());
    }
    if (d.row < 0 && left.size() != 1) refuse_text(f, text);
    for (const std::string& name : left) d.of.push_back(derived(f, name));
    return d;
  }
  /// The index of an intermediate, numbered after the ports; -1 if it is unknown.
  static int find_intermediate(const fact& f, const std::string& name) {
    const int at = find(f.intermediates, name);
    return at == static_cast<int>(f.intermediates.size()) ? -1 : static_cast<int>(f.ports.size()) + at;
  }
  /// The left side of an equation of gradients: the gradient of a port, or an intermediate.
  static int derived(fact& f, const std::string& name) {
    if (!name.starts_with('_')) return port_of(f, name);
    if (find_intermediate(f, name) < 0) f.intermediates.push_back(name);
    return find_intermediate(f, name);
  }
  /// Reads a factor: a port, the gradient of a result ("d" and the result's name), or an intermediate.
  static factor read_factor(const fact& f, const std::string& name) {
    if (const int at = find_intermediate(f, name); at >= 0) return {at, false};
    if (find(f.names, name) < static_cast<int>(f.ports.size())) return {find(f.names, name), false};
    if (!name.starts_with('d')) return {port_of(f, name), false};
    return {port_of(f, name.substr(1)), true};
  }

  std::vector<fact>& all_;
};

/// Whether a result is a sum over tokens, by an equation of the row or of a row that it calls.
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

/// Checks that the hashes of row names differ, except between rows that are like one another.
void check_keys(const std::vector<fact>& all) {
  std::map<unsigned long long, std::string_view> rows;
  for (const fact& f : all)
    if (const auto [at, is_new] = rows.try_emplace(key_of(f.row), f.row); !is_new)
      throw refusal(
          "RC7746: rows {} and {} have the same key, which is a hash of the name; expected different keys",
          at->second, f.row);
}

/// Notes the attributes of an op that the checks of its row read, or the checks of a row that it calls.
void note_reads(std::vector<fact>& all, fact& f) {
  const bool is_of_sequences = f.sequences || f.documents || f.chunks || f.ring || f.shares || f.pooled;
  f.reads_rows = is_of_sequences;
  f.reads_seq = is_of_sequences || f.seq || f.positions || f.grouped;
  f.reads_number = f.number || f.chunks || f.ring;
  for (const equation& e : f.equations) {
    if (e.is != equation::kind::call) continue;
    fact& called = all[static_cast<std::size_t>(e.row)];
    note_reads(all, called);
    f.reads_rows |= called.reads_rows;
    f.reads_seq |= called.reads_seq;
    f.reads_number |= called.reads_number;
  }
}

}  // namespace

std::vector<fact> read_facts(std::span<const line> lines, std::vector<fact> all) {
  const std::size_t before = all.size();
  all.reserve(before + lines.size());
  reader r(all);
  for (const line& l : lines) r.read_ports(l);
  for (std::size_t i = 0; i < lines.size(); ++i) r.read_rule(lines[i], all[before + i]);
  check_keys(all);
  for (std::size_t i = before; i < all.size(); ++i) {
    note_reads(all, all[i]);
    all[i].numbers_of_call = numbers_of_call(all[i].row);
    for (int result = 0; result < all[i].results; ++result)
      all[i].ports[static_cast<std::size_t>(result)].sums_tokens = sums_tokens(all, all[i], result);
  }
  return all;
}

const std::vector<fact>& facts() {
  static const std::vector<fact> all = read_facts(table());
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
