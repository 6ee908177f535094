// SPDX-License-Identifier: Apache-2.0
#include "claims.hpp"

#include <fmt/format.h>

#include "blame.hpp"
#include "cell.hpp"

namespace rankc::codegen::algebra {

namespace {

using relation = codegen::holding;  // of begin and of end

bool is_state(holding_kind k) {
  return k == holding_kind::weight || k == holding_kind::working_copy || k == holding_kind::first_moment ||
         k == holding_kind::second_moment;
}
int state_of(holding_kind k) {
  return k == holding_kind::first_moment ? 1 : k == holding_kind::second_moment ? 2 : 0;
}

/// A box as far as the tensor goes.
few<part, 2> within_tensor(few<part, 2> box) {
  if (!box.empty()) box[0].at = box[0].at.below(box[0].size);
  return box;
}
std::int64_t count(const few<part, 2>& box) {
  std::int64_t n = 1;
  for (int d = 0; d < box.size(); ++d) n *= box[d].at.size();
  return n;
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

/// What a sum has too little of, or too much.
std::string difference(const holding& found, term expected, const model& m) {
  term whole = zero;
  for (int i = 0; i < found.sum.size(); ++i)
    if (found.sum[i].is_whole()) whole = found.sum[i].of;
  if (whole != expected) return missing_text(found, m);
  const int last = found.sum.size() - 1;
  const pending& more = found.sum[found.sum[last].is_whole() ? 0 : last].over[0];
  return text_of(more.letter, more.done) + " are in the sum twice";
}

}  // namespace

void claims::refuse_sum(const std::string& what, const holding& found, term expected) const {
  const std::string text = fmt::format("{}: {}", what, difference(found, expected, model_));
  for (int i = 0; i < found.sum.size(); ++i)
    if (found.sum[i].is_whole() && found.sum[i].of == expected) throw refusal(text);
  for (int i = 0; i < found.sum.size(); ++i)
    for (int a = 0; a < found.sum[i].over.size(); ++a)
      if (const pending& p = found.sum[i].over[a]; p.letter == 't')
        throw missing_tokens(text, found.sum[i].of, found.box, p.done.gaps(p.size));
  throw refusal(text);
}

claims::claims(const program& p, const model& m) : program_(p), model_(m) {
  for (const rank_program& r : p.ranks)
    for (const op& o : r.ops)
      if (o.kind == op_kind::begin && p.step != "evaluate")
        for (const relation& h : o.holds) trains_ |= h.kind == holding_kind::first_moment;
}

const model::parameter& claims::parameter(const std::string& name) const {
  const auto at = model_.parameters().find(name);
  if (at == model_.parameters().end()) throw refusal("the model has no parameter " + name);
  return at->second;
}

few<part, 2> claims::box_of(const relation& h, const model::parameter& p) const {
  few<part, 2> box;
  const bool of_tokens = h.kind == holding_kind::ids || h.kind == holding_kind::targets;
  const std::vector<std::int64_t> shape = of_tokens ? std::vector<std::int64_t>{model_.tokens()} : p.shape;
  if (h.box.size() != shape.size())
    throw refusal(fmt::format("{} is held in {} dims; expected {}", h.name, h.box.size(), shape.size()));
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const box_range& b = h.box[d];
    // Rows that do not divide by the shards are made up to a multiple: fewer than there are ranks lie past
    // the end.
    const std::int64_t limit = shape[d] + (d == 0 && is_state(h.kind) ? world() - 1 : 0);
    if (b.first < 0 || b.count < 1 || b.first > limit || b.count > limit - b.first)
      throw refusal(fmt::format("{} is held from {} on, {} of {}", h.name, b.first, b.count, shape[d]));
    box.push_back({runs(b.first, b.first + b.count), shape[d]});
  }
  return box;
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
      box.push_back({runs(0, h.positions), h.positions});
      box.push_back({runs(0, h.dim), h.dim});
      return one_tensor(a, box, rotary_table(h.theta, h.dim));
    }
    case holding_kind::ids:
      return one_tensor(a, box_of(h, {}), leaf("ids", ""));
    case holding_kind::targets:
      return one_tensor(a, box_of(h, {}), leaf("targets", ""));
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

/// Of a gradient that is not whole: of which parameter it is, and what is missing or too much.
void claims::refuse_gradient(const holding& g) const {
  for (const auto& [name, p] : model_.parameters()) {
    term whole = zero;
    bool has_part = false;
    for (int i = 0; i < g.sum.size(); ++i)
      if (g.sum[i].is_whole()) whole = g.sum[i].of;
      else has_part |= g.sum[i].of == p.gradient;
    if (g.closed() == p.gradient || whole == p.gradient || has_part)
      refuse_sum("the gradient of " + name, g, p.gradient);
  }
  throw refusal(fmt::format("{}: {}", model_.name(g.closed()), missing_text(g, model_)));
}

holding claims::sum_squares(const std::vector<const content*>& gradients, const content* before) const {
  holding norm;
  if (before) norm = *tensor_of(*before).holds;
  norm.any = false;
  for (const content* c : gradients) {
    const holding& g = *tensor_of(*c).holds;
    if (g.is_zero()) continue;
    if (!g.is_whole()) refuse_gradient(g);
    summand squares{squares_of(g.closed()), {}};
    for (int d = 0; d < g.box.size(); ++d)
      if (!g.box[d].is_whole()) {
        pending over{squares.of.a + static_cast<word>(d), d == 0 ? rows_of_parameter : 'i', false,
                     g.box[d].size, g.box[d].at};
        interval twice;
        if (!over.done.sort(twice)) throw refusal("a gradient holds elements twice");
        squares.over.push_back(std::move(over));
      }
    add(norm.sum, std::move(squares));
  }
  return norm;
}

std::vector<content> claims::update(const std::vector<const content*>& given, bool decays) {
  const tensor weight = tensor_of(*given[0]);
  const holding& gradient = *tensor_of(*given[1]).holds;
  for (const content* c : given)
    if (c->elements() != given[0]->elements())
      throw refusal("the optimizer is given tensors of different sizes");
  if (weight.holds->any) {  // all of the shard is past the parameter's end
    for (const content* c : given)
      if (!tensor_of(*c).holds->any)
        throw refusal(fmt::format("what lies past a parameter's end is updated with {}",
                                  model_.name(tensor_of(*c).holds->closed())));
    return {*given[0], *given[2], *given[3]};
  }
  const auto* owner = weight.holds->is_whole() ? model_.owner(weight.holds->closed()) : nullptr;
  if (!owner) throw refusal("the optimizer is given a weight that is none of the model's");
  const auto& [name, of] = *owner;
  if (!gradient.is_whole()) refuse_sum("the gradient of " + name, gradient, of.gradient);
  if (gradient.closed() != of.gradient)
    throw refusal(fmt::format("the gradient of {}: expected {}, found {}", name, model_.name(of.gradient),
                              model_.name(gradient.closed())));
  for (int s = 1; s < 4; ++s) {
    const holding& h = *tensor_of(*given[static_cast<std::size_t>(s)]).holds;
    if (!(h.any && of.gradient.is_zero()) && !(h.box == weight.holds->box))
      throw refusal(fmt::format("{}: the optimizer is given {} beside {}", name, text_of(h.box),
                                text_of(weight.holds->box)));
    if (s > 1 && !(h.is_whole() && h.closed() == of.state[s - 1]))
      throw refusal(name + ": the optimizer is given moments of something else");
  }
  if (!of.trainable) throw refusal(name + " is updated; expected it to stay");
  if (decays != (of.shape.size() > 1))
    throw refusal(fmt::format("{} has {} dims and {}; expected decay of those with more than one", name,
                              of.shape.size(), decays ? "decays" : "does not decay"));
  ++updates_;
  std::vector<content> made;
  for (int s = 0; s < 3; ++s) {
    content c = *given[s == 0 ? 0 : static_cast<std::size_t>(s) + 1];
    for (int i = 0; i < c.pieces.size(); ++i) {
      holding& h = c.pieces[i].holds;
      if (h.any) continue;
      h.sum = {};
      add(h.sum, {of.after[s], {}});
    }
    made.push_back(std::move(c));
  }
  return made;
}

void claims::check_norm(const content& norm) const {
  const holding& n = *tensor_of(norm).holds;
  if (!n.is_whole()) throw refusal(fmt::format("the norm: {}", difference(n, model_.norm(), model_)));
  if (n.closed() != model_.norm())
    throw refusal(
        fmt::format("the norm: expected {}, found {}", model_.name(model_.norm()), model_.name(n.closed())));
}

}  // namespace rankc::codegen::algebra
