// SPDX-License-Identifier: Apache-2.0
// The time and the energy of a kernel.
#pragma once
#include <rankc/cost_model/framework.hpp>
#include <rankc/cost_model/kernel_sizes.hpp>
#include <rankc/cost_model/product_time.hpp>
#include <rankc/cost_model/scores_time.hpp>
#include <rankc/contract/held_logits.hpp>
#include <rankc/ops/attention.hpp>

#include <algorithm>
#include <cstdint>

namespace rankc::cost_model {

/// The time and the energy of some work.
/// Units: seconds, if power is no limit; joules above those of an idle GPU.
struct effort {
  double seconds = 0, joules = 0;
  constexpr effort& operator+=(const effort& more) {
    seconds += more.seconds;
    joules += more.joules;
    return *this;
  }
  constexpr effort operator*(double times) const { return {seconds * times, joules * times}; }
};

/// The times of the kernels of a layer on one rank.
class kernel_times : public kernel_sizes {
 public:
  constexpr kernel_times(const gpu_speed& g, const lowering::layer_program& l,
                         const lowering::layer_setting& s, const framework& f = rankc_itself)
      : kernel_sizes(l, s),
        g_(g),
        f_(f),
        products_(l.uses(lowering::phase::forward, lowering::space::loss) ? small_products{} : f.products) {}

  constexpr const small_products& products() const { return products_; }

  /// The time and the energy of a node that does not communicate.
  constexpr effort of(const lowering::node& n) const {
    const work by = work_of(*n.row);
    const double passing = bytes(n);
    if (by == work::pass || by == work::column_sum) {
      const rate& r = by == work::pass ? g_.passes : g_.column_sums;
      effort e{r.time(passing), passing * g_.joules_of_byte};
      e += dropout(n);
      if (f_.loss_bytes > 0 && n.row->find("dlogits") >= 0) e += pass(f_.loss_bytes * elements(n, "dlogits"));
      else if (is_read_twice(n)) e += pass(bytes(n, static_cast<std::size_t>(n.row->find("logits"))));
      return e;
    }
    return by == work::product ? product(n, operations(n), passing) : attention(n, operations(n), passing);
  }

 private:
  constexpr effort product(const lowering::node& n, double operations, double passing) const {
    std::size_t written = 0;
    int results = 0;
    bool has_bias = false;
    for (std::size_t p = n.ports.size(); p-- > 0;) {
      const port& as = n.row->ports[p];
      if (as.is_written() && as.shape.ndim == 2) {
        written = p;
        ++results;
      }
      has_bias |= as.shape.ndim == 1 && (as.as == use::sum || as.as == use::parameter);
    }
    const bool of_weight = n.row->ports[written].as == use::sum;
    const lowering::local_shape& y = shape(n, written);
    const auto rows = static_cast<long long>(
                   static_cast<double>(y.dims[0].width()) * (of_weight ? 1 : filled(n)) + 0.5),
               columns = y.dims[1].width();
    const auto depth = static_cast<long long>(
        operations / 2 / (static_cast<double>(rows) * static_cast<double>(columns)) + 0.5);
    const kept_apart apart = apart_of(n, written, has_bias);
    double share = 1;
    if (!apart.any && results > 1) share = g_.two_results;
    else if (!apart.any && has_bias && !of_weight) share = g_.with_bias;
    const bool in_fp8 = takes_fp8(*n.row);
    const double of_rows = takes_fp8_rows(*n.row) ? fp8_rows_share : 1;
    effort e{product_time(g_, rows, columns, std::max(depth, 1LL), passing - apart.not_of_product,
                          share * (in_fp8 ? fp8_speed * of_rows : products_.speed)),
             operations * g_.joules_of_product * (in_fp8 ? fp8_joules / of_rows : products_.joules) +
                 passing * g_.joules_of_byte};
    e += pass(apart.passed_over);
    if (!of_weight) e += pass(products_.cast_bytes * static_cast<double>(rows) * static_cast<double>(depth));
    e += dropout(n);
    if (has_bias && of_weight) e += pass(bytes(n, static_cast<std::size_t>(n.row->find("dy"))));
    return e;
  }

