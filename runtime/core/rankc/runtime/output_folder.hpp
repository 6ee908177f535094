// SPDX-License-Identifier: Apache-2.0
// Several files that a command writes into one folder. None gets its name before all are on disk.
#pragma once
#include <rankc/runtime/output_file.hpp>

namespace rankc::runtime {

class output_folder {
 public:
  /// Locks a folder against other commands of this kind, and removes the leftovers of a killed one.
  /// Errors: failure (2) if another command writes there; failure (`code`) that names the file that cannot be
  /// written, here and below.
  output_folder(const std::filesystem::path& folder, int code)
      : folder_(folder),
        unfinished_(folder / ".rankc.unfinished"),
        code_(code),
        descriptor_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
    if (descriptor_ < 0) fail_to_write(folder, code);
    try {
      if (try_lock(descriptor_) == lock::taken)
        throw failure(2, "RC5019: another command is writing to {}; name another folder, or wait", folder);
      std::error_code error;
      std::filesystem::remove_all(unfinished_, error);
      std::filesystem::create_directory(unfinished_, error);
      if (error) fail_to_write(unfinished_, code, error.value());
    } catch (...) {
      ::close(descriptor_);
      throw;
    }
  }
  output_folder(const output_folder&) = delete;
  ~output_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(unfinished_, ignored);
    ::close(descriptor_);
  }

  const std::filesystem::path& path() const { return folder_; }
  /// The folder of the unfinished files.
  const std::filesystem::path& unfinished() const { return unfinished_; }

  /// Writes an unfinished file. A failure names its final place.
  void write(const std::string& name, std::string_view text) {
    const int descriptor =
        ::open((unfinished_ / name).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor < 0) fail_to_write(folder_ / name, code_);
    durable_file out(descriptor, folder_ / name, code_);
    out.append(text.data(), text.size());
    out.close();
  }

  /// Gives the files their names, one after the other.
  void put_in_place(const std::vector<std::string>& names) {
    for (const std::string& name : names)
      if (std::rename((unfinished_ / name).c_str(), (folder_ / name).c_str()) != 0)
        fail_to_write(folder_ / name, code_);
    flush_folder(folder_, code_);
  }

 private:
  std::filesystem::path folder_, unfinished_;
  int code_, descriptor_;
};

}  // namespace rankc::runtime
