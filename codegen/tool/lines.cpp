// SPDX-License-Identifier: Apache-2.0
#include "lines.hpp"

#include <json/json_file.hpp>
#include <rankc/mesh/dims.hpp>
#include <rankc/runtime/printable.hpp>

#include <algorithm>
#include <cstdio>
#include <istream>
#include <limits>
#include <numeric>
#include <ostream>
#include <utility>

namespace rankc::tool {

namespace {

/// JSON as text. The text is valid UTF-8 even if quoted text is not.
std::string dump(const json& j) { return j.dump(-1, ' ', false, json::error_handler_t::replace); }

/// The beginning of a value.
std::string shown(const json& value) {
  const std::string text =
      value.is_string() ? '"' + runtime::printable(value.get<std::string>()) + '"' : dump(value);
  return text.size() > 40 ? text.substr(0, 37) + "..." : text;
}

bool is_whole(const json& j) {
  if (!j.is_number_integer()) return false;
  if (j.is_number_unsigned()) return j.get<std::uint64_t>() <= std::numeric_limits<int>::max();
  const auto n = j.get<std::int64_t>();
  return n >= std::numeric_limits<int>::min() && n <= std::numeric_limits<int>::max();
}

bool is_list_of(const json& j, auto each) { return j.is_array() && std::all_of(j.begin(), j.end(), each); }

/// The number of letters to insert, drop or replace to make `a` from `b`.
std::size_t edits(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i);
    for (std::size_t j = 1; j <= b.size(); ++j)
      diagonal =
          std::exchange(row[j], std::min({row[j] + 1, row[j - 1] + 1, diagonal + (a[i - 1] != b[j - 1])}));
  }
  return row.back();
}

}  // namespace

const json* fields::find(const char* name) const {
  const auto found = line_.find(name);
  return found == line_.end() || found->is_null() ? nullptr : &*found;
}

void fields::refuse_missing(const char* name) const {
  refuse(out_, "RC8030: the field {} is missing, and this request needs it", name);
}

void fields::refuse_value(runtime::sentence<std::string, std::string> about, const char* name,
                          const json& value) const {
  refuse(out_, about, std::string(name), shown(value));
}

std::optional<int> fields::whole(const char* name) const {
  const json* j = find(name);
  if (j && is_whole(*j)) return j->get<int>();
  if (j) refuse_value("RC8031: {} is {}; it must be a whole number of 32 bits", name, *j);
  return {};
}

std::optional<double> fields::number(const char* name) const {
  const json* j = find(name);
  if (j && j->is_number() && j->get<double>() >= 0) return j->get<double>();
  if (j) refuse_value("RC8032: {} is {}; it must be a number of at least 0", name, *j);
  return {};
}

std::optional<int> fields::count(const char* name) const {
  const json* j = find(name);
  if (j && is_whole(*j) && j->get<int>() >= 1) return j->get<int>();
  if (j) refuse_value("RC8033: {} is {}; it must be a whole number of 32 bits, at least 1", name, *j);
  return {};
}

std::optional<int> fields::count(const char* name, int most) const {
  const std::optional<int> n = count(name);
  if (!n || *n <= most) return n;
  refuse(out_, "RC8034: {} is {}; it must be at most {}", name, *n, most);
  return {};
}

std::optional<int> fields::degree(const char* name) const {
  const json* j = find(name);
  if (!j) return {};
  if (*j == "infer") return infer;
  // The number that means `infer` in the language is not accepted here.
  if (is_whole(*j) && j->get<int>() != infer) return j->get<int>();
  if (*j == infer) refuse(out_, 104) << name << "=" << infer << "; a degree is at least 1, or \"infer\"";
  else refuse_value("RC8035: {} is {}; it must be a whole number of 32 bits or \"infer\"", name, *j);
  return {};
}

std::optional<bool> fields::flag(const char* name) const {
  const json* j = find(name);
  if (j && j->is_boolean()) return j->get<bool>();
  if (j) refuse_value("RC8036: {} is {}; it must be true or false", name, *j);
  return {};
}

std::optional<std::string> fields::text(const char* name) const {
  const json* j = find(name);
  if (j && j->is_string()) return j->get<std::string>();
  if (j) refuse_value("RC8037: {} is {}; it must be a string", name, *j);
  return {};
}

std::optional<std::vector<int>> fields::whole_numbers(const char* name) const {
  const json* j = find(name);
  if (j && is_list_of(*j, is_whole)) return j->get<std::vector<int>>();
  if (j) refuse_value("RC8038: {} is {}; it must be a list of whole numbers", name, *j);
  return {};
}

std::optional<std::vector<double>> fields::numbers(const char* name) const {
  const json* j = find(name);
  if (j && is_list_of(*j, [](const json& x) { return x.is_number() && x.get<double>() >= 0; }))
    return j->get<std::vector<double>>();
  if (j) refuse_value("RC8039: {} is {}; it must be a list of numbers of at least 0", name, *j);
  return {};
}

