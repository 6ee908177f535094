// SPDX-License-Identifier: Apache-2.0
// The declarations of families of constants.
#include <fmt/format.h>
#include <rankc/codegen/text_template.hpp>

#include <algorithm>
#include <functional>
#include <optional>

#include "families.hpp"

namespace rankc::codegen {

namespace {

/// The most values after which a number may repeat.
constexpr long longest_cycle = 4;

struct term {
  long factor;
  std::string of;
};
std::string sum_text(long constant, const std::vector<term>& terms) {
  std::string out = constant == 0 ? "" : std::to_string(constant);
  for (const term& t : terms) {
    if (t.factor == 0) continue;
    const std::string product =
        std::abs(t.factor) == 1 ? t.of : fmt::format("{} * {}", std::abs(t.factor), t.of);
    if (out.empty()) out = t.factor < 0 ? "0 - " + product : product;
    else out += (t.factor < 0 ? " - " : " + ") + product;
  }
  return out.empty() ? "0" : out;
}

/// The number of a family's constant along a dimension, counted from 0.
std::string place_text(const families::group& g, std::size_t d) {
  return g.first[d] == 0 ? g.variables[d] : fmt::format("({} - {})", g.variables[d], g.first[d]);
}

/// Values with an even step along each dimension.
std::optional<std::string> even_rule(const families::group& g, const std::vector<long>& values) {
  std::vector<term> terms;
  std::vector<long> strides;
  long stride = static_cast<long>(values.size());
  for (std::size_t d = 0; d < g.count.size(); ++d) {
    stride /= g.count[d];
    strides.push_back(stride);
    const long step = g.count[d] > 1 ? values[static_cast<std::size_t>(stride)] - values[0] : 0;
    terms.push_back({step, place_text(g, d)});
  }
  for (std::size_t at = 0; at < values.size(); ++at) {
    long value = values[0];
    for (std::size_t d = 0; d < g.count.size(); ++d)
      value += terms[d].factor * (static_cast<long>(at) / strides[d] % g.count[d]);
    if (value != values[at]) return {};
  }
  return sum_text(values[0], terms);
}

/// Values that repeat in turn, with an even step within a turn.
std::optional<std::string> cyclic_rule(const families::group& g, const std::vector<long>& values) {
  if (g.count.size() != 1) return {};
  const long step = values[1] - values[0];
  for (long cycle = 2; cycle <= longest_cycle && cycle < g.count[0]; ++cycle) {
    long at = 0;
    if (std::ranges::all_of(values, [&](long v) { return v == values[0] + step * (at++ % cycle); }))
      return sum_text(values[0], {{step, fmt::format("({} % {})", place_text(g, 0), cycle)}});
  }
  return {};
}

std::optional<std::string> rule_of(const families::group& g, const std::vector<long>& values) {
  const bool varies = std::ranges::adjacent_find(values, std::not_equal_to()) != values.end();
  if (!varies) return std::to_string(values.front());
  const auto even = even_rule(g, values);
  return even ? even : cyclic_rule(g, values);
}

/// The values of a family from one dimension on.
std::string values_from(const families::group& g, std::size_t dim, std::size_t& at) {
  std::vector<std::string> words;
  bool has_comments = false;
  for (long i = 0; i < g.count[dim]; ++i) {
    if (dim + 1 < g.count.size()) {
      words.push_back(values_from(g, dim + 1, at));
      continue;
    }
    const declared_constant* const c = g.all[at++];
    words.push_back(c == nullptr ? "{}" : "{" + c->value + "}");
    if (c == nullptr || c->comment.empty()) continue;
    has_comments = true;
    words.back() += ",  // " + c->comment;
  }
  if (!has_comments) return "{{" + wrap(words, ",", "    ") + "}}";
  return fmt::format("{{{{\n    {}\n}}}}", fmt::join(words, "\n    "));
}

}  // namespace

std::string type_of_array(const families::group& g) {
  std::string type = g.type;
  for (std::size_t d = g.count.size(); d-- > 0;)
    type = fmt::format("numbered<{}, {}, {}>", type, g.first[d], g.count[d]);
  return type;
}

std::optional<std::string> value_rule(const families::group& g) {
  if (g.count.size() > g.variables.size()) return {};
  std::vector<std::vector<number>> numbers;
  const pieces* form = nullptr;
  std::vector<pieces> values;
  values.reserve(g.all.size());
  for (const declared_constant* c : g.all) {
    if (c == nullptr || !c->comment.empty()) return {};
    values.push_back(cut(c->value, {}));
    form = &values.front();
    if (form_of(values.back()) != form_of(*form)) return {};
    numbers.push_back(numbers_of(values.back()));
  }
  std::string out;
  std::size_t n = 0;
  for (const piece& p : *form) {
    out += p.parts.front();
    for (std::size_t k = 0; k < p.numbers.size(); ++k, ++n) {
      std::vector<long> of_number;
      for (const auto& each : numbers) of_number.push_back(each[n].constant);
      const auto rule = rule_of(g, of_number);
      if (!rule) return {};
      out += *rule + p.parts[k + 1];
    }
  }
  return out;
}

std::string rule_text(const families::group& g, std::string_view capture) {
  const auto value = value_rule(g);
  if (!value) return "";
  std::string out = fmt::format("return {}{{{}}};", g.type, *value);
  for (std::size_t d = g.count.size(); d-- > 0;) {
    const std::string parameter = has_word(out, g.variables[d]) ? " " + g.variables[d] : "";
    out = fmt::format("each<{}, {}>([{}](std::size_t{}) {{ {} }})", g.first[d], g.count[d],
                      d > 0 ? "=" : capture, parameter, out);
    if (d > 0) out = "return " + out + ";";
  }
  return out;
}

std::string values_text(const families::group& g) {
  std::size_t at = 0;
  return values_from(g, 0, at);
}

std::string broken_rule(std::string_view rule) {
  constexpr std::size_t columns = 100;
  if (rule.size() <= columns) return std::string(rule);
  const std::size_t begin = rule.find('{') + 2, end = rule.rfind(" })");
  return fmt::format("{}\n  {}\n}}{}", rule.substr(0, begin - 1),
                     indented(break_code(rule.substr(begin, end - begin), 2), 2).substr(2),
                     rule.substr(end + 2));
}

std::string declare(const std::vector<declared_constant>& all, const families& of) {
  std::string out;
  for (const families::group& g : of.groups_of(all)) {
    if (g.count.empty()) out += g.all.front()->plain;
    else if (const std::string rule = rule_text(g); !rule.empty())
      out += broken_rule(fmt::format("constexpr auto {} = {};", g.name, rule)) + "\n";
    else out += fmt::format("constexpr {} {}{};\n", type_of_array(g), g.name, values_text(g));
  }
  return out;
}

}  // namespace rankc::codegen
