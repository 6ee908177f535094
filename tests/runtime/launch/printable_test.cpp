// SPDX-License-Identifier: Apache-2.0
// Names of strangers in lines for a terminal.
#include <rankc/launch/printable.hpp>
#include <rankc/launch/say_error.hpp>

#include "../../capture.hpp"

#include <doctest/doctest.h>

using namespace rankc::runtime;

TEST_CASE("text for a terminal has no control characters and no broken UTF-8") {
  CHECK(printable("a b~ \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80") ==
        "a b~ \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
  CHECK(printable("\x1b]0;title\x07") == "\\x1b]0;title\\x07");
  CHECK(printable("one\ntwo\r\tthree\x7f") == "one\\x0atwo\\x0d\\x09three\\x7f");
  CHECK(printable("corp\xe9s.txt") == "corp\\xe9s.txt");
  CHECK(printable("\xc2\x9b"
                  "31m") == "\\xc2\\x9b31m");  // the control sequence introducer of 8-bit terminals
  CHECK(printable("\xc3") == "\\xc3");
  CHECK(printable("\xc0\xaf\xff") == "\\xc0\\xaf\\xff");
  CHECK(printable(std::string_view("\0", 1)) == "\\x00");
}

TEST_CASE("an error is one line whatever its values hold") {
  testing::capture err(stderr);
  say_error("{}: {}\n", "plan", "tensor \x1b[2J\nforged line");
  CHECK(err.end() == "plan: tensor \\x1b[2J\\x0aforged line\n");
}
