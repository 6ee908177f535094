// SPDX-License-Identifier: Apache-2.0
#include "adopted.hpp"

#include "../device/check.hpp"
#include "../device/teardown.hpp"

#include <algorithm>

namespace rankc::runtime::cuda {
namespace {

/// The rank's number in the application's communicator. Size and number must equal those of the plan's
/// communicator.
int place_in(const rank& r, const communicator& plan, ncclComm_t given, const std::string& name) {
  int members = 0, place = 0;
  check(r, ncclCommCount(given, &members), given, name + ": ncclCommCount");
  check(r, ncclCommUserRank(given, &place), given, name + ": ncclCommUserRank");
  const auto wanted = std::ranges::find(plan.ranks, r.index) - plan.ranks.begin();
  if (static_cast<std::size_t>(members) == plan.ranks.size() && place == wanted) return place;
  throw failure(
      1,
      "RC5110: the application's communicator {} has this rank as number {} of {}; the plan has it as "
      "number {} of {}",
      plan.name, place, members, wanted, plan.ranks.size());
}

}  // namespace

ncclRedOp_t scaled_sum(const rank& r, ncclComm_t of, const std::string& name) {
  bf16 one = __float2bfloat16_rn(1.0f);
  ncclRedOp_t made = ncclSum;
  check(r, ncclRedOpCreatePreMulSum(&made, &one, ncclBfloat16, ncclScalarHostImmediate, of), of,
        name + ": ncclRedOpCreatePreMulSum");
  return made;
}

adopted::adopted(context& owner, std::span<const ncclComm_t> given) {
  rank& r = owner.of();
  for (lane& on : r.all_lanes)
    for (lane_link& k : on.links) {
      const auto index = static_cast<std::size_t>(k.communicator);
      const communicator& plan = r.about->communicators[index];
      const std::string name = std::string("communicator ") + plan.name;
      if (index >= given.size() || given[index] == nullptr)
        throw failure(1, "RC5111: the application did not give communicator {}, number {} of the program",
                      plan.name, index);
      k.place = place_in(r, plan, given[index], name);
      k.nccl = given[index];
      k.scaled_sum = scaled_sum(r, k.nccl, name);
      links_.push_back(&k);
    }
}

adopted::~adopted() {
  for (const lane_link* k : links_)
    check_teardown(ncclRedOpDestroy(k->scaled_sum, k->nccl), "ncclRedOpDestroy");
}

}  // namespace rankc::runtime::cuda
