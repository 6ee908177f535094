// SPDX-License-Identifier: Apache-2.0
// The engine: the effects of install, the inputs and results of a step, and refusals.
#include <rankc/runtime/rope_angles.hpp>

#include "plan.hpp"

#include <algorithm>
#include <cmath>

namespace engine_test {

using namespace rankc::test;

namespace {

template <class Call>
void check_refused(Call call, const said& wanted) {
  try {
    call();
    FAIL("the call was not refused");
  } catch (const failure& f) {
    CHECK(f.code == 1);
    CHECK(said_of(f) == wanted);
  }
}

}  // namespace

TEST_CASE("a program that does not fit this runtime or itself is refused") {
  plan version(1, 1, 1), type(1, 1, 1), count(2, 1, 1), twice(2, 1, 1), range(1, 1, 1), stranger(2, 1, 1),
      wide(1, 3, 1);
  version.about().interface_version = 99;
  check_refused([&] { version.install(); }, {5030, {"test", "99", std::to_string(interface_version)}});
  type.about().type = dtype::bf16;
  check_refused([&] { type.install(); }, {5034, {"test", "bf16"}});
  count.ranks.pop_back();
  check_refused([&] { count.install(); }, {5035, {"test", "2", "1", "2", "2"}});
  twice.ranks[1].pp = 0;
  check_refused([&] { twice.install(); }, {5036, {"test", "1", "0", "0", "0", "0", "0"}});
  range.links[0][0].communicator = 12;
  check_refused([&] { range.install(); }, {5038, {"test", "0", "12", "tp", "compute", "3"}});
  stranger.links[0][0].communicator = stranger.links[1][0].communicator;
  check_refused([&] { stranger.install(); }, {5039, {"test", "tp of rank 1", "tp", "compute", "0"}});
  wide.links[0].push_back({to_next, over::peer, wide.links[0][1].communicator});
  check_refused([&] { wide.install(); }, {5040, {"test", "dp of rank 0", "peer", "to_next", "3"}});
  plan lane(1, 1, 1), two(1, 2, 1), none(1, 1, 1);
  lane.links[0][0].lane = overlap;
  check_refused([&] { lane.install(); }, {5037, {"test", "0", "6", "6"}});
  two.links[0].push_back({compute, over::tp, two.links[0][1].communicator});
  two.links[0].erase(two.links[0].begin() + 1);
  check_refused([&] { two.install(); }, {5042, {"test", "0", "tp", "0"}});
  none.layouts[0].lanes = std::span(all_lanes).subspan(1, 2);
  check_refused([&] { none.install(); }, {5033, {"test", "0"}});
}

TEST_CASE("a program with forwards alone evaluates, holds weights, and refuses a step") {
  plan p(2, 1, 1);
  p.about().trains = false;
  for (layout& l : p.layouts) l.gradients = l.first_moment = l.second_moment = {};
  p.layouts[1].reads_targets = true;
  evaluate_body = [](rank& r) { *r.at<double>(r.where->loss) = *r.at<double>(r.where->weights) + r.index; };
  const auto e = p.install();
  const double weight = 2.5;
  for (int r = 0; r < 2; ++r) e->write(r, region::weights, 0, 1, &weight);
  CHECK(e->evaluate() == 3.5);
  std::vector<traced> times;
  check_refused([&] { e->step(input(1)); }, {5007, {"test"}});
  check_refused([&] { e->traced_step(input(1), times); }, {5007, {"test"}});
  double x = 0;
  for (const region other : {region::gradients, region::first_moment, region::second_moment}) {
    check_refused([&] { e->read(0, other, 0, 1, &x); }, {5007, {"test"}});
    check_refused([&] { e->write(0, other, 0, 1, &x); }, {5007, {"test"}});
  }
  CHECK(e->evaluate() == 3.5);
}

TEST_CASE("tables and steps must agree on whether a program trains") {
  void (*const body[])(rank&) = {[](rank&) {}};
  plan p(1, 1, 1);
  p.install();
  check_refused([&] { rankc::host::install({p.about(), nullptr, body}); }, {5031, {"test"}});
  p.about().trains = false;
  check_refused([&] { rankc::host::install({p.about(), body, body}); }, {5032, {"test"}});
}

TEST_CASE("a program of a generator starts only with the proven calls of each step") {
  plan p(1, 1, 1);
  p.about().plan_hash = 1;
  check_refused([&] { p.install(); }, {5149, {"test", "training", "0"}});
  const rankc::runtime::proven_step training{
      .pp = 0, .trains = true, .rank = 0, .calls = 0, .hash = 0, .every = 1, .after = ""};
  p.about().proven = {&training, 1};
  check_refused([&] { p.install(); }, {5149, {"test", "evaluation", "0"}});
}

TEST_CASE("arenas are what the plan says: size, alignment, zeros") {
  plan p(2, 1, 1);
  p.layouts[0].arena_bytes = 4001;
  p.layouts[1].arena_bytes = 12345;
  std::vector<int> wrong(2);
  train_body = [&](rank& r) {
    wrong[r.index] += reinterpret_cast<std::uintptr_t>(r.arena) % 64 != 0;
    for (std::size_t i = 0; i < r.where->arena_bytes; ++i) wrong[r.index] += r.arena[i] != std::byte{0};
  };
  const auto e = p.install();
  e->step(input(1));
  CHECK(wrong == std::vector<int>(2));
  CHECK(e->arena_bytes(0) == 4001);
  CHECK(e->arena_bytes(1) == 12345);
  check_refused([&] { e->arena_bytes(2); }, {5006, {"2", "2"}});
}

TEST_CASE("a write past the arena's end is found after the step") {
  plan p(1, 1, 2);
  p.layouts[0].arena_bytes = 4001;
  const failure f = failing_step(p, [](rank& r) {
    if (r.index == 1) r.arena[4001] = std::byte{1};
  });
  CHECK(f.code == 70);
  check_says(f, "rank 1, step 1, end of the step", {5064, {"4001"}});
}

TEST_CASE_TEMPLATE("rope tables are filled at install", T, float, double) {
  plan p(1, 1, 1, sizeof(T) == 8 ? dtype::f64 : dtype::f32);
  const rope_table table{data<T>(0), 50, 8, 10000};
  p.layouts[0].ropes = {&table, 1};
  train_body = [](rank& r) {
    int wrong = 0;
    for (int n = 0; n < 50; ++n)
      for (int j = 0; j < 4; ++j) {
        const double angle = n * std::pow(10000.0, -2.0 * j / 8);
        wrong += r.at<T>(data<T>(0))[n * 4 + j] != static_cast<T>(std::cos(angle));
        wrong += r.at<T>(data<T>(0))[200 + n * 4 + j] != static_cast<T>(std::sin(angle));
      }
    *r.at<T>(r.where->loss) = static_cast<T>(wrong);
  };
  CHECK(p.install()->step(input(1)).loss == 0);
}

TEST_CASE("slowed rotary positions") {
  using rankc::rope_scaling;
  const double theta = 10000, turn = 2 * 3.141592653589793;
  const auto frequency = [&](int j, const rope_scaling& s) {
    return rankc::runtime::rotary_frequency(j, 64, theta, s);
  };
  for (int j = 0; j < 32; ++j) {
    const double plain = std::pow(theta, -2.0 * j / 64), length = turn / plain;
    CHECK(frequency(j, {}) == plain);
    CHECK(frequency(j, {.by = rope_scaling::linear, .factor = 4}) == plain / 4);
    const double slow = frequency(j, {.by = rope_scaling::llama3, .factor = 8, .original_positions = 1000});
    if (length < 1000.0 / 4) CHECK(slow == plain);
    else if (length > 1000.0) CHECK(slow == plain / 8);
    else
      CHECK(slow ==
            doctest::Approx(plain / 8 + (1000 / length - 1) / 3 * (plain - plain / 8)).epsilon(1e-14));
  }
}

TEST_CASE("YaRN keeps the first pairs, slows the last ones, and changes linearly between") {
  const rankc::rope_scaling s{.by = rankc::rope_scaling::yarn,
                              .factor = 8,
                              .low_freq_factor = 1,
                              .high_freq_factor = 32,
                              .original_positions = 4096};
  // In a head of 64 elements, pair 10.47 turns 32 times in 4096 positions, and pair 22.51 once.
  for (int j = 0; j < 32; ++j) {
    const double plain = std::pow(10000, -2.0 * j / 64);
    const double slowed = std::clamp((j - 10) / 13.0, 0.0, 1.0);
    CHECK(rankc::runtime::rotary_frequency(j, 64, 10000, s) ==
          doctest::Approx(plain * (1 - slowed) + plain / 8 * slowed).epsilon(1e-14));
  }
  CHECK(rankc::runtime::rotary_amplitude(s) == doctest::Approx(1.2079441541679836).epsilon(1e-15));
}

TEST_CASE("a share of a head turns as a smaller head does, and the rest stays") {
  const rankc::rope_scaling half{.share = 0.5};
  for (int j = 0; j < 8; ++j)
    CHECK(rankc::runtime::rotary_frequency(j, 16, 10000, half) ==
          (j < 4 ? rankc::runtime::rotary_frequency(j, 8, 10000, {}) : 0));
  std::vector<double> table(2 * 3 * 4);
  rankc::runtime::fill_angles(table.data(), {{}, 3, 8, 10000, half}, {.seq = 3});
  for (std::size_t place = 0; place < 3; ++place)
    for (std::size_t j = 0; j < 4; ++j) {
      const double angle =
          j < 2 ? static_cast<double>(place) * std::pow(10000, -0.5 * static_cast<double>(j)) : 0;
      CHECK(table[place * 4 + j] == std::cos(angle));
      CHECK(table[12 + place * 4 + j] == std::sin(angle));
    }
}

TEST_CASE("a batch reaches the ranks of its dp coordinate that read it") {
  plan p(2, 2, 2);
  p.layouts[0].reads_tokens = true;
  p.layouts[1].reads_targets = true;
  const auto e = p.install();
  const std::int32_t tokens[] = {1, 2, 3, 4}, targets[] = {5, 6, 7, 8};
  e->set_batch(1, 1, tokens, targets);
  std::vector<std::vector<int>> seen(8);
  train_body = [&](rank& r) {
    for (int i = 0; i < 8; ++i) seen[r.index].push_back(r.at<std::int32_t>(r.where->tokens)[i]);
    for (int i = 0; i < 8; ++i) seen[r.index].push_back(r.at<std::int32_t>(r.where->targets)[i]);
  };
  e->step(input(1));
  const std::vector<int> none(16), first{0, 0, 0, 0, 1, 2, 3, 4, 0, 0, 0, 0, 0, 0, 0, 0};
  const std::vector<int> last{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5, 6, 7, 8};
  CHECK(seen == std::vector<std::vector<int>>{none, none, first, first, none, none, last, last});
  check_refused([&] { e->set_batch(2, 0, tokens, targets); }, {5010, {"2", "0", "2", "2"}});
  check_refused([&] { e->set_batch(-1, 0, tokens, targets); }, {5010, {"-1", "0", "2", "2"}});
  check_refused([&] { e->set_batch(0, 2, tokens, targets); }, {5010, {"0", "2", "2", "2"}});
  check_refused([&] { e->set_batch(0, -1, tokens, targets); }, {5010, {"0", "-1", "2", "2"}});
}

TEST_CASE_TEMPLATE("regions are read and written by element", T, float, double) {
  plan p(1, 1, 2, sizeof(T) == 8 ? dtype::f64 : dtype::f32);
  const auto e = p.install();
  const region all[] = {region::weights, region::gradients, region::first_moment, region::second_moment};
  for (int i = 0; i < 4; ++i) {
    const double put[] = {0.1 + i, 0.2 + i, 0.3 + i};
    e->write(1, all[i], 97, 3, put);
  }
  for (int i = 0; i < 4; ++i) {
    double got[4], other[4];
    e->read(1, all[i], 96, 4, got);
    e->read(0, all[i], 96, 4, other);
    const double want[] = {0, 0.1 + i, 0.2 + i, 0.3 + i};
    for (int k = 0; k < 4; ++k) CHECK(got[k] == static_cast<T>(want[k]));
    for (const double x : other) CHECK(x == 0);
  }
  double x = 0;
  check_refused([&] { e->read(0, region::weights, 100, 1, &x); }, {5009, {"0", "100", "101", "100"}});
  check_refused([&] { e->read(0, region::weights, 101, 0, &x); }, {5009, {"0", "101", "101", "100"}});
  check_refused([&] { e->write(0, region::weights, 0, 101, &x); }, {5009, {"0", "0", "101", "100"}});
  check_refused([&] { e->write(-1, region::weights, 0, 1, &x); }, {5006, {"-1", "2"}});
  check_refused([&] { e->write(2, region::weights, 0, 1, &x); }, {5006, {"2", "2"}});
  e->read(0, region::weights, 100, 0, &x);
}

TEST_CASE("what is not trained lies in the weights alone, behind what is") {
  plan p(1, 1, 1, dtype::f64);
  for (layout& l : p.layouts) l.frozen_count = 10;
  const auto e = p.install();
  double x = 0.5, got = 0;
  e->write(0, region::weights, 99, 1, &x);
  e->read(0, region::weights, 99, 1, &got);
  CHECK(got == x);
  for (const region which : {region::gradients, region::first_moment, region::second_moment}) {
    e->write(0, which, 89, 1, &x);
    check_refused([&] { e->read(0, which, 90, 1, &x); }, {5009, {"0", "90", "91", "90"}});
    check_refused([&] { e->write(0, which, 89, 2, &x); }, {5009, {"0", "89", "91", "90"}});
  }
}

TEST_CASE_TEMPLATE("loss and norm come from the first rank of the pipeline coordinate that reads the targets",
                   T, float, double) {
  plan p(2, 2, 2, sizeof(T) == 8 ? dtype::f64 : dtype::f32);
  p.layouts[1].reads_targets = true;
  train_body = [](rank& r) {
    const bool reporter = r.row->pp == 1 && r.row->dp == 0 && r.row->tp == 0;
    *r.at<T>(r.where->loss) = static_cast<T>(reporter ? r.input.step * 1.5 : -1);
    *r.at<T>(r.where->norm) = static_cast<T>(reporter ? 16 : -1);
  };
  evaluate_body = [](rank& r) { *r.at<T>(r.where->loss) = static_cast<T>(r.index == 4 ? 9 : -1); };
  const auto e = p.install();
  for (int step = 3; step < 6; ++step) {
    const step_output out = e->step(input(step));
    CHECK(out.loss == step * 1.5);
    CHECK(out.grad_norm == 4);
    CHECK(e->evaluate() == 9);
  }
  CHECK(e->about().name == std::string_view("test"));
}

TEST_CASE("where both ends of the pipeline read targets, the loss is that of the last coordinate") {
  plan p(4, 1, 1);
  p.layouts[0].reads_targets = p.layouts[3].reads_targets = true;
  evaluate_body = [](rank& r) { *r.at<double>(r.where->loss) = r.row->pp; };
  CHECK(p.about().pp == 4);
  const auto e = p.install();
  CHECK(e->about().loss_at() == 3);
  CHECK(e->evaluate() == 3);
}

}  // namespace engine_test
