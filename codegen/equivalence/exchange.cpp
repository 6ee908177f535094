// SPDX-License-Identifier: Apache-2.0
// Messages and collectives: which ops communicate with each other, and the contents that each receives.
#include "interpret.hpp"

#include <algorithm>

#include "collectives.hpp"
#include "unread.hpp"

namespace rankc::codegen::algebra {

static refusal different_calls() {
  return refusal("RC7515: the members of the collective call it with different arguments");
}

/// Checks that a member's result has the size and the type that the collective writes.
static void check_result(const content& made, const access& w) {
  if (made.bytes != w.end - w.begin || made.type != w.type)
    throw refusal("RC7516: the collective writes {} bytes of {}; expected {} of {}", w.end - w.begin,
                  element_type_names[static_cast<int>(w.type)], made.bytes,
                  element_type_names[static_cast<int>(made.type)]);
}

void interpreter::message(op_ref r) {
  const op& o = at(r);
  check_unread(o);
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
    throw refusal("RC7517: {} tensors are sent and {} received; expected the same number, and at least 1",
                  from.reads.size(), to.writes.size());
  std::size_t sent_bytes = 0;
  for (const auto* tensors : {&from.reads, &to.writes})
    for (std::size_t i = 1; i < tensors->size(); ++i)
      if ((*tensors)[i].begin != (*tensors)[i - 1].end) throw not_contiguous();
  for (std::size_t i = 0; i < from.reads.size(); ++i) {
    const access &read = from.reads[i], &write = to.writes[i];
    const content& c = store_.at(read);
    sent_bytes += c.bytes;
    if (c.bytes != write.end - write.begin || c.type != write.type)
      throw refusal("RC7518: {} bytes of {} are sent, and {} bytes of {} received", c.bytes,
                    element_type_names[static_cast<int>(c.type)], write.end - write.begin,
                    element_type_names[static_cast<int>(write.type)]);
    if (read.value != write.value) store_.put(write, c);  // most often, both sides use one name
  }
  check_bytes(from, sent_bytes);
  check_bytes(to, sent_bytes);
  store_.done(from.reads);
}

/// Checks a row-pipelined pair. The product must be one that computes each row of its result from one row of
/// each operand, other than weights and biases. A bias gradient sums the contributions of the parts. The
/// collective moves one of these operands or results, whole.
void interpreter::check_goes_by_rows(op_ref r) {
  static constexpr std::string_view products[]{"linear",          "linear_bias",    "linear_add",
                                               "linear_bias_add", "linear_gelu",    "linear_bias_gelu",
                                               "linear_dx",       "linear_dx_gelu", "linear_dx_gelu_bias"};
  const bool gathers = at(r).does == collective_kind::all_gather;
  const op& product = at({r.rank, r.op + (gathers ? at(r).by_rows : -at(r).by_rows)});
  if (std::find(std::begin(products), std::end(products), product.row) == std::end(products))
    throw refusal(
        "RC7519: the collective is row-pipelined with \"{}\"; expected a GEMM, each row of whose result "
        "needs one row",
        product.name);
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
      throw refusal(
          "RC7520: the collective is row-pipelined with \"{}\", whose tensor {} is not exactly the rows of "
          "the collective",
          product.name, v.port);
  }
  if (uses != 1)
    throw refusal(
        "RC7521: the collective is row-pipelined with \"{}\", which uses the collective's tensor {} times; "
        "expected once",
        product.name, uses);
}

/// Only gradients are sent in bf16, and only if the recipe says so. The loss and the norm, which are numbers,
/// are not.
void interpreter::check_sent_in_bf16(const op& o, const content& c) {
  if (!model_.optimizer().bf16_reductions)
    throw refusal(
        "RC7522: the collective sends bf16; expected the type of its tensors, because the recipe does not "
        "reduce in bf16");
  if (o.does != collective_kind::all_reduce && o.does != collective_kind::reduce_scatter)
    throw refusal(
        "RC7523: the collective sends bf16; expected that of an all-reduce or a reduce-scatter only");
  if (c.type != element_type::f32 || program_.calls.on_host)
    throw refusal("RC7794: the collective sends {} of {} in bf16; expected f32 of CUDA",
                  element_type_names[static_cast<int>(c.type)], program_.calls.on_host ? "the host" : "CUDA");
  for (int i = 0; i < c.pieces.size(); ++i)
    if (const holding& h = c.pieces[i].holds; !h.is_zero() && h.box.size() == 0)
      throw refusal(
          "RC7524: the collective sends bf16 to sum the norm or the loss; expected the type of its tensors");
  claims_.note_bf16_reduction();
}

