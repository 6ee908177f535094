// SPDX-License-Identifier: Apache-2.0
// Declarations in layers that share one parameter.
#include <doctest/doctest.h>

#include <rankc/trace/parameter.hpp>

namespace parameter_test {

using namespace rankc;

namespace {

constexpr weight_info made_at(const char* file, int line, std::string_view name = "table") {
  weight_info w{};
  w.name = name;
  w.handle = {file, line};
  return w;
}

}  // namespace

TEST_CASE("a handle in a header is one, however the path of the header is spelled") {
  const weight_info table = made_at("/home/me/project/model.hpp", 7);
  for (const char* file : {"/home/me/project/model.hpp", "project/model.hpp", "../../project/model.hpp",
                           "./project/model.hpp", "model.hpp", "./model.hpp"}) {
    CAPTURE(file);
    CHECK(is_same_parameter(table, made_at(file, 7)));
    CHECK(is_same_parameter(made_at(file, 7), table));
  }
}

TEST_CASE("handles of other files, lines or names are others") {
  const weight_info table = made_at("/home/me/project/model.hpp", 7);
  for (const char* file : {"/home/me/other/model.hpp", "other/model.hpp", "../other/model.hpp", "odel.hpp",
                           "ct/model.hpp", "model.cpp"}) {
    CAPTURE(file);
    CHECK_FALSE(is_same_parameter(table, made_at(file, 7)));
    CHECK_FALSE(is_same_parameter(made_at(file, 7), table));
  }
  CHECK_FALSE(is_same_parameter(table, made_at("model.hpp", 8)));
  CHECK_FALSE(is_same_parameter(table, made_at("model.hpp", 7, "head")));
  CHECK_FALSE(is_same_parameter(made_at("model.hpp", 0), made_at("model.hpp", 0)));
}

}  // namespace parameter_test
