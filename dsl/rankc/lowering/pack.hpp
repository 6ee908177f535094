// SPDX-License-Identifier: Apache-2.0
// Packs linears that read one input and whose weights are adjacent in memory (query, key, value; gate, up)
// into one GEMM. Their results and gradients are columns of packed rows. Other ops access these columns with
// a stride.
#pragma once
#include <rankc/ops/fused.hpp>
#include <rankc/ops/positions.hpp>
#include <rankc/lowering/node.hpp>

#include <algorithm>

namespace rankc::lowering {

namespace detail {

/// One linear of a pack and its nodes, as indices into forward and backward.
struct packed_linear {
  int weight = -1, bias = -1;  // indices of parameters
  slice made{}, dy{};          // its result and the gradient of the result
  long long width = 0;
  int forward = -1, dx = -1, dw = -1, db = -1;
  // The values that become columns of the packed rows.
  std::vector<slice> forward_values{}, backward_values{};
};

constexpr bool is_linear(const node& n) { return n.is(ops::linear) || n.is(ops::linear_bias); }

class packer {
 public:
  constexpr packer(layer_program& p, const layer_setting& s)
      : p_(p),
        placed_(lay_out(p.parameters)),
        element_(s.bytes(element_kind::real)),
        rounds_(s.linears != linear_precision::plain) {}

  constexpr void run() {
    for (int i = 0; i < static_cast<int>(p_.forward.size()); ++i) {
      std::vector<packed_linear> linears = neighbours(i);
      if (linears.size() < 2) continue;
      count_uses();
      if (find_backward(linears) && all_take_strides(linears)) pack(linears);
    }
  }

 private:
  /// True if parameter b follows a in memory without a gap.
  constexpr bool follows(int a, int b) const {
    const auto &at_a = placed_.of_parameter[a], &at_b = placed_.of_parameter[b];
    return at_a.in == at_b.in && at_a.in != group::shared &&
           at_a.offset + p_.parameters[a].elements() == at_b.offset;
  }
  constexpr int parameter(const port_use& u) const { return p_.values[u.at.value].of; }
  /// True if a port is the weight, or the gradient, of a parameter.
  constexpr bool is_of(const port_use& u, space where, int of) const {
    const value& v = p_.values[u.at.value];
    return v.where == where && v.of == of;
  }

  /// True if the recipe uses fp8 for both GEMMs or for neither, which depends on their widths.
  constexpr bool are_rounded_alike(const packed_linear& a, const packed_linear& b) const {
    return !rounds_ || fits_fp8(a.width) == fits_fp8(b.width);
  }

  constexpr std::vector<packed_linear> neighbours(int i) const {
    std::vector<packed_linear> linears;
    if (!is_linear(p_.forward[i])) return linears;
    for (int j = i; j < static_cast<int>(p_.forward.size()); ++j) {
      const node& n = p_.forward[j];
      if (n.row != p_.forward[i].row || n["x"].at != p_.forward[i]["x"].at || !p_.is_inner(n["y"].at))
        continue;
      packed_linear q{.weight = parameter(n["w"]),
                      .made = n["y"].at,
                      .width = p_.shape(n["y"]).dims[1].width(),
                      .forward = j};
      if (n.is(ops::linear_bias)) q.bias = parameter(n["b"]);
      if (!linears.empty() &&
          !(follows(linears.back().weight, q.weight) && (q.bias < 0 || follows(linears.back().bias, q.bias))))
        continue;
      if (!linears.empty() && !are_rounded_alike(linears.front(), q)) continue;
      linears.push_back(std::move(q));
    }
    return linears;
  }

  /// The number of a node's ports that use a value and take no stride.
  static constexpr int count_whole(const node& n, int value) {
    int ports = 0;
    const port* p = n.row->ports;
    for (const port_use *u = n.ports.data(), *end = u + n.ports.size(); u != end; ++u, ++p)
      if (u->at.value == value) ports += p->shape.stride.empty();
    return ports;
  }
  constexpr void count_uses() {
    whole_.assign(p_.values.size(), 0);
    sums_.assign(p_.parameters.size(), 0);
    for (const nodes* list : {&p_.forward, &p_.backward})
      for (const node& n : *list) {
        const port* p = n.row->ports;
        for (const port_use *u = n.ports.data(), *end = u + n.ports.size(); u != end; ++u, ++p) {
          whole_[u->at.value] += p->shape.stride.empty();
          if (p->as == use::sum && p_.values[u->at.value].where == space::gradient)
            ++sums_[p_.values[u->at.value].of];
        }
      }
  }

