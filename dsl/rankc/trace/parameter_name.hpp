// SPDX-License-Identifier: Apache-2.0
// The name of a parameter: the name that the layer declares, and a suffix for a LoRA matrix of it.
#pragma once
#include <rankc/base/text.hpp>

#include <concepts>
#include <string>
#include <string_view>

namespace rankc {

/// "wq", or "wq.lora_a".
struct parameter_name {
  std::string_view declared = "", part = "";

  constexpr parameter_name() = default;
  constexpr parameter_name(std::string_view of, std::string_view its_part = "")
      : declared(of), part(its_part) {}
  constexpr parameter_name(const char* of) : declared(of) {}

  constexpr bool empty() const { return declared.empty(); }
  constexpr std::size_t size() const { return declared.size() + part.size(); }
  constexpr char operator[](std::size_t i) const {
    return i < declared.size() ? declared[i] : part[i - declared.size()];
  }
  /// Compares the joined text.
  constexpr bool operator==(const parameter_name& other) const {
    if (part.empty() && other.part.empty()) return declared == other.declared;
    if (size() != other.size()) return false;
    for (std::size_t i = 0; i < size(); ++i)
      if ((*this)[i] != other[i]) return false;
    return true;
  }
  std::string text() const { return std::string(declared).append(part); }
};

/// A template, so that plain text is not converted to a parameter_name.
constexpr sentence& operator<<(sentence& s, const std::same_as<parameter_name> auto& n) {
  return s << n.declared << n.part;
}

}  // namespace rankc
