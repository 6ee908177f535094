// SPDX-License-Identifier: Apache-2.0
// Optimizers as rows of a table: their hyperparameters, their moments, and a user's own rows.
#include <doctest/doctest.h>

#include <rankc/cost_model/calibrations.hpp>
#include <rankc/cost_model/rank_time.hpp>
#include <rankc/rankc.hpp>

#include <limits>

namespace optimizer_test {

using namespace rankc;

/// Whether a struct has a hyperparameter.
template <class T>
concept has_beta1 = requires { T{.beta1 = 0.9}; };
template <class T>
concept has_momentum = requires { T{.momentum = 0.9}; };
static_assert(has_beta1<adamw> && !has_beta1<sgd> && !has_beta1<training>);
static_assert(has_momentum<sgd> && !has_momentum<adamw> && !has_momentum<training>);

/// A struct without a row is not an optimizer; nor is a number.
static_assert(!std::convertible_to<parallel_dims, optimizer> && !std::convertible_to<double, optimizer>);

/// A user's optimizer without moments.
struct sign_sgd {
  double eps = 1e-6;
  static constexpr optimizer_row row{
      .name = "sign_sgd",
      .title = "signSGD",
      .hyperparameters = {{.name = "eps", .range = hyperparameter_range::divisor, .usual = "1e-6 is usual"}},
      .kernel = "user::sign_sgd",
      .header = "sign_sgd.hpp"};
  constexpr std::array<double, 1> numbers() const { return {eps}; }
};

/// A user's optimizer with a hyperparameter that step_input does not have.
struct cooling {
  double lr_decay = 0;
  static constexpr optimizer_row row{.name = "cooling",
                                     .title = "Cooling",
                                     .hyperparameters = {{.name = "lr_decay",
                                                          .range = hyperparameter_range::non_negative,
                                                          .usual = "0.01 is usual"}},
                                     .kernel = "user::cooling",
                                     .header = "cooling.hpp"};
  constexpr std::array<double, 1> numbers() const { return {lr_decay}; }
};
static_assert(cooling::row.has_own_hyperparameters() && !sign_sgd::row.has_own_hyperparameters());
static_assert(optimizer(cooling{.lr_decay = 0.5}).number("lr_decay") == 0.5);

/// A user's optimizer for whole matrices, with ten GEMM operations for each weight.
struct whole {
  static constexpr optimizer_row row{.name = "whole",
                                     .title = "Whole",
                                     .moments = {{"momentum", "its momentum"}},
                                     .granularity = granularity::matrix,
                                     .flops = 10};
  constexpr std::array<double, 0> numbers() const { return {}; }
};

constexpr training trained(const optimizer& by, precision moments = f32) {
  return {.seq = 8, .global_batch = 4, .optimizer = by, .moments = moments};
}
/// The rules that a recipe breaks, as `valid` prints them.
std::string text_of(const training& recipe) {
  report faults;
  check_recipe(faults, recipe);
  const detail::spoken said = detail::speak(faults);
  return {said.text, said.size};
}

// A recipe's optimizer defaults to AdamW with its defaults.
static_assert(training{.seq = 8, .global_batch = 4} ==
              trained(adamw{.beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8}));
static_assert(training{.seq = 8, .global_batch = 4} != trained(adamw{.beta1 = 0.8}));
static_assert(training{.seq = 8, .global_batch = 4} != trained(sgd{}));
static_assert(trained(sgd{.momentum = 0.9}) != trained(sgd{.momentum = 0.9, .nesterov = true}));
constexpr optimizer with_momentum = sgd{.momentum = 0.9, .nesterov = true};
static_assert(with_momentum.number("momentum") == 0.9 && with_momentum.number("nesterov") == 1);
static_assert(with_momentum.number("beta1") == 0 && with_momentum.number("beta1", 0.5) == 0.5);

TEST_CASE("moments follow from the row, and SGD's from its momentum") {
  const auto moments = [](const optimizer& by) {
    return lowering::state_of(trained(by), 2, 4, true).moments;
  };
  CHECK(moments(adamw{}) == 2);
  CHECK(moments(sgd{}) == 0);
  CHECK(moments(sgd{.momentum = 0.9}) == 1);
  CHECK(moments(sign_sgd{}) == 0);
  CHECK(moments(whole{}) == 1);
}

TEST_CASE("a user's row has the rules of its hyperparameters and moments") {
  CHECK(text_of(trained(sign_sgd{})) == "");
  CHECK(text_of(trained(sign_sgd{.eps = 0})) ==
        "RC265: eps=0; it divides, so in f32 it is at least 1.2e-38, and finite: 1e-6 is usual");
  CHECK(text_of(trained(sign_sgd{}, bf16)) == "RC242: moments=bf16, and sign_sgd keeps none; leave it out");
}

TEST_CASE("a row names hyperparameters of its own, with their ranges") {
  CHECK(text_of(trained(cooling{})) == "");
  CHECK(text_of(trained(cooling{.lr_decay = 7})) == "");
  for (const double wrong : {-0.5, std::numeric_limits<double>::infinity()})
    CHECK(text_of(trained(cooling{.lr_decay = wrong})).starts_with("RC265: lr_decay="));
  CHECK(text_of(trained(cooling{.lr_decay = -0.5})) ==
        "RC265: lr_decay=-0.5; it is at least 0 and finite: 0.01 is usual");
}

TEST_CASE("an optimizer of whole matrices is refused") {
  CHECK(text_of(trained(whole{})) ==
        "RC264: optimizer whole updates whole matrices, and STEP updates the elements of a rank's shards and "
        "gathers no matrix; take an optimizer by element, as adamw{}");
}

TEST_CASE("products of matrices in an update take time, and elements do not") {
  const auto& gpu = cost_model::h200;
  const lowering::layer_setting setting{};
  const double weights = 1e9;
  const auto time = [&](const optimizer& by) {
    return cost_model::detail::sweep(gpu, trained(by), setting, weights).seconds;
  };
  const double by_element = time(sgd{.momentum = 0.9});
  CHECK(by_element > 0);
  CHECK(time(whole{}) == doctest::Approx(by_element + 10 * weights / gpu.products));
}

}  // namespace optimizer_test
