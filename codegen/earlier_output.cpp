// SPDX-License-Identifier: Apache-2.0
#include "earlier_output.hpp"

#include <rankc/codegen/text_template.hpp>
#include <rankc/runtime/output_rules.hpp>
#include <rankc/runtime/trace_events.hpp>
#include <rankc/templates.hpp>

#include <cctype>

#include "emit/emit.hpp"

namespace rankc::codegen {

namespace {

namespace fs = std::filesystem;

constexpr const char program_file[] = "program.cpp";

bool is_source(std::string_view beginning) {
  return has_line(beginning, templates::program_program_cpp, "// Code generated");
}

/// Whether a text is a row of actions: "0F0,..." or "(1F2;0B1)OVERLAP_F_B,...".
bool is_csv(std::string_view beginning) {
  const auto is = [&](std::size_t at, int (*of)(int)) {
    return at < beginning.size() && of(static_cast<unsigned char>(beginning[at])) != 0;
  };
  std::size_t at = beginning.starts_with('(') ? 1 : 0;
  if (!is(at, std::isdigit)) return false;
  while (is(at, std::isdigit)) ++at;
  return is(at, std::isupper);
}

}  // namespace

bool is_timeline(std::string_view beginning) {
  return beginning.starts_with(first_of_schedule_text) || runtime::is_trace(beginning) || is_csv(beginning) ||
         has_line(beginning, templates::timeline_html, "<title>") ||
         has_line(beginning, templates::schedule_svg, "<svg");
}

void refuse_other_sources(const fs::path& folder, const std::map<std::string, std::string>& files) {
  const bool is_emitted = is_source(runtime::beginning_of(folder / program_file));
  for (const auto& [name, text] : files) {
    const fs::path file = folder / name;
    runtime::refuse_other_kind({"--out " + file.string(), file}, "one of emit", [&](std::string_view there) {
      return is_source(text) ? is_source(there) : is_emitted;
    });
  }
}

}  // namespace rankc::codegen
