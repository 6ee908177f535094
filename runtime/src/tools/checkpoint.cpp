// SPDX-License-Identifier: Apache-2.0
#include <rankc/runtime/tools/checkpoint.hpp>

#include "refusal.hpp"
#include <rankc/runtime/tools/durable.hpp>
#include <rankc/runtime/tools/parameters.hpp>
#include <rankc/runtime/tools/safetensors.hpp>

#include <fmt/format.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <set>
#include <string>
#include <system_error>
#include <vector>

namespace rankc::runtime {
namespace {

namespace fs = std::filesystem;

/// A file's tensors: each region of each parameter, under prefix + name.
struct part {
  region where;
  const char* prefix;
};
const std::vector<part> model_parts = {{region::weights, ""}};
std::vector<part> optimizer_parts(const description& about) {
  std::vector<part> parts = {{region::first_moment, "m."}, {region::second_moment, "v."}};
  parts.resize(static_cast<std::size_t>(about.moments), parts[0]);
  return parts;
}

constexpr std::size_t names_listed = 20;

void save_tensors(engine& e, const std::vector<global_parameter>& parameters, const std::vector<part>& parts,
                  const run_state& state, const fs::path& file) {
  std::vector<safetensors_writer::tensor> tensors;
  for (const part& part : parts)
    for (const global_parameter& p : parameters) tensors.push_back({part.prefix + p.name, p.shape()});
  safetensors_writer out(file, tensors, type_of(e.about(), parts.front().where), {{"step", std::to_string(state.step)}});
  for (const part& part : parts)
    for (const global_parameter& p : parameters)
      read(e, p, part.where,
           [&](std::size_t, std::span<const double> values) { out.append(values.data(), values.size()); });
  out.close();
}

void list(std::vector<std::string>& faults, const char* what, const std::vector<std::string>& names) {
  if (names.empty()) return;
  const std::size_t shown = std::min(names.size(), names_listed);
  const auto rest = names.size() > shown ? fmt::format(" and {} more", names.size() - shown) : "";
  faults.push_back(fmt::format("{} {}{}", what, fmt::join(names.begin(), names.begin() + shown, ", "), rest));
}

/// Refuse a file whose tensors are not exactly those that this model has.
void check_tensors(const safetensors_reader& in, const std::vector<global_parameter>& parameters,
                   const std::vector<part>& parts, const fs::path& file) {
  std::vector<std::string> missing, shapes, unexpected;
  std::set<std::string> expected;
  for (const part& part : parts)
    for (const global_parameter& p : parameters) {
      const std::string name = *expected.insert(part.prefix + p.name).first;
      const auto found = in.tensors().find(name);
      if (found == in.tensors().end()) missing.push_back(name);
      else if (found->second.shape != p.shape())
        shapes.push_back(
            fmt::format("{} {} instead of {}", name, shape_text(found->second.shape), shape_text(p.shape())));
    }
  for (const auto& [name, tensor] : in.tensors())
    if (!expected.contains(name)) unexpected.push_back(name);
  std::vector<std::string> faults;
  list(faults, "it lacks", missing);
  list(faults, "it has, unexpectedly,", unexpected);
  list(faults, "it has other shapes:", shapes);
  if (!faults.empty())
    throw refusal(1, "{}: does not hold this model's tensors: {}", file.string(), fmt::join(faults, "; "));
}

void load_tensors(engine& e, const std::vector<global_parameter>& parameters, const std::vector<part>& parts,
                  safetensors_reader& in) {
  for (const part& part : parts)
    for (const global_parameter& p : parameters)
      write(e, p, part.where, [&](std::size_t first, std::span<double> values) {
        in.read(part.prefix + p.name, first, values.size(), values.data());
      });
}

std::string first_line(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

bool is_checkpoint(const fs::path& folder) { return fs::exists(folder / "run.json"); }

/// Where a checkpoint is that another of the same step is about to replace, if folders cannot be exchanged.
fs::path replaced_folder(const fs::path& folder) {
  return folder.parent_path() / ("." + folder.filename().string() + ".replaced");
}

void create_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw refusal(65, "{}: cannot be created: {}", folder.string(), error.message());
}

}  // namespace

void prepare_save(const fs::path& directory) {
  create_folder(directory);
  if (access(directory.c_str(), W_OK | X_OK) != 0)
    throw refusal(65, "{}: cannot be written: {}", directory.string(), std::strerror(errno));
}

fs::path save_checkpoint(engine& e, const run_state& state, const fs::path& directory) {
  const std::string name = fmt::format("step_{:06}", state.step);
  const fs::path folder = directory / name, unfinished = directory / ("." + name + ".unfinished"),
                 replaced = replaced_folder(folder);
  std::error_code ignored;  // a folder that stays is refused by the writes below
  fs::remove_all(unfinished, ignored);
  create_folder(unfinished);
  save_tensors(e, global_parameters(e.about()), model_parts, state, unfinished / "model.safetensors");
  if (const auto parts = optimizer_parts(e.about()); !parts.empty())
    save_tensors(e, trained_parameters(e.about()), parts, state, unfinished / "optimizer.safetensors");
  write_run_state(state, e.about(), unfinished / "run.json");
  flush_folder(unfinished);
  if (!fs::exists(folder)) {
    rename_durably(unfinished, folder);
  } else if (!exchange_durably(unfinished, folder)) {
    fs::remove_all(replaced, ignored);
    rename_durably(folder, replaced);
    rename_durably(unfinished, folder);
  }
  write_durably(directory / ".latest.unfinished", name + "\n");
  rename_durably(directory / ".latest.unfinished", directory / "latest");
  for (const fs::path& old : {unfinished, replaced}) fs::remove_all(old, ignored);
  return folder;
}

void help_save(engine& e) {
  const auto help = [&](const std::vector<global_parameter>& parameters, const std::vector<part>& parts) {
    for (const part& part : parts)
      for (const global_parameter& p : parameters)
        read(e, p, part.where, [](std::size_t, std::span<const double>) {});
  };
  help(global_parameters(e.about()), model_parts);
  help(trained_parameters(e.about()), optimizer_parts(e.about()));
}

fs::path find_checkpoint(const fs::path& path) {
  if (is_checkpoint(path)) return path;
  if (!fs::is_directory(path)) throw refusal(65, "{}: there is no such folder", path.string());
  if (!fs::exists(path / "latest"))
    throw refusal(65, "{}: holds no checkpoint: neither run.json nor latest is there", path.string());
  const std::string name = first_line(path / "latest");
  const bool plain = !name.empty() && name.find('/') == std::string::npos;
  if (plain && is_checkpoint(path / name)) return path / name;
  if (plain && is_checkpoint(replaced_folder(path / name))) return replaced_folder(path / name);
  std::vector<std::string> whole;
  for (const auto& entry : fs::directory_iterator(path))
    if (entry.path().filename().string().starts_with("step_") && is_checkpoint(entry.path()))
      whole.push_back(entry.path().string());
  std::sort(whole.begin(), whole.end());
  throw refusal(65, "{}: names '{}', where there is no checkpoint; {}", (path / "latest").string(), name,
                whole.empty() ? std::string("there is no other one either")
                              : fmt::format("legal are {}", fmt::join(whole, ", ")));
}

void load_checkpoint(engine& e, const run_state& state, const fs::path& folder) try {
  const auto parameters = global_parameters(e.about()), trained = trained_parameters(e.about());
  const auto open = [&](const char* name, const std::vector<global_parameter>& of, const std::vector<part>& parts) {
    const fs::path file = folder / name;
    safetensors_reader in(file);
    check_tensors(in, of, parts, file);
    const auto step = in.metadata().find("step");
    if (step == in.metadata().end() || step->second != std::to_string(state.step))
      throw refusal(65, "{}: is of step {}, but run.json beside it is of step {}", file.string(),
                    step == in.metadata().end() ? "unknown" : step->second, state.step);
    return in;
  };
  safetensors_reader weights = open("model.safetensors", parameters, model_parts);
  const auto parts = optimizer_parts(e.about());
  if (!e.about().trains || parts.empty()) return load_tensors(e, parameters, model_parts, weights);
  safetensors_reader moments = open("optimizer.safetensors", trained, parts);
  load_tensors(e, parameters, model_parts, weights);
  load_tensors(e, trained, parts, moments);
} catch (const failure& f) {
  if (f.code != 1) throw;
  throw failure(65, f.what());
}

safetensors_reader open_weights(const description& about, const fs::path& folder) try {
  const fs::path file = folder / "model.safetensors";
  safetensors_reader in(file);
  check_tensors(in, global_parameters(about), model_parts, file);
  return in;
} catch (const failure& f) {
  throw failure(65, f.what());
}

std::vector<std::string> load_weights(engine& e, const fs::path& path) {
  const bool saved = is_checkpoint(path) || fs::exists(path / "latest");
  const fs::path folder = saved ? find_checkpoint(path) : path;
  const fs::path file = fs::is_directory(folder) ? folder / "model.safetensors" : folder;
  const auto all = global_parameters(e.about());
  std::vector<global_parameter> given, beside;
  for (const global_parameter& p : all) (e.about().lora_scale != 0 && is_beside(p, all) ? beside : given).push_back(p);
  safetensors_reader in(file);
  const bool has_any = std::any_of(beside.begin(), beside.end(), [&](const auto& p) { return in.tensors().contains(p.name); });
  if (has_any) given = all, beside.clear();
  check_tensors(in, given, model_parts, file);
  load_tensors(e, given, model_parts, in);
  initialise(e, beside, 1);
  std::vector<std::string> started;
  for (const global_parameter& p : beside) started.push_back(p.name);
  return started;
}

}  // namespace rankc::runtime
