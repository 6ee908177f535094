// SPDX-License-Identifier: Apache-2.0
// What a kernel takes: the sizes of the node that it is, by the row of its op.
#pragma once
#include <rankc/cost_model/gpu_speed.hpp>
#include <rankc/ops/elementwise.hpp>
#include <rankc/program/layer.hpp>

#include <algorithm>

namespace rankc::cost_model {

/// What a kernel is bound by.
enum class work : unsigned char { pass, column_sum, product, attention, communication };

/// Units: seconds, where power is no limit; joules beside those of a GPU at rest.
struct effort {
  double seconds = 0, joules = 0;
  constexpr effort& operator+=(const effort& more) {
    seconds += more.seconds, joules += more.joules;
    return *this;
  }
  constexpr effort operator*(double times) const { return {seconds * times, joules * times}; }
};

constexpr work work_of(const op_row& row) {
  if (row.communicates()) return work::communication;
  if (row.flops && row.flops != no_flops) return row.find("lse") >= 0 ? work::attention : work::product;
  bool sums = false, writes = false;  // columns; rows
  for (const port& p : row.used_ports()) sums |= p.as == use::sum && p.shape.ndim == 1, writes |= p.as == use::out;
  return sums && writes ? work::column_sum : work::pass;
}

namespace detail {
constexpr long long blocks(long long n, long long size) { return (n + size - 1) / size; }

}  // namespace detail

/// A product of m x k and k x n in tiles that the processors take in waves, of k in so many parts as is fastest.
/// `bytes`: of all operands; `share`: of the speed, that what it does besides leaves it.
constexpr double product_time(const gpu_speed& g, long long m, long long n, long long k, double bytes, double share) {
  constexpr int tiles[][2]{{256, 128}, {128, 256}, {192, 128}, {128, 192}, {128, 128}, {128, 64}, {64, 128}, {64, 64}};
  constexpr double widest = 1.0 / 256 + 1.0 / 128;
  constexpr long long step = 64, least = 256;  // of k: that tiles take at a time, that a part has
  const double passing = bytes / g.passes.per_second;
  double best = -1;
  for (const auto& [rows, columns] : tiles)
    for (const int parts : {1, 2, 3, 4, 6, 8, 16}) {
      if (parts > 1 && k < parts * least) break;
      const double speed = g.products * share / g.processors * (1 + g.narrow_tile) / (1 + g.narrow_tile * (1.0 / rows + 1.0 / columns) / widest);
      const auto depth = static_cast<double>(detail::blocks(detail::blocks(k, parts), step) * step);
      const auto waves = static_cast<double>(detail::blocks(detail::blocks(m, rows) * detail::blocks(n, columns) * parts, g.processors));
      const double computing = waves * (2.0 * rows * columns * depth / speed + g.tile_start);
      double takes = std::max(computing, passing) + g.stores_beside * std::min(computing, passing);
      if (parts > 1) takes += g.split_sums * 8.0 * parts * static_cast<double>(m) * static_cast<double>(n) / g.passes.per_second;
      if (best < 0 || takes < best) best = takes;
    }
  return g.product_start + best;
}

/// The kernels of a layer on one rank.
class kernel_times {
 public:
  constexpr kernel_times(const gpu_speed& g, const program::layer_program& l, const program::layer_setting& s) : g_(g), l_(l), s_(s) {
    for (const program::node& n : l.forward)
      if (n.row->name.starts_with("arrange")) slots_ = static_cast<double>(l.shape(n["places"]).elements());
    if (s.dims.ep > 1) slots_ *= repeats_tokens(s.dims) ? 1.0 / s.dims.ep : s.dims.etp;
  }

  /// Bytes that pass through memory.
  constexpr double bytes(const program::node& n) const {
    double all = 0;
    for (std::size_t p = 0; p < n.ports.size(); ++p) all += bytes(n, p);
    return all;
  }

