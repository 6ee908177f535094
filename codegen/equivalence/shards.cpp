// SPDX-License-Identifier: Apache-2.0
// Concatenates shards into a tensor, and cuts a tensor into shards.

#include <algorithm>

#include "collectives.hpp"

namespace rankc::codegen::algebra {

runs without_padding(const runs& all, std::int64_t size, int members) {
  const runs there = all.below(size);
  const std::int64_t past = all.size() - there.size();
  if (past > 0 && (all.count() != 1 || past >= members))
    throw refusal(
        "RC7640: {} members have {} of a parameter of {}; expected less than one element of padding for each",
        members, text_of('w', all), size);
  return there;
}

namespace {

bool is_alike(const holding& x, const holding& y) {
  bool alike = x.box.size() == y.box.size() && holds_same_sum(x, y);
  for (int d = 1; alike && d < x.box.size(); ++d) alike = x.box[d] == y.box[d];
  return alike;
}

/// Refuses to concatenate expert slots, because each rank has them in a different order.
void refuse_slots(const part& p) {
  if (p.is_arranged())
    throw refusal(
        "RC7641: the members of the collective have expert slots in different orders, so these cannot be "
        "concatenated");
}

}  // namespace

refusal different_values() {
  return refusal("RC7642: the members of the collective have parts of different values");
}

bool holds_same_sum(const holding& x, const holding& y) {
  bool same = !x.any && !y.any && x.sum.size() == y.sum.size();
  for (int i = 0; same && i < x.sum.size(); ++i)
    same = x.sum[i].of == y.sum[i].of && x.sum[i].over == y.sum[i].over;
  return same;
}

bool continue_piece(content& all, const piece& more) {
  for (int i = 0; i < all.pieces.size(); ++i) {
    piece& p = all.pieces[i];
    if (!is_alike(p.holds, more.holds)) continue;
    refuse_slots(p.holds.box[0]);
    const std::int64_t pitch = more.at.offset - p.at.offset - (p.at.rows - 1) * p.at.pitch;
    const auto has_pitch = [pitch](const place& at) { return at.rows == 1 || at.pitch == pitch; };
    if (p.holds.box.size() == 1) {
      if (pitch != p.at.cols) continue;
      p.at.cols += more.at.cols;
      p.at.pitch = p.at.cols;
    } else {
      if (p.at.cols != more.at.cols || pitch < p.at.cols || !has_pitch(p.at) || !has_pitch(more.at)) continue;
      p.at.pitch = pitch;
      p.at.rows += more.at.rows;
    }
    p.holds.box[0].at.append(more.holds.box[0].at);
    return true;
  }
  return false;
}

namespace {

refusal not_divisible() {
  return refusal("RC7643: the tensor of the reduce-scatter does not divide into whole rows for its members");
}
refusal gathers_numbers() {
  return refusal("RC7644: the all-gather is given numbers; expected tensors of rows");
}

/// Concatenates the elements of `members` members, of which the first two are given. If a parameter's rows do
/// not divide, the last members have padding, less than one row for each member.
runs shards_in_line(const part& first, const runs& second, int members) {
  refuse_slots(first);
  std::int64_t by = 0;
  if (!first.at.is_shifted(second, by))
    throw refusal(
        "RC7645: the members of the collective have {} and {}; expected the second shifted from the first",
        text_of('w', first.at), text_of('w', second));
  runs all;
  for (int k = 0; k < members; ++k) all.append(first.at.shifted(k * by));
  return without_padding(all, first.size, members);
}

bool reaches_end(const part& p) { return p.at.count() == 1 && p.at[0].end == p.size; }

/// The number of rows of a matrix that begin before an element.
/// Errors: refusal where one of them ends after it.
std::int64_t rows_before(const place& m, std::int64_t element) {
  const std::int64_t rows = std::clamp<std::int64_t>((element - m.offset + m.pitch - 1) / m.pitch, 0, m.rows);
  if (rows > 0 && m.offset + (rows - 1) * m.pitch + m.cols > element) throw not_divisible();
  return rows;
}

/// Whether a buffer holds slots that its member received.
bool holds_slots(const content& c) {
  return c.pieces.size() == 1 && !c.pieces[0].holds.any && c.pieces[0].holds.box.size() == 2 &&
         c.pieces[0].holds.box[0].is_arranged();
}

/// The slots of all members, one member's after another's.
content gather_slots(const std::vector<const content*>& given) {
  piece all = given[0]->pieces[0];
  part& slots = all.holds.box[0];
  const std::int64_t rows = all.at.rows;
  for (std::size_t m = 1; m < given.size(); ++m) {
    if (!holds_slots(*given[m]) || !(given[m]->pieces[0].at == all.at) ||
        !is_alike(all.holds, given[m]->pieces[0].holds) ||
        given[m]->pieces[0].holds.box[0].arranged != slots.arranged)
      throw refusal(
          "RC7646: the members of the all-gather have expert slots in different orders, or of different "
          "values");
    slots.at.append(given[m]->pieces[0].holds.box[0].at);
  }
  slots.arranged = order_of_gathered(slots.arranged, static_cast<std::int64_t>(given.size()), rows);
  all.at.rows = rows * static_cast<std::int64_t>(given.size());
  content made{given[0]->bytes * given.size(), given[0]->type, {}};
  made.pieces.push_back(std::move(all));
  return made;
}

/// The slots of one member out of gathered slots. They regain the order in which this member received them.
content slots_of_member(const content& all, int index, int members) {
  piece own = all.pieces[0];
  part& slots = own.holds.box[0];
  if (own.at.rows % members || slots.at.size() % members)
    throw refusal("RC7647: {} expert slots in {} rows do not divide by {} members", slots.at.size(),
                  own.at.rows, members);
  own.at.rows /= members;
  const std::int64_t each = slots.at.size() / members;
  slots = {slots.at.slice(index * each, each), slots.size,
           order_of_member(slots.arranged, members, own.at.rows)};
  content made{all.bytes / static_cast<std::size_t>(members), all.type, {}};
  made.pieces.push_back(std::move(own));
  return made;
}

}  // namespace

content gather(const std::vector<const content*>& given) {
  if (holds_slots(*given[0])) return gather_slots(given);
  content all{given[0]->bytes * given.size(), given[0]->type, {}};
  for (std::size_t m = 0; m < given.size(); ++m)
    for (int i = 0; i < given[m]->pieces.size(); ++i) {
      piece p = given[m]->pieces[i];
      p.at.offset += static_cast<std::int64_t>(m) * given[m]->elements();
      if (!p.holds.any && p.holds.box.empty()) throw gathers_numbers();
      if (p.holds.any) append_zeros(all, p.at.offset, p.at.rows * p.at.cols);
      else if (m == 0) all.pieces.push_back(std::move(p));
      else if (!continue_piece(all, p)) throw different_values();
    }
  return all;
}

content gather_line(const content& first, const content& second, int members) {
  content all{first.bytes * static_cast<std::size_t>(members), first.type, {}};
  if (is_zeros(first) && is_zeros(second)) {
    append_zeros(all, 0, all.elements());
    return all;
  }
  if (is_zeros(second)) {  // the first member has the whole parameter
    const tensor t = tensor_of(first);
    if (t.elements == 0 || t.holds->box.empty() || !reaches_end(t.holds->box[0])) throw different_values();
    all.pieces = first.pieces;
    append_zeros(all, first.elements(), all.elements() - first.elements());
    return all;
  }
  std::int64_t known = 0;
  for (int i = 0; i < first.pieces.size(); ++i) {
    piece p = first.pieces[i];
    const holding& more = same_piece(second, p.at).holds;
    if (!is_alike(p.holds, more)) throw different_values();
    if (p.holds.box.empty()) throw gathers_numbers();
    const bool is_matrix = p.holds.box.size() == 2;
    if (is_matrix && p.at.rows == 1) p.at.pitch = first.elements();
    if (p.at.rows * p.at.pitch != first.elements())
      throw refusal("RC7648: the members of the all-gather have parts of rows; expected whole rows");
    runs& along = p.holds.box[0].at;
    along = shards_in_line(p.holds.box[0], more.box[0].at, members);
    if (is_matrix) p.at.rows = along.size();
    else p.at.cols = p.at.pitch = along.size();
    known += p.at.rows * p.at.cols;
    all.pieces.push_back(std::move(p));
  }
  if (known != all.elements() && all.pieces.size() > 1)
    throw refusal(
        "RC7649: the members of the all-gather have several tensors and padding; expected one tensor");
  append_zeros(all, known, all.elements() - known);
  return all;
}

content chunk(const content& all, int index, int members) {
  if (holds_slots(all)) return slots_of_member(all, index, members);
  content part{all.bytes / static_cast<std::size_t>(members), all.type, {}};
  const std::int64_t begin = index * part.elements(), end = begin + part.elements();
  for (int i = 0; i < all.pieces.size(); ++i) {
    const piece& p = all.pieces[i];
    if (!p.holds.any && p.holds.box.empty()) throw not_divisible();
    const std::int64_t from = std::max(begin, p.at.offset),
                       to = std::min(end, p.at.offset + p.at.rows * p.at.cols);
    if (p.holds.any && p.at.rows * p.at.cols == end_of(p.at) - p.at.offset) {
      if (from < to) append_zeros(part, from - begin, to - from);
    } else if (p.holds.box.size() == 1) {
      if (from < to)
        part.pieces.push_back(
            {{from - begin, 1, to - from, to - from}, cut(p.holds, 0, 1, from - p.at.offset, to - from)});
    } else {
      const std::int64_t first = rows_before(p.at, begin), rows = rows_before(p.at, end) - first;
      if (rows > 0)
        part.pieces.push_back(
            {{p.at.offset + first * p.at.pitch - begin, rows, p.at.cols, rows > 1 ? p.at.pitch : p.at.cols},
             cut(p.holds, first, rows, 0, p.at.cols)});
    }
  }
  return part;
}

}  // namespace rankc::codegen::algebra
