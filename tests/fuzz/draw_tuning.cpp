// SPDX-License-Identifier: Apache-2.0
// Draws the parameters that a plan freezes, or adapts by LoRA.
#include "draws.hpp"
#include "plan.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace fuzz {

namespace {

/// Parameter names by their readers. Parameters whose gradients one kernel makes are in one list.
struct names_of_model {
  std::vector<std::vector<std::string_view>> together;
  std::vector<std::string_view> of_products;  // weights that only `linear` reads
};
names_of_model find_names(const fuzz::model& m) {
  std::map<std::string_view, std::string_view> partner;
  std::set<std::string_view> all, elsewhere;
  for (const entry& e : m.entries) {
    for (const parameter& p : e.layer.parameters) all.insert(p.name);
    for (const step& s : e.layer.steps)
      for (int w : s.weights) {
        const std::string_view name = e.layer.parameters[static_cast<std::size_t>(w)].name;
        if (s.kind != step_kind::linear) elsewhere.insert(name);
      }
    for (const step& s : e.layer.steps) {
      if (s.kind != step_kind::layer_norm || s.weights.size() < 2) continue;
      const auto name = [&](std::size_t i) {
        return e.layer.parameters[static_cast<std::size_t>(s.weights[i])].name;
      };
      partner[name(0)] = name(1);
      partner[name(1)] = name(0);
    }
  }
  names_of_model found;
  std::set<std::string_view> taken;
  for (std::string_view name : all) {
    if (!elsewhere.count(name)) found.of_products.push_back(name);
    if (!taken.insert(name).second) continue;
    found.together.push_back({name});
    if (const auto other = partner.find(name); other != partner.end() && taken.insert(other->second).second)
      found.together.back().push_back(other->second);
  }
  return found;
}

class list {
 public:
  void add(std::string_view name) {
    if (count_ < max_names) names_.of[count_++] = name;
  }
  const parameter_names& names() const { return names_; }
  bool empty() const { return count_ == 0; }

 private:
  parameter_names names_;
  std::size_t count_ = 0;
};

}  // namespace

void draw_tuning(plan& p) {
  draws d(p.seed, p.index / plans_per_model, "tuning");
  if (!d.chance(35)) return;
  const names_of_model names = find_names(p.model);
  const bool is_lora = d.chance(60), is_faulty = d.chance(5);
  list chosen, targets;
  if (is_lora)
    for (std::string_view name : names.of_products)
      if (d.chance(50)) targets.add(name);
  if (is_lora && is_faulty && !names.together.empty()) targets.add(d.one_in(names.together).front());
  for (const std::vector<std::string_view>& group : names.together)
    if (d.chance(is_lora ? 20 : 40))
      for (std::string_view name : group)
        if (!targets.names().has(name)) chosen.add(name);
  if (!is_lora) {
    p.recipe.frozen = chosen.names();
  } else if (!targets.empty() || is_faulty) {
    p.recipe.lora = {.rank = d.between(is_faulty ? 0 : 1, 4),
                     .alpha = d.one_of({0.5, 2.0, 3.5, 8.0}),
                     .targets = targets.names(),
                     .trained = chosen.names()};
  }
}

}  // namespace fuzz
