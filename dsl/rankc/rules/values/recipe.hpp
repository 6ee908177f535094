// SPDX-License-Identifier: Apache-2.0
// RC233, RC234, RC237, RC242 to RC245, RC267, RC270: the ranges of a recipe's numbers, and the types of
// moments and weights. RC239: the ops that backward recomputes.
#pragma once
#include <rankc/base/diagnostic.hpp>
#include <rankc/recipe/training.hpp>
#include <rankc/rules/values/optimizer.hpp>
#include <rankc/trace/op_row.hpp>

namespace rankc {

namespace detail {

/// The index of the first piece of the learning-rate schedule for which `is` is true; -1 if there is none.
constexpr int first_piece(const training& r, bool (*is)(const runtime::lr_piece&, const training&)) {
  for (int i = 0; i < r.lr_schedule.count; ++i)
    if (is(r.lr_schedule.pieces[i], r)) return i;
  return -1;
}
constexpr bool has_negative_steps(const runtime::lr_piece& p, const training&) { return p.steps < 0; }
constexpr bool leads_astray(const runtime::lr_piece& p, const training& r) {
  return p.to != runtime::peak && !(p.to >= 0 && (p.to <= r.lr || !is_from(0, r.lr, r.precision)));
}

/// A rule of a recipe as a value: `holds` checks it, and `says` writes the sentence if it is broken.
struct recipe_rule {
  int id;
  bool (*holds)(const training&);
  void (*says)(sentence&, const training&);
};

inline constexpr recipe_rule recipe_rules[]{
    // RC233
    {233, [](const training& r) { return is_from(0, r.lr, r.precision); },
     [](sentence& t, const training& r) {
       t << "lr=" << r.lr << "; a learning rate is at least 0 and finite in " << widest(r.precision)
         << ", as 3e-4";
     }},
    {233,
     [](const training& r) { return r.min_lr >= 0 && (r.min_lr <= r.lr || !is_from(0, r.lr, r.precision)); },
     [](sentence& t, const training& r) {
       t << "min_lr=" << r.min_lr << " is where lr=" << r.lr << " falls to; it is at least 0 and at most lr";
     }},
    // RC234
    {234, [](const training& r) { return is_from(0, r.weight_decay, r.precision); },
     [](sentence& t, const training& r) {
       t << "weight_decay=" << r.weight_decay << "; it is at least 0 and finite in " << widest(r.precision)
         << ": 0 turns it off, 0.1 is usual";
     }},
    {234, [](const training& r) { return is_from(0, r.clip, r.precision); },
     [](sentence& t, const training& r) {
       t << "clip=" << r.clip << "; the norm that gradients are clipped to is at least 0 and finite in "
         << widest(r.precision) << ": 0 turns it off, 1 is usual";
     }},
    // RC237
    {237, [](const training& r) { return r.warmup_steps >= 0; },
     [](sentence& t, const training& r) {
       t << "warmup_steps=" << r.warmup_steps
         << "; it is at least 0, and 0 starts with the whole learning rate";
     }},
    {237, [](const training& r) { return r.decay_steps >= 0; },
     [](sentence& t, const training& r) {
       t << "decay_steps=" << r.decay_steps
         << "; it is at least 0, and 0 keeps the learning rate after warm-up";
     }},
    {237,
     [](const training& r) {
       return !r.lr_schedule.any() || (r.warmup_steps == 0 && r.decay_steps == 0 && r.min_lr == 0);
     },
     [](sentence& t, const training&) {
       t << "lr_schedule and warmup_steps, decay_steps or min_lr both set the learning rate; take one of "
            "them";
     }},
    {237, [](const training& r) { return first_piece(r, has_negative_steps) < 0; },
     [](sentence& t, const training& r) {
       const int i = first_piece(r, has_negative_steps);
       t << "piece " << i << " of lr_schedule has " << r.lr_schedule.pieces[i].steps
         << " steps; it has at least 0";
     }},
    {233, [](const training& r) { return first_piece(r, leads_astray) < 0; },
     [](sentence& t, const training& r) {
       const int i = first_piece(r, leads_astray);
       t << "piece " << i << " of lr_schedule leads to " << r.lr_schedule.pieces[i].to
         << "; it is at least 0 and at most lr=" << r.lr;
     }},
    // RC242
    {242, [](const training& r) { return r.moments != f64 || r.precision == f64; },
     [](sentence& t, const training&) {
       t << "moments=f64; they are kept in f32, which is the default and f64 in an f64 plan, or in bf16";
     }},
    {242, [](const training& r) { return r.moments != bf16 || !r.optimizer.moments().empty(); },
     [](sentence& t, const training& r) {
       const optimizer_row& row = *r.optimizer.row;
       t << "moments=bf16, and " << row.name;
       if (row.moments_need.empty()) t << " keeps none; leave it out";
       else
         t << " without " << row.moments_need << " keeps none; leave it out, or take " << row.moments_need
           << "=0.9";
     }},
    // RC243
    {243, [](const training& r) { return r.master_weights || r.precision == bf16; },
     [](sentence& t, const training& r) {
       t << "master_weights=false, and the weights of a plan in " << widest(r.precision)
         << " have no copy in bf16; leave it out, or take precision=bf16";
     }},
    {243, [](const training& r) { return r.master_weights || r.rounding == stochastic; },
     [](sentence& t, const training&) {
       t << "master_weights=false, and rounding=nearest loses every update of less than 1/512 of a weight; "
            "take rounding=stochastic";
     }},
    {243, [](const training& r) { return r.rounding == nearest || r.moments == bf16 || !r.master_weights; },
     [](sentence& t, const training&) {
       t << "rounding=stochastic, and nothing is kept in bf16 alone; take moments=bf16 or "
            "master_weights=false, or leave it out";
     }},
    {243, [](const training& r) { return r.rounding == stochastic || r.rounding_seed == 0; },
     [](sentence& t, const training& r) {
       t << "rounding_seed=" << r.rounding_seed
         << " has an effect only with stochastic rounding; leave it out, or take rounding=stochastic";
     }},
    // RC267
    {267, [](const training& r) { return !r.ignores_labels() || r.ignored_label < 0; },
     [](sentence& t, const training& r) {
       t << "ignored_label=" << r.ignored_label
         << "; a label of 0 or more may be a token of the vocabulary, so take a negative number: -100 is "
            "usual";
     }},
    // RC270
    {270, [](const training& r) { return !r.ignore_across_documents || r.has_documents(); },
     [](sentence& t, const training&) {
       t << "ignore_across_documents=true, and without end_of_document no token ends a document; leave it "
            "out, or take end_of_document";
     }},
    {270, [](const training& r) { return !r.ignore_across_documents || r.ignores_labels(); },
     [](sentence& t, const training&) {
       t << "ignore_across_documents=true, and without ignored_label every label counts; leave it out, or "
            "take ignored_label: -100 is usual";
     }},
    // RC244
    {244, [](const training& r) { return r.reductions != f64 || r.precision == f64; },
     [](sentence& t, const training&) {
       t << "reductions=f64; gradients are summed in f32, which is the default and f64 in an f64 plan, or "
            "sent in bf16";
     }},
    {244, [](const training& r) { return r.reductions != bf16 || r.precision == bf16; },
     [](sentence& t, const training& r) {
       t << "reductions=bf16, but a plan in " << widest(r.precision) << " reduces its gradients in "
         << widest(r.precision) << "; leave it out, or take precision=bf16";
     }},
    // RC245
    {245, [](const training& r) { return !r.lora.any() || r.lora.rank >= 1; },
     [](sentence& t, const training& r) {
       t << "lora.rank=" << r.lora.rank << "; it is at least 1: 8 and 16 are usual";
     }},
    {245,
     [](const training& r) {
       return !r.lora.any() || is_from(smallest_eps(r.precision), r.lora.alpha, r.precision);
     },
     [](sentence& t, const training& r) {
       t << "lora.alpha=" << r.lora.alpha << "; it is above 0 and finite in " << widest(r.precision)
         << ": the product of the adapters is multiplied by alpha / rank, and twice the rank is usual";
     }},
    {245, [](const training& r) { return !r.lora.any() || !r.lora.targets.all().empty(); },
     [](sentence& t, const training&) {
       t << "lora.targets is empty; name the weights that get adapters: wq and wv are usual";
     }},
};

}  // namespace detail

namespace detail {
/// A kind of ops that a recipe may recompute.
struct recomputed_kind {
  std::string_view name;
  bool recomputation::* is;
  op_family of;
};
inline constexpr recomputed_kind recomputed_kinds[]{
    {"attention", &recomputation::attention, op_family::attention},
    {"activations", &recomputation::activations, op_family::activation},
    {"norms", &recomputation::norms, op_family::norm}};
}  // namespace detail

/// RC239: recomputation needs a plan that trains, repeated layers, and ops of the chosen kinds in them.
/// Shapes: `has`, by op_family: true if a repeated layer has an op of that family.
constexpr void check_recompute(report& out, const recomputation& r, int repeated_layers, bool inference,
                               const bool* has) {
  if (r == recomputation{}) return;
  const auto refused = [&]() -> sentence& { return refuse(out, 239); };
  if (r.every < 1)
    refused()
        << "recompute.every=" << r.every
        << "; with every=N each N-th repeated layer recomputes: it is at least 1, and 1 is each of them";
  if (!r.any())
    refused() << "recompute has every=" << r.every
              << " and nothing else; choose full, attention, activations or norms, or leave it out";
  if (!r.any() || r.every < 1) return;
  if (inference)
    refused() << "the schedule is for inference, which has no backward to recompute for; leave recompute out";
  else if (repeated_layers == 0)
    refused() << "the model has no repeated layers, and only these recompute; write repeat{count, layer}, or "
                 "leave recompute out";
  else if (r.every > repeated_layers)
    refused() << "recompute.every=" << r.every << ", but the model has " << repeated_layers
              << (repeated_layers == 1 ? " repeated layer" : " repeated layers")
              << ", so that none recomputes; every is at most that";
  for (const detail::recomputed_kind& k : detail::recomputed_kinds) {
    if (!(r.*k.is)) continue;
    if (r.full)
      refused() << "recompute.full recomputes everything, so recompute." << k.name
                << " has no effect; take one of them";
    else if (!inference && repeated_layers > 0 && !has[static_cast<int>(k.of)])
      refused() << "recompute." << k.name
                << " is set, and no op of a repeated layer is of that kind; leave it out";
  }
}

/// Appends the faults of a recipe. `check_batch` checks seq and global_batch.
/// Errors: RC233 to RC237, RC241 to RC245, RC264, RC265, RC267, RC270.
constexpr void check_recipe(report& out, const training& recipe) {
  for (const detail::recipe_rule& r : detail::recipe_rules)
    if (!r.holds(recipe)) r.says(refuse(out, r.id), recipe);
  check_optimizer(out, recipe.optimizer, recipe.precision);
}

}  // namespace rankc
