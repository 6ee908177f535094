// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/parameters.hpp>

#include "../../exit_with.hpp"
#include "fake_engine.hpp"
#include "scratch.hpp"

#include <doctest/doctest.h>
#include <algorithm>
#include <map>

using namespace rankc::runtime;
using rankc::test::exit_of, rankc::test::exit_with;

namespace {

std::map<std::string, std::vector<double>> all_weights(engine& e) {
  std::map<std::string, std::vector<double>> tensors;
  for (const global_parameter& p : global_parameters(e.about()))
    read(e, p, region::weights, [&](std::size_t first, std::span<const double> values) {
      auto& to = tensors[p.name];
      REQUIRE(to.size() == first);
      to.insert(to.end(), values.begin(), values.end());
    });
  return tensors;
}

}  // namespace

TEST_CASE("parameters of a program are whole tensors, tied ones once") {
  const fake_program program(2, 2, 2);
  const auto parameters = global_parameters(program.about);
  REQUIRE(parameters.size() == 4);
  CHECK(parameters[0].name == "wte");
  CHECK(parameters[0].shape() == std::vector<std::size_t>{256, 8});
  CHECK(parameters[0].holders.size() == 8);  // all ranks: the first stage and the copy of the last
  CHECK(parameters[0].sources.size() == 2);
  CHECK(parameters[1].shape() == std::vector<std::size_t>{8});
  CHECK(parameters[1].sources.size() == 1);
  CHECK(parameters[2].shape() == std::vector<std::size_t>{8, 8});
  CHECK(parameters[3].shape() == std::vector<std::size_t>{32});
}

TEST_CASE("each rank's weights are slices of the unsharded ones") {
  const fake_program program(2, 2, 2);
  fake_engine e(program);
  initialise(e, 7);
  for (std::size_t rank = 0; rank < program.ranks.size(); ++rank) {
    const rank_row& row = program.ranks[rank];
    for (const parameter& p : program.parameters[static_cast<std::size_t>(row.pp)]) {
      const int whole_cols = p.shard_dim == 1 ? 2 * p.cols : p.cols;
      for (int i = 0; i < p.rows; ++i)
        for (int j = 0; j < p.cols; ++j) {
          const int global_row = i + (p.shard_dim == 0 ? row.tp * p.rows : 0);
          const int global_col = j + (p.shard_dim == 1 ? row.tp * p.cols : 0);
          double expected = p.init == fill::ones ? 1 : 0;
          const auto index = static_cast<std::size_t>(global_row * whole_cols + global_col);
          if (p.init == fill::uniform) hash_uniform(p.name, p.std, 7, index, 1, &expected);
          REQUIRE(e.of(rank, region::weights)[p.element + static_cast<std::size_t>(i * p.cols + j)] ==
                  expected);
        }
    }
    REQUIRE(e.of(rank, region::weights).back() == fake_engine::untouched);  // padding is unchanged
  }
}

TEST_CASE("whole tensors do not depend on the layout") {
  const fake_program one(1, 1, 1);
  fake_engine reference(one);
  initialise(reference, 3);
  const auto expected = all_weights(reference);
  for (const auto& [pp, dp, tp] :
       {std::array{2, 1, 1}, {1, 2, 1}, {1, 1, 2}, {1, 1, 4}, {2, 2, 4}, {3, 1, 2}}) {
    const fake_program program(pp, dp, tp);
    fake_engine e(program);
    initialise(e, 3);
    CHECK(all_weights(e) == expected);
  }
}

TEST_CASE("where the pipeline runs both ways every parameter has two holders, and counts once") {
  const fake_program one(1, 1, 1);
  fake_program both(4, 2, 2);
  both.mirror();
  fake_engine reference(one), e(both);
  initialise(reference, 3);
  initialise(e, 3);
  CHECK(all_weights(e) == all_weights(reference));
  std::size_t count = 0;
  for (const global_parameter& p : global_parameters(both.about)) {
    count += p.count();
    CHECK(p.holders.size() == 8);  // two pipeline ranks, dp 2, tp 2
    for (const shard& s : p.holders) {
      std::vector<double> held(s.rows * s.columns), first(held.size());
      e.read(s.rank, region::weights, s.element, held.size(), held.data());
      const auto same = std::find_if(p.sources.begin(), p.sources.end(), [&](const shard& source) {
        return source.row == s.row && source.column == s.column;
      });
      REQUIRE(same != p.sources.end());
      e.read(same->rank, region::weights, same->element, first.size(), first.data());
      CHECK(held == first);
    }
  }
  CHECK(count == 256 * 8 + 8 + 64 + 32);
}

TEST_CASE("tensors larger than a block go through in pieces") {
  const fake_program program(1, 1, 2, dtype::f64, 1 << 18);  // wte: 2^18 x 8, two blocks of 2^17 rows
  fake_engine e(program);
  const auto parameters = global_parameters(program.about);
  int pieces = 0;
  write(e, parameters[0], region::weights, [&](std::size_t first, std::span<double> values) {
    ++pieces;
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(first + i);
  });
  CHECK(pieces == 2);
  CHECK(e.of(0, region::weights)[12345] == 12345);
  CHECK(e.of(1, region::weights)[5] == (1 << 20) + 5);
  bool equal = true;
  read(e, parameters[0], region::weights, [&](std::size_t first, std::span<const double> values) {
    for (std::size_t i = 0; i < values.size(); ++i)
      equal = equal && values[i] == static_cast<double>(first + i);
  });
  CHECK(equal);
}

TEST_CASE("tables that contradict each other are refused") {
  fake_program program(2, 1, 1);
  program.parameters[1].back().rows = 128;
  CHECK(exit_of([&] { global_parameters(program.about); }) ==
        exit_with{70, {6570, {"wte", "256", "8", "128", "8"}}});
  program.parameters[1].back().rows = 256;
  program.parameters[1].back().copy = false;
  CHECK(exit_of([&] { global_parameters(program.about); }) == exit_with{70, {6571, {"wte", "2048", "4096"}}});
}
