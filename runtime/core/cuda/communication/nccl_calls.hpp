// SPDX-License-Identifier: Apache-2.0
// Arguments of NCCL calls: the element type, a communicator, and its number of members.
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

/// A lane's link over `over`.
/// Errors: failure (70) that names the message, if the lane has no such communicator.
const lane_link& link_of(const lane&, over, message);

/// The number of members of a communicator.
/// Errors: failure (70) that names `what`.
inline int members_of(const rank& r, const lane_link& k, const char* what) {
  int members = 0;
  check(r, ncclCommCount(k.nccl, &members), k.nccl, std::string(what) + ": ncclCommCount");
  return members;
}

}  // namespace rankc::runtime::cuda
