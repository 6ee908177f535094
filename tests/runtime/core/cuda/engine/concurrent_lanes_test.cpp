// SPDX-License-Identifier: Apache-2.0
// Actions on a second compute lane: they give the results of a single lane, and overlap lane 0.
#include "../said_by_rank.hpp"
#include "../lone_rank.hpp"
#include "meet.hpp"
#include "../regions.hpp"

#include <rankc/runtime/cuda/context.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <random>
#include <string>
#include <vector>

namespace rankc::runtime::cuda::test {
namespace {

constexpr int tokens = 512, seq = 128, heads = 4, dim = 64, width = heads * dim, rows = tokens / seq;
constexpr int vocabulary = 64;
constexpr std::size_t piece_bytes = 512 << 10, region_floats = 1 << 21,
                      region_bytes = region_floats * sizeof(float);
constexpr at inputs{0}, own{region_bytes}, other{2 * region_bytes}, scratch{3 * region_bytes};

/// Pieces of a region; no result is larger than one piece.
constexpr at piece(at base, int index) { return base + static_cast<std::size_t>(index) * piece_bytes; }

/// Run kernels that use a lane's own resources: GEMMs and their weight gradients, partial sums of columns,
/// attention's plans, a collective. With equal inputs, both halves give equal bits.
void half(const lane& on, at out, at temporary) {
  const at x = piece(inputs, 0), dy = piece(inputs, 1), w = piece(inputs, 2), gain = piece(inputs, 3);
  const at ids = piece(inputs, 4);
  const at y = piece(out, 0), dx = piece(out, 1), dw = piece(out, 2), sums = piece(out, 3),
           stats = piece(out, 4);
  const at vectors = piece(out, 5), o = piece(out, 6), lse = piece(out, 7), table = piece(out, 8);
  for (int i = 0; i < 6; ++i) {
    linear<bf16>(on, y, x, w, tokens, width, width);
    linear_dx<bf16>(on, dx, dy, w, tokens, width, width, false);
    linear_dw<bf16>(on, dw, dy, x, tokens, width, width, i > 0);
    layer_norm<bf16>(on, temporary, stats, x, gain, gain, tokens, width, 1e-5);
    layer_norm_dw<bf16>(on, vectors, vectors + 4096, dy, x, stats, tokens, width, i > 0);
    bias_grad<bf16>(on, vectors + 8192, dy, tokens, width, i > 0);
    embedding_grad<bf16>(on, table, dy, ids, tokens, vocabulary, width, 0, i > 0);
    attention<bf16>(on, o, lse, temporary, x, dy, y, rows, seq, heads, heads, dim, dim, width, width, width);
    const range all[]{{0, static_cast<std::size_t>(width) * width, true}};
    sum_squares<float>(on, sums, dw, all, i > 0);
    all_reduce<float>(on, over::tp, {0, "sum"}, sums, 1);
  }
}

void first_half(const lane& on) { half(on, own, scratch); }
void second_half(const lane& on) { half(on, other, scratch + region_bytes / 2); }

void on_two_lanes(rank& r) {
  record(r[compute], {0});
  wait(r[overlap], {0});
  act(r[overlap], "1F0", second_half);
  record(r[overlap], {1});
  begin(r[compute], "0B0");
  first_half(r[compute]);
  wait(r[compute], {1});
}

void on_one_lane(rank& r) {
  begin(r[compute], "0B0");
  first_half(r[compute]);
  second_half(r[compute]);
}

/// The two lanes wait for each other, and then stay busy for a while. The first two gradients say whether
/// each lane saw the other.
void meeting(rank& r) {
  clear<float>(r[compute], values, 1);
  record(r[compute], {0});
  wait(r[overlap], {0});
  act(r[overlap], "1F0", [](const lane& on) {
    meet(on, values, gradients);
    spin(on, 3000);
  });
  record(r[overlap], {1});
  begin(r[compute], "0B0");
  meet(r[compute], values, gradients + sizeof(float));
  spin(r[compute], 3000);
  wait(r[compute], {1});
}

void nothing(rank& r) { begin(r[compute], "0F0"); }

constexpr step_input input{
    .lr = 0, .weight_decay = 0, .clip = 0, .beta1 = 0, .beta2 = 0, .eps = 1, .step = 1};

tables overlapping() {
  tables t(1, 1);
  t.layouts[0].lanes = all_lanes;
  t.connect("tp", {0}, {compute}, over::tp);
  t.connect("tp of what overlaps", {0}, {overlap}, over::tp);
  return t;
}

/// Numbers in bf16 of magnitude up to 1, two per word, and the token ids.
std::vector<std::uint32_t> random_inputs() {
  std::mt19937 generator(7);
  const auto number = [&] {
    const float x = static_cast<float>(generator()) * 0x1p-31f - 1.0f;
    return std::bit_cast<std::uint32_t>(x) >> 16;
  };
  std::vector<std::uint32_t> words(region_floats);
  for (std::uint32_t& w : words) w = number() << 16 | number();
  const std::size_t ids = piece(inputs, 4).byte / sizeof(std::uint32_t);
  for (std::size_t n = ids; n < ids + tokens; ++n)
    words[n] = static_cast<std::uint32_t>(generator()) % vocabulary;
  return words;
}

TEST_CASE("two lanes compute what one computes, every bit, step after step") {
  for (const bool deterministic : {false, true}) {
    CAPTURE(deterministic);
    tables t = overlapping();
    enlarge(t, region_floats);
    t.about.deterministic = deterministic;
    void (*const two[])(rank&) = {on_two_lanes};
    void (*const one[])(rank&) = {on_one_lane};
    const auto e = install({.about = t.about, .train = two, .evaluate = one});
    put(*e, 0, region::weights, random_inputs());
    const auto both = [&] {
      auto results = take<std::uint32_t>(*e, 0, region::gradients, region_floats);
      const auto second = take<std::uint32_t>(*e, 0, region::first_moment, region_floats);
      CHECK(results == second);  // both halves compute the same
      results.insert(results.end(), second.begin(), second.end());
      return results;
    };
    e->evaluate();
    const auto expected = both();
    CHECK(std::count(expected.begin(), expected.end(), 0u) <
          static_cast<std::ptrdiff_t>(expected.size()) - 500'000);
    const std::vector<std::uint32_t> zeros(region_floats);
    for (int step = 0; step < 20; ++step) {
      CAPTURE(step);
      for (const region which : {region::gradients, region::first_moment}) put(*e, 0, which, zeros);
      e->step(input);
      CHECK(both() == expected);
    }
  }
}

TEST_CASE("kernels of two lanes run at once: enqueued one by one, in a graph, and by the trace") {
  SUBCASE("one by one") {
    lone_rank tables(test_arena, false);
    tables.layout.lanes = all_lanes;
    tables.layout.events = 2;
    context c(0, tables.about, 0);
    for (int time = 0; time < 4; ++time) {
      c.enqueue(meeting);
      REQUIRE(cudaDeviceSynchronize() == cudaSuccess);
      if (time == 0) continue;  // the first time loads the kernels, one after the other
      float met[2]{};
      REQUIRE(cudaMemcpy(met, c.of().at<float>(gradients), sizeof met, cudaMemcpyDeviceToHost) ==
              cudaSuccess);
      CHECK(met[0] == 1);
      CHECK(met[1] == 1);
    }
  }
  SUBCASE("in a graph, timed and not") {
    const tables t = overlapping();
    void (*const train[])(rank&) = {meeting};
    void (*const evaluate[])(rank&) = {nothing};
    const auto e = install({.about = t.about, .train = train, .evaluate = evaluate});
    for (int step = 1; step <= 4; ++step) {
      const std::vector<double> zeros(2);
      e->write(0, region::gradients, 0, 2, zeros.data());
      std::vector<traced> did;
      if (step % 2) e->step(input);
      else e->traced_step(input, did);
      std::vector<double> met(2);
      e->read(0, region::gradients, 0, 2, met.data());
      CHECK(met == std::vector<double>{1, 1});
      if (step % 2) continue;
      REQUIRE(did.size() == 2);
      const traced &second = did[0], &first = did[1];
      CHECK(std::string(second.name) == "1F0");
      CHECK(second.lane == overlap);
      CHECK(std::string(first.name) == "0B0");
      CHECK(first.lane == compute);
      CHECK(first.end - first.begin > 3000);
      CHECK(second.end - second.begin > 3000);
      CHECK(std::min(first.end, second.end) - std::max(first.begin, second.begin) > 2000);
    }
  }
}

TEST_CASE("an action is refused on a lane that does not compute, by its name") {
  const tables t = overlapping();
  void (*const train[])(rank&) = {[](rank& r) { act(r[reduce], "1F0", [](const lane&) {}); }};
  void (*const evaluate[])(rank&) = {nothing};
  CHECK(said_by_rank([&] { install({.about = t.about, .train = train, .evaluate = evaluate}); }) ==
        rankc::test::said{5061, {"1F0", "reduce"}});
}

}  // namespace
}  // namespace rankc::runtime::cuda::test
