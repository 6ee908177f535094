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

/// All that ranks of one plan must agree on, a line each: dims, stages, parameters, communicators, and the
/// text of describe.
std::string listing_of(const description&);

/// The ranks of the world that have not joined.
std::vector<int> missing_ranks(const std::vector<hello>& joined, int world);

/// Why ranks cannot start together. The code is 75 where ranks are missing and all others agree, 2 otherwise.
struct start_fault {
  int code = 0;
  std::string text{};  // empty where they can start
};

/// Find ranks that joined twice, that are missing, or whose world, plan or facts differ from rank 0's.
/// `listings`: by rank, of rank 0 and of ranks whose plan differs, to name the first line that differs.
start_fault differences(const std::vector<hello>& joined, int world,
                        const std::map<int, std::string>& listings);

/// A note where the ranks have more than one build of the program; empty where they have one.
std::string builds_note(const std::vector<hello>& joined);

/// "0, 3..7 and 12"
std::string ranks_text(const std::vector<int>& sorted);

}  // namespace rankc::runtime
