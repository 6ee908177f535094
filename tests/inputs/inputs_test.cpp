// SPDX-License-Identifier: Apache-2.0
// Programs with declared inputs: the effect of their values, and the inputs that are refused.
#include <rankc/runtime/embedded.hpp>
#include <rankc/runtime/host/embedded.hpp>
#include <rankc/trainer/command_line.hpp>

#include <doctest/doctest.h>

#include <cmath>

#include "../said.hpp"
#include "run.hpp"

namespace inputs_test {

namespace {

using namespace rankc::runtime;
using rankc::test::said;
using rankc::test::said_by;

const registered& find_program(const std::string& layout) {
  return *std::find_if(host_registry.begin(), host_registry.end(),
                       [&](const registered& p) { return p.layout == layout; });
}

/// The loss of the loaded tokens after scaling the named input by a factor.
double loss_with(const std::string& layout, const std::string& changed, double factor) {
  run r(find_program(layout));
  r.load([&](const std::string& name, double value) { return name == changed ? factor * value : value; });
  return r.engine->evaluate();
}

/// One microbatch of each input of a program, which a test can corrupt.
struct microbatch_inputs {
  explicit microbatch_inputs(const description& about) {
    for (const input_row& i : inputs_of(about)) {
      names.push_back(i.name);
      values.emplace_back(count_values(about, i), 1.0);
    }
  }
  std::vector<named_array> arrays() const {
    std::vector<named_array> all;
    for (std::size_t i = 0; i < names.size(); ++i) all.push_back({names[i], values[i]});
    return all;
  }
  std::vector<std::string> names;
  std::vector<std::vector<double>> values;
};

}  // namespace

TEST_CASE("a loss is linear in the weights that a step is given") {
  for (const std::string layout : {"one", "three"})
    for (const std::string input : {"token_weights", "element_weights", "step_weight"}) {
      CAPTURE(layout);
      CAPTURE(input);
      const double without = loss_with(layout, input, 0), once = loss_with(layout, input, 1),
                   thrice = loss_with(layout, input, 3);
      CHECK(once > without + 1e-3);
      CHECK(std::abs((thrice - without) - 3 * (once - without)) <= 1e-12 * thrice);
    }
}

TEST_CASE("labels of a second loss count as they are given") {
  const double expected = loss_with("one", "", 1), other = loss_with("one", "other_labels", 0);
  CHECK(std::abs(expected - other) > 1e-6);
}

TEST_CASE("an engine takes all inputs of the program, of their sizes, and no other") {
  run r(find_program("three"));
  const microbatch_inputs good(r.about);
  CHECK(good.names ==
        std::vector<std::string>{"token_weights", "element_weights", "step_weight", "other_labels"});
  r.engine->set_inputs(0, 2, good.arrays());

  microbatch_inputs bad = good;
  bad.names[1] = "weights";
  CHECK(said_by([&] { r.engine->set_inputs(0, 0, bad.arrays()); }) ==
        said{5070,
             {"element_weights", "inputs_weighted_three_host",
              "token_weights, element_weights, step_weight, other_labels"}});
  bad = good;
  bad.names.push_back("weights");
  bad.values.push_back({1});
  CHECK(said_by([&] { r.engine->set_inputs(0, 0, bad.arrays()); }) ==
        said{5071,
             {"weights", "inputs_weighted_three_host",
              "token_weights, element_weights, step_weight, other_labels"}});
  bad = good;
  bad.values[1].pop_back();
  CHECK(said_by([&] { r.engine->set_inputs(0, 0, bad.arrays()); }) ==
        said{5072, {"element_weights", "383", "384", "rows 4 x seq 8 x width 12"}});
  bad = good;
  for (const double value : {0.5, -1.0, 32.0, 3e9, std::nan("")}) {
    bad.values[3][7] = value;
    const said refused = said_by([&] { r.engine->set_inputs(0, 0, bad.arrays()); });
    CHECK(refused == said{5073, {"7", "other_labels", refused.arguments.at(2), "0", "31"}});
  }
  CHECK(said_by([&] { r.engine->set_inputs(0, 3, good.arrays()); }) == said{5010, {"0", "3", "1", "3"}});
}

TEST_CASE("an embedded rank is given the inputs with its tokens") {
  const registered& program = find_program("one");
  const auto& p = *std::get<const rankc::host::program*>(program.program);
  run expected(program);
  expected.load();
  embedded here;
  REQUIRE(embed(p, rankc::host::surroundings{.rank = 0}, here).ok());
  std::vector<double> weights(layout_of(p.about, 0).parameter_count);
  expected.engine->read(0, region::weights, 0, weights.size(), weights.data());
  REQUIRE(here.write(region::weights, 0, weights).ok());
  const batch tokens = read_batch(p.about, expected.data, 0);
  const std::vector<run::given_input> inputs = expected.inputs_of_microbatch(0, 0);
  std::vector<named_array> arrays;
  for (const run::given_input& i : inputs) arrays.push_back({i.name, i.values});
  REQUIRE(here.set_batch(0, tokens.tokens, tokens.targets, arrays).ok());
  double loss = 0;
  REQUIRE(here.evaluate(loss).ok());
  CHECK(loss == expected.engine->evaluate());
  const status missing = here.set_batch(0, tokens.tokens, tokens.targets);
  CHECK(missing.code == 1);
  CHECK(std::string(missing.text).starts_with("RC5070: input token_weights is missing"));
}

TEST_CASE("commands that give a model tokens alone refuse the program") {
  const description& about = *find_program("one").about;
  const std::string inputs = "token_weights, element_weights, step_weight, other_labels";
  CHECK(said_by([&] { open_sources(parse_data_spec("arith:1"), about); }) ==
        said{6090, {"inputs_weighted_one_host", inputs, "arith:1"}});
  const char *generate[]{"program", "generate", "--load", "folder"},
      *score[]{"program", "score", "--load", "folder", "--requests", "file"};
  CHECK(said_by([&] { parse_command_line(about, 4, generate); }) ==
        said{6091, {"inputs_weighted_one_host", inputs, "generate"}});
  CHECK(said_by([&] { parse_command_line(about, 6, score); }) ==
        said{6091, {"inputs_weighted_one_host", inputs, "score"}});
  const char* describe[]{"program", "describe"};
  CHECK(parse_command_line(about, 2, describe).has_value());
}

}  // namespace inputs_test
