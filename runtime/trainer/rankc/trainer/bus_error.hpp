// SPDX-License-Identifier: Apache-2.0
// Where the system cannot read what a file's memory should hold, it ends the program with SIGBUS. Here the
// program says first which file that was.
#pragma once
#include <atomic>
#include <cstddef>
#include <string>

namespace rankc::runtime {

/// Memory that a file is mapped to, in a list that a signal handler can walk. Places stay in the list and are
/// taken again.
struct mapped_place {
  std::atomic<bool> is_taken{true};
  std::atomic<const char*> begin{nullptr};  // null while the line changes
  std::size_t size = 0;
  std::string told;  // the line that names the file
  mapped_place* next = nullptr;
};

/// Enter the memory of a file; leave before it is unmapped.
mapped_place* enter_mapped(const char* begin, std::size_t size, const std::string& name);
void leave_mapped(mapped_place*) noexcept;

/// From here on SIGBUS in such memory ends the process after a line that names the file.
void name_file_of_bus_error();

}  // namespace rankc::runtime
