// SPDX-License-Identifier: Apache-2.0
#include "systems.hpp"

#include <fstream>
#include <sstream>

namespace rankc::test {

std::vector<oracle> read_oracles() {
  std::vector<oracle> out;
  for (const char* system : {"hyperparallel", "hyperparallel_newest", "torchtitan", "d9d", "megatron"}) {
    std::ifstream file(std::string(RANKC_DIMS_ORACLES "/") + system + ".jsonl");
    for (std::string text; std::getline(file, text);) {
      json record = json::parse(text);
      std::string name = system;
      if (record.contains("variant")) name += " " + record["variant"].get<std::string>();
      out.push_back({name, record.value("rule", ""), record.value("stage", ""), std::move(record)});
    }
  }
  return out;
}

namespace {

parallel_dims of_hyperparallel(const oracle& o) {
  // ep is a factor of the world, the weights of a cp group are not sharded over it, and `dp` is an older
  // name.
  return {.world = o.in("world_size"),
          .dp_replicate = o.in("dp_replicate"),
          .dp_shard = o.in("dp_shard", o.in("dp")),
          .cp = o.in("cp"),
          .tp = o.in("tp"),
          .pp = o.in("pp"),
          .ep = o.in("ep"),
          .etp = o.in("etp"),
          .ulysses = o.in("ulysses_degree"),
          .sequence_parallel = o.in("tp") > 1,
          .expert_layout = expert_layout::independent,
          .cp_weights = cp_weights::replicate};
}

std::optional<parallel_dims> of_hyperparallel_newest(const oracle& o) {
  // Its dp_shard counts the ranks of dp and cp that share the dense weights, so it is rankc's dp_shard * cp.
  // The rest of dp are replicas. Its edp_shard has no counterpart: rankc shards experts over all ranks that
  // hold parts of them.
  const int cp = o.in("cp"), shard = o.in("dp_shard");
  const bool over_cp = cp >= 1 && shard % cp == 0;
  if (!over_cp && shard != 1) return std::nullopt;
  return parallel_dims{.world = o.in("world_size"),
                       .dp_replicate = infer,
                       .dp_shard = over_cp ? shard / cp : 1,
                       .cp = cp,
                       .tp = o.in("tp"),
                       .pp = o.in("pp"),
                       .ep = o.in("ep"),
                       .expert_layout = expert_layout::folded_over_replicas,
                       .cp_weights = over_cp ? cp_weights::shard : cp_weights::replicate};
}

parallel_dims of_torchtitan(const oracle& o) {
  return {.world = o.in("world_size"),
          .dp_replicate = o.in("dp_replicate"),
          .dp_shard = o.in("dp_shard"),
          .cp = o.in("cp"),
          .tp = o.in("tp"),
          .pp = o.in("pp"),
          .ep = o.in("ep"),
          .etp = o.in("etp"),
          .sequence_parallel = o.in("tp") > 1};
}

std::optional<parallel_dims> of_d9d(const oracle& o) {
  const int shard = o.in("cps"), replicate = o.in("cpr");
  if (shard != 1 && replicate != 1) return std::nullopt;
  return parallel_dims{.world = o.in("world_size"),
                       .dp_replicate = o.in("dpr"),
                       .dp_shard = o.in("dps"),
                       .cp = shard * replicate,
                       .tp = o.in("tp"),
                       .pp = o.in("pp"),
                       .ep = o.in("ep"),
                       .expert_layout = expert_layout::folded_over_replicas,
                       .cp_weights = replicate == 1 ? cp_weights::shard : cp_weights::replicate};
}

parallel_dims of_megatron(const oracle& o) {
  // dp is what is left of the world; the innermost of hierarchical cp sizes is the all-to-all.
  const json& in = o.record["in"];
  return {.world = o.in("world_size"),
          .dp_shard = infer,
          .cp = o.in("cp"),
          .tp = o.in("tp"),
          .pp = o.in("pp"),
          .ep = o.in("ep"),
          .etp = o.in("etp", o.in("tp")),
          .ulysses = in.contains("hierarchical_cp") ? in["hierarchical_cp"][0].get<int>() : 1,
          .expert_layout = expert_layout::folded_over_replicas};
}

}  // namespace

std::optional<parallel_dims> in_rankc(const oracle& o) {
  if (o.system == "hyperparallel") return of_hyperparallel(o);
  if (o.system == "hyperparallel_newest") return of_hyperparallel_newest(o);
  if (o.system == "d9d") return of_d9d(o);
  return o.system == "megatron" ? of_megatron(o) : of_torchtitan(o);
}

const std::vector<same_groups> correspondences{
    {"hyperparallel", {"dp_replicate"}, {alias::dp_replicate}},
    {"hyperparallel", {"dp_shard"}, {alias::dp_shard}},
    {"hyperparallel", {"ep"}, {alias::ep}},
    {"hyperparallel", {"cp"}, {alias::cp}},
    {"hyperparallel", {"tp"}, {alias::tp}},
    {"hyperparallel", {"fsdp"}, {alias::fsdp}},
    {"hyperparallel", {"dp"}, {alias::dp}},
    {"hyperparallel", {"loss"}, {alias::loss}},

    {"hyperparallel_newest", {"device/dp"}, {alias::dp}},
    {"hyperparallel_newest", {"device/cp"}, {alias::cp}},
    {"hyperparallel_newest", {"device/tp"}, {alias::tp}},
    {"hyperparallel_newest", {"device/dp", "device/cp"}, {alias::dp_cp}},
    {"hyperparallel_newest", {"fsdp_dense/fsdp_shard"}, {alias::fsdp}},
    {"hyperparallel_newest", {"fsdp_dense/fsdp_replicate"}, {alias::replicas}},
    {"hyperparallel_newest", {"fsdp_dense/tp"}, {alias::tp}},
    {"hyperparallel_newest", {"fsdp_moe/ep"}, {alias::ep}},
    {"hyperparallel_newest", {"fsdp_moe/edp_replicate", "fsdp_moe/edp_shard"}, {alias::edp}},

    {"torchtitan", {"pp"}, {alias::pp}},
    {"torchtitan", {"dp_replicate"}, {alias::dp_replicate}},
    {"torchtitan", {"dp_shard"}, {alias::dp_shard}},
    {"torchtitan", {"cp"}, {alias::cp}},
    {"torchtitan", {"tp"}, {alias::tp}},
    {"torchtitan", {"fsdp"}, {alias::fsdp}},
    {"torchtitan", {"dp"}, {alias::dp}},
    {"torchtitan", {"batch"}, {alias::batch}},
    {"torchtitan", {"loss"}, {alias::loss}},
    {"torchtitan", {"ep"}, {alias::ep}},
    {"torchtitan", {"efsdp"}, {alias::efsdp}},
    {"torchtitan", {"etp"}, {alias::etp}},

    {"d9d", {"regular/pp"}, {alias::pp}},
    {"d9d", {"regular/dp_replicate"}, {alias::dp_replicate}},
    {"d9d", {"regular/dp_shard"}, {alias::dp_shard}},
    {"d9d", {"regular/cp_shard", "regular/cp_replicate"}, {alias::cp}},
    {"d9d", {"regular/tp"}, {alias::tp}},
    {"d9d", {"dense/dp_cp_shard"}, {alias::fsdp}},
    {"d9d", {"dense/dp_replicate", "dense/cp_replicate"}, {alias::replicas}},
    {"d9d", {"batch/dp"}, {alias::batch}},
    {"d9d", {"batch/cp"}, {alias::cp}},
    {"d9d", {"batch/dp", "batch/cp"}, {alias::loss}},
    {"d9d", {"batch/tp"}, {alias::tp}},
    {"d9d", {"expert/pp"}, {alias::pp}},
    {"d9d", {"expert/ep_shard"}, {alias::ep}},
    {"d9d", {"expert/ep_replicate"}, {alias::edp}},

    {"megatron", {"tp"}, {alias::tp}},
    {"megatron", {"cp"}, {alias::cp}},
    {"megatron", {"hierarchical_cp/0"}, {alias::ulysses}},
    {"megatron", {"hierarchical_cp/1"}, {alias::ring}},
    {"megatron", {"dp"}, {alias::dp}},
    {"megatron", {"dp_cp"}, {alias::dp_cp}},
    {"megatron", {"pp"}, {alias::pp}},
    {"megatron", {"embd"}, {alias::embedding}},
    {"megatron", {"mp(tp-pp)"}, {alias::model}},
    {"megatron", {"tp_dp"}, {alias::tp_dp}},
    {"megatron", {"tp_cp"}, {alias::tp_cp}},
    {"megatron", {"tp_dp_cp"}, {alias::tp, alias::dp_cp}},
    {"megatron", {"ep"}, {alias::ep}},
    {"megatron", {"etp"}, {alias::etp}},
    {"megatron", {"etp_ep"}, {alias::ep_etp}},
    {"megatron", {"etp_ep_pp"}, {alias::ep_etp, alias::pp}},
    {"megatron", {"edp"}, {alias::edp}},
};

std::optional<partition> groups_of(const oracle& o, const std::vector<std::string>& names) {
  if (!o.record.contains("groups")) return std::nullopt;
  std::optional<partition> joined;
  for (const std::string& wanted : names) {
    std::optional<partition> found;
    for (const auto& [text, named] : o.record["groups"].items()) {
      std::istringstream in(named.get<std::string>());
      for (std::string name; in >> name;)
        if (name == wanted) {
          std::vector<int> labels(text.begin(), text.end());
          for (std::size_t r = 0; r < labels.size(); ++r)
            if (labels[r] == '.') labels[r] = -1 - static_cast<int>(r);  // a rank in no group is alone
          found = of_labels(labels);
        }
    }
    if (!found) return std::nullopt;
    joined = joined ? join(*joined, *found) : *found;
  }
  return joined;
}

std::optional<long long> size_of(const oracle& o, const std::vector<std::string>& names) {
  if (!o.record.contains("sizes")) return std::nullopt;
  long long product = 1;
  for (const std::string& name : names) {
    if (!o.record["sizes"].contains(name)) return std::nullopt;
    product *= o.record["sizes"][name].get<long long>();
  }
  return product;
}

}  // namespace rankc::test
