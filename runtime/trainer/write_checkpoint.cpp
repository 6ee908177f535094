// SPDX-License-Identifier: Apache-2.0
// Writes a checkpoint: each process writes the files of its ranks, and one process writes the others.
#include <rankc/trainer/checkpoint.hpp>

#include "checkpoint_names.hpp"
#include <rankc/runtime/durable.hpp>
#include <rankc/trainer/checksum.hpp>
#include <rankc/trainer/model_files.hpp>

#include <fmt/format.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <string>
#include <system_error>
#include <vector>

namespace rankc::runtime {
namespace {

namespace fs = std::filesystem;

void create_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) fail_to_write(folder, checkpoint_code, error.value());
}

/// Creates a folder, and flushes the folders that got a new entry.
/// Returns: false if one of them cannot be flushed.
bool create_durably(const fs::path& folder) {
  std::error_code ignored;
  std::vector<fs::path> parents;
  for (fs::path at = folder; !at.empty() && !fs::exists(at, ignored); at = at.parent_path())
    parents.push_back(at.parent_path());
  create_folder(folder);
  return std::all_of(parents.begin(), parents.end(), [](const fs::path& at) { return flush_folder(at); });
}

void discard(const fs::path& path) {
  std::error_code ignored;  // a path that stays is refused by later writes, or only wastes space
  fs::remove_all(path, ignored);
}

/// Calls `act` in every process.
/// Returns: the texts of all processes, joined.
/// Errors: failure (65) in all processes if one fails.
std::string by_all(const placement& where, const std::string& name, const std::function<std::string()>& act) {
  std::string mine;
  try {
    mine = "+" + act();
  } catch (const std::exception& e) {
    mine = std::string("-") + e.what();
  }
  std::string all;
  for (const std::string& text : where.exchange ? where.exchange(name, mine) : std::vector{mine}) {
    if (text.starts_with('-')) throw failure::reported(checkpoint_code, text.substr(1));
    all += text.substr(1);
  }
  return all;
}

/// The same, but only the process that prints calls `act`.
std::string by_speaker(const placement& where, const std::string& name, const std::function<void()>& act) {
  return by_all(where, name, [&] {
    if (where.speaks()) act();
    return std::string();
  });
}

/// Writes the files that all ranks share. COMMIT is written last: it marks that everything is on disk.
void commit(const description& about, const run_state& state, const fs::path& folder, std::string lines) {
  const auto write = [&](const char* name, const std::string& text) {
    write_durably(folder / name, text);
    lines += fmt::format("{} {}\n", checksum::of(text), name);
  };
  write(index_file, index_text(saved_tensors(about, global_parameters(about)),
                               static_cast<std::size_t>(about.vocab_used)));
  write(run_file, run_state_text(state, about));
  flush_folder(folder);
  write_durably(folder / commit_file, lines);
  flush_folder(folder);
}

/// Renames a complete checkpoint to its final name, and writes this name to `latest`.
void publish(const fs::path& unfinished, const fs::path& folder) {
  if (!is_there(folder, checkpoint_code)) {
    rename_durably(unfinished, folder);
  } else if (!exchange_durably(unfinished, folder)) {
    discard(replaced_folder(folder));
    rename_durably(folder, replaced_folder(folder));
    rename_durably(unfinished, folder);
  }
  const fs::path latest = folder.parent_path() / latest_file,
                 next = folder.parent_path() / ".latest.unfinished";
  discard(next);
  write_durably(next, folder.filename().string() + "\n");
  rename_durably(next, latest);
  discard(unfinished);
  discard(replaced_folder(folder));
}

/// Removes checkpoints of earlier steps, except the newest `keep` - 1. Each is renamed to a name that no
/// loader reads before its files are removed.
void remove_old(const fs::path& folder, int keep) try {
  if (keep == 0) return;
  int left = keep - 1;
  for (const fs::path& old : find_checkpoints(folder.parent_path())) {
    if (step_of(old) >= step_of(folder) || left-- > 0) continue;
    const fs::path removed = old.parent_path() / ("." + old.filename().string() + ".removed");
    rename_durably(old, removed);
    discard(removed);
  }
} catch (const std::exception&) {  // the new checkpoint is on disk; an old one that stays only wastes space
}

/// Removes the files of saves that a crash interrupted.
void remove_leftovers(const fs::path& directory) {
  for (const fs::path& path : entries_of(directory, checkpoint_code))
    if (const std::string name = path.filename().string();
        name.starts_with(".step_") && (name.ends_with(".unfinished") || name.ends_with(".removed")))
      discard(path);
}

}  // namespace

std::vector<std::string> prepare_save(const fs::path& directory) {
  const bool flushed = create_durably(directory);
  if (access(directory.c_str(), W_OK | X_OK) != 0) fail_to_write(directory, checkpoint_code);
  if (flushed && flush_folder(directory)) return {};
  return {
      say("RC6636: {}: the file system cannot flush folders to disk; a save may be lost if the machine fails",
          directory)};
}

fs::path write_checkpoint(const description& about, const snapshot& from, const fs::path& directory,
                          const placement& where, int keep) {
  const std::string name = fmt::format("step_{:06}", from.state().step);
  const fs::path folder = directory / name, unfinished = directory / ("." + name + ".unfinished");
  if (where.is_one_rank() && about.world() > 1 && !where.exchange)
    throw failure(checkpoint_code, "RC6635: {} cannot be saved: the processes of this run cannot communicate",
                  folder);
  by_speaker(where, "save " + name + ": begin", [&] {
    create_durably(directory);
    remove_leftovers(directory);
    create_folder(unfinished);
  });
  try {
    const std::string lines =
        by_all(where, "save " + name + ": files", [&] { return from.write_files(unfinished); });
    by_speaker(where, "save " + name + ": commit", [&] {
      commit(about, from.state(), unfinished, lines);
      publish(unfinished, folder);
      remove_old(folder, keep);
    });
  } catch (...) {
    if (where.speaks()) discard(unfinished);
    throw;
  }
  return folder;
}

fs::path save_checkpoint(engine& e, const run_state& state, const fs::path& directory) {
  return write_checkpoint(e.about(), snapshot(e, state), directory);
}

}  // namespace rankc::runtime
