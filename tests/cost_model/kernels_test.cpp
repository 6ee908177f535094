// SPDX-License-Identifier: Apache-2.0
// The constants of a GPU, against its kernels as rankc-calibrate timed them.
#include <doctest/doctest.h>

#include <rankc/cost_model/calibrations.hpp>

#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

#include "../said.hpp"
#include "calibrate.hpp"

using namespace rankc;
using namespace rankc::tool;

namespace {

std::string file_of(const cost_model::gpu_speed& g) {
  return std::string(RANKC_COST_MODEL "/") + std::string(g.name) + ".jsonl";
}

timed_gpu rows_of(const cost_model::gpu_speed& g) {
  std::ifstream in(file_of(g));
  REQUIRE(in);
  return read_timed(in, file_of(g));
}

std::string text_of(const std::string& file) {
  std::ifstream in(file);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("the constants of a GPU are what rankc calibrate makes of its rows") {
  for (const cost_model::gpu_speed* g : cost_model::timed) {
    std::ostringstream out, errors;
    REQUIRE(calibrate(file_of(*g), out, errors) == 0);
    CHECK(out.str().starts_with("inline constexpr gpu_speed " + std::string(g->name) + "{"));
    CHECK(text_of(RANKC_DSL "/rankc/cost_model/calibrations.hpp").find(out.str()) != std::string::npos);
  }
}

TEST_CASE("constants are near the kernels that they were fitted by, and near the others") {
  // The limits for the mean error over a kernel's rows, including those of a few microseconds.
  const std::map<std::string, double> at_most{{"linear", 0.06},
                                              {"linear_dx", 0.06},
                                              {"linear_dw", 0.07},
                                              {"linear_bias", 0.08},
                                              {"linear_bias_gelu", 0.1},
                                              {"linear_dx_gelu_bias", 0.13},
                                              {"attention", 0.04},
                                              {"attention_grad", 0.04},
                                              {"add", 0.12},
                                              {"gelu", 0.12},
                                              {"swiglu_grad", 0.05},
                                              {"add_rms_norm", 0.12},
                                              {"layer_norm_grad_add", 0.13},
                                              {"bias_grad", 0.25},
                                              {"softmax_sums", 0.1},
                                              {"softmax_grad", 0.1},
                                              {"sum_squares", 0.08},
                                              {"adamw", 0.08}};
  for (const cost_model::gpu_speed* g : cost_model::timed) {
    std::map<std::string, std::pair<double, int>> off;
    for (const timed_kernel& k : rows_of(*g).kernels)
      if (const double takes = predicted(*g, k); takes > 0) {
        off[k.name].first += std::abs(takes / k.seconds - 1);
        ++off[k.name].second;
      }
    for (const auto& [name, limit] : at_most) {
      INFO(g->name << ", " << name);
      REQUIRE(off.count(name) == 1);
      CHECK(off[name].first / off[name].second < limit);
    }
  }
}

TEST_CASE(
    "a fit finds the constants again that rows were made with, and nothing faster than what is stated") {
  timed_gpu t = rows_of(cost_model::h200);
  cost_model::gpu_speed made = cost_model::h200;
  made.products = 800e12;
  made.tile_start = 0.6e-6;
  made.forward[1].per_second = 600e12;
  made.backward[0].half_at = 700;
  made.passes.per_second = 3e12;
  for (timed_kernel& k : t.kernels)
    if (const double takes = predicted(made, k); takes > 0) k.seconds = takes;
  const cost_model::gpu_speed found = fit(t, cost_model::h200);
  CHECK(found.products == doctest::Approx(made.products).epsilon(0.01));
  CHECK(found.tile_start == doctest::Approx(made.tile_start).epsilon(0.05));
  CHECK(found.forward[1].per_second == doctest::Approx(made.forward[1].per_second).epsilon(0.01));
  CHECK(found.backward[0].half_at == doctest::Approx(made.backward[0].half_at).epsilon(0.02));
  CHECK(found.passes.per_second == doctest::Approx(made.passes.per_second).epsilon(0.01));
  for (timed_kernel& k : t.kernels) k.seconds /= 2;  // as if it were twice as fast as stated
  CHECK(fit(t, cost_model::h200).products <= cost_model::h200.peak);
}

TEST_CASE("what is none of rankc-calibrate's is named") {
  std::istringstream none("{\"gpu\":\"x\",\"processors\":2}\n{\"kernel\":\"linear\"}\n"), empty("");
  CHECK(test::said_by([&] { read_timed(none, "x.jsonl"); }) ==
        test::said{8000, {"2", "x.jsonl", "{\"kernel\":\"linear\"}"}});
  CHECK(test::said_by([&] { read_timed(empty, "x.jsonl"); }) == test::said{8001, {"x.jsonl"}});
  std::ostringstream out, errors;
  CHECK(calibrate("/none.jsonl", out, errors) == 1);
  CHECK(test::said_in(errors.str()) == test::said{7902, {"/none.jsonl", "No such file or directory"}});
}
