// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/folder_lock.hpp>

#include "checkpoint_names.hpp"

#include "../core/host_name.hpp"
#include <rankc/runtime/output_file.hpp>

#include <fmt/format.h>

#include <fcntl.h>
#include <unistd.h>
#include <string>

namespace rankc::runtime {

folder_lock::folder_lock(const std::filesystem::path& folder) {
  const std::string file = (folder / lock_file).string();
  descriptor_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (descriptor_ < 0) fail_to_write(file, checkpoint_code);
  const lock got = try_lock(descriptor_);
  is_held_ = got == lock::held;
  if (got == lock::taken) {
    char owner[320]{};
    if (::read(descriptor_, owner, sizeof owner - 1) < 0) owner[0] = 0;
    close(descriptor_);
    throw failure(checkpoint_code, "RC6531: another run saves in {} ({}); give this run another folder",
                  folder, owner);
  }
  const std::string mine = fmt::format("process {} on {}", getpid(), host_name());
  if (ftruncate(descriptor_, 0) != 0 || ::write(descriptor_, mine.data(), mine.size()) < 0)
    return;  // without the owner's name, only the other run's message is less clear
}

folder_lock::~folder_lock() { close(descriptor_); }

}  // namespace rankc::runtime
