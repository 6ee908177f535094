// SPDX-License-Identifier: Apache-2.0
// What each rank says of itself when it joins, and the one verdict over what all have said.
#pragma once
#include <rankc/runtime/program.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace rankc::runtime {

/// What a rank says of itself. `facts` must be the same on all ranks, by name: versions, hashes.
struct hello {
  int rank = 0, world = 0;
  std::string host;
  std::int64_t pid = 0;
  std::string plan;  // name and hash
  std::vector<std::pair<std::string, std::string>> facts;

  /// "rank 3 (node1, process 1234)"
  std::string who() const;
};

/// Of this process and a program: its plan, its binary's hash, the version of rankc.
hello hello_of(const description&, int rank, int world);

std::string pack(const hello&);
hello unpack_hello(const std::string& body);

/// What two ranks of one plan must agree on, a line each: dims, stages, parameters, communicators, and what
/// describe says.
std::string listing_of(const description&);

/// Everything that is wrong with those who have joined: a rank twice, one that is missing, another world,
/// plan or fact than rank 0's; empty where nothing is. `listings`: by rank, of those whose plan differs and
/// of rank 0, so that the first line that differs is shown.
std::string differences(const std::vector<hello>& joined, int world,
                        const std::map<int, std::string>& listings);

/// "0, 3..7 and 12"
std::string ranks_text(const std::vector<int>& sorted);

}  // namespace rankc::runtime
