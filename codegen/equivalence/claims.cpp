// SPDX-License-Identifier: Apache-2.0
#include "claims.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace rankc::codegen::algebra {

namespace {

using relation = codegen::holding;  // of begin and of end

bool is_state(holding_kind k) {
  return k == holding_kind::weight || k == holding_kind::working_copy || k == holding_kind::first_moment ||
         k == holding_kind::second_moment;
}
int state_of(holding_kind k) {
  if (k == holding_kind::first_moment) return 1;
  return k == holding_kind::second_moment ? 2 : 0;
}

/// A box as far as the tensor goes.
few<part, 2> within_tensor(few<part, 2> box) {
  if (!box.empty()) box[0].at = box[0].at.below(box[0].size);
  return box;
}

/// A buffer of one tensor in row-major order, with zeros past the tensor's end.
content one_tensor(const access& a, const few<part, 2>& box, term of) {
  content c{a.end - a.begin, a.type, {}};
  if (count(box) * size_of(a.type) != static_cast<std::int64_t>(c.bytes))
    throw refusal(fmt::format("it is {} bytes for {}", c.bytes, text_of(box)));
  piece p;
  p.holds.box = within_tensor(box);
  const std::int64_t elements = count(p.holds.box);
  const int n = box.size();
  if (elements > 0) {
    if (n == 2) p.at.rows = p.holds.box[0].at.size();
    if (n > 0) p.at.cols = p.holds.box[n - 1].at.size();
    p.at.pitch = p.at.cols;
    add(p.holds.sum, {of, {}});
    c.pieces.push_back(std::move(p));
  }
  append_zeros(c, elements, c.elements() - elements);
  return c;
}

}  // namespace

claims::claims(const program& p, const model& m) : program_(p), model_(m) {
  for (const rank_program& r : p.ranks)
    for (const op& o : r.ops) {
      if (p.step == "evaluate") continue;
      trains_ |= is_update(o);
      for (const relation& h : o.holds)
        trains_ |= h.kind == holding_kind::first_moment || h.kind == holding_kind::norm;
    }
}

const model::parameter& claims::parameter(const std::string& name) const {
  const auto at = model_.parameters().find(name);
  if (at == model_.parameters().end()) throw refusal("the model has no parameter " + name);
  return at->second;
}

few<part, 2> claims::box_of(const relation& h, const model::parameter& p) const {
  few<part, 2> box;
  const std::vector<std::int64_t>& shape = p.shape;
  if (h.box.size() != shape.size())
    throw refusal(fmt::format("{} is held in {} dims; expected {}", h.name, h.box.size(), shape.size()));
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const box_range& b = h.box[d];
    // Rows that do not divide by the shards are made up to a multiple: fewer than there are ranks lie past
    // the end.
    const std::int64_t past = d == 0 && is_state(h.kind) ? world() - 1 : 0;
    const std::int64_t limit = std::min(shape[d], std::numeric_limits<std::int64_t>::max() - past) + past;
    if (b.first < 0 || b.count < 1 || b.first > limit || b.count > limit - b.first)
      throw refusal(fmt::format("{} is held from {} on, {} of {}", h.name, b.first, b.count, shape[d]));
    box.push_back({runs(b.first, b.first + b.count), shape[d]});
  }
  return box;
}

/// What is held part after part, of so many elements.
static part parts_of(const relation& h, std::int64_t size) {
  part all{{}, size};
  for (const box_range& b : h.box) {
    if (b.first < 0 || b.count < 1 || b.first > size || b.count > size - b.first)
      throw refusal(fmt::format("{} are held from {} on, {} of {}", holding_names[static_cast<int>(h.kind)],
                                b.first, b.count, size));
    all.at.append(interval{b.first, b.first + b.count});
  }
  return all;
}

content claims::begin(int rank, const access& a, const relation& h) {
  const std::int64_t elements = static_cast<std::int64_t>(a.end - a.begin) / size_of(a.type);
  switch (h.kind) {
    case holding_kind::padding: {
      content c{a.end - a.begin, a.type, {}};
      piece p{{0, 1, elements, elements}, {}};
      p.holds.any = true;
      c.pieces.push_back(std::move(p));
      return c;
    }
    case holding_kind::rotary: {
      few<part, 2> box;
      box.push_back(h.box.empty() ? part{runs(0, h.positions), h.positions} : parts_of(h, h.positions));
      box.push_back({runs(0, h.dim), h.dim});
      return one_tensor(a, box, rotary_table(h.theta, h.dim, h.scaling));
    }
    case holding_kind::ids:
    case holding_kind::targets:
    case holding_kind::starts: {
      few<part, 2> box;
      box.push_back(parts_of(h, model_.tokens()));
      return one_tensor(a, box, leaf(holding_names[static_cast<int>(h.kind)], ""));
    }
    case holding_kind::loss:
    case holding_kind::norm:
      throw refusal("a step begins with no loss and no norm");
    default:
      break;
  }
  const model::parameter& p = parameter(h.name);
  const few<part, 2> box = box_of(h, p);
  std::vector<held>& of = held_[h.name];
  if (of.empty() || of.back().rank != rank) of.push_back({rank, box, {}});
  if (!(of.back().box == box)) throw refusal(h.name + " and its moments are held in different parts");
  of.back().regions.push_back({h.kind, a.begin, a.end});
  return one_tensor(a, box, p.state[state_of(h.kind)]);
}

/// The next step begins with what this one leaves.
void claims::leave(int rank, const access& a, const relation& h, const few<part, 2>& box) {
  for (held& of : held_[h.name])
    for (int i = 0; of.rank == rank && i < of.regions.size(); ++i) {
      region& r = of.regions[i];
      if (r.is_left || r.kind != h.kind || r.begin != a.begin || r.end != a.end || !(of.box == box)) continue;
      r.is_left = true;
      return;
    }
  throw refusal(fmt::format(
      "the {} of {} is left in bytes {}..{}; the step begins with it elsewhere, or with another part",
      holding_names[static_cast<int>(h.kind)], h.name, a.begin, a.end));
}

void claims::end(int rank, const access& a, const content& c, const relation& h) {
  const std::string what = h.name.empty()
                               ? fmt::format("the {}", holding_names[static_cast<int>(h.kind)])
                               : fmt::format("the {} of {}", holding_names[static_cast<int>(h.kind)], h.name);
  const holding& found = *tensor_of(c).holds;
  term expected;
  few<part, 2> box;
  if (is_state(h.kind)) {
    const model::parameter& p = parameter(h.name);
    box = box_of(h, p);
    expected = (trains_ ? p.after : p.state)[state_of(h.kind)];
    leave(rank, a, h, box);
  } else if (h.kind == holding_kind::loss || h.kind == holding_kind::norm) {
    expected = h.kind == holding_kind::loss ? model_.loss() : model_.norm();
    ++(h.kind == holding_kind::loss ? losses_ : norms_);
  } else {
    throw refusal(what + " is left at the end");
  }
  if (count(box) != c.elements())
    throw refusal(fmt::format("{} is {} bytes for {}", what, c.bytes, text_of(box)));
  if (count(within_tensor(box)) == 0 && found.any) return;  // all of it is past the end
  if (!found.is_whole()) refuse_sum(what, found, expected);
  if (found.closed() != expected)
    throw refusal(
        fmt::format("{}: expected {}, found {}", what, model_.name(expected), model_.name(found.closed())));
  if (!(found.box == within_tensor(box)))
    throw refusal(fmt::format("{}: expected {}, found {}", what, text_of(box), text_of(found.box)));
}

}  // namespace rankc::codegen::algebra
