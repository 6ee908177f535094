// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/snapshot.hpp>

#include <rankc/trainer/checkpoint_index.hpp>
#include <rankc/trainer/parallel.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <map>

namespace rankc::runtime {
namespace {

constexpr std::size_t block_elements = std::size_t{1} << 18;

/// A shard of a region, and the tensor of the file that it is saved as.
struct kept {
  safetensors_writer::tensor as;
  region where;
  std::size_t element;
};

/// The shards that each rank of this process saves. Tensors of wider types come first, so that all are
/// aligned.
std::map<int, std::vector<kept>> kept_by_rank(const engine& e) {
  std::map<int, std::vector<kept>> ranks;
  const auto parameters = global_parameters(e.about());
  for (const saved_region& saved : saved_regions(e.about()))
    for (const global_parameter& p : parameters) {
      if (!has(p, saved.where)) continue;
      for (const shard& s : p.sources)
        if (e.holds(s.rank) && area_of(s).count() > 0)
          ranks[s.rank].push_back({{saved.prefix + p.name, shape_of(area_of(s), p.shape().size()),
                                    type_at(e.about(), s.rank, saved.where, s.element)},
                                   saved.where,
                                   s.element});
    }
  for (auto& [rank, all] : ranks)
    std::stable_sort(all.begin(), all.end(),
                     [](const kept& a, const kept& b) { return size_of(a.as.type) > size_of(b.as.type); });
  return ranks;
}

std::size_t bytes_of(const std::vector<safetensors_writer::tensor>& tensors) {
  std::size_t bytes = 0;
  for (const auto& t : tensors) bytes += t.count() * size_of(t.type);
  return bytes;
}

}  // namespace

snapshot::snapshot(engine& e, const run_state& state) : state_(state) {
  const auto ranks = kept_by_rank(e);
  std::vector<const std::vector<kept>*> sources;
  for (const auto& [rank, all] : ranks) {
    contents& to = files_.emplace_back(contents{rank, {}, {}});
    for (const kept& k : all) to.tensors.push_back(k.as);
    to.bytes.resize(bytes_of(to.tensors));
    sources.push_back(&all);
  }
  for_each_in_parallel(files_.size(), [&](std::size_t i) {
    std::vector<double> values(block_elements);
    unsigned char* to = files_[i].bytes.data();
    for (const kept& k : *sources[i])
      for (std::size_t first = 0; first < k.as.count(); first += block_elements) {
        const std::size_t count = std::min(block_elements, k.as.count() - first);
        e.read(files_[i].rank, k.where, k.element + first, count, values.data());
        encode(values.data(), count, k.as.type, to);
        to += count * size_of(k.as.type);
      }
  });
}

std::string snapshot::write_files(const std::filesystem::path& folder) const {
  std::vector<std::string> lines(files_.size());
  for_each_in_parallel(files_.size(), [&](std::size_t i) {
    const contents& from = files_[i];
    const std::string name = file_of_rank(from.rank);
    safetensors_writer out(
        folder / name, from.tensors,
        {{"format", "pt"}, {"step", std::to_string(state_.step)}, {"rank", std::to_string(from.rank)}});
    out.append_stored(from.bytes.data(), from.bytes.size());
    lines[i] = fmt::format("{} {}\n", out.close(), name);
  });
  return fmt::format("{}", fmt::join(lines, ""));
}

}  // namespace rankc::runtime
