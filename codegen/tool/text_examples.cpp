// SPDX-License-Identifier: Apache-2.0
#include "text_examples.hpp"

#include <rankc/runtime/failure.hpp>
#include <rankc/runtime/printable.hpp>

#include <algorithm>
#include <ostream>
#include <utility>

#include "documents.hpp"

namespace rankc::tool {

namespace {

/// Calls `visit` with parts of at most `most` tokens, each with the weight.
void visit_parts(const std::vector<int>& ids, std::optional<float> weight, std::size_t most,
                 const visit_example& visit) {
  for (auto first = ids.begin(); first != ids.end();) {
    const auto count =
        static_cast<std::ptrdiff_t>(std::min(most, static_cast<std::size_t>(ids.end() - first)));
    example part{{first, first + count},
                 std::vector<char>(static_cast<std::size_t>(count), runtime::label_counts)};
    part.labels.front() = runtime::label_is_ignored;
    if (weight) part.weights.assign(part.ids.size(), *weight);
    visit(std::move(part));
    first += count;
  }
}

}  // namespace

void visit_texts(const tokens_options& o, const text_encoder& by, std::optional<int> end,
                 const visit_example& visit, std::ostream& note) {
  for (const auto& file : o.files) {
    std::size_t replaced = 0;
    for_each_document(file, {o.field, o.weights_field}, [&](text_document one) {
      std::vector<int> ids = by.encode(std::move(one.text), replaced);
      if (o.begins) ids.insert(ids.begin(), by.begin.begin(), by.begin.end());
      if (o.ends) ids.insert(ids.end(), by.end.begin(), by.end.end());
      if (end) ids.push_back(*end);
      visit_parts(ids, one.weight, o.pack > 0 ? static_cast<std::size_t>(o.pack) : ids.size(), visit);
    });
    if (replaced > 0)
      note << "note: "
           << runtime::error_line(
                  runtime::say("RC8119: {} has {} sequences of bytes that are not UTF-8; each is read as "
                               "U+FFFD",
                               file, replaced))
           << "\n";
  }
}

}  // namespace rankc::tool
