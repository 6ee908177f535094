// SPDX-License-Identifier: Apache-2.0
// Habits of comments and pages that force a reader to read a sentence twice.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace rankc::style {

/// A comment of one or more lines, or a paragraph of a page.
struct block {
  int line;  ///< The first.
  std::string text;
};

/// The comments of a C++ or CUDA source, of a script whose comments begin with `#`, or the paragraphs of a
/// Markdown page without its code, tables and headings. The ending of `path` decides.
std::vector<block> blocks_of(std::string_view path, std::string_view text);

/// The habits of a block, each as a phrase that names it and its replacement. Text between backticks or
/// quotation marks is ignored.
///   "begins with 'what'"      a comment whose first word is a relative pronoun or a preposition
///   "'deal out': ..."         a private word for one of the field
///   "'is told': ..."          a passive of saying
///   "a sentence of 41 words"  more than 38 words
std::vector<std::string> habits(std::string_view text);

}  // namespace rankc::style
