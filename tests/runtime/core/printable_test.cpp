// SPDX-License-Identifier: Apache-2.0
// Names from strangers in lines for a terminal.
#include <rankc/launch/say_error.hpp>
#include <rankc/runtime/printable.hpp>

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

TEST_CASE("a long error keeps its beginning and its end") {
  testing::capture err(stderr);
  say_error("plan: {} is no number\n", std::string(100'000, 'x'));
  const std::string line = err.end();
  CHECK(line.starts_with("plan: xxx"));
  CHECK(line.find("x ... (96019 bytes are left out) ... x") != line.npos);
  CHECK(line.ends_with("x is no number\n"));
  CHECK(line.size() < 4100);
  CHECK(error_line(std::string(6000, 'x')) == std::string(6000, 'x'));
}
