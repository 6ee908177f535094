// SPDX-License-Identifier: Apache-2.0
#include "families.hpp"

#include <fmt/format.h>
#include <rankc/codegen/names.hpp>
#include <rankc/codegen/text_template.hpp>

#include <algorithm>
#include <cctype>

namespace rankc::codegen {

namespace {

/// "layers_" and "_out" -> "layers_out": a name without the numbers that vary.
std::string without_numbers(std::string name) {
  for (std::size_t at = 0; (at = name.find("__", at)) != name.npos;) name.erase(at, 1);
  while (name.ends_with('_')) name.pop_back();
  return name;
}

/// The name of a constant, cut at its numbers.
piece cut_name(const std::string& name, const std::string& type) {
  return cut(name, {.types = {{name, type}}}).back();
}

}  // namespace

const std::vector<bool>* families::varied_in(const piece& p) const {
  if (p.is != piece::kind::name) return nullptr;
  const auto known = varied_.find(form_of({p}));
  return known == varied_.end() ? nullptr : &known->second;
}

void families::add(const std::vector<rolled>& all) {
  std::vector<std::pair<long, long>> ranges;
  for (const rolled& each : all) add(each, ranges);
}

void families::add(const rolled& r, std::vector<std::pair<long, long>>& ranges) {
  if (!r.body.empty()) {
    ranges.push_back(std::minmax(r.first, r.last));
    for (const rolled& each : r.body) add(each, ranges);
    ranges.pop_back();
    return;
  }
  for (const piece& p : r.text) {
    if (!p.varies() || (p.is != piece::kind::name && p.is != piece::kind::quoted)) continue;
    if (p.is == piece::kind::name) {
      std::vector<bool>& varied = varied_[form_of({p})];
      varied.resize(p.numbers.size());
      for (std::size_t n = 0; n < p.numbers.size(); ++n) varied[n] = varied[n] || p.numbers[n].varies();
      continue;
    }
    const number& n = *std::ranges::find_if(p.numbers, &number::varies);
    long first = n.constant, last = n.constant;
    for (std::size_t d = 0; d < n.factors.size(); ++d) {
      const auto [low, high] = ranges[d];
      first += n.factors[d] * (n.factors[d] > 0 ? low : high);
      last += n.factors[d] * (n.factors[d] > 0 ? high : low);
    }
    const std::string pattern = pattern_of(p);
    const auto [known, is_new] = texts_.try_emplace(pattern, text_family{{}, first, last});
    text_family& of = known->second;
    of.first = std::min(of.first, first);
    of.last = std::max(of.last, last);
    if (!is_new) continue;
    std::string name = pattern.substr(1, pattern.size() - 2);
    std::erase(name, '#');
    if (std::isdigit(static_cast<unsigned char>(name.front()))) name = "action_" + name;
    of.name = without_numbers(identifier(name));
    const auto is_taken = [&](const auto& other) {
      return other.first != pattern && other.second.name == of.name;
    };
    while (std::ranges::any_of(texts_, is_taken)) of.name += "_of";
  }
}

bool families::is_varied(const rolled& r) const {
  return std::ranges::any_of(r.text, [&](const piece& p) { return varied_in(p) != nullptr || p.varies(); });
}

/// "layers_out": the array of a name's family.
std::string families::array_of(const piece& p) const {
  const std::vector<bool>& varied = *varied_in(p);
  std::string array = p.parts.front();
  for (std::size_t n = 0; n < p.numbers.size(); ++n)
    array += (varied[n] ? "" : std::to_string(p.numbers[n].constant)) + p.parts[n + 1];
  array = without_numbers(array);
  const auto forms = forms_of_.find((p.type.starts_with('.') ? "." : "") + array);
  if (forms == forms_of_.end() || forms->second.size() < 2) return array;
  std::string kind = p.type.substr(p.type.starts_with('.'));
  kind.resize(std::min(kind.size(), kind.find("_layer::")));
  return array + "_of_" + identifier(kind);
}

void families::name(const numbered_names& names) {
  forms_of_.clear();
  std::map<std::string, std::set<std::string>> forms_of;
  for (const auto& [name, type] : names.types) {
    const piece p = cut_name(name, type);
    const bool varies = varied_in(p) != nullptr && type != local_name;
    const std::string scope = type.starts_with('.') ? "." : "";
    forms_of[varies ? scope + array_of(p) : name].insert(varies ? form_of({p}) : name);
  }
  forms_of_ = std::move(forms_of);
  for (auto& [pattern, text] : texts_)
    while (forms_of_.contains(text.name)) text.name += "_text";
}

/// "layers_out[i + 1]": a name of a family, with its numbers that vary behind it.
std::string families::name_of(const piece& p, const std::vector<std::string>& variables) const {
  const std::vector<bool>& varied = *varied_in(p);
  std::string name = array_of(p);
  for (std::size_t n = 0; n < p.numbers.size(); ++n)
    if (varied[n]) name += "[" + rankc::codegen::text_of(p.numbers[n], variables) + "]";
  return name;
}

/// The name of a local constant. In a loop it needs no number.
static std::string name_of_local(const piece& p) {
  std::string name = p.parts.front();
  for (std::size_t n = 0; n < p.numbers.size(); ++n)
    name += (p.numbers[n].varies() ? "" : std::to_string(p.numbers[n].constant)) + p.parts[n + 1];
  return without_numbers(name);
}

std::string families::text_of(const pieces& all, const std::vector<std::string>& variables) const {
  std::string out;
  for (const piece& p : all) {
    if (p.is == piece::kind::name && (p.type == local_name || varied_in(p) != nullptr)) {
      out += p.type == local_name ? name_of_local(p) : name_of(p, variables);
      continue;
    }
    if (p.is == piece::kind::quoted && p.varies()) {
      const auto n = std::ranges::find_if(p.numbers, &number::varies);
      out += fmt::format("{}[{}]", texts_.at(pattern_of(p)).name, rankc::codegen::text_of(*n, variables));
      continue;
    }
    out += p.parts.front();
    for (std::size_t n = 0; n < p.numbers.size(); ++n) {
      const std::string number = rankc::codegen::text_of(p.numbers[n], variables);
      const bool is_sum = p.is == piece::kind::comment && number.find(' ') != number.npos;
      out += (is_sum ? "(" + number + ")" : number) + p.parts[n + 1];
    }
  }
  return out;
}

/// A statement on lines of at most 100 columns. Each call of an action begins a line.
std::string families::text_of(const rolled& r, std::size_t indent,
                              const std::vector<std::string>& variables) const {
  std::string text = text_of(r.text, variables);
  const bool varies = std::ranges::any_of(r.text, &piece::varies);
  constexpr std::string_view constant_reference = "constexpr const ", lambda = "[](const lane& on) {";
  if (varies && text.starts_with(constant_reference)) text.erase(0, std::string_view("constexpr ").size());
  const std::size_t begin = text.find(lambda);
  if (begin == text.npos) return break_code(text, indent);
  if (varies) text.replace(begin, 2, "[=]");
  const std::size_t body = text.find('{', begin) + 2, end = text.rfind('}');
  std::string out = text.substr(0, body - 1);
  for (std::size_t at = body, next; at < end; at = next) {
    next = text.find("; ", at) + 2;
    out += "\n" + indented(break_code(text.substr(at, next - at - 1), indent + 2), 2);
  }
  return out + "\n" + text.substr(end);
}

void families::print(const rolled& r, std::size_t indent, std::vector<std::string>& variables,
                     std::string& out) const {
  if (r.begins_part && !out.empty()) out += "\n";
  if (r.body.empty()) {
    out += indented(is_varied(r) ? text_of(r, indent + 2, variables) : r.plain, indent) + "\n";
    return;
  }
  const bool up = r.first <= r.last, has_braces = r.body.size() > 1 || !r.body.front().body.empty();
  out += std::string(indent, ' ') + fmt::format("for (int {0} = {1}; {0} {2} {3}; {4}{0}){5}\n", r.variable,
                                                r.first, up ? "<" : ">=", up ? r.last + 1 : r.last,
                                                up ? "++" : "--", has_braces ? " {" : "");
  variables.push_back(r.variable);
  for (const rolled& each : r.body) print(each, indent + 2, variables, out);
  variables.pop_back();
  if (has_braces) out += std::string(indent, ' ') + "}\n";
}

std::string families::print(const std::vector<rolled>& all) const {
  std::string out;
  std::vector<std::string> variables;
  for (const rolled& each : all) print(each, 0, variables, out);
  return out;
}

std::vector<families::group> families::groups_of(const std::vector<declared_constant>& all) const {
  std::vector<group> groups;
  std::map<std::string, std::vector<std::pair<std::vector<long>, const declared_constant*>>> members;
  for (const declared_constant& c : all) {
    const piece name = cut_name(c.name, c.type);
    const std::vector<bool>* const varied = varied_in(name);
    const std::string type = c.type.substr(c.type.starts_with('.'));
    if (varied == nullptr) {
      groups.push_back({c.name.substr(c.name.starts_with('.')), type, {}, {}, {&c}});
      continue;
    }
    std::vector<long> at;
    for (std::size_t n = 0; n < name.numbers.size(); ++n)
      if ((*varied)[n]) at.push_back(name.numbers[n].constant);
    const std::string array = array_of(name);
    auto& of = members[array + " " + type];
    if (of.empty()) groups.push_back({array, type, {-1}, {}, {}});
    of.emplace_back(std::move(at), &c);
  }
  for (group& g : groups) {
    if (g.first.empty()) continue;
    const auto& of = members.at(g.name + " " + g.type);
    g.first = of.front().first;
    std::vector<long> last = g.first;
    for (const auto& [at, c] : of)
      for (std::size_t d = 0; d < at.size(); ++d) {
        g.first[d] = std::min(g.first[d], at[d]);
        last[d] = std::max(last[d], at[d]);
      }
    std::size_t size = 1;
    for (std::size_t d = 0; d < last.size(); ++d) {
      g.count.push_back(last[d] - g.first[d] + 1);
      size *= static_cast<std::size_t>(g.count[d]);
    }
    g.all.assign(size, nullptr);
    for (const auto& [at, c] : of) {
      std::size_t index = 0;
      for (std::size_t d = 0; d < at.size(); ++d)
        index = index * static_cast<std::size_t>(g.count[d]) + static_cast<std::size_t>(at[d] - g.first[d]);
      g.all[index] = c;
    }
  }
  return groups;
}

std::string families::declare_texts() const {
  std::string out;
  for (const auto& [pattern, of] : texts_)
    out += fmt::format("constexpr auto {} = texts<{}, {}>({});\n", of.name, of.first, of.last - of.first + 1,
                       pattern);
  return out;
}

}  // namespace rankc::codegen
