// SPDX-License-Identifier: Apache-2.0
// RC210 and RC259: sequences, documents, and the ranks that shard them.
#pragma once
#include <rankc/models/trace_layer.hpp>

#include <algorithm>

namespace rankc::detail {

/// RC259: the token that ends documents is in the vocabulary.
constexpr void check_end_of_document(report& out, const training& recipe, int used) {
  if (!recipe.has_documents() || (recipe.end_of_document >= 0 && recipe.end_of_document < used)) return;
  refuse(out, 259) << "end_of_document=" << recipe.end_of_document << " is no token; tokens are 0 to "
                   << used - 1 << ", and -1 says that a sequence is one document";
}
/// RC259: if sequences contain documents, attention and learned positions get the starts of the documents.
constexpr void check_documents(report& out, const trace& t, std::string_view layer) {
  for (std::size_t i = 0; t.has_input(inputs::starts.name) && i < t.forward_ops; ++i) {
    const op& o = t.ops[i];
    if (has_starts(*o.kind) || (!ops::is_attention(*o.kind) && o.kind != &ops::position)) continue;
    refuse(out, 259) << o.kind->name << " of layer '" << layer
                     << "' takes no starts of documents, but end_of_document packs documents into "
                     << "sequences; give it the layer_context's starts, or call self_attention and position "
                        "with the context";
    return;
  }
}

/// RC210: sequences fill the tokens of a data-parallel rank, and they are the sequences that cp shards.
constexpr void check_sequences(report& out, const trace& t, const parallel_dims& d, int seq_of_plan) {
  for (std::size_t i = 0; i < t.forward_ops; ++i) {
    const op& o = t.ops[i];
    const bool is_attention = ops::is_attention(*o.kind),
               takes_rows = is_attention || o.kind == &ops::sequence_mean;
    if (!takes_rows &&
        !is_one_of(o.kind, {&ops::rope, &ops::position, &ops::document_position, &ops::all_to_all}))
      continue;
    const int tokens = t.values[o.in[0]].shape[0].size / static_cast<int>(batch_ranks(d)), seq = o.with.seq;
    const bool fills =
        seq >= 1 && (takes_rows ? static_cast<long long>(o.with.rows) * seq == tokens : tokens % seq == 0);
    complaint c{o.kind->name, {}, o.from};
    if (fills && d.cp > 1 && seq != seq_of_plan)
      c.begin() << "its sequences have " << seq << " tokens, and the ranks of cp=" << d.cp
                << " shard sequences of seq=" << seq_of_plan << "; take these, or cp=1";
    if (!fills && takes_rows) c.begin() << o.with.rows << " sequences of " << seq << " tokens are not";
    else if (!fills) c.begin() << "sequences of " << seq << " tokens do not divide";
    if (!fills)
      c.text << " the " << tokens << " tokens of a microbatch on a data-parallel rank; rows * seq is";
    if (c.said) refuse(out, 210) << c.text.view();
  }
}

/// RC210: refuses an all-to-all in groups that the plan does not have, and an all-gather or reduce-scatter
/// over all of cp in a plan with groups.
constexpr void check_groups(report& out, const trace& t, const parallel_dims& d) {
  const int groups = d.ulysses > 1 ? ring_ranks(d) : 1;
  for (const op& o : t.ops) {
    const conversion does = o.kind->converts;
    const bool exchanges = does == conversion::all_to_all,
               gathers = does == conversion::all_gather || does == conversion::reduce_scatter;
    const int ring = std::max(o.with.ring, 1);
    const bool is_wrong = exchanges ? ring != groups : gathers && groups > 1;
    if (o.over != axis::cp || !is_wrong) continue;
    complaint c{o.kind->name, {}, o.from};
    if (exchanges)
      c.begin() << "it is in groups of a ring of " << ring << "; rings of this plan have " << groups
                << " groups (cp / ulysses): take the layer_context's ring";
    else
      c.begin() << "it is over all of cp=" << d.cp << ", whose ranks are in groups of ulysses=" << d.ulysses
                << "; take all_to_all in these and shift between them, or ulysses=1 or ulysses=" << d.cp;
    refuse(out, 210) << c.text.view();
    return;
  }
}

/// RC210: refuses a shift around a ring that the plan does not have, and a shift whose result no op of the
/// layer reads.
constexpr void check_rings(report& out, const trace& t, const parallel_dims& d) {
  const auto is_read = [&](int v, std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i)
      for (int read : t.ops[i].in)
        if (read == v) return true;
    return false;
  };
  for (std::size_t i = 0; i < t.ops.size(); ++i) {
    const op& o = t.ops[i];
    const bool shifts = o.kind->is_shift(), forward = i < t.forward_ops;
    if (!shifts && !(ops::is_attention(*o.kind) && o.kind->of_rings)) continue;
    complaint c{o.kind->name, {}, o.from};
    if (o.with.ring != ring_ranks(d))
      c.begin() << "its ring has " << o.with.ring << " ranks; rings of this plan have " << ring_ranks(d)
                << " (cp / ulysses with cp_attention=ring): take the layer_context's ring";
    for (int made : {o.out[0], o.out[1]})
      if (shifts && !c.said &&
          !is_read(made, forward ? 0 : t.forward_ops, forward ? t.forward_ops : t.ops.size()))
        c.begin() << "no op of the layer reads " << (forward ? "what arrives" : "the gradient that arrives")
                  << " around the ring; add an op that uses it";
    if (!c.said) continue;
    refuse(out, 210) << c.text.view();
    return;
  }
}

}  // namespace rankc::detail
