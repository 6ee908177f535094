// SPDX-License-Identifier: Apache-2.0
// The facts that each rank sends when it joins, and the verdict over the facts of all ranks.
#pragma once
#include <rankc/runtime/program.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace rankc::runtime {

/// A rank that joins. `facts` must be the same on all ranks, by name.
struct hello {
  int rank = 0, world = 0;
  std::string host;
  std::int64_t pid = 0;
  std::string plan;   // name and hash
  std::string build;  // hash of the program's file, which may differ between machines
  std::vector<std::pair<std::string, std::string>> facts;

  /// "rank 3 (node1, process 1234)"
  std::string who() const;
};

/// This process as a rank of a program.
hello hello_of(const description&, int rank, int world);

std::string pack(const hello&);
hello unpack_hello(const std::string& body);

/// The listing on which the ranks of a plan must agree, one item per line: dims, stages, parameters,
/// communicators, and the text of describe.
std::string listing_of(const description&);

/// The ranks of the world that have not joined.
std::vector<int> missing_ranks(const std::vector<hello>& joined, int world);

/// The reason why ranks cannot start together. The code is 75 if ranks are missing and all others agree, and
/// 2 otherwise.
struct start_fault {
  int code = 0;
  std::string text{};  // empty if they can start
};

/// Find ranks that joined twice, that are missing, or whose world, plan or facts differ from rank 0's.
/// `listings`: by rank, for rank 0 and for ranks whose plan differs; the first line that differs is named.
start_fault differences(const std::vector<hello>& joined, int world,
                        const std::map<int, std::string>& listings);

/// A note if the ranks have more than one build of the program; empty if they have one.
std::string builds_note(const std::vector<hello>& joined);

/// "0, 3..7 and 12"
std::string ranks_text(const std::vector<int>& sorted);

}  // namespace rankc::runtime