  /// Finds the backward nodes of each linear. False if they cannot become one GEMM of packed rows.
  constexpr bool find_backward(std::vector<packed_linear>& linears) const {
    const nodes& list = p_.backward;
    for (packed_linear& q : linears) {
      // The weight, and the bias, must be used exactly once.
      if (sums_[q.weight] != 1 || (q.bias >= 0 && sums_[q.bias] != 1)) return false;
      for (int i = 0; i < static_cast<int>(list.size()); ++i) {
        const node& n = list[i];
        if (n.is(ops::linear_dx) && is_of(n["w"], space::weight, q.weight)) q.dx = i;
        if (n.is(ops::linear_dw) && is_of(n["dw"], space::gradient, q.weight)) q.dw = i;
        if (n.is(ops::bias_grad) && is_of(n["db"], space::gradient, q.bias)) q.db = i;
      }
      const packed_linear& first = linears.front();
      if (q.dw < 0 || (q.db < 0 && q.bias >= 0) || (q.dx < 0) != (first.dx < 0)) return false;
      q.dy = list[q.dw]["dy"].at;
      if (!p_.is_inner(q.dy) || (q.bias >= 0 && list[q.db]["dy"].at != q.dy)) return false;
      if (q.dx >= 0 && !(list[q.dx]["dy"].at == q.dy && list[q.dx]["dx"].at == list[first.dx]["dx"].at))
        return false;
    }
    return true;
  }

  /// True if every node that uses a value, except the linear's own nodes, takes it with a stride.
  constexpr bool is_strided(const slice& s, const packed_linear& q) const {
    if (!p_.is_inner(s)) return false;
    int own = count_whole(p_.forward[q.forward], s.value);
    for (int i : {q.dx, q.dw, q.db})
      if (i >= 0) own += count_whole(p_.backward[i], s.value);
    return own == whole_[s.value];
  }

  /// The port that shares memory with port p if both work on columns in place: for an output the input that
  /// it may replace, and the reverse.
  static constexpr const port_use* in_place(const node& n, std::size_t p) {
    const port& here = n.row->ports[p];
    for (std::size_t q = 0; q < n.ports.size(); ++q) {
      const port& other = n.row->ports[q];
      const bool replaces =
          here.is_written() ? here.may_replace[0] == other.name : other.may_replace[0] == here.name;
      if (replaces && !here.shape.stride.empty() && here.shape.stride == other.shape.stride)
        return &n.ports[q];
    }
    return nullptr;
  }
  /// `made`, and the values in the same memory: nodes compute one from the other in place.
  static constexpr std::vector<slice> values(const nodes& list, const slice& made,
                                             bool (port::*from)() const) {
    std::vector<slice> out{made};
    for (const node& n : list)
      for (std::size_t p = 0; p < n.ports.size() && n.mentions(made.value); ++p)
        if (n.ports[p].at.value == made.value && (n.row->ports[p].*from)())
          if (const port_use* turned = in_place(n, p)) out.push_back(turned->at);
    return out;
  }

  constexpr bool all_take_strides(std::vector<packed_linear>& linears) const {
    for (packed_linear& q : linears) {
      q.forward_values = values(p_.forward, q.made, &port::is_read);
      q.backward_values = values(p_.backward, q.dy, &port::is_written);
      for (const auto* list : {&q.forward_values, &q.backward_values})
        for (const slice& s : *list)
          if (!is_strided(s, q)) return false;
      const std::size_t forward = q.forward_values.size();
      if (forward > 2 || (forward == 2 && p_.mentions(q.made.value) != 2))
        return false;  // another node needs the value before it is overwritten
    }
    return share_strides(linears);
  }

  /// True for two strides whose operands are packed together or not at all: equal strides, e.g. of gate and
  /// up, and the strides of keys and values, because fused attention kernels take one stride for both.
  static constexpr bool belong_together(std::string_view a, std::string_view b) {
    return a == b || (a == "k_stride" && b == "v_stride") || (a == "v_stride" && b == "k_stride");
  }
  /// True if, in each node, operands whose strides belong together are all columns of the pack, or none is.
  constexpr bool share_strides(const std::vector<packed_linear>& linears) const {
    std::vector<char> is_part(p_.values.size(), 0);
    for (const packed_linear& q : linears)
      for (const auto* list : {&q.forward_values, &q.backward_values})
        for (const slice& s : *list) is_part[s.value] = 1;
    for (const nodes* list : {&p_.forward, &p_.backward})
      for (const node& n : *list)
        for (std::size_t p = 0; p < n.ports.size(); ++p) {
          const std::string_view stride = n.row->ports[p].shape.stride;
          if (stride.empty() || !is_part[n.ports[p].at.value]) continue;
          for (std::size_t q = 0; q < n.ports.size(); ++q)
            if (!is_part[n.ports[q].at.value] && belong_together(n.row->ports[q].shape.stride, stride))
              return false;
        }
    return true;
  }

