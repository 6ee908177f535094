// SPDX-License-Identifier: Apache-2.0
// Sample sources with the tokens that the lexer must find, and their lines.
#include "lexer.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace rankc::style;

namespace {

/// The tokens with a space between them.
std::string tokens(std::string_view text) {
  std::string joined;
  for (const token& one : lex(text).tokens) joined += (joined.empty() ? "" : " ") + std::string(one.text);
  return joined;
}

}  // namespace

TEST_CASE("words, numbers and marks are tokens, and the longest mark is taken") {
  CHECK(tokens("a+=b->c::d...;") == "a += b -> c :: d ... ;");
  CHECK(tokens("x = 1'000 + .5e-3 + 0x1p+4 - 2") == "x = 1'000 + .5e-3 + 0x1p+4 - 2");
  CHECK(tokens("k<<<1, 2>>>(x)") == "k <<< 1 , 2 > > > ( x )");
  CHECK(tokens("v<v<int>> x; a <=> b") == "v < v < int > > x ; a <=> b");
}

TEST_CASE("comments give no tokens") {
  CHECK(tokens("a; // b, c \" ' ? \nd;") == "a ; d ;");
  CHECK(tokens("a /* b, \n c ? */ d /**/ e /*/ f */ g") == "a d e g");
}

TEST_CASE("a preprocessor directive gives no tokens, with the lines it goes on in") {
  CHECK(tokens("#include <a/b.hpp>\na;") == "a ;");
  CHECK(tokens("  #define X(a) a = 1, \\\n  b = 2\nc;") == "c ;");
  CHECK(tokens("#error it isn't so\na;") == "a ;");
  CHECK(tokens("#define X 1  /* a comment\n on two lines */\nb;") == "b ;");
  CHECK(tokens("a # b") == "a # b");
}

TEST_CASE("a literal is one token, whatever it holds") {
  CHECK(tokens(R"(f("a, \"b\"; // c", 'd', '\'', '"');)") ==
        R"(f ( "a, \"b\"; // c" , 'd' , '\'' , '"' ) ;)");
  CHECK(lex("u8\"a\"").tokens.back().kind == token_kind::literal);
}

TEST_CASE("a raw string literal is one token, up to its own delimiter") {
  const lexed source = lex("a = R\"x(1, \" )\" ? \n // )y\" \n)x\";\nb;");
  REQUIRE(source.tokens.size() == 6);
  CHECK(source.tokens[2].kind == token_kind::literal);
  CHECK(source.tokens[2].text == "R\"x(1, \" )\" ? \n // )y\" \n)x\"");
  CHECK(source.tokens[4].text == "b");
  CHECK(source.raw == std::vector<bool>{true, true, true, false});
  CHECK(tokens("LR\"(a)\" u8R\"(b)\" XR \"(c)\"") == "LR\"(a)\" u8R\"(b)\" XR \"(c)\"");
}

TEST_CASE("every token knows its line") {
  const lexed source = lex("a\n/* \n */ b \\\n c\n#define X \\\n 1\n\"s\" d");
  std::vector<int> lines;
  for (const token& one : source.tokens) lines.push_back(one.line);
  CHECK(lines == std::vector<int>{1, 3, 4, 7, 7});
  CHECK(source.lines.size() == 7);
  CHECK(source.lines[6] == "\"s\" d");
}

TEST_CASE("an end of the text within a token or a comment ends it") {
  CHECK(tokens("a \"b") == "a \"b");
  CHECK(tokens("a /* b") == "a");
  CHECK(tokens("a R\"(b") == "a R\"(b");
  CHECK(tokens("'\\") == "'\\");
  CHECK(tokens("") == "");
}
