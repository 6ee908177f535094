// SPDX-License-Identifier: Apache-2.0
// The files that belong to a token file: its index (.idx) and its mask (.mask).
#pragma once
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

namespace rankc::runtime {

/// The file that has the name of a token file and another extension. Its folder is that of the token file, or
/// for a link the first that has such a file along the link. A link to nothing is returned too, because
/// opening it is an error that names it.
std::optional<std::filesystem::path> beside_tokens(std::filesystem::path tokens, std::string_view extension);

/// Remove the indexes and masks of token files that are in the same list.
void remove_companions(std::vector<std::filesystem::path>& files);

}  // namespace rankc::runtime