  /// Gives a port a separate, changed copy of its shape.
  constexpr void change(port_use& u, auto how) {
    local_shape s = p_.shape(u);
    how(s);
    u.shape = p_.add(s);
  }

  /// The model's names for the linears; empty if one has no name.
  constexpr std::vector<int> names_of(const std::vector<packed_linear>& linears) const {
    std::vector<int> all;
    for (const packed_linear& q : linears) {
      int of = -1;
      for (const slice& s : q.forward_values)
        if (const name_source& n = p_.values[s.value].name; n.of_model) of = n.of;
      if (of < 0) return {};
      all.push_back(of);
    }
    return all;
  }

  constexpr void pack(const std::vector<packed_linear>& linears) {
    const int composed = static_cast<int>(p_.composed.size());
    p_.composed.push_back({.how = composed_dim::packed});
    local_dim whole{.count = 0, .composed = composed};
    std::size_t bytes = 0, gradient_bytes = 0;
    for (const packed_linear& q : linears) {
      p_.composed.back().parameters.push_back(q.weight);
      whole.count += q.width;
      bytes += p_.values[q.made.value].bytes;
      gradient_bytes += p_.values[q.dy.value].bytes;
    }
    p_.composed.back().named = names_of(linears);
    const local_dim tokens = p_.shape(p_.forward[linears[0].forward]["y"]).dims[0];
    const int shape = p_.add(local_shape{.dims = {tokens, whole}, .ndim = 2, .stride = whole});
    const int made = p_.add(value{.shape = shape, .bytes = bytes, .name = {name_source::packed, composed}});
    const int gradient = p_.add(
        value{.shape = shape, .bytes = gradient_bytes, .name = {name_source::packed_gradient, composed}});

    std::vector<slice> in_its_place(p_.values.size(), slice{});
    std::size_t offset = 0;
    for (const packed_linear& q : linears) {
      for (const slice& s : q.forward_values) in_its_place[s.value] = {made, offset};
      for (const slice& s : q.backward_values) in_its_place[s.value] = {gradient, offset};
      offset += static_cast<std::size_t>(q.width) * element_;
    }
    for (nodes* list : {&p_.forward, &p_.backward})
      for (node& n : *list)
        for (port_use& u : n.ports)
          if (const slice& columns = in_its_place[u.at.value]; columns.value >= 0) {
            u.at = columns;
            change(u, [&](local_shape& s) { s.stride = whole; });
          }
    join_products(linears, made, gradient, shape, whole);
    join_ropes(p_.forward, ops::rope, made);
    join_ropes(p_.backward, ops::rope_grad, gradient);
  }

  /// Replaces a port's parameter by those of all linears: the first, and a run of the others.
  constexpr void join_parameters(port_use& u, const std::vector<packed_linear>& linears,
                                 int packed_linear::* which, const local_dim& whole) {
    const space where = p_.values[u.at.value].where;
    const auto find = [&](int parameter) {
      int v = 0;
      while (p_.values[v].where != where || p_.values[v].of != parameter) ++v;
      return v;
    };
    u.at = {find(linears.front().*which), 0};
    u.run = static_cast<int>(p_.runs.size());
    p_.runs.emplace_back();
    for (std::size_t i = 1; i < linears.size(); ++i) p_.runs.back().push_back(find(linears[i].*which));
    change(u, [&](local_shape& s) { s.dims[0] = whole; });
  }

  /// True if n writes an output of `other`.
  static constexpr bool writes_as(const node& n, const node& other) {
    bool same = false;
    other.each_write([&](const port_use& u) { same |= n.writes(u.at); });
    return same;
  }

