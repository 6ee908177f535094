// SPDX-License-Identifier: Apache-2.0
#include <rankc/rules/values/batch.hpp>

#include <algorithm>

#include "dims.hpp"

namespace rankc::tool {

parallel_dims read_degrees(const fields& f) {
  parallel_dims d;
  d.world = f.need("world", f.whole("world")).value_or(1);
  for (const named_degree& a : all_degrees) d.*a.degree = f.degree(a.name.data()).value_or(1);
  if (const auto i = f.one_of("expert_layout", expert_layout_names))
    d.expert_layout = static_cast<expert_layout>(*i);
  if (const auto i = f.one_of("cp_weights", cp_weights_names)) d.cp_weights = static_cast<cp_weights>(*i);
  // Without the field, sequence parallelism is taken as on if tp > 1, so that sequences must divide.
  d.sequence_parallel = f.flag("sequence_parallel").value_or(region_ranks(resolve(d)) > 1);
  return d;
}

namespace {

model_sizes read_model(const fields& f) {
  static const std::vector<std::string_view> legal = [] {
    std::vector<std::string_view> names{"tied_embeddings"};
    for (const auto& size : detail::model_fields) names.push_back(size.name);
    return names;
  }();
  f.only(legal, "model");
  model_sizes m;
  for (const auto& size : detail::model_fields) m.*size.at = f.whole(size.name.data()).value_or(0);
  m.tied_embeddings = f.flag("tied_embeddings").value_or(false);
  return m;
}

batch_sizes read_batch(const fields& f, const parallel_dims& given, int seq) {
  static constexpr std::string_view legal[]{"global", "microbatch", "microbatches"};
  f.only(legal, "batch");
  batch_sizes b{.global_batch = f.need("global", f.whole("global")).value_or(1), .seq = seq == 0 ? 1 : seq};
  const auto microbatches = f.whole("microbatches"), microbatch = f.count("microbatch");
  b.microbatch = microbatch.value_or(0);
  if (microbatch)
    b.microbatches =
        static_cast<int>(std::max(1LL, b.global_batch / *microbatch / batch_ranks(resolve(given))));
  b.microbatches = microbatches.value_or(b.microbatches);
  return b;
}

cluster read_cluster(const fields& f) {
  static constexpr std::string_view legal[]{"nodes", "gpus_per_node"};
  f.only(legal, "cluster");
  const auto nodes = f.need("nodes", f.count("nodes")),
             per_node = f.need("gpus_per_node", f.count("gpus_per_node"));
  return {.nodes = nodes.value_or(1), .ranks_per_node = per_node.value_or(1), .memory = 0, .flops = 0};
}

}  // namespace

dims_request read_dims(const json& line, report& out) {
  static const std::vector<std::string_view> legal = [] {
    std::vector<std::string_view> names{"world"};
    for (const named_degree& a : written_degrees) names.push_back(a.name);
    names.insert(names.end(), {"expert_layout", "cp_weights", "sequence_parallel", "model", "cluster",
                               "batch", "stages_per_rank", "groups"});
    return names;
  }();
  const fields f(line, out);
  f.only(legal);
  dims_request r;
  r.dims = read_degrees(f);
  if (f.has("model")) r.model = read_model({f.object("model"), out});
  if (f.has("batch")) r.batch = read_batch({f.object("batch"), out}, r.dims, r.model ? r.model->seq : 0);
  if (f.has("cluster")) r.machines = read_cluster({f.object("cluster"), out});
  r.stages_per_rank = f.whole("stages_per_rank").value_or(1);
  r.groups = f.flag("groups").value_or(false);
  return r;
}

}  // namespace rankc::tool