  /// Errors: none of a node that communicates is asked for.
  constexpr effort of(const program::node& n) const {
    const work by = work_of(*n.row);
    const double passing = bytes(n);
    if (by == work::pass || by == work::column_sum) {
      const rate& r = by == work::pass ? g_.passes : g_.column_sums;
      return {r.time(passing), passing * g_.joules_of_byte};
    }
    const double operations = n.row->flops(program::sizes_of(l_, n, ring_ranks(s_.dims))) * filled(n);
    return by == work::product ? product(n, operations, passing) : attention(n, operations / 2, passing);
  }

 private:
  /// Of the slots that a product of experts has room for those that are taken, where all experts are as much in demand.
  constexpr double filled(const program::node& n) const {
    const int offsets = n.row->find("offsets"), slots = n.row->find("x");
    if (offsets < 0 || slots < 0 || slots_ == 0) return 1;
    return std::min(1.0, slots_ / static_cast<double>(shape(n, static_cast<std::size_t>(slots)).dims[0].width()));
  }
  constexpr const program::local_shape& shape(const program::node& n, std::size_t p) const { return l_.shape(n.ports[p]); }

  constexpr double bytes(const program::node& n, std::size_t p) const {
    const port& as = n.row->ports[p];
    if (n.ports[p].shape < 0 || as.as == use::scratch) return 0;
    const auto element = static_cast<double>(s_.bytes(l_.values[static_cast<std::size_t>(n.ports[p].at.value)].holds));
    const double all = element * static_cast<double>(shape(n, p).elements());
    const bool adds = as.as == use::sum && n.accumulate != program::accumulation::overwrite;
    return (is_looked_up(n, p) ? std::min(all, element * looked_up(n)) : all) * (adds ? 2 : 1);
  }
  /// Whether ids say which rows of it are touched.
  static constexpr bool is_looked_up(const program::node& n, std::size_t p) {
    const use as = n.row->ports[p].as;
    return (as == use::parameter || as == use::sum) && n.row->find("ids") >= 0;
  }
  constexpr double looked_up(const program::node& n) const {
    double most = 0;  // elements of the tokens' rows
    for (std::size_t p = 0; p < n.ports.size(); ++p)
      if (n.ports[p].shape >= 0 && !is_looked_up(n, p)) most = std::max(most, static_cast<double>(shape(n, p).elements()));
    return most;
  }

  constexpr effort product(const program::node& n, double operations, double passing) const {
    std::size_t written = 0;
    int results = 0;
    bool has_bias = false;
    for (std::size_t p = n.ports.size(); p-- > 0;) {
      const port& as = n.row->ports[p];
      if (as.is_written() && as.shape.ndim == 2) written = p, ++results;
      has_bias |= as.shape.ndim == 1 && (as.as == use::sum || as.as == use::parameter);
    }
    const bool of_weight = n.row->ports[written].as == use::sum;
    const program::local_shape& y = shape(n, written);
    const auto rows = static_cast<long long>(static_cast<double>(y.dims[0].width()) * (of_weight ? 1 : filled(n)) + 0.5), columns = y.dims[1].width();
    const auto depth = static_cast<long long>(operations / 2 / (static_cast<double>(rows) * static_cast<double>(columns)) + 0.5);
    effort e{product_time(g_, rows, columns, std::max(depth, 1LL), passing, results > 1 ? g_.two_results : has_bias && !of_weight ? g_.with_bias : 1), operations * g_.joules_of_product + passing * g_.joules_of_byte};
    if (has_bias && of_weight) {
      const double summed = bytes(n, static_cast<std::size_t>(n.row->find("dy")));
      e += {g_.passes.time(summed), summed * g_.joules_of_byte};
    }
    return e;
  }

  constexpr effort attention(const program::node& n, double operations, double passing) const {
    const bool backward = n.row->find("d_o") >= 0;
    const auto q = static_cast<std::size_t>(n.row->find("q"));
    const bool narrow = shape(n, q).dims[1].unit <= 64;
    const attention_speed& s = (backward ? g_.backward : g_.forward)[narrow ? 0 : 1];
    return {s.time(operations, n.seq), operations * s.joules + passing * g_.joules_of_byte};
  }

  const gpu_speed& g_;
  const program::layer_program& l_;
  const program::layer_setting& s_;
  double slots_ = 0;  // of experts, that a rank's tokens take on average
};

}  // namespace rankc::cost_model
