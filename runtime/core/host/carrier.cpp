// SPDX-License-Identifier: Apache-2.0
#include "carrier.hpp"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace rankc::runtime::host {
namespace {

constexpr int communicator_shift = 40;  // bit of a slot number: a communicator has fewer than 2^40 moves

template <std::size_t N>
void copy_text(char (&to)[N], const char* from) {
  std::string_view(from).copy(to, N - 1);
}

std::size_t sum_bytes(const op& o) { return o.count * o.element; }

}  // namespace

greeting::greeting(const op& o)
    : plan_hash(o.plan_hash),
      step(o.step),
      count(o.count),
      second_count(o.second_count),
      rank(o.rank),
      kind(static_cast<std::int32_t>(o.kind)),
      index(o.what.index),
      element(static_cast<std::int32_t>(o.element)),
      type(static_cast<std::int32_t>(o.type)),
      how(static_cast<std::int32_t>(o.reduce)),
      communicator(o.communicator) {
  copy_text(site, o.what.name);
  copy_text(action, o.action);
}

op greeting::as_op() const {
  op o;
  o.plan_hash = plan_hash;
  o.step = step;
  o.count = count;
  o.second_count = second_count;
  o.rank = rank;
  o.kind = static_cast<op_kind>(kind);
  o.what = {index, site};
  o.element = static_cast<std::size_t>(element);
  o.type = static_cast<dtype>(type);
  o.reduce = static_cast<reduction>(how);
  o.communicator = communicator;
  o.action = action;
  return o;
}

carrier::carrier(runtime::transport& wires, std::span<const int> ranks, int communicator, int own_rank,
                 std::function<std::string(const op&, const op&)> mismatch)
    : wires_(wires),
      ranks_(ranks),
      communicator_(static_cast<std::uint64_t>(communicator) + 1),
      own_(static_cast<std::size_t>(std::find(ranks.begin(), ranks.end(), own_rank) - ranks.begin())),
      mismatch_(std::move(mismatch)),
      greetings_(ranks.size()) {}

void carrier::exchange(const std::vector<runtime::transport::outgoing>& out,
                       const std::vector<runtime::transport::incoming>& in) {
  wires_.move(communicator_ << communicator_shift | moves_++, out, in);
}

// All members receive the same mismatch error. It is a fault of the plan or of a binary, and no data has
// moved yet.
void carrier::greet(const op& mine) {
  greetings_[own_] = greeting(mine);
  gather(reinterpret_cast<const std::byte*>(&greetings_[own_]),
         reinterpret_cast<std::byte*>(greetings_.data()), sizeof(greeting));
  const op first = greetings_[0].as_op();
  for (std::size_t m = 1; m < members(); ++m) {
    const op other = greetings_[m].as_op();
    if (!agree(first, other)) throw failure::reported(70, mismatch_(first, other));
  }
}

void carrier::carry(const op& mine) {
  greet(mine);
  switch (mine.kind) {
    case op_kind::wait:
    case op_kind::work:
      return;
    case op_kind::send:
      return exchange({{ranks_[1 - own_], mine.from, sum_bytes(mine)}}, {});
    case op_kind::receive:
      return exchange({}, {{ranks_[1 - own_], mine.to, sum_bytes(mine)}});
    case op_kind::all_gather:
      return gather(mine.from, mine.to, sum_bytes(mine));
    case op_kind::all_reduce:
      return all_reduce(mine);
    case op_kind::reduce_scatter:
      return reduce_scatter(mine);
    case op_kind::all_to_all:
      return all_to_all(mine);
    case op_kind::shift:
    case op_kind::shift_back:
      return shift(mine);
  }
}

// Shapes: from: (bytes) of this member; to: (members, bytes).
void carrier::gather(const std::byte* from, std::byte* to, std::size_t bytes) {
  std::vector<runtime::transport::outgoing> out;
  std::vector<runtime::transport::incoming> in;
  for (std::size_t m = 0; m < members(); ++m) {
    if (m == own_) continue;
    out.push_back({ranks_[m], from, bytes});
    in.push_back({ranks_[m], to + m * bytes, bytes});
  }
  exchange(out, in);
  if (to + own_ * bytes != from) std::memcpy(to + own_ * bytes, from, bytes);
}

