// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/data_files.hpp>

#include "beside_tokens.hpp"
#include "checkpoint_names.hpp"
#include <rankc/runtime/failure.hpp>
#include <rankc/runtime/output_rules.hpp>
#include <rankc/runtime/trace_events.hpp>
#include <rankc/trainer/metrics_file.hpp>
#include <rankc/trainer/model_files.hpp>
#include <rankc/trainer/piece_source.hpp>

#include <fmt/format.h>
#include <glob.h>
#include <algorithm>
#include <fstream>
#include <system_error>

namespace rankc::runtime {
namespace {

namespace fs = std::filesystem;

/// True for the `latest` file of checkpoints and the lock of their folder.
bool belongs_to_checkpoints(const fs::directory_entry& file) {
  const std::string name = file.path().filename().string();
  if (name == lock_file) return true;
  if (name != latest_file || file.file_size() > longest_latest) return false;
  std::ifstream in(file.path());
  std::string checkpoint;
  std::getline(in, checkpoint);
  return step_of(checkpoint) >= 0 && fs::is_directory(file.path().parent_path() / checkpoint);
}

std::string reason_to_skip_link(const fs::directory_entry& link, const fs::path& root) {
  std::error_code error;
  const fs::path target = fs::canonical(link.path(), error);
  if (error) return "a link to nothing";
  if (fs::is_directory(target)) return "a link to a folder";
  if (!fs::is_regular_file(target)) return "no regular file";
  const bool is_inside =
      std::mismatch(root.begin(), root.end(), target.begin(), target.end()).first == root.end();
  return is_inside ? "a link to a file of the folder" : "";
}

/// The reason why a data folder skips an entry; empty if it does not.
std::string reason_to_skip(const fs::directory_entry& entry, const fs::path& root) {
  const fs::path& path = entry.path();
  if (entry.is_symlink()) return reason_to_skip_link(entry, root);
  if (entry.is_directory()) {
    if (path.filename().string().starts_with('.')) return "its name begins with a dot";
    if (fs::exists(path / commit_file) && fs::exists(path / run_file)) return "a checkpoint";
    return find_model_file(path, 1).empty() ? "" : "a model";
  }
  if (!entry.is_regular_file()) return "no regular file";
  if (belongs_to_checkpoints(entry)) return "of checkpoints";
  const std::string beginning = beginning_of(path);
  if (metrics_file::is_one(beginning)) return "metrics";
  return is_trace(beginning) ? "a trace" : "";
}

data_files files_below(const fs::path& folder) {
  data_files found;
  std::error_code error;
  const fs::path root = fs::canonical(folder, error);
  auto entry = fs::recursive_directory_iterator(folder, error);
  for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
    const std::string reason = reason_to_skip(*entry, root);
    if (!reason.empty()) {
      if (entry->is_directory()) entry.disable_recursion_pending();
      found.skipped.push_back(fmt::format("{} ({})", entry->path().string(), reason));
    } else if (!entry->is_directory()) {
      found.files.push_back(entry->path());
    }
  }
  if (error) throw failure(1, "RC6145: folder {} cannot be read: {}", folder, error.message());
  std::sort(found.files.begin(), found.files.end(),
            [](const fs::path& a, const fs::path& b) { return a.generic_string() < b.generic_string(); });
  std::sort(found.skipped.begin(), found.skipped.end());
  return found;
}

std::vector<fs::path> files_of_pattern(const fs::path& pattern) {
  glob_t found{};
  const int wrong = glob(pattern.c_str(), 0, nullptr, &found);  // sorted
  std::vector<fs::path> files(found.gl_pathv, found.gl_pathv + (wrong == 0 ? found.gl_pathc : 0));
  globfree(&found);
  if (files.empty()) throw failure(1, "RC6146: no file has a name like {}", pattern);
  return files;
}

}  // namespace

bool has_entry(const fs::path& path) {
  std::error_code error;
  const fs::file_status found = fs::symlink_status(path, error);
  if (error && error != std::errc::no_such_file_or_directory && error != std::errc::not_a_directory &&
      error != std::errc::filename_too_long)
    throw fs::filesystem_error("", path, error);
  return fs::exists(found);
}

data_files find_data_files(const fs::path& path) {
  std::error_code error;  // a name that no file can have is refused when it is opened
  if (fs::is_directory(path, error)) return files_below(path);
  if (!has_entry(path) && path.string().find_first_of("*?") != std::string::npos)
    return {files_of_pattern(path), {}};
  if (path.extension() == index_extension) return {{fs::path(path).replace_extension(".bin")}, {}};
  if (!has_entry(path) && has_entry(path.string().append(index_extension)))
    return {{path.string() + ".bin"}, {}};
  return {{path}, {}};
}

}  // namespace rankc::runtime
