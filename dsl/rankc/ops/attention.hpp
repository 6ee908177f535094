// SPDX-License-Identifier: Apache-2.0
// Attention as one family of op rows. A layer calls `attention` or `ring_attention`, with or without
// documents. Lowering then chooses the row for the layout of the rank's tokens. Every row takes an
// attention_setting: a window, a softcap and a scale of the scores, and whether attention is causal. Sinks
// are added after it (sinks.hpp).
#pragma once
#include <rankc/contract/attention_scratch.hpp>
#include <rankc/contract/kernel_scratch.hpp>
#include <rankc/ops/documents.hpp>
#include <rankc/ops/sinks.hpp>

#include <algorithm>
#include <iterator>
#include <limits>

namespace rankc {

/// The queries and keys that one attention op reads.
enum class attention_layout : unsigned char {
  whole,   // queries and keys of whole sequences
  chunks,  // queries of the rank's chunks of each sequence; keys of whole sequences
  ring     // queries of the rank's chunks; keys of one rank of the ring
};

struct attention_form {
  bool gradient = false;
  attention_layout layout = attention_layout::whole;
  bool documents = false;
};

namespace placement_rules {
/// Complains if a number of an attention_setting is neither 0 nor positive, normal and finite in f32.
constexpr void score_number(complaint& c, std::string_view name, double x, std::string_view default_of) {
  constexpr double least = 1.2e-38, most = std::numeric_limits<float>::max();
  if (!c.said && x != 0 && !(x >= least && x <= most))
    c.begin() << "its " << name << " is " << x << "; expected a finite number of at least " << least
              << ", or 0 for " << default_of;
}
constexpr void scores(complaint& c, const attention_setting& s) {
  if (!c.said && s.window < 0)
    c.begin() << "its window is " << s.window << " tokens; expected at least 1, or 0 for no window";
  if (!c.said && s.window > 0 && !s.causal)
    c.begin() << "its window is " << s.window
              << " tokens and it is not causal; only causal attention takes a window: "
              << "leave out the window, or causal = false";
  score_number(c, "softcap", s.softcap, "no softcap");
  score_number(c, "scale", s.scale, "1 / sqrt(head dim)");
}
/// Complains unless `x` has passed exactly `step` ranks of the ring.
constexpr void check_passed(complaint& c, std::string_view who, const type& x, double step) {
  if (x.shape[0].passed != static_cast<int>(step) && !c.said)
    c.begin() << who << " has been shifted by " << x.shape[0].passed << " ranks; expected "
              << static_cast<int>(step) << " at this step of the ring";
}
/// One step of ring attention: a rank's queries attend to the keys that have passed `step` ranks.
constexpr void ring_attention(complaint& c, types in, type* out, const op& o) {
  constexpr std::string_view who[]{"q", "k", "v"};
  for (int i = 0; i < 3; ++i)
    if (!rows(c, who[i], in[i])) return;
  out[0] = out[1] = in[0];
  out[0].shape[1] = heads_of_result(in[0].shape[1], in[2].shape[1]);
  out[1].shape[1] = dim{in[0].shape[1].name, in[0].shape[1].count()};
  out[1].holds = element::wide;
  for (axis a : axes)
    for (int i = 0; i < 3; ++i) {
      if (in[i][a] == P) c.found(a, who[i], in[i], any_but_pending, reduce_first);
      else if (a == axis::cp && in[i][a] != V(0) && in[i][a] != heads_in_ring)
        c.found(a, who[i], in[i], "sharded along the tokens (V)",
                "a ring shifts the shards of its ranks: do not gather it");
      else if (in[i][a] != in[0][a]) c.found(a, who[i], in[i], "q's placement", "convert it as q is");
      else if (spans_region(a)) whole_sequences(c, who[i], in[i]);
    }
  check_passed(c, "q", in[0], 0);
  check_passed(c, "k", in[1], o.with.step);
  check_passed(c, "v", in[2], o.with.step);
  heads_of_attention(c, in);
}
constexpr void ring_attention_gradient(complaint& c, types in, type* out, const op& o) {
  attention_gradient(c, in, out, o);
  check_passed(c, "q", in[1], 0);
  check_passed(c, "k", in[2], o.with.step);
  check_passed(c, "v", in[3], o.with.step);
}
template <attention_form Form>
constexpr void attention_of(complaint& c, types in, type* out, const op& o) {
  constexpr bool in_ring = Form.layout == attention_layout::ring;
  if constexpr (Form.gradient) (in_ring ? ring_attention_gradient : attention_gradient)(c, in, out, o);
  else (in_ring ? ring_attention : attention)(c, in, out, o);
  if constexpr (Form.documents) {
    starts(c, in.back());
    if (!c.said && !o.with.attention.causal)
      c.begin()
          << "it is not causal, and its sequences hold documents; this version masks the documents of causal "
             "attention: leave out end_of_document, or causal = false";
  }
  scores(c, o.with.attention);
}
}  // namespace placement_rules

namespace ops {

/// The shape on a rank, with the number of the rank's tokens of each sequence.
constexpr cuda::attention_shape attention_shape(const op_sizes& s, const kernel_setting& k) {
  const auto size = [&](std::string_view symbol) { return static_cast<int>(s(symbol)); };
  return {.rows = size("rows"),
          .seq = size("tokens") / size("rows"),
          .heads = size("heads"),
          .kv_heads = size("kv_heads"),
          .dim = size("dim"),
          .value_dim = size("value_dim"),
          .element = k.element,
          .deterministic = k.deterministic};
}

/// True if the kernels for compute capability 9.0 compute attention with these masks on tensor cores:
/// documents, windows and scales. With cp, the rank's tokens of a sequence are two chunks.
constexpr bool masks_on_tensor_cores(const op_sizes& s, const attention_setting& by,
                                     cuda::attention_shape shape) {
  if (shape.seq < s("seq")) shape.seq /= 2;
  return by.has_only_masks() && cuda::masked_attention_by_tiles(shape);
}
/// True if a rank's queries see all keys that cp gathers. Only kernels in f32 compute this.
constexpr bool sees_all_gathered(const op_sizes& s, const attention_setting& by, const op_row& row,
                                 const cuda::attention_shape& shape) {
  return !by.causal && shape.seq < s("seq") && !row.of_rings;
}

/// Twice the number of keys that a query sees on average. For causal attention without a window, this is the
/// length of a sequence.
constexpr double doubled_keys_per_query(const op_sizes& s) {
  const double seq = s("seq"), window = static_cast<double>(s.window());
  if (!s.is_causal()) return 2 * seq;
  return window < seq ? window * (2 * seq - window) / seq : seq;
}
/// Floating-point operations. Forward multiplies queries by keys, and weights by values. Backward has three
/// products of the size of keys, and two of the size of values.
template <attention_form Form>
constexpr double attention_flops(const op_sizes& s) {
  const double elements = Form.gradient ? 3 * s("dim") + 2 * s("value_dim") : s("dim") + s("value_dim");
  const double all = 2 * s("tokens") * s("heads") * elements * doubled_keys_per_query(s);
  if (Form.layout != attention_layout::ring) return all;
  return all /
         steps_of_ring(s.window(), static_cast<long long>(s("seq")), static_cast<int>(s("ring"))).count();
}

/// Scratch of the host kernels for the queries of one sequence on a rank.
template <attention_form Form>
constexpr std::size_t host_scratch(const op_sizes& s, const kernel_setting& k) {
  constexpr bool in_ring = Form.layout == attention_layout::ring;
  const auto queries = static_cast<std::size_t>(s("tokens") / s("rows"));
  const auto keys = in_ring ? queries : static_cast<std::size_t>(s("seq"));
  const std::size_t window = in_ring ? 0 : static_cast<std::size_t>(s.window());
  return Form.gradient ? host::attention_grad_scratch(queries, keys, k.element, window)
                       : host::attention_scratch(queries, keys, k.element, window);
}
/// Scratch of the GPU kernels. Document attention has its own kernels, which need less than cuDNN.
template <attention_form Form>
constexpr std::size_t cuda_scratch(const op_sizes& s, const kernel_setting& k) {
  const cuda::attention_shape shape = attention_shape(s, k);
  if (Form.documents && Form.gradient) return cuda::document_attention_grad_scratch(shape);
  if (Form.layout == attention_layout::chunks && !Form.documents)
    return Form.gradient ? cuda::chunk_attention_grad_scratch(shape) : cuda::chunk_attention_scratch(shape);
  return Form.gradient ? cuda::attention_grad_scratch(shape) : cuda::attention_scratch(shape);
}

constexpr void attention_backward(backward&);

template <attention_form Form>
constexpr std::string_view attention_name() {
  constexpr std::string_view names[2][3][2]{{{"attention", "document_attention"},
                                             {"chunk_attention", "document_chunk_attention"},
                                             {"ring_attention", "document_ring_attention"}},
                                            {{"attention_grad", "document_attention_grad"},
                                             {"chunk_attention_grad", "document_chunk_attention_grad"},
                                             {"ring_attention_grad", "document_ring_attention_grad"}}};
  return names[Form.gradient][static_cast<int>(Form.layout)][Form.documents];
}

/// Shape of q and dq. Except in a ring, q may be columns of a wider packed buffer, so its rows have a stride.
template <attention_form Form>
constexpr port_shape queries() {
  if (Form.layout == attention_layout::ring) return "tokens@first heads*dim";
  if (Form.layout == attention_layout::chunks) return "tokens@first heads*dim : q_stride";
  return "tokens heads*dim : q_stride";
}
/// Shape of k and dk. Rows have a stride if those of q have one.
template <attention_form Form>
constexpr port_shape keys() {
  if (Form.layout == attention_layout::ring) return "keys kv_heads*dim";
  if (Form.layout == attention_layout::chunks) return "keys kv_heads*dim : k_stride";
  return "tokens kv_heads*dim : k_stride";
}
/// Shape of v and dv.
template <attention_form Form>
constexpr port_shape values() {
  if (Form.layout == attention_layout::ring) return "keys kv_heads*value_dim";
  if (Form.layout == attention_layout::chunks) return "keys kv_heads*value_dim : v_stride";
  return "tokens kv_heads*value_dim : v_stride";
}

template <attention_form Form>
constexpr op_row make_attention();

template <attention_form Form>
inline constexpr op_row attention_row = make_attention<Form>();

template <attention_form Form>
constexpr op_row make_attention() {
  constexpr port_shape q = queries<Form>(), k = keys<Form>(), v = values<Form>(),
                       o = "tokens heads*value_dim";
  constexpr std::string_view sizes[]{"rows seq heads kv_heads dim value_dim",
                                     "rows seq heads kv_heads dim value_dim cp first",
                                     "rows seq heads kv_heads dim value_dim ring number first"},
      with_strides[]{"rows seq heads kv_heads dim value_dim q_stride k_stride v_stride",
                     "rows seq heads kv_heads dim value_dim q_stride k_stride v_stride cp first",
                     "rows seq heads kv_heads dim value_dim ring number first"};
  constexpr auto layout = static_cast<std::size_t>(Form.layout);
  op_row row{.name = attention_name<Form>(),
             .ports = {out("o", o), out("lse", "tokens heads").wide(), scratch("scratch"), in("q", q),
                       in("k", k), in("v", v)},
             .flops = attention_flops<Form>,
             .sizes = sizes[layout],
             .host = {.scratch = host_scratch<Form>},
             .cuda = {.sizes = with_strides[layout], .scratch = cuda_scratch<Form>}};
  if constexpr (Form.gradient) {
    const port gradient[]{
        out("dq", q), out("dk", k), out("dv", v), scratch("scratch"), in("d_o", o),
        in("q", q),   in("k", k),   in("v", v),   in("o", o),         in("lse", "tokens heads").wide()};
    std::copy(std::begin(gradient), std::end(gradient), row.ports);
  } else row.family = op_family::attention;
  if constexpr (Form.documents) row.ports[row.count_ports()] = in("starts", "places").index();
  if constexpr (Form.layout == attention_layout::ring) {
    row.number = {"step", &attributes::step};
    row.of_rings = true;
  }
  if constexpr (Form.layout != attention_layout::chunks) {
    row.rule = placement_rules::attention_of<Form>;
    if constexpr (!Form.gradient) row.dual = attention_backward;
  }
  if constexpr (Form.layout == attention_layout::whole)
    row.in_chunks = &attention_row<attention_form{Form.gradient, attention_layout::chunks, Form.documents}>;
  return row;
}
template <attention_layout Layout, bool Documents>
inline constexpr const op_row* attention_pair[]{&attention_row<attention_form{false, Layout, Documents}>,
                                                &attention_row<attention_form{true, Layout, Documents}>};
/// Indexed by [documents][layout][gradient].
inline constexpr const op_row* const* attention_pairs[2][3]{
    {attention_pair<attention_layout::whole, false>, attention_pair<attention_layout::chunks, false>,
     attention_pair<attention_layout::ring, false>},
    {attention_pair<attention_layout::whole, true>, attention_pair<attention_layout::chunks, true>,
     attention_pair<attention_layout::ring, true>}};
constexpr const op_row& find_attention(attention_form f) {
  return *attention_pairs[f.documents][static_cast<int>(f.layout)][f.gradient];
}
inline constexpr const op_row &attention = find_attention({}),
                              &ring_attention = find_attention({.layout = attention_layout::ring});

constexpr bool is_attention(const op_row& row) {
  return row.family == op_family::attention && row.find("q") >= 0;
}

/// Appends the backward op. The gradient is computed from the output and the log-sum-exp of all steps of a
/// ring, and with the sinks.
constexpr void attention_backward(backward& b) {
  const bool ring = b.of.kind->of_rings, documents = has_starts(*b.of.kind);
  value_pair whole{b["o"], b["lse"]}, kv{b["k"], b["v"]};
  if (ring) {
    whole = rankc::detail::whole_of(b.t, whole.first.id);
    kv = rankc::detail::sent_again(b.t, kv, b.of.with);
  }
  whole = rankc::detail::with_sinks(b.t, whole);
  const auto layout = ring ? attention_layout::ring : attention_layout::whole;
  const op_row& gradient = find_attention({true, layout, documents});
  const value dy = b.gradient("o"), q = b["q"];
  const value dq =
      documents ? b.apply(gradient, {dy, q, kv.first, kv.second, whole.first, whole.second, b["starts"]})
                : b.apply(gradient, {dy, q, kv.first, kv.second, whole.first, whole.second});
  b.give("q", dq);
  b.give("k", result(dq, 1));
  b.give("v", result(dq, 2));
}
}  // namespace ops

/// Attention of each sequence, with grouped key-value heads. The scale of the scores is 1 / sqrt(size of a
/// key head) unless `by` has one.
/// Shapes: q (tokens, heads), k and v (tokens, kv_heads); heads of q and k have one size, and those of v may
///         have another; result (tokens, heads), with heads of the size of v's; tokens = rows * seq.
/// Errors: RC210; RC259 if the sequences hold documents, which need the overload with starts.
constexpr value attention(operand q, value k, value v, int rows, int seq, const attention_setting& by = {}) {
  return k.in->apply(ops::attention, {q.v, k, v}, q.from,
                     {.with = {.rows = rows, .seq = seq, .attention = by}});
}
/// Causal attention within documents.
/// Shapes: as for attention above; starts (tokens) has the start of each token's document.
/// Errors: RC210.
constexpr value attention(operand q, value k, value v, value starts, int rows, int seq,
                          const attention_setting& by = {}) {
  return k.in->apply(ops::find_attention({.documents = true}), {q.v, k, v, starts}, q.from,
                     {.with = {.rows = rows, .seq = seq, .attention = by}});
}
/// Causal attention around a ring: a rank's chunks of each sequence attend to the keys of all ranks of the
/// ring. In a ring of Ulysses groups, these are the keys of all groups. With a window, the ring has only the
/// steps in which some rank's queries see keys.
/// Shapes: as for attention. q, k and v are sharded over cp along the tokens. In a ring of groups they are
/// sharded by heads inside a group and by tokens over the groups.
/// Errors: RC210; RC259 if the sequences hold documents, which need the overload with starts.
constexpr value ring_attention(operand q, value k, value v, int rows, int seq, int ring,
                               const attention_setting& by = {}) {
  return detail::around_ring(q, {k, v}, {.rows = rows, .seq = seq, .ring = ring, .attention = by},
                             [&](value_pair kv, const attributes& with) {
                               return k.in->apply(ops::ring_attention, {q.v, kv.first, kv.second}, q.from,
                                                  {.with = with});
                             });
}
/// Ring attention within documents.
/// Shapes: as for ring_attention above; starts (tokens) has the start of each token's document.
/// Errors: RC210.
constexpr value ring_attention(operand q, value k, value v, value starts, int rows, int seq, int ring,
                               const attention_setting& by = {}) {
  return detail::around_ring(q, {k, v}, {.rows = rows, .seq = seq, .ring = ring, .attention = by},
                             [&](value_pair kv, const attributes& with) {
                               return k.in->apply(
                                   ops::find_attention({.layout = attention_layout::ring, .documents = true}),
                                   {q.v, kv.first, kv.second, starts}, q.from, {.with = with});
                             });
}

}  // namespace rankc
