// SPDX-License-Identifier: Apache-2.0
#include "model.hpp"

#include <bit>

namespace field {

updated update(std::string_view optimizer, element weight, element gradient, element first_moment,
               element second_moment, element norm, bool decays, const rankc::load_balance& balances) {
  if (weight == 0 && gradient == 0 && first_moment == 0 && second_moment == 0)
    return {0, 0, 0};  // as AdamW and SGD have it
  if (balances.any()) {
    std::uint64_t key = key_of("balance");
    for (std::uint64_t of :
         {std::uint64_t{weight}, std::uint64_t{gradient}, std::bit_cast<std::uint64_t>(balances.rate),
          std::bit_cast<std::uint64_t>(balances.mean)})
      key = mix(key, of);
    return {draw(key), first_moment, second_moment};
  }
  std::uint64_t key = key_of(optimizer);
  for (element e : {weight, gradient, first_moment, second_moment, norm}) key = mix(key, e);
  key = mix(key, decays);
  return {draw(mix(key, 1)), draw(mix(key, 2)), draw(mix(key, 3))};
}

}  // namespace field
