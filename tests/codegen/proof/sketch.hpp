// SPDX-License-Identifier: Apache-2.0
// A program built op by op, for tests of the proof. Each verdict is compared with the checker's.
#pragma once
#include "../../said.hpp"

#include <rankc/codegen/certificate.hpp>
#include <rankc/codegen/prove.hpp>
#include <rankc/codegen/verify.hpp>

#include <doctest/doctest.h>

#include <utility>
#include <vector>

namespace rankc::codegen::testing {

using rankc::test::said;
using rankc::test::said_in;

/// Ranks whose bytes 0..100 hold value 0 from the start, with four streams and communicators over all ranks.
struct sketch {
  program p{.plan = "sketch", .streams = 4};

  explicit sketch(int ranks) {
    p.communicators = {{"a", {}}, {"b", {}}};
    for (int r = 0; r < ranks; ++r) {
      for (auto& c : p.communicators) c.ranks.push_back(r);
      p.ranks.push_back({{{.kind = op_kind::begin, .name = "begin", .writes = {{0, 100, 0}}}}, 400});
    }
  }
  op& add(int r, op o) {
    p.ranks[r].ops.push_back(std::move(o));
    return p.ranks[r].ops.back();
  }
  op& compute(int r, const char* name, int stream, std::vector<access> reads, std::vector<access> writes) {
    return add(r, {.name = name, .stream = stream, .reads = std::move(reads), .writes = std::move(writes)});
  }
  op& transfer(int r, op_kind kind, const char* name, int stream, int peer, access a, int communicator = 0) {
    op o{.kind = kind, .name = name, .stream = stream, .communicator = communicator, .peer = peer};
    o.bytes = a.end - a.begin;
    o.message = name[0];
    (kind == op_kind::send ? o.reads : o.writes) = {a};
    return add(r, std::move(o));
  }
  op& send(int r, const char* name, int stream, int to, access a, int communicator = 0) {
    return transfer(r, op_kind::send, name, stream, to, a, communicator);
  }
  op& receive(int r, const char* name, int stream, int from, access a, int communicator = 0) {
    return transfer(r, op_kind::receive, name, stream, from, a, communicator);
  }
  op& sum(int r, const char* name, int stream, int communicator = 0) {
    return add(r, {.kind = op_kind::collective,
                   .name = name,
                   .stream = stream,
                   .reads = {{0, 4, 0}},
                   .writes = {{300, 304, 1000 + name[0]}},
                   .communicator = communicator,
                   .bytes = 4,
                   .message = name[0]});
  }
  /// The first reason of a refusal, or none; the checker must agree.
  said refusal(std::vector<access> kept = {}) {
    for (auto& r : p.ranks) r.ops.push_back({.kind = op_kind::end, .name = "end"});
    p.ranks[0].ops.back().reads = std::move(kept);
    return judged();
  }
  said judged() const {
    const auto v = prove(p);
    CHECK(v.ok == v.reasons.empty());
    CHECK(verify(certificate(p, v)).empty() == v.ok);
    return v.ok ? said{} : said_in(v.reasons[0]);
  }
};

}  // namespace rankc::codegen::testing
