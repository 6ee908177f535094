// SPDX-License-Identifier: Apache-2.0
#include "source_in_files.hpp"

namespace rankc::runtime {

source_in_files::source_in_files(const tensor_source& from, const description& about,
                                 const hugging_face_model& model, const std::vector<global_parameter>& all)
    : from_(from) {
  for (const global_parameter& p : all) {
    if (is_beside(p, all)) continue;
    const tensor_rule rule = find_tensor(model, about, all, p).rule;
    if (rule.heads.elements > 0) different_[p.name + lora_b] = {rule.heads, 0};
    if (rule.heads.elements > 0 || rule.added != 0) different_[p.name] = {rule.heads, rule.added};
  }
}

void source_in_files::read(const std::string& tensor, const area& wanted, double* to) const {
  const auto found = different_.find(tensor);
  if (found == different_.end()) return from_.read(tensor, wanted, to);
  const auto& [order, added] = found->second;
  const auto row_here = [&order = order](std::size_t there) { return order.row_here(there); };
  each_run(wanted.row, wanted.rows, row_here, [&](std::size_t first, std::size_t begin, std::size_t count) {
    from_.read(tensor, {begin, count, wanted.column, wanted.columns},
               to + (first - wanted.row) * wanted.columns);
  });
  for (std::size_t i = 0; i < wanted.count(); ++i) to[i] -= added;
}

}  // namespace rankc::runtime
