// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/folder_lock.hpp>

#include "../core/host_name.hpp"
#include <rankc/launch/refusal.hpp>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <string>

namespace rankc::runtime {

folder_lock::folder_lock(const std::filesystem::path& folder) {
  const std::string file = (folder / ".lock").string();
  descriptor_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (descriptor_ < 0) throw refusal(65, "{}: cannot be written: {}", file, std::strerror(errno));
  char owner[320]{};
  if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    const bool taken = errno == EWOULDBLOCK;
    const std::string why = std::strerror(errno);
    if (::read(descriptor_, owner, sizeof owner - 1) < 0) owner[0] = 0;
    close(descriptor_);
    if (!taken) throw refusal(65, "{}: cannot be locked: {}", file, why);
    throw refusal(65, "{}: another run saves there ({}); give this one a folder of its own", folder.string(),
                  owner);
  }
  const std::string mine = fmt::format("process {} on {}", getpid(), host_name());
  if (ftruncate(descriptor_, 0) != 0 || ::write(descriptor_, mine.data(), mine.size()) < 0)
    return;  // it is locked all the same
}

folder_lock::~folder_lock() { close(descriptor_); }

}  // namespace rankc::runtime
