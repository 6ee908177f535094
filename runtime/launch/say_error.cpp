// SPDX-License-Identifier: Apache-2.0
#include <rankc/launch/say_error.hpp>

#include <fcntl.h>
#include <unistd.h>
#include <cerrno>

namespace rankc::runtime {

void write_error(std::string_view text) noexcept {
  const int before = errno;  // errno of the code that a signal handler interrupts
  while (!text.empty()) {
    const ssize_t written = write(STDERR_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) break;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  errno = before;
}

void reserve_standard_files() noexcept {
  for (const int descriptor : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    if (fcntl(descriptor, F_GETFD) < 0 && errno == EBADF)
      open("/dev/null", O_RDONLY);  // takes the lowest free number, which is this one
}

}  // namespace rankc::runtime
