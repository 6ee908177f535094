// SPDX-License-Identifier: Apache-2.0
// Communication between processes, with memory as the transport: the sums, and the messages if calls do not
// match.
#include "../../../slowness.hpp"
#include "../../../../runtime/core/host/carrier.hpp"

#include <doctest/doctest.h>
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

namespace rankc::runtime::host {
namespace {

/// Data in transit, by sender, receiver and slot.
class memory {
 public:
  void put(int from, int to, std::uint64_t slot, const std::byte* data, std::size_t bytes) {
    const std::lock_guard lock(mutex_);
    sent_[{from, to, slot}].assign(data, data + bytes);
    changed_.notify_all();
  }
  bool take(int from, int to, std::uint64_t slot, std::byte* data, std::size_t bytes) {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, rankc::test::scaled(2), [&] { return sent_.contains({from, to, slot}); }))
      return false;
    const auto found = sent_.extract({from, to, slot});
    REQUIRE(found.mapped().size() == bytes);
    std::ranges::copy(found.mapped(), data);
    return true;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::tuple<int, int, std::uint64_t>, std::vector<std::byte>> sent_;
};

class through_memory final : public runtime::transport {
 public:
  through_memory(memory& all, int own) : all_(all), own_(own) {}
  void move(std::uint64_t slot, std::span<const outgoing> out, std::span<const incoming> in) override {
    for (const outgoing& o : out) all_.put(own_, o.to, slot, o.from, o.bytes);
    for (const incoming& i : in)
      if (!all_.take(i.from, own_, slot, i.to, i.bytes))
        throw failure::reported(77, "rank " + std::to_string(i.from) + " does not answer");
  }
  void stop() override {}

 private:
  memory& all_;
  int own_;
};

constexpr int ranks[]{4, 2, 7, 1, 5};  // the members' order, which is not ascending

op collective(op_kind kind, double* to, const double* from, std::size_t count) {
  op o;
  o.kind = kind;
  o.to = reinterpret_cast<std::byte*>(to);
  o.from = reinterpret_cast<const std::byte*>(from);
  o.count = count;
  o.element = sizeof(double);
  o.type = dtype::f64;
  o.plan_hash = 1;
  o.what = {3, "sums"};
  o.action = "1F0";
  return o;
}

/// Carry one op per member, each in a thread. Returns: each member's exception.
template <class Make>
std::vector<std::string> carry(std::size_t members, const Make& make) {
  memory all;
  std::vector<std::string> thrown(members);
  std::vector<std::thread> threads;
  for (std::size_t m = 0; m < members; ++m)
    threads.emplace_back([&, m] {
      through_memory wires(all, ranks[m]);
      carrier by(wires, std::span(ranks).first(members), 0, ranks[m], [](const op& a, const op& b) {
        return std::string(word(a.kind)) + " " + a.what.name + " of " + a.action + " meets " + word(b.kind) +
               " " + b.what.name + " of " + b.action;
      });
      try {
        op o = make(m);
        o.rank = ranks[m];
        by.carry(o);
      } catch (const failure& f) {
        thrown[m] = std::to_string(f.code) + ": " + f.what();
      }
    });
  for (std::thread& t : threads) t.join();
  return thrown;
}

/// Values whose sum depends on the order of the addends.
double value(std::size_t member, std::size_t i) {
  double first = 1.0;
  if (member == 0) first = 1e16;
  else if (member == 1) first = -1e16;
  return first + static_cast<double>(i) * 0.1;
}
double sum(std::size_t i) { return (value(0, i) + value(1, i)) + value(2, i); }

}  // namespace

TEST_CASE("sums between processes are made in the members' order, wherever the count ends") {
  for (const std::size_t count : {1, 2, 3, 7, 5000}) {
    CAPTURE(count);
    std::vector<std::vector<double>> data(3), parts(3, std::vector<double>(count)), wide(3);
    for (std::size_t m = 0; m < 3; ++m) {
      for (std::size_t i = 0; i < count; ++i) data[m].push_back(value(m, i));
      for (std::size_t i = 0; i < 3 * count; ++i) wide[m].push_back(value(m, i));
    }
    for (const std::string& t : carry(3, [&](std::size_t m) {
           return collective(op_kind::all_reduce, data[m].data(), data[m].data(), count);
         }))
      CHECK(t == "");
    for (const std::string& t : carry(3, [&](std::size_t m) {
           return collective(op_kind::reduce_scatter, parts[m].data(), wide[m].data(), count);
         }))
      CHECK(t == "");
    for (std::size_t m = 0; m < 3; ++m)
      for (std::size_t i = 0; i < count; ++i) {
        REQUIRE(data[m][i] == sum(i));
        REQUIRE(parts[m][i] == sum(m * count + i));
      }
  }
}