/// Checks that nothing but sums, the norm and the optimizer reads gradients that were sent in bf16.
void interpreter::check_read_of_bf16(const fact& f) const {
  const auto is_sum = [](const equation& e) { return e.is == equation::kind::sum; };
  if (std::all_of(f.equations.begin(), f.equations.end(), is_sum)) return;
  for (std::size_t i = static_cast<std::size_t>(f.results); i < f.ports.size(); ++i)
    for (int t = 0; t < ports_[i].tiles.size(); ++t)
      if (ports_[i].tiles[t].holds->in_bf16)
        throw refusal(
            "RC7787: operand {} is {}, which was reduced in bf16; expected bf16 for gradients of parameters "
            "only",
            f.ports[i].name, model_.name(ports_[i].tiles[t].holds->closed()));
}

void interpreter::collective(op_ref r) {
  const op& o = at(r);
  if (o.communicator < 0 || static_cast<std::size_t>(o.communicator) >= waiting_.size())
    throw refusal("RC7525: the collective is on communicator {}; the program has {}", o.communicator,
                  waiting_.size());
  const communicator& group = program_.communicators[static_cast<std::size_t>(o.communicator)];
  const auto own = std::find(group.ranks.begin(), group.ranks.end(), r.rank);
  if (own == group.ranks.end())
    throw refusal("RC7526: communicator \"{}\" does not have rank {}", group.name, r.rank);
  check_layout(o, {static_cast<int>(own - group.ranks.begin()), group.members()});
  check_unread(o);
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
    throw refusal("RC7527: {} of the {} ranks of communicator \"{}\" call the collective; expected all",
                  members.size(), group.ranks.size(), group.name);
  const std::size_t count = o.reads.size();
  if (o.does == collective_kind::all_to_all) return exchange_heads(members);
  if (exchanges_slots(o.does)) return send_slots(members);
  for (const op_ref m : members)
    if (at(m).does != o.does || at(m).in_bf16 != o.in_bf16 || at(m).by_rows != o.by_rows ||
        at(m).reads.size() != count || at(m).writes.size() != count)
      throw different_calls();
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<const content*> given;
    for (const op_ref m : members) given.push_back(&store_.at(at(m).reads[i]));
    if (o.in_bf16)
      for (const content* c : given) check_sent_in_bf16(o, *c);
    std::vector<content> made = combine(o.does, given, group.members());
    for (std::size_t m = 0; m < members.size(); ++m) {
      const access& w = at(members[m]).writes[i];
      check_result(made[m], w);
      for (int k = 0; k < made[m].pieces.size(); ++k) made[m].pieces[k].holds.in_bf16 |= o.in_bf16;
      put(w, std::move(made[m]));
    }
  }
  for (const op_ref m : members) store_.done(at(m).reads);
}

/// Exchanges heads for tokens, or back. The scratch of the exchange is unknown afterwards.
void interpreter::exchange_heads(const std::vector<op_ref>& members) {
  const op& o = at(members.front());
  const communicator& group = program_.communicators[static_cast<std::size_t>(o.communicator)];
  check_all_known(static_cast<std::int64_t>(members.size()), group.members());
  std::vector<const content*> given;
  for (const op_ref m : members) {
    const op& own = at(m);
    if (own.does != o.does || own.in_bf16 || own.seq != o.seq || !(own.views[0].shape == o.views[0].shape) ||
        !(own.views[1].shape == o.views[1].shape))
      throw different_calls();
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

/// Exchanges expert slots. The scratch of the exchange is unknown afterwards.
void interpreter::send_slots(const std::vector<op_ref>& members) {
  const op& o = at(members.front());
  const communicator& group = program_.communicators[static_cast<std::size_t>(o.communicator)];
  check_all_known(static_cast<std::int64_t>(members.size()), group.members());
  std::vector<const content*> given, offsets;
  for (const op_ref m : members) {
    const op& own = at(m);
    if (own.does != o.does || own.in_bf16 || own.rows != o.rows) throw different_calls();
    given.push_back(&store_.at(own.reads.front()));
    offsets.push_back(&store_.at(own.reads.back()));
  }
  const slabs as{group.members(), o.rows, model_.tokens(),
                 [&](const term& t) { return model_.arrangement(t); },
                 [&](const term& order) { return model_.limit(order); }};
  std::vector<content> made = exchange_slots(o.does, given, offsets, as);
  for (std::size_t m = 0; m < members.size(); ++m) {
    const access& w = at(members[m]).writes[0];
    check_result(made[m], w);
    put(w, std::move(made[m]));
  }
  for (const op_ref m : members) store_.done(at(m).reads);
}

}  // namespace rankc::codegen::algebra
