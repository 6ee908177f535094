// SPDX-License-Identifier: Apache-2.0
// A pipeline edge between two GPUs: messages of all sizes in both directions at once, in order, over many
// replays.
#include "../regions.hpp"

#include <doctest/doctest.h>

#include <cstdint>

namespace rankc::runtime::cuda::test {
namespace {

constexpr step_input nothing{
    .lr = 0, .weight_decay = 0, .clip = 0, .beta1 = 0, .beta2 = 0, .eps = 1, .step = 1};

/// Message m begins m floats into the sender's weights, so that most begin at no multiple of 16 bytes. In the
/// receiver's gradients, messages are contiguous. Units: floats.
constexpr std::size_t sizes[] = {1, 3, 257, 16384, 262145, 2097152, 16777216, 5};
constexpr std::size_t total = 1 + 3 + 257 + 16384 + 262145 + 2097152 + 16777216 + 5;

template <int out, int in>
void swap_messages(rank& r) {
  const layout& l = *r.where;
  begin(r[compute], "F0");
  record(r[compute], {0});
  wait(r[out], {0});
  wait(r[in], {0});
  std::size_t place = 0, m = 0;
  for (const std::size_t n : sizes) {
    send(r[out], {static_cast<int>(m), "there"}, l.weights + m * sizeof(float), n * sizeof(float));
    receive(r[in], {static_cast<int>(m), "back"}, l.gradients + place * sizeof(float), n * sizeof(float));
    place += n;
    ++m;
  }
}

tables two_stages() {
  tables t(2, 1);
  t.connect("forward", {0, 1}, {to_next, from_prev}, over::peer);
  t.connect("backward", {1, 0}, {to_prev, from_next}, over::peer);
  return t;
}

/// Whole numbers below 2^23: exact as f32, and different in every message of every step and rank.
double content(int rank, int time, std::size_t i) {
  return static_cast<double>((i * 2654435761u + 97u * static_cast<unsigned>(time) + 31u * rank) % 8388593u);
}

/// Directly into the other GPU's memory, if the GPUs can map each other, and by NCCL.
const placement both_ways[]{{.rank = -1, .device = 0, .maps_peers = true},
                            {.rank = -1, .device = 0, .maps_peers = false}};

void cross(const placement& way) {
  CAPTURE(way.maps_peers);
  tables t = two_stages();
  enlarge(t, total + std::size(sizes));
  void (*const bodies[])(rank&) = {swap_messages<to_next, from_next>, swap_messages<to_prev, from_prev>};
  const auto e = install({.about = t.about, .train = bodies, .evaluate = bodies}, way);
  std::vector<double> values(total + std::size(sizes));
  for (int time = 0; time < 2; ++time) {
    for (int rank = 0; rank < 2; ++rank) {
      for (std::size_t i = 0; i < values.size(); ++i) values[i] = content(rank, time, i);
      e->write(rank, region::weights, 0, values.size(), values.data());
    }
    for (int again = 0; again < 20; ++again) e->step(nothing);
    for (int rank = 0; rank < 2; ++rank) {
      e->read(rank, region::gradients, 0, total, values.data());
      std::size_t place = 0, wrong = 0;
      for (std::size_t m = 0; m < std::size(sizes); ++m)
        for (std::size_t i = 0; i < sizes[m]; ++i) wrong += values[place++] != content(1 - rank, time, m + i);
      CAPTURE(rank);
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("messages from 4 bytes to 64 MB cross each other and arrive in order") {
  for (const placement& way : both_ways) cross(way);
}

constexpr std::size_t small = 1000;

/// Stage 0 counts up and sends its values; stage 1 returns twice as much.
void count_up(rank& r) {
  const layout& l = *r.where;
  begin(r[compute], "F0");
  add<float>(r[compute], l.weights, l.weights, l.first_moment, small);
  record(r[compute], {0});
  wait(r[to_next], {0});
  send(r[to_next], {0, "F0: stage 0 -> 1"}, l.weights, small * sizeof(float));
  receive(r[from_next], {1, "B0: stage 1 -> 0"}, l.gradients, small * sizeof(float));
}
void double_it(rank& r) {
  const layout& l = *r.where;
  begin(r[compute], "F0");
  receive(r[from_prev], {0, "F0: stage 0 -> 1"}, l.weights, small * sizeof(float));
  record(r[from_prev], {1});
  wait(r[compute], {1});
  begin(r[compute], "B0");
  add<float>(r[compute], l.gradients, l.weights, l.weights, small);
  record(r[compute], {2});
  wait(r[to_prev], {2});
  send(r[to_prev], {1, "B0: stage 1 -> 0"}, l.gradients, small * sizeof(float));
}

void replay(const placement& way) {
  CAPTURE(way.maps_peers);
  tables t = two_stages();
  enlarge(t, small);
  void (*const bodies[])(rank&) = {count_up, double_it};
  const auto e = install({.about = t.about, .train = bodies, .evaluate = bodies}, way);
  const std::vector<double> ones(small, 1.0);
  e->write(0, region::first_moment, 0, small, ones.data());
  std::vector<double> got(small);
  for (int step = 1; step <= 500; ++step) {
    e->step(nothing);
    e->read(0, region::gradients, 0, small, got.data());
    REQUIRE(got == std::vector<double>(small, 2.0 * step));
  }
}

TEST_CASE("every replay carries the numbers of its own step") {
  for (const placement& way : both_ways) replay(way);
}

}  // namespace
}  // namespace rankc::runtime::cuda::test
