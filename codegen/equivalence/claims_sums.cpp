// SPDX-License-Identifier: Apache-2.0
// Checks the operands of the norm and of the optimizer: gradients must be whole, and so must the norm.

#include "blame.hpp"
#include "cell.hpp"
#include "claims.hpp"

namespace rankc::codegen::algebra {

void claims::refuse_value(const std::string& what, term expected, const holding& found) const {
  throw refusal("RC7470: {} is {}; expected {}", what, model_.name(found.closed()), model_.name(expected));
}

/// The elements that a sum has in addition to all expected ones; empty if it lacks expected elements.
static std::string surplus(const holding& found, term expected) {
  term whole = zero;
  for (int i = 0; i < found.sum.size(); ++i)
    if (found.sum[i].is_whole()) whole = found.sum[i].of;
  if (whole != expected) return "";
  const int last = found.sum.size() - 1;
  const pending& more = found.sum[found.sum[last].is_whole() ? 0 : last].over[0];
  return text_of(more.letter, more.done);
}

void claims::refuse_sum(const std::string& what, const holding& found, term expected) const {
  if (const std::string twice = surplus(found, expected); !twice.empty())
    throw refusal("RC7471: {} counts {} twice", what, twice);
  const std::string missing = text_of_missing(found, model_);
  for (int i = 0; i < found.sum.size(); ++i)
    for (int a = 0; a < found.sum[i].over.size(); ++a)
      if (const pending& p = found.sum[i].over[a]; p.letter == 't')
        throw missing_tokens(what, missing, found.sum[i].of, found.box, p.done.gaps(p.size));
  throw incomplete_sum(what, missing);
}

/// Refuses a gradient that is not whole. Names its parameter, and the elements that are missing or that it
/// has twice.
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
  throw incomplete_sum(model_.name(g.closed()), text_of_missing(g, model_));
}

holding claims::sum_squares(const std::vector<const content*>& gradients, const content* before) {
  holding norm;
  if (before) norm = *tensor_of(*before).holds;
  norm.any = false;
  norm.of_tokens = true;
  for (const content* c : gradients) {
    const holding& g = *tensor_of(*c).holds;
    if (g.is_zero()) continue;
    if (!g.is_whole()) refuse_gradient(g);
    summand squares{squares_of(g.closed()), {}};
    if (!model_.has(squares.of))
      throw refusal("RC7692: the norm is given {}; expected the gradient of a trained parameter",
                    model_.name(g.closed()));
    squared_.insert(squares.of);
    for (int d = 0; d < g.box.size(); ++d)
      if (!g.box[d].is_whole()) {
        pending over{hasher(hash_of::axis) << squares.of << static_cast<word>(d),
                     d == 0 ? rows_of_parameter : 'i', joining::sum, g.box[d].size, g.box[d].at};
        interval twice;
        if (!over.done.sort(twice))
          throw refusal("RC7472: the norm counts {} twice", text_of(over.letter, {twice.begin, twice.end}));
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
      throw refusal("RC7473: the optimizer is given tensors of {} and {} elements for one parameter",
                    given[0]->elements(), c->elements());
  if (weight.holds->any) {  // the whole shard is past the end of the parameter
    for (const content* c : given)
      if (!tensor_of(*c).holds->any)
        throw refusal("RC7474: the padding after a parameter is updated with {}; expected zeros",
                      model_.name(tensor_of(*c).holds->closed()));
    std::vector<content> made{*given[0]};
    for (std::size_t s = 2; s < given.size(); ++s) made.push_back(*given[s]);
    return made;
  }
  const auto* owner = weight.holds->is_whole() ? model_.owner(weight.holds->closed()) : nullptr;
  if (!owner)
    throw refusal("RC7475: the optimizer is given {} as a weight; expected a parameter of the model",
                  model_.name(weight.holds->closed()));
  const auto& [name, of] = *owner;
  if (!gradient.is_whole()) refuse_sum("the gradient of " + name, gradient, of.gradient);
  if (gradient.closed() != of.gradient) refuse_value("the gradient of " + name, of.gradient, gradient);
  for (std::size_t s = 1; s < given.size(); ++s) {
    const holding& h = *tensor_of(*given[s]).holds;
    if (!(h.any && of.gradient.is_zero()) && !(h.box == weight.holds->box))
      throw refusal(
          "RC7476: the optimizer updates {} of {} with {} of its gradient or moments; expected the same",
          text_of(weight.holds->box), name, text_of(h.box));
    if (s > 1 && !(h.is_whole() && h.closed() == of.state[s - 1]))
      throw refusal("RC7477: the optimizer updates {} with {} as a moment", name, model_.name(h.closed()));
  }
  if (!of.trainable) throw refusal("RC7478: {} is updated; expected it to stay, because it is frozen", name);
  if (balances != of.balances)
    throw refusal(
        "RC7479: {} is updated by expert load at rate {} toward {} choices; expected rate {} and {} choices "
        "(0: an update by its gradient)",
        name, balances.rate, balances.mean, of.balances.rate, of.balances.mean);
  if (decays && of.shape.size() < 2)
    throw refusal("RC7480: {} has {} dims and decays; expected decay of weights with more than one", name,
                  of.shape.size());
  if (!decays && of.shape.size() > 1)
    throw refusal("RC7481: {} has {} dims and does not decay; expected decay of weights with more than one",
                  name, of.shape.size());
  if (of.balances.any() && gradient.in_bf16)
    throw refusal(
        "RC7793: {} is balanced by numbers of choices that were sent in bf16, which has all whole numbers "
        "only "
        "up to 256; expected f32",
        name);
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
  if (!n.is_whole()) refuse_sum("the norm", n, model_.norm());
  if (n.closed() != model_.norm()) refuse_norm(n);
}

/// Names what the norm lacks, where no rank adds it.
void claims::refuse_norm(const holding& norm) const {
  for (const auto& [name, p] : model_.parameters())
    if (p.trainable && !p.balances.any() && !p.gradient.is_zero() &&
        !squared_.contains(squares_of(p.gradient)))
      throw refusal("RC7791: the norm lacks the gradient of {}", name);
  for (const term& skipped : model_.skipped())
    if (norm.closed() + skipped == model_.norm())
      throw refusal("RC7792: the norm lacks the term that makes ranks skip a step without labels");
  refuse_value("the norm", model_.norm(), norm);
}

}  // namespace rankc::codegen::algebra
