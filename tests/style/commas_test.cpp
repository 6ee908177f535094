// SPDX-License-Identifier: Apache-2.0
// Sample statements: statements joined by a comma operator are found, and no other comma is.
#include <doctest/doctest.h>

#include <string>

#include "rules.hpp"

using namespace rankc::style;

namespace {

/// The number of findings in a function's body.
std::size_t commas(const std::string& statements) {
  return comma_statements(code(lex("void f() { ; " + statements + " }").tokens)).size();
}

std::size_t commas_outside(std::string_view declarations) {
  return comma_statements(code(lex(declarations).tokens)).size();
}

}  // namespace

TEST_CASE("expressions joined by a comma are found") {
  CHECK(commas("a = 1, b = 2;") == 1);
  CHECK(commas("return x(), y;") == 1);
  CHECK(commas("f(x), g(y);") == 1);
  CHECK(commas("f<a, b>(x), g();") == 1);
  CHECK(commas("k<<<1, 2>>>(x), g();") == 1);
  CHECK(commas("*p = 1, q = 2;") == 1);
  CHECK(commas("++a, ++b;") == 1);
  CHECK(commas("a[i] = 1, b.c += 2, d->e();") == 1);
  CHECK(commas("std::cout << x, y;") == 1);
  CHECK(commas("a = b < c, d = e > f;") == 1);
  CHECK(commas("c ? a : b, d;") == 1);
  CHECK(commas("static_cast<void>(a), b;") == 1);
  CHECK(commas("(void)a, b;") == 1);
  CHECK(commas("this->a = 1, b = 2;") == 1);
  CHECK(commas("throw a, b;") == 1);
  CHECK(commas("delete p, q = 0;") == 1);
  CHECK(commas("\"a\", b;") == 1);
}

TEST_CASE("a comma after a call of a template is found") {
  CHECK(commas("T::template f<a, b>(x), g();") == 1);
  CHECK(commas("n::T<a>::template f<b>(x), g();") == 1);
  CHECK(commas("x.template f<a, b>(y), g();") == 1);
  CHECK(commas("this->template f<a>(x), g();") == 1);
  CHECK(commas("std::get<0>(a) = 1, std::get<1>(a) = 2;") == 1);
  CHECK(commas("T<a>::f(x), g();") == 1);
  CHECK(commas("f<(a > b), sizeof(c)>(x), g();") == 1);
  CHECK(commas("x = []<class T>(T t) { t = 1, a = 2; };") == 1);
  CHECK(commas("if constexpr (requires { x.f(); }) a = 1, b = 2;") == 1);
  CHECK(commas_outside("template <class T> void f(T t) { t = 1, a = 2; }") == 1);
  CHECK(commas_outside("template <class... T> void f(T... t) { ((t = 1, a = 2), ...); return t, a; }") == 1);
}

TEST_CASE("a comma below a branch, a loop, a case or a label is found") {
  CHECK(commas("if (a) b = 1, c = 2;") == 1);
  CHECK(commas("if constexpr (a) return b, c; else return d(), e;") == 2);
  CHECK(commas("if (a) { b; } else c = 1, d = 2;") == 1);
  CHECK(commas("for (;;) a = 1, b = 2;") == 1);
  CHECK(commas("while (a) if (b) c = 1, d = 2;") == 1);
  CHECK(commas("do a = 1, b = 2; while (c);") == 1);
  CHECK(commas("switch (a) { case 1: b = 1, c = 2; break; case n::x: default: d(), e(); }") == 2);
  CHECK(commas("again: a = 1, b = 2;") == 1);
  CHECK(commas("[[likely]] a = 1, b = 2;") == 1);
}

TEST_CASE("a comma after a block or within one is found") {
  CHECK(commas("if (a) { b; } c = 1, d = 2;") == 1);
  CHECK(commas("if (a) {} c = 1, d = 2;") == 1);
  CHECK(commas("for (auto& [a, b] : m) { c = 1, d = 2; }") == 1);
  CHECK(commas("{ { a = 1, b = 2; } }") == 1);
  CHECK(commas("x = [&] { a = 1, b = 2; };") == 1);
  CHECK(commas("x = [&](int i) -> int { if (i) return a, b; return 1; }, y = 2;") == 2);
  CHECK(commas("g([] { return a(), b; }, c);") == 1);
  CHECK(commas_outside("struct x { x() : a(1), b{2} { c = 1, d = 2; } };") == 1);
  CHECK(commas_outside("namespace n { struct x { int f() { return a, b; } }; }") == 1);
}

