// SPDX-License-Identifier: Apache-2.0
// The command `rankc-verify`, called as a function.
#pragma once
#include <cstdint>
#include <filesystem>
#include <iosfwd>
#include <optional>

namespace rankc::codegen {

/// Checks a certificate, and prints its plan, its claims and what is trusted. The same seed repeats a check;
/// without a seed, it is drawn.
/// Errors: 1 if the certificate is refused or unreadable; 3 if its programs are not compared with a model.
int report(const std::filesystem::path& file, std::optional<std::uint64_t> seed, std::ostream& out,
           std::ostream& errors);

}  // namespace rankc::codegen
