// SPDX-License-Identifier: Apache-2.0
#include "dims.hpp"

namespace rankc::tool {

namespace {

struct named_size {
  const char* name;
  int model_sizes::*size;
};
constexpr named_size sizes[]{{"layers", &model_sizes::layers},     {"hidden", &model_sizes::hidden},
                             {"heads", &model_sizes::heads},       {"kv_heads", &model_sizes::kv_heads},
                             {"ffn", &model_sizes::ffn},           {"vocab", &model_sizes::vocab},
                             {"experts", &model_sizes::experts},   {"top_k", &model_sizes::top_k},
                             {"seq", &model_sizes::seq}};

parallel_dims read_degrees(const fields& f) {
  parallel_dims d;
  d.world = f.need("world", f.whole("world")).value_or(1);
  for (const named_degree& a : all_degrees) d.*a.degree = f.degree(a.name.data()).value_or(1);
  if (const auto i = f.one_of("expert_layout", expert_layout_names)) d.expert_layout = static_cast<expert_layout>(*i);
  if (const auto i = f.one_of("cp_weights", cp_weights_names)) d.cp_weights = static_cast<cp_weights>(*i);
  // Sequences are to divide as if it were on, unless the line says otherwise.
  d.sequence_parallel = f.flag("sequence_parallel").value_or(resolve(d).tp > 1);
  return d;
}

model_sizes read_model(const fields& f) {
  static constexpr std::string_view legal[]{"layers", "hidden", "heads", "kv_heads", "ffn",
                                            "vocab",  "experts", "top_k", "seq", "tied_embeddings"};
  f.only("model", legal);
  model_sizes m{};
  for (const named_size& s : sizes) m.*s.size = f.whole(s.name).value_or(0);
  m.tied_embeddings = f.flag("tied_embeddings").value_or(false);
  return m;
}

batch_sizes read_batch(const fields& f) {
  static constexpr std::string_view legal[]{"global", "microbatch", "microbatches"};
  f.only("batch", legal);
  return {f.whole("global"), f.whole("microbatch"), f.whole("microbatches")};
}

cluster read_cluster(const fields& f) {
  static constexpr std::string_view legal[]{"nodes", "gpus_per_node"};
  f.only("cluster", legal);
  const auto nodes = f.need("nodes", f.whole("nodes")), per_node = f.need("gpus_per_node", f.whole("gpus_per_node"));
  return {nodes.value_or(1), per_node.value_or(1), 0, 0};
}

}  // namespace

dims_request read_dims(const json& line, report& out) {
  static constexpr std::string_view legal[]{
      "world", "dp_replicate",  "dp_shard",   "cp",                "tp",    "pp",      "ep",    "etp",
      "ulysses", "expert_layout", "cp_weights", "sequence_parallel", "model", "cluster", "batch", "stages_per_rank",
      "groups"};
  const fields f(line, out);
  f.only("the line", legal);
  dims_request r;
  r.dims = read_degrees(f);
  r.model = read_model({f.object("model"), out});
  r.batch = read_batch({f.object("batch"), out});
  if (f.has("cluster")) r.machines = read_cluster({f.object("cluster"), out});
  r.stages_per_rank = f.whole("stages_per_rank").value_or(1);
  r.groups = f.flag("groups").value_or(false);
  return r;
}

}  // namespace rankc::tool
