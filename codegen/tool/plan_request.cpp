// SPDX-License-Identifier: Apache-2.0
#include "plan_request.hpp"

#include <rankc/cost_model/calibrations.hpp>

#include <algorithm>
#include <iterator>

#include "dims.hpp"

namespace rankc::tool {

namespace {

constexpr int largest_world = 1 << 14;
constexpr double largest_memory = 1e6;  // GB

struct model_by_name {
  std::string_view name;
  any_model model;
};
const model_by_name known_models[]{
    {"gpt2-124m",
     models::gpt2{
         .layers = 12, .hidden = 768, .heads = 12, .ffn = 3072, .vocab = 50304, .vocab_used = 50257}},
    {"gpt2-1.5b",
     models::gpt2{
         .layers = 48, .hidden = 1600, .heads = 25, .ffn = 6400, .vocab = 50304, .vocab_used = 50257}},
    {"llama3-8b",
     models::llama{.layers = 32, .hidden = 4096, .heads = 32, .kv_heads = 8, .ffn = 14336, .vocab = 128256}},
    {"llama3-70b",
     models::llama{.layers = 80, .hidden = 8192, .heads = 64, .kv_heads = 8, .ffn = 28672, .vocab = 128256}},
    {"llama3-405b",
     models::llama{
         .layers = 126, .hidden = 16384, .heads = 128, .kv_heads = 8, .ffn = 53248, .vocab = 128256}},
    {"mixtral-8x7b", models::mixtral{.layers = 32,
                                     .hidden = 4096,
                                     .heads = 32,
                                     .kv_heads = 8,
                                     .experts = 8,
                                     .top_k = 2,
                                     .expert_ffn = 14336,
                                     .vocab = 32000}},
    {"qwen3-30b-a3b", models::qwen3_moe{.layers = 48,
                                        .hidden = 2048,
                                        .heads = 32,
                                        .kv_heads = 4,
                                        .head_dim = 128,
                                        .experts = 128,
                                        .top_k = 8,
                                        .expert_ffn = 768,
                                        .vocab = 151936}}};
struct named_cluster {
  const cost_model::gpu_speed* gpu;
  cluster of;
};
constexpr named_cluster named_clusters[]{{&cost_model::h200, clusters::h200<1>},
                                         {&cost_model::h100, clusters::h100<1>},
                                         {&cost_model::a100, clusters::a100<1>},
                                         {&cost_model::b200, clusters::b200<1>},
                                         {&cost_model::gb200, clusters::gb200<1>}};
static_assert(std::size(named_clusters) == std::size(cost_model::known));

/// A model by its sizes. A field that its family does not have is not read, and so is refused.
any_model read_sizes_of_family(const json& given, report& out) {
  const fields f(given, out);
  const auto named = f.one_of("family", names_of(model_families()));
  if (!named && given.contains("family")) return {};  // its other fields are not known
  constexpr std::size_t llama = 1;
  const model_family& family = model_families()[named.value_or(llama)];
  std::vector<std::string_view> legal{"family"};
  any_model m = family.model;
  for (const std::string_view name : family.sizes) {
    *find_size(m, name) = f.need(name.data(), f.count(name.data())).value_or(1);
    legal.push_back(name);
  }
  f.only(legal, "model");
  return m;
}

/// Reads a kind of GPUs and the size of a node, and sets the number of nodes that the GPUs need.
void read_cluster(const json& line, const fields& f, plan_request& r, report& out) {
  std::vector<std::string_view> gpus;
  for (const named_cluster& c : named_clusters) gpus.push_back(c.of.gpu);
  const auto given = line.find("cluster");
  const bool is_object = given != line.end() && given->is_object();
  static const json none = json::object();
  const fields sizes(is_object ? *given : none, out);
  if (is_object) {
    static constexpr std::string_view legal[]{"gpu", "ranks_per_node", "memory_gb"};
    sizes.only(legal, "cluster");
  }
  const auto i =
      is_object ? sizes.need("gpu", sizes.one_of("gpu", gpus)) : f.need("cluster", f.one_of("cluster", gpus));
  const std::size_t kind = i.value_or(0);
  r.of.gpu = named_clusters[kind].gpu;
  r.of.machines = named_clusters[kind].of;
  if (!is_object) r.cluster = gpus[kind];
  r.of.machines.ranks_per_node =
      sizes.count("ranks_per_node", largest_world).value_or(r.of.machines.ranks_per_node);
  if (const auto gb = sizes.number("memory_gb")) {
    r.of.machines.memory = static_cast<long long>(std::min(*gb, largest_memory) * 1e9);
    if (*gb == 0 || *gb > largest_memory)
      refuse(out, "RC8070: memory_gb is {}; it must be more than 0 and at most {}", fmt::format("{:g}", *gb),
             fmt::format("{}", largest_memory));
  }
  r.of.machines.nodes = (r.of.gpus + r.of.machines.ranks_per_node - 1) / r.of.machines.ranks_per_node;
}

/// Checks the rules that do not depend on the choice: those of the model's sizes and of the tokens of a step.
void check_alone(const plan_question& q, report& out) {
  const parallel_dims alone;
  std::visit([&](const auto& model) { rankc::detail::check_sizes_of(out, model, alone, q.recipe); }, q.model);
  check_batch(out, {.global_batch = q.recipe.global_batch, .microbatches = 1, .seq = q.recipe.seq}, alone);
}

plan_choice read_choice(json given, const plan_question& q, report& out) {
  if (!given.contains("world")) given["world"] = q.gpus;
  const fields f(given, out);
  std::vector<std::string_view> legal{"world",        "sequence_parallel", "expert_layout", "cp_weights",
                                      "cp_attention", "reshard",           "schedule",      "stages_per_rank",
                                      "microbatches", "recompute"};
  for (const named_degree& a : all_degrees) legal.push_back(a.name);
  f.only(legal, "predict");
  plan_choice c;
  c.dims = read_degrees(f);
  static constexpr std::string_view reshards[]{"standard", "after_layer", "after_stage", "after_step"};
  if (const auto i = f.one_of("cp_attention", cp_attention_names))
    c.dims.cp_attention = static_cast<cp_attention>(*i);
  if (const auto i = f.one_of("reshard", reshards)) c.dims.reshard = static_cast<reshard>(*i);
  c.microbatches = f.count("microbatches").value_or(1);
  c.schedule = schedules::listed{
      schedules::published::names[f.one_of("schedule", schedules::published::names).value_or(0)],
      c.microbatches, 1};
  c.schedule.stages_per_rank = f.count("stages_per_rank").value_or(c.schedule.own_stages_per_rank());
  c.recompute = plan_search::recomputations[f.one_of("recompute", recompute_names).value_or(0)];
  return c;
}

constexpr std::string_view of_recipe[]{"seq", "global_batch"};

/// The recipe. Its fields may also be fields of the line.
json read_recipe(const json& line, const fields& f) {
  json recipe = f.object("recipe");
  for (const std::string_view name : of_recipe)
    if (line.contains(name) && !recipe.contains(name)) recipe[name] = line[name];
  return recipe;
}

}  // namespace

plan_request read_plan_request(const json& line, report& out) {
  static constexpr std::string_view legal[]{"cost_model", "model", "cluster",      "gpus",   "recipe",
                                            "seq",        "top",   "global_batch", "predict"};
  const fields f(line, out);
  f.only(legal);
  plan_request r;
  if (const auto given = line.find("model"); given != line.end() && given->is_object()) {
    r.of.model = read_sizes_of_family(*given, out);
  } else if (const auto i = f.need("model", f.one_of("model", names_of(known_models)))) {
    r.of.model = known_models[*i].model;
    r.model = known_models[*i].name;
  }
  r.of.gpus = f.need("gpus", f.count("gpus", largest_world)).value_or(1);
  read_cluster(line, f, r, out);
  const json given_recipe = read_recipe(line, f);
  const fields recipe(given_recipe, out);
  recipe.only(of_recipe, "recipe");
  const auto size = [&](const char* name) { return recipe.need(name, recipe.count(name)).value_or(1); };
  r.of.recipe = {.seq = size("seq"), .global_batch = size("global_batch"), .precision = bf16};
  r.top = f.count("top").value_or(r.top);
  if (accepts(out)) check_alone(r.of, out);
  if (f.has("predict")) r.predict = read_choice(f.object("predict"), r.of, out);
  return r;
}

}  // namespace rankc::tool
