// SPDX-License-Identifier: Apache-2.0
// The engine with one rank: the result of install, replays with changing inputs, refusals.
#include "../said_by_rank.hpp"
#include "../tables.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <string>

namespace rankc::runtime::cuda::test {
namespace {

constexpr message reduced{0, "gradients"};

/// Loss
/// w
/// ^2 with gradient w, summed over the single dp rank on a separate stream; then AdamW.
void train_step(rank& r) {
  begin(r[compute], "F0");
  sum_squares<float>(r[compute], loss_at, weights, all_parameters, false);
  clear<float>(r[compute], gradients, parameters);
  add<float>(r[compute], gradients, gradients, weights, parameters);
  record(r[compute], {0});
  wait(r[reduce], {0});
  all_reduce<float>(r[reduce], over::dp, reduced, gradients, parameters);
  record(r[reduce], {1});
  wait(r[compute], {1});
  begin(r[compute], "update");
  sum_squares<float>(r[compute], norm_at, gradients, all_parameters, false);
  adamw<float>(r[compute], weights, gradients, first_moment, second_moment, norm_at, all_parameters);
}

/// Cross entropy with the first 4 x 4 weights as the logits of each token, over both microbatches.
void evaluate_step(rank& r) {
  constexpr int tokens = n_microbatches * n_rows * n_seq, vocab = 4;
  constexpr at logits = values, top = values + 4096, sums = values + 8192;
  begin(r[compute], "F0");
  embedding<float>(r[compute], logits, token_ids, weights, tokens, vocab, vocab, 0);
  row_max<float>(r[compute], top, logits, tokens, vocab);
  exp_sums<float>(r[compute], sums, logits, top, target_ids, tokens, vocab, 0);
  cross_entropy<float>(r[compute], loss_at, sums, tokens, 1.0 / tokens, false);
}

void lonely_step(rank& r) {
  begin(r[compute], "B3");
  all_reduce<float>(r[reduce], over::tp, {7, "B3: block 2: wq"}, values, 4);
}

/// Copy the bytes of `values` to the gradients: tests can only read regions.
void show_values(rank& r) {
  begin(r[compute], "F0");
  REQUIRE(cudaMemcpyAsync(r.at<float>(gradients), r.at<float>(values), parameters * sizeof(float),
                          cudaMemcpyDeviceToDevice, r[compute].stream) == cudaSuccess);
}

using body = void (*)(rank&);

constexpr step_input nothing{
    .lr = 0, .weight_decay = 0, .clip = 0, .beta1 = 0, .beta2 = 0, .eps = 1, .step = 1};

tables one_rank() {
  tables t(1, 1);
  t.connect("dp", {0}, {reduce}, over::dp);
  return t;
}

TEST_CASE("steps give the same as AdamW by hand, the first as all others") {
  const tables t = one_rank();
  const body train[] = {train_step}, evaluate[] = {evaluate_step};
  const auto e = install({.about = t.about, .train = train, .evaluate = evaluate});
  CHECK(e->arena_bytes(0) == test_arena);
  std::vector<double> w(parameters), m(parameters, 0.0), v(parameters, 0.0), got(parameters);
  for (int i = 0; i < parameters; ++i) w[i] = static_cast<float>(std::sin(i + 1.0));
  e->write(0, region::weights, 0, parameters, w.data());
  for (int step = 1; step <= 5; ++step) {
    const double lr = 0.01 / step, clip = 2.0;
    double squares = 0.0;
    for (const double x : w) squares += x * x;
    const step_output out = e->step({.lr = lr,
                                     .weight_decay = 0.1,
                                     .clip = clip,
                                     .beta1 = 0.9,
                                     .beta2 = 0.95,
                                     .eps = 1e-8,
                                     .step = step});
    CAPTURE(step);
    CHECK(out.loss == doctest::Approx(squares).epsilon(1e-5));
    CHECK(out.grad_norm == doctest::Approx(std::sqrt(squares)).epsilon(1e-5));
    const double scale = std::min(1.0, clip / (std::sqrt(squares) + 1e-6));
    for (int i = 0; i < parameters; ++i) {
      const double g = w[i] * scale;
      m[i] = 0.9 * m[i] + 0.1 * g;
      v[i] = 0.95 * v[i] + 0.05 * g * g;
      w[i] *= 1 - lr * 0.1;
      w[i] -= lr / (1 - std::pow(0.9, step)) * m[i] / (std::sqrt(v[i] / (1 - std::pow(0.95, step))) + 1e-8);
    }
    e->read(0, region::weights, 0, parameters, got.data());
    for (int i = 0; i < parameters; ++i) CHECK(std::abs(got[i] - w[i]) <= 1e-5);
    e->read(0, region::second_moment, 3, 5, got.data());
    for (int i = 0; i < 5; ++i) CHECK(got[i] == doctest::Approx(v[i + 3]).epsilon(1e-4));
  }
}

TEST_CASE("evaluation sees the batch that was set, and changes no parameter") {
  const tables t = one_rank();
  const body train[] = {train_step}, evaluate[] = {evaluate_step};
  const auto e = install({.about = t.about, .train = train, .evaluate = evaluate});
  std::vector<double> w(parameters), got(parameters);
  for (int i = 0; i < parameters; ++i) w[i] = static_cast<float>(std::cos(3.0 * i));
  e->write(0, region::weights, 0, parameters, w.data());
  for (int time = 0; time < 4; ++time) {
    double loss = 0.0;
    for (int microbatch = 0; microbatch < n_microbatches; ++microbatch) {
      std::vector<std::int32_t> tokens(n_rows * n_seq), targets(n_rows * n_seq);
      for (int n = 0; n < n_rows * n_seq; ++n) {
        tokens[n] = (n + microbatch + time) % 4;
        targets[n] = (3 * n + microbatch + 2 * time) % 4;
        double sum = 0.0;
        for (int c = 0; c < 4; ++c) sum += std::exp(w[4 * tokens[n] + c]);
        loss += (std::log(sum) - w[4 * tokens[n] + targets[n]]) / (n_microbatches * n_rows * n_seq);
      }
      e->set_batch(0, microbatch, tokens.data(), targets.data());
    }
    CHECK(e->evaluate() == doctest::Approx(loss).epsilon(1e-5));
  }
  e->read(0, region::weights, 0, parameters, got.data());
  CHECK(got == w);
}

TEST_CASE("a program with forwards alone evaluates, and refuses a step and what is not its weights") {
  tables t = one_rank();
  t.about.trains = false;
  t.layouts[0].gradients = t.layouts[0].first_moment = t.layouts[0].second_moment = t.layouts[0].norm = {};
  const body evaluate[] = {evaluate_step};
  const auto e = install({.about = t.about, .train = nullptr, .evaluate = evaluate});
  std::vector<double> w(parameters, 0.5), got(parameters);
  e->write(0, region::weights, 0, parameters, w.data());
  CHECK(e->evaluate() == doctest::Approx(std::log(4.0)).epsilon(1e-5));
  std::vector<traced> times;
  const rankc::test::said refused{5007, {"tables"}};
  CHECK(rankc::test::said_by([&] { e->step(nothing); }) == refused);
  CHECK(rankc::test::said_by([&] { e->traced_step(nothing, times); }) == refused);
  CHECK(rankc::test::said_by([&] { e->read(0, region::second_moment, 0, 1, got.data()); }) == refused);
  e->read(0, region::weights, 0, parameters, got.data());
  CHECK(got == w);
  CHECK_THROWS_AS(install({.about = t.about, .train = evaluate, .evaluate = evaluate}), failure);
}

TEST_CASE("an action that cannot be run is named by install, with rank and message") {
  const tables t = one_rank();
  const body train[] = {lonely_step}, evaluate[] = {evaluate_step};
  CHECK(said_by_rank([&] { install({.about = t.about, .train = train, .evaluate = evaluate}); },
                     "rank 0, install, B3") == rankc::test::said{5119, {"B3: block 2: wq", "reduce", "tp"}});
}

TEST_CASE("install leaves regions of zeros and rope tables in place") {
  tables t = one_rank();
  const rope_table table{.where = values, .positions = 3, .dim = 4, .theta = 100.0};
  t.layouts[0].ropes = {&table, 1};
  const body train[] = {show_values}, evaluate[] = {evaluate_step};
  const auto e = install({.about = t.about, .train = train, .evaluate = evaluate});
  std::vector<double> got(parameters);
  for (const region which :
       {region::weights, region::gradients, region::first_moment, region::second_moment}) {
    e->read(0, which, 0, parameters, got.data());
    for (const double x : got) CHECK(x == 0.0);
  }
  e->step(nothing);
  e->read(0, region::gradients, 0, 12, got.data());
  for (int position = 0; position < 3; ++position)
    for (int i = 0; i < 2; ++i) {
      const double angle = position * std::pow(100.0, -i / 2.0);
      CHECK(got[2 * position + i] == static_cast<float>(std::cos(angle)));
      CHECK(got[6 + 2 * position + i] == static_cast<float>(std::sin(angle)));
    }
}

TEST_CASE("weights that are written to a bf16 program reach its working copy, rounded") {
  tables t = one_rank();
  t.about.type = dtype::bf16;
  t.layouts[0].working_copy = values;
  const body train[] = {show_values};
  const auto e = install({.about = t.about, .train = train, .evaluate = train});
  std::vector<double> w(parameters), got(parameters);
  for (int i = 0; i < parameters; ++i) w[i] = static_cast<float>(std::sin(i + 1.0));
  e->write(0, region::weights, 0, parameters, w.data());
  const std::vector<double> later{0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7};
  e->write(0, region::weights, 5, later.size(), later.data());
  std::copy(later.begin(), later.end(), w.begin() + 5);
  e->step(nothing);
  e->read(0, region::gradients, 0, parameters / 2, got.data());
  for (int i = 0; i < parameters; ++i) {
    const auto pair = std::bit_cast<std::uint32_t>(static_cast<float>(got[i / 2]));
    const std::uint32_t bits = i % 2 == 0 ? pair << 16 : pair & 0xffff0000u;
    CHECK(std::bit_cast<float>(bits) == __bfloat162float(__float2bfloat16_rn(static_cast<float>(w[i]))));
  }
}

TEST_CASE("weights of a bf16 program that are not trained lie in its working copy alone") {
  tables t = one_rank();
  t.about.type = dtype::bf16;
  t.layouts[0].working_copy = values;
  t.layouts[0].frozen_count = 16;
  const body train[] = {show_values};
  const auto e = install({.about = t.about, .train = train, .evaluate = train});
  std::vector<double> w(16), got(16), seen(parameters / 2);
  for (int i = 0; i < 16; ++i) w[i] = static_cast<float>(std::cos(i + 1.0));
  e->write(0, region::weights, parameters - 16, 16, w.data());
  e->read(0, region::weights, parameters - 16, 16, got.data());
  e->step(nothing);
  e->read(0, region::gradients, 0, parameters / 2, seen.data());
  for (int i = 0; i < 16; ++i) {
    const float rounded = __bfloat162float(__float2bfloat16_rn(static_cast<float>(w[i])));
    CHECK(got[i] == rounded);
    const auto pair = std::bit_cast<std::uint32_t>(static_cast<float>(seen[(parameters - 16 + i) / 2]));
    CHECK(std::bit_cast<float>(i % 2 == 0 ? pair << 16 : pair & 0xffff0000u) == rounded);
  }
  for (const region which : {region::gradients, region::first_moment, region::second_moment})
    CHECK_THROWS_AS(e->read(0, which, parameters - 16, 16, got.data()), failure);
}

TEST_CASE("what lies outside the tables is refused") {
  const tables t = one_rank();
  const body train[] = {train_step}, evaluate[] = {evaluate_step};
  const auto e = install({.about = t.about, .train = train, .evaluate = evaluate});
  double one = 0.0;
  const std::vector<std::int32_t> ids(n_rows * n_seq, 0);
  CHECK_THROWS_AS(e->read(0, region::weights, parameters, 1, &one), failure);
  CHECK_THROWS_AS(e->write(1, region::weights, 0, 1, &one), failure);
  CHECK_THROWS_AS(e->set_batch(0, n_microbatches, ids.data(), ids.data()), failure);
}

/// Many short kernels, with or without an action for each.
template <bool Named>
void many_kernels(rank& r) {
  begin(r[compute], "F0");
  for (int i = 0; i < 2000; ++i) {
    if (Named) begin(r[compute], i % 2 ? "F1" : "F2");
    add<float>(r[compute], gradients, weights, weights, parameters);
  }
}

TEST_CASE("an action costs its GPU a few microseconds, and is seen from outside") {
  const tables t = one_rank();
  const body evaluate[] = {evaluate_step};
  double seconds[2];
  for (const bool named : {false, true}) {
    const body train[] = {named ? many_kernels<true> : many_kernels<false>};
    const auto e = install({.about = t.about, .train = train, .evaluate = evaluate});
    for (int i = 0; i < 3; ++i) e->step(nothing);
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 10; ++i) e->step(nothing);
    seconds[named] = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / 10;
    const rank_position s = e->look().at(0).second;
    CHECK_FALSE(s.in_step);
    CHECK(s.moved.back() == 0);  // an idle lane
    CHECK(s.action.starts_with("F"));
  }
  const double each = (seconds[1] - seconds[0]) / 2000;
  std::printf("2000 kernels: %.3f ms; with an action each: %.3f ms: %.2f us an action\n", 1e3 * seconds[0],
              1e3 * seconds[1], 1e6 * each);
  CHECK(each < 3e-6);
}

}  // namespace
}  // namespace rankc::runtime::cuda::test