// Adds this member's elements [first, first + count) and those that have arrived from the others, in member
// order.
// Shapes: arrived_: (members, count); this member's row is not used.
void carrier::sum_of_all(const op& mine, std::size_t first, std::size_t count, std::byte* to) {
  std::vector<op> parts(members(), mine);
  std::vector<op*> all;
  for (std::size_t m = 0; m < members(); ++m) {
    parts[m].from = m == own_ ? mine.from + first * mine.element : arrived_.data() + m * count * mine.element;
    all.push_back(&parts[m]);
  }
  reduce_into(to, all, count);
}

// Each member reduces one part and sends the sum to all.
void carrier::all_reduce(const op& mine) {
  const std::size_t part = (mine.count + members() - 1) / members();
  const auto first_of = [&](std::size_t m) { return std::min(mine.count, m * part); };
  const auto count_of = [&](std::size_t m) { return std::min(mine.count, (m + 1) * part) - first_of(m); };
  const std::size_t first = first_of(own_), count = count_of(own_), element = mine.element;
  arrived_.resize(std::max(arrived_.size(), members() * count * element));
  std::vector<runtime::transport::outgoing> parts, sums;
  std::vector<runtime::transport::incoming> others, results;
  for (std::size_t m = 0; m < members(); ++m) {
    if (m == own_) continue;
    parts.push_back({ranks_[m], mine.from + first_of(m) * element, count_of(m) * element});
    others.push_back({ranks_[m], arrived_.data() + m * count * element, count * element});
    sums.push_back({ranks_[m], mine.to + first * element, count * element});
    results.push_back({ranks_[m], mine.to + first_of(m) * element, count_of(m) * element});
  }
  exchange(parts, others);
  sum_of_all(mine, first, count, mine.to + first * element);
  exchange(sums, results);
}

// Shapes: from: (members, count); each member reduces its row.
void carrier::reduce_scatter(const op& mine) {
  const std::size_t bytes = sum_bytes(mine);
  arrived_.resize(std::max(arrived_.size(), members() * bytes));
  std::vector<runtime::transport::outgoing> parts;
  std::vector<runtime::transport::incoming> others;
  for (std::size_t m = 0; m < members(); ++m) {
    if (m == own_) continue;
    parts.push_back({ranks_[m], mine.from + m * bytes, bytes});
    others.push_back({ranks_[m], arrived_.data() + m * bytes, bytes});
  }
  exchange(parts, others);
  sum_of_all(mine, own_ * mine.count, mine.count, mine.to);
}

// Shapes: from, to: (members, count): one block to each member, and one from each.
void carrier::all_to_all(const op& mine) {
  const std::size_t bytes = sum_bytes(mine);
  std::vector<runtime::transport::outgoing> out;
  std::vector<runtime::transport::incoming> in;
  for (std::size_t m = 0; m < members(); ++m) {
    if (m == own_) continue;
    out.push_back({ranks_[m], mine.from + m * bytes, bytes});
    in.push_back({ranks_[m], mine.to + m * bytes, bytes});
  }
  exchange(out, in);
  std::memcpy(mine.to + own_ * bytes, mine.from + own_ * bytes, bytes);
}

// Moves one tensor after the other: to the neighbour on one side, from the neighbour on the other. With two
// members both are the same rank.
void carrier::shift(const op& mine) {
  const std::size_t n = members(), step = mine.kind == op_kind::shift ? 1 : n - 1,
                    second_bytes = mine.second_count * mine.element, bytes = sum_bytes(mine) - second_bytes;
  const int to = ranks_[(own_ + step) % n], from = ranks_[(own_ + n - step) % n];
  exchange({{to, mine.from, bytes}}, {{from, mine.to, bytes}});
  exchange({{to, mine.second_from, second_bytes}}, {{from, mine.second_to, second_bytes}});
}

}  // namespace rankc::runtime::host
