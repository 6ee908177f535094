// SPDX-License-Identifier: Apache-2.0
// Messages and collectives: those that meet, and what each gets.
#include "interpret.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "collectives.hpp"

namespace rankc::codegen::algebra {

void interpreter::message(op_ref r) {
  const op& o = at(r);
  const bool sends = o.kind == op_kind::send;
  const channel key =
      sends ? channel{o.communicator, r.rank, o.peer} : channel{o.communicator, o.peer, r.rank};
  auto &own = sends ? sent_[key] : received_[key], &other = sends ? received_[key] : sent_[key];
  if (other.empty()) {
    own.push_back(r);
    return;
  }
  const op_ref met = other.front();
  other.pop_front();
  meet(sends ? r : met, sends ? met : r);
}

void interpreter::meet(op_ref sent, op_ref received) {
  const op &from = at(sent), &to = at(received);
  if (from.reads.empty() || from.reads.size() != to.writes.size())
    throw refusal("its sides are of different tensors");
  std::size_t sent_bytes = 0;
  for (const auto* tensors : {&from.reads, &to.writes})
    for (std::size_t i = 1; i < tensors->size(); ++i)
      if ((*tensors)[i].begin != (*tensors)[i - 1].end)
        throw refusal("its tensors do not follow on each other");
  for (std::size_t i = 0; i < from.reads.size(); ++i) {
    const access &read = from.reads[i], &write = to.writes[i];
    const content& c = store_.at(read);
    sent_bytes += c.bytes;
    if (c.bytes != write.end - write.begin || c.type != write.type)
      throw refusal(fmt::format("{} bytes are sent, {} received", c.bytes, write.end - write.begin));
    if (read.value != write.value) store_.put(write, c);  // as a rule both sides call it by one name
  }
  if (from.bytes != sent_bytes || to.bytes != sent_bytes)
    throw refusal(fmt::format("it is told of {} bytes; expected {}", from.bytes, sent_bytes));
  store_.done(from.reads);
}

/// Parts of rows are as good as all of them for products whose result has in each row what one row of each
/// operand gives, weights and biases left out; bias gradients are sums of what parts give. What moves is one
/// of these operands, or results, whole.
void interpreter::check_goes_by_rows(op_ref r) {
  static constexpr std::string_view products[]{"linear",          "linear_bias",    "linear_add",
                                               "linear_bias_add", "linear_gelu",    "linear_bias_gelu",
                                               "linear_dx",       "linear_dx_gelu", "linear_dx_gelu_bias"};
  const bool gathers = at(r).does == collective_kind::all_gather;
  const op& product = at({r.rank, r.op + (gathers ? at(r).by_rows : -at(r).by_rows)});
  if (std::find(std::begin(products), std::end(products), product.row) == std::end(products))
    throw refusal(
        fmt::format("it goes by rows with \"{}\", whose rows are not of one row each", product.name));
  const access& moved = (gathers ? at(r).writes : at(r).reads).at(0);
  int uses = 0;
  for (const view& v : product.views) {
    const access& a =
        (v.written ? product.writes : product.reads).at(static_cast<std::size_t>(v.accesses.first));
    if (v.written == gathers || a.value != moved.value) continue;
    ++uses;
    const bool is_dense =
        v.accesses.count == 1 && v.offset == 0 && v.shape.size() == 2 && v.stride == v.shape[1];
    if (v.port == "w" || !is_dense || a.begin != moved.begin || a.end != moved.end)
      throw refusal(fmt::format("it goes by rows with \"{}\", which has as {} no rows of it, or not all",
                                product.name, v.port));
  }
  if (uses != 1)
    throw refusal(fmt::format("it goes by rows with \"{}\", which has these {} times", product.name, uses));
}

/// Gradients alone are sent so, where the recipe says it: neither the loss nor the norm, which are numbers.
void interpreter::check_sent_in_bf16(const op& o, const content& c) {
  if (!model_.optimizer().bf16_reductions)
    throw refusal("it sends bf16 to be summed; expected the type of its tensors");
  if (o.does != collective_kind::all_reduce && o.does != collective_kind::reduce_scatter)
    throw refusal("it sends bf16, and is no sum");
  for (int i = 0; i < c.pieces.size(); ++i)
    if (const holding& h = c.pieces[i].holds; !h.is_zero() && h.box.size() == 0)
      throw refusal("it sends bf16 to sum up the norm or the loss");
  claims_.note_bf16_reduction();
}

void interpreter::collective(op_ref r) {
  const op& o = at(r);
  if (o.communicator < 0 || static_cast<std::size_t>(o.communicator) >= waiting_.size())
    throw refusal("it is on no communicator");
  const communicator& group = program_.communicators[static_cast<std::size_t>(o.communicator)];
  const auto own = std::find(group.ranks.begin(), group.ranks.end(), r.rank);
  if (own == group.ranks.end()) throw refusal(fmt::format("\"{}\" has no rank {}", group.name, r.rank));
  check_layout(o, {static_cast<int>(own - group.ranks.begin()), group.members()});
  if (o.by_rows > 0) check_goes_by_rows(r);
  std::vector<op_ref>& all = waiting_[static_cast<std::size_t>(o.communicator)];
  all.push_back(r);
  if (all.size() < group.ranks.size()) return;
  std::vector<op_ref> members;
  for (int rank : group.ranks)
    for (const op_ref m : all)
      if (m.rank == rank) members.push_back(m);
  all.clear();
  if (members.size() != group.ranks.size())
    throw refusal(fmt::format("not all of \"{}\" take part", group.name));
  const std::size_t count = o.reads.size();
  if (o.does == collective_kind::all_to_all) return exchange_heads(members);
  if (exchanges_slots(o.does)) return send_slots(members);
  for (const op_ref m : members)
    if (at(m).does != o.does || at(m).in_bf16 != o.in_bf16 || at(m).by_rows != o.by_rows ||
        at(m).reads.size() != count || at(m).writes.size() != count)
      throw refusal("its members do different things");
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<const content*> given;
    for (const op_ref m : members) given.push_back(&store_.at(at(m).reads[i]));
    if (o.in_bf16) check_sent_in_bf16(o, *given.front());
    std::vector<content> made = combine(o.does, given, group.members());
    for (std::size_t m = 0; m < members.size(); ++m) {
      const access& w = at(members[m]).writes[i];
      if (made[m].bytes != w.end - w.begin || made[m].type != w.type)
        throw refusal(fmt::format("it writes {} bytes; expected {}", w.end - w.begin, made[m].bytes));
      store_.put(w, std::move(made[m]));
    }
  }
  for (const op_ref m : members) store_.done(at(m).reads);
}

