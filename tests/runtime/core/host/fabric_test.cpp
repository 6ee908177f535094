// SPDX-License-Identifier: Apache-2.0
// The fabric's guarantees to a correct program: order, sums, events between lanes, and no allocation in a
// step.
#include "plan.hpp"

#include <rankc/runtime/host/transfers.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <new>
#include <thread>

namespace {

std::atomic<std::size_t> allocations{0};

void* counted(std::size_t bytes, std::size_t alignment) {
  ++allocations;
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  if (void* p = std::aligned_alloc(alignment, rounded ? rounded : alignment)) return p;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t bytes) { return counted(bytes, alignof(std::max_align_t)); }
void* operator new(std::size_t bytes, std::align_val_t a) {
  return counted(bytes, static_cast<std::size_t>(a));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return counted(bytes, alignof(std::max_align_t));
}
void operator delete(void* p) noexcept { std::free(p); }
void operator delete(void* p, std::size_t) noexcept { std::free(p); }
void operator delete(void* p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { std::free(p); }

using namespace rankc::test;

namespace {

void pause_briefly() { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }

// Values whose sum depends on the order of the addends.
template <class T>
T rough(int rank, int i) {
  return static_cast<T>((rank % 2 ? 1e6 : 1e-3) * (1 + 0.37 * i) / (rank + 1));
}

// More than one chunk of a transfer in f32, and a short last one.
constexpr int long_count = 100'003;

}  // namespace

TEST_CASE("messages of an edge arrive in the order in which they were sent, both ways and round the ring") {
  for (const int pp : {2, 3, 4}) {
    plan p(pp, 1, 1);
    std::vector<int> wrong(static_cast<std::size_t>(pp));
    train_body = [&](rank& r) {
      begin(r[compute], "F0");
      const int me = r.index, prev = (me + pp - 1) % pp, next = (me + 1) % pp;
      constexpr int messages = 20;
      for (int i = 0; i < messages; ++i) {
        receive(r[from_prev], {i, "forth"}, data<double>(100 + i), 8);
        receive(r[from_next], {i, "back"}, data<double>(200 + i), 8);
      }
      record(r[from_prev], {0});
      record(r[from_next], {1});
      for (int i = 0; i < messages; ++i) {
        *r.at<double>(data<double>(i)) = 1000 * me + i;
        send(r[to_next], {i, "forth"}, data<double>(i), 8);
        send(r[to_prev], {i, "back"}, data<double>(i), 8);
      }
      wait(r[compute], {0});
      wait(r[compute], {1});
      for (int i = 0; i < messages; ++i) {
        wrong[me] += *r.at<double>(data<double>(100 + i)) != 1000 * prev + i;
        wrong[me] += *r.at<double>(data<double>(200 + i)) != 1000 * next + i;
      }
    };
    const auto e = p.install();
    for (int step = 1; step <= 3; ++step) e->step(input(step));
    CHECK(wrong == std::vector<int>(static_cast<std::size_t>(pp)));
  }
}

TEST_CASE("what a transfer makes possible is carried, also where its own ranks sleep") {
  plan p(3, 1, 1);
  constexpr std::size_t bytes = 2 * 128 * 1024;  // two pieces, carried by two threads
  for (layout& l : p.layouts) l.arena_bytes = 4096 + 2 * bytes;
  // Count the steps in which rank 1's last value and the first values of ranks 1 and 2 arrived.
  std::vector<int> arrived(3);
  train_body = [&](rank& r) {
    constexpr int last = bytes / sizeof(double) - 1;
    for (const int i : {0, last}) *r.at<double>(data<double>(i)) = r.index == 0 ? 2.0 * r.input.step + i : -1;
    if (r.index != 0) receive(r[from_prev], {r.index, "on"}, data<double>(0), r.index == 1 ? bytes : 8);
    record(r[from_prev], {0});
    wait(r[to_next], {0});
    if (r.index != 2) send(r[to_next], {r.index + 1, "on"}, data<double>(0), r.index == 0 ? bytes : 8);
    record(r[to_next], {1});
    wait(r[compute], {1});
    if (r.index != 0) arrived[r.index] += *r.at<double>(data<double>(0)) == 2.0 * r.input.step;
    if (r.index == 1) arrived[0] += *r.at<double>(data<double>(last)) == 2.0 * r.input.step + last;
  };
  const auto e = p.install();
  for (int step = 1; step <= 2000; ++step) e->step(input(step));
  CHECK(arrived == std::vector<int>{2000, 2000, 2000});
}

TEST_CASE("a rank that posts more than a lane holds waits, and nothing is lost") {
  plan p(2, 1, 1);
  p.layouts[0].arena_bytes = p.layouts[1].arena_bytes = 4096 + 2 * 5000 * sizeof(double);
  int wrong = 0;
  train_body = [&](rank& r) {
    for (int i = 0; i < 5000; ++i) {
      *r.at<double>(data<double>(i)) = i;
      if (r.index == 0) send(r[to_next], {i, "many"}, data<double>(i), 8);
      else receive(r[from_prev], {i, "many"}, data<double>(5000 + i), 8);
    }
    if (r.index == 0) return;
    record(r[from_prev], {0});
    wait(r[compute], {0});
    for (int i = 0; i < 5000; ++i) wrong += *r.at<double>(data<double>(5000 + i)) != i;
  };
  p.install()->step(input(1));
  CHECK(wrong == 0);
}

TEST_CASE_TEMPLATE("collectives of 2, 3 and 4 ranks, in rank order to the bit", T, float, double) {
  for (const int group : {2, 3, 4})
    for (const int count : {1, 7, long_count})
      for (const int on : {compute, reduce}) {
        CAPTURE(group);
        CAPTURE(count);
        plan p(1, group, 1, sizeof(T) == 8 ? dtype::f64 : dtype::f32);
        p.layouts[0].arena_bytes = 4096 + static_cast<std::size_t>(3 * group + 3) * count * sizeof(T);
        std::vector<int> wrong(static_cast<std::size_t>(group));
        train_body = [&](rank& r) {
          const int me = r.index;
          const at sums = data<T>(0), maxima = data<T>(count), part = data<T>(2 * count);
          const at gathered = data<T>(3 * count), whole = gathered + sizeof(T) * group * count;
          for (int i = 0; i < count; ++i)
            r.at<T>(sums)[i] = r.at<T>(maxima)[i] = r.at<T>(part)[i] = rough<T>((me + i) % group, i);
          for (int i = 0; i < group * count; ++i) r.at<T>(whole)[i] = rough<T>(me, i);
          all_reduce<T>(r[on], over::dp, {0, "sums"}, sums, count);
          all_reduce<T>(r[on], over::dp, {1, "maxima"}, maxima, count, reduction::max);
          all_gather<T>(r[on], over::dp, {2, "gathered"}, gathered, part, count);
          reduce_scatter<T>(r[on], over::dp, {3, "scattered"}, part, whole, count);
          record(r[on], {0});
          wait(r[compute], {0});
          for (int i = 0; i < count; ++i) {
            T total = 0, largest = 0, mine = 0;
            for (int k = 0; k < group; ++k) {
              total = k ? total + rough<T>((k + i) % group, i) : rough<T>(i % group, i);
              largest = std::max(largest, rough<T>(k, i));
              mine = k ? mine + rough<T>(k, me * count + i) : rough<T>(0, me * count + i);
              wrong[me] += r.at<T>(gathered)[k * count + i] != rough<T>((k + i) % group, i);
            }
            wrong[me] += r.at<T>(sums)[i] != total;
            wrong[me] += r.at<T>(maxima)[i] != largest;
            wrong[me] += r.at<T>(part)[i] != mine;
          }
        };
        p.install()->step(input(1));
        CHECK(wrong == std::vector<int>(static_cast<std::size_t>(group)));
      }
}

TEST_CASE("all_gather and reduce_scatter may work in a rank's own part, as NCCL's do") {
  plan p(1, 3, 1);
  std::vector<int> wrong(3);
  train_body = [&](rank& r) {
    const at all = data<double>(0), own = data<double>(r.index * 5);
    for (int i = 0; i < 15; ++i) r.at<double>(all)[i] = r.index * 100 + i;
    reduce_scatter<double>(r[compute], over::dp, {0, "scatter"}, own, all, 5);
    all_gather<double>(r[compute], over::dp, {1, "gather"}, all, own, 5);
    for (int i = 0; i < 15; ++i) wrong[r.index] += r.at<double>(all)[i] != 300 + 3 * i;
  };
  p.install()->step(input(1));
  CHECK(wrong == std::vector<int>(3));
}

TEST_CASE("a group of one rank keeps its values") {
  plan p(1, 1, 1);
  train_body = [](rank& r) {
    *r.at<double>(data<double>(0)) = 7;
    all_reduce<double>(r[compute], over::tp, {0, "alone"}, data<double>(0), 1);
    *r.at<double>(r.where->loss) = *r.at<double>(data<double>(0));
  };
  CHECK(p.install()->step(input(1)).loss == 7);
}

TEST_CASE("a lane waits for another: what is sent is what the reduction left") {
  plan p(2, 1, 1);
  p.connect("both", {0, 1}, reduce, over::tied);
  double got = 0;
  train_body = [&](rank& r) {
    const at x = data<double>(0), y = data<double>(1);
    *r.at<double>(x) = r.index + 1;
    if (r.index == 0) {
      all_reduce<double>(r[reduce], over::tied, {0, "sum"}, x, 1);
      record(r[reduce], {3});
      wait(r[to_prev], {3});
      send(r[to_prev], {1, "the sum"}, x, 8);
    } else {
      receive(r[from_next], {1, "the sum"}, y, 8);  // posted before the reduction can start
      pause_briefly();
      all_reduce<double>(r[reduce], over::tied, {0, "sum"}, x, 1);
      record(r[from_next], {0});
      wait(r[compute], {0});
      got = *r.at<double>(y);
    }
  };
  p.install()->step(input(1));
  CHECK(got == 3);
}

TEST_CASE("only a wait on lane 0 blocks the rank's thread, and events serve every step") {
  plan p(2, 1, 1);
  std::atomic<bool> ran_ahead{false};
  int wrong = 0;
  train_body = [&](rank& r) {
    if (r.index == 0) {
      while (!ran_ahead) std::this_thread::yield();
      *r.at<double>(data<double>(0)) = static_cast<double>(r.input.step);
      send(r[to_next], {0, "x"}, data<double>(0), 8);
    } else {
      receive(r[from_prev], {0, "x"}, data<double>(0), 8);
      record(r[from_prev], {5});
      wait(r[to_prev], {5});
      ran_ahead = true;  // rank 0 sends only now, so nothing above has waited for it
      wait(r[compute], {5});
      wrong += *r.at<double>(data<double>(0)) != static_cast<double>(r.input.step);
      ran_ahead = false;
    }
  };
  const auto e = p.install();
  for (int step = 1; step <= 5; ++step) e->step(input(step));
  CHECK(wrong == 0);
}

TEST_CASE("a step in the steady state allocates nothing") {
  plan p(2, 2, 2);
  p.add_overlap();
  train_body = [](rank& r) {
    begin(r[compute], "F0");
    for (int i = 0; i < 10; ++i) {
      act(r[overlap], "F1", [](const lane& on) {
        all_reduce<double>(on, over::tp, {3, "tp of what overlaps"}, data<double>(90'000), 20'000);
      });
      record(r[overlap], {3});
      wait(r[reduce], {3});
      all_reduce<double>(r[compute], over::tp, {0, "tp"}, data<double>(0), 20'000);
      record(r[compute], {0});
      wait(r[to_next], {0});
      wait(r[from_prev], {0});
      send(r[to_next], {1, "ring"}, data<double>(0), 80'000);
      receive(r[from_prev], {1, "ring"}, data<double>(30'000), 80'000);
      all_reduce<double>(r[reduce], over::dp, {2, "dp"}, data<double>(60'000), 20'000);
      record(r[from_prev], {1});
      record(r[to_next], {2});
      wait(r[compute], {1});
      wait(r[compute], {2});
    }
  };
  const auto e = p.install();
  e->step(input(1));
  const std::size_t before = allocations;
  for (int step = 2; step < 30; ++step) e->step(input(step));
  CHECK(allocations - before == 0);
  CHECK(before > 0);
}

TEST_CASE("what a counted step carried is told, once for each rank; other steps tell nothing") {
  plan p(2, 1, 2);
  train_body = [](rank& r) {
    begin(r[compute], "F0");
    if (r.row->pp == 0) send(r[to_next], {0, "forth"}, data<double>(0), 24);
    else receive(r[from_prev], {0, "forth"}, data<double>(0), 24);
    begin(r[compute], "B0");
    all_reduce<float>(r[compute], over::tp, {1, "top"}, data<float>(0), 5, reduction::max);
    all_gather<double>(r[compute], over::tp, {2, "all"}, data<double>(10), data<double>(0), 3);
  };
  const auto e = p.install();
  std::vector<transfer> did;
  e->step(input(1));
  counted_step(*e, input(2), did);
  const std::size_t told = did.size();
  e->step(input(3));
  REQUIRE(told == 12);
  CHECK(did.size() == told);
  for (int rank = 0; rank < 4; ++rank) {
    CAPTURE(rank);
    std::vector<transfer> own;
    for (const transfer& t : did)
      if (t.rank == rank) own.push_back(t);
    REQUIRE(own.size() == 3);
    std::stable_partition(own.begin(), own.end(),
                          [](const transfer& t) { return std::string(t.action) == "F0"; });
    const std::string kinds[]{rank < 2 ? "send" : "receive", "all_reduce", "all_gather"},
        sites[]{"forth", "top", "all"};
    const std::size_t counts[]{24, 5, 3}, bytes[]{1, 4, 8};
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK(own[i].kind == kinds[i]);
      CHECK(own[i].site == sites[i]);
      CHECK(own[i].count == counts[i]);
      CHECK(own[i].element_bytes == bytes[i]);
      const auto ranks = p.about().communicators[static_cast<std::size_t>(own[i].communicator)].ranks;
      CHECK(std::find(ranks.begin(), ranks.end(), rank) != ranks.end());
    }
    CHECK(own[1].how == reduction::max);
  }
}
