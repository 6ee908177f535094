// SPDX-License-Identifier: Apache-2.0
// Unpublished settings are the same in all rows:
// - A pipeline rank has an equal number of layers; if the layers do not divide, the embedding and the head
// count as layers, as in NeMo.
// - The vocabulary is padded to a multiple of 128 tp, as Megatron-LM does.
// - For Narayanan et al., microbatches and stages are those of Megatron-LM's examples/sc21/run_table_1.sh.
// - From 2025 on, tp splits sequences, and cp is a ring (SimuMax exchanges heads, as published). The
// optimizer's state is sharded over dp: over the largest power of two of ranks that divides dp and the
// smallest weight. Nothing is recomputed, and 64 of the 72 GPUs of a rack are in use.
// - The MLP of a Nemotron has no gate: it is modelled as a Llama's of two thirds of its width, with the same
// GEMMs and as much memory traffic.
// - vTrain's nodes have half of the networks of a DGX A100.
#include "published_rows.hpp"

#include <doctest/doctest.h>

#include <rankc/plan/make_plan.hpp>
#include <rankc/rankc.hpp>
#include <rankc/schedules/interleaved_one_f_one_b.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <fstream>
#include <map>

using namespace rankc;
using nlohmann::json;

namespace published {

namespace {

bool is_of_years_before(const std::string& set) {
  return set == "korthikanti" || set == "narayanan" || set == "megatron readme" || set == "vtrain";
}
/// Sets to which no constant is fitted: one row of another program version, three of another model, and NeMo
/// in fp8.
bool is_only_tested(const std::string& set) {
  return set == "megatron readme" || set == "mlperf gpt3 fp8" || set.starts_with("dgxc fp8");
}

parallel_dims dims_of(const json& r, bool before, bool repeats_all) {
  parallel_dims d{.world = r.at("gpus"), .cp = r.value("cp", 1), .tp = r.at("tp"), .pp = r.at("pp")};
  const int dp = d.world / (d.tp * d.pp * d.cp);
  d.sequence_parallel = d.tp > 1 && !(before && repeats_all);
  d.dp_shard = before ? 1 : std::min(512, dp & -dp);
  d.dp_replicate = dp / d.dp_shard;
  if (!before) d.reshard = reshard::after_step;
  if (r.at("set") == "simumax") d.ulysses = d.cp;
  return d;
}

/// The number of layers of each stage, as even as possible. Shapes: (stages).
std::vector<int> split(int layers, int stages) {
  if (layers % stages == 0) return std::vector<int>(static_cast<std::size_t>(stages), layers / stages);
  std::vector<int> each(static_cast<std::size_t>(stages), (layers + 2) / stages);
  --each.front();
  --each.back();
  return each;
}

plan_data plan_of(const json& r, const json& m, bool before) {
  const std::string recompute = r.value("recompute", "none"), family = m.at("family");
  const parallel_dims d = dims_of(r, before, recompute == "full");
  training recipe{.seq = r.at("seq"), .global_batch = r.at("batch"), .precision = bf16};
  recipe.recompute = {.full = recompute == "full", .attention = recompute == "selective"};
  if (before) recipe.reductions = bf16;
  const int ranks_per_node = r.at("gpu") == "gb200" ? clusters::gb200<1>.ranks_per_node : 8,
            stages = r.value("stages", 1);
  const cluster machines{
      (d.world + ranks_per_node - 1) / ranks_per_node, ranks_per_node, 0, 1e15, 1e11, 1e10};
  const int microbatches = recipe.global_batch / (d.dp_replicate * d.dp_shard * r.at("micro").get<int>());
  const auto made = [&](const auto& model) {
    const std::vector<int> stage_layers = split(model.layers, d.pp * stages);
    if (stages == 1)
      return make_plan(r.at("id"), model, d, schedules::one_f_one_b{microbatches}, recipe, machines,
                       stage_layers);
    return make_plan(r.at("id"), model, d, schedules::interleaved_one_f_one_b{microbatches, stages}, recipe,
                     machines, stage_layers);
  };
  const int layers = m.at("layers"), hidden = m.at("hidden"), heads = m.at("heads"), ffn = m.at("ffn"),
            padding = 128 * d.tp;
  const int vocab = (m.at("vocab").get<int>() + padding - 1) / padding * padding;
  if (family == "gpt2")
    return made(models::gpt2{.layers = layers, .hidden = hidden, .heads = heads, .ffn = ffn, .vocab = vocab});
  const int width = family == "nemotron" ? ffn / 3 * 2 : ffn;
  return made(models::llama{.layers = layers,
                            .hidden = hidden,
                            .heads = heads,
                            .kv_heads = m.at("kv_heads"),
                            .ffn = width,
                            .vocab = vocab});
}

cost_model::gpu_speed gpu_of(const json& r) {
  const cost_model::gpu_speed* const g = cost_model::find_speed(r.at("gpu").get<std::string>());
  REQUIRE(g);
  cost_model::gpu_speed own = *g;
  if (r.at("set") == "vtrain") {
    own.network.bandwidth /= 2;
    own.network.message_bandwidth /= 2;
  }
  return own;
}

const cost_model::framework& framework_of(const json& r) {
  const std::string set = r.at("set");
  if (set == "korthikanti") return cost_model::megatron_2022;
  if (is_of_years_before(set)) return cost_model::megatron_2021;
  if (set == "simumax") return cost_model::megatron_2025;
  return r.contains("precision") ? cost_model::nemo_2025_fp8 : cost_model::nemo_2025;
}

}  // namespace

std::vector<row> read(const std::string& file) {
  std::ifstream in(file);
  REQUIRE(in);
  std::map<std::string, json> models;
  std::map<std::string, int> of_set;
  std::vector<row> rows;
  for (std::string line; std::getline(in, line);) {
    const json r = json::parse(line);
    if (r.contains("model")) {
      models[r.at("model")] = r;
      continue;
    }
    const std::string set = r.at("set");
    row& made = rows.emplace_back();
    made.set = set;
    made.id = r.at("id");
    made.seconds = r.at("seconds");
    made.gib = r.value("gib", 0.0);
    made.fitted = of_set[set]++ % 4 == 0 && !is_only_tested(set);
    made.plan = plan_of(r, models.at(r.at("of")), is_of_years_before(set));
    made.gpu = gpu_of(r);
    made.by = &framework_of(r);
  }
  return rows;
}

}  // namespace published
