// SPDX-License-Identifier: Apache-2.0
#include "pipeline_program.hpp"
#include "sketch.hpp"

#include <doctest/doctest.h>

#include <chrono>
#include <string>

namespace prove_test {

namespace {

using namespace rankc::codegen;
using rankc::codegen::testing::pipeline_program;
using rankc::codegen::testing::sketch;
using rankc::test::said;
using rankc::test::said_in;

}  // namespace

TEST_CASE("pipelines of every shape are proven, and the checker confirms") {
  for (int pp = 1; pp <= 4; ++pp)
    for (int tp : {1, 2})
      for (int dp : {1, 2})
        for (int microbatches : {1, 2, 5})
          for (bool one_f_one_b : {false, true}) {
            const auto p = pipeline_program({pp, tp, dp, microbatches, 2, one_f_one_b});
            const auto v = prove(p);
            INFO((v.ok ? "" : v.reasons[0]));
            CHECK(v.ok);
            CHECK(verify(certificate(p, v)) == "");
          }
}

TEST_CASE("a deadlock is told as who waits for whom") {
  sketch s(2);
  for (int r = 0; r < 2; ++r) {
    s.send(r, r == 0 ? "F0: 0 -> 1" : "B0: 1 -> 0", 0, 1 - r, {0, 10, 0});
    s.receive(r, r == 0 ? "B0: 1 -> 0" : "F0: 0 -> 1", 0, 1 - r, {200, 210, 0});
  }
  CHECK(s.refusal() ==
        said{7065, {"rank 0 waits in \"F0: 0 -> 1\" for rank 1, which waits in \"B0: 1 -> 0\" for rank 0"}});
}

TEST_CASE("a deadlock over three ranks, events and a collective") {
  sketch s(3);
  s.p.communicators.push_back({"pair", {1, 2}});
  s.sum(0, "sum", 0);
  s.send(0, "x", 0, 1, {0, 4, 0}, 1);
  s.receive(1, "x", 2, 0, {200, 204, 0}, 1);
  s.compute(1, "middle", 1, {}, {}).waits = {1};
  s.sum(1, "pair sum", 0, 2).waits = {2};
  s.sum(1, "sum", 0);
  s.sum(2, "pair sum", 3, 2);
  s.sum(2, "sum", 0).waits = {1};
  CHECK(s.refusal() == said{7065, {"rank 0 waits in \"sum\" for rank 1, which waits in \"x\" for rank 0"}});
}

TEST_CASE("races and wrong reads name both ops and the bytes") {
  SUBCASE("read before the write") {
    sketch s(1);
    s.compute(0, "F0", 0, {{0, 100, 0}}, {{100, 200, 1}});
    s.compute(0, "loss", 1, {{150, 200, 1}}, {});
    CHECK(s.refusal() == said{7068, {"0", "loss", "150", "200", "F0"}});
  }
  SUBCASE("write before the read is done") {
    sketch s(1);
    s.compute(0, "B0: free", 0, {{0, 100, 0}}, {});
    s.compute(0, "1F3: recv", 1, {}, {{40, 200, 1}});
    CHECK(s.refusal() == said{7069, {"0", "1F3: recv", "40", "100", "B0: free"}});
  }
  SUBCASE("another value") {
    sketch s(1);
    s.compute(0, "F0", 0, {}, {{0, 8, 1}});
    s.compute(0, "F1", 0, {}, {{4, 12, 2}});
    CHECK(s.refusal({{0, 8, 1}}) == said{7070, {"0", "end", "4", "8", "F0", "F1"}});
  }
  SUBCASE("two writes in no order before the read") {
    sketch s(1);
    s.compute(0, "F0", 0, {}, {{0, 8, 1}});
    s.compute(0, "F1", 1, {}, {{4, 12, 2}});
    CHECK(s.refusal({{0, 4, 1}, {4, 8, 1}}) == said{7070, {"0", "end", "4", "8", "F0", "F1"}});
  }
  SUBCASE("nothing there") {
    sketch s(1);
    CHECK(s.refusal({{90, 110, 0}}) == said{7067, {"0", "end", "100", "110"}});
  }
  SUBCASE("a value that nobody writes") {
    sketch s(1);
    CHECK(s.refusal({{0, 8, 7}}) == said{7071, {"0", "end", "0", "8", "7", "begin"}});
  }
  SUBCASE("in place, then versions in a chain") {
    sketch s(1);
    s.compute(0, "B0", 0, {{0, 100, 0}}, {{0, 100, 1}}).writes[0].replaces = 0;
    op& next = s.compute(0, "B1", 2, {{0, 100, 1}}, {{0, 100, 2}});
    next.waits = {1};
    next.writes[0].replaces = 0;
    CHECK(s.refusal({{0, 100, 2}}) == said{});
  }
}

TEST_CASE("order through another rank counts when data comes back, not when a send completes") {
  // "late" overwrites on stream 2 the bytes that "early" reads on stream 0; between them is a message to rank
  // 1.
  const auto start = [](sketch& s) {
    s.compute(0, "early", 0, {{0, 100, 0}}, {});
    s.send(0, "x", 0, 1, {0, 4, 0}).waits = {1};
    s.receive(1, "x", 0, 0, {200, 204, 0});
  };
  SUBCASE("data comes back") {
    sketch s(2);
    start(s);
    s.send(1, "y", 0, 0, {200, 204, 0}, 1);
    s.receive(0, "y", 2, 1, {200, 204, 0}, 1);
    s.compute(0, "late", 2, {}, {{4, 100, 1}});
    CHECK(s.refusal() == said{});
  }
  SUBCASE("a second send completes") {
    sketch s(2);
    start(s);
    s.receive(1, "y", 0, 0, {204, 208, 5}, 1);
    s.compute(0, "fill", 2, {}, {{200, 204, 5}});
    s.send(0, "y", 2, 1, {200, 204, 5}, 1);
    s.compute(0, "late", 2, {}, {{4, 100, 1}});
    CHECK(s.refusal() == said{7069, {"0", "late", "4", "100", "early"}});
  }
}

TEST_CASE("messages that meet must be the same") {
  sketch s(2);
  SUBCASE("bytes") {
    s.send(0, "x", 0, 1, {0, 4, 0});
    s.receive(1, "x", 0, 0, {200, 208, 0});
    CHECK(s.refusal() == said{7060, {"0", "x", "120", "4", "x", "120", "8", "1", "a"}});
  }
  SUBCASE("name and message") {
    s.sum(0, "x", 0);
    s.sum(1, "y", 0);
    CHECK(s.refusal() == said{7060, {"0", "x", "120", "4", "y", "121", "4", "1", "a"}});
  }
  SUBCASE("name alone") {
    s.sum(0, "x1", 0);
    s.sum(1, "x2", 0);
    CHECK(s.refusal() == said{7060, {"0", "x1", "120", "4", "x2", "120", "4", "1", "a"}});
  }
  SUBCASE("message alone") {
    s.sum(0, "x", 0);
    s.sum(1, "x", 0).message = 121;
    CHECK(s.refusal() == said{7060, {"0", "x", "120", "4", "x", "121", "4", "1", "a"}});
  }
  SUBCASE("bytes of a collective") {
    s.sum(0, "x", 0);
    op& longer = s.sum(1, "x", 0);
    longer.bytes = 8;
    longer.reads[0].end = 8;
    longer.writes[0].end = 308;
    CHECK(s.refusal() == said{7060, {"0", "x", "120", "4", "x", "120", "8", "1", "a"}});
  }
  SUBCASE("sizes of the two tensors of a shift") {
    for (int r = 0; r < 2; ++r) {
      const std::size_t first = r == 0 ? 8 : 4;
      s.add(r, {.kind = op_kind::collective,
                .name = "x",
                .reads = {{0, first, 0}, {first, 12, 0}},
                .writes = {{300, 300 + first, 100}, {300 + first, 312, 101}},
                .communicator = 0,
                .bytes = 12,
                .message = 'x',
                .does = collective_kind::shift});
    }
    CHECK(s.refusal() == said{7060, {"0", "x", "120", "12", "x", "120", "12", "1", "a"}});
  }
  SUBCASE("sizes of the values in a message") {
    s.compute(0, "make", 0, {}, {{100, 104, 1}, {104, 108, 2}});
    s.send(0, "x", 0, 1, {100, 108, 1}).reads = {{100, 104, 1}, {104, 108, 2}};
    s.receive(1, "x", 0, 0, {200, 208, 1}).writes = {{200, 202, 1}, {202, 208, 2}};
    CHECK(s.refusal() == said{7061, {"0", "x", "x", "1"}});
  }
  SUBCASE("count of messages") {
    s.send(0, "x", 0, 1, {0, 4, 0});
    s.send(0, "y", 0, 1, {0, 4, 0});
    s.receive(1, "x", 0, 0, {200, 204, 0});
    CHECK(s.refusal() == said{7062, {"0", "2", "1", "1", "a", "y", "0"}});
  }
  SUBCASE("count of collectives") {
    s.sum(1, "x", 0);
    CHECK(s.refusal() == said{7064, {"0", "0", "a", "1", "1", "x", "1"}});
  }
  SUBCASE("values") {
    s.send(0, "x", 0, 1, {0, 4, 0});
    s.receive(1, "x", 0, 0, {200, 204, 7});
    CHECK(s.refusal() == said{7061, {"0", "x", "x", "1"}});
  }
  SUBCASE("order on a communicator") {
    s.sum(0, "x", 0);
    s.sum(0, "y", 1);
    s.sum(1, "x", 0);
    s.sum(1, "y", 0);
    CHECK(s.refusal() == said{7066, {"0", "x", "y", "a"}});
  }
}

TEST_CASE("structure") {
  sketch s(2);
  op& x = s.compute(0, "x", 0, {}, {{0, 8, 1}});
  said expected;
  SUBCASE("later wait") {
    x.waits = {1};
    expected = {7010, {"0", "x", "1", "0"}};
  }
  SUBCASE("stream") {
    x.stream = 4;
    expected = {7009, {"0", "x", "4", "3"}};
  }
  SUBCASE("arena") {
    x.writes[0].end = 401;
    expected = {7012, {"0", "x", "write", "0", "401", "400"}};
  }
  SUBCASE("empty access") {
    x.writes[0].end = 0;
    expected = {7011, {"0", "x", "write", "0", "0"}};
  }
  SUBCASE("no value") {
    x.writes[0].value = -1;
    expected = {7013, {"0", "x", "write", "0", "8"}};
  }
  SUBCASE("two values") {
    x.writes.push_back({4, 12, 2});
    expected = {7022, {"0", "x", "4", "8"}};
  }
  SUBCASE("second begin") {
    x.kind = op_kind::begin;
    expected = {7006, {"0", "x"}};
  }
  SUBCASE("early end") {
    x.kind = op_kind::end;
    expected = {7008, {"0", "x"}};
  }
  SUBCASE("communicator") {
    x.kind = op_kind::collective;
    x.communicator = 2;
    expected = {7014, {"0", "x", "2", "2"}};
  }
  SUBCASE("peer") {
    x.kind = op_kind::receive;
    x.communicator = 0;
    x.peer = 0;
    x.bytes = 8;
    expected = {7016, {"0", "x", "0", "a"}};
  }
  SUBCASE("not a member") {
    s.p.communicators.push_back({"c", {1}});
    x.kind = op_kind::collective;
    x.communicator = 2;
    expected = {7015, {"0", "x", "c"}};
  }
  SUBCASE("bytes of the message") {
    x.kind = op_kind::receive;
    x.communicator = 0;
    x.peer = 1;
    x.bytes = 12;
    expected = {7026, {"0", "x", "8", "12"}};
  }
  CHECK(s.refusal() == expected);
}

TEST_CASE("structure of ranks and communicators") {
  sketch s(2);
  SUBCASE("no end") { CHECK(s.judged() == said{7018, {"0", "1"}}); }
  SUBCASE("op after the end") {
    s.add(0, {.kind = op_kind::end, .name = "end"});
    s.compute(0, "x", 0, {}, {});
    s.add(1, {.kind = op_kind::end, .name = "end"});
    CHECK(s.judged() == said{7008, {"0", "end"}});
  }
  SUBCASE("communicator names a rank twice") {
    s.p.communicators[0].ranks = {0, 1, 1};
    CHECK(s.refusal() == said{7004, {"a", "1"}});
  }
  SUBCASE("communicator names no rank") {
    s.p.communicators[0].ranks = {0, 2};
    CHECK(s.refusal() == said{7003, {"a", "2", "1"}});
  }
  SUBCASE("no ranks at all") {
    s.p.ranks.clear();
    CHECK(said_in(prove(s.p).reasons.at(0)) == said{7017, {}});
  }
}

TEST_CASE("a long program is proven and checked") {
  const auto p = pipeline_program({.pp = 4, .tp = 2, .microbatches = 256, .layers = 3});
  std::size_t ops = 0;
  for (const auto& r : p.ranks) ops += r.ops.size();
  CHECK(ops > 40000);
  const auto clock = [] { return std::chrono::steady_clock::now(); };
  const auto seconds = [](auto d) { return std::chrono::duration<double>(d).count(); };
  const auto start = clock();
  const auto v = prove(p);
  const auto proven = clock();
  CHECK(v.ok);
  const auto text = certificate(p, v);
  const auto written = clock();
  CHECK(verify(text) == "");
  MESSAGE(ops << " ops: prove " << seconds(proven - start) << " s, certificate " << text.size()
              << " bytes in " << seconds(written - proven) << " s, verify " << seconds(clock() - written)
              << " s");
}

}  // namespace prove_test
