// SPDX-License-Identifier: Apache-2.0
// The values that rules check, and a check of a table of rules. Each broken rule prints its sentence, with
// the nearest changes of one field that mend it and break no other rule of the table.
#pragma once
#include <rankc/mesh/regions.hpp>
#include <rankc/recipe/cluster.hpp>
#include <rankc/recipe/training.hpp>
#include <rankc/rules/values/alternatives.hpp>

#include <limits>
#include <span>

namespace rankc {

/// The sizes of a model that rules read. A size of 0 is not given, and its rules are skipped. A model without
/// experts is dense.
struct model_sizes {
  int layers = 0, hidden = 0, heads = 0, kv_heads = 0, ffn = 0, vocab = 0, experts = 0, top_k = 0, seq = 0;
  int vocab_used = 0;          // 0: all of vocab
  bool masks_padding = false;  // the rows after vocab_used take no part in the softmax
  bool tied_embeddings = false;
  bool rotary = false;
  int head_dim = 0;  // 0: hidden / heads

  /// The rows of the vocabulary that take part in the softmax; 0: all.
  constexpr int softmax_rows() const { return masks_padding && vocab_used < vocab ? vocab_used : 0; }
  /// Elements of a head; 0 if unknown.
  constexpr int elements_of_head() const {
    if (head_dim) return head_dim;
    return heads > 0 ? hidden / heads : 0;
  }
};

/// The division of a step's batch.
/// Units: global_batch in sequences; microbatch in sequences of one rank, 0: as the batch divides.
struct batch_sizes {
  int global_batch = 1, microbatches = 1, microbatch = 0, seq = 1;
};

/// The parts of a plan that rules check. `given` are the dims as written, and `dims` are resolved.
struct setting {
  parallel_dims given;
  parallel_dims dims = resolve(given);
  model_sizes model{};
  batch_sizes batch{};
  cluster machines{1, 1, 0, 0};
  int stages_per_rank = 1;
  int stages = 0;       // number of stages, if ranks have unequal numbers; else 0
  int alone = 0;        // stages that need no repeated layer
  bool zig_zag = true;  // a ring rank has a part of the sequence's head and one of its tail
};

namespace detail {

template <class Owner>
struct named_field {
  std::string_view name;
  int Owner::* at;
};
inline constexpr named_field<model_sizes> model_fields[]{
    {"layers", &model_sizes::layers},    {"hidden", &model_sizes::hidden},
    {"heads", &model_sizes::heads},      {"kv_heads", &model_sizes::kv_heads},
    {"ffn", &model_sizes::ffn},          {"vocab", &model_sizes::vocab},
    {"experts", &model_sizes::experts},  {"top_k", &model_sizes::top_k},
    {"seq", &model_sizes::seq},          {"vocab_used", &model_sizes::vocab_used},
    {"head_dim", &model_sizes::head_dim}};
inline constexpr named_field<batch_sizes> batch_fields[]{{"global_batch", &batch_sizes::global_batch},
                                                         {"microbatches", &batch_sizes::microbatches},
                                                         {"microbatch", &batch_sizes::microbatch},
                                                         {"seq", &batch_sizes::seq}};
inline constexpr named_field<cluster> cluster_fields[]{{"nodes", &cluster::nodes},
                                                       {"ranks_per_node", &cluster::ranks_per_node}};

}  // namespace detail

class search;

/// True if the change of dims breaks no ring and no expert group that was whole before.
constexpr bool keeps_layout(const parallel_dims& before, const parallel_dims& d) {
  return (makes_rings(d) || !makes_rings(before)) &&
         (places_experts(d) || !factors_world(before) || !places_experts(before));
}

/// A rule as a value: `holds` checks it, `says` writes its sentence, and `offers` varies the fields that may
/// mend it.
struct rule {
  int id;
  bool (*holds)(const setting&);
  void (*says)(sentence&, const setting&);
  void (*offers)(search&);
  bool warning = false;
};
inline constexpr auto no_offers = [](search&) {};

/// The offers of one broken rule.
class search {
 private:
  // Declared first, because clang evaluates only functions that it has already parsed.
  template <class Owner>
  constexpr search& vary(const auto& fields, Owner setting::* part, int Owner::* at) {
    setting x = s_;
    for (const auto& f : fields)
      if (f.at == at)
        found_.add(f.name, find_nearest(s_.*part.*at, std::numeric_limits<int>::max() - 1, [&](int v) {
                     x.*part.*at = v;
                     return mends(x);
                   }));
    return *this;
  }

 public:
  constexpr search(const setting& s, const rule& broken, std::span<const rule> table)
      : s_(s), broken_(broken), table_(table) {}
  constexpr const setting& written() const { return s_; }
  constexpr rankc::offers& found() { return found_; }

  /// True if the change mends the rule and breaks no other.
  constexpr bool mends(const setting& x) const {
    if (!broken_.holds(x)) return false;
    for (const rule& r : table_)
      if (!r.warning && !r.holds(x) && r.holds(s_)) return false;
    return true;
  }
  constexpr search& vary(int parallel_dims::* degree, bool exact = false) {
    setting x = s_;
    found_.add_degree(s_.given, degree,
                      find_nearest_degree(s_.given, degree, exact, [&](const parallel_dims& d) {
                        x.given = x.dims = d;
                        return keeps_layout(s_.dims, d) && mends(x);
                      }));
    return *this;
  }
  constexpr search& vary(int model_sizes::* size) {
    return vary(detail::model_fields, &setting::model, size);
  }
  constexpr search& vary(int batch_sizes::* size) {
    return vary(detail::batch_fields, &setting::batch, size);
  }
  constexpr search& vary(int cluster::* size) {
    return vary(detail::cluster_fields, &setting::machines, size);
  }

 private:
  const setting& s_;
  const rule& broken_;
  std::span<const rule> table_;
  rankc::offers found_;
};

/// Appends the sentence of every broken rule of a table, with its alternatives.
constexpr void check(report& out, const setting& s, std::span<const rule> table) {
  for (const rule& r : table) {
    if (r.holds(s)) continue;
    search found(s, r, table);
    r.offers(found);
    sentence& text = r.warning ? warn(out, r.id) : refuse(out, r.id);
    r.says(text, s);
    text << found.found().view();
  }
}

}  // namespace rankc
