// SPDX-License-Identifier: Apache-2.0
#include "messages.hpp"

#include <doctest/doctest.h>

#include <stdexcept>

namespace rankc::style::test::messages_test {
namespace {

std::vector<message> in(std::string_view text) { return messages(lex(text)); }

TEST_CASE("sentences with an id are found, adjacent literals joined") {
  const auto found = in("throw failure(1, \"RC6101: {} cannot \"\n  \"be read: \\\"{}\\\"\", path);");
  REQUIRE(found.size() == 1);
  CHECK(found[0].id == "RC6101");
  CHECK(found[0].text == "{} cannot be read: \"{}\"");
  CHECK(found[0].line == 1);
}

TEST_CASE("other literals and comments are no sentences") {
  CHECK(
      in("f(\"RC202: a rule of the language\"); // \"RC6101: a comment\"\ng(\"see RC6101: text\");").empty());
}

TEST_CASE("an id has one sentence, and a sentence one id") {
  message_list list;
  list.add("a.cpp", {"RC6101", "one", 1});
  list.add("b.cpp", {"RC6101", "one", 2});
  CHECK(list.text() == "RC6101: one\n");
  CHECK_THROWS_AS(list.add("c.cpp", {"RC6101", "two", 3}), std::runtime_error);
  CHECK_THROWS_AS(list.add("d.cpp", {"RC6102", "one", 4}), std::runtime_error);
}

TEST_CASE("a sentence has no doubled braces, which would be printed as they are") {
  message_list list;
  list.add("a.cpp", {"RC6101", "{} lacks {\"a\": 1}", 1});
  CHECK_THROWS_AS(list.add("b.cpp", {"RC6102", "{} lacks {{\"a\": 1}}", 2}), std::runtime_error);
}

}  // namespace
}  // namespace rankc::style::test::messages_test
