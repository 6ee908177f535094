// SPDX-License-Identifier: Apache-2.0
#include "mutants.hpp"

#include "mutator.hpp"

namespace field {

namespace {

using fault_lists = std::initializer_list<const std::vector<fault_kind>*>;

std::vector<fault_kind> joined(fault_lists lists) {
  std::vector<fault_kind> all;
  for (const auto* list : lists) all.insert(all.end(), list->begin(), list->end());
  return all;
}

const std::vector<fault_kind>& faults_of(fault_form form) {
  static const std::vector<fault_kind> fields = joined({&faults_of_ops, &faults_of_views, &faults_of_holdings,
                                                        &faults_of_communication}),
                                       structures =
                                           joined({&edits_of_ops, &edits_of_operands, &edits_of_types,
                                                   &edits_of_views, &edits_of_communication,
                                                   &edits_of_experts, &edits_of_holdings});
  return form == fault_form::field ? fields : structures;
}

}  // namespace

fault make_fault(program& p, fault_form form, std::mt19937& random) {
  mutator m(p, random);
  return m.one_of(faults_of(form))(m);
}

}  // namespace field
