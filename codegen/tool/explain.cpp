// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <rankc/messages.hpp>
#include <rankc/runtime/failure.hpp>
#include <rankc/runtime/printable.hpp>
#include <string_view>

#include "commands.hpp"
#include "rules_text.hpp"

namespace rankc::tool {

namespace {

/// A heading and a paragraph next to it, on lines of at most 100 columns.
std::string paragraph(std::string_view heading, std::string_view text) {
  std::string out = fmt::format("  {:<8}", heading);
  const std::size_t indent = out.size();
  for (std::size_t at = 0, column = indent; at < text.size();) {
    const std::string_view word = text.substr(at, std::min(text.find(' ', at), text.size()) - at);
    if (column + 1 + word.size() > 100) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    }
    out += fmt::format(" {}", word);
    column += 1 + word.size();
    at += word.size() + 1;
  }
  return out + "\n";
}

std::string long_form(const rule_text& r) {
  return fmt::format("RC{}: {}\n\n{}\n{}\n  {:<8} {}\n\n{}", r.id, r.title, paragraph("rule", r.says),
                     paragraph("why", r.why), "breaks", r.breaks, paragraph("mend", r.mend));
}

/// The part of rankc that prints the sentence with this number.
std::string_view speaker(std::string_view number) {
  if (number < "5300") return "the core of the runtime";
  if (number < "6000") return "the launcher";
  if (number < "7000") return "the trainer";
  return number < "8000" ? "the generator and its proofs" : "the rankc tool";
}

/// A sentence of messages.txt, which a program prints while it runs; empty if no sentence has this number.
std::string run_time_form(std::string_view number) {
  const std::string begin = fmt::format("RC{}: ", number);
  const std::string_view all = templates::messages_txt;
  std::size_t at = all.starts_with(begin) ? 0 : all.find("\n" + begin);
  if (number.size() != 4 || at == all.npos) return "";
  if (at != 0) ++at;
  return fmt::format("{}\n\n  said by  {}\n  {{}}       a value that is filled in\n",
                     all.substr(at, all.find('\n', at) - at), speaker(number));
}

}  // namespace

int explain(const std::string& id, std::ostream& out, std::ostream& errors) {
  const auto rules = rule_texts();
  if (id.empty()) {
    for (const rule_text& r : rules) out << fmt::format("RC{}  {}\n", r.id, r.title);
    out << templates::messages_txt;
    return 0;
  }
  const bool has_letters = id.size() > 2 && (id.starts_with("RC") || id.starts_with("rc"));
  const std::string number = has_letters ? id.substr(2) : id;
  const auto found = std::find_if(rules.begin(), rules.end(),
                                  [&](const rule_text& r) { return std::to_string(r.id) == number; });
  if (found == rules.end()) {
    if (const std::string text = run_time_form(number); !text.empty()) {
      out << text;
      return 0;
    }
    const std::string text =
        runtime::say("RC8010: {} is not the id of a rule or of a sentence; `rankc explain` lists them", id);
    errors << "error: " << runtime::error_line(text) << "\n";
    return 1;
  }
  out << long_form(*found);
  return 0;
}

}  // namespace rankc::tool
