// SPDX-License-Identifier: Apache-2.0
// Whether the ranks together have each element of each parameter, and what is claimed once all ops are through.
#include <fmt/format.h>

#include <algorithm>

#include "claims.hpp"
#include "collectives.hpp"

namespace rankc::codegen::algebra {

int claims::members_between(int rank, int other) const {
  for (const communicator& c : program_.communicators) {
    const auto has = [&](int r) { return std::find(c.ranks.begin(), c.ranks.end(), r) != c.ranks.end(); };
    if (has(rank) && has(other) && c.ranks.size() == 2) return c.members();
  }
  return 0;
}

void claims::check_owned(const std::string& name, const model::parameter& p,
                         const std::vector<held>& of) const {
  std::vector<const held*> boxes;  // that differ
  for (const held& h : of) {
    if (h.left != h.regions)
      throw refusal(fmt::format("{}: rank {} begins with more of it than it leaves", name, h.rank));
    if (std::none_of(boxes.begin(), boxes.end(), [&](const held* other) { return other->box == h.box; }))
      boxes.push_back(&h);
  }
  if (boxes.empty()) throw refusal(name + " is on no rank");
  few<part, 2> all = boxes[0]->box;
  const bool in_line = program_.world > static_cast<int>(program_.ranks.size()) && boxes.size() == 2;
  for (std::size_t k = 1; k < boxes.size(); ++k) {
    int differs = -1;
    for (int d = 0; d < all.size(); ++d)
      if (!(boxes[k]->box[d] == boxes[0]->box[d])) differs = differs < 0 ? d : -2;
    if (differs < 0) throw refusal(name + " is held in parts that differ in two dims");
    runs& at = all[differs].at;
    interval twice;
    if (in_line)
      at = union_of('w', at, boxes[1]->box[differs].at, members_between(boxes[0]->rank, boxes[1]->rank));
    else if (!at.unite(boxes[k]->box[differs].at, twice))
      throw refusal(fmt::format("{}: {} are held twice", name, text_of('w', {twice.begin, twice.end})));
  }
  for (int d = 0; d < all.size(); ++d)
    if (!all[d].is_whole())
      throw refusal(fmt::format("{}: {} on all ranks", name,
                                missing_text('w', all[d].at, p.shape[static_cast<std::size_t>(d)])));
}

void claims::check_all() {
  for (const auto& [name, p] : model_.parameters()) check_owned(name, p, held_[name]);
  if (losses_ == 0 && (trains_ || program_.step == "evaluate")) throw refusal("no rank leaves the loss");
  if (trains_ && norms_ == 0) throw refusal("no rank leaves the norm");
}

std::vector<std::string> claims::sentences() const {
  std::vector<std::string> all;
  all.push_back(fmt::format("the loss that {} ranks leave is the model's, over all {} tokens", losses_,
                            model_.tokens()));
  if (!trains_) {
    all.push_back(fmt::format("all {} parameters are as they were", model_.parameters().size()));
    return all;
  }
  std::size_t trained = 0;
  for (const auto& [name, p] : model_.parameters()) trained += p.trainable;
  all.push_back(fmt::format(
      "each gradient that is read by the {} updates of parameters is the model's, over all tokens",
      updates_));
  all.push_back("the norm that they read counts each element of each gradient once");
  all.push_back(fmt::format(
      "each element of {} trained parameters and of their moments is updated on every rank that holds it",
      trained));
  if (trained < model_.parameters().size())
    all.push_back(fmt::format("{} frozen parameters are as they were", model_.parameters().size() - trained));
  return all;
}

}  // namespace rankc::codegen::algebra
