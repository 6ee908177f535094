// SPDX-License-Identifier: Apache-2.0
#include "message.hpp"

#include <algorithm>

namespace field {

using namespace rankc::codegen;

std::vector<operand> communicated(const op& o, bool written) {
  std::vector<operand> out;
  for (const access& a : written ? o.writes : o.reads)
    if (a.type != element_type::bytes) out.push_back(operand_of(a));  // bytes are scratch, which comes last
  for (const view& v : o.views)
    if (v.written == written) {
      expect(v.accesses.first >= 0 && static_cast<std::size_t>(v.accesses.first) < out.size(),
             "a tensor of bytes, or none, in a message");
      out[static_cast<std::size_t>(v.accesses.first)] = operand_of(o, v);
    }
  return out;
}

std::size_t payload::bytes() const {
  std::size_t n = 0;
  for (element_type t : types) n += size_of(t);
  return n;
}

payload take(const rank_state& rank, const std::vector<operand>& from) {
  payload out;
  for (const operand& p : from) {
    const matrix m = load(rank.arena, p);
    out.of.insert(out.of.end(), m.of.begin(), m.of.end());
    out.types.insert(out.types.end(), m.of.size(), p.type);
    out.sum = std::max(out.sum, sum_of(rank.arena, p));
  }
  return out;
}
void put(rank_state& rank, const std::vector<operand>& to, const payload& from) {
  std::size_t next = 0;
  for (const operand& p : to) {
    matrix m(p.is);
    for (element& e : m.of) {
      expect(next < from.of.size() && from.types[next] == p.type,
             "a message of another size, or of other elements, than its receiver takes");
      e = from.of[next++];
    }
    store(rank.arena, p, m, from.sum);
  }
  expect(next == from.of.size(), "a message of another size than its receiver takes");
}

payload result_of(collective_kind does, const std::vector<payload>& given, std::size_t member) {
  if (is_shift(does))
    return given[(member + (does == collective_kind::shift ? given.size() - 1 : 1)) % given.size()];
  payload out = given.front();
  if (does == collective_kind::all_gather) {
    out = {};
    for (const payload& g : given) {
      out.of.insert(out.of.end(), g.of.begin(), g.of.end());
      out.types.insert(out.types.end(), g.types.begin(), g.types.end());
      out.sum = std::max(out.sum, g.sum);
    }
    return out;
  }
  for (const payload& g : given) out.sum = std::max(out.sum, g.sum);
  for (std::size_t k = 1; k < given.size(); ++k)
    for (std::size_t i = 0; i < out.of.size(); ++i)
      out.of[i] = does == collective_kind::all_reduce_max ? larger(out.of[i], given[k].of[i])
                                                          : add(out.of[i], given[k].of[i]);
  if (does != collective_kind::reduce_scatter) return out;
  const std::size_t part = out.of.size() / given.size(), first = member * part;
  expect(out.of.size() % given.size() == 0, "a reduce_scatter that does not divide");
  out.of = {out.of.begin() + static_cast<std::ptrdiff_t>(first),
            out.of.begin() + static_cast<std::ptrdiff_t>(first + part)};
  out.types.resize(part);
  return out;
}

payload exchanged(const std::vector<payload>& given, std::size_t member, std::size_t from, std::size_t to,
                  std::size_t seq) {
  const std::size_t members = given.size(), each = seq / members, half = each / 2;
  expect(from > 0 && to > 0 && from != to && (from > to ? from == to * members : to == from * members),
         "an all_to_all of other columns than its members are");
  expect(seq > 0 && each * members == seq && half * 2 == each,
         "sequences that are no two chunks for each member");
  payload out = given.front();
  expect(out.of.size() % to == 0 && out.of.size() / std::min(from, to) % seq == 0,
         "an all_to_all of parts of sequences");
  for (std::size_t i = 0; i < out.of.size(); ++i) {
    const std::size_t row = i / to, column = i % to;
    std::size_t giver, source;
    if (from > to) {  // each row is one of all tokens
      const std::size_t position = row % seq, chunk = position / half;
      const bool is_front = chunk < members;
      giver = is_front ? chunk : 2 * members - 1 - chunk;
      source = (row / seq * each + (is_front ? 0 : half) + position % half) * from + member * to + column;
    } else {  // each row is one of the member's tokens
      const std::size_t place = row % each, chunk = place < half ? member : 2 * members - 1 - member;
      giver = column / from;
      source = (row / each * seq + chunk * half + place % half) * from + column % from;
    }
    out.of[i] = given[giver].of.at(source);
  }
  return out;
}

}  // namespace field
