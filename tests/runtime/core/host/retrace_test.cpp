// SPDX-License-Identifier: Apache-2.0
// Reruns a step with numbers that are not finite: the first op that produced them is named, with its rank,
// and no op that only received them.
#include "plan.hpp"

#include <rankc/runtime/calls.hpp>
#include <rankc/runtime/host/kernels.hpp>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace retrace_test {

using namespace rankc::test;

namespace {

using rankc::runtime::calls::run;
using numbers = rankc::runtime::matrix<float, 2, 2, 3>;  // rows have two numbers, and a stride of three

struct product {
  numbers y, x;
  double factor;
  void operator()(const lane& on) const {
    for (const int i : {0, 1, 3, 4})
      on.at<float>(y.where)[i] = on.at<float>(x.where)[i] * static_cast<float>(factor);
  }
};

struct result {
  rankc::runtime::vector<float, 1> norm;
  numbers x;
  void operator()(const lane& on) const { *on.at<float>(norm.where) = on.at<float>(x.where)[4]; }
};

/// Reads and writes ranges of its vectors, as an optimizer does.
struct update {
  rankc::runtime::vector<float, 8> weights, gradients;
  std::span<const rankc::runtime::range> of;
  void operator()(const lane& on) const {
    for (const rankc::runtime::range& r : of)
      for (std::size_t i = r.first; i < r.first + r.count; ++i)
        on.at<float>(weights.where)[i] += 1e38f * on.at<float>(gradients.where)[i];
  }
};

constexpr numbers sums{{800}}, values{{8192}}, arrived{{12288}};

step_input first_step() {
  step_input in{};
  in.step = 1;
  return in;
}

retraced retrace_of(plan& p) {
  const auto e = p.install();
  CHECK_FALSE(std::isfinite(e->step(first_step()).grad_norm));
  const std::optional<retraced> again = e->retrace(first_step());
  REQUIRE(again);
  return *again;
}

}  // namespace

TEST_CASE(
    "the op that makes infinity of numbers is named with its parameter, and not the rank that receives it") {
  plan p(2, 1, 1, dtype::f32);
  const parameter w{.name = "layers.0.wo",
                    .rows = 10,
                    .cols = 10,
                    .shard_dim = -1,
                    .element = 0,
                    .init = fill::ones,
                    .std = 0,
                    .matrix = true,
                    .copy = false};
  p.layouts[0].parameters = {&w, 1};
  p.layouts[1].reads_targets = true;  // it has the norm
  train_body = [](rank& r) {
    const lane &on = r[compute], &way = r[r.row->pp == 0 ? to_next : from_prev];
    begin(on, r.row->pp == 0 ? "0B0" : "1F0");
    const rankc::runtime::matrix<float, 1, 6> sent{values.where}, got{arrived.where};
    if (r.row->pp == 0) {
      std::fill_n(r.at<float>(values.where), 6, std::numeric_limits<float>::infinity());
      for (const int i : {0, 1, 3, 4}) r.at<float>(values.where)[i] = 1e30f;
      run(on, product{.y = values, .x = values, .factor = 1});
      run(on, product{.y = sums, .x = values, .factor = 1e20});
      run(on, product{.y = values, .x = sums, .factor = 1});
      record(on, {0});
      wait(way, {0});
      run(way,
          rankc::runtime::calls::send<rankc::runtime::matrix<float, 1, 6>>{.data = sent, .site = {0, "x"}});
    } else {
      run(way,
          rankc::runtime::calls::receive<rankc::runtime::matrix<float, 1, 6>>{.data = got, .site = {0, "x"}});
      record(way, {0});
      wait(on, {0});
      run(on, product{.y = values, .x = arrived, .factor = 1});
      run(on, result{.norm = {r.where->norm}, .x = values});
    }
  };
  const retraced again = retrace_of(p);
  REQUIRE(again.origins.size() == 1);
  CHECK(again.origins[0].rank == 0);
  CHECK(again.origins[0].op == 2);
  CHECK_FALSE(again.origins[0].is_shared);
  CHECK(again.origins[0].text == "0B0, op 2, product of layers.0.wo: 4 of 4 numbers are not finite");
  CHECK_FALSE(std::isfinite(again.out.grad_norm));
}

