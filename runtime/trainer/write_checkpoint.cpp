// SPDX-License-Identifier: Apache-2.0
// Writing a checkpoint: what each process does, and what the one does that speaks.
#include <rankc/trainer/checkpoint.hpp>

#include "checkpoint_names.hpp"
#include <rankc/launch/refusal.hpp>
#include <rankc/trainer/checksum.hpp>
#include <rankc/runtime/durable.hpp>

#include <fmt/format.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <functional>
#include <string>
#include <system_error>

namespace rankc::runtime {
namespace {

namespace fs = std::filesystem;

void create_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw refusal(65, "{}: cannot be created: {}", folder.string(), error.message());
}

void discard(const fs::path& path) {
  std::error_code ignored;  // what stays is refused by later writes, or costs room alone
  fs::remove_all(path, ignored);
}

/// Do `act` in every process, or in the one that speaks; what it returns, of all.
/// Errors: failure (65) in all of them where it fails in one.
std::string by_all(const placement& where, const std::string& name, const std::function<std::string()>& act) {
  std::string mine;
  try {
    mine = "+" + act();
  } catch (const std::exception& e) {
    mine = std::string("-") + e.what();
  }
  std::string all;
  for (const std::string& text : where.exchange ? where.exchange(name, mine) : std::vector{mine}) {
    if (text.starts_with('-')) throw failure::reported(65, text.substr(1));
    all += text.substr(1);
  }
  return all;
}

std::string by_speaker(const placement& where, const std::string& name, const std::function<void()>& act) {
  return by_all(where, name, [&] {
    if (where.speaks()) act();
    return std::string();
  });
}

/// Write what all ranks have in common; COMMIT says that everything is on disk.
void commit(const description& about, const run_state& state, const fs::path& folder, std::string lines) {
  const auto write = [&](const char* name, const std::string& text) {
    write_durably(folder / name, text);
    lines += fmt::format("{} {}\n", checksum::of(text), name);
  };
  write(index_file, index_text(saved_tensors(about, global_parameters(about))));
  write(run_file, run_state_text(state, about));
  flush_folder(folder);
  write_durably(folder / commit_file, lines);
  flush_folder(folder);
}

/// Give a whole checkpoint its name, and `latest` that of it.
void publish(const fs::path& unfinished, const fs::path& folder) {
  if (!fs::exists(folder)) {
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

/// Of the checkpoints of earlier steps let `keep` - 1 stay. One goes under a name that no loader reads, then
/// its files do.
void remove_old(const fs::path& folder, int keep) try {
  if (keep == 0) return;
  int left = keep - 1;
  for (const fs::path& old : find_checkpoints(folder.parent_path())) {
    if (step_of(old) >= step_of(folder) || left-- > 0) continue;
    const fs::path removed = old.parent_path() / ("." + old.filename().string() + ".removed");
    rename_durably(old, removed);
    discard(removed);
  }
} catch (const failure&) {  // one that cannot be removed costs room alone
}

/// What earlier saves were ended in, and what another one of this step may not find.
void remove_leftovers(const fs::path& directory) {
  std::vector<fs::path> left;
  for (const auto& entry : fs::directory_iterator(directory))
    if (const std::string name = entry.path().filename().string();
        name.starts_with(".step_") && (name.ends_with(".unfinished") || name.ends_with(".removed")))
      left.push_back(entry.path());
  for (const fs::path& path : left) discard(path);
}

}  // namespace

void prepare_save(const fs::path& directory) {
  create_folder(directory);
  if (access(directory.c_str(), W_OK | X_OK) != 0)
    throw refusal(65, "{}: cannot be written: {}", directory.string(), std::strerror(errno));
}

fs::path write_checkpoint(const description& about, const snapshot& from, const fs::path& directory,
                          const placement& where, int keep) {
  const std::string name = fmt::format("step_{:06}", from.state().step);
  const fs::path folder = directory / name, unfinished = directory / ("." + name + ".unfinished");
  if (where.is_one_rank() && about.world() > 1 && !where.exchange)
    throw refusal(65, "{}: cannot be written: the processes of this run have no way to agree on it",
                  folder.string());
  by_speaker(where, "save " + name + ": begin", [&] {
    create_folder(directory);
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
