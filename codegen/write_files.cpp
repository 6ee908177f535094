// SPDX-License-Identifier: Apache-2.0
#include "write_files.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

namespace rankc::codegen {
namespace {

namespace fs = std::filesystem;

bool contains(const fs::path& file, const std::string& text) {
  std::ifstream in(file, std::ios::binary);
  return in && std::string(std::istreambuf_iterator<char>(in), {}) == text;
}

[[noreturn]] void fail(const fs::path& file, int error) {
  throw std::runtime_error(fmt::format("cannot write {}: {}", file.string(), std::strerror(error)));
}

void write(const fs::path& to, const std::string& text, const fs::path& name) {
  std::ofstream out(to, std::ios::binary);
  out << text;
  if (!out.flush()) fail(name, errno);
}

/// A file written beside its place; it goes with this object unless it was moved there.
class unfinished {
 public:
  unfinished(fs::path place, const std::string& text)
      : place_(std::move(place)), beside_(place_.string() + ".unfinished"), written_(true) {
    try {
      write(beside_, text, place_);
    } catch (...) {
      remove();
      throw;
    }
  }
  unfinished(unfinished&& from) noexcept
      : place_(std::move(from.place_)),
        beside_(std::move(from.beside_)),
        written_(std::exchange(from.written_, false)) {}
  unfinished(const unfinished&) = delete;
  ~unfinished() { remove(); }

  void move_to_place() {
    std::error_code error;
    fs::rename(beside_, place_, error);
    if (error) fail(place_, error.value());
    written_ = false;
  }

 private:
  void remove() noexcept {
    std::error_code ignored;
    if (std::exchange(written_, false)) fs::remove(beside_, ignored);
  }

  fs::path place_, beside_;
  bool written_ = false;
};

}  // namespace

bool write_files(const fs::path& folder, const std::map<std::string, std::string>& files) {
  std::vector<unfinished> changed;
  for (const auto& [name, text] : files)
    if (!contains(folder / name, text)) changed.emplace_back(folder / name, text);
  for (unfinished& file : changed) file.move_to_place();
  return !changed.empty();
}

bool write_file(const fs::path& file, const std::string& text) {
  const fs::file_type type = fs::symlink_status(file).type();
  if (type != fs::file_type::regular && type != fs::file_type::not_found) {
    write(file, text, file);
    return true;
  }
  return write_files(file.parent_path(), {{file.filename().string(), text}});
}

}  // namespace rankc::codegen
