// SPDX-License-Identifier: Apache-2.0
#include "collective.hpp"

#include "message.hpp"
#include "../rows/slots.hpp"

#include <algorithm>

namespace field {

namespace {

using namespace rankc::codegen;

/// Check that the op states a member's input bytes, or for a reduce_scatter its output bytes.
void expect_bytes(const op& o, std::size_t given, std::size_t members) {
  expect(given == o.bytes * (o.does == collective_kind::reduce_scatter ? members : 1),
         "a collective of other bytes than it says");
}

void expect_alike(const op& own, const op& o, std::size_t writes) {
  expect(own.does == o.does && own.message == o.message && own.bytes == o.bytes &&
             own.reads.size() == o.reads.size() && own.writes.size() == writes && own.seq == o.seq &&
             own.rows == o.rows && own.in_bf16 == o.in_bf16,
         "members of a collective that differ in what they do");
}

void combine(const std::vector<member>& members, std::uint64_t key) {
  const op& o = *members.front().does;
  // all_to_all has scratch.
  const std::size_t tensors = o.reads.size(), swaps = o.does == collective_kind::all_to_all;
  std::vector<std::vector<payload>> given(tensors);  // by tensor: each member's input
  for (const auto& [rank, own] : members) {
    expect_alike(*own, o, tensors + swaps);
    const std::vector<operand> from = communicated(*own, false);
    expect(from.size() == tensors && communicated(*own, true).size() == tensors, "a collective of bytes");
    for (std::size_t t = 0; t < tensors; ++t) {
      given[t].push_back(take(*rank, {from[t]}));
      expect(given[t].back().types == given[t].front().types,
             "members of a collective that differ in their elements");
    }
  }
  std::size_t bytes = 0;
  for (const std::vector<payload>& of : given) bytes += of.front().bytes();
  expect_bytes(o, bytes, members.size());
  for (std::size_t k = 0; k < members.size(); ++k) {
    const auto& [rank, own] = members[k];
    const std::vector<operand> to = communicated(*own, true);
    if (swaps) {
      const auto columns = [&](const operand& p) { return static_cast<std::size_t>(p.is.cols); };
      const payload made = exchanged(given[0], k, columns(communicated(*own, false)[0]), columns(to[0]),
                                     static_cast<std::size_t>(o.seq));
      rank->arena.spoil(own->writes[1].begin, own->writes[1].end, mix(key, k));
      put(*rank, {to[0]}, made);
      continue;
    }
    for (std::size_t t = 0; t < tensors; ++t) {
      payload made = result_of(o.does, given[t], k);
      if (o.in_bf16) made.sum = std::max(made.sum, token_sum::in_bf16);
      put(*rank, {to[t]}, made);
    }
  }
}

/// A member's operands in an exchange of slots; offsets are the last input.
struct slot_operands {
  std::vector<operand> from;
  operand to;
  std::size_t scratch_begin = 0, scratch_end = 0;  // in bytes
  const operand& offsets() const { return from.back(); }
};
slot_operands slot_operands_of(const op& o, std::size_t scratch) {
  const std::vector<operand> to = communicated(o, true);
  slot_operands all{communicated(o, false), {}};
  expect(to.size() == 1 && all.from.size() == o.reads.size() && o.writes[1].type == element_type::bytes,
         "an exchange of slots without scratch, or of bytes");
  all.to = to[0];
  const access& s = o.writes[1];
  expect(s.begin + scratch <= s.end, "an exchange of slots by way of too little scratch");
  all.scratch_begin = s.begin;
  all.scratch_end = s.begin + scratch;
  const auto meets_scratch = [&](const operand& p) { return p.meets(all.scratch_begin, all.scratch_end); };
  for (const operand& p : all.from)
    expect(!p.meets(all.to) && !meets_scratch(p), "an exchange of slots over what is given");
  expect(!meets_scratch(all.to), "an exchange of slots over its scratch");
  return all;
}

/// Check that there is a slab of the stated size for each member; gathered offsets have the size of the
/// inputs.
void expect_slabs(const op& o, const slot_operands& at, std::size_t members) {
  if (o.does == collective_kind::gather_offsets) {
    expect(at.from[0].bytes() == o.bytes && at.to.bytes() == members * o.bytes,
           "a gathering of offsets of other bytes than it says");
    return;
  }
  const operand& slabs = o.does == collective_kind::from_experts ? at.from[0] : at.to;
  expect(slabs.bytes() == o.bytes && at.from[0].type == at.to.type,
         "an exchange of slots of other bytes than it says");
  expect(o.does == collective_kind::share_offsets ||
             slabs.is.rows == o.rows * static_cast<std::int64_t>(members),
         "an exchange of slots in slabs of other rows than it says");
}

/// The function that makes what a member receives in an exchange of slots.
auto sender_of(collective_kind does) {
  if (does == collective_kind::to_experts) return send_to_experts;
  if (does == collective_kind::from_experts) return send_from_experts;
  return does == collective_kind::gather_offsets ? gather_offsets : send_offsets;
}

void send_slots(const std::vector<member>& members, std::uint64_t key) {
  const op& o = *members.front().does;
  const bool gathers = o.does == collective_kind::gather_offsets;
  const std::size_t scratch = o.bytes * (gathers ? members.size() : 1);
  expect(o.rows > 0 && o.reads.size() == (gathers || o.does == collective_kind::share_offsets ? 1 : 2),
         "an exchange of slots without slots or offsets");
  slot_exchange all{{}, {}, o.rows};
  std::vector<slot_operands> at;
  for (const auto& [rank, own] : members) {
    expect_alike(*own, o, 2);
    at.push_back(slot_operands_of(*own, scratch));
    expect_slabs(o, at.back(), members.size());
    all.given.push_back(load(rank->arena, at.back().from[0]));
    all.offsets.push_back(load(rank->arena, at.back().offsets()));
    expect(all.offsets.back().is.cols == all.offsets.front().is.cols,
           "members of a collective that have other experts");
  }
  const auto send = sender_of(o.does);
  for (std::size_t k = 0; k < members.size(); ++k) {
    matrix made(at[k].to.is);
    send(all, k, made);
    members[k].rank->arena.spoil(at[k].scratch_begin, at[k].scratch_end, mix(key, k));
    store(members[k].rank->arena, at[k].to, made);
  }
}

}  // namespace

void run_collective(const std::vector<member>& members, std::uint64_t key) {
  const op& o = *members.front().does;
  expect(!o.in_bf16 || o.does == collective_kind::all_reduce || o.does == collective_kind::reduce_scatter,
         "a collective that adds nothing up, in bf16");
  if (exchanges_slots(o.does)) send_slots(members, key);
  else combine(members, key);
}

}  // namespace field
