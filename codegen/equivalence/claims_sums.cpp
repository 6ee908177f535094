// SPDX-License-Identifier: Apache-2.0
// What the norm and the optimizer are given: gradients that are whole, and the norm.
#include <fmt/format.h>

#include "blame.hpp"
#include "cell.hpp"
#include "claims.hpp"

namespace rankc::codegen::algebra {

/// What a sum has too little of, or too much.
static std::string difference(const holding& found, term expected, const model& m) {
  term whole = zero;
  for (int i = 0; i < found.sum.size(); ++i)
    if (found.sum[i].is_whole()) whole = found.sum[i].of;
  if (whole != expected) return missing_text(found, m);
  const int last = found.sum.size() - 1;
  const pending& more = found.sum[found.sum[last].is_whole() ? 0 : last].over[0];
  return text_of(more.letter, more.done) + " are in the sum twice";
}

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
        pending over{squares.of.a + static_cast<word>(d), d == 0 ? rows_of_parameter : 'i', joining::sum,
                     g.box[d].size, g.box[d].at};
        interval twice;
        if (!over.done.sort(twice)) throw refusal("a gradient holds elements twice");
        squares.over.push_back(std::move(over));
      }
    add(norm.sum, std::move(squares));
  }
  return norm;
}

std::vector<content> claims::update(const std::vector<const content*>& given, bool decays,
                                    const load_balance& balances) {
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
    std::vector<content> made{*given[0]};
    for (std::size_t s = 2; s < given.size(); ++s) made.push_back(*given[s]);
    return made;
  }
  const auto* owner = weight.holds->is_whole() ? model_.owner(weight.holds->closed()) : nullptr;
  if (!owner) throw refusal("the optimizer is given a weight that is none of the model's");
  const auto& [name, of] = *owner;
  if (!gradient.is_whole()) refuse_sum("the gradient of " + name, gradient, of.gradient);
  if (gradient.closed() != of.gradient)
    throw refusal(fmt::format("the gradient of {}: expected {}, found {}", name, model_.name(of.gradient),
                              model_.name(gradient.closed())));
  for (std::size_t s = 1; s < given.size(); ++s) {
    const holding& h = *tensor_of(*given[s]).holds;
    if (!(h.any && of.gradient.is_zero()) && !(h.box == weight.holds->box))
      throw refusal(fmt::format("{}: the optimizer is given {} beside {}", name, text_of(h.box),
                                text_of(weight.holds->box)));
    if (s > 1 && !(h.is_whole() && h.closed() == of.state[s - 1]))
      throw refusal(name + ": the optimizer is given moments of something else");
  }
  if (!of.trainable) throw refusal(name + " is updated; expected it to stay");
  if (balances != of.balances)
    throw refusal(fmt::format("{} is moved by {} toward {} choices; expected {} and {} (0: by its gradient)",
                              name, balances.rate, balances.mean, of.balances.rate, of.balances.mean));
  if (decays != (of.shape.size() > 1))
    throw refusal(fmt::format("{} has {} dims and {}; expected decay of those with more than one", name,
                              of.shape.size(), decays ? "decays" : "does not decay"));
  ++updates_;
  bf16_weights_ |= given[0]->type == element_type::bf16;
  std::vector<content> made;
  for (std::size_t s = 0; s + 1 < given.size(); ++s) {
    content c = *given[s == 0 ? 0 : s + 1];
    bf16_moments_ |= s > 0 && c.type == element_type::bf16;
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
