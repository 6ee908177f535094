// SPDX-License-Identifier: Apache-2.0
// Checks that the ranks together hold each element of each parameter, and lists the claims after the last op.
#include <fmt/format.h>

#include <algorithm>

#include "claims.hpp"
#include "collectives.hpp"

namespace rankc::codegen::algebra {

namespace {

using box_type = few<part, 2>;

/// The different boxes of one parameter, each with the ranks that hold it.
struct shard {
  box_type box;
  std::vector<int> ranks;
};
const box_type* box_of_rank(const std::vector<shard>& shards, int rank) {
  for (const shard& s : shards)
    if (std::find(s.ranks.begin(), s.ranks.end(), rank) != s.ranks.end()) return &s.box;
  return nullptr;
}
bool is_in(const box_type& box, const std::vector<box_type>& boxes) {
  return std::find(boxes.begin(), boxes.end(), box) != boxes.end();
}

/// The distances between the shards of a group's members: elements along a dim from one member to the next.
struct step {
  int members;   // all members of the group
  bool in_line;  // the program has two of the members, and all neighbours have the distance of these two
  int dim = 0;
  std::vector<int> ranks = {};  // ranks in the program
  std::vector<std::int64_t> by = {};
};

box_type shifted(const box_type& box, int dim, std::int64_t by) {
  box_type to = box;
  to[dim].at = box[dim].at.shifted(by);
  return to;
}

/// The distances in each group of a rank of which the program has two members, or all. A group with all
/// members counts only if its distances are along one dim: the members of ep, which may span several axes,
/// hold other shards of some parameters.
std::vector<step> steps_from(const program& p, const std::vector<shard>& shards, int rank) {
  const box_type& own = *box_of_rank(shards, rank);
  std::vector<const communicator*> largest_first;
  for (const communicator& c : p.communicators)
    if (std::find(c.ranks.begin(), c.ranks.end(), rank) != c.ranks.end()) largest_first.push_back(&c);
  std::stable_sort(
      largest_first.begin(), largest_first.end(),
      [](const communicator* a, const communicator* b) { return a->ranks.size() > b->ranks.size(); });
  std::vector<step> all;
  for (const communicator* c : largest_first) {
    if (c->ranks.size() != 2 && static_cast<int>(c->ranks.size()) != c->members()) continue;
    step s{c->members(), static_cast<int>(c->ranks.size()) < c->members()};
    bool is_known = false, is_shifted = true;
    for (const int member : c->ranks) {
      const box_type* other = box_of_rank(shards, member);
      if (member == rank || !other || *other == own) continue;
      for (const step& k : all)
        is_known |= std::find(k.ranks.begin(), k.ranks.end(), member) != k.ranks.end();
      std::int64_t by = 0;
      for (int d = 0; d < own.size(); ++d)
        if (!((*other)[d] == own[d])) {
          s.dim = d;
          by = (*other)[d].at[0].begin - own[d].at[0].begin;
        }
      is_shifted &= shifted(own, s.dim, by) == *other;
      if (!is_shifted && s.in_line)
        throw refusal(
            "RC7620: rank {} has {} and rank {} of its group has {}; expected the same shard shifted along "
            "one dim",
            rank, text_of(own), member, text_of(*other));
      if (std::find(s.by.begin(), s.by.end(), by) != s.by.end()) continue;  // two ranks with the same shard
      s.ranks.push_back(member);
      s.by.push_back(by);
    }
    if (!s.by.empty() && !is_known && is_shifted) all.push_back(std::move(s));
  }
  return all;
}

/// The union of the boxes of all ranks of a large world, of which the program has two along each axis.
box_type all_in_line(const program& p, const std::vector<shard>& shards) {
  const int first = shards[0].ranks[0];
  box_type all = shards[0].box;
  std::vector<box_type> expected{all};
  for (const step& s : steps_from(p, shards, first)) {
    for (std::size_t i = 0, n = expected.size(); i < n; ++i)
      for (const std::int64_t by : s.by) expected.push_back(shifted(expected[i], s.dim, by));
    const runs own = all[s.dim].at;
    runs at = own;
    if (s.in_line) at = union_of('w', own, own.shifted(s.by[0]), s.members);
    for (std::size_t i = 0; !s.in_line && i < s.by.size(); ++i) at.append(own.shifted(s.by[i]));
    if (interval twice; !at.sort(twice))
      throw refusal("RC7621: {} are on two ranks of a group", text_of('w', {twice.begin, twice.end}));
    all[s.dim].at = without_padding(at, all[s.dim].size, s.members);
  }
  for (const shard& s : shards)
    if (!is_in(s.box, expected))
      throw refusal(
          "RC7622: rank {} has {}; expected the shard that rank {}'s shard and their groups determine",
          s.ranks[0], text_of(s.box), first);
  if (shards.size() != expected.size())
    throw refusal("RC7623: the ranks have {} different shards; expected {}, by their groups", shards.size(),
                  expected.size());
  return all;
}

/// The elements of a dim that the boxes cover.
runs along(const std::vector<shard>& shards, int dim) {
  std::vector<interval> found;
  for (const shard& s : shards) found.push_back(s.box[dim].at[0]);
  std::sort(found.begin(), found.end(),
            [](const interval& x, const interval& y) { return x.begin < y.begin; });
  runs all;
  std::int64_t end = 0;
  for (const interval& x : found) {
    if (x.end > end) all.append(interval{std::max(x.begin, end), x.end});
    end = std::max(end, x.end);
  }
  return all;
}

bool overlap(const box_type& x, const box_type& y) {
  for (int d = 0; d < x.size(); ++d)
    if (x[d].at[0].end <= y[d].at[0].begin || y[d].at[0].end <= x[d].at[0].begin) return false;
  return true;
}

void check_whole(const box_type& all) {
  for (int d = 0; d < all.size(); ++d)
    if (!all[d].is_whole())
      throw refusal("RC7624: no rank has {} of dim {}", text_of('w', all[d].at.gaps(all[d].size)), d);
}

/// Checks that no two boxes have an element in common, and that together they have each row, each column and
/// the number of elements of the parameter.
void check_tiles(const std::vector<shard>& shards) {
  std::int64_t held = 0, elements = 1;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    held += count(shards[i].box);
    for (std::size_t k = 0; k < i; ++k)
      if (overlap(shards[i].box, shards[k].box))
        throw refusal(
            "RC7625: rank {} has {} and rank {} has {}; expected the same elements, or no common ones",
            shards[k].ranks[0], text_of(shards[k].box), shards[i].ranks[0], text_of(shards[i].box));
  }
  box_type all = shards[0].box;
  for (int d = 0; d < all.size(); ++d) {
    all[d].at = along(shards, d);
    elements *= all[d].size;
  }
  check_whole(all);
  if (held != elements) throw refusal("RC7626: no rank has {} of the {} elements", elements - held, elements);
}

}  // namespace

