// SPDX-License-Identifier: Apache-2.0
#include "mutate_text.hpp"

#include <cctype>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <regex>
#include <stdexcept>
#include <utility>

namespace translation {

namespace {

/// The arguments after an opening parenthesis, up to its match; `at` moves behind that.
std::vector<std::string> arguments_of(const std::string& text, std::size_t& at) {
  std::vector<std::string> list{""};
  bool quoted = false;
  for (int depth = 1; depth > 0; ++at) {
    const char c = text.at(at);
    if (c == '"') quoted = !quoted;
    if (!quoted && (c == '(' || c == '{')) ++depth;
    if (!quoted && (c == ')' || c == '}') && --depth == 0) continue;
    if (!quoted && depth == 1 && c == ',') list.emplace_back();
    else if (!list.back().empty() || !std::isspace(static_cast<unsigned char>(c))) list.back() += c;
  }
  return list;
}

struct place {
  std::size_t begin, end;
  statement what;
};

/// The next call of a function, or run of a kernel's struct, at or after a position. Either begins a line.
std::optional<place> find_call(const std::string& text, const std::string& function, std::size_t from) {
  const std::string lane = "(on|beside|compute|reduce|overlap|(?:to|from)_[a-z0-9]+)";
  const std::regex head("(^|\n)( *)(" + function + "(<[a-z0-9]+>)?\\(" + lane + "[,)]|run\\(" + lane + ", " +
                        function + "\\{)");
  std::smatch m;
  if (!std::regex_search(text.begin() + static_cast<std::ptrdiff_t>(from), text.end(), m, head)) return {};
  const std::size_t begin = from + static_cast<std::size_t>(m.position(2));
  const bool runs = m[3].str().starts_with("run(");
  std::size_t at = text.find(runs ? '{' : '(', begin) + 1;
  statement s{m[2], function, m[4], arguments_of(text, at), runs ? m[6].str() : ""};
  if (runs) ++at;  // the closing parenthesis
  if (text.at(at) != ';') return {};
  return place{begin, at + 1, std::move(s)};
}

}  // namespace

std::string statement::text() const {
  std::string out = before + (!lane.empty() ? "run(" + lane + ", " + name + "{" : name + type + "(");
  for (std::size_t i = 0; i < arguments.size(); ++i) out += (i ? ", " : "") + arguments[i];
  return out + (!lane.empty() ? "});" : ");");
}

std::string& statement::operator[](const std::string& member) {
  for (std::string& a : arguments)
    if (a.starts_with("." + member + " = ")) return a;
  throw std::logic_error(name + " has no member " + member);
}

fault in_call(const std::string& function, int nth, std::function<std::string(statement)> edit) {
  return [=](files& all) {
    int seen = 0;
    for (auto& [name, text] : all)
      for (std::optional<place> p = find_call(text, function, 0); p; p = find_call(text, function, p->end))
        if (seen++ == nth) return void(text.replace(p->begin, p->end - p->begin, edit(p->what)));
    throw std::logic_error("the text has no such call of " + function);
  };
}

std::function<std::string(statement)> dropped() {
  return [](const statement&) { return std::string(); };
}
std::function<std::string(statement)> doubled() {
  return [](const statement& s) { return s.text() + "\n" + s.text(); };
}
std::function<std::string(statement)> renamed(const std::string& to) {
  return [=](statement s) {
    s.name = to;
    return s.text();
  };
}
std::function<std::string(statement)> swapped(const std::string& member, const std::string& other) {
  return [=](statement s) {
    std::string &a = s[member], &b = s[other];
    std::swap(a, b);
    a.replace(0, other.size() + 1, "." + member);
    b.replace(0, member.size() + 1, "." + other);
    return s.text();
  };
}
std::function<std::string(statement)> with(const std::string& member, const std::string& to) {
  return [=](statement s) {
    std::string& a = s[member];
    const std::string what = a.substr(member.size() + 4);
    a = "." + member + " = " + std::regex_replace(to, std::regex("@"), what);
    return s.text();
  };
}
std::function<std::string(statement)> on(const std::string& lane) {
  return [=](statement s) {
    s.lane = lane;
    return s.text();
  };
}
std::function<std::string(statement)> argument(std::size_t index, const std::string& to) {
  return [=](statement s) {
    std::string& a = s.arguments.at(index);
    a = std::regex_replace(to, std::regex("@"), a);
    return s.text();
  };
}

fault matched(const std::string& expression, const std::string& to) {
  return [=](files& all) {
    const std::regex wanted(expression);
    for (auto& [name, text] : all) {
      if (!std::regex_search(text, wanted)) continue;
      text = std::regex_replace(text, wanted, to, std::regex_constants::format_first_only);
      return;
    }
    throw std::logic_error("the text has nothing like " + expression);
  };
}

files read_text(const std::string& folder) {
  files all;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::filesystem::path& p = entry.path();
    if ((p.extension() != ".hpp" && p.extension() != ".cpp") || p.filename() == "main.cpp") continue;
    std::ifstream in(p, std::ios::binary);
    all[p.filename()] = {std::istreambuf_iterator<char>(in), {}};
  }
  return all;
}

void write_text(files all, const std::string& folder, const std::string& name, const std::string& to) {
  std::filesystem::create_directories(folder + "/" + to);
  for (auto& [file, text] : all)
    std::ofstream(folder + "/" + to + "/" + file, std::ios::binary)
        << std::regex_replace(text, std::regex("namespace " + name + "\\b"), "namespace " + to);
}

}  // namespace translation
