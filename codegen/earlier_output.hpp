// SPDX-License-Identifier: Apache-2.0
// Which files a command of the generator has written before, told by how they begin, and may write over.
#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

namespace rankc::codegen {

bool is_timeline(std::string_view beginning);

/// Errors: failure (2) where a folder has a file of one of these names that `emit` has not written.
void refuse_other_sources(const std::filesystem::path& folder,
                          const std::map<std::string, std::string>& files);

}  // namespace rankc::codegen
