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
  // ep is a factor of the world. The weights of a cp group are not sharded over it. `dp` is an older name.
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
  // Its dp_shard counts the ranks of dp and cp that shard the dense weights, so it is rankc's dp_shard * cp.
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
  // dp is the rest of the world. The innermost of the hierarchical cp sizes is the all-to-all's.
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
    {"hyperparallel", {"dp_replicate"}, {axis::dp_replicate}},
    {"hyperparallel", {"dp_shard"}, {axis::dp_shard}},
    {"hyperparallel", {"ep"}, {axis::ep}},
    {"hyperparallel", {"cp"}, {axis::cp}},
    {"hyperparallel", {"tp"}, {axis::tp}},
    {"hyperparallel", {"fsdp"}, {axis::fsdp}},
    {"hyperparallel", {"dp"}, {axis::dp}},
    {"hyperparallel", {"loss"}, {axis::loss}},

    {"hyperparallel_newest", {"device/dp"}, {axis::dp}},
    {"hyperparallel_newest", {"device/cp"}, {axis::cp}},
    {"hyperparallel_newest", {"device/tp"}, {axis::tp}},
    {"hyperparallel_newest", {"device/dp", "device/cp"}, {axis::dp_cp}},
    {"hyperparallel_newest", {"fsdp_dense/fsdp_shard"}, {axis::fsdp}},
    {"hyperparallel_newest", {"fsdp_dense/fsdp_replicate"}, {axis::replicas}},
    {"hyperparallel_newest", {"fsdp_dense/tp"}, {axis::tp}},
    {"hyperparallel_newest", {"fsdp_moe/ep"}, {axis::ep}},
    {"hyperparallel_newest", {"fsdp_moe/edp_replicate", "fsdp_moe/edp_shard"}, {axis::edp}},

    {"torchtitan", {"pp"}, {axis::pp}},
    {"torchtitan", {"dp_replicate"}, {axis::dp_replicate}},
    {"torchtitan", {"dp_shard"}, {axis::dp_shard}},
    {"torchtitan", {"cp"}, {axis::cp}},
    {"torchtitan", {"tp"}, {axis::tp}},
    {"torchtitan", {"fsdp"}, {axis::fsdp}},
    {"torchtitan", {"dp"}, {axis::dp}},
    {"torchtitan", {"batch"}, {axis::batch}},
    {"torchtitan", {"loss"}, {axis::loss}},
    {"torchtitan", {"ep"}, {axis::ep}},
    {"torchtitan", {"efsdp"}, {axis::efsdp}},
    {"torchtitan", {"etp"}, {axis::etp}},

    {"d9d", {"regular/pp"}, {axis::pp}},
    {"d9d", {"regular/dp_replicate"}, {axis::dp_replicate}},
    {"d9d", {"regular/dp_shard"}, {axis::dp_shard}},
    {"d9d", {"regular/cp_shard", "regular/cp_replicate"}, {axis::cp}},
    {"d9d", {"regular/tp"}, {axis::tp}},
    {"d9d", {"dense/dp_cp_shard"}, {axis::fsdp}},
    {"d9d", {"dense/dp_replicate", "dense/cp_replicate"}, {axis::replicas}},
    {"d9d", {"batch/dp"}, {axis::batch}},
    {"d9d", {"batch/cp"}, {axis::cp}},
    {"d9d", {"batch/dp", "batch/cp"}, {axis::loss}},
    {"d9d", {"batch/tp"}, {axis::tp}},
    {"d9d", {"expert/pp"}, {axis::pp}},
    {"d9d", {"expert/ep_shard"}, {axis::ep}},
    {"d9d", {"expert/ep_replicate"}, {axis::edp}},

    {"megatron", {"tp"}, {axis::tp}},
    {"megatron", {"cp"}, {axis::cp}},
    {"megatron", {"hierarchical_cp/0"}, {axis::ulysses}},
    {"megatron", {"hierarchical_cp/1"}, {axis::ring}},
    {"megatron", {"dp"}, {axis::dp}},
    {"megatron", {"dp_cp"}, {axis::dp_cp}},
    {"megatron", {"pp"}, {axis::pp}},
    {"megatron", {"embd"}, {axis::embedding}},
    {"megatron", {"mp(tp-pp)"}, {axis::model}},
    {"megatron", {"tp_dp"}, {axis::tp_dp}},
    {"megatron", {"tp_cp"}, {axis::tp_cp}},
    {"megatron", {"tp_dp_cp"}, {axis::tp, axis::dp_cp}},
    {"megatron", {"ep"}, {axis::ep}},
    {"megatron", {"etp"}, {axis::etp}},
    {"megatron", {"etp_ep"}, {axis::ep_etp}},
    {"megatron", {"etp_ep_pp"}, {axis::ep_etp, axis::pp}},
    {"megatron", {"edp"}, {axis::edp}},
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
            if (labels[r] == '.') labels[r] = -1 - static_cast<int>(r);  // a rank without a group is alone
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
