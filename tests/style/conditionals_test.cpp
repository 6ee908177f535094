// SPDX-License-Identifier: Apache-2.0
// Sample expressions: a conditional operator inside another one is found, and one next to another is not.
#include <doctest/doctest.h>

#include <string>

#include "rules.hpp"

using namespace rankc::style;

namespace {

std::size_t nested(const std::string& statements) {
  return nested_conditionals(code(lex("void f() { ; " + statements + " }").tokens)).size();
}

}  // namespace

TEST_CASE("a conditional in a branch of another one is found") {
  CHECK(nested("x = a ? b : c ? d : e;") == 1);
  CHECK(nested("x = a ? b ? c : d : e;") == 1);
  CHECK(nested("x = a ? b : c ? d : e ? f : g;") == 2);
  CHECK(nested("return a ? b : (c ? d : e);") == 1);
  CHECK(nested("x = a ? (b ? c : d) : e;") == 1);
  CHECK(nested("x = a ? f(b, c ? d : e) : g;") == 1);
  CHECK(nested("x = a ? T{b, {c ? d : e}} : g;") == 1);
  CHECK(nested("x = a ? t[b ? 0 : 1] : c;") == 1);
  CHECK(nested("f(a ? b : c + (d ? e : g));") == 1);
  CHECK(nested("x = a ? f<b, c>(1) : g<d, e>(h ? 1 : 2);") == 1);
  CHECK(nested("x = a ? b : f<c, d>(1) ? e : g;") == 1);
  CHECK(nested("x = a ? b, c ? d : e : g;") == 1);
}

TEST_CASE("a conditional in the condition of another one is found") {
  CHECK(nested("x = (a ? b : c) ? d : e;") == 1);
  CHECK(nested("x = f(1, a ? b : c) && g ? d : e;") == 1);
  CHECK(nested("return !(a || (b ? c : d)) ? e : f;") == 1);
}

TEST_CASE("the line is that of the inner ?") {
  const auto found = nested_conditionals(code(lex("int x = a\n ? b\n : c\n ? d : e;").tokens));
  REQUIRE(found.size() == 1);
  CHECK(found[0].line == 4);
}

TEST_CASE("conditionals beside each other are not nested") {
  CHECK(nested("x = a ? b : c; y = d ? e : f;") == 0);
  CHECK(nested("f(a ? b : c, d ? e : g);") == 0);
  CHECK(nested("x = {a ? b : c, {d ? e : f}};") == 0);
  CHECK(nested("int x = a ? b : c, y = d ? e : f;") == 0);
  CHECK(nested("x = (a ? b : c) + (d ? e : f);") == 0);
  CHECK(nested("(a ? b : c) = d ? e : f;") == 0);
  CHECK(nested("(a ? b : c) += d ? e : f;") == 0);
  CHECK(nested("if (a ? b : c) d ? e() : f();") == 0);
  CHECK(nested("if constexpr (a ? b : c) d ? e() : f();") == 0);
  CHECK(nested("for (auto x : a ? b : c) y = x ? d : e;") == 0);
  CHECK(nested("switch (a) { case 1: return b ? c : d; default: return e ? g : h; }") == 0);
  CHECK(nested("for (x = a ? b : c; d; e ? g() : h()) i;") == 0);
}

TEST_CASE("the body of a lambda begins anew") {
  CHECK(nested("x = a ? [&] { return b ? c : d; }() : e;") == 0);
  CHECK(nested("x = a ? f([](int i) -> long { return i ? c : d; }) : e;") == 0);
  CHECK(nested("x = a ? [&] { if (b ? c : d) { return 1; } }() : e;") == 0);
  CHECK(nested("x = a ? [&] { return b ? c ? d : e : g; }() : h;") == 1);
  CHECK(nested("x = a ? [&] { return b; }() : c ? d : e;") == 1);
  CHECK(nested("x = [&] { return a ? b : c; }() ? d : e;") == 0);
}

TEST_CASE("a ? in a comment or a literal is no conditional") {
  CHECK(nested("x = a ? '?' : \"b ? c : d\"; // a ? b : c ? d : e\n") == 0);
  CHECK(nested("x = a ? b /* ? : */ : R\"(c ? d : e)\";") == 0);
}