  /// `shape`: the shape of the packed rows.
  constexpr void join_products(const std::vector<packed_linear>& linears, int made, int gradient, int shape,
                               const local_dim& whole) {
    const packed_linear& first = linears.front();
    node& linear = p_.forward[first.forward];
    linear["y"] = {{made, 0}, shape};
    join_parameters(linear["w"], linears, &packed_linear::weight, whole);
    if (first.bias >= 0) join_parameters(linear["b"], linears, &packed_linear::bias, whole);
    for (std::size_t i = linears.size(); i-- > 1;) p_.forward.erase(p_.forward.begin() + linears[i].forward);

    // Each joined node replaces the last of the nodes that it joins. It overwrites the sum if the earliest
    // linear did, unless another node adds to the sum in between. Then that node overwrites, and the joined
    // node adds.
    std::vector<int> gone;
    const auto join = [&](int packed_linear::* which) -> node& {
      int last = -1, earliest = static_cast<int>(p_.backward.size());
      for (const packed_linear& q : linears) {
        last = std::max(last, q.*which);
        earliest = std::min(earliest, q.*which);
      }
      for (const packed_linear& q : linears)
        if (q.*which != last) gone.push_back(q.*which);
      node& n = p_.backward[last];
      n.accumulate = p_.backward[earliest].accumulate;
      for (int i = earliest + 1; i < last && n.accumulate == accumulation::overwrite; ++i) {
        node& other = p_.backward[i];  // it adds to the earliest linear's result, and now comes first
        if (other.accumulate != accumulation::add || !writes_as(other, p_.backward[earliest])) continue;
        if (std::any_of(linears.begin(), linears.end(),
                        [&](const packed_linear& q) { return q.*which == i; }))
          continue;
        std::swap(other.accumulate, n.accumulate);
      }
      n["dy"] = {{gradient, 0}, shape};
      return n;
    };
    join_parameters(join(&packed_linear::dw)["dw"], linears, &packed_linear::weight, whole);
    if (first.dx >= 0) join_parameters(join(&packed_linear::dx)["w"], linears, &packed_linear::weight, whole);
    if (first.bias >= 0)
      join_parameters(join(&packed_linear::db)["db"], linears, &packed_linear::bias, whole);
    std::sort(gone.begin(), gone.end());
    while (!gone.empty()) {
      p_.backward.erase(p_.backward.begin() + gone.back());
      gone.pop_back();
    }
  }

  /// The units of two adjacent dims.
  constexpr local_dim join_units(const local_dim& low, const local_dim& high) {
    local_dim joined{.count = low.count + high.count,
                     .unit_name = low.unit_name,
                     .unit = low.unit,
                     .composed = static_cast<int>(p_.composed.size())};
    composed_dim sum{.how = composed_dim::sum};
    for (const local_dim& d : {low, high})
      if (d.composed < 0) sum.dims.push_back(d);
      else
        for (const local_dim& each : p_.composed[d.composed].dims) sum.dims.push_back(each);
    p_.composed.push_back(std::move(sum));
    return joined;
  }

  /// Joins ropes of adjacent columns in one node, in the place of the last of them.
  constexpr void join_ropes(nodes& list, const op_row& row, int packed) {
    const auto is_rope = [&](const node& n) { return n.is(row) && n.ports[1].at.value == packed; };
    for (int i = 0; i < static_cast<int>(list.size()); ++i) {
      if (!is_rope(list[i])) continue;
      for (int j = i + 1; j < static_cast<int>(list.size()); ++j) {
        if (!is_rope(list[j]) || list[i]["table"].at != list[j]["table"].at) continue;
        const bool ordered = list[i].ports[1].at.offset < list[j].ports[1].at.offset;
        const node &low = ordered ? list[i] : list[j], &high = ordered ? list[j] : list[i];
        const local_dim heads = p_.shape(low.ports[0]).dims[1], more = p_.shape(high.ports[0]).dims[1];
        if (low.ports[1].at.offset + static_cast<std::size_t>(heads.width()) * element_ !=
            high.ports[1].at.offset)
          continue;
        node joined = low;
        const local_dim both = join_units(heads, more);
        for (std::size_t p : {0u, 1u}) change(joined.ports[p], [&](local_shape& s) { s.dims[1] = both; });
        list[j] = std::move(joined);
        list.erase(list.begin() + i);
        --i;
        break;
      }
    }
  }

  layer_program& p_;
  const group_layout placed_;
  const std::size_t element_;
  bool rounds_;  // the recipe casts linears to fp8
  // whole_: by value, the ports that use it without a stride. sums_: by parameter, the nodes that add to its
  // gradient.
  std::vector<int> whole_, sums_;
};

}  // namespace detail

/// Packs linears with one input and adjacent weights into one GEMM, forward and backward. Their results are
/// columns of one packed buffer.
constexpr void pack_linears(layer_program& p, const layer_setting& s) { detail::packer(p, s).run(); }

}  // namespace rankc::lowering
