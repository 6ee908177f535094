// SPDX-License-Identifier: Apache-2.0
// Data without the token that ends documents.
#pragma once
#include <rankc/runtime/program.hpp>
#include <rankc/trainer/sample_source.hpp>

#include <string>
#include <vector>

namespace rankc::runtime {

/// A note for each source of files in which the plan's end token does not occur near the beginning. Documents
/// of Megatron's files then begin at the borders of the .idx file.
std::vector<std::string> notes_on_documents(const description&, const std::vector<opened_source>&);

}  // namespace rankc::runtime
