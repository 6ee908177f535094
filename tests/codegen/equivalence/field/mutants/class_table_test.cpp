// SPDX-License-Identifier: Apache-2.0
// Tables of mutants can be added: the printed lines of two runs are read again.
#include <doctest/doctest.h>

#include "class_table.hpp"

#include <sstream>

namespace class_table_test {

using namespace field;

TEST_CASE("tables that are printed and read again add up, and other lines are passed over") {
  class_table one, other, sum, both;
  one.add("kind: number", {3, 1, 2, 1, 1, 0, 0, 0, 0.5});
  other.add("kind: number", {4, 0, 3, 3, 0, 0, 0, 1, 1.5});
  other.add("form: two faults", {1, 1, 1, 0, 0, 1, 1, 0, 0});
  both.add("kind: number", {7, 1, 5, 4, 1, 0, 0, 1, 2});
  both.add("form: two faults", {1, 1, 1, 0, 0, 1, 1, 0, 0});
  std::istringstream text("237 plans\n" + one.to_text() + "refused though equal: 5 of 6\n" + other.to_text());
  sum.read(text);
  CHECK(sum.to_text() == both.to_text());
  CHECK(sum.to_text() != one.to_text());
}

}  // namespace class_table_test
