// SPDX-License-Identifier: Apache-2.0
// The same plans on GPUs: in f32, the gradients and weights of one rank on the host in f64; in bf16, the
// losses of ten steps, while frozen weights keep their bits.
#include <doctest/doctest.h>

#include "weights.hpp"

namespace {

using rankc::runtime::region;

void check_close(const tensors& found, const tensors& expected, double tolerance) {
  const double scale = largest(expected);
  REQUIRE(found.size() == expected.size());
  for (const auto& [name, values] : expected) {
    CAPTURE(name);
    REQUIRE(found.at(name).size() == values.size());
    for (std::size_t i = 0; i < values.size(); ++i)
      CHECK(std::abs(found.at(name)[i] - values[i]) <= tolerance * scale);
  }
}

void check_f32(const registered& program) {
  const registered* one = find_program(program.job, "one");
  REQUIRE(one != nullptr);
  run expected(*one, "arith", 1e-3), found(program, "arith", 1e-3);
  draw_parts(expected);
  draw_parts(found);
  CHECK(found.step().loss == doctest::Approx(expected.step().loss).epsilon(1e-5));
  check_close(found.tensors(region::gradients), expected.tensors(region::gradients), 1e-4);
  // AdamW's first steps follow the sign of the gradient; for the smallest gradients, f32 rounding decides the
  // sign.
  check_close(found.tensors(region::weights), expected.tensors(region::weights), 2.1e-3);
}

void check_bf16(const registered& program) {
  run expected(*find_program(program.job, "one"), "arith", 1e-3), r(program, "arith", 1e-3);
  draw_parts(expected);
  draw_parts(r);
  const tensors before = r.tensors(region::weights);
  for (int n = 0; n < 10; ++n) CHECK(r.step().loss == doctest::Approx(expected.step().loss).epsilon(5e-3));
  for (const auto& [name, values] : r.tensors(region::weights)) {
    CAPTURE(name);
    CHECK((values != before.at(name)) == is_trained(r, name));
  }
}

void check_all(int gpus, int expected) {
  int programs = 0;
  for (const registered& program : cuda_registry) {
    if (program.about->world() != gpus) continue;
    CAPTURE(program.job);
    CAPTURE(program.layout);
    CAPTURE(program.type);
    if (program.type == "f32") check_f32(program);
    else check_bf16(program);
    ++programs;
  }
  CHECK(programs == expected);
}

}  // namespace

TEST_CASE("1 GPU: parts of low rank train as on the host, and what is frozen keeps its bits") {
  check_all(1, 18);
}
TEST_CASE("2 GPUs: parts of low rank train as on the host, and what is frozen keeps its bits") {
  check_all(2, 68);
}