TEST_CASE("a sum over ranks that is too large is named where no part of it was") {
  plan p(1, 2, 1, dtype::f32);
  train_body = [](rank& r) {
    begin(r[compute], "0F0");
    std::fill_n(r.at<float>(values.where), 6, 3e38f);
    run(r[compute], rankc::runtime::calls::all_reduce{.over = over::dp,
                                                      .data = rankc::runtime::vector<float, 6>{values.where},
                                                      .site = {0, "gradients"}});
    run(r[compute], result{.norm = {r.where->norm}, .x = values});
  };
  const retraced again = retrace_of(p);
  REQUIRE(again.origins.size() == 2);
  CHECK(again.origins[0].is_shared);
  CHECK(again.origins[0].text == "0F0, op 1, all_reduce \"gradients\": 6 of 6 numbers are not finite");
}

TEST_CASE("of a call that takes ranges of vectors, numbers outside the ranges are not looked at") {
  plan p(1, 1, 1, dtype::f32);
  static constexpr rankc::runtime::range ranges[]{{0, 2, false}, {4, 2, false}};
  train_body = [](rank& r) {
    begin(r[compute], "0STEP");
    std::fill_n(r.at<float>(values.where), 8, 1.0f);
    std::fill_n(r.at<float>(arrived.where), 8, 1e30f);
    for (const int outside : {2, 6}) r.at<float>(arrived.where)[outside] = INFINITY;
    run(r[compute], update{.weights = {values.where}, .gradients = {arrived.where}, .of = ranges});
    *r.at<float>(r.where->norm) = INFINITY;
  };
  const retraced again = retrace_of(p);
  REQUIRE(again.origins.size() == 1);
  CHECK(again.origins[0].text == "0STEP, op 1, update: 4 of 4 numbers are not finite");
}

TEST_CASE("of sums that are added to shards, numbers of other shards are not looked at") {
  plan p(1, 1, 1, dtype::f32);
  static constexpr rankc::runtime::shard_range own[]{{.gathered = 0, .kept = 2, .count = 2, .arriving = 4}};
  using numbers_of_ranks = rankc::runtime::vector<float, 8>;
  train_body = [](rank& r) {
    begin(r[compute], "0B0");
    std::fill_n(r.at<float>(values.where), 8, 3e38f);
    std::fill_n(r.at<float>(arrived.where), 8, INFINITY);
    for (const int mine : {4, 5}) r.at<float>(arrived.where)[mine] = 3e38f;
    run(r[compute], rankc::runtime::calls::add_sums<numbers_of_ranks, numbers_of_ranks>{
                        .to = {values.where}, .from = {arrived.where}, .of = own});
    *r.at<float>(r.where->norm) = INFINITY;
  };
  const retraced again = retrace_of(p);
  REQUIRE(again.origins.size() == 1);
  CHECK(again.origins[0].text == "0B0, op 1, add_sums: 2 of 2 numbers are not finite");
}

TEST_CASE("where the second time all numbers are finite there is no such op") {
  plan p(1, 1, 1, dtype::f32);
  bool is_first = true;
  train_body = [&](rank& r) {
    std::fill_n(r.at<float>(values.where), 6, 1.0f);
    run(r[compute],
        product{.y = values, .x = values, .factor = std::exchange(is_first, false) ? INFINITY : 1});
    run(r[compute], result{.norm = {r.where->norm}, .x = values});
  };
  const retraced again = retrace_of(p);
  CHECK(again.origins.empty());
  CHECK(again.out.grad_norm == 1);
}

}  // namespace retrace_test
