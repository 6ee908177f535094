// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/not_finite.hpp>

#include "../../said.hpp"
#include "fake_engine.hpp"

#include <doctest/doctest.h>

using namespace rankc::runtime;
using rankc::test::said, rankc::test::said_in;

namespace {

const double no_number = std::numeric_limits<double>::quiet_NaN();

/// The index of a parameter's first element on a rank.
std::size_t element_of(const fake_program& p, int rank, const std::string& name) {
  for (const parameter& each :
       p.layouts[static_cast<std::size_t>(p.ranks[static_cast<std::size_t>(rank)].pp)].parameters)
    if (each.name == name) return each.element;
  return p.about.layouts[0].parameter_count;
}

}  // namespace

TEST_CASE(
    "of what is not finite the first cause is named: a weight, else the gradient that backward comes to "
    "first") {
  const fake_program program(2, 1, 2);
  fake_engine e(program);
  CHECK(first_not_finite(e, {}) == "");
  const auto spoil = [&](region where, int rank, const char* name, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i)
      e.of(static_cast<std::size_t>(rank), where)[element_of(program, rank, name) + i] = no_number;
  };
  for (int rank = 0; rank < 4; ++rank)
    for (double& x : e.of(static_cast<std::size_t>(rank), region::weights)) x = 1;
  spoil(region::gradients, 1, "layers.0.norm1", 8);
  CHECK(said_in(first_not_finite(e, {})) == said{6561, {"1", "8", "8", "layers.0.norm1"}});
  spoil(region::gradients, 3, "layers.1.wo", 5);
  CHECK(said_in(first_not_finite(e, {})) == said{6561, {"3", "5", "32", "layers.1.wo"}});
  spoil(region::weights, 2, "layers.1.b1", 1);
  CHECK(said_in(first_not_finite(e, {})) == said{6560, {"2", "1", "16", "layers.1.b1"}});
}

TEST_CASE("padding between parameters is not looked at") {
  const fake_program program(1, 1, 1);
  fake_engine e(program);
  std::vector<double>& all = e.of(0, region::weights);
  std::fill(all.begin(), all.end(), no_number);
  for (const parameter& p : program.layouts[0].parameters)
    std::fill_n(all.begin() + static_cast<std::ptrdiff_t>(p.element), p.rows * p.cols, 1.0);
  CHECK(first_not_finite(e, {}) == "");
}

TEST_CASE("processes agree on the first of all") {
  const fake_program program(1, 2, 1);
  fake_engine e(program);
  std::fill(e.of(0, region::weights).begin(), e.of(0, region::weights).end(), 1);
  placement here{.rank = 0, .exchange = [](const std::string&, const std::string& mine) {
                   return std::vector<std::string>{mine, "1 00000000 00000001\nrank 1: theirs"};
                 }};
  CHECK(first_not_finite(e, here) == "rank 1: theirs");
  e.of(0, region::weights)[0] = no_number;
  CHECK(said_in(first_not_finite(e, here)) == said{6560, {"0", "1", "2048", "wte"}});
}
