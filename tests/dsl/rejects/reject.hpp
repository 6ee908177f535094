// SPDX-License-Identifier: Apache-2.0
// Declarations that the refused plans share. Each file here is compiled twice: as it is, when every plan must
// be valid, and with FAULT, when exactly the lines that end in "// error: <sentence>" must be refused, with
// that sentence.
#pragma once
#include <rankc/rankc.hpp>

using namespace rankc;

/// The wrong value if the fault is compiled in, else the right one.
template <class T>
constexpr T fault([[maybe_unused]] T wrong, [[maybe_unused]] T right) {
#ifdef FAULT
  return wrong;
#else
  return right;
#endif
}

/// A value of the wrong type if the fault is compiled in, else the right one.
template <class Wrong, class Right>
constexpr auto fault_type([[maybe_unused]] Right right) {
#ifdef FAULT
  return Wrong{};
#else
  return right;
#endif
}

inline constexpr training recipe{.seq = 8, .global_batch = 4};
inline constexpr schedules::gpipe one_microbatch{.microbatches = 1};
