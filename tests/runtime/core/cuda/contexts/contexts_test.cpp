// SPDX-License-Identifier: Apache-2.0
// A process uses only the GPUs of its ranks. CUDA gives each thread GPU 0 until it selects another, and a
// context there takes half a GiB.
#include "../said_by_rank.hpp"
#include "../tables.hpp"
#include "fake_cuda.hpp"

#include <rankc/runtime/calls.hpp>

#include <doctest/doctest.h>

#include <string>
#include <thread>

namespace rankc::runtime::cuda::test {
namespace {

void step_of(rank& r) {
  begin(r[compute], "F0");
  all_reduce<float>(r[compute], over::dp, {0, "loss"}, loss_at, 1);
}

constexpr step_input input{
    .lr = 0, .weight_decay = 0, .clip = 0, .beta1 = 0, .beta2 = 0, .eps = 1, .step = 1};

/// Use every function of an engine, each from a thread that has not chosen a GPU; then destroy it.
void use(std::unique_ptr<engine> e) {
  const std::vector<std::int32_t> ids(n_rows * n_seq);
  std::vector<double> values(parameters);
  std::vector<traced> times;
  const auto on_a_thread = [](auto work) { std::thread(work).join(); };
  on_a_thread([&] { e->set_batch(0, 0, ids.data(), ids.data()); });
  on_a_thread([&] { e->step(input); });
  on_a_thread([&] { e->evaluate(); });
  on_a_thread([&] { e->traced_step(input, times); });
  for (int rank = 0; rank < e->about().world(); ++rank) {
    if (!e->holds(rank)) continue;
    on_a_thread([&] { e->read(rank, region::weights, 0, parameters, values.data()); });
    on_a_thread([&] { e->write(rank, region::weights, 0, parameters, values.data()); });
  }
  on_a_thread([&] { e.reset(); });
}

struct data_parallel : tables {
  data_parallel() : tables(1, 2) {
    connect("dp", {0, 1}, {compute, compute}, over::dp);
    about.type = dtype::bf16;  // a write runs a kernel, which refreshes the working copy
  }
};
void (*const body[])(rank&) = {step_of};

/// The exchange of two processes that send the same.
std::vector<std::string> alike(const std::string&, const std::string& mine) { return {mine, mine}; }

TEST_CASE("a rank with a process of its own has a context on its own GPU alone") {
  data_parallel t;
  for (const int own : {0, 1}) {
    CAPTURE(own);
    take_contexts();
    std::unique_ptr<engine> e;
    std::thread([&] {
      e = install({.about = t.about, .train = body, .evaluate = body},
                  {.rank = own, .device = own, .exchange = alike});
    }).join();
    CHECK(take_contexts() == std::to_string(own));
    use(std::move(e));
    CHECK(take_contexts() == std::to_string(own));
  }
}

TEST_CASE("ranks that are threads have a GPU each") {
  data_parallel t;
  take_contexts();
  std::unique_ptr<engine> e = install({.about = t.about, .train = body, .evaluate = body});
  CHECK(take_contexts() == "0 1");
  use(std::move(e));
  CHECK(take_contexts() == "0 1");
}

void swap_messages(rank& r) {
  const bool first = r.index == 0;
  const lane &out = r[first ? to_next : to_prev], &in = r[first ? from_next : from_prev];
  act(r[overlap], "1F0", [](const lane& on) { all_reduce<float>(on, over::tp, {0, "sum"}, values, 1); });
  record(r[overlap], {0});
  begin(r[compute], "0B0");
  wait(r[compute], {0});
  record(r[compute], {1});
  wait(out, {1});
  send(out, {first ? 1 : 2, "there"}, weights, 4);
  receive(in, {first ? 2 : 1, "back"}, gradients, 4);
}

/// With peers' memory mapped and without.
TEST_CASE("lanes are given their streams, communicators and edges, and timed under their names") {
  for (const bool maps_peers : {true, false}) {
    CAPTURE(maps_peers);
    tables t(2, 1);
    for (layout& l : t.layouts) l.lanes = all_lanes;
    t.connect("tp of what overlaps, 0", {0}, {overlap}, over::tp);
    t.connect("tp of what overlaps, 1", {1}, {overlap}, over::tp);
    t.connect("forward", {0, 1}, {to_next, from_prev}, over::peer);
    t.connect("backward", {1, 0}, {to_prev, from_next}, over::peer);
    void (*const bodies[])(rank&) = {swap_messages, swap_messages};
    take_contexts();
    std::unique_ptr<engine> e =
        install({.about = t.about, .train = bodies, .evaluate = bodies}, {.maps_peers = maps_peers});
    std::vector<traced> times;
    e->traced_step(input, times);
    std::string did;
    for (const traced& each : times)
      did += std::to_string(each.rank) + " " + all_lanes[each.lane].name + " " + each.name + "\n";
    CHECK(did ==
          "0 overlap 1F0\n0 compute 0B0\n0 to_next there\n0 from_next back\n"
          "1 overlap 1F0\n1 compute 0B0\n1 to_prev there\n1 from_prev back\n");
    use(std::move(e));
    CHECK(take_contexts() == "0 1");
  }
}

/// Two lanes of a rank compute and sum over tp, one sums gradients, one shards, and two carry messages.
tables with_many_lanes() {
  tables t(2, 1);
  for (layout& l : t.layouts) l.lanes = all_lanes;
  for (const int rank : {0, 1}) {
    t.connect("tp", {rank}, {compute}, over::tp);
    t.connect("tp of what overlaps", {rank}, {overlap}, over::tp);
    t.connect("dp", {rank}, {reduce}, over::dp);
    t.connect("shards", {rank}, {rank == 0 ? from_prev : to_next}, over::shard);
  }
  t.connect("forward", {0, 1}, {to_next, from_prev}, over::peer);
  t.connect("backward", {1, 0}, {to_prev, from_next}, over::peer);
  return t;
}

TEST_CASE("a GPU without room for all blocks that wait at once is refused") {
  using rankc::test::said;
  tables t = with_many_lanes();
  void (*const bodies[])(rank&) = {[](rank&) {}, [](rank&) {}};
  const auto refused = [&](int count, bool maps_peers) {
    multiprocessors = count;
    const said why = rankc::test::said_by([&] {
      install({.about = t.about, .train = bodies, .evaluate = bodies}, {.maps_peers = maps_peers});
    });
    multiprocessors = 132;
    return why;
  };
  // By NCCL: sums over tp on two lanes, of gradients, of shards, and messages in both directions. 9 blocks
  // must stay free.
  constexpr int by_nccl = 16 + 16 + 16 + 8 + 16 + 16, by_copies = 16 + 16 + 16 + 8;
  CHECK(refused(by_nccl + 8, false) == said{5140, {"0", "88", "9", "96"}});
  CHECK(refused(by_nccl + 9, false) == said{});
  CHECK(refused(by_copies + 8, true) == said{5140, {"0", "56", "9", "64"}});
  CHECK(refused(by_copies + 9, true) == said{});
}

struct shout {
  void operator()(const lane& on) const { send(on, {1, "there"}, weights, 4); }
};
struct listen {
  void operator()(const lane& on) const { receive(on, {1, "there"}, weights, 4); }
};
void call_twice(rank& r) {
  begin(r[compute], "0F0");
  if (r.index == 0) runtime::calls::run(r[to_next], shout{});
  else runtime::calls::run(r[from_prev], listen{});
}

TEST_CASE("a step is timed by actions, or call by call, whichever is asked for") {
  tables t(2, 1);
  for (layout& l : t.layouts) l.lanes = all_lanes;
  t.connect("forward", {0, 1}, {to_next, from_prev}, over::peer);
  void (*const bodies[])(rank&) = {call_twice, call_twice};
  const std::unique_ptr<engine> e = install({.about = t.about, .train = bodies, .evaluate = bodies});
  const auto words = [&](bool by_calls) {
    std::vector<traced> times;
    by_calls ? e->step_by_calls(input, times) : e->traced_step(input, times);
    std::string did;
    for (const traced& each : times) did += " " + (by_calls ? runtime::word_of(each.name) : each.name);
    return did;
  };
  CHECK(words(true) == " shout listen");
  CHECK(words(false) == " 0F0 there 0F0 there");
  CHECK(words(false) == " 0F0 there 0F0 there");
  CHECK(words(true) == " shout listen");
}

void wrong_way(rank& r) { send(r[r.index == 0 ? from_next : from_prev], {1, "there"}, weights, 4); }

TEST_CASE("a message against its pair's direction is refused") {
  tables t(2, 1);
  t.connect("forward", {0, 1}, {to_next, from_prev}, over::peer);
  t.connect("backward", {1, 0}, {to_prev, from_next}, over::peer);
  void (*const bodies[])(rank&) = {wrong_way, wrong_way};
  const rankc::test::said refused =
      said_by_rank([&] { install({.about = t.about, .train = bodies, .evaluate = bodies}); });
  CHECK(refused.id == 5059);
  REQUIRE(refused.arguments.size() == 2);
  CHECK(refused.arguments[0] == "there");
  CHECK(refused.arguments[1].starts_with("from_"));
}

void to_nobody(rank& r) {
  if (r.index == 0) send(r[to_next], {1, "there"}, weights, 4);
}

TEST_CASE("a message that its receiver has no place for is refused") {
  tables t(2, 1);
  t.connect("forward", {0, 1}, {to_next, from_prev}, over::peer);
  void (*const bodies[])(rank&) = {to_nobody, to_nobody};
  CHECK(said_by_rank([&] { install({.about = t.about, .train = bodies, .evaluate = bodies}); }) ==
        rankc::test::said{5123, {"there"}});
}

}  // namespace
}  // namespace rankc::runtime::cuda::test
