// SPDX-License-Identifier: Apache-2.0
#include "mutants.hpp"

#include "mutator.hpp"

namespace field {

static const std::vector<fault_kind>& all_faults() {
  static const std::vector<fault_kind> all = [] {
    std::vector<fault_kind> of;
    for (const auto* list : {&faults_of_ops, &faults_of_views, &faults_of_communication, &faults_of_experts,
                             &faults_of_holdings})
      of.insert(of.end(), list->begin(), list->end());
    return of;
  }();
  return all;
}

int count_faults() { return static_cast<int>(all_faults().size()); }

fault make_fault(rankc::codegen::program& p, int kind, std::mt19937& random) {
  mutator m(p, random);
  return all_faults()[static_cast<std::size_t>(kind)](m);
}

}  // namespace field
