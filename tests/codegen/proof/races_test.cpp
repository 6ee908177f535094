// SPDX-License-Identifier: Apache-2.0
// Races that no read reveals: two ops write the same bytes at once, and a collective does not give an order
// that the program relies on.
#include "mutations.hpp"
#include "sketch.hpp"

#include <string>

namespace races_test {

namespace {

using namespace rankc::codegen;
using rankc::codegen::testing::sketch;
using rankc::test::said;
using rankc::test::said_in;

/// The proof's first reason, or none, and the checker's about the same program.
struct opinions {
  said proof, checker;
  bool operator==(const opinions&) const = default;
};
/// A refused race must do harm in some interleaving, and an accepted program in none.
opinions opinions_of(sketch& s) {
  const said proof = s.refusal();
  testing::mutation_report report;
  testing::judge(s.p, {"race", "by hand"}, 1, report);
  CHECK(report.false_accepts.empty());
  const bool is_race = proof.id == 7069 || proof.id == 7240;
  CHECK((report.total.harmful == 1 || !is_race));
  return {proof, said_in(verify(certificate(s.p, prove(s.p))))};
}
const opinions accepted{};

/// The race between the op "early", which reads bytes 0..100 of rank 0, and the op "late", which writes
/// there.
const opinions overwritten{{7069, {"0", "late", "40", "100", "early"}}, {7188, {"0", "late", "40", "early"}}};

}  // namespace

TEST_CASE("two ops that may run at once do not write the same bytes, though nobody reads these") {
  sketch s(1);
  const auto both = [&](int value) {
    s.compute(0, "F0: attention", 0, {}, {{200, 300, 1}});
    return &s.compute(0, "B0: attention_grad", 1, {}, {{250, 350, value}});
  };
  opinions expected{{7240, {"0", "F0: attention", "B0: attention_grad", "250", "300"}},
                    {7250, {"0", "B0: attention_grad", "250", "F0: attention"}}};
  SUBCASE("two values") { both(2); }
  SUBCASE("one value") { both(1); }
  SUBCASE("an event orders them") {
    both(2)->waits = {1};
    expected = accepted;
  }
  SUBCASE("a later op that an event orders hides nothing") {
    both(2);
    s.compute(0, "ordered", 2, {}, {{250, 300, 3}}).waits = {1, 2};
  }
  CHECK(opinions_of(s) == expected);
}

TEST_CASE("a message writes until it has arrived") {
  sketch s(2);
  s.send(1, "x", 0, 0, {0, 100, 0});
  s.receive(0, "x", 0, 1, {200, 300, 0});
  op& scratch = s.compute(0, "F0: attention", 1, {}, {{200, 300, 1}});
  SUBCASE("at once") {
    CHECK(opinions_of(s) == opinions{{7240, {"0", "x", "F0: attention", "200", "300"}},
                                     {7250, {"0", "F0: attention", "200", "x"}}});
  }
  SUBCASE("one after the other") {
    scratch.waits = {1};
    CHECK(opinions_of(s) == accepted);
  }
}

TEST_CASE("writes are ordered by what comes back from another rank, too") {
  sketch s(2);
  s.compute(0, "early", 0, {}, {{300, 400, 1}});
  s.send(0, "x", 0, 1, {0, 4, 0});
  s.receive(1, "x", 0, 0, {200, 204, 0});
  s.send(1, "y", 0, 0, {200, 204, 0}, 1);
  s.receive(0, "y", 2, 1, {200, 204, 0}, 1);
  s.compute(0, "late", 2, {}, {{300, 400, 2}});
  CHECK(opinions_of(s) == accepted);
}

namespace {

/// Shift two tensors around a ring of all ranks, on stream 0.
void shift(sketch& s, int r, collective_kind does) {
  s.add(r, {.kind = op_kind::collective,
            .name = "shift",
            .reads = {{0, 8, 0}, {8, 16, 0}},
            .writes = {{300, 308, 100 + 2 * r}, {308, 316, 101 + 2 * r}},
            .communicator = 0,
            .bytes = 16,
            .message = 7,
            .does = does});
}

/// Rank 0 in a ring of four reads bytes and shifts. It overwrites the bytes after a message from a rank whose
/// own part of the shift has ended.
opinions after_message_of(int sender, collective_kind does) {
  sketch s(4);
  for (int r = 0; r < 4; ++r) {
    if (r == 0) s.compute(0, "early", 0, {{0, 100, 0}}, {});
    shift(s, r, does);
    if (r == sender) s.send(r, "x", 0, 0, {0, 4, 0}, 1);
  }
  s.receive(0, "x", 1, sender, {200, 204, 0}, 1);
  s.compute(0, "late", 1, {{200, 204, 0}}, {{40, 100, 1}});
  return opinions_of(s);
}

}  // namespace

TEST_CASE("a shift ends when the giver has begun, whatever the others do") {
  CHECK(after_message_of(1, collective_kind::shift) == accepted);  // rank 0 sends to rank 1
  CHECK(after_message_of(2, collective_kind::shift) == overwritten);
  CHECK(after_message_of(3, collective_kind::shift) == overwritten);
  CHECK(after_message_of(3, collective_kind::shift_back) == accepted);
  CHECK(after_message_of(2, collective_kind::shift_back) == overwritten);
  CHECK(after_message_of(1, collective_kind::shift_back) == overwritten);
}

TEST_CASE("a sum over all members orders them all") {
  for (int sender = 1; sender < 4; ++sender) {
    sketch s(4);
    for (int r = 0; r < 4; ++r) {
      if (r == 0) s.compute(0, "early", 0, {{0, 100, 0}}, {});
      s.sum(r, "sum", 0);
      if (r == sender) s.send(r, "x", 0, 0, {0, 4, 0}, 1);
    }
    s.receive(0, "x", 1, sender, {200, 204, 0}, 1);
    s.compute(0, "late", 1, {{200, 204, 0}}, {{40, 100, 1}});
    CHECK(opinions_of(s) == accepted);
  }
}

namespace {

/// Two ranks pipeline rows with a GEMM. A message to rank 0 follows the first or the later op of the pair.
struct row_pipelined {
  sketch s{2};
  explicit row_pipelined(bool gathers) {
    for (int r = 0; r < 2; ++r) {
      const int first = 10 * (r + 1);
      op moved{.kind = op_kind::collective,
               .name = "rows",
               .communicator = 0,
               .bytes = 8,
               .message = 7,
               .does = gathers ? collective_kind::all_gather : collective_kind::reduce_scatter,
               .by_rows = 1};
      op product{.name = "product"};
      op &earlier = gathers ? moved : product, &later = gathers ? product : moved;
      earlier.reads = {gathers ? access{0, 8, 0} : access{0, 100, 0}};
      earlier.writes = {{104, 120, first}};
      later.reads = {{104, 120, first}};
      later.writes = {{120, 128, first + 1}};
      s.add(r, earlier);
      s.add(r, later);
    }
  }
};

}  // namespace

TEST_CASE("a product whose rows are summed as it makes them still runs when other ranks have their sums") {
  row_pipelined p(false);
  p.s.p.ranks[0].ops[1].name = "early";
  p.s.send(1, "x", 0, 0, {0, 4, 0}, 1);
  p.s.receive(0, "x", 1, 1, {200, 204, 0}, 1);
  p.s.compute(0, "late", 1, {{200, 204, 0}}, {{40, 100, 1}});
  CHECK(opinions_of(p.s) == overwritten);
}

TEST_CASE("a product begins before the rows of other ranks are there") {
  // Rank 1 gathers after a message that follows "early"; rank 0's GEMM writes the bytes that "early" reads.
  row_pipelined p(true);
  auto& ops = p.s.p.ranks[0].ops;
  ops[2].name = "late";
  ops[2].writes = {{40, 100, 1}};
  ops.insert(ops.begin() + 1, {.name = "early", .stream = 1, .reads = {{0, 100, 0}}});
  op message{.kind = op_kind::send, .name = "x", .stream = 1, .reads = {{0, 4, 0}}, .communicator = 1};
  message.peer = 1;
  message.bytes = 4;
  ops.insert(ops.begin() + 2, message);
  message.kind = op_kind::receive;
  message.peer = 0;
  message.stream = 0;
  message.reads = {};
  message.writes = {{200, 204, 0}};
  p.s.p.ranks[1].ops.insert(p.s.p.ranks[1].ops.begin() + 1, message);
  CHECK(opinions_of(p.s) == overwritten);
}

TEST_CASE("once a pair has ended all members have begun theirs") {
  for (const bool gathers : {true, false}) {
    row_pipelined p(gathers);
    auto& ops = p.s.p.ranks[0].ops;
    ops.insert(ops.begin() + 1, {.name = "early", .reads = {{0, 100, 0}}});
    p.s.send(1, "x", 0, 0, {0, 4, 0}, 1);
    p.s.receive(0, "x", 1, 1, {200, 204, 0}, 1);
    p.s.compute(0, "late", 1, {{200, 204, 0}}, {{40, 100, 1}});
    CHECK(opinions_of(p.s).proof == (gathers ? said{} : said{7069, {"0", "late", "40", "100", "product"}}));
  }
}

TEST_CASE("no op waits for one that is row-pipelined, but for the last of the pair") {
  for (const int waited : {1, 2}) {
    row_pipelined p(false);
    p.s.compute(0, "elsewhere", 1, {}, {{300, 308, 1}}).waits = {waited};
    CHECK(opinions_of(p.s) ==
          (waited == 2 ? accepted
                       : opinions{{7036, {"0", "elsewhere", "product"}}, {7195, {"0", "elsewhere", "1"}}}));
  }
}

namespace {

/// One all-reduce of two tensors of equal size; the ranks may have different layouts.
op& sum_of_two(sketch& s, int r, std::size_t first, std::size_t second) {
  return s.add(r, {.kind = op_kind::collective,
                   .name = "bucket",
                   .reads = {{first, first + 8, 0}, {second, second + 8, 0}},
                   .writes = {{first, first + 8, 50 + 2 * r, element_type::bytes, 0},
                              {second, second + 8, 51 + 2 * r, element_type::bytes, 1}},
                   .communicator = 0,
                   .bytes = 16,
                   .message = 7});
}

}  // namespace

TEST_CASE("a call that is given several tensors finds them in one order on all members") {
  sketch s(2);
  sum_of_two(s, 0, 0, 8);
  SUBCASE("in one order, elsewhere") {
    sum_of_two(s, 1, 16, 24);
    CHECK(opinions_of(s) == accepted);
  }
  SUBCASE("in another order") {
    sum_of_two(s, 1, 8, 0);
    CHECK(opinions_of(s) == opinions{{7241, {"0", "bucket", "1", "8", "-8", "1"}},
                                     {7251, {"0", "bucket", "1", "8", "-8", "1"}}});
  }
}

TEST_CASE("members whose arenas have one layout find each other's operands at their own offset") {
  sketch s(2);
  s.sum(0, "x", 0);
  op& other = s.sum(1, "x", 0);
  access& moved = other.writes[0];
  moved = {308, 312, moved.value};
  s.p.communicators[0].one_layout = true;
  SUBCASE("a result") {
    CHECK(opinions_of(s) ==
          opinions{{7243, {"0", "x", "300", "308", "1", "a"}}, {7253, {"0", "x", "300", "308", "1"}}});
  }
  SUBCASE("an operand") {
    moved = {300, 304, moved.value};
    other.reads[0] = {4, 8, 0};
    CHECK(opinions_of(s) ==
          opinions{{7243, {"0", "x", "0", "4", "1", "a"}}, {7253, {"0", "x", "0", "4", "1"}}});
  }
  SUBCASE("the same") {
    moved = {300, 304, moved.value};
    CHECK(opinions_of(s) == accepted);
  }
  SUBCASE("layouts of their own") {
    s.p.communicators[0].one_layout = false;
    CHECK(opinions_of(s) == accepted);
  }
}

TEST_CASE("a message between arenas of one layout is sent and received at one offset") {
  sketch s(2);
  s.p.communicators[0].one_layout = true;
  s.send(0, "x", 0, 1, {0, 4, 0});
  access& received = s.receive(1, "x", 0, 0, {0, 4, 0}).writes[0];
  SUBCASE("at others") {
    received = {300, 304, 0};
    CHECK(opinions_of(s) ==
          opinions{{7243, {"0", "x", "0", "300", "1", "a"}}, {7253, {"0", "x", "0", "300", "1"}}});
  }
  SUBCASE("at others, between layouts of their own") {
    received = {300, 304, 0};
    s.p.communicators[0].one_layout = false;
    CHECK(opinions_of(s) == accepted);
  }
  SUBCASE("at one") {
    received = {0, 4, 0};
    CHECK(opinions_of(s) == accepted);
  }
}

TEST_CASE("members that run alike have one layout") {
  sketch s(2);
  for (rank_program& r : s.p.ranks) r.ops[0].holds = {{.kind = holding_kind::weight, .name = "w"}};
  s.sum(0, "x", 0);
  s.sum(1, "x", 0);
  opinions expected{{7244, {"a"}}, {7262, {"a"}}};
  SUBCASE("as they do") {}
  SUBCASE("with other tensors") {
    s.p.ranks[1].ops[0].holds[0].name = "v";
    expected = accepted;
  }
  SUBCASE("with other ops, as copies of one stage") {
    s.compute(1, "1F0", 0, {{0, 100, 0}}, {});
    expected = accepted;
  }
  SUBCASE("as is said of them") {
    for (communicator& c : s.p.communicators) c.one_layout = true;
    expected = accepted;
  }
  CHECK(opinions_of(s) == expected);
}

TEST_CASE("members give a collective the same number of tensors") {
  sketch s(2);
  sum_of_two(s, 0, 0, 8);
  op& whole = sum_of_two(s, 1, 0, 8);
  whole.reads = {{0, 16, 0}};
  whole.writes = {{0, 16, 52, element_type::bytes, 0}};
  CHECK(opinions_of(s) == opinions{{7242, {"0", "bucket", "2", "2", "1", "1", "1"}},
                                   {7252, {"0", "bucket", "2", "2", "1", "1", "1"}}});
}

}  // namespace races_test
