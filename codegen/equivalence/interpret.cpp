// SPDX-License-Identifier: Apache-2.0
#include "interpret.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "scratch.hpp"
#include "types.hpp"
#include "unread.hpp"

namespace rankc::codegen::algebra {

interpreter::interpreter(const program& p, const model& m, claims& c, contributions* made)
    : program_(p),
      model_(m),
      claims_(c),
      made_(made),
      store_(p, 1024 + 2 * static_cast<std::int64_t>(m.parameters().size())),
      transfer_(m, space_),
      waiting_(p.communicators.size()) {}

static refusal another_order() { return refusal("RC7540: the order belongs to another program"); }

/// All ops, sorted by their position in the order.
std::vector<interpreter::op_ref> interpreter::sequence(const verdict& order) const {
  std::vector<std::size_t> begin;
  std::size_t ops = 0;
  if (order.position.size() != program_.ranks.size()) throw another_order();
  for (std::size_t r = 0; r < order.position.size(); ++r) {
    if (order.position[r].size() != program_.ranks[r].ops.size()) throw another_order();
    for (int p : order.position[r]) {
      if (p < 0) throw refusal("RC7541: the order of the program lacks an op");
      if (static_cast<std::size_t>(p) + 1 >= begin.size()) begin.resize(static_cast<std::size_t>(p) + 2, 0);
      ++begin[static_cast<std::size_t>(p) + 1];
      ++ops;
    }
  }
  for (std::size_t i = 1; i < begin.size(); ++i) begin[i] += begin[i - 1];
  std::vector<op_ref> all(ops);
  for (std::size_t r = 0; r < order.position.size(); ++r)
    for (std::size_t i = 0; i < order.position[r].size(); ++i)
      all[begin[static_cast<std::size_t>(order.position[r][i])]++] = {static_cast<int>(r),
                                                                      static_cast<int>(i)};
  return all;
}

void interpreter::run(const verdict& order) {
  for (const op_ref r : sequence(order)) {
    try {
      step(r);
    } catch (const unknown_row&) {
      throw;
    } catch (const missing_tokens& why) {
      if (!made_) throw;
      throw blame(program_, *made_, why, r.rank).at(place_of(r));
    } catch (const refusal& why) {
      throw why.at(place_of(r));
    }
  }
  for (std::size_t c = 0; c < waiting_.size(); ++c)
    if (!waiting_[c].empty())
      throw refusal("RC7542: \"{}\" waits for ranks of communicator \"{}\" that never call it",
                    at(waiting_[c][0]).name, program_.communicators[c].name);
  for (const auto* queues : {&sent_, &received_})
    for (const auto& [key, left] : *queues)
      if (!left.empty())
        throw refusal("RC7543: \"{}\" has no matching send or receive", at(left.front()).name);
}

/// The rank, the op and its parameters: "rank 3, 1B0: layers.2: linear of layers.2.wq".
std::string interpreter::place_of(op_ref r) {
  const int number = program_.ranks[static_cast<std::size_t>(r.rank)].number;
  return fmt::format("rank {}, {}{}", number < 0 ? r.rank : number, at(r).name, parameters_of(at(r)));
}

/// The weights that a kernel reads, and the gradients that it adds to: " of layers.2.wq".
std::string interpreter::parameters_of(const op& o) {
  if (o.kind != op_kind::compute || is_update(o) || o.row == "sum_squares") return "";
  std::string text;
  for (const access& a : o.reads) {
    if (!store_.has(a)) continue;
    const content& c = store_.of(a.value);
    for (int i = 0; i < c.pieces.size(); ++i) {
      const term t = c.pieces[i].holds.closed();
      const std::string name = model_.name(t);
      if (model_.owner(t) || name.starts_with("the gradient of "))
        text += (text.empty() ? " of " : ", ") + name;
    }
  }
  return text;
}

void interpreter::step(op_ref r) {
  const op& o = at(r);
  current_ = r;
  switch (o.kind) {
    case op_kind::begin:
      return begin(o, r.rank);
    case op_kind::end:
      return end(o, r.rank);
    case op_kind::compute:
      compute(o);
      break;
    case op_kind::send:
    case op_kind::receive:
      return message(r);
    case op_kind::collective:
      return collective(r);
  }
  store_.done(o.reads);
}

/// The names of the values that an op reads: "layers.2: linear, layers.2.wq.bias".
std::string interpreter::operands_of(const op& o) {
  std::vector<std::string> names;
  for (const access& a : o.reads) {
    if (!store_.has(a)) continue;
    const content& c = store_.of(a.value);
    for (int i = 0; i < c.pieces.size(); ++i) names.push_back(model_.name(c.pieces[i].holds.closed()));
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

void interpreter::put(const access& a, content c) {
  const op& o = at(current_);
  for (int i = 0; i < c.pieces.size(); ++i) {
    const holding& h = c.pieces[i].holds;
    const bool may_be_large = o.row != "add" || !h.box.empty();  // losses and norms are not added by `add`
    if (!(may_be_large && model_.has_large_sum_like(h)) && !model_.has(h))
      throw refusal(
          "RC7690: the op writes a sum or a multiple of {}, which is neither a value of the model nor a part "
          "of one",
          operands_of(o));
  }
  store_.put(a, std::move(c));
}

void interpreter::begin(const op& o, int rank) {
  if (o.holds.size() != o.writes.size())
    throw refusal("RC7544: the step begins with {} tensors and describes {}", o.writes.size(),
                  o.holds.size());
  check_unread(o);
  for (std::size_t i = 0; i < o.writes.size(); ++i) {
    check_unread(o.holds[i]);
    check_type(o.writes[i], o.holds[i], model_.optimizer());
    store_.put(o.writes[i], claims_.begin(rank, o.writes[i], o.holds[i]));
  }
}

void interpreter::end(const op& o, int rank) {
  if (o.holds.size() != o.reads.size())
    throw refusal("RC7545: the step ends with {} tensors and describes {}", o.reads.size(), o.holds.size());
  check_unread(o);
  for (std::size_t i = 0; i < o.reads.size(); ++i) {
    check_unread(o.holds[i]);
    if (!store_.has(o.reads[i]))
      throw refusal("RC7546: no op writes {}, with which the step ends", name_of(o.holds[i]));
    claims_.end(rank, o.reads[i], store_.at(o.reads[i]), o.holds[i]);
  }
  store_.done(o.reads);
}

void interpreter::compute(const op& o) {
  if (o.row.empty()) {
    if (!o.reads.empty() || !o.writes.empty())
      throw refusal("RC7547: the op has no row of the table of facts, but uses {} tensors; expected 0",
                    o.reads.size() + o.writes.size());
    return check_unread(o);
  }
  if (o.row == "sum_squares" || is_update(o)) {
    check_unread(o);
    return is_update(o) ? update(o) : sum_squares(o);
  }
  const fact& f = fact_of(o.row);
  if (f.converts)
    throw refusal("RC7707: the kernel is {}, which moves data between ranks; expected a collective", o.row);
  if (f.modelled)
    throw refusal("RC7768: the kernel is {}, which only a model has; expected the ops that it consists of",
                  o.row);
  kernel(o, f);
  check_number_types(o, f, program_.calls);
  check_scratch_bytes(o, f, program_.calls);
}

const fact& interpreter::fact_of(std::string_view row) {
  for (const auto& [name, at] : rows_)
    if (name.data() == row.data() && name.size() == row.size()) return model_.facts()[at];
  const int at = model_.facts().find(row);
  if (rows_.size() < 2 * facts().size()) rows_.emplace_back(row, at);
  return model_.facts()[at];
}

}  // namespace rankc::codegen::algebra
