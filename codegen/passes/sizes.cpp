// SPDX-License-Identifier: Apache-2.0
// The text of sizes, in the names of a layer's constants.
#include <fmt/format.h>

#include <rankc/codegen/body.hpp>

#include <algorithm>
#include <stdexcept>

#include "roles.hpp"

namespace rankc::codegen {

namespace {

const std::string& name_of(const body& b, std::string_view name, std::int64_t value) {
  const auto known = b.names.constant_of.find({name, value});
  if (known == b.names.constant_of.end())
    throw std::logic_error(fmt::format("layer '{}': no constant is {}={}", b.name, name, value));
  return known->second;
}

std::string join(const auto& dims, std::string_view between, auto text) {
  std::string all;
  for (const local_dim& d : dims) all += (all.empty() ? "" : std::string(between)) + text(d);
  return all;
}

/// An op's number as text. 1 / (tokens of a step) is a quotient of whole numbers.
extent number_of(const body& b, double number) {
  if (number == 1.0 / static_cast<double>(b.tokens_of_step))
    return {0, fmt::format("1.0 / {}", b.tokens_of_step)};
  return {0, fmt::format("{}", number)};
}

extent attribute(const body& b, std::string_view name, int value) {
  return {value, value ? name_of(b, name, value) : ""};
}

/// The length of a sequence. With a rotary table it is the number of this rank's positions. In an exchange of
/// heads it is the length in the Ulysses group.
extent length_of(const body& b, const node& n) {
  if (n.over == axis::ulysses) {
    const int ring = ranks_along(b.setting.dims, axis::ring);
    return {n.seq,
            name_of(b, "seq", static_cast<std::int64_t>(n.seq) * ring) + " / " + name_of(b, "ring", ring)};
  }
  for (std::size_t p = 0; p < n.ports.size(); ++p)
    if (n.row->ports[p].as == use::rotary) return {n.seq, count_text(b, b.shape(n.ports[p]).dims[0])};
  return attribute(b, "seq", n.seq);
}

/// The offset of the rank's part of a dim.
std::string first_text(const body& b, const local_dim& d) {
  std::string index;
  d.each_axis([&](axis a) {
    const bool of_ring = a == axis::ring;  // groups are neighbours on cp
    std::string own = fmt::format("on.index_in(over::{})", role_name(role_along(of_ring ? axis::cp : a)));
    if (of_ring) own = fmt::format("({} / {})", own, name_of(b, "ulysses", b.setting.dims.ulysses));
    index = index.empty() ? own
                          : fmt::format("({} * {} + {})", index,
                                        name_of(b, rankc::name(a), ranks_along(b.setting.dims, a)), own);
  });
  return index.empty() ? "0" : index + " * (" + width_text(b, d) + ")";
}

}  // namespace

std::string count_text(const body& b, const local_dim& d) {
  using rankc::lowering::composed_dim;
  if (d.composed >= 0) {
    const composed_dim& c = b.composed[static_cast<std::size_t>(d.composed)];
    if (c.how == composed_dim::packed) return b.names.packed[static_cast<std::size_t>(d.composed)];
    const bool sum = c.how == composed_dim::sum;
    return join(c.dims, sum ? " + " : " * ",
                [&](const local_dim& each) { return sum ? count_text(b, each) : width_text(b, each); });
  }
  std::int64_t whole = d.count;
  std::string over;
  d.each_axis([&](axis a) {
    const int ranks = ranks_along(b.setting.dims, a);
    whole *= ranks;
    over += " / " + name_of(b, rankc::name(a), ranks);
  });
  return name_of(b, d.name, whole) + over;
}

std::string width_text(const body& b, const local_dim& d) {
  const std::string count = count_text(b, d);
  if (d.unit == 1) return count;
  const bool sum = d.composed >= 0 &&
                   b.composed[static_cast<std::size_t>(d.composed)].how == rankc::lowering::composed_dim::sum;
  return (sum ? "(" + count + ")" : count) + " * " + name_of(b, d.unit_name, d.unit);
}

extent size_of(const body& b, const node& n, std::string_view symbol) {
  if (symbol == "rows") return attribute(b, symbol, n.rows);
  if (symbol == "seq") return length_of(b, n);
  if (symbol == "cp") return attribute(b, symbol, b.setting.dims.cp);
  if (symbol == "ring") return attribute(b, symbol, ring_ranks(b.setting.dims));
  if (symbol == "number") return number_of(b, n.number);
  for (std::size_t p = 0; p < n.ports.size(); ++p) {
    const port_shape& s = n.row->ports[p].shape;
    if (n.ports[p].shape < 0) continue;
    const local_shape& here = b.shape(n.ports[p]);
    if (s.stride == symbol && !symbol.empty()) return {here.stride.width(), width_text(b, here.stride)};
    for (int d = 0; d < s.ndim; ++d) {
      const local_dim& local = here.dims[d];
      if (s.dim[d].unit == symbol)
        return {local.unit, local.unit == 1 ? "1" : name_of(b, local.unit_name, local.unit)};
      if (s.dim[d].first == symbol) return {0, first_text(b, local)};
      if (s.dim[d].count != symbol) continue;
      return s.dim[d].unit.empty() ? extent{local.width(), width_text(b, local)}
                                   : extent{local.count, count_text(b, local)};
    }
  }
  throw std::logic_error("op '" + std::string(n.row->name) + "' has no size '" + std::string(symbol) + "'");
}

}  // namespace rankc::codegen
