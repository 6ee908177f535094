// SPDX-License-Identifier: Apache-2.0
// Two tensors in shards of every kind, and an update of them that is exact in f32, so that bf16 results
// depend on random bits alone. For the kernels of both targets.
#pragma once
#include <rankc/runtime/engine.hpp>
#include <rankc/runtime/random_bits.hpp>

#include <string>
#include <vector>

namespace rankc::test {

/// How ranks shard a matrix of `rows` x `columns`. The vector next to it, with an element per row, is whole
/// over tp.
struct sharing {
  const char* name;
  int tp, shards, shard_dim;
};
inline constexpr sharing sharings[]{
    {"whole", 1, 1, -1},    {"rows over tp", 3, 1, 0},      {"columns over tp", 5, 1, 1},
    {"dp_shard", 1, 4, -1}, {"columns, dp_shard", 5, 4, 1}, {"rows, dp_shard", 3, 2, 0}};

/// One rank's tables, and which elements of the whole tensors it keeps; -1 past their end.
class tensor_shards {
 public:
  static constexpr int rows = 18, columns = 35;
  static constexpr std::size_t gap = 5;  // between matrix and vector

  tensor_shards(const sharing& s, int dp, int tp) {
    about.tp = s.tp;
    about.shards = s.shards;
    about.dp = 2 * s.shards;
    row = {0, dp, tp, {}};
    const int r = s.shard_dim == 0 ? rows / s.tp : rows, c = s.shard_dim == 1 ? columns / s.tp : columns;
    add("matrix", r, c, s.shard_dim, s, columns);
    elements.resize(elements.size() + gap, -1);
    add("vector", rows, 1, -1, s, 1);
    where.parameters = parameters;
    for (std::size_t p = 0; p < 2; ++p) ranges.push_back({parameters[p].element, counts[p], p == 0});
  }
  tensor_shards(const tensor_shards&) = delete;

  runtime::description about{};
  runtime::layout where{};
  runtime::rank_row row{};
  std::vector<runtime::parameter> parameters;
  std::vector<runtime::range> ranges;
  std::vector<long> elements;  // by position in the regions: the element's index in its tensor
  bool is_vector(std::size_t i) const { return i >= parameters[1].element; }
  bool is_gap(std::size_t i) const { return i >= counts[0] && i < parameters[1].element; }

 private:
  void add(const char* name, int r, int c, int shard_dim, const sharing& s, int pitch) {
    parameters.push_back({name, r, c, shard_dim, elements.size(), runtime::fill::zeros, 0, c > 1, false});
    const int kept = (r + s.shards - 1) / s.shards, first = row.dp % s.shards * kept;
    for (int i = 0; i < kept; ++i)
      for (int j = 0; j < c; ++j) {
        const int y = first + i + (shard_dim == 0 ? row.tp * r : 0),
                  x = j + (shard_dim == 1 ? row.tp * c : 0);
        elements.push_back(first + i < r ? static_cast<long>(y) * pitch + x : -1);
      }
    counts.push_back(static_cast<std::size_t>(kept * c));
  }
  std::vector<std::size_t> counts;
};

/// Call f(sharing, dp, tp) for every rank of every sharing, with two replicas.
void for_each_rank(auto&& f) {
  for (const sharing& s : sharings)
    for (int dp = 0; dp < 2 * s.shards; ++dp)
      for (int tp = 0; tp < s.tp; ++tp) f(s, dp, tp);
}

/// SGD with momentum 1/2, decay 1/4 and learning rate 1/128.
inline constexpr runtime::step_input exact_step{.lr = 0x1p-7,
                                                .weight_decay = 0.25,
                                                .clip = 0,
                                                .beta1 = 0,
                                                .beta2 = 0,
                                                .eps = 1,
                                                .step = 3,
                                                .momentum = 0.5,
                                                .rounding_seed = 11};

/// The values before the step of an element at some position, in bf16 and f32 with few bits; all 0 past the
/// end.
struct given {
  float weight = 0, gradient = 0, moment = 0;
};
inline given given_of(bool vector, long element) {
  if (element < 0) return {};
  const auto draw = [&](int salt, float unit) {
    const std::uint32_t word =
        runtime::philox({{static_cast<std::uint32_t>(element), vector, static_cast<std::uint32_t>(salt), 0}},
                        1, 2)
            .word[0];
    return static_cast<float>(static_cast<int>(word % 255) - 127) * unit;
  };
  return {draw(0, 0x1p-7f), draw(1, 0x1p-6f), draw(2, 0x1p-7f)};
}

/// The values of an element after the step, in bf16.
struct left {
  runtime::bf16_bits weight, moment;
};
inline left left_of(bool vector, long element) {
  const given x = given_of(vector, element);
  const float by = x.gradient + (vector ? 0 : 0.25f) * x.weight, moment = 0.5f * x.moment + by;
  if (element < 0) return {};
  runtime::bits_of_elements random(runtime::fnv1a64(vector ? "vector" : "matrix"), exact_step.rounding_seed,
                                   exact_step.step);
  const runtime::element_bits bits = random[static_cast<std::uint64_t>(element)];
  return {runtime::rounded_stochastically(x.weight - 0x1p-7f * moment, bits.weight),
          runtime::rounded_stochastically(moment, bits.first_moment)};
}

}  // namespace rankc::test
