// SPDX-License-Identifier: Apache-2.0
// The label that the loss of a plan ignores.
#pragma once
#include <rankc/runtime/program.hpp>

#include <cstdint>
#include <optional>

namespace rankc::runtime {

/// `.ignored_label` of a plan's training; empty if every label counts.
inline std::optional<std::int32_t> ignored_label_of(const description& about) {
  if (!about.ignores_labels()) return std::nullopt;
  return about.ignored_label;
}

}  // namespace rankc::runtime
