// SPDX-License-Identifier: Apache-2.0
// What calls of NCCL are given: the type of an element, a communicator, and how many members it has.
#pragma once
#include "../device/check.hpp"

#include <string>
#include <type_traits>

namespace rankc::runtime::cuda {

template <class T>
inline constexpr ncclDataType_t nccl_type = ncclBfloat16;
template <>
inline constexpr ncclDataType_t nccl_type<float> = ncclFloat32;
template <>
inline constexpr ncclDataType_t nccl_type<double> = ncclFloat64;

/// What a lane communicates over. Errors: failure (70) that names the message, where it has no such
/// communicator.
const lane_link& link_of(const lane&, over, message);

/// Errors: failure (70) that names `what`.
inline int members_of(const rank& r, const lane_link& k, const char* what) {
  int members = 0;
  check(r, ncclCommCount(k.nccl, &members), k.nccl, std::string(what) + ": ncclCommCount");
  return members;
}

}  // namespace rankc::runtime::cuda
