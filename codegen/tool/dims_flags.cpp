// SPDX-License-Identifier: Apache-2.0
#include "dims_flags.hpp"

#include <rankc/mesh/axis_lists.hpp>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <vector>

namespace rankc::tool {

namespace {

/// A flag without `value` means true. `object` is the part of the line that has the field.
struct flag {
  std::string name;
  const char* object;
  std::string field;
  const char* value;
  std::string help;
};

/// A flag for each degree that users declare.
std::vector<flag> flags_of_degrees() {
  std::vector<flag> out{{"--world", "", "world", "N", "ranks"}};
  for (axis a : listed_axes) {
    if (!row(a).degree) continue;
    flag f{"--" + std::string(name(a)), "", std::string(name(a)), "N", std::string(row(a).help)};
    std::replace(f.name.begin(), f.name.end(), '_', '-');
    out.push_back(std::move(f));
  }
  return out;
}

const flag other_flags[]{
    {"--expert-layout", "", "expert_layout", "NAME", "folded, folded_over_replicas or independent"},
    {"--cp-weights", "", "cp_weights", "NAME", "shard or replicate"},
    {"--sequence-parallel", "", "sequence_parallel", "BOOL", "true or false; default: true where tp > 1"},
    {"--stages-per-rank", "", "stages_per_rank", "N", "pipeline stages on a rank"},
    {"--layers", "model", "layers", "N", "repeated layers"},
    {"--hidden", "model", "hidden", "N", "elements of a token"},
    {"--heads", "model", "heads", "N", "query heads"},
    {"--kv-heads", "model", "kv_heads", "N", "key-value heads"},
    {"--ffn", "model", "ffn", "N", "inner size of the feed-forward part"},
    {"--vocab", "model", "vocab", "N", "tokens, padding included"},
    {"--experts", "model", "experts", "N", "experts of a layer; none: dense"},
    {"--top-k", "model", "top_k", "N", "experts of a token"},
    {"--seq", "model", "seq", "N", "tokens of a sequence"},
    {"--tied-embeddings", "model", "tied_embeddings", nullptr,
     "the first and the last stage share the embedding"},
    {"--nodes", "cluster", "nodes", "N", "machines"},
    {"--gpus-per-node", "cluster", "gpus_per_node", "N", "ranks of a machine; default of the drawing: 8"},
    {"--global-batch", "batch", "global", "N", "sequences of a step"},
    {"--microbatch", "batch", "microbatch", "N", "sequences of a microbatch on a rank"},
    {"--microbatches", "batch", "microbatches", "N", "microbatches of a step"}};

const std::vector<flag> flags = [] {
  std::vector<flag> all = flags_of_degrees();
  all.insert(all.end(), std::begin(other_flags), std::end(other_flags));
  return all;
}();

/// A flag's text as JSON: a number, true or false, or text.
json value_of(const std::string& text) {
  int number = 0;
  const char* const end = text.data() + text.size();
  if (const auto [at, error] = std::from_chars(text.data(), end, number); error == std::errc{} && at == end)
    return number;
  if (text == "true" || text == "false") return text == "true";
  return text;
}

}  // namespace

dims_flags::dims_flags(CLI::App& command) : command_(command) {
  for (const flag& f : flags) {
    const std::string group = *f.object ? f.object : "dims";
    if (f.value) command.add_option(f.name, texts_[f.name], f.help)->type_name(f.value)->group(group);
    else command.add_flag(f.name, f.help)->group(group);
  }
}

std::optional<json> dims_flags::line() const {
  json line = json::object();
  for (const flag& f : flags)
    if (command_.count(f.name) > 0)
      (*f.object ? line[f.object] : line)[f.field] = f.value ? value_of(texts_.at(f.name)) : json(true);
  if (line.empty()) return {};
  return line;
}

}  // namespace rankc::tool
