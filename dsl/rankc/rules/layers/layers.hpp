// SPDX-License-Identifier: Apache-2.0
// RC202, RC210 to RC213, RC223 to RC226, RC228, RC240: the rules of one traced layer.
#pragma once
#include <rankc/rules/layers/experts.hpp>
#include <rankc/rules/layers/sequences.hpp>

namespace rankc::detail {

/// RC202: a sharded dim divides into equal shards of whole units.
constexpr void check_shards(report& out, const trace& t, const parallel_dims& given, const layer_context& c) {
  const parallel_dims d = resolve(given);
  auto refused_before = [&](std::string_view text) {
    for (const diagnostic& said : out)
      if (said.text.view() == text) return true;
    return false;
  };
  auto refuse_dim = [&](const type& v, int i) {
    const dim& s = v.shape[i];
    const int ways = shards(v, i, d);
    sentence text, over;
    offers found;
    for (axis a : axes) {
      if (shards_over(v, i, a, d) == 1) continue;
      const axis by = shared_over(v[a], i, a);
      int parallel_dims::* degree = row(row(by).degree ? by : a).degree;
      over << (over.empty() ? "" : " * ") << name(by);
      found.add_degree(given, degree, find_nearest_degree(given, degree, false, [&](const parallel_dims& x) {
                         return s.count() % shards(v, i, x) == 0;
                       }));
    }
    // A plan declares seq, not the number of tokens. So the alternative for tokens is a value of seq.
    const bool of_sequences = s.name == c.tokens.name;
    const int each = of_sequences ? s.count() / c.seq : 1;
    if (s.name != sequence_dim)
      found.add(of_sequences ? "seq" : s.name,
                find_nearest(s.count() / each, std::numeric_limits<int>::max() / each - 1,
                             [&](int n) { return n * each % ways == 0; }));
    put_shards(text, s.name, s.count(), over.view(), ways) << found.view();
    if (s.name == sequence_dim) text << " (they are those of a microbatch: global_batch / microbatches)";
    if (!refused_before(text.view())) refuse(out, 202) << text.view();
  };
  auto check_dims_of = [&](const type& v) {
    for (int i = 0; i < v.ndim; ++i)
      if (v.shape[i].count() % shards(v, i, d)) refuse_dim(v, i);
  };
  for (const weight_info& w : t.weights) check_dims_of(w.holds);
  for (const type& v : t.values) check_dims_of(v);
}

/// RC211: refuses a repeated layer whose result does not have the type of its input.
constexpr void refuse_repeat(report& out, std::string_view layer, const type& x, const type& y) {
  sentence& s = refuse(out, 211) << "layer '" << layer << "' is repeated, but ";
  if (!placement_rules::same_shape(x, y) || x.holds != y.holds) {
    complaint::put_shape(s << "its result is ", y);
    complaint::put_shape(s << " and its input ", x);
    s << "; both must have the same shape and type";
    return;
  }
  const char* separator = "";
  for (axis a : axes)
    if (x[a] != y[a]) {
      complaint::put(s << separator << "its result is ", y, y[a]);
      complaint::put(s << " over " << name(a) << " and its input ", x, x[a]);
      separator = ", ";
    }
  s << "; end it with the conversion that gives the placement of its input";
}

/// RC210: refuses a conversion over an axis on which no value is placed, and a parameter sharded over such an
/// axis.
constexpr void check_axes_of(report& out, const trace& t) {
  const auto refuse_axis = [&](complaint c, std::string_view does, std::string_view over) {
    sentence& s = c.begin() << does << over << ", and no value is placed on it; values are placed on ";
    for (int i = 0; i < n_axes; ++i) s << list_separator(i, n_axes) << name(axes[i]);
    refuse(out, 210) << s.view();
  };
  for (const op& o : t.ops)
    if (o.over != no_axis && index(o.over) == n_axes)
      return refuse_axis({o.kind->name, {}, o.from}, "it is over ", name(o.over));
  for (const weight_info& w : t.weights)
    if (w.holds.at[n_axes] != I)
      return refuse_axis({"parameter", w.name, w.from}, "it is sharded over ", "another axis");
}

/// Checks one layer. Returns true if the next layer can be traced.
/// Errors: RC210 to RC213, RC224, RC256.
constexpr bool check_layer(report& out, const trace& t, std::string_view layer, int count) {
  if (!is_name(layer)) {
    refuse(out, 224) << "a layer is named '" << layer << "'; " << legal_names;
    return false;
  }
  for (const sentence& s : t.said) refuse(out, 210) << s.view();
  if (!t.said.empty()) return false;
  const std::size_t before = out.size();
  check_axes_of(out, t);
  if (out.size() > before) return false;
  const type &x = t.values[t.input], &y = t.values[t.result];
  if (y.holds == element::index) {
    refuse(out, 213) << "the result of layer '" << layer
                     << "' is token ids; expected rows of features, or a loss";
    return false;
  }
  if (!x.is_input && t.gradients[t.input] < 0) {
    refuse(out, 213) << "the result of layer '" << layer
                     << "' does not depend on its input, so that the layers before it "
                     << "are not trained; use the input";
    return false;
  }
  for (std::size_t i = 0; i < t.forward_ops; ++i) {
    const int made = t.ops[i].out[0];
    const bool is_loss = made >= 0 && t.values[made].ndim == 0;
    if (!is_loss || (made == t.result) != t.is_side_loss(made)) continue;
    sentence& s = refuse(out, 212) << "layer '" << layer << "' ";
    if (made == t.result)
      s << "adds its result as a loss, but a result that is a loss counts already; only return it";
    else s << "makes a loss that does not count; return it, or add it with add_loss";
    return false;
  }
  if (!check_statistics(out, t, layer)) return false;
  if (count > 1 && y != x) refuse_repeat(out, layer, x, y);
  return count == 1 || y == x;
}

/// RC240: if a tensor-parallel region and FSDP both shard a parameter's rows, the rows of a region's rank
/// divide by the number of FSDP shards. The rows of other parameters may be padded.
constexpr void check_row_shards(report& out, const trace& t, const parallel_dims& given) {
  const parallel_dims d = resolve(given);
  const int shards = weight_shards(d), of_cp = shards / d.dp_shard;
  const int of_region = region_ranks(d), data = static_cast<int>(batch_ranks(d));
  if (shards == 1 || of_region == 1) return;
  for (const weight_info& w : t.weights) {
    const dim& of = w.holds.shape[0];
    const int rows = of.size / of_region;
    if (w.holds[region_axis] != V(0) || rows % shards == 0) continue;
    offers found;
    found.add("dp_shard", find_nearest(d.dp_shard, data,
                                       [&](int n) { return data % n == 0 && rows % (n * of_cp) == 0; }));
    found.add(of.name, find_nearest(of.count(), std::numeric_limits<int>::max() / of.unit,
                                    [&](int n) { return n * of.unit % (of_region * shards) == 0; }));
    sentence& s = refuse(out, 240) << "parameter '" << w.name << "' has " << rows << " rows on each rank of "
                                   << name(region_axis) << "=" << of_region
                                   << ", and they do not divide by dp_shard=" << d.dp_shard;
    if (of_cp > 1) s << " * cp=" << of_cp;
    s << " (dp_replicate takes the rest)" << found.view();
    if (of_cp > 1) s << ", or cp_weights=replicate";
    return;
  }
}

/// RC223: an index is a row of the table that it looks up, or a column of the logits whose target it is.
/// Token ids and targets are below `used`. Indices of a declared input are below that input's limit.
constexpr void check_vocabulary(report& out, const trace& t, std::string_view layer, int used) {
  const auto declared_by = [&](int v) -> const named_input* {
    for (const input_value& i : t.inputs)
      if (i.id == v && i.is != inputs::tokens && i.is != inputs::targets) return &i.is;
    return nullptr;
  };
  const auto check_rows = [&](std::string_view what, const dim& rows, int indices) {
    const named_input* const declared = declared_by(indices);
    if (declared ? declared->below >= 1 && declared->below <= rows.size : rows.size >= used) return;
    sentence& s = refuse(out, 223) << what << " of layer '" << layer << "' has " << rows.name << "="
                                   << rows.size << " for ";
    if (declared)
      s << "the input '" << declared->name << "', which is declared with below=" << declared->below
        << "; take below=" << rows.size << " or less, and at least 1";
    else s << "token ids below " << used << "; make it at least that large, or take vocab_used=" << rows.size;
  };
  for (std::size_t i = 0; i < t.forward_ops; ++i) {
    const op& o = t.ops[i];
    if (o.kind == &ops::embedding) check_rows("the embedding", t.values[o.in[1]].shape[0], o.in[0]);
    if (o.kind == &ops::exp_sums) check_rows("the loss", t.values[o.in[0]].shape[1], o.in[2]);
  }
}

/// Complains of a user's row whose name is no identifier or not unique. Programs and certificates identify
/// rows by name.
constexpr void check_row_name(complaint& c, const op_row& row, const std::vector<const op_row*>& of_user) {
  const auto is_alike = [&](const op_row* other) { return other != &row && other->name == row.name; };
  if (!c.said && !is_identifier(row.name))
    c.begin() << "the name of its op_row is no identifier; give letters, digits and '_', and no digit first";
  for (const op_row* known : ops::all)
    if (!c.said && is_alike(known)) c.begin() << "one of rankc's ops has this name; give the op_row another";
  for (const op_row* seen : of_user)
    if (!c.said && is_alike(seen))
      c.begin() << "another op_row of the layer has this name; give one of them another";
}

/// RC225: the row of a user's op has all that lowering needs. A test checks rankc's own rows.
constexpr void check_kernels(report& out, const trace& t, const parallel_dims& d) {
  std::vector<const op_row*> seen;
  for (const op& o : t.ops) {
    bool is_new = !ops::is_known(o.kind);
    for (const op_row* row : seen) is_new &= row != o.kind;
    if (!is_new) continue;
    seen.push_back(o.kind);
    complaint c{o.kind->name, {}, o.from};
    check_row(c, *o.kind, false);
    check_row_name(c, *o.kind, seen);
    if (!c.said && d.cp > 1 && (o.kind->takes("rows") || o.kind->takes("seq")))
      c.begin() << "its kernel takes rows or seq, and with cp=" << d.cp
                << " a rank has chunks of sequences; write a kernel that takes neither, or take cp=1";
    if (c.said) refuse(out, 225) << c.text.view();
  }
}

/// RC228: refuses an all-gather or reduce-scatter along the features. A collective concatenates whole
/// buffers, so it can gather rows but not columns.
constexpr void check_gathers(report& out, const trace& t, const parallel_dims& d) {
  for (const op& o : t.ops) {
    const conversion by = o.kind->converts;
    if (by != conversion::all_gather && by != conversion::reduce_scatter) continue;
    if (o.along <= 0 || ranks_along(d, o.over) == 1) continue;
    complaint c{o.kind->name, {}, o.from};
    complaint::put_dim(c.begin() << "over " << name(o.over) << " it is along ",
                       t.values[o.in[0]].shape[o.along]);
    refuse(out, 228) << c.text.view()
                     << "; this version gathers and scatters rows: take the dim of the tokens, or a product "
                        "whose weight is sharded along the same features";
    return;
  }
}

/// RC228: refuses a shard order that no kernel supports.
constexpr void check_orders(report& out, const trace& t, const parallel_dims& d) {
  const auto refuse_order = [&](complaint c, const type& v) {
    for (int i = 0; i < v.ndim; ++i) {
      if (v.shape[i].order == shard_order::contiguous || shards(v, i, d) == 1) continue;
      complaint::put_dim(c.begin() << "it is sharded along ", v.shape[i]);
      refuse(out, 228) << c.text.view()
                       << "; this version has kernels for contiguous shards: leave the dim's order out";
      return true;
    }
    return false;
  };
  for (const weight_info& w : t.weights)
    if (refuse_order({"parameter", w.name, w.from}, w.holds)) return;
  for (const op& o : t.ops)
    for (int made : o.out)
      if (made >= 0 && refuse_order({o.kind->name, {}, o.from}, t.values[made])) return;
}

/// RC226: over an axis that shards tokens, every parameter is replicated and its gradient is a partial sum.
/// If only tokens are lowered over the axis, no op of a layer converts over it.
constexpr void check_tokens_alone(report& out, const trace& t, axis a) {
  for (const weight_info& w : t.weights) {
    if (w.holds[a] == I && (w.gradient[a] == P || !w.trainable)) continue;
    complaint c{"parameter", w.name, w.from};
    complaint::put(c.begin() << "it is ", w.holds, w.holds[a]);
    complaint::put(c.text << " and its gradient ", w.gradient, w.gradient[a]);
    refuse(out, 226)
        << c.text.view() << " over " << name(a)
        << "; this version has parameters that are the same on every replica, made of its tokens";
  }
  if (row(a).lowered == lowered_values::all) return;
  for (const op& o : t.ops) {
    if (o.over != a) continue;
    complaint c{o.kind->name, {}, o.from};
    c.begin() << "a conversion over " << name(a) << " inside a layer is not lowered in this version: set "
              << name(a) << "=1";
    refuse(out, 226) << c.text.view();
    return;
  }
}
constexpr void check_tokens_alone(report& out, const trace& t, const parallel_dims& d) {
  for (const weight_info& w : t.weights) {
    if (d.ep == 1 || w.holds[axis::ep] == I || w.trainable) continue;
    complaint c{"parameter", w.name, w.from};
    c.begin() << "it is frozen and sharded over ep=" << d.ep
              << "; this version trains the experts that it spreads over ranks: train it, or take ep=1";
    refuse(out, 226) << c.text.view();
  }
  for (const weight_info& w : t.weights) {
    if (d.ep == 1 || w.gradient[axis::ep] != P) continue;
    complaint c{"parameter", w.name, w.from};
    c.begin() << "its gradient is a pending sum over ep=" << d.ep
              << "; this version sums values over it, and no gradients of parameters: all_reduce what is "
                 "made of it";
    refuse(out, 226) << c.text.view();
  }
  for (axis a : axes)
    if ((row(a).shares == part::sequences || row(a).shares == part::positions) && d.*row(a).degree > 1)
      check_tokens_alone(out, t, a);
}

/// The repeated layers of a model: their number, whether the stack has any, the name of a layer with a count
/// below 1, and the single layers before and after them.
struct block_count {
  int blocks = 0;
  bool repeats = false;
  std::string_view missing = "";
  alone_at ends{};
};
constexpr block_count count_blocks(const auto& model) {
  block_count n;
  each_entry(model, [&](const auto& e, int) {
    if constexpr (is_repeat<std::decay_t<decltype(e)>>) {
      n.blocks += count_of(e);
      n.repeats = true;
      n.ends.last = false;
      if (count_of(e) < 1) n.missing = layer_of(e).name;
    } else {
      (n.repeats ? n.ends.last : n.ends.first) = true;
    }
  });
  return n;
}

}  // namespace rankc::detail
