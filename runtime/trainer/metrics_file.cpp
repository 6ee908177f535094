// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/metrics_file.hpp>

#include <rankc/runtime/failure.hpp>
#include <rankc/launch/say_error.hpp>
#include <rankc/runtime/parse.hpp>

#include <fmt/format.h>
#include <cerrno>
#include <cstring>
#include <fstream>

namespace rankc::runtime {
namespace {

namespace fs = std::filesystem;

/// The existing file of that name, locked so that no other run takes it.
class earlier_file {
 public:
  explicit earlier_file(const fs::path& file) {
    if (is_stream(file)) return;
    while (open_and_lock(file) && !is_still(file)) close();
  }
  earlier_file(const earlier_file&) = delete;
  ~earlier_file() { close(); }

  bool is_there() const { return descriptor_ >= 0; }

 private:
  bool open_and_lock(const fs::path& file) {
    descriptor_ = ::open(file.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (descriptor_ < 0 && errno == ENOENT) return false;
    if (descriptor_ < 0) fail_to_write(file, 1);
    if (try_lock(descriptor_) != lock::taken) return true;
    close();
    throw failure(2, "RC6125: --metrics {} is written by another run; give this run another file", file);
  }

  /// False if another file got the name before this one was locked.
  bool is_still(const fs::path& file) const {
    struct stat opened{}, named{};
    return ::fstat(descriptor_, &opened) == 0 && ::stat(file.c_str(), &named) == 0 &&
           opened.st_dev == named.st_dev && opened.st_ino == named.st_ino;
  }

  void close() {
    if (descriptor_ >= 0) ::close(descriptor_);
    descriptor_ = -1;
  }

  int descriptor_ = -1;
};

/// Renames a file to the next free name: FILE.1, FILE.2, ...
fs::path keep_aside(const fs::path& file) {
  for (int n = 1;; ++n)
    if (const fs::path aside = file.string() + "." + std::to_string(n); rename_if_free(file, aside, 1))
      return aside;
}

constexpr std::string_view line_begin = "{\"step\":";
constexpr std::size_t at_once = std::size_t{1} << 20;  // bytes per copy

bool is_after(const std::string& line, std::int64_t step) {
  if (!line.starts_with(line_begin)) return false;
  const std::string_view rest = std::string_view(line).substr(line_begin.size());
  const auto number = parse_number<std::int64_t>(rest.substr(0, rest.find(',')));
  return number && *number > step;
}

/// Copies the lines up to a step, without a last line that was cut when its run was killed.
/// Returns: the number of other lines.
std::size_t copy_until(std::int64_t step, const fs::path& from, output_file& to) {
  std::ifstream in(from, std::ios::binary);
  std::size_t removed = 0;
  std::string kept;
  for (std::string line; std::getline(in, line);) {
    const bool is_cut = in.eof() && !line.ends_with('}');
    if (is_cut || is_after(line, step)) ++removed;
    else kept += line + "\n";
    if (kept.size() < at_once) continue;
    to.append(kept);
    kept.clear();
  }
  if (in.bad()) throw failure(1, "RC6126: metrics file {} cannot be read: {}", from, std::strerror(errno));
  to.append(kept);
  return removed;
}

}  // namespace

metrics_file::metrics_file(const fs::path& file, std::optional<std::int64_t> after) : out_(file, 1) {
  remove_unfinished(file.parent_path(), file.filename().string());
  bool is_free = !fs::exists(fs::symlink_status(file));
  const earlier_file earlier(file);
  if (earlier.is_there() && after) {
    if (const std::size_t removed = copy_until(*after, file, out_); removed > 0)
      notes_.push_back(fmt::format("{}: {} lines of steps after {} are removed, for these come again",
                                   file.string(), removed, *after));
  } else if (earlier.is_there() && fs::file_size(file) > 0) {
    notes_.push_back(fmt::format("the metrics of an earlier run are now {}", keep_aside(file).string()));
    is_free = true;
  }
  if (!is_free) out_.put_in_place();
  else if (!out_.put_in_free_place())
    throw failure(2, "RC6127: --metrics {} has just been created by another run; give this run another file",
                  file);
  if (!out_.is_locked() && !is_stream(file))
    notes_.push_back(fmt::format(
        "{}: its file system has no locks; a second run that writes it is not noticed", file.string()));
}

void metrics_file::write(const step_metrics& m) {
  if (failed_) return;
  try {
    out_.file().append_whole(json_line(m) + "\n");
  } catch (const failure& f) {
    failed_ = true;
    say_error("{}; training continues without it from step {} on\n", f.what(), m.step);
  }
}

bool metrics_file::is_one(std::string_view beginning) {
  return beginning.starts_with(line_begin) && beginning.find("\"loss\":") != beginning.npos;
}

}  // namespace rankc::runtime
