// SPDX-License-Identifier: Apache-2.0
// The time of a layer's phases on a rank.
#pragma once
#include <rankc/cost_model/kernel_time.hpp>
#include <rankc/cost_model/link_time.hpp>
#include <rankc/lowering/layer.hpp>

#include <algorithm>
#include <span>

namespace rankc::cost_model {

/// The time and the energy of a rank's work, by the resource that bounds it. `links` is the communication
/// that computation waits for.
/// Units: seconds, if power is no limit; joules above those of an idle GPU.
struct spent {
  effort products{}, attention{}, passes{};
  double links = 0;
  constexpr effort computing() const {
    effort all = products;
    all += attention;
    all += passes;
    return all;
  }
  constexpr double seconds() const { return computing().seconds + links; }
  constexpr spent& operator+=(const spent& more) {
    products += more.products;
    attention += more.attention;
    passes += more.passes;
    links += more.links;
    return *this;
  }
  constexpr spent operator*(double times) const {
    return {products * times, attention * times, passes * times, links * times};
  }
};

/// The fraction of a conversion's time that computation waits for, if the conversion is not overlapped.
constexpr double share_waited(const gpu_speed& g, const framework& f, const small_products& products,
                              const lowering::node& n, lowering::phase does) {
  if (n.over != region_axis) return 1;
  const conversion by = n.row->converts;
  if (by == conversion::all_gather) return f.waits_for_tensor * products.gathered;
  const bool sums = by == conversion::all_reduce || by == conversion::reduce_scatter;
  const bool backward = does != lowering::phase::forward && does != lowering::phase::recompute;
  return f.waits_for_tensor * (f.tensor_sums_beside && sums && backward ? g.beside : 1);
}

/// The time that a transfer of rows adds to the computation that overlaps it. `moves` is the time of the
/// transfer and `meanwhile` that of the computation. It is the part of the transfer that is not hidden, the
/// slowdown of the computation and, in a reduce-scatter (`deals`), the sum of the rows that have arrived.
/// Units: seconds; `bytes` of the complete tensor, which each rank has before or after.
constexpr double wait_by_rows(const gpu_speed& g, bool deals, double moves, double meanwhile, int ranks,
                              double bytes) {
  const double hidden = std::min(moves, meanwhile);
  return moves - hidden + g.beside * hidden + (deals ? g.passes.time(bytes * (ranks + 1) / ranks) : 0);
}

/// The time of the nodes of a phase.
constexpr spent time_of(const gpu_speed& g, const lowering::layer_program& l,
                        const lowering::layer_setting& s, lowering::phase does, int ranks_per_node,
                        const framework& f = rankc_itself) {
  const kernel_times kernels(g, l, s, f);
  const layout mesh(s.dims);
  spent all;
  const std::span<const lowering::node> list = l.calls(does);
  for (std::size_t i = 0; i < list.size(); ++i) {
    const lowering::node& n = list[i];
    if (n.runs_in(s.trains)) switch (work_of(*n.row)) {
        case work::communication: {
          const lowering::local_shape& part = l.part(n);
          const auto bytes = static_cast<double>(part.elements()) *
                             static_cast<double>(s.bytes(n.wide ? lowering::element_kind::wide
                                                                : lowering::element_kind::real));
          const span ranks = span_of(mesh, n.over, ranks_per_node);
          const bool of_shard =
              n.row->converts == conversion::all_gather || n.row->converts == conversion::reduce_scatter;
          const std::size_t product = f.by_rows ? lowering::find_partner(list, i) : i;
          const double sent = bytes * (of_shard ? ranks.ranks : kernels.sent(n, ranks_per_node));
          const double share = n.is_beside() ? n.row->count(false) * g.beside
                                             : share_waited(g, f, kernels.products(), n, does);
          const double moves = conversion_time(g, n.row->converts, ranks, sent,
                                               n.is_beside() ? waiting::beside : waits_for(f));
          if (product == i) {
            all.links += share * moves;
            break;
          }
          double meanwhile = kernels.of(list[product]).seconds * (ranks.ranks - 1) /
                             ranks.ranks;  // on the rows that do not move
          for (std::size_t k = std::min(i, product) + 1; k < std::max(i, product); ++k)
            meanwhile += kernels.of(list[k]).seconds;
          all.links += wait_by_rows(g, n.row->converts == conversion::reduce_scatter, moves, meanwhile,
                                    ranks.ranks, sent);
          break;
        }
        case work::product:
          all.products += kernels.of(n);
          break;
        case work::attention:
          all.attention += kernels.of(n);
          break;
        default:
          all.passes += kernels.of(n);
      }
  }
  return all;
}

}  // namespace rankc::cost_model