std::optional<std::vector<std::vector<std::string>>> fields::lists_of_text(const char* name) const {
  const json* j = find(name);
  const auto is_text = [](const json& x) { return x.is_string(); };
  if (j && is_list_of(*j, [&](const json& x) { return is_list_of(x, is_text); }))
    return j->get<std::vector<std::vector<std::string>>>();
  if (j) refuse_value("RC8040: {} is {}; it must be a list of lists of strings", name, *j);
  return {};
}

std::optional<std::size_t> fields::one_of(const char* name, std::span<const std::string_view> legal) const {
  const json* j = find(name);
  if (!j) return {};
  const auto found = std::find(legal.begin(), legal.end(), j->is_string() ? j->get<std::string_view>() : "");
  if (found != legal.end()) return found - legal.begin();
  refuse(out_, "RC8041: {} is {}; it must be one of {}", name, shown(*j),
         fmt::format("{}", fmt::join(legal, ", ")));
  return {};
}

void fields::only(std::span<const std::string_view> legal, std::string_view object) const {
  for (const auto& [name, value] : line_.items()) {
    if (std::find(legal.begin(), legal.end(), name) != legal.end()) continue;
    const std::string_view written = std::string_view(name).substr(0, 40);
    const auto nearest = std::min_element(
        legal.begin(), legal.end(),
        [&](std::string_view a, std::string_view b) { return edits(a, written) < edits(b, written); });
    if (object.empty())
      refuse(out_, "RC8042: the line has an unknown field \"{}\"; the nearest is {}", written, *nearest);
    else refuse(out_, "RC8043: {} has an unknown field \"{}\"; the nearest is {}", object, written, *nearest);
  }
}

const json& fields::object(const char* name) const {
  static const json nothing = json::object();
  const json* j = find(name);
  if (j && !j->is_object()) refuse_value("RC8044: {} is {}; it must be an object", name, *j);
  return j && j->is_object() ? *j : nothing;
}

void print(const report& out, std::ostream& errors) {
  for (const diagnostic& d : out)
    errors << (d.warning ? "warning" : "error") << "[RC" << d.id << "]: " << d.text.view() << "\n";
}

json to_json(const report& r) {
  json list = json::array();
  for (const diagnostic& d : r) {
    list.push_back({{"id", fmt::format("RC{}", d.id)}, {"text", d.text.view()}});
    if (d.warning) list.back()["warning"] = true;
  }
  return list;
}

answerer::answerer(void (*answer)(const json&, json&, report&))
    : answer_([answer](const json& line, std::string& members, report& out) {
        json made = json::object();
        answer(line, made, out);
        members = dump(made);
        members = members.substr(1, members.size() - 2);
      }) {}

/// The object of a line. If it is not one, the result is null and has a diagnostic.
static json object_of(std::string_view text, report& out) {
  static constexpr runtime::json_limits limits{longest_line, longest_line, 10'000};
  if (text.size() > longest_line) {
    refuse(out,
           "RC8047: the line has more than {} bytes, so neither it nor the rest of the input is read; write "
           "one JSON object on each line",
           longest_line);
    return {};
  }
  try {
    json line = runtime::parse_json<json>(text, "the line", 1, limits);
    if (line.is_object()) return line;
    refuse(out, "RC8046: the line is JSON but not an object; write one JSON object on each line");
  } catch (const runtime::failure& f) {
    rankc::refuse(out, 300) << f.what();
  }
  return {};
}

std::string answer_line(std::string_view text, const answerer& answer) {
  report said;
  std::string members;
  if (const json line = object_of(text, said); line.is_object()) answer(line, members, said);
  std::string out = dump({{"ok", accepts(said)}, {"diagnostics", to_json(said)}});
  if (!accepts(said) || members.empty()) return out;
  out.back() = ',';
  return out.append(members).append("}");
}

/// Reads the next line, or the beginning of a line that is too long. Returns: true if there is one.
static bool read_line(std::istream& in, std::string& line) {
  line.clear();
  std::streambuf& from = *in.rdbuf();
  int c = from.sbumpc();
  if (c == EOF) return false;
  for (; c != EOF && c != '\n' && line.size() <= longest_line; c = from.sbumpc())
    line.push_back(static_cast<char>(c));
  return true;
}

bool answer_lines(std::istream& in, std::ostream& out, const answerer& answer) {
  for (std::string line; line.size() <= longest_line && read_line(in, line);) {
    out << answer_line(line, answer) << '\n';
    if (in.rdbuf()->in_avail() <= 0) out.flush();  // for a reader that waits for it
  }
  return out.flush().good();
}

}  // namespace rankc::tool
