// SPDX-License-Identifier: Apache-2.0
// Blocks of layers give the rows of parameters that a table would list.
#include <doctest/doctest.h>

#include <rankc/runtime/parameter_tables.hpp>

#include <string>
#include <vector>

namespace parameter_tables_test {

using namespace rankc::runtime;

namespace {

constexpr parameter of_layer[]{{"layers.#.wq", 4, 8, 0, 0, fill::uniform, 0.02, true, false},
                               {"layers.#.norm", 8, 1, -1, 32, fill::ones, 0, false, false}},
    of_head[]{{"wte", 16, 8, 0, 0, fill::uniform, 0.02, true, true}};

std::vector<std::string> texts_of(std::span<const parameter> rows) {
  std::vector<std::string> all;
  for (const parameter& p : rows)
    all.push_back(std::string(p.name) + " " + std::to_string(p.rows) + " " + std::to_string(p.cols) +
                  " from " + std::to_string(p.element));
  return all;
}

}  // namespace

TEST_CASE("the rows of a block repeat for each layer, with its number and its place") {
  const parameter_table t{{of_layer, 100, 9, 3, 50}, {of_head, 1000}};
  CHECK(texts_of(t) == std::vector<std::string>{"layers.9.wq 4 8 from 100", "layers.9.norm 8 1 from 132",
                                                "layers.10.wq 4 8 from 150", "layers.10.norm 8 1 from 182",
                                                "layers.11.wq 4 8 from 200", "layers.11.norm 8 1 from 232",
                                                "wte 16 8 from 1000"});
}

TEST_CASE("a name keeps its # without a layer's number, and the second one with it") {
  static constexpr parameter of_user[]{{"a#b", 1, 1, -1, 0, fill::zeros, 0, false, false}},
      of_user_layer[]{{"layers.#.a#b", 1, 1, -1, 0, fill::zeros, 0, false, false}};
  CHECK(texts_of(parameter_table{{of_user, 0}, {of_user_layer, 8, 2}}) ==
        std::vector<std::string>{"a#b 1 1 from 0", "layers.2.a#b 1 1 from 8"});
}

TEST_CASE("all other members are those of the row") {
  const parameter_table t{{of_layer, 0, 0}, {of_head, 64}};
  const std::span<const parameter> rows = t;
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].init == fill::uniform);
  CHECK(rows[0].std == 0.02);
  CHECK(rows[0].matrix);
  CHECK(rows[1].shard_dim == -1);
  CHECK_FALSE(rows[1].copy);
  CHECK(rows[2].copy);
}

TEST_CASE("a table without blocks has no rows") {
  const parameter_table none{};
  CHECK(std::span<const parameter>(none).empty());
}

}  // namespace parameter_tables_test
