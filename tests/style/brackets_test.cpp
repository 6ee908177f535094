// SPDX-License-Identifier: Apache-2.0
// Sample sources: the pairs of brackets, and the brackets that begin a block or a lambda.
#include "brackets.hpp"

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>

using namespace rankc::style;

namespace {

/// The source with each bracket pair at its outermost level as one `_`.
std::string outline(std::string_view text) {
  const code source(lex(text).tokens);
  std::string joined;
  for (std::size_t i = 0; i < source.size(); i = source.after(i))
    joined += (joined.empty() ? "" : " ") + (source.opens(i) ? "_" : std::string(source[i].text));
  return joined;
}

/// True if the first `bracket` of the source is a block or a lambda capture.
bool is_block(std::string_view text) {
  const code source(lex(text).tokens);
  std::size_t i = 0;
  while (!source.is(i, "{")) ++i;
  return source.is_block(i);
}
bool is_capture(std::string_view text) {
  const code source(lex(text).tokens);
  std::size_t i = 0;
  while (!source.is(i, "[")) ++i;
  return source.is_capture(i);
}

}  // namespace

TEST_CASE("template arguments are a bracket pair, and less-than is not") {
  CHECK(outline("std::map<int, std::pair<int, int>> a, b;") == "std :: map _ a , b ;");
  CHECK(outline("f<a, b>(x), g();") == "f _ _ , g _ ;");
  CHECK(outline("x.template operator()<K, V>(y)") == "x . template operator _ _ _");
  CHECK(outline("template <class T = int, class U = int> T t") == "template _ T t");
  CHECK(outline("[&]<class T>(T x) {}") == "_ _ _ _");
  CHECK(outline("f<A && B>(x)") == "f _ _");
  CHECK(outline("f<(1 > 2), g{1}>(x)") == "f _ _");
  CHECK(outline("a < b; c > d;") == "a < b ; c > d ;");
  CHECK(outline("a = b < c ? d : e > f") == "a = b < c ? d : e > f");
  CHECK(outline("a[1] < b > c") == "a _ < b > c");
  CHECK(outline("bool operator<(x) ; a > b") == "bool operator < _ ; a > b");
  CHECK(outline("return <a> b") == "return < a > b");
}

TEST_CASE("the arguments of a kernel launch are a bracket pair") {
  CHECK(outline("k<<<1, 2>>>(x), g();") == "k _ _ , g _ ;");
  CHECK(outline("k<float, 2><<<n<1, 2>, (a > b), 0>>>(x);") == "k _ _ _ ;");
}

TEST_CASE("brackets that are not balanced are an error that names the line") {
  CHECK_THROWS_WITH_AS(code(lex("f(\n}").tokens), "line 2: } has no partner", std::invalid_argument);
  CHECK_THROWS_WITH_AS(code(lex("f {\n(").tokens), "line 2: ( has no partner", std::invalid_argument);
  CHECK_THROWS_WITH_AS(code(lex("]").tokens), "line 1: ] has no partner", std::invalid_argument);
}

TEST_CASE("braces with statements are a block, and braces with initializers are not") {
  CHECK(is_block("{ a; }"));
  CHECK(is_block("{ if (a) { b; } }"));
  CHECK_FALSE(is_block("{ a, b }"));
  CHECK_FALSE(is_block("{.a = [] { return 1; }, .b = f(x)}"));
  CHECK_FALSE(is_block("{}"));
}

TEST_CASE("a [ begins a lambda, a subscript, a structured binding or an attribute") {
  CHECK(is_capture("x = [&] { a; };"));
  CHECK(is_capture("return [a, b](int c) { d; };"));
  CHECK(is_capture("f([] {})"));
  CHECK(is_capture("if (a) { b; } [&] { c; }();"));
  CHECK_FALSE(is_capture("a[1]"));
  CHECK_FALSE(is_capture("f()[1]"));
  CHECK_FALSE(is_capture("table<int>[1]"));
  CHECK_FALSE(is_capture("T{1, 2}[0]"));
  CHECK_FALSE(is_capture("auto [a, b] = c;"));
  CHECK_FALSE(is_capture("[[nodiscard]] int f();"));
}
