// SPDX-License-Identifier: Apache-2.0
// Sample lines and headers: long lines, `using namespace`, and the files that the rules apply to.
#include "rules.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace rankc::style;

namespace {

std::vector<int> lines(const std::vector<finding>& found) {
  std::vector<int> numbers;
  for (const finding& one : found) numbers.push_back(one.line);
  return numbers;
}

std::vector<int> imports(std::string_view text) { return lines(namespace_imports(code(lex(text).tokens))); }

const std::string wide(111, 'x');

}  // namespace

TEST_CASE("a line may have 110 code points") {
  CHECK(lines(long_lines(lex(wide.substr(1) + "\n" + wide + "\n"))) == std::vector<int>{2});
  CHECK(lines(long_lines(lex("// " + wide))) == std::vector<int>{1});
  CHECK(lines(long_lines(lex("f(\"" + wide + "\");"))) == std::vector<int>{1});
  std::string accents;
  for (int i = 0; i < 110; ++i) accents += "\u00e9";
  CHECK(long_lines(lex(accents)).empty());
  CHECK(lines(long_lines(lex(accents + "\u00e9"))) == std::vector<int>{1});
}

TEST_CASE("lines of a raw string literal and of #include may be longer") {
  CHECK(lines(long_lines(lex("a = R\"(\n" + wide + "\n)\";\n" + wide))) == std::vector<int>{4});
  CHECK(lines(long_lines(lex("#include <" + wide + ">\n  #include <" + wide + ">\n#define X " + wide))) ==
        std::vector<int>{3});
}

TEST_CASE("using namespace is found where whoever includes the header gets it") {
  CHECK(imports("using namespace a;") == std::vector<int>{1});
  CHECK(imports("namespace a::b {\nusing namespace c;\n}\nusing namespace d;") == std::vector<int>{2, 4});
  CHECK(imports("inline namespace a {\nnamespace {\nusing namespace c;\n}\n}") == std::vector<int>{3});
  CHECK(imports("extern \"C\" {\nusing namespace a;\n}") == std::vector<int>{2});
  CHECK(imports("namespace a { void f() { b; } void g() { c; }\nusing namespace d; }") ==
        std::vector<int>{2});
  CHECK(imports("namespace a { inline void f() { using namespace b; } }").empty());
  CHECK(imports("struct a { void f() { using namespace b; } };").empty());
  CHECK(imports("auto x = [] { using namespace b; };").empty());
  CHECK(imports("namespace a = b; using a::c; using d = e; // using namespace f;").empty());
}

TEST_CASE("a public header is one below a folder rankc of a part") {
  for (const char* path :
       {"dsl/rankc/plan.hpp", "codegen/rankc/a/b.h", "runtime/core/rankc/a.cuh", "runtime/rankc/b.ipp"})
    CHECK(is_public_header(path));
  for (const char* path :
       {"dsl/rankc/plan.cpp", "dsl/plans/a.hpp", "runtime/core/host/a.hpp", "tests/rankc/a.hpp"})
    CHECK_FALSE(is_public_header(path));
}

TEST_CASE("a file is checked by every rule that applies, and findings are in the order of lines") {
  const std::string text =
      "using namespace a;\nvoid f() {\n  b = 1, c = 2;\n  d = e ? f : g ? h : i;\n}\n// " + wide + "\n";
  const auto found = check("dsl/rankc/a.hpp", text);
  CHECK(lines(found) == std::vector<int>{1, 3, 4, 6});
  REQUIRE(found.size() == 4);
  CHECK(found[0].rule == "using namespace in a public header");
  CHECK(found[1].rule == "a comma between statements");
  CHECK(found[2].rule == "a conditional inside a conditional");
  CHECK(found[3].rule == "a line over 110 columns");
  CHECK(lines(check("tests/a.cpp", text)) == std::vector<int>{3, 4, 6});
}
