// SPDX-License-Identifier: Apache-2.0
// LoRA adapters, compared with the dense plan whose weight is w + scale b a: the loss is the same, and with
// dW the gradient of that weight, the adapters' gradients are scale b^T dW and scale dW a^T.
#include <doctest/doctest.h>

#include <algorithm>

#include "plans.hpp"
#include "weights.hpp"

namespace gradients_test {

namespace {

using rankc::runtime::region;

/// A row-major matrix.
struct matrix {
  std::size_t rows, columns;
  std::vector<double> of;
  double operator()(std::size_t i, std::size_t j) const { return of[i * columns + j]; }
};
matrix product(const matrix& x, const matrix& y, double factor) {
  matrix z{x.rows, y.columns, std::vector<double>(x.rows * y.columns)};
  for (std::size_t i = 0; i < z.rows; ++i)
    for (std::size_t j = 0; j < z.columns; ++j)
      for (std::size_t k = 0; k < x.columns; ++k) z.of[i * z.columns + j] += factor * x(i, k) * y(k, j);
  return z;
}
matrix transposed(const matrix& x) {
  matrix y{x.columns, x.rows, std::vector<double>(x.of.size())};
  for (std::size_t i = 0; i < x.rows; ++i)
    for (std::size_t j = 0; j < x.columns; ++j) y.of[j * x.rows + i] = x(i, j);
  return y;
}

/// The tensors of a region by name, as matrices.
std::map<std::string, matrix> matrices(run& r, region of) {
  std::map<std::string, matrix> all;
  const tensors values = r.tensors(of);
  for (const auto& p : rankc::runtime::global_parameters(r.about))
    if (values.count(p.name)) all[p.name] = {p.rows, p.columns, values.at(p.name)};
  return all;
}

void check_close(const matrix& found, const matrix& expected, double scale) {
  REQUIRE(found.of.size() == expected.of.size());
  for (std::size_t i = 0; i < found.of.size(); ++i)
    CHECK(std::abs(found.of[i] - expected.of[i]) <= 1e-12 * scale);
}

}  // namespace

TEST_CASE("loss and gradients are those that follow from the dense plan of the merged weights") {
  std::size_t compared = 0;
  for (const registered& program : host_registry) {
    if (program.layout != "one" || !find_program(program.job + "_dense", "one")) continue;
    CAPTURE(program.job);
    run adapted(program), dense(*find_program(program.job + "_dense", "one"));
    draw_parts(adapted);
    const auto before = matrices(adapted, region::weights);
    for (const auto& p : rankc::runtime::global_parameters(dense.about)) {
      matrix w = before.at(p.name);
      if (before.count(p.name + ".lora_a")) {
        const matrix more =
            product(before.at(p.name + ".lora_b"), before.at(p.name + ".lora_a"), adapting::scale);
        for (std::size_t i = 0; i < w.of.size(); ++i) w.of[i] += more.of[i];
      }
      set(dense, p, w.of);
    }
    const double loss = adapted.step().loss, expected_loss = dense.step().loss;
    CHECK(std::abs(loss - expected_loss) <= 1e-13);
    const auto found = matrices(adapted, region::gradients), of_dense = matrices(dense, region::gradients);
    const double scale = largest(dense.tensors(region::gradients));
    REQUIRE(scale > 1e-4);
    for (const auto& [name, dw] : of_dense) {
      CAPTURE(name);
      if (before.count(name + ".lora_a")) {
        check_close(found.at(name + ".lora_a"),
                    product(transposed(before.at(name + ".lora_b")), dw, adapting::scale), scale);
        check_close(found.at(name + ".lora_b"),
                    product(dw, transposed(before.at(name + ".lora_a")), adapting::scale), scale);
        ++compared;
      } else if (is_trained(adapted, name)) {
        check_close(found.at(name), dw, scale);
      }
    }
  }
  CHECK(compared == 4 * 5 + 4 * 2 + 1 + 4 * 3);
}

}  // namespace gradients_test
