// SPDX-License-Identifier: Apache-2.0
// Conversions between placements: the only ops that communicate, and the only ways to change a placement. Each
// one's dual is another one, so that the collectives of backward follow from those of forward.
// Source: Megatron-LM (Shoeybi et al. 2019; Korthikanti et al. 2022), its f, g and their sequence-parallel forms.
#pragma once
#include <rankc/typed/rules.hpp>

namespace rankc {

constexpr value replicate(operand x, axis over);
constexpr value all_reduce(operand x, axis over);
constexpr value all_gather(operand x, axis over, std::string_view along);
constexpr value reduce_scatter(operand x, axis over, std::string_view along);

namespace ops {
inline constexpr op_def replicate{
    "replicate", [](trace& t, const op& o, value g) { t.give_gradient(o.in[0], rankc::all_reduce(g, o.over)); }};
inline constexpr op_def all_reduce{
    "all_reduce", [](trace& t, const op& o, value g) { t.give_gradient(o.in[0], rankc::replicate(g, o.over)); }, true};
inline constexpr op_def all_reduce_max{"all_reduce_max", nullptr, true};
inline constexpr op_def all_gather{"all_gather",
                                   [](trace& t, const op& o, value g) {
                                     t.give_gradient(o.in[0], rankc::reduce_scatter(g, o.over, t.of(g).shape[o.along].name));
                                   },
                                   true};
inline constexpr op_def reduce_scatter{"reduce_scatter",
                                       [](trace& t, const op& o, value g) {
                                         t.give_gradient(o.in[0], rankc::all_gather(g, o.over, t.of(g).shape[o.along].name));
                                       },
                                       true};
}  // namespace ops

namespace detail {
/// One axis of one value goes from placement `from` to `to`.
constexpr value convert(const op_def& kind, operand x, axis over, std::string_view dim_name, placement from, placement to,
                        std::string_view expected, std::string_view otherwise) {
  const int along = x.v.in->of(x.v).find(dim_name);
  if (from.k == placement::V) from = V(along);
  if (to.k == placement::V) to = V(along);
  op o;
  o.over = over;
  o.along = along;
  return x.v.in->apply(
      kind, {x.v}, x.from,
      [&](complaint& c, types in, type* out) {
        out[0] = in[0];
        out[0].pending_max = false;
        const bool along_a_dim = from.k == placement::V || to.k == placement::V;
        if (along_a_dim && along < 0) {
          complaint::put_shape(c.begin() << "the value is ", in[0]);
          c.text << " and has no dim '" << dim_name << "'";
        } else if (in[0][over] != from) c.found(over, "the value", in[0], expected, otherwise);
        else if (in[0].pending_max != (&kind == &ops::all_reduce_max))
          c.begin() << "the reduction that is pending over " << name(over) << " is a "
                    << (in[0].pending_max ? "maximum: take it with all_reduce_max" : "sum: take it with all_reduce");
        for (axis inner : axes)
          if (along >= 0 && index(inner) > index(over) && in[0][inner] == V(along) && !c.said)
            c.begin() << "the value is sharded along " << dim_name << " over " << name(inner) << " too, inside " << name(over)
                      << ": convert it over " << name(inner) << " first";
        out[0][over] = to;
      },
      o);
}
}  // namespace detail

/// I -> R: from here on each rank makes its own part of the gradient; backward all-reduces.
constexpr value replicate(operand x, axis over) {
  return detail::convert(ops::replicate, x, over, "", I, R, "invariant (I)", "there is nothing to convert");
}
/// P -> I: take the sum over the ranks of an axis; backward only renames.
constexpr value all_reduce(operand x, axis over) {
  return detail::convert(ops::all_reduce, x, over, "", P, I, "a pending sum (P)", "there is nothing to reduce");
}
constexpr value all_reduce_max(operand x, axis over) {
  return detail::convert(ops::all_reduce_max, x, over, "", P, I, "a pending maximum (P)", "there is nothing to reduce");
}
/// V -> R: concatenate the shards along a dim; backward reduce-scatters.
constexpr value all_gather(operand x, axis over, std::string_view along) {
  return detail::convert(ops::all_gather, x, over, along, V(-1), R, "sharded along the gathered dim (V)",
                         "there is nothing to gather");
}
/// P -> V: take the sum and keep this rank's shard of it; backward all-gathers.
constexpr value reduce_scatter(operand x, axis over, std::string_view along) {
  return detail::convert(ops::reduce_scatter, x, over, along, P, V(-1), "a pending sum (P)", "there is nothing to reduce");
}

}  // namespace rankc
