// SPDX-License-Identifier: Apache-2.0
// The files that belong to a token file: its index, its mask and its weights.
#pragma once
#include <filesystem>
#include <optional>
#include <string_view>
#include <vector>

namespace rankc::runtime {

inline constexpr std::string_view index_extension = ".idx", mask_extension = ".mask",
                                  weights_extension = ".weights";

/// The file with the name of a token file and another extension. It is next to the token file. If the token
/// file is a link, it is next to the first file along the link that has such a neighbour. A link to a missing
/// file is returned too, so that opening it gives an error that names it.
std::optional<std::filesystem::path> beside_tokens(std::filesystem::path tokens, std::string_view extension);

/// Removes the indexes, masks and weights of token files in the same list.
void remove_companions(std::vector<std::filesystem::path>& files);

}  // namespace rankc::runtime
