// SPDX-License-Identifier: Apache-2.0
// RC202 to RC209, RC215, RC216, RC219, RC238, RC250, RC251: the sizes of a model, by themselves and against
// the degrees that shard them.
#pragma once
#include <rankc/base/norm_eps.hpp>
#include <rankc/rules/values/setting.hpp>
#include <rankc/contract/rope_scaling.hpp>

#include <numeric>

namespace rankc {

/// The length of a sequence must be a multiple of this. A ring rank in zig-zag order has two parts of a
/// sequence, and sequence parallelism shards each over the region axis.
constexpr long long sequence_divisor(const parallel_dims& d, bool zig_zag) {
  const int of_region = token_shards(d), cp = detail::at_least_one(d.cp);
  const bool two_parts = zig_zag && cp > detail::at_least_one(d.ulysses);
  return static_cast<long long>(cp) * (two_parts ? std::lcm(2, of_region) : of_region);
}

namespace detail {

consteval list_of<named_degree> list_head_degrees() {
  list_of<named_degree> out;
  for (const named_degree& a : all_degrees)
    if (row(a.along).shares == part::heads || spans_region(a.along)) out.add(a);
  return out;
}
/// The degrees that shard heads: as features of a region, or by an exchange of heads.
inline constexpr list_of<named_degree> head_degrees = list_head_degrees();
constexpr long long head_ways(const setting& s) {
  long long ways = 1;
  for (const named_degree& a : head_degrees) ways *= at_least_one(s.dims.*a.degree);
  return ways;
}
constexpr bool divides(long long ways, int size) { return size <= 0 || size % ways == 0; }

/// "heads=12 does not divide by tp=8".
constexpr sentence& put_shards(sentence& t, std::string_view size, int value, std::string_view over,
                               long long ways) {
  return t << size << "=" << value << " does not divide by " << over << "=" << ways;
}
/// "tp * ulysses": the axes of more than one rank that heads are sharded along.
constexpr sentence head_axes(const setting& s) {
  sentence names;
  for (const named_degree& a : head_degrees)
    if (at_least_one(s.dims.*a.degree) > 1) names << (names.empty() ? "" : " * ") << a.name;
  return names;
}
constexpr void vary_head_axes(search& a) {
  for (const named_degree& each : head_degrees) a.vary(each.degree);
}
constexpr axis ffn_axis(const setting& s) { return s.model.experts > 0 ? expert_region_axis : region_axis; }
constexpr int ffn_ways(const setting& s) { return at_least_one(ranks_along(s.dims, ffn_axis(s))); }
/// True if a head has hidden / heads elements.
constexpr bool divides_into_heads(const model_sizes& m) {
  return m.hidden > 0 && m.heads > 0 && m.head_dim == 0;
}

inline constexpr rule model_rules[]{
    // RC203
    {203,
     [](const setting& s) { return !divides_into_heads(s.model) || s.model.hidden % s.model.heads == 0; },
     [](sentence& t, const setting& s) {
       t << "hidden=" << s.model.hidden << " does not divide into heads=" << s.model.heads;
     },
     [](search& a) { a.vary(&model_sizes::heads).vary(&model_sizes::hidden); }},
    // RC204
    {204, [](const setting& s) { return s.model.kv_heads <= 0 || s.model.heads % s.model.kv_heads == 0; },
     [](sentence& t, const setting& s) {
       t << "heads=" << s.model.heads << " is not a multiple of kv_heads=" << s.model.kv_heads;
     },
     [](search& a) { a.vary(&model_sizes::kv_heads).vary(&model_sizes::heads); }},
    // RC205
    {205,
     [](const setting& s) {
       const bool ragged = divides_into_heads(s.model) && s.model.hidden % s.model.heads;  // RC203
       return !s.model.rotary || ragged || s.model.elements_of_head() % 2 == 0;
     },
     [](sentence& t, const setting& s) {
       t << "head_dim=" << s.model.elements_of_head()
         << " is odd, but rotary positions rotate pairs of elements";
     },
     [](search& a) {
       if (a.written().model.head_dim) a.vary(&model_sizes::head_dim);
       else a.vary(&model_sizes::hidden).vary(&model_sizes::heads);
     }},
    // RC207
    {207,
     [](const setting& s) {
       return s.model.vocab <= 0 || (s.model.vocab_used >= 0 && s.model.vocab_used <= s.model.vocab);
     },
     [](sentence& t, const setting& s) {
       t << "vocab_used=" << s.model.vocab_used << " of vocab=" << s.model.vocab << " tokens; it can be 1 to "
         << s.model.vocab << ", or 0 for all";
     },
     [](search& a) { a.vary(&model_sizes::vocab_used).vary(&model_sizes::vocab); }},
    // RC202
    {202, [](const setting& s) { return divides(head_ways(s), s.model.heads); },
     [](sentence& t, const setting& s) {
       put_shards(t, "heads", s.model.heads, head_axes(s).view(), head_ways(s));
     },
     [](search& a) {
       vary_head_axes(a);
       a.vary(&model_sizes::heads);
     }},
    {202, [](const setting& s) { return divides(head_ways(s), s.model.kv_heads); },
     [](sentence& t, const setting& s) {
       put_shards(t, "kv_heads", s.model.kv_heads, head_axes(s).view(), head_ways(s))
           << " (they are not replicated in this version)";
     },
     [](search& a) {
       vary_head_axes(a);
       a.vary(&model_sizes::kv_heads);
     }},
    {202, [](const setting& s) { return divides(ffn_ways(s), s.model.ffn); },
     [](sentence& t, const setting& s) { put_shards(t, "ffn", s.model.ffn, name(ffn_axis(s)), ffn_ways(s)); },
     [](search& a) { a.vary(row(ffn_axis(a.written())).degree).vary(&model_sizes::ffn); }},
    {202, [](const setting& s) { return divides(region_ranks(s.dims), s.model.vocab); },
     [](sentence& t, const setting& s) {
       put_shards(t, "vocab", s.model.vocab, name(region_axis), region_ranks(s.dims));
     },
     [](search& a) {  // offers only a padded vocabulary, never less than is used
       setting padded = a.written();
       int& used = padded.model.vocab_used;
       if (used == 0) used = padded.model.vocab;
       a.vary(row(region_axis).degree);
       const int grown = find_nearest(padded.model.vocab, std::numeric_limits<int>::max() - 1, [&](int v) {
                           setting x = padded;
                           x.model.vocab = v;
                           return v >= used && a.mends(x);
                         }).value[0];
       if (grown > 0) a.found().next() << "vocab=" << grown << " with vocab_used=" << used;
     }},
    // RC208
    {208, [](const setting& s) { return s.model.experts > 0 || at_least_one(s.dims.ep) == 1; },
     [](sentence& t, const setting& s) { t << "ep=" << s.dims.ep << ", but the model has no experts"; },
     [](search& a) { a.vary(&parallel_dims::ep).vary(&model_sizes::experts); }},
    // RC209
    {209, [](const setting& s) { return divides(at_least_one(s.dims.ep), s.model.experts); },
     [](sentence& t, const setting& s) { put_shards(t, "experts", s.model.experts, "ep", s.dims.ep); },
     [](search& a) { a.vary(&parallel_dims::ep).vary(&model_sizes::experts); }},
    // RC215
    {215, [](const setting& s) { return s.model.top_k <= s.model.experts; },
     [](sentence& t, const setting& s) {
       t << "top_k=" << s.model.top_k << " is more than experts=" << s.model.experts;
     },
     [](search& a) { a.vary(&model_sizes::top_k).vary(&model_sizes::experts); }},
    // RC216
    {216, [](const setting& s) { return divides(sequence_divisor(s.dims, s.zig_zag), s.model.seq); },
     [](sentence& t, const setting& s) {
       const bool rings = s.zig_zag && at_least_one(s.dims.cp) > at_least_one(s.dims.ulysses);
       t << "seq=" << s.model.seq << " does not divide by " << sequence_divisor(s.dims, s.zig_zag) << " = cp("
         << at_least_one(s.dims.cp) << ")";
       if (s.dims.sequence_parallel)
         t << (rings ? " * lcm(2, " : " * ") << name(region_axis) << "(" << region_ranks(s.dims)
           << (rings ? "))" : ")");
       else if (rings) t << " * 2";
     },
     [](search& a) { a.vary(&parallel_dims::cp).vary(row(region_axis).degree).vary(&model_sizes::seq); }},
    // RC219
    {219, [](const setting& s) { return !s.model.tied_embeddings || at_least_one(s.dims.pp) == 1; },
     [](sentence& t, const setting& s) {
       t << "tied embeddings with pp=" << s.dims.pp << ": the first and the last stage both hold the table ";
       if (s.model.vocab > 0 && s.model.hidden > 0)
         t << "of " << s.model.vocab << " x " << s.model.hidden << " ";
       t << "and sum its gradient over the two, once a step";
     },
     no_offers, true},
};

}  // namespace detail

/// Appends the faults of a model's sizes with these dims, as written. An unknown degree counts as 1.
/// Errors: RC202 to RC209, RC215, RC216; the warning RC219.
constexpr void check_model(report& out, const model_sizes& model, const parallel_dims& given,
                           bool zig_zag = true) {
  bool ok = true;
  for (const auto& f : detail::model_fields)
    if (model.*f.at < 0 && f.at != &model_sizes::vocab_used) {
      refuse(out, 206) << f.name << "=" << model.*f.at << "; a size is at least 1";
      ok = false;
    }
  if (ok) check(out, setting{.given = given, .model = model, .zig_zag = zig_zag}, detail::model_rules);
}

/// Appends the faults of the vocabulary of a model that does not provide its sizes.
/// Errors: RC206, RC207.
constexpr void check_vocabulary_used(report& out, int vocab, int used) {
  if (vocab < 1) {
    refuse(out, 206) << "vocab=" << vocab << "; a size is at least 1";
    return;
  }
  for (const rule& r : detail::model_rules)
    if (r.id == 207)
      check(out, setting{.given = {}, .model = {.vocab = vocab, .vocab_used = used}}, std::span(&r, 1));
}

/// Appends the faults of the length of sequences that cp shards in zig-zag order. Ulysses counts as 1.
/// Errors: RC216.
constexpr void check_length(report& out, int seq, parallel_dims given) {
  given.ulysses = 1;
  for (const rule& r : detail::model_rules)
    if (r.id == 216)
      check(out, setting{.given = given, .model = {.seq = seq}, .zig_zag = true}, std::span(&r, 1));
}

/// RC238: the base of rotary positions, whose powers are the wavelengths.
constexpr void check_theta(report& out, double theta) {
  if (!(theta >= 1 && theta <= std::numeric_limits<float>::max()))
    refuse(out, 238) << "theta=" << theta
                     << "; the base of rotary positions is finite and at least 1: 1e4 and 5e5 are usual";
}

/// RC251: the elements of a head that turn are pairs, at least one. A head of 0 elements is not known.
constexpr void check_rope_share(report& out, double share, int head) {
  const double turned = share * head;
  const bool is_even = turned >= 2 && turned <= head && 2 * static_cast<int>(turned / 2) == turned;
  if (head > 0 && share != 1 && !is_even)
    refuse(out, 251) << "rope_scaling.share=" << share << " of heads of " << head << " elements is " << turned
                     << " elements; an even number of them turns, from 2 to " << head
                     << ": 0.5 and 1 are usual";
}

/// RC251: the scaling of rotary positions of base theta.
constexpr void check_rope_scaling(report& out, const rope_scaling& s, double theta) {
  constexpr double most = std::numeric_limits<float>::max();
  if (!(s.factor >= 1 && s.factor <= most))
    refuse(out, 251) << "rope_scaling.factor=" << s.factor
                     << "; rotary positions are slowed by a finite factor of at least 1";
  else if (s.by == rope_scaling::none && s.factor != 1)
    refuse(out, 251) << "rope_scaling has factor=" << s.factor
                     << " and no rule; say .by = rope_scaling::linear, llama3 or yarn";
  if (!s.has_bounds()) return;
  if (!(s.low_freq_factor > 0 && s.low_freq_factor < s.high_freq_factor && s.high_freq_factor <= most))
    refuse(out, 251)
        << "rope_scaling has low_freq_factor=" << s.low_freq_factor
        << " and high_freq_factor=" << s.high_freq_factor
        << "; rotations below the first, in turns over original_positions, are slowed, and those "
           "above the second are not: 0 < the first < the second, as 1 and 4, or 1 and 32 for yarn";
  if (s.by == rope_scaling::yarn && theta == 1)
    refuse(out, 251) << "rope_scaling.by=yarn with theta=1, with which all pairs turn alike; yarn takes a "
                        "theta above 1, as 1e4";
  if (s.original_positions < 1)
    refuse(out, 251) << "rope_scaling.original_positions=" << s.original_positions
                     << "; a model was trained on at least 1";
}

/// RC250: the eps that norms add under the root.
constexpr void check_norm_eps(report& out, double eps) {
  if (!is_norm_eps(eps))
    refuse(out, 250) << "norm_eps=" << eps
                     << "; norms divide by the root of a row's mean square plus it, so it is at least "
                     << smallest_norm_eps << ", and finite: 1e-5 and 1e-6 are usual";
}

}  // namespace rankc
