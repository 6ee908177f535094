// SPDX-License-Identifier: Apache-2.0
#include "model.hpp"

namespace field {

updated update(std::string_view optimizer, element weight, element gradient, element first_moment, element second_moment,
               element norm, bool decays) {
  if (weight == 0 && gradient == 0 && first_moment == 0 && second_moment == 0)
    return {0, 0, 0};  // as AdamW and SGD have it
  std::uint64_t key = key_of(optimizer);
  for (element e : {weight, gradient, first_moment, second_moment, norm}) key = mix(key, e);
  key = mix(key, decays);
  return {draw(mix(key, 1)), draw(mix(key, 2)), draw(mix(key, 3))};
}

}  // namespace field
