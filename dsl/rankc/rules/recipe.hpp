// SPDX-License-Identifier: Apache-2.0
// RC233 to RC237: the numbers of a recipe, each in its range.
#pragma once
#include <rankc/base/diagnostic.hpp>
#include <rankc/base/recipe.hpp>

#include <limits>

namespace rankc {

namespace detail {

/// Whether a number that is at least `lowest` stays finite in the precision of a step; a NaN does not.
constexpr bool is_from(double lowest, double x, precision p) {
  const double largest = p == f64 ? std::numeric_limits<double>::max() : std::numeric_limits<float>::max();
  return x >= lowest && x <= largest;
}
/// The smallest eps, above the smallest normal number: less may be rounded to 0.
constexpr double smallest_eps(precision p) { return p == f64 ? 2.3e-308 : 1.2e-38; }

/// What the dtype of weights and moments is called.
constexpr std::string_view widest(precision p) { return p == f64 ? "f64" : "f32"; }

/// A rule of a recipe as a value: whether it holds, and what is wrong where it does not.
struct recipe_rule {
  int id;
  bool (*holds)(const training&);
  void (*says)(sentence&, const training&);
};

inline constexpr recipe_rule recipe_rules[]{
    // RC233
    {233, [](const training& r) { return is_from(0, r.lr, r.precision); },
     [](sentence& t, const training& r) {
       t << "lr=" << r.lr << "; a learning rate is at least 0 and finite in " << widest(r.precision) << ", as 3e-4";
     }},
    {233, [](const training& r) { return r.min_lr >= 0 && (r.min_lr <= r.lr || !is_from(0, r.lr, r.precision)); },
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
    // RC235
    {235, [](const training& r) { return r.beta1 >= 0 && r.beta1 < 1; },
     [](sentence& t, const training& r) {
       t << "beta1=" << r.beta1 << "; it is at least 0 and less than 1: 0.9 is usual";
     }},
    {235, [](const training& r) { return r.beta2 >= 0 && r.beta2 < 1; },
     [](sentence& t, const training& r) {
       t << "beta2=" << r.beta2 << "; it is at least 0 and less than 1: 0.95 and 0.999 are usual";
     }},
    // RC236
    {236, [](const training& r) { return is_from(smallest_eps(r.precision), r.eps, r.precision); },
     [](sentence& t, const training& r) {
       t << "eps=" << r.eps << "; it divides, so in " << widest(r.precision) << " it is at least "
         << smallest_eps(r.precision) << ", and finite: 1e-8 is usual";
     }},
    // RC237
    {237, [](const training& r) { return r.warmup_steps >= 0; },
     [](sentence& t, const training& r) {
       t << "warmup_steps=" << r.warmup_steps << "; it is at least 0, and 0 starts with the whole learning rate";
     }},
    {237, [](const training& r) { return r.decay_steps >= 0; },
     [](sentence& t, const training& r) {
       t << "decay_steps=" << r.decay_steps << "; it is at least 0, and 0 keeps the learning rate after warm-up";
     }},
};

}  // namespace detail

/// Append the numbers of a recipe that no optimizer takes. Its seq and global_batch are judged by check_batch.
/// Errors: RC233 to RC237.
constexpr void check_recipe(report& out, const training& recipe) {
  for (const detail::recipe_rule& r : detail::recipe_rules)
    if (!r.holds(recipe)) r.says(refuse(out, r.id), recipe);
}

}  // namespace rankc
