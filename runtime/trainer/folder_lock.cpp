// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/folder_lock.hpp>

#include "checkpoint_names.hpp"

#include "../core/host_name.hpp"
#include <rankc/runtime/durable.hpp>

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <string>

namespace rankc::runtime {

folder_lock::folder_lock(const std::filesystem::path& folder) {
  const std::string file = (folder / lock_file).string();
  descriptor_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail_to_write(file, checkpoint_code);
  char owner[320]{};
  if (flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    const bool taken = errno == EWOULDBLOCK;
    const std::string why = std::strerror(errno);
    if (::read(descriptor_, owner, sizeof owner - 1) < 0) owner[0] = 0;
    close(descriptor_);
    if (!taken) throw failure(checkpoint_code, "RC6530: {} cannot be locked: {}", file, why);
    throw failure(checkpoint_code, "RC6531: another run saves in {} ({}); give this run another folder",
                  folder, owner);
  }
  const std::string mine = fmt::format("process {} on {}", getpid(), host_name());
  if (ftruncate(descriptor_, 0) != 0 || ::write(descriptor_, mine.data(), mine.size()) < 0)
    return;  // it is locked all the same
}

folder_lock::~folder_lock() { close(descriptor_); }

}  // namespace rankc::runtime
