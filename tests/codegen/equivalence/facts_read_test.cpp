// SPDX-License-Identifier: Apache-2.0
// A line of the table of facts with an unknown word is an error that names the row and the word.
#include <doctest/doctest.h>

#include <equivalence/facts.hpp>
#include <equivalence/refusal.hpp>

#include <array>

#include "../../said.hpp"

namespace facts_read_test {

using namespace rankc::codegen::algebra;
using rankc::test::said, rankc::test::said_by;

namespace {

/// The message about a line that follows a correct one.
said said_of_line(const line& l) {
  const std::array<line, 2> lines{line{"gelu_grad", "dx(t w) dy(t w) x(t w)", "dx = dy' x"}, l};
  return said_by([&] { read_facts(lines); });
}

}  // namespace

TEST_CASE("the table is read, and so is a sound line") {
  CHECK(facts().size() == table().size());
  CHECK(said_of_line({"row", "y(t w)/e4m3:s^x x(t w):s +z(w) ids(t)/i32", "y = x ids; z = sum(t) x'",
                      "whole(w)", "seq number"}) == said{});
}

TEST_CASE("a need, an attribute or an axis that is not known is refused") {
  const auto needs = [](const char* text) { return line{"row", "y(t w) x(t w)", "y = x", text}; };
  CHECK(said_of_line(needs("sequnces groups")) == said{7714, {"row", "sequnces"}});
  CHECK(said_of_line(needs("sequences (w)")) == said{7714, {"row", "(w)"}});
  CHECK(said_of_line(needs("whole")) == said{7714, {"row", ""}});
  CHECK(said_of_line(needs("whole(v)")) == said{7712, {"row", "whole", "v"}});
  CHECK(said_of_line(needs("first(w v)")) == said{7712, {"row", "first", "v"}});
  CHECK(said_of_line(needs("by(places)")) == said{7713, {"row", "places"}});
  CHECK(said_of_line(needs("like gelu_gard")) == said{7716, {"row", "gelu_gard"}});
  CHECK(said_of_line({"row", "y(t w) x(t w)", "y = x", "", "seq nubmer"}) == said{7715, {"row", "nubmer"}});
}

TEST_CASE("a port that cannot be read is refused") {
  for (const char* port : {"y(t w)/e4m5", "y(t w)/", "y(t w):", "y(t w):st", "y(t ww)", "y(t h*)", "y t w",
                           "y(t w)x", "(t w)", "y(T w)"}) {
    CAPTURE(port);
    const std::string ports = std::string(port) + " x(t w)";
    CHECK(said_of_line({"row", ports.c_str(), "y = x"}).id == 7710);
  }
  CHECK(said_of_line({"row", "y(t w)^z x(t w)", "y = x"}) == said{7711, {"row", "z"}});
  CHECK(said_of_line({"row", "y(a b c) x(d e f) z(g h i j)", "y = x z"}) == said{7717, {"row", "10", "9"}});
}

TEST_CASE("an equation or a gradient that cannot be read is refused") {
  const auto rule = [](const char* text) { return line{"row", "y(t w) x(t w)", text}; };
  CHECK(said_of_line(rule("y = xx")) == said{7713, {"row", "xx"}});
  CHECK(said_of_line(rule("y x")) == said{7718, {"row", "y x"}});
  CHECK(said_of_line(rule("y = sum(w x")) == said{7718, {"row", "sum(w x"}});
  CHECK(said_of_line(rule("y = twice * x")) == said{7718, {"row", "twice * x"}});
  CHECK(said_of_line(rule("y = smu(w) x")) == said{7718, {"row", "smu(w) x"}});
  CHECK(said_of_line(rule("y = gelu_gard(x, x)")) == said{7716, {"row", "gelu_gard"}});
  CHECK(said_of_line(rule("y = gelu_grad(x)")) == said{7719, {"row", "gelu_grad", "2", "3"}});
  const auto gradient = [](const char* text) { return line{"row", "y(t w) x(t w)", "y = x", "", "", text}; };
  CHECK(said_of_line(gradient("x = gelu_grad(dy, x)")) == said{});
  CHECK(said_of_line(gradient("x = gelu_grad(dz, x)")) == said{7713, {"row", "z"}});
  CHECK(said_of_line(gradient("z = gelu_grad(dy, x)")) == said{7713, {"row", "z"}});
  CHECK(said_of_line(gradient("x = gelu_grad(dy)")) == said{7719, {"row", "gelu_grad", "2", "3"}});
}

}  // namespace facts_read_test