static refusal on_no_rank() { return refusal("RC7627: no rank has the parameter"); }

void claims::check_owned(const std::vector<held>& of) const {
  std::vector<shard> shards;
  for (const held& h : of) {
    const auto known =
        std::find_if(shards.begin(), shards.end(), [&](const shard& s) { return s.box == h.box; });
    if (known == shards.end()) shards.push_back({h.box, {h.rank}});
    else known->ranks.push_back(h.rank);
  }
  if (shards.empty()) throw on_no_rank();
  if (program_.world > static_cast<int>(program_.ranks.size()))
    return check_whole(all_in_line(program_, shards));
  for (shard& s : shards)
    if (!s.box.empty()) s.box[0].at = s.box[0].at.below(s.box[0].size);
  std::erase_if(shards, [](const shard& s) { return count(s.box) == 0; });
  if (shards.empty()) throw on_no_rank();
  check_tiles(shards);
}

void claims::check_left() const {
  for (const auto& [place, tensor] : kept_)
    if (const codegen::holding& h = tensor.what; !tensor.is_left) {
      const refusal why("RC7628: rank {} begins the step with a {} that it does not leave", place.first,
                        holding_names[static_cast<int>(h.kind)]);
      throw h.name.empty() ? why : why.at("parameter " + h.name);
    }
}

void claims::check_all() {
  check_left();
  for (const auto& [name, p] : model_.parameters()) try {
      check_owned(held_[name]);
    } catch (const refusal& why) {
      throw why.at("parameter " + name);
    }
  if (leave_loss_.empty()) throw refusal("RC7629: no rank has the loss at the end of the step");
  for (const int rank : read_targets_)
    if (!leave_loss_.contains(rank))
      throw refusal(
          "RC7753: rank {} reads targets and does not keep the loss; expected the loss on each rank with "
          "targets",
          program_.number_of(rank));
  for (const int rank : make_loss_)
    if (!leave_loss_.contains(rank))
      throw refusal(
          "RC7789: rank {} computes a part of the loss and does not keep the loss; expected the loss on each "
          "rank that computes a part of it",
          program_.number_of(rank));
  if (trains_ && leave_norm_.size() < program_.ranks.size())
    throw refusal("RC7630: the norm is on {} of {} ranks at the end of the step; expected all",
                  leave_norm_.size(), program_.ranks.size());
}

static std::string kept_text(bool weights, bool moments) {
  if (weights && moments) return "weights and moments";
  if (weights) return "weights";
  return moments ? "moments" : "";
}

std::vector<std::string> claims::sentences() const {
  std::vector<std::string> all;
  all.push_back(fmt::format("the loss that {} ranks leave is the model's, over all {} tokens",
                            leave_loss_.size(), model_.tokens()));
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
      "each element of {} trained parameters{} is updated by {} on every rank that "
      "holds it; weights of more than "
      "one dim decay",
      trained, model_.optimizer().moments > 0 ? " and of their moments" : "", model_.optimizer().row));
  const std::string wide = kept_text(!bf16_weights_, !bf16_moments_ && model_.optimizer().moments > 0),
                    narrow = kept_text(bf16_weights_, bf16_moments_);
  std::string in_wide = "these sums";
  if (!wide.empty()) in_wide += (wide == "weights and moments" ? ", " : " and ") + wide;
  all.push_back(in_wide + " are kept in f32 or f64");
  if (!narrow.empty()) all.push_back(narrow + " are kept in bf16 alone, as the recipe says");
  if (fp8_linears_) all.push_back("linear layers take operands that are rounded to fp8, as the recipe says");
  if (bf16_reductions_) all.push_back("gradients go between ranks in bf16, as the recipe says");
  if (trained < model_.parameters().size())
    all.push_back(fmt::format("{} frozen parameters are as they were", model_.parameters().size() - trained));
  return all;
}

}  // namespace rankc::codegen::algebra
