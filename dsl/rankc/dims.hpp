// SPDX-License-Identifier: Apache-2.0
// Parallel dims: how many ranks share the work along each mesh axis. Rank numbers run with tp innermost and pp
// outermost, so that the ranks of a tp group sit on one node.
#pragma once
#include <rankc/diagnostic.hpp>

#include <string_view>

namespace rankc {

/// Stands for one degree that the world size determines.
inline constexpr int infer = -1;

/// The degree of each axis; their product is the world size.
/// Errors: RC101 product differs from world; RC102 nothing to infer; RC103 axis not lowered; RC104 degree < 1;
///         RC105 more than one `infer`; RC106 sequence parallelism without tp.
struct parallel_dims {
  int world = 1;
  int dp_replicate = 1, dp_shard = 1, cp = 1, tp = 1, pp = 1, ep = 1, etp = 1, ulysses = 1;
  bool sequence_parallel = false;  // between tp regions, shard the tokens instead of repeating them
};

struct named_degree {
  std::string_view name;
  int parallel_dims::*degree;
};

/// The axes whose product is the world size, outermost first.
inline constexpr named_degree world_axes[]{{"pp", &parallel_dims::pp},
                                           {"dp_replicate", &parallel_dims::dp_replicate},
                                           {"dp_shard", &parallel_dims::dp_shard},
                                           {"cp", &parallel_dims::cp},
                                           {"tp", &parallel_dims::tp}};

/// Axes that may be declared but that no pass lowers yet.
inline constexpr named_degree unlowered_axes[]{{"dp_shard", &parallel_dims::dp_shard},
                                               {"cp", &parallel_dims::cp},
                                               {"ep", &parallel_dims::ep},
                                               {"etp", &parallel_dims::etp},
                                               {"ulysses", &parallel_dims::ulysses}};

constexpr bool spans_world(const named_degree& axis) {
  for (const auto& a : world_axes)
    if (a.degree == axis.degree) return true;
  return false;
}

/// The same dims with the inferred degree filled in, where one divides the world; else unchanged.
constexpr parallel_dims resolve(parallel_dims d) {
  long long known = 1;
  int parallel_dims::*unknown = nullptr;
  for (const auto& a : world_axes) {
    if (d.*a.degree == infer) unknown = a.degree;
    else if (d.*a.degree >= 1 && known <= d.world) known *= d.*a.degree;
  }
  if (unknown && known >= 1 && d.world % known == 0) d.*unknown = static_cast<int>(d.world / known);
  return d;
}

/// Append what is wrong with the dims alone.
constexpr void check_dims(report& out, const parallel_dims& given) {
  int inferred = 0;
  bool degrees_ok = given.world >= 1;
  if (given.world < 1) refuse(out, 104) << "world=" << given.world << " ranks; the world has at least 1";
  for (const auto& a : world_axes) {
    inferred += given.*a.degree == infer;
    if (given.*a.degree < 1 && given.*a.degree != infer) {
      refuse(out, 104) << a.name << "=" << given.*a.degree << "; a degree is at least 1, or `infer`";
      degrees_ok = false;
    }
  }
  for (const auto& a : unlowered_axes)
    if (given.*a.degree < 1 && !spans_world(a)) {
      refuse(out, 104) << a.name << "=" << given.*a.degree << "; a degree is at least 1, and `infer` is for "
                       << "those whose product is the world";
      degrees_ok = false;
    }
  if (inferred > 1) refuse(out, 105) << inferred << " degrees are `infer`; the world size determines one at most";
  if (!degrees_ok || inferred > 1) return;

  const parallel_dims d = resolve(given);
  long long product = 1;
  sentence factors;
  const char* separator = "";
  for (const auto& a : world_axes) {
    if (d.*a.degree == infer) continue;
    if (product <= d.world) product *= d.*a.degree;
    if (d.*a.degree > 1) {
      factors << separator << a.name << "(" << d.*a.degree << ")";
      separator = " * ";
    }
  }
  if (factors.empty()) factors << "1";
  if (inferred == 1 && product * (given.world / product) != given.world) {
    refuse(out, 102) << "world=" << d.world << " is not a multiple of " << factors.view()
                     << ", so that no degree can be inferred; the product of the others must be a divisor of the world: ";
    list_divisors(out.back().text, d.world);
  } else if (inferred == 0 && product != d.world) {
    sentence& s = refuse(out, 101);
    s << factors.view() << " is not world=" << d.world << "; ";
    if (product < d.world && d.world % product == 0)
      s << "multiply one degree by " << d.world / product << ", or write dp_replicate=infer";
    else s << "the product of the degrees must be the world size";
  }
  for (const auto& a : unlowered_axes)
    if (d.*a.degree > 1)
      refuse(out, 103) << a.name << "=" << d.*a.degree
                       << " is not lowered in this version; dp_replicate, tp and pp are: set " << a.name << "=1";
  if (d.sequence_parallel && d.tp == 1)
    refuse(out, 106) << "sequence_parallel=true with tp=1 shards nothing; set tp > 1 or leave it out";
}

/// Coordinates of a rank on the lowered axes.
struct coordinates {
  int pp = 0, dp = 0, tp = 0;
};
constexpr coordinates coordinates_of(const parallel_dims& d, int rank) {
  return {rank / (d.tp * d.dp_replicate), rank / d.tp % d.dp_replicate, rank % d.tp};
}
constexpr int rank_of(const parallel_dims& d, coordinates c) { return (c.pp * d.dp_replicate + c.dp) * d.tp + c.tp; }

}  // namespace rankc
