// SPDX-License-Identifier: Apache-2.0
// Filling the @holes@ of templates, and the few shapes of text that several emitters print.
#pragma once
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rankc::codegen {

using holes = std::vector<std::pair<std::string_view, std::string>>;

/// The template's text with every @hole@ replaced. A hole alone on its line takes a block, indented as the
/// hole is; an empty block takes its line away.
/// Errors: std::logic_error for a hole without a value, or a value that no hole asks for.
std::string fill(std::string_view text, const holes&);

/// Whether a text has a line of a template, its holes filled: the template's first that begins so.
bool has_line(std::string_view text, std::string_view of, std::string_view begin);

/// "name(a, b, c);", broken before 100 columns with `indent` spaces already used.
std::string call(const std::string& name, const std::vector<std::string>& arguments, int indent,
                 std::string_view end = ";");

/// Words put side by side on lines of at most 100 columns, of which the first has `used` already; each line
/// after it begins with `line_start`.
std::string wrap(const std::vector<std::string>& words, std::string_view separator,
                 std::string_view line_start, std::size_t used = 24);

/// Whether a text has a word, and not as a part of another.
bool has_word(std::string_view text, std::string_view word);

/// 6,291,456 -> "6.0 MiB".
std::string readable_bytes(std::size_t);

}  // namespace rankc::codegen
