// SPDX-License-Identifier: Apache-2.0
// Fills the @holes@ of templates, and formats text that several emitters print.
#pragma once
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rankc::codegen {

using holes = std::vector<std::pair<std::string_view, std::string>>;

/// The template's text with every @hole@ replaced. A hole alone on its line takes a block, indented like the
/// hole; an empty block removes the line.
/// Errors: std::logic_error for a hole without a value, or a value without a hole.
std::string fill(std::string_view text, const holes&);

/// True if `text` contains the first line of the template `of` that begins with `begin`, its holes filled.
bool has_line(std::string_view text, std::string_view of, std::string_view begin);

/// "name(a, b, c);", broken before 100 columns with `indent` spaces already used.
std::string call(const std::string& name, const std::vector<std::string>& arguments, int indent,
                 std::string_view end = ";");

/// Words on lines of at most 100 columns. `used`: columns of the first line that are already used. Each later
/// line begins with `line_start`.
std::string wrap(const std::vector<std::string>& words, std::string_view separator,
                 std::string_view line_start, std::size_t used = 24);

/// A text with each end of a line, and the indentation of the next one, replaced by a space.
std::string on_one_line(std::string_view);
/// A statement or a declaration on lines of at most 100 columns, broken between arguments and members.
/// `indent`: columns that are already used.
std::string break_code(std::string_view, std::size_t indent);
/// A text with each of its lines indented.
std::string indented(std::string_view, std::size_t by);

/// True if a text has a word that is not part of another word.
bool has_word(std::string_view text, std::string_view word);

/// 6,291,456 -> "6.0 MiB".
std::string readable_bytes(std::size_t);

}  // namespace rankc::codegen
