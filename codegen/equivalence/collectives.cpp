// SPDX-License-Identifier: Apache-2.0
#include "collectives.hpp"

namespace rankc::codegen::algebra {

void check_written(std::int64_t known, std::int64_t elements) {
  if (known != elements)
    throw refusal("RC7485: nothing has written {} of the {} elements that a member of the collective sends",
                  elements - known, elements);
}

void check_all_known(std::int64_t known, std::int64_t members) {
  if (known != members)
    throw refusal("RC7486: {} of the {} members of the collective are in the program; expected all of them",
                  known, members);
}

bool is_zeros(const content& c) {
  return c.pieces.size() == 1 && c.pieces[0].holds.any &&
         c.pieces[0].at.rows * c.pieces[0].at.cols == c.elements();
}

static refusal different_shapes() {
  return refusal("RC7487: the members of the collective have tensors of different shapes");
}

static refusal different_terms() {
  return refusal("RC7488: the members of the collective have sums of different values");
}

const piece& same_piece(const content& c, const place& at) {
  for (int i = 0; i < c.pieces.size(); ++i)
    if (c.pieces[i].at == at) return c.pieces[i];
  throw different_shapes();
}

namespace {

/// Checks that a member has written all elements that it sends.
void check_known(const content& c) {
  std::int64_t known = 0;
  for (int i = 0; i < c.pieces.size(); ++i) known += c.pieces[i].at.rows * c.pieces[i].at.cols;
  check_written(known, c.elements());
}

/// Extrapolates the first two members of a communicator to all of its members.
class line_of_members {
 public:
  line_of_members(int members) : members_(members) {}

  holding sum(const holding& first, const holding& second) const {
    if (first.any && second.any) return first;
    check_same_box(first, second);
    check_addable(first);
    holding all;
    all.box = first.box;
    all.of_tokens = first.of_tokens || second.of_tokens;
    all.in_bf16 = first.in_bf16 || second.in_bf16;
    if (first.sum.size() != second.sum.size()) throw different_terms();
    for (int i = 0; i < first.sum.size(); ++i)
      add(all.sum, further(first.sum[i], find(second, first.sum[i])));
    return all;
  }
  holding maximum(const holding& first, const holding& second) const {
    holding all = first;
    take_maximum(all, second);  // checks that the first two are parts of one maximum
    if (first.sum[0].over.size() != 1) return all;
    all.sum = {};
    summand s = further(first.sum[0], second.sum[0]);
    if (s.over[0].done.is(0, s.over[0].size)) s.over.erase(0);
    all.sum.push_back(std::move(s));
    return all;
  }

 private:
  static const summand& find(const holding& h, const summand& like) {
    for (int i = 0; i < h.sum.size(); ++i)
      if (h.sum[i].of == like.of && h.sum[i].over.size() == like.over.size()) return h.sum[i];
    throw different_terms();
  }
  summand further(const summand& first, const summand& second) const {
    summand all = first;
    bool differs = false;
    for (int a = 0; a < first.over.size(); ++a) {
      const pending &x = first.over[a], &y = second.over[a];
      if (x.id != y.id) throw refusal("RC7489: the members of the collective have sums over different axes");
      if (x.done == y.done) continue;
      if (differs)
        throw refusal(
            "RC7490: the members of the collective have sums that differ in two axes; expected one");
      differs = true;
      all.over[a].done = union_of(x.letter, x.done, y.done, members_);
      if (x.letter == rows_of_parameter)
        all.over[a].done = without_padding(all.over[a].done, x.size, members_);
    }
    if (!differs && !first.is_whole()) throw counted_twice(text_of(first.over[0].letter, first.over[0].done));
    if (!differs) all.of = static_cast<double>(members_) * all.of;
    return all;
  }

  int members_;
};

content reduce(bool maximum, const std::vector<const content*>& given, int members) {
  const bool in_line = static_cast<int>(given.size()) < members;
  content all = *given[0];
  for (std::size_t m = 1; m < given.size(); ++m) {
    const content& other = *given[m];
    const bool adds = !maximum && !in_line;  // a maximum must count zeros too
    if (adds && is_zeros(all)) {
      all = other;
      continue;
    }
    if (adds && is_zeros(other)) continue;
    if (all.pieces.size() != other.pieces.size()) throw different_shapes();
    for (int i = 0; i < all.pieces.size(); ++i) {
      holding& h = all.pieces[i].holds;
      const holding& more = same_piece(other, all.pieces[i].at).holds;
      if (in_line)
        h = maximum ? line_of_members(members).maximum(h, more) : line_of_members(members).sum(h, more);
      else if (maximum) take_maximum(h, more);
      else add_of_member(h, more);
    }
  }
  return all;
}

/// The result of a shift: each member gets the contents of the member `after` places after it in the ring.
std::vector<content> handed_on(const std::vector<const content*>& given, int members, int after) {
  check_all_known(static_cast<std::int64_t>(given.size()), members);
  std::vector<content> made;
  for (std::size_t m = 0; m < given.size(); ++m)
    made.push_back(*given[(m + static_cast<std::size_t>(after)) % given.size()]);
  return made;
}

}  // namespace

runs union_of(char letter, const runs& first, const runs& second, int members) {
  std::int64_t by = 0;
  if (!first.is_shifted(second, by))
    throw refusal(
        "RC7491: the first two members of a group have {} and {}; expected the second to have the shard of "
        "the first, shifted",
        text_of(letter, first), text_of(letter, second));
  runs all;
  for (int k = 0; k < members; ++k) all.append(first.shifted(k * by));
  if (interval twice; !all.sort(twice)) throw counted_twice(text_of(letter, {twice.begin, twice.end}));
  return all;
}

std::vector<content> combine(collective_kind does, const std::vector<const content*>& given, int members) {
  const std::size_t n = given.size();
  if (static_cast<int>(n) != members && n != 2)
    throw refusal("RC7492: {} of the {} members of the collective are in the program; expected 2 or all", n,
                  members);
  for (const content* c : given)
    if (c->bytes != given[0]->bytes || c->type != given[0]->type)
      throw refusal("RC7493: the members of the collective have tensors of different sizes or types");
  for (const content* c : given) check_known(*c);
  switch (does) {
    case collective_kind::all_reduce:
      return std::vector<content>(n, reduce(false, given, members));
    case collective_kind::all_reduce_max:
      return std::vector<content>(n, reduce(true, given, members));
    case collective_kind::all_gather:
      return std::vector<content>(
          n, static_cast<int>(n) == members ? gather(given) : gather_line(*given[0], *given[1], members));
    case collective_kind::all_to_all:
      throw refusal(
          "RC7494: an all-to-all of heads needs the sequences of its members, and they are unknown");
    case collective_kind::shift:
    case collective_kind::shift_back:
      return handed_on(given, members, does == collective_kind::shift ? members - 1 : 1);
    case collective_kind::to_experts:
    case collective_kind::from_experts:
    case collective_kind::share_offsets:
    case collective_kind::gather_offsets:
      throw refusal(
          "RC7495: an exchange of expert slots needs the offsets of its members, and they are unknown");
    case collective_kind::reduce_scatter:
      break;
  }
  const content all = reduce(false, given, members);
  std::vector<content> parts;
  for (std::size_t m = 0; m < n; ++m) parts.push_back(chunk(all, static_cast<int>(m), members));
  return parts;
}

}  // namespace rankc::codegen::algebra