/// Scratch holds nothing after it.
void interpreter::exchange_heads(const std::vector<op_ref>& members) {
  const op& o = at(members.front());
  const communicator& group = program_.communicators[static_cast<std::size_t>(o.communicator)];
  if (group.members() != static_cast<int>(members.size())) throw refusal("not all of its members are known");
  std::vector<const content*> given;
  for (const op_ref m : members) {
    const op& own = at(m);
    if (own.does != o.does || own.in_bf16 || own.seq != o.seq || !(own.views[0].shape == o.views[0].shape) ||
        !(own.views[1].shape == o.views[1].shape))
      throw refusal("its members do different things");
    given.push_back(&store_.at(own.reads[0]));
  }
  std::vector<content> made = exchange(given, {o.views[1].shape, o.views[0].shape, o.seq});
  for (std::size_t m = 0; m < members.size(); ++m) store_.put(at(members[m]).writes[0], std::move(made[m]));
  for (const op_ref m : members) store_.done(at(m).reads);
}

static std::vector<content> exchange_slots(collective_kind does, const std::vector<const content*>& given,
                                           const std::vector<const content*>& offsets, const slabs& as) {
  switch (does) {
    case collective_kind::to_experts:
      return send_to_experts(given, offsets, as);
    case collective_kind::from_experts:
      return send_from_experts(given, offsets, as);
    case collective_kind::share_offsets:
      return send_offsets(given, as);
    default:
      return gather_offsets(given, as);
  }
}

/// The scratch of an exchange holds nothing after it.
void interpreter::send_slots(const std::vector<op_ref>& members) {
  const op& o = at(members.front());
  const communicator& group = program_.communicators[static_cast<std::size_t>(o.communicator)];
  if (group.members() != static_cast<int>(members.size())) throw refusal("not all of its members are known");
  std::vector<const content*> given, offsets;
  for (const op_ref m : members) {
    const op& own = at(m);
    if (own.does != o.does || own.in_bf16 || own.rows != o.rows)
      throw refusal("its members do different things");
    given.push_back(&store_.at(own.reads.front()));
    offsets.push_back(&store_.at(own.reads.back()));
  }
  const slabs as{group.members(), o.rows, model_.tokens(),
                 [&](const term& t) { return model_.arrangement(t); },
                 [&](word order) { return model_.limit(order); }};
  std::vector<content> made = exchange_slots(o.does, given, offsets, as);
  for (std::size_t m = 0; m < members.size(); ++m) {
    const access& w = at(members[m]).writes[0];
    if (made[m].bytes != w.end - w.begin || made[m].type != w.type)
      throw refusal(fmt::format("it writes {} bytes; expected {}", w.end - w.begin, made[m].bytes));
    store_.put(w, std::move(made[m]));
  }
  for (const op_ref m : members) store_.done(at(m).reads);
}

}  // namespace rankc::codegen::algebra
