// SPDX-License-Identifier: Apache-2.0
// The model in f64: its gradients are those of its loss, and it distinguishes numbers that differ by 1e-10.
#include <doctest/doctest.h>

#define FIELD_IN_F64
#define field field_f64
#include "memory.hpp"
#include "model.hpp"
#include "../rows/rows.hpp"
#undef FIELD_IN_F64
#undef field
#include "../plans/plans.hpp"

#include <cmath>

using rankc::codegen::specification;

namespace {

double loss_with(const specification& s, field_f64::model_run start, const std::string& name, std::size_t i,
                 double moved) {
  start.parameters.at(name).weight[i] += moved;
  return field_f64::loss_of(s, std::move(start));
}

/// A fourth-order central difference of the loss.
double derivative(const specification& s, const field_f64::model_run& start, const std::string& name,
                  std::size_t i) {
  constexpr double h = 1e-4;  // small, because a large step makes routers choose other experts
  const auto at = [&](double moved) { return loss_with(s, start, name, i, moved); };
  return (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h);
}

/// Compare some elements of each parameter. Returns: their number.
int expect_derivatives(const rankc::plan_data& p) {
  CAPTURE(p.name);
  const specification s = rankc::codegen::specify(p);
  const field_f64::model_run start = field_f64::draw_start(s), run = field_f64::run_model(s, start);
  int elements = 0;
  for (const auto& [name, of] : run.parameters)
    for (std::size_t i = 0; i < of.weight.size(); i += of.weight.size() / 2 + 1) {
      CAPTURE(name);
      CAPTURE(i);
      CHECK(std::abs(of.gradient[i] - derivative(s, start, name, i)) <=
            1e-7 * std::max(1.0, run.largest_gradient));
      ++elements;
    }
  return elements;
}

}  // namespace

TEST_CASE("the model's gradients in f64 are those of its loss") {
  int elements = 0;
  const std::vector<rankc::plan_data> tiny = field::tiny_plans();
  for (std::size_t i : {0u, 1u}) elements += expect_derivatives(tiny[i]);
  for (std::size_t i : {tiny.size() - 1, tiny.size() - 2})
    elements += expect_derivatives(tiny[i]);  // with experts
  elements += expect_derivatives(field::windowed_plans().front());
  elements += expect_derivatives(field::masked_plans().at(1));
  elements += expect_derivatives(field::weighted_plans().at(1));
  for (const rankc::plan_data& p : field::drawn_plans(5, 4, 4)) elements += expect_derivatives(p);
  CHECK(elements > 80);
}

TEST_CASE(
    "so they are with losses of routers: balances of all layers, of each and of a rank's tokens, of large "
    "logits, by sigmoids") {
  int elements = 0;
  const std::vector<rankc::plan_data> balanced = field::balanced_plans();
  for (std::size_t i : {0u, 1u, 2u, 3u, 6u, 8u}) elements += expect_derivatives(balanced.at(i));
  CHECK(elements > 100);
}

TEST_CASE("numbers in f64: differences past rounding are seen, and what was never written is not what was") {
  CHECK_FALSE(field_f64::differ(1 + 1e-15, 1, 1));
  CHECK(field_f64::differ(1 + 1e-9, 1, 1));
  CHECK(field_f64::differ(std::nan(""), 1, 1));
  CHECK(field_f64::differ(1e-300, 0, 0));
  field_f64::memory m(64);
  using rankc::codegen::element_type;
  m.store(8, element_type::f64, 0.25);
  CHECK(m.load(8, element_type::f64) == 0.25);
  CHECK(m.load(8, element_type::f32) != 0.25);
  CHECK(m.load(16, element_type::f64) != m.load(24, element_type::f64));
}

TEST_CASE(
    "an operand or a result of nothing is malformed: rows and kernels look at the first, and divide by how "
    "many there are") {
  field_f64::call c;
  CHECK_THROWS_AS(c.give("logits", field_f64::matrix(field_f64::extent{2, 0})), field_f64::malformed);
  CHECK_THROWS_AS(c.want("own", {0, 6}), field_f64::malformed);
  c.give("logits", field_f64::matrix(field_f64::extent{2, 1}));
  CHECK(c.in("logits").is.rows == 2);
}
