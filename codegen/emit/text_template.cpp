// SPDX-License-Identifier: Apache-2.0
#include <rankc/codegen/text_template.hpp>

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <stdexcept>

namespace rankc::codegen {

std::string fill(std::string_view text, const holes& values) {
  std::string out;
  std::vector<bool> used(values.size());
  while (!text.empty()) {
    const std::size_t open = text.find('@');
    if (open == text.npos) {
      out += text;
      break;
    }
    const std::size_t close = text.find('@', open + 1);
    const std::string_view name = text.substr(open + 1, close - open - 1);
    const auto hole =
        std::find_if(values.begin(), values.end(), [&](const auto& v) { return v.first == name; });
    if (close == text.npos || hole == values.end())
      throw std::logic_error("template: no value for @" + std::string(name.substr(0, 40)) + "@");
    used[static_cast<std::size_t>(hole - values.begin())] = true;
    out += text.substr(0, open);
    const std::size_t line = out.rfind('\n') + 1;
    const bool alone = out.find_first_not_of(' ', line) == out.npos && text.substr(close + 1, 1) == "\n";
    std::string_view value = hole->second;
    if (alone) {
      const std::string indent = out.substr(line);
      while (value.ends_with('\n')) value.remove_suffix(1);
      if (value.empty()) out.resize(line);
      for (std::size_t i = 0; i < value.size(); ++i) {
        out += value[i];
        if (value[i] == '\n' && i + 1 < value.size() && value[i + 1] != '\n') out += indent;
      }
    } else {
      out += value;
    }
    text.remove_prefix(close + 1 + (alone && value.empty()));
  }
  for (std::size_t i = 0; i < used.size(); ++i)
    if (!used[i]) throw std::logic_error("template: nothing asks for @" + std::string(values[i].first) + "@");
  return out;
}

namespace {

/// True if a line is a template's line with any values in its holes.
bool is_filled(std::string_view line, std::string_view of) {
  const std::size_t open = of.find('@');
  if (open == of.npos) return line == of;
  if (!line.starts_with(of.substr(0, open))) return false;
  const std::string_view rest = of.substr(of.find('@', open + 1) + 1);
  for (std::size_t at = open; at <= line.size(); ++at)
    if (is_filled(line.substr(at), rest)) return true;
  return false;
}

std::string_view line_at(std::string_view text, std::size_t at) {
  return text.substr(at, text.find('\n', at) - at);
}

}  // namespace

bool has_line(std::string_view text, std::string_view of, std::string_view begin) {
  const std::string_view line = line_at(of, of.find(begin));
  for (std::size_t at = 0; at < text.size(); at += line_at(text, at).size() + 1)
    if (is_filled(line_at(text, at), line)) return true;
  return false;
}

std::string call(const std::string& name, const std::vector<std::string>& arguments, int indent,
                 std::string_view end) {
  std::string out = name + "(";
  std::size_t line = out.size() + static_cast<std::size_t>(indent);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string piece = arguments[i] + (i + 1 < arguments.size() ? "," : ")" + std::string(end));
    if (i > 0 && line + 1 + piece.size() > 100) {
      out += "\n    ";
      line = static_cast<std::size_t>(indent) + 4;
    } else if (i > 0) {
      out += ' ';
      ++line;
    }
    out += piece;
    line += piece.size();
  }
  return arguments.empty() ? out + ")" + std::string(end) : out;
}

std::string wrap(const std::vector<std::string>& words, std::string_view separator,
                 std::string_view line_start, std::size_t used) {
  std::string out;
  std::size_t line = used;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) {
      out += separator;
      line += separator.size();
      if (line + 1 + words[i].size() > 98) {
        out += "\n" + std::string(line_start);
        line = line_start.size();
      } else {
        out += ' ';
        ++line;
      }
    }
    out += words[i];
    line += words[i].size();
  }
  return out;
}

namespace {

/// The words of a line of code, each with the space behind it: code may be broken between them.
class code_words {
 public:
  explicit code_words(std::string_view code)
      : depth_of_members_(code.starts_with("run(") ? 2 : 1), is_value_(code.starts_with("return ")) {
    for (const char c : code) add(c);
    words.push_back(std::move(word_));
  }
  std::vector<std::string> words;

 private:
  void add(char c) {
    word_ += c;
    if (c == '"') quoted_ = !quoted_;
    if (quoted_) return;
    if (c == '(' || c == '{') ++depth_;
    if (c == ')' || c == '}') --depth_;
    if (c == '<' || c == '>') angles_ += c == '<' ? 1 : -1;
    const bool ends =
        is_value_ ? word_.ends_with("}, ") : word_.ends_with(", ") && depth_ <= depth_of_members_;
    if (!ends || angles_ > 0) return;
    words.push_back(std::move(word_));
    word_.clear();
  }

  std::size_t depth_ = 0, depth_of_members_;
  bool is_value_;  // broken between the values in its braces
  int angles_ = 0;
  bool quoted_ = false;
  std::string word_;
};

}  // namespace

std::string on_one_line(std::string_view text) {
  std::string out;
  bool begins_line = false;
  for (const char c : text) {
    if (c == ' ' && begins_line) continue;
    begins_line = c == '\n';
    out += begins_line ? ' ' : c;
  }
  return out;
}

std::string break_code(std::string_view code, std::size_t indent) {
  std::string out;
  std::size_t line = indent;
  for (const std::string& word : code_words(code).words) {
    const std::size_t columns = word.size() - (word.ends_with(' ') ? 1 : 0);
    if (!out.empty() && line + columns > 100) {
      while (out.ends_with(' ')) out.pop_back();
      out += "\n    ";
      line = indent + 4;
    }
    out += word;
    line += word.size();
  }
  return out;
}

std::string indented(std::string_view text, std::size_t by) {
  std::string out(by, ' ');
  for (const char c : text) {
    out += c;
    if (c == '\n') out.append(by, ' ');
  }
  return out;
}

bool has_word(std::string_view text, std::string_view word) {
  const auto is_of_a_word = [&](std::size_t i) {
    return i < text.size() && (std::isalnum(static_cast<unsigned char>(text[i])) || text[i] == '_');
  };
  for (std::size_t at = 0; (at = text.find(word, at)) != text.npos; ++at)
    if ((at == 0 || !is_of_a_word(at - 1)) && !is_of_a_word(at + word.size())) return true;
  return false;
}

std::string readable_bytes(std::size_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  if (bytes < 1024 * 1024) return fmt::format("{:.1f} KiB", bytes / 1024.0);
  if (bytes < 1024ull * 1024 * 1024) return fmt::format("{:.1f} MiB", bytes / 1048576.0);
  return fmt::format("{:.2f} GiB", bytes / 1073741824.0);
}

}  // namespace rankc::codegen
