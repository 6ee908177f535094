// SPDX-License-Identifier: Apache-2.0
// Connections for data between all processes of a program.
#pragma once
#include <rankc/runtime/peers.hpp>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace rankc::runtime {

using exchange_function =
    std::function<std::vector<std::string>(const std::string& name, const std::string& mine)>;

struct data_end {
  int rank, world;
  std::string address;                 // this machine's address, at which the others reach it
  std::chrono::milliseconds patience;  // limit for one transfer
};

/// Connect with all other processes, which find each other through an exchange.
/// Errors: failure (1) if this build has no transport.
std::unique_ptr<transport> connect_all(const exchange_function&, const data_end&);

}  // namespace rankc::runtime
