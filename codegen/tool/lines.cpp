// SPDX-License-Identifier: Apache-2.0
#include "lines.hpp"

#include <algorithm>
#include <istream>
#include <limits>
#include <ostream>

namespace rankc::tool {

namespace {

/// JSON text that is valid UTF-8 whatever was quoted in it.
std::string dump(const json& j) { return j.dump(-1, ' ', false, json::error_handler_t::replace); }

bool is_whole(const json& j) {
  if (!j.is_number_integer()) return false;
  if (j.is_number_unsigned()) return j.get<std::uint64_t>() <= std::numeric_limits<int>::max();
  const auto n = j.get<std::int64_t>();
  return n >= std::numeric_limits<int>::min() && n <= std::numeric_limits<int>::max();
}

bool is_list_of(const json& j, auto each) { return j.is_array() && std::all_of(j.begin(), j.end(), each); }

}  // namespace

const json* fields::find(const char* name) const {
  const auto found = line_.find(name);
  return found == line_.end() || found->is_null() ? nullptr : &*found;
}

void fields::refuse_type(const char* name, const json& value, std::string_view expected) const {
  std::string shown = dump(value);
  if (shown.size() > 40) shown = shown.substr(0, 37) + "...";
  refuse(out_, 300) << name << " is " << shown << "; it must be " << expected;
}

std::optional<int> fields::whole(const char* name) const {
  const json* j = find(name);
  if (j && is_whole(*j)) return j->get<int>();
  if (j) refuse_type(name, *j, "a whole number of 32 bits");
  return {};
}

std::optional<double> fields::number(const char* name) const {
  const json* j = find(name);
  if (j && j->is_number() && j->get<double>() >= 0) return j->get<double>();
  if (j) refuse_type(name, *j, "a number of at least 0");
  return {};
}

std::optional<bool> fields::flag(const char* name) const {
  const json* j = find(name);
  if (j && j->is_boolean()) return j->get<bool>();
  if (j) refuse_type(name, *j, "true or false");
  return {};
}

std::optional<std::string> fields::text(const char* name) const {
  const json* j = find(name);
  if (j && j->is_string()) return j->get<std::string>();
  if (j) refuse_type(name, *j, "a string");
  return {};
}

std::optional<std::vector<int>> fields::whole_numbers(const char* name) const {
  const json* j = find(name);
  if (j && is_list_of(*j, is_whole)) return j->get<std::vector<int>>();
  if (j) refuse_type(name, *j, "a list of whole numbers");
  return {};
}

std::optional<std::vector<std::vector<std::string>>> fields::lists_of_text(const char* name) const {
  const json* j = find(name);
  const auto is_text = [](const json& x) { return x.is_string(); };
  if (j && is_list_of(*j, [&](const json& x) { return is_list_of(x, is_text); }))
    return j->get<std::vector<std::vector<std::string>>>();
  if (j) refuse_type(name, *j, "a list of lists of strings");
  return {};
}

const json& fields::object(const char* name) const {
  static const json nothing = json::object();
  const json* j = find(name);
  if (j && !j->is_object()) refuse_type(name, *j, "an object");
  return j && j->is_object() ? *j : nothing;
}

json to_json(const report& r) {
  json list = json::array();
  for (const diagnostic& d : r) {
    list.push_back({{"id", fmt::format("RC{}", d.id)}, {"text", d.text.view()}});
    if (d.warning) list.back()["warning"] = true;
  }
  return list;
}

std::string answer_line(std::string_view text, const answerer& answer) {
  report said;
  json made = json::object();
  const json line = json::parse(text, nullptr, false);
  if (line.is_object()) answer(line, made, said);
  else
    refuse(said, 300) << "the line is not " << (line.is_discarded() ? "JSON" : "a JSON object")
                      << "; one object a line is expected";
  json out{{"ok", accepts(said)}, {"diagnostics", to_json(said)}};
  if (accepts(said)) out.update(made);
  return dump(out);
}

bool answer_lines(std::istream& in, std::ostream& out, const answerer& answer) {
  for (std::string line; std::getline(in, line);)
    out << answer_line(line, answer) << std::endl;  // for who waits for it
  return out.good();
}

}  // namespace rankc::tool