TEST_CASE("the line is that of the comma") {
  const auto found = comma_statements(code(lex("void f() {\n  a = 1;\n  b\n   = 1, c = 2;\n}").tokens));
  REQUIRE(found.size() == 1);
  CHECK(found[0].line == 4);
}

TEST_CASE("declarations have commas") {
  CHECK(commas("int a = 1, b = 2;") == 0);
  CHECK(commas("const auto *a = f(), &b = c;") == 0);
  CHECK(commas("std::map<int, std::pair<int, int>> a, b;") == 0);
  CHECK(commas("::n::T a(1), b(2);") == 0);
  CHECK(commas("x<y>::z a{1}, b{2};") == 0);
  CHECK(commas("T *a, **b;") == 0);
  CHECK(commas("unsigned a : 3, b : 4;") == 0);
  CHECK(commas("double (*a)(int, int), (*b)(int);") == 0);
  CHECK(commas("decltype(x) a, b;") == 0);
  CHECK(commas("typename T::x a, b;") == 0);
  CHECK(commas("T::template x<a, b> c, d;") == 0);
  CHECK(commas("typename T::template x<a, b>::y *c, d;") == 0);
  CHECK(commas("alignas(16) float a, b;") == 0);
  CHECK(commas("[[maybe_unused]] T a, b;") == 0);
  CHECK(commas("auto [a, b] = c;") == 0);
  CHECK(commas("extern __shared__ float a[], b[];") == 0);
  CHECK(commas("if (a) {} T b, c;") == 0);
  CHECK(commas("auto a = [&] { b; }, c = d;") == 0);
  CHECK(commas_outside("struct x { int a; } b, c;") == 0);
  CHECK(commas_outside("static constexpr struct { int a; } b{1}, c{2};") == 0);
  CHECK(commas_outside("enum class e : int { a, b }; enum { c, d } g, h;") == 0);
  CHECK(commas_outside("struct x : a, b<c, d> { int e; };") == 0);
  CHECK(commas_outside("x::x() : a(1), b{2} {} y::y() : c(1), d(2) { e; } using f::g, f::h;") == 0);
  CHECK(commas_outside("x::x(int i) : a{i}, b([&] { return 1; }()) { c; } int d, e;") == 0);
  CHECK(commas_outside("template <class T, class U> requires C<T, U> void f(T, U);") == 0);
  CHECK(commas_outside("extern \"C\" { int a, b; } MACRO(a, b) int c, d;") == 0);
}

TEST_CASE("calls, lists and headers have commas") {
  CHECK(commas("f(a, b);") == 0);
  CHECK(commas("return {a, b};") == 0);
  CHECK(commas("return f<a, b>(c, d)[1];") == 0);
  CHECK(commas("x = T{.a = 1, .b = {2, 3}};") == 0);
  CHECK(commas("k<<<1, 2, 0, s>>>(x, y);") == 0);
  CHECK(commas("x.template operator()<8, 1>();") == 0);
  CHECK(commas("for (i = 0, j = 1; i < j; ++i, --j) f(i, j);") == 0);
  CHECK(commas("x = [a, &b](int c, int d) { return c; };") == 0);
  CHECK(commas("x = []<class T, int N>(T t) { return t; };") == 0);
  CHECK(commas("(f(args), ...);") == 0);
  CHECK(commas("x.operator,(y);") == 0);
  CHECK(commas_outside("T operator,(const T&, const T&); T T::operator,(T a) { return a; }") == 0);
}

TEST_CASE("what stands in a comment, a literal or a directive is no statement") {
  CHECK(commas("// a = 1, b = 2;\n/* c = 1, d = 2; */ e = \"a, b; c, d;\";") == 0);
  CHECK(commas("a = R\"(b = 1, c = 2;)\";") == 0);
  CHECK(commas("\n#define X a = 1, b = 2;\n") == 0);
}
