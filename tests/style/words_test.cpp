// SPDX-License-Identifier: Apache-2.0
// Sample comments, pages and habits.
#include "words.hpp"

#include <doctest/doctest.h>

using namespace rankc::style;

namespace {

std::vector<std::string> texts(std::string_view path, std::string_view text) {
  std::vector<std::string> all;
  for (const block& one : blocks_of(path, text)) all.push_back(one.text);
  return all;
}

using list = std::vector<std::string>;

}  // namespace

TEST_CASE("comments of a source: lines that follow each other are one") {
  CHECK(texts("a.hpp", "/// One\n/// two.\nint a;  // Three.\nint b;  // Four.\n// Five.\n") ==
        list{"One two.", "Three.", "Four.", "Five."});
  CHECK(texts("a.cu", "// SPDX-License-Identifier: X\n// A file.\n\n// Another.\n") ==
        list{"A file.", "Another."});
  CHECK(blocks_of("a.cpp", "int a;\n\n// One\n// two.\n").at(0).line == 3);
}

TEST_CASE("slashes of literals and directives begin no comment") {
  CHECK(texts("a.cpp", "f(\"http://x\");  // One.\nchar c = '/';\n#include <a//b>\n") == list{"One."});
  CHECK(texts("a.cpp", "auto a = R\"(\n// none\n)\";  // One.\n") == list{"One."});
}

TEST_CASE("comments of scripts, and paragraphs of pages without code, tables and headings") {
  CHECK(texts("a.cmake", "# One\n# two.\nset(a b)\n# Three.\n") == list{"One two.", "Three."});
  CHECK(texts("a.md",
              "# Title\n\nOne\ntwo.\n\n- Three\n- Four\n\n| a | b |\n```\ncode\n```\n    more\nFive.\n") ==
        list{"One two.", "Three", "Four", "Five."});
}

TEST_CASE("habits are found, and their absence") {
  CHECK(habits("What a rank holds.") == list{"begins with 'what': begin with the subject"});
  CHECK(habits("What does a rank hold?").empty());
  CHECK(habits("For what it is.") == list{"begins with 'for what': begin with the subject"});
  CHECK(habits("The gradients are dealt out.") == list{"'deal|deals|dealing|dealt out': reduce-scatter"});
  CHECK(habits("The rank is told its number.") == list{"'is|are|was|were told': gets"});
  CHECK(habits("Print `dealt out` and \"beside\".").empty());
  CHECK(habits("The shards that a rank holds.").empty());
}

TEST_CASE("a sentence has at most 38 words") {
  std::string long_one;
  for (int i = 0; i < 38; ++i) long_one += "word ";
  CHECK(habits(long_one + "Word.") == list{"a sentence of 39 words: at most 38"});
  CHECK(habits(long_one).empty());
  CHECK(habits(long_one.substr(5) + "end. And one more.").empty());
}