TEST_CASE("parts are gathered in the members' order, and messages go from the first to the second") {
  std::vector<std::vector<double>> whole(3, std::vector<double>(6));
  std::vector<double> own{0, 1, 10, 11, 20, 21}, got(2);
  for (const std::string& t : carry(3, [&](std::size_t m) {
         return collective(op_kind::all_gather, whole[m].data(), &own[2 * m], 2);
       }))
    CHECK(t == "");
  for (const auto& w : whole) CHECK(w == own);
  for (const std::string& t : carry(2, [&](std::size_t m) {
         op o =
             collective(m == 0 ? op_kind::send : op_kind::receive, got.data(), &own[4], 2 * sizeof(double));
         o.element = 1;
         return o;
       }))
    CHECK(t == "");
  CHECK(got == std::vector<double>{20, 21});
}

TEST_CASE("of the blocks that members give each other each gets its own, in the members' order") {
  std::vector<std::vector<double>> given(3), got(3, std::vector<double>(6));
  for (std::size_t m = 0; m < 3; ++m)
    for (std::size_t i = 0; i < 6; ++i) given[m].push_back(static_cast<double>(100 * m + i));
  for (const std::string& t : carry(3, [&](std::size_t m) {
         return collective(op_kind::all_to_all, got[m].data(), given[m].data(), 2);
       }))
    CHECK(t == "");
  for (std::size_t m = 0; m < 3; ++m)
    for (std::size_t giver = 0; giver < 3; ++giver)
      for (std::size_t i = 0; i < 2; ++i) CHECK(got[m][2 * giver + i] == given[giver][2 * m + i]);
}

TEST_CASE("around a ring each member gets the two tensors of the one before, or of the one behind") {
  for (const std::size_t members : {2, 3, 5})
    for (const bool back : {false, true}) {
      CAPTURE(members);
      CAPTURE(back);
      std::vector<std::vector<double>> given(members), first(members, std::vector<double>(4)),
          second(members, std::vector<double>(2));
      for (std::size_t m = 0; m < members; ++m)
        for (std::size_t i = 0; i < 6; ++i) given[m].push_back(static_cast<double>(100 * m + i));
      for (const std::string& t : carry(static_cast<int>(members), [&](std::size_t m) {
             op o =
                 collective(back ? op_kind::shift_back : op_kind::shift, first[m].data(), given[m].data(), 6);
             o.second_to = reinterpret_cast<std::byte*>(second[m].data());
             o.second_from = reinterpret_cast<const std::byte*>(given[m].data() + 4);
             o.second_count = 2;
             return o;
           }))
        CHECK(t == "");
      for (std::size_t m = 0; m < members; ++m) {
        const std::vector<double>& from = given[(m + (back ? 1 : members - 1)) % members];
        CHECK(first[m] == std::vector<double>(from.begin(), from.begin() + 4));
        CHECK(second[m] == std::vector<double>(from.begin() + 4, from.end()));
      }
    }
}

TEST_CASE("what does not match is refused by all members, with both sites, before data moves") {
  std::vector<std::vector<double>> data(3, std::vector<double>(4, 5));
  const auto with = [&](std::size_t wrong, auto change) {
    return carry(3, [&, change](std::size_t m) {
      op o = collective(op_kind::all_reduce, data[m].data(), data[m].data(), 4);
      if (m == wrong) change(o);
      return o;
    });
  };
  for (const std::string& t : with(2, [](op& o) {
         o.what = {4, "norm"};
         o.action = "update";
       }))
    CHECK(t == "70: all_reduce sums of 1F0 meets all_reduce norm of update");
  for (const std::string& t : with(1, [](op& o) { o.kind = op_kind::all_gather; }))
    CHECK(t == "70: all_reduce sums of 1F0 meets all_gather sums of 1F0");
  for (const std::string& t : with(0, [](op& o) { o.count = 3; })) CHECK(t.starts_with("70: "));
  for (const std::string& t : with(1, [](op& o) { o.plan_hash = 2; })) CHECK(t.starts_with("70: "));
  for (const auto& d : data) CHECK(d == std::vector<double>(4, 5));
}

}  // namespace rankc::runtime::host
