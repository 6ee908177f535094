// SPDX-License-Identifier: Apache-2.0
// Collectives that overlap a GEMM row by row, in a handmade program of two ranks: the requirements of the
// proof and the checker.
#include "../../said.hpp"

#include <rankc/codegen/certificate.hpp>
#include <rankc/codegen/program.hpp>
#include <rankc/codegen/prove.hpp>
#include <rankc/codegen/verify.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <utility>

namespace by_rows_test {

namespace {

using namespace rankc::codegen;
using rankc::test::said;
using rankc::test::said_in;

constexpr std::size_t part = 64, whole = 2 * part;
enum op_index { begins, gathers, takes_rows, makes_rows, deals, uses, ends };

/// x is all-gathered into `all`, and one GEMM makes y. Another GEMM makes z from y, and z is reduce-scattered
/// to s.
program right() {
  program p{.plan = "by hand", .streams = 1, .communicators = {{"tp", {0, 1}}}};
  for (int rank = 0; rank < 2; ++rank) {
    int value = 10 * rank;
    const auto at = [&](std::size_t first, std::size_t bytes) {
      return rankc::codegen::access{first, first + bytes, value++, element_type::f32};
    };
    const auto x = at(0, part), w = at(64, part), all = at(128, whole), y = at(256, whole),
               z = at(384, whole), s = at(512, part), kept = at(576, part);
    std::vector<op> ops{{.kind = op_kind::begin, .name = "begin", .writes = {x, w}},
                        {.kind = op_kind::collective,
                         .name = "gather",
                         .reads = {x},
                         .writes = {all},
                         .communicator = 0,
                         .bytes = part,
                         .message = 0,
                         .does = collective_kind::all_gather,
                         .by_rows = 1},
                        {.name = "takes rows", .reads = {all, w}, .writes = {y}},
                        {.name = "makes rows", .reads = {y, w}, .writes = {z}},
                        {.kind = op_kind::collective,
                         .name = "deal",
                         .reads = {z},
                         .writes = {s},
                         .communicator = 0,
                         .bytes = part,
                         .message = 1,
                         .does = collective_kind::reduce_scatter,
                         .by_rows = 1},
                        {.name = "uses", .reads = {s}, .writes = {kept}},
                        {.kind = op_kind::end, .name = "end", .reads = {kept, w}}};
    p.ranks.push_back({.ops = std::move(ops), .arena_bytes = 640});
  }
  return p;
}

/// Both refuse a program with a change on both ranks, and both accept it if the two ops run one after the
/// other.
void expect_refused(const std::function<void(rank_program&)>& change, const said& by_proof,
                    const said& by_checker, int streams = 1) {
  program p = right();
  p.streams = streams;
  for (rank_program& r : p.ranks) change(r);
  program apart = p;
  for (rank_program& r : apart.ranks)
    for (op& o : r.ops) o.by_rows = 0;
  const verdict order = prove(apart);
  REQUIRE_MESSAGE(order.ok, (order.ok ? "" : order.reasons.front()));
  CHECK(verify(certificate(apart, order)) == "");
  const verdict v = prove(p);
  REQUIRE(!v.ok);
  CHECK(said_in(v.reasons.front()) == by_proof);
  CHECK(said_in(verify(certificate(p, order))) == by_checker);
}

/// Move a value of a rank to another address.
void put(rank_program& r, const rankc::codegen::access& what, std::size_t first) {
  const int value = what.value;
  const std::size_t size = what.end - what.begin;
  for (op& o : r.ops)
    for (auto* accesses : {&o.reads, &o.writes})
      for (auto& a : *accesses)
        if (a.value == value) {
          a.begin = first;
          a.end = first + size;
        }
}

}  // namespace

TEST_CASE("a collective and its product go at once") {
  const program p = right();
  const verdict order = prove(p);
  CHECK_MESSAGE(order.ok, (order.ok ? "" : order.reasons.front()));
  CHECK(verify(certificate(p, order)) == "");
}

TEST_CASE("what the later writes may not lie where the earlier reads") {
  expect_refused(
      [](rank_program& r) {
        put(r, r.ops[takes_rows].writes[0], 0);
        put(r, r.ops[begins].writes[1], 256);
      },  // y overlaps x
      {7034, {"0", "gather", "write", "takes rows", "0", "128", "0", "64", "gather"}},
      {7191, {"0", "gather", "takes rows"}});
  expect_refused([](rank_program& r) { put(r, r.ops[deals].writes[0], 256 + 32); },  // s overlaps y
                 {7034, {"0", "deal", "write", "deal", "288", "352", "256", "384", "makes rows"}},
                 {7191, {"0", "deal", "makes rows"}});
}

TEST_CASE("what was dealt out is gone") {
  expect_refused([](rank_program& r) { r.ops[uses].reads.push_back(r.ops[deals].reads[0]); },
                 {7037, {"0", "uses", "384", "512"}}, {7196, {"0", "uses", "384", "512"}});
}

TEST_CASE("the two are neighbours, and one takes what the other gives") {
  // The GEMM reads w in place of `all`.
  expect_refused([](rank_program& r) { r.ops[takes_rows].reads[0] = r.ops[takes_rows].reads[1]; },
                 {7032, {"0", "gather", "takes rows"}}, {7190, {"0", "gather", "takes rows"}});
  expect_refused(
      [](rank_program& r) {
        r.ops.insert(r.ops.begin() + deals, {.name = "between", .reads = {r.ops[begins].writes[1]}});
      },
      {7032, {"0", "deal", "between"}}, {7190, {"0", "deal", "between"}});
  expect_refused(
      [](rank_program& r) {  // one GEMM is paired with both collectives
        r.ops[takes_rows].writes[0] = r.ops[makes_rows].writes[0];
        r.ops.erase(r.ops.begin() + makes_rows);
      },
      {7039, {"0", "deal"}}, {7199, {"0", "deal"}});
}

TEST_CASE("other collectives do not go so, and all members go alike") {
  program p = right();
  for (rank_program& r : p.ranks) {
    op& o = r.ops[deals];
    o.does = collective_kind::all_reduce;
    o.bytes = whole;
    o.writes[0].begin = o.reads[0].begin;
    o.writes[0].end = o.reads[0].end;
    o.writes[0].replaces = 0;
    r.ops[uses].reads[0].begin = o.writes[0].begin;
    r.ops[uses].reads[0].end = o.writes[0].end;
  }
  const verdict order = prove(right());
  CHECK(said_in(prove(p).reasons.front()) == said{7030, {"0", "deal"}});
  CHECK(said_in(verify(certificate(p, order))) == said{7197, {"0", "deal", "all_reduce"}});
  program one = right();
  one.ranks[1].ops[gathers].by_rows = 0;
  CHECK(!prove(one).ok);
  CHECK(verify(certificate(one, order)) != "");
}

/// An op between a collective and its GEMM: it reads 8 bytes and writes 8 bytes.
op between(std::size_t reads, std::size_t writes) {
  return {.name = "between",
          .reads = {{reads, reads + 8, 98, element_type::f32}},
          .writes = {{writes, writes + 8, 99, element_type::f32}}};
}
void put_between(rank_program& r, op_index first, op_index collective, std::size_t reads,
                 std::size_t writes) {
  r.ops[begins].writes.push_back(between(reads, writes).reads[0]);
  r.ops[collective].by_rows = 2;
  r.ops.insert(r.ops.begin() + first + 1, between(reads, writes));
  r.arena_bytes = 660;
}

TEST_CASE("what has no part in either runs meanwhile") {
  for (const auto& [first, collective] : {std::pair(gathers, gathers), std::pair(makes_rows, deals)}) {
    program p = right();
    for (rank_program& r : p.ranks) put_between(r, first, collective, 640, 648);
    const verdict order = prove(p);
    CHECK_MESSAGE(order.ok, (order.ok ? "" : order.reasons.front()));
    CHECK(verify(certificate(p, order)) == "");
  }
}

TEST_CASE("what runs meanwhile touches nothing of the collective") {
  const auto put = [](op_index first, op_index collective, std::size_t reads, std::size_t writes) {
    return [=](rank_program& r) { put_between(r, first, collective, reads, writes); };
  };
  expect_refused(put(gathers, gathers, 640, 0),
                 {7034, {"0", "gather", "write", "between", "0", "8", "0", "64", "gather"}},
                 {7193, {"0", "gather", "between"}});
  expect_refused(put(makes_rows, deals, 640, 512),
                 {7034, {"0", "deal", "write", "between", "512", "520", "512", "576", "deal"}},
                 {7193, {"0", "deal", "between"}});
  expect_refused(
      [](rank_program& r) {
        put_between(r, makes_rows, deals, 640, 648);
        r.ops[deals].reads.push_back(
            r.ops[makes_rows].writes[0]);  // the op between has the index that the reduce-scatter had
      },
      {7034, {"0", "deal", "read", "between", "384", "512", "384", "512", "deal"}},
      {7193, {"0", "deal", "between"}});
}

TEST_CASE("what runs meanwhile is a kernel") {
  expect_refused(
      [](rank_program& r) {
        put_between(r, gathers, gathers, 640, 648);
        op& o = r.ops[gathers + 1];
        o.kind = op_kind::collective;
        o.communicator = 0;
        o.bytes = 8;
        o.message = 2;
        o.writes = {{640, 648, 99, element_type::f32, 0}};
      },
      {7033, {"0", "gather", "between"}}, {7192, {"0", "gather", "between"}});
}

/// Copy the gathered rows on another stream; the end waits for the copy.
void copy_elsewhere(rank_program& r, int after) {
  const rankc::codegen::access all = r.ops[gathers].writes[0];
  r.ops.insert(r.ops.begin() + takes_rows + 1, {.name = "copies",
                                                .stream = 1,
                                                .waits = {after},
                                                .reads = {all},
                                                .writes = {{640, 640 + whole, 97, element_type::f32}}});
  r.ops.back().waits.push_back(takes_rows + 1);
  r.arena_bytes = 640 + whole;
}

TEST_CASE("what is gathered has arrived when the product ends") {
  program p = right();
  p.streams = 2;
  for (rank_program& r : p.ranks) copy_elsewhere(r, takes_rows);
  const verdict order = prove(p);
  CHECK_MESSAGE(order.ok, (order.ok ? "" : order.reasons.front()));
  CHECK(verify(certificate(p, order)) == "");
  expect_refused([](rank_program& r) { copy_elsewhere(r, gathers); }, {7036, {"0", "copies", "gather"}},
                 {7195, {"0", "copies", "1"}}, 2);
}

TEST_CASE("of what goes at once the first waits") {
  expect_refused(
      [](rank_program& r) {
        r.ops.insert(r.ops.begin() + gathers,
                     {.name = "elsewhere", .stream = 1, .reads = {r.ops[begins].writes[1]}});
        r.ops[takes_rows + 1].waits.push_back(gathers);
      },
      {7035, {"0", "gather", "takes rows", "gather"}}, {7194, {"0", "gather", "takes rows"}}, 2);
}

TEST_CASE("the product is one of the next two") {
  program p = right();
  for (rank_program& r : p.ranks) r.ops[gathers].by_rows = 3;
  CHECK(said_in(prove(p).reasons.front()) == said{7038, {"0", "gather", "3"}});
  std::string text = certificate(p, prove(right()));
  CHECK(said_in(verify(text)) == said{7110, {"op \"gather\"", "by_rows 0, 1 or 2"}});
  text.replace(text.find("\"by_rows\":3"), 11, "\"by_rows\":true");
  CHECK(said_in(verify(text)) == said{7104, {"op \"gather\": by_rows", "true"}});
}

}  // namespace by_rows_test
