// SPDX-License-Identifier: Apache-2.0
// The system ends a program with SIGBUS if it cannot read the file behind a mapped page. The handler here
// prints the name of that file first.
#pragma once
#include <atomic>
#include <cstddef>
#include <string>

namespace rankc::runtime {

/// A mapped range of a file, in a list that a signal handler can walk. Entries stay in the list and are
/// reused.
struct mapped_place {
  std::atomic<bool> is_taken{true};
  std::atomic<const char*> begin{nullptr};  // null while the entry changes
  std::size_t size = 0;
  std::string line;  // the line that names the file
  mapped_place* next = nullptr;
};

/// Adds the memory of a file; call leave_mapped before it is unmapped.
mapped_place* enter_mapped(const char* begin, std::size_t size, const std::string& name);
void leave_mapped(mapped_place*) noexcept;

/// After this call, a SIGBUS in such memory prints a line that names the file and ends the process.
void name_file_of_bus_error();

}  // namespace rankc::runtime
