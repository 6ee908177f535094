// SPDX-License-Identifier: Apache-2.0
// Recognises, by their beginnings, files that a command of the generator wrote earlier and may overwrite.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace rankc::codegen {

bool is_timeline(std::string_view beginning);

/// Errors: failure (2) if a folder has a file of one of these names that `emit` did not write.
void refuse_other_sources(const std::filesystem::path& folder,
                          const std::map<std::string, std::string>& files);

}  // namespace rankc::codegen
