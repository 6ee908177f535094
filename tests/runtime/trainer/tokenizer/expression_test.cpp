// SPDX-License-Identifier: Apache-2.0
// Translation of Oniguruma's expressions into PCRE2's; a construct that the two may interpret differently is
// refused.
#include <doctest/doctest.h>
#include <tokenizer/expression.hpp>
#include <tokenizer/pattern.hpp>

#include <stdexcept>
#include <string>

using rankc::runtime::pattern, rankc::runtime::pcre2_expression, rankc::runtime::pcre2_literal;

namespace {

/// The first match in a text, or "no match".
std::string matched(const char* expression, const std::string& text) {
  pattern::match found{};
  if (!pattern(pcre2_expression(expression)).find(text, 0, found)) return "no match";
  return text.substr(found.begin, found.end - found.begin);
}

/// The reason why an expression is refused.
std::string reason(const std::string& expression) {
  try {
    const pattern compiled(pcre2_expression(expression));
  } catch (const std::invalid_argument& refused) {
    return refused.what();
  }
  return "none";
}

}  // namespace

TEST_CASE("expressions match what they match in Ruby") {
  CHECK(matched(R"(\s+)", "a\u0085\u3000\u180e") == "\u0085\u3000");
  CHECK(matched(R"([\s]+)", "a\u180e \t") == " \t");
  CHECK(matched(R"(\S+)", " \u180ea ") == "\u180ea");
  CHECK(matched(R"([\Sb]+)", " \u180eab\u2028") == "\u180eab");
  CHECK(matched(R"([^\S]+)", "ab \u2028c") == " \u2028");
  CHECK(matched(R"(\d+)", "½²٣4") == "٣4");
  CHECK(matched(R"(\D+)", "4½") == "½");
  CHECK(matched(R"(\v)", "\n\x0b") == "\x0b");
  CHECK(matched(R"(.+)", "\nab\r\n") == "ab\r");
  CHECK(matched(R"(\p{Han}+)", "・々漢〆字") == "々漢");
  CHECK(matched(R"(\u4e00\x{4E8C})", "一二") == "一二");
  CHECK(matched(R"((?i:'S))", "'ſ") == "'ſ");
  CHECK(matched(R"(a{2,}b{1}|c{1,2})", "abaab") == "aab");
  CHECK(matched(R"([a\]\-\\]+)", "b]-\\a") == "]-\\a");
  CHECK(matched(R"([&%])", "a&&") == "&");
}

TEST_CASE("what Oniguruma and PCRE2 may read in two ways is refused with its place") {
  for (const auto& [expression, at] :
       std::initializer_list<std::pair<const char*, const char*>>{{R"(a\w)", R"(\w at byte 2)"},
                                                                  {R"(\b)", R"(\b at byte 1)"},
                                                                  {R"(\h)", R"(\h at byte 1)"},
                                                                  {"^a", "^ at byte 1"},
                                                                  {"a$", "$ at byte 2"},
                                                                  {"(?i)a", "(?i at byte 1"},
                                                                  {"(?<n>a)", "(?< at byte 1"},
                                                                  {"a{2}+", "{2}+ at byte 2"},
                                                                  {"a{,2}", "{,2} at byte 2"},
                                                                  {"[[:alpha:]]", "[: at byte 2"},
                                                                  {"[a&&b]", "&& at byte 3"},
                                                                  {"[]a]", "] at byte 2"},
                                                                  {"a{", "{ at byte 2"},
                                                                  {R"(\p{^L})", R"(\p{^L} at byte 1)"},
                                                                  {R"(\1)", R"(\1 at byte 1)"},
                                                                  {R"(\x41)", R"(\x at byte 1)"},
                                                                  {R"(\u12)", R"(\u12 at byte 1)"},
                                                                  {R"(\K)", R"(\K at byte 1)"},
                                                                  {"(?#a)", "(?# at byte 1"}}) {
    CAPTURE(expression);
    CHECK(reason(expression) == std::string(at) + " is not supported");
  }
  CHECK(reason("[a") == "[ has no ]");
  CHECK(reason("[a\\") == "\\ at byte 3 is not supported");
  CHECK(reason("a*") == "it can match an empty text");
  CHECK(reason("") == "it can match an empty text");
  CHECK(reason("(a") == "missing closing parenthesis");
  CHECK(reason(R"(\p{Latinish})").find("unknown property") != std::string::npos);
  CHECK(reason(std::string(70'000, 'a')) == "it has more than 65536 bytes");
}

TEST_CASE("a literal matches itself") {
  const std::string text = "a.*[\\E\u00e9\n#";
  pattern::match found{};
  REQUIRE(pattern(pcre2_literal(text)).find("x" + text, 0, found));
  CHECK(found.begin == 1);
  CHECK(found.end == text.size() + 1);
}
