// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/parameters.hpp>

#include <rankc/trainer/hash.hpp>
#include <rankc/trainer/parallel.hpp>

#include <algorithm>
#include <map>

namespace rankc::runtime {
namespace {

constexpr std::size_t block_elements = std::size_t{1} << 20;

/// The number of parts that the rows of the whole tensor are sharded into: over ep for experts, else over tp,
/// else 1.
std::size_t parts_of_rows(const parameter& p, const description& about) {
  if (p.experts) return static_cast<std::size_t>(about.ep);
  return p.shard_dim == 0 ? static_cast<std::size_t>(about.tp) : 1;
}

shard shard_of(const parameter& p, const rank_row& row, const description& about, int rank) {
  const std::size_t columns = static_cast<std::size_t>(p.cols),
                    column = static_cast<std::size_t>(about.part_of_columns(p, row)) * columns;
  if (p.experts) {
    const auto rows = static_cast<std::size_t>(p.rows),
               kept = rows / static_cast<std::size_t>(about.expert_shards());
    const std::size_t first = static_cast<std::size_t>(about.ep_of(row)) * rows +
                              static_cast<std::size_t>(about.expert_shard_of(row)) * kept;
    return {
        .rank = rank, .element = p.element, .row = first, .rows = kept, .column = column, .columns = columns};
  }
  const auto rows = static_cast<std::size_t>(p.rows);
  const auto tp = static_cast<std::size_t>(row.tp), n = static_cast<std::size_t>(about.shards);
  const std::size_t kept = (rows + n - 1) / n,
                    first = std::min(rows, static_cast<std::size_t>(about.shard_of(row)) * kept);
  return {.rank = rank,
          .element = p.element,
          .row = (p.shard_dim == 0 ? tp * rows : 0) + first,
          .rows = std::min(kept, rows - first),
          .column = column,
          .columns = columns};
}

global_parameter whole(const parameter& p, const description& about, bool trained) {
  return {.name = p.name,
          .rows = static_cast<std::size_t>(p.rows) * parts_of_rows(p, about),
          .columns = static_cast<std::size_t>(p.cols) * static_cast<std::size_t>(about.parts_of_columns(p)),
          .matrix = p.matrix,
          .init = p.init,
          .std = p.std,
          .trained = trained,
          .holders = {},
          .sources = {}};
}

/// The part of a shard that lies in a block of whole rows.
struct overlap {
  std::size_t element, count;  // in the shard's rank
  std::size_t row, rows;       // in the whole tensor
};

overlap intersect(const shard& s, std::size_t begin, std::size_t end) {
  const std::size_t row = std::max(begin, s.row), stop = std::max(row, std::min(end, s.row + s.rows));
  return {s.element + (row - s.row) * s.columns, (stop - row) * s.columns, row, stop - row};
}

/// Visits the blocks of a tensor: rows [begin, end), a buffer for them, and one for a shard's part of them.
template <class Visit>
void for_each_block(const global_parameter& p, const Visit& visit) {
  const std::size_t rows = std::max<std::size_t>(1, block_elements / std::max<std::size_t>(1, p.columns));
  std::vector<double> block(std::min(rows, p.rows) * p.columns), part(block.size());
  for (std::size_t begin = 0; begin < p.rows; begin += rows) {
    const std::size_t end = std::min(begin + rows, p.rows);
    visit(begin, end, std::span(block).first((end - begin) * p.columns), part.data());
  }
}

}  // namespace

std::vector<global_parameter> global_parameters(const description& about) {
  std::vector<global_parameter> all;
  std::map<std::string, std::size_t> index;
  for (std::size_t pp = 0; pp < about.layouts.size(); ++pp)
    for (const parameter& p : about.layouts[pp].parameters) {
      const auto [known, is_new] = index.try_emplace(p.name, all.size());
      const global_parameter tensor = whole(p, about, p.element < about.layouts[pp].trained_count());
      if (is_new) all.push_back(tensor);
      global_parameter& g = all[known->second];
      if (g.rows != tensor.rows || g.columns != tensor.columns)
        throw failure(70, "RC6570: parameter {} has two shapes in this program: {}x{} and {}x{}", p.name,
                      g.rows, g.columns, tensor.rows, tensor.columns);
      for (std::size_t rank = 0; rank < about.ranks.size(); ++rank) {
        const rank_row& row = about.ranks[rank];
        if (row.pp != static_cast<int>(pp)) continue;
        g.holders.push_back(shard_of(p, row, about, static_cast<int>(rank)));
        if (!p.copy && (p.experts ? about.is_first_with_experts(row)
                                  : about.is_first_holder(row) && (p.shard_dim >= 0 || row.tp == 0)))
          g.sources.push_back(g.holders.back());
      }
    }
  for (const global_parameter& g : all) {
    std::size_t held = 0;
    for (const shard& s : g.sources) held += s.rows * s.columns;
    if (held != g.count())
      throw failure(70,
                    "RC6571: parameter {} has {} elements, but its ranks hold {} (copies and replicas not "
                    "counted)",
                    g.name, g.count(), held);
  }
  return all;
}

void write(engine& e, const global_parameter& p, region r, const give_values& give) {
  for_each_block(p, [&](std::size_t begin, std::size_t end, std::span<double> block, double* part) {
    give(begin * p.columns, block);
    for (const shard& s : p.holders) {
      const overlap o = intersect(s, begin, end);
      if (o.count == 0) continue;
      const double* from = block.data() + (o.row - begin) * p.columns + s.column;
      if (s.columns != p.columns) {
        for (std::size_t i = 0; i < o.rows; ++i)
          std::copy_n(from + i * p.columns, s.columns, part + i * s.columns);
        from = part;
      }
      e.write(s.rank, r, o.element, o.count, from);
    }
  });
}

void write(engine& e, const global_parameter& p, region r, const tensor_source& from,
           const std::string& tensor) {
  std::vector<const shard*> held;
  for (const shard& s : p.holders)
    if (e.holds(s.rank) && area_of(s).count() > 0) held.push_back(&s);
  std::vector<double> values;
  while (!held.empty()) {
    const area whole = area_of(*held.front());
    const auto others =
        std::partition(held.begin(), held.end(), [&](const shard* s) { return area_of(*s) == whole; });
    const std::size_t rows = std::max<std::size_t>(1, block_elements / whole.columns);
    for (std::size_t row = 0; row < whole.rows; row += rows) {
      const area block{whole.row + row, std::min(rows, whole.rows - row), whole.column, whole.columns};
      values.resize(block.count());
      from.read(tensor, block, values.data());
      for (auto s = held.begin(); s != others; ++s)  // replicas
        e.write((*s)->rank, r, (*s)->element + row * whole.columns, values.size(), values.data());
    }
    held.erase(held.begin(), others);
  }
}

void read(engine& e, const global_parameter& p, region r, const take_values& take) {
  for_each_block(p, [&](std::size_t begin, std::size_t end, std::span<double> block, double* part) {
    for (const shard& s : p.sources) {
      const overlap o = intersect(s, begin, end);
      if (o.count == 0) continue;
      double* to = block.data() + (o.row - begin) * p.columns + s.column;
      if (s.columns == p.columns) {
        e.read(s.rank, r, o.element, o.count, to);
        continue;
      }
      e.read(s.rank, r, o.element, o.count, part);
      for (std::size_t i = 0; i < o.rows; ++i)
        std::copy_n(part + i * s.columns, s.columns, to + i * p.columns);
    }
    take(begin * p.columns, block);
  });
}

const global_parameter* find_parameter(const std::vector<global_parameter>& all, const std::string& name) {
  const auto at =
      std::find_if(all.begin(), all.end(), [&](const global_parameter& p) { return p.name == name; });
  return at == all.end() ? nullptr : &*at;
}

bool is_beside(const global_parameter& p, const std::vector<global_parameter>& all) {
  for (const std::string_view part : {lora_a, lora_b})
    if (p.name.ends_with(part) && find_parameter(all, p.name.substr(0, p.name.size() - part.size())))
      return true;
  return false;
}

void initialise(engine& e, std::uint64_t seed) { initialise(e, global_parameters(e.about()), seed); }

void initialise(engine& e, const std::vector<global_parameter>& all, std::uint64_t seed) {
  for_each_in_parallel(
      all.size(), [&](std::size_t i) {  // tensors do not overlap, so threads can write them at the same time
        const global_parameter& p = all[i];
        write(e, p, region::weights, [&](std::size_t first, std::span<double> values) {
          if (p.init == fill::uniform) hash_uniform(p.name, p.std, seed, first, values.size(), values.data());
          else std::fill(values.begin(), values.end(), p.init == fill::ones ? 1.0 : 0.0);
        });
      });
}

}  // namespace rankc::runtime
