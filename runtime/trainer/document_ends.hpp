// SPDX-License-Identifier: Apache-2.0
// Data without the token that ends documents. A plan with `.end_of_document` finds documents by this token
// alone.
#pragma once
#include <rankc/runtime/program.hpp>
#include <rankc/trainer/sample_source.hpp>

#include <string>
#include <vector>

namespace rankc::runtime {

/// A note for each source of files in whose beginning no document ends.
std::vector<std::string> notes_on_documents(const description&, const std::vector<opened_source>&);

}  // namespace rankc::runtime
