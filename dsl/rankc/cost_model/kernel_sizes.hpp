// SPDX-License-Identifier: Apache-2.0
// The work of a kernel: its operations, and the bytes of its memory traffic, by its op row.
#pragma once
#include <rankc/ops/elementwise.hpp>
#include <rankc/ops/padding.hpp>
#include <rankc/lowering/layer.hpp>

#include <algorithm>

namespace rankc::cost_model {

/// The resource that bounds a kernel.
enum class work : unsigned char { pass, column_sum, product, attention, communication };

constexpr work work_of(const op_row& row) {
  if (row.communicates()) return work::communication;
  if (row.flops) return row.find("lse") >= 0 ? work::attention : work::product;
  bool sums = false, writes = false;  // sums columns; writes rows
  for (const port& p : row.used_ports()) {
    sums |= p.as == use::sum && p.shape.ndim == 1;
    writes |= p.as == use::out;
  }
  return sums && writes ? work::column_sum : work::pass;
}

/// True if the kernel reads an operand whose element type `is` accepts.
constexpr bool reads(const op_row& row, auto is) {
  for (const port& p : row.used_ports())
    if (p.is_read() && is(p.holds)) return true;
  return false;
}
/// True if the kernel reads fp8 operands.
constexpr bool takes_fp8(const op_row& row) {
  return reads(row, [](element e) { return is_fp8(e); });
}
/// True if the kernel reads fp8 operands with a scale for each row.
constexpr bool takes_fp8_rows(const op_row& row) {
  return reads(row, [](element e) { return e == element::e4m3_rows; });
}
/// True if the kernel casts to fp8.
constexpr bool is_fp8_cast(const op_row& row) { return is_fp8(row.ports[0].holds); }

/// The work of the kernels of a layer on one rank.
class kernel_sizes {
 public:
  constexpr kernel_sizes(const lowering::layer_program& l, const lowering::layer_setting& s) : l_(l), s_(s) {
    for (const lowering::node& n : l.forward)
      if (n.row->name.starts_with("arrange")) picks_ = static_cast<double>(l.shape(n["places"]).elements());
    slots_ = picks_ * slots_per_pick(s.dims);
  }

  /// The fraction of a conversion's buffer that is sent. If one process has all ranks, an exchange with
  /// experts sends only the rows of chosen experts. In every other case the whole buffer is sent.
  constexpr double sent(const lowering::node& n, int ranks_per_node) const {
    const bool is_of_slots =
        n.row->converts == conversion::to_experts || n.row->converts == conversion::from_experts;
    if (!is_of_slots || s_.dims.world > ranks_per_node) return 1;
    return std::min(1.0, picks_ / static_cast<double>(l_.part(n).dims[0].width()));
  }

  /// Bytes of memory traffic.
  constexpr double bytes(const lowering::node& n) const {
    double all = 0;
    for (std::size_t p = 0; p < n.ports.size(); ++p) all += bytes(n, p);
    return all;
  }
  constexpr double bytes(const lowering::node& n, std::size_t p) const {
    const port& as = n.row->ports[p];
    if (n.ports[p].shape < 0 || as.as == use::scratch) return 0;
    const auto element =
        static_cast<double>(s_.bytes(l_.values[static_cast<std::size_t>(n.ports[p].at.value)].holds));
    const double all = element * static_cast<double>(shape(n, p).elements()) * touched(n);
    if (is_fp8_cast(*n.row)) return 2 * all;  // read twice; written by rows and by columns
    const bool adds = as.as == use::sum && n.accumulate != lowering::accumulation::overwrite;
    return (is_looked_up(n, p) ? std::min(all, element * looked_up(n)) : all) * (adds ? 2 : 1);
  }

  /// Operations of GEMMs and attention. Attention counts only the half of the scores that is not masked.
  constexpr double operations(const lowering::node& n) const {
    const double all = n.row->flops_of(lowering::sizes_of(l_, n, ring_ranks(s_.dims))) * filled(n);
    return work_of(*n.row) == work::attention ? all / 2 : all;
  }

  /// The fraction of an expert GEMM's slots that hold tokens, if all experts are chosen equally often.
  constexpr double filled(const lowering::node& n) const {
    const int offsets = n.row->find("offsets"), slots = n.row->find("x");
    if (offsets < 0 || slots < 0 || slots_ == 0) return 1;
    return std::min(1.0,
                    slots_ / static_cast<double>(shape(n, static_cast<std::size_t>(slots)).dims[0].width()));
  }
  constexpr const lowering::local_shape& shape(const lowering::node& n, std::size_t p) const {
    return l_.shape(n.ports[p]);
  }

 protected:
  const lowering::layer_program& l_;
  const lowering::layer_setting& s_;

 private:
  /// The share of the logits that a mask of padding touches: the padding, if it is in place. Ranks that shard
  /// the vocabulary have it on the last of them.
  constexpr double touched(const lowering::node& n) const {
    if (!n.is(ops::mask_padding) && !n.is(ops::mask_padding_grad)) return 1;
    if (!(n.ports[0].at == n.ports[1].at)) return 1;
    const auto columns = static_cast<double>(shape(n, 0).dims[1].width());
    return std::clamp((columns * region_ranks(s_.dims) - n.number) / columns, 0.0, 1.0);
  }
  /// The slots that are filled on a rank for each expert that its tokens choose, on average.
  static constexpr double slots_per_pick(const parallel_dims& d) {
    if (d.ep == 1) return 1;
    return repeats_tokens(d) ? 1.0 / d.ep : d.etp;
  }
  /// True if `ids` selects the rows of this operand that the kernel touches.
  static constexpr bool is_looked_up(const lowering::node& n, std::size_t p) {
    const use as = n.row->ports[p].as;
    return (as == use::parameter || as == use::sum) && n.row->find("ids") >= 0;
  }
  constexpr double looked_up(const lowering::node& n) const {
    double most = 0;  // elements of the tokens' rows
    for (std::size_t p = 0; p < n.ports.size(); ++p)
      if (n.ports[p].shape >= 0 && !is_looked_up(n, p))
        most = std::max(most, static_cast<double>(shape(n, p).elements()));
    return most;
  }

  double picks_ = 0;  // experts that the rank's tokens choose, repetitions included
  double slots_ = 0;  // slots that are filled on the rank, on average
};

}  // namespace rankc::cost_model
