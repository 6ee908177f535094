// SPDX-License-Identifier: Apache-2.0
// Finds and reads checkpoints.
#include <rankc/trainer/checkpoint.hpp>

#include "checkpoint_names.hpp"
#include "weights_names.hpp"
#include "hugging_face_source.hpp"
#include "tensor_names.hpp"
#include "vocabulary_source.hpp"
#include <rankc/trainer/model_files.hpp>
#include <rankc/trainer/parallel.hpp>
#include <rankc/trainer/parameters.hpp>

#include <fmt/format.h>
#include <algorithm>
#include <set>
#include <sstream>
#include <system_error>

namespace rankc::runtime {
namespace {

namespace fs = std::filesystem;

const std::vector<saved_region> weights_alone{{region::weights, ""}};

/// The name in a folder's `latest`; empty if there is no such file.
/// Errors: failure (65) if it cannot be read or is too long for a name.
std::string name_in_latest(const fs::path& folder) {
  if (!is_there(folder / latest_file, checkpoint_code)) return "";
  const std::string text = contents_of_file(folder / latest_file, checkpoint_code, longest_latest);
  return text.substr(0, text.find('\n'));
}

/// True if a folder holds COMMIT. A loop of links, or a folder without search permission, is no checkpoint.
bool is_checkpoint(const fs::path& folder) {
  std::error_code error;
  return fs::exists(folder / commit_file, error);
}

/// The step that `latest` names; -1 if it names none.
std::int64_t latest_step(const fs::path& folder) try {
  return step_of(name_in_latest(folder));
} catch (const failure&) {
  return -1;
}

bool is_folder(const fs::path& path) {
  std::error_code error;  // a path that cannot be accessed was refused earlier
  return fs::is_directory(path, error);
}

/// Calls `visit` for each region of each parameter, with a few threads.
template <class Visit>
void for_each_tensor(const std::vector<global_parameter>& parameters,
                     const std::vector<saved_region>& regions, const Visit& visit) {
  for_each_in_parallel(parameters.size() * regions.size(), [&](std::size_t i) {
    const saved_region& saved = regions[i / parameters.size()];
    const global_parameter& p = parameters[i % parameters.size()];
    if (has(p, saved.where)) visit(p, saved.where, saved.prefix + p.name);
  });
}

/// Checks the tensors that the ranks of a process need, or all tensors.
void check_values(tensor_source& in, const std::vector<global_parameter>& parameters,
                  const std::vector<saved_region>& regions, const placement& where) {
  for_each_tensor(parameters, regions, [&](const global_parameter& p, region, const std::string& name) {
    for (const shard& s : p.holders)
      if (!where.is_one_rank() || where.rank == s.rank) in.check(name, area_of(s));
  });
}

void load_tensors(engine& e, const std::vector<global_parameter>& parameters,
                  const std::vector<saved_region>& regions, const tensor_source& in) {
  for_each_tensor(parameters, regions, [&](const global_parameter& p, region r, const std::string& name) {
    write(e, p, r, in, name);
  });
}

/// A checkpoint that matches its checksums in the regions that a process needs.
/// Errors: failure (1).
open_checkpoint open_whole(const description& about, const fs::path& folder, const placement& where) {
  const auto parameters = global_parameters(about);
  const auto regions = saved_regions(about);
  auto tensors =
      with_plan_vocabulary(std::make_unique<piece_source>(folder, !about.trains), about, parameters, regions);
  try {
    check_tensors(*tensors, parameters, regions);
  } catch (failure& f) {
    f.code = 65;  // not damaged, but a checkpoint of another model
    throw;
  }
  check_values(*tensors, parameters, regions, where);
  std::vector<std::string> notes = tensors->notes();
  return {folder, read_run_state(about, folder / run_file), std::move(tensors), std::move(notes)};
}

/// The reason why the checkpoint that `latest` names is not the first choice, if it is not.
std::vector<std::string> notes_of_latest(const fs::path& path, const fs::path& first) {
  std::string name;
  try {
    name = name_in_latest(path);
  } catch (const failure& f) {
    return {say("RC6506: checkpoint {} is used, because the newest is not known: {}", first, f.what())};
  }
  if (name.empty() || path == first || name == first.filename() || step_of(name) == step_of(first)) return {};
  return {say("RC6500: {} points to \"{}\", which is not a checkpoint; {} is used instead",
              path / latest_file, name, first)};
}

/// The checkpoints of a path that every process sees, in the order of the first process.
std::vector<fs::path> seen_by_all(const std::vector<fs::path>& mine, const placement& where) {
  if (!where.exchange) return mine;
  std::string names;
  for (const fs::path& folder : mine) names += folder.filename().string() + "\n";
  const std::vector<std::string> all = where.exchange("load: checkpoints", names);
  std::vector<fs::path> common;
  std::istringstream first(all.front());
  for (std::string name; std::getline(first, name);) {
    const bool everywhere = std::all_of(all.begin(), all.end(), [&](const std::string& list) {
      return ("\n" + list).find("\n" + name + "\n") != list.npos;
    });
    const auto at =
        std::find_if(mine.begin(), mine.end(), [&](const fs::path& f) { return f.filename() == name; });
    if (everywhere && at != mine.end()) common.push_back(*at);
  }
  return common;
}

/// Opens the weights of a path: a checkpoint, a Hugging Face folder, or a file.
std::unique_ptr<tensor_source> open_source(const description& about,
                                           const std::vector<global_parameter>& given, const fs::path& path) {
  const std::vector<fs::path> checkpoints = find_checkpoints(path);
  if (const fs::path model = find_model_file(path, 1); !checkpoints.empty() && !model.empty())
    throw failure(1, "RC6324: {} has the model file {} and the checkpoint {}; name one of them, or move one",
                  path, model.filename(), checkpoints.front());
  if (!checkpoints.empty()) return std::make_unique<piece_source>(checkpoints.front(), true);
  if (is_hugging_face(path)) return std::make_unique<hugging_face_source>(about, given, path);
  const fs::path file = is_folder(path) ? path / weights_file : path;
  return std::make_unique<piece_source>(file.string(), std::vector{file});
}

}  // namespace

std::vector<fs::path> find_checkpoints(const fs::path& path) {
  if (!is_there(path, checkpoint_code)) return {};
  if (is_checkpoint(path)) return {path};
  if (!is_folder(path)) return {};
  const std::int64_t latest = latest_step(path);
  std::vector<fs::path> all;
  for (const fs::path& folder : entries_of(path, checkpoint_code)) {
    const bool replaced = folder.filename().string().ends_with(replaced_suffix);
    if (step_of(folder) < 0 || !is_checkpoint(folder)) continue;
    if (!replaced || !is_checkpoint(path / fmt::format("{}{:06}", step_prefix, step_of(folder))))
      all.push_back(folder);
  }
  const auto is_later = [&](const fs::path& f) { return latest >= 0 && step_of(f) > latest; };
  std::sort(all.begin(), all.end(), [&](const fs::path& a, const fs::path& b) {
    return is_later(a) != is_later(b) ? is_later(b) : step_of(a) > step_of(b);
  });
  return all;
}

fs::path find_checkpoint(const fs::path& path) {
  if (!is_there(path, checkpoint_code))
    throw failure(65, "RC6501: checkpoint folder {} does not exist", path);
  const std::vector<fs::path> all = find_checkpoints(path);
  if (all.empty())
    throw failure(65, "RC6502: {} holds no checkpoint: neither it nor a folder {}* in it has the file {}",
                  path, step_prefix, commit_file);
  return all.front();
}

open_checkpoint open_newest(const description& about, const fs::path& path, const placement& where) {
  const std::vector<fs::path> all = seen_by_all(find_checkpoints(path), where);
  if (all.empty()) {
    const fs::path newest = find_checkpoint(path);  // throws for a path without a checkpoint
    throw failure(65,
                  "RC6503: {} holds no checkpoint that all processes can read; this one can read {}. Use "
                  "shared storage",
                  path, newest);
  }
  std::vector<std::string> notes = notes_of_latest(path, all.front()), faults;
  for (const fs::path& folder : all) {
    std::string fault;
    open_checkpoint found;
    try {
      found = open_whole(about, folder, where);
    } catch (const failure& f) {
      if (f.code != 1) throw;
      fault = f.what();
    }
    if (where.exchange)
      for (const std::string& other : where.exchange("load: " + folder.filename().string(), fault))
        if (fault.empty()) fault = other;
    if (fault.empty()) {
      for (const std::string& earlier : faults)
        notes.push_back(say("RC6504: checkpoint {} is used instead of a damaged one: {}", folder, earlier));
      found.notes.insert(found.notes.begin(), notes.begin(), notes.end());
      return found;
    }
    faults.push_back(fault);
  }
  if (all.size() == 1) throw failure::reported(65, faults.front());
  throw failure(65, "RC6505: all {} checkpoints of {} are damaged; the first: {}", all.size(), path,
                faults.front());
}

void load_checkpoint(engine& e, const open_checkpoint& from) {
  load_tensors(e, global_parameters(e.about()), saved_regions(e.about()), *from.tensors);
}

void load_checkpoint(engine& e, const fs::path& folder) {
  load_checkpoint(e, open_newest(e.about(), folder));
}

std::unique_ptr<tensor_source> open_weights(const description& about, const fs::path& folder) try {
  const auto parameters = global_parameters(about);
  auto in =
      with_plan_vocabulary(std::make_unique<piece_source>(folder, true), about, parameters, weights_alone);
  check_tensors(*in, parameters, weights_alone);
  check_values(*in, parameters, weights_alone, {});
  return in;
} catch (failure& f) {
  f.code = 65;
  throw;
}

std::vector<std::string> load_weights(engine& e, const fs::path& path, const placement& where,
                                      std::vector<std::string>* notes) {
  const auto all = global_parameters(e.about());
  std::vector<global_parameter> given, beside;
  for (const global_parameter& p : all)
    (e.about().lora_scale != 0 && is_beside(p, all) ? beside : given).push_back(p);
  const std::unique_ptr<tensor_source> in =
      with_plan_vocabulary(open_source(e.about(), given, path), e.about(), all, weights_alone);
  if (notes != nullptr) *notes = in->notes();
  const bool has_any =
      std::any_of(beside.begin(), beside.end(), [&](const auto& p) { return in->shapes().contains(p.name); });
  if (has_any) {
    given = all;
    beside.clear();
  }
  check_tensors(*in, given, weights_alone);
  check_values(*in, given, weights_alone, where);
  load_tensors(e, given, weights_alone, *in);
  initialise(e, beside, 1);
  std::vector<std::string> started;
  for (const global_parameter& p : beside) started.push_back(p.name);
  return started;
}

}  // namespace rankc::runtime
