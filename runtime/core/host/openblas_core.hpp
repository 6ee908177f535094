// SPDX-License-Identifier: Apache-2.0
// The kernels that OpenBLAS should use on an x86-64 processor.
#pragma once
#include <algorithm>
#include <array>
#include <string_view>

namespace rankc::runtime::host {

enum class vector_width { narrower, avx2, avx512 };

/// The vector instructions that the kernels of an OpenBLAS core use.
/// Source: OpenBLAS 0.3.21, driver/others/dynamic.c and kernel/x86_64.
constexpr vector_width width_of(std::string_view core) {
  constexpr std::array avx512{"SkylakeX", "Cooperlake", "SapphireRapids"};
  constexpr std::array avx2{"Haswell", "Zen", "Excavator"};
  if (std::find(avx512.begin(), avx512.end(), core) != avx512.end()) return vector_width::avx512;
  if (std::find(avx2.begin(), avx2.end(), core) != avx2.end()) return vector_width::avx2;
  return vector_width::narrower;
}

/// The core to set if the processor has wider vectors than the chosen core uses; else empty.
constexpr std::string_view wider_core(std::string_view chosen, vector_width processor) {
  if (width_of(chosen) >= processor) return "";
  return processor == vector_width::avx512 ? "SkylakeX" : "Haswell";
}

}  // namespace rankc::runtime::host
