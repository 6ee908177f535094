// SPDX-License-Identifier: Apache-2.0
// Long decimal integers of generated text have separators; nothing else of the text changes.
#include <doctest/doctest.h>

#include "emit/separators.hpp"

namespace separators_test {

using rankc::codegen::with_separators;

TEST_CASE("integers of five digits or more are separated, in code and in comments") {
  CHECK(with_separators("constexpr vector<wide, 215680> weights{{0}};") ==
        "constexpr vector<wide, 215'680> weights{{0}};");
  CHECK(with_separators("{{10000}}, {9999}, {1234567}") == "{{10'000}}, {9999}, {1'234'567}");
  CHECK(with_separators("// 2 x 1.1 MiB from 3455488: saved") == "// 2 x 1.1 MiB from 3'455'488: saved");
  CHECK(with_separators("// It ends at 123456. Next") == "// It ends at 123'456. Next");
  CHECK(with_separators("1.0 / 32768") == "1.0 / 32'768");
  CHECK(with_separators("at{-123456}, base+100000000000") == "at{-123'456}, base+100'000'000'000");
}

TEST_CASE("strings, names, and numbers of other kinds stay as they are") {
  for (const char* text :
       {"\"F0: 123456\"", "\"a \\\" 123456\"", "layers_123456", "x123456", "0x12345678", "1234567.5",
        "0.0070710678", "4.02653e+08", "123456e5", "// AdamW's 1234", "", "\"not closed 123456"})
    CHECK(with_separators(text) == text);
  CHECK(with_separators("{\"123456\", 123456}") == "{\"123456\", 123'456}");
}

TEST_CASE("a text that has separators already does not change") {
  const std::string once = with_separators("{6416896, 98752, 100000}");
  CHECK(with_separators(once) == once);
}

}  // namespace separators_test
