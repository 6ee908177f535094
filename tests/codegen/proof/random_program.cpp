// SPDX-License-Identifier: Apache-2.0
#include "random_program.hpp"

#include <algorithm>
#include <random>
#include <string>

namespace rankc::codegen::testing {

namespace {

constexpr int n_streams = 3, n_bytes = 6;

struct maker {
  std::mt19937 random;
  program result{.plan = "random", .streams = n_streams};
  // (ranks, bytes): the values if all ops ran in the order in which they were made.
  std::vector<std::vector<int>> contents;
  int values = 0, messages = 0, wait_percent = 0;

  int below(int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); }

  /// An access of some bytes that hold one value.
  access read(int r) {
    const int at = below(n_bytes), value = contents[r][at];
    int end = at + 1;
    while (end < n_bytes && contents[r][end] == value && below(2)) ++end;
    return {static_cast<std::size_t>(at), static_cast<std::size_t>(end), value};
  }
  access write(int r, int size, int value) {
    const int at = below(n_bytes - size + 1);
    std::fill_n(contents[r].begin() + at, size, value);
    return {static_cast<std::size_t>(at), static_cast<std::size_t>(at + size), value};
  }

  void add(int r, op o) {
    auto& ops = result.ranks[r].ops;
    for (int tries = 0; tries < 3; ++tries)
      if (below(100) < wait_percent) o.waits.push_back(below(static_cast<int>(ops.size())));
    o.stream = below(n_streams);
    ops.push_back(std::move(o));
  }

  void compute(int r) {
    op o{.kind = op_kind::compute, .name = "compute " + std::to_string(values)};
    if (below(4)) o.reads.push_back(read(r));
    if (o.reads.size() == 1 && below(3) == 0) {
      o.writes.push_back(o.reads[0]);  // in place
      o.writes[0].value = values++;
      o.writes[0].replaces = 0;
      std::fill(contents[r].begin() + o.reads[0].begin, contents[r].begin() + o.reads[0].end, values - 1);
    } else if (below(4)) {
      o.writes.push_back(write(r, 1 + below(2), values++));
    }
    add(r, std::move(o));
  }

  void transfer(int from) {
    const int to = 1 - from;
    op o{.name = "message " + std::to_string(messages), .communicator = below(2), .message = messages++};
    const access a = read(from);
    o.bytes = a.end - a.begin;
    op receive = o;
    o.kind = op_kind::send;
    o.peer = to;
    o.reads = {a};
    receive.kind = op_kind::receive;
    receive.peer = from;
    receive.writes = {write(to, static_cast<int>(o.bytes), a.value)};
    add(from, std::move(o));
    add(to, std::move(receive));
  }

  void sum() {
    for (int r = 0; r < 2; ++r) {
      op o{.kind = op_kind::collective,
           .name = "sum " + std::to_string(messages),
           .communicator = 0,
           .bytes = 1,
           .message = messages};
      access a = read(r);
      a.end = a.begin + 1;
      access b = write(r, 1, values++);
      if (a.begin == b.begin) b.replaces = 0;
      o.reads = {a};
      o.writes = {b};
      add(r, std::move(o));
    }
    ++messages;
  }

  program make() {
    const int ranks = 1 + below(2);
    wait_percent = 20 + below(75);
    contents.assign(ranks, std::vector<int>(n_bytes));
    result.communicators = {{"one", {0}}, {"two", {0}}};
    for (auto& c : result.communicators)
      if (ranks == 2) c.ranks = {0, 1};
    for (int r = 0; r < ranks; ++r) {
      op begin{.kind = op_kind::begin, .name = "begin"};
      begin.writes = {write(r, n_bytes, values++)};
      std::fill(contents[r].begin(), contents[r].end(), begin.writes[0].value);
      begin.writes[0].begin = 0;
      begin.writes[0].end = n_bytes;
      result.ranks.push_back({{begin}, n_bytes});
    }
    const int talk_percent = ranks == 2 ? 20 + below(60) : 0;
    for (int n = 3 + below(8); n > 0; --n) {
      if (below(100) >= talk_percent) compute(below(ranks));
      else below(3) ? transfer(below(ranks)) : sum();
    }
    for (int r = 0; r < ranks; ++r) {
      op end{.kind = op_kind::end, .name = "end", .reads = {read(r)}};
      result.ranks[r].ops.push_back(std::move(end));
    }
    return std::move(result);
  }
};

}  // namespace

program random_program(unsigned seed) { return maker{.random = std::mt19937(seed)}.make(); }

}  // namespace rankc::codegen::testing