  constexpr effort attention(const lowering::node& n, double operations, double passing) const {
    const bool backward = n.row->find("d_o") >= 0;
    const auto q = static_cast<std::size_t>(n.row->find("q"));
    if (f_.keeps_scores)
      return {scores_time(g_, sizes_of_attention(n, q), backward, f_.dropouts),
              2 * operations * g_.joules_of_product};
    if (!is_on_tensor_cores(n))
      return {operations / attention_on_cuda_cores,
              operations * g_.joules_of_product + passing * g_.joules_of_byte};
    const bool narrow = shape(n, q).dims[1].unit <= 64;
    const attention_speed& s = (backward ? g_.backward : g_.forward)[narrow ? 0 : 1];
    return {s.time(operations, n.seq), operations * s.joules + passing * g_.joules_of_byte};
  }

  /// False for attention that only kernels in f32 compute: some forms within documents or with a setting, of
  /// all gathered keys, and with value heads of another size than key heads.
  constexpr bool is_on_tensor_cores(const lowering::node& n) const {
    const op_sizes sizes = lowering::sizes_of(l_, n, ring_ranks(s_.dims));
    const cuda::attention_shape a = ops::attention_shape(sizes, {sizeof(std::int16_t), s_.deterministic});
    if (!a.has_equal_heads() || ops::sees_all_gathered(sizes, n.attention, *n.row, a)) return false;
    if (n.attention.has_plain_scores() && n.row->find("starts") < 0) return true;
    return ops::masks_on_tensor_cores(sizes, n.attention, a) && is_hopper(g_.name);
  }

  constexpr attention_sizes sizes_of_attention(const lowering::node& n, std::size_t q) const {
    const lowering::local_shape& s = shape(n, q);
    return {s.dims[0].width() * s.dims[1].count / n.seq, n.seq, s.dims[1].unit};
  }

  /// The ops that rankc fuses with a GEMM, in a framework that runs them as separate kernels.
  /// Units: bytes of memory traffic that the GEMM saves (not_of_product) and that the kernels have
  /// (passed_over).
  struct kept_apart {
    bool any = false;
    double not_of_product = 0, passed_over = 0;
  };
  constexpr kept_apart apart_of(const lowering::node& n, std::size_t written, bool has_bias) const {
    constexpr double element = 2;
    if (n.row->ports[written].as == use::sum) {
      if (!f_.adds_apart) return {};
      const auto gradients = static_cast<double>(shape(n, written).elements());
      return {true, bytes(n, written) - element * gradients, 3 * element * gradients};
    }
    if (!f_.separate_passes) return {};
    const double read = bytes_beside(n, &port::is_read), beside = read + bytes_beside(n, &port::is_written);
    return {true, beside, has_bias || beside > 0 ? 2 * bytes(n, written) + read : 0};
  }
  /// Memory traffic of the input of an activation that is fused with the GEMM, and of the residual.
  constexpr double bytes_beside(const lowering::node& n, bool (port::*side)() const) const {
    double all = 0;
    for (std::size_t p = 0; p < n.ports.size(); ++p)
      if (const port& as = n.row->ports[p]; (as.name == "before" || as.name == "residual") && (as.*side)())
        all += bytes(n, p);
    return all;
  }
  /// Dropout of the values added to the residual: forward stores a byte of each element, and a kernel of
  /// backward reads it.
  constexpr effort dropout(const lowering::node& n) const {
    if (!f_.dropouts || n.row->find("residual") < 0) return {};
    const double dropped = elements(n, "residual");
    return n.row->find("dy") >= 0 ? pass(5 * dropped)
                                  : effort{dropped / g_.passes.per_second, dropped * g_.joules_of_byte};
  }
  /// True if the kernel of the loss reads the logits twice. It computes their gradient in the same kernel as
  /// their sums, and shared memory does not hold a row of them.
  constexpr bool is_read_twice(const lowering::node& n) const {
    if (n.only != lowering::in_step::training || n.row->find("dlogits") < 0) return false;
    const auto tokens = static_cast<double>(l_.shape(n["logits"]).dims[0].width());
    return bytes(n, static_cast<std::size_t>(n.row->find("logits"))) >
           tokens * static_cast<double>(cuda::held_logits);
  }
  constexpr double elements(const lowering::node& n, std::string_view name) const {
    return static_cast<double>(l_.shape(n[name]).elements());
  }
  constexpr effort pass(double bytes) const { return {g_.passes.time(bytes), bytes * g_.joules_of_byte}; }

  const gpu_speed& g_;
  const framework& f_;
  small_products products_;
};

}  // namespace rankc::cost_model
