// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/main.hpp>

#include <rankc/launch/error_file.hpp>
#include <rankc/runtime/failure.hpp>
#include <rankc/launch/say_error.hpp>
#include <rankc/launch/session.hpp>
#include <rankc/launch/spawn.hpp>
#include <rankc/runtime/process_limits.hpp>
#include <rankc/runtime/write_signals.hpp>
#include <rankc/trainer/bus_error.hpp>
#include <rankc/trainer/command_line.hpp>
#include <rankc/trainer/console.hpp>
#include <rankc/trainer/export.hpp>
#include <rankc/trainer/generate.hpp>
#include <rankc/trainer/measure.hpp>
#include <rankc/trainer/score.hpp>
#include <rankc/trainer/trainer.hpp>

#include <fmt/format.h>
#include <unistd.h>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace rankc::runtime {
namespace {

const environment variables = [](const char* name) -> const char* { return std::getenv(name); };

/// The file that stores the algorithm chosen for each matrix product: the file that the command line names,
/// or one in the user's cache if that can be written.
std::string products_file(const std::string& asked) {
  namespace fs = std::filesystem;
  if (!asked.empty()) return asked == "none" ? "" : asked;
  const auto of = [](const char* name) {
    return fs::path(variables(name) != nullptr ? variables(name) : "");
  };
  const fs::path cache = of("XDG_CACHE_HOME").is_absolute() ? of("XDG_CACHE_HOME") : of("HOME") / ".cache";
  if (!cache.is_absolute()) return "";
  const fs::path file = cache / "rankc" / "products.tsv";
  fs::path there = file;
  std::error_code none;
  while (!fs::exists(there, none) && there != there.root_path()) there = there.parent_path();
  return access(there.c_str(), R_OK | W_OK) == 0 ? file.string() : "";
}

/// True if an exception means that memory or threads are exhausted.
bool is_of_limits(const std::exception& e) {
  const auto* of_system = dynamic_cast<const std::system_error*>(&e);
  const bool lacks_thread =
      of_system != nullptr && of_system->code() == std::errc::resource_unavailable_try_again;
  return lacks_thread || dynamic_cast<const std::bad_alloc*>(&e) != nullptr;
}

/// The failure for an exception of the standard library.
failure unexpected(const std::exception& e) {
  if (is_of_limits(e))
    return failure(70, "RC6098: the process can have no more memory or threads ({}): {}", e.what(),
                   memory_text());
  if (const auto* of_file = dynamic_cast<const std::filesystem::filesystem_error*>(&e))
    return failure(1, "RC6094: {} cannot be used: {}", of_file->path1(), of_file->code().message());
  return failure(70, "RC6095: the program failed unexpectedly: {}", e.what());
}

using install_at = std::function<std::unique_ptr<engine>(const placement&)>;

void export_and_print(const description& about, const options& o) {
  std::vector<std::string> notes;
  const std::filesystem::path place = export_weights(about, o.load, o.out, o.exported, &notes);
  for (const std::string& note : notes) print_result(fmt::format("note: {}\n", printable(note)));
  print_result(fmt::format("exported {}\n", printable(place.string())));
}

void run(const description& about, const install_engine& install, const options& o) {
  switch (o.run) {
    case options::command::train:
      return train(about, install, o);
    case options::command::evaluate:
      return evaluate(about, install, o);
    case options::command::generate:
      return generate(about, install, o);
    case options::command::score:
      return score(about, install, o);
    case options::command::export_weights:
      return export_and_print(about, o);
    case options::command::describe: {
      if (o.measured) return measure(about, install, o);
      const std::string_view text = o.json ? about.json : about.text;
      print_result(fmt::format("{}{}", text, text.ends_with('\n') ? "" : "\n"));
    }
  }
}

void note_unused_place(const description& about, const options& o) {
  const std::string note = note_of_unused_place(variables, o.launch);
  if (!note.empty()) say_error("{}: note: {}\n", about.name, note);
}

int run_in_threads(const description& about, const install_engine& install, int argc, char** argv) {
  const auto options = parse_command_line(about, argc, argv);
  if (!options) return 0;
  if (options->starts()) {
    if (options->launch == "processes")
      throw failure(2,
                    "RC6096: --launch processes is given, but this program has all its ranks in one process; "
                    "give --launch threads");
    if (options->launch.empty())
      read_environment(variables, [](const char* name, int world) {
        throw failure(2,
                      "RC6097: {} is {}, but this program has all its ranks in one process; start it once, "
                      "without a launcher, or give --launch threads",
                      name, world);
      });
    else note_unused_place(about, *options);
  }
  run(about, install, *options);
  return 0;
}

/// Sets up signals and closed file descriptors for all commands.
void prepare_process() {
  reserve_standard_files();
  fail_writes_without_signals();
  name_file_of_bus_error();
}

/// Handles SIGTERM, which launchers other than rankc's send when another rank has failed.
void end_as_victim(int) { _exit(77); }

int run_as_rank(const description& about, const install_at& install, options& o, const launched& place) {
  std::optional<session> joined;
  try {
    joined.emplace(about, place, variables);
  } catch (const refused_start& f) {
    if (place.rank == 0) throw;
    write_error_file(variables, f.what(), true);
    return f.code;
  }
  session& job = *joined;
  if (place.board < 0) std::signal(SIGTERM, end_as_victim);
  const placement asked = o.where;
  o.where = job.where();
  o.where.fault = asked.fault;
  o.where.products = asked.products;
  try {
    run(about, [&] { return install(o.where); }, o);
    job.leave();
    return 0;
  } catch (const failure& f) {
    if (f.code <= 128) return job.end(f);
    job.leave();  // a signal ended all ranks after the same step
    if (o.where.speaks()) say_error("{}: {}\n", about.name, f.what());
    return f.code;
  } catch (const std::exception& e) {
    return job.end(unexpected(e));
  }
}

int run_where_launched(const description& about, const install_at& install, int argc, char** argv) {
  auto options = parse_command_line(about, argc, argv);
  if (!options) return 0;
  options->where.products = products_file(options->where.products);
  if (options->starts()) {
    const bool is_plain_start = !options->launch.empty() && !is_spawned(variables);
    if (is_plain_start) note_unused_place(about, *options);
    else if (const auto place = launched_place(about, variables))
      return run_as_rank(about, install, *options, *place);
    if (options->launch == "processes") return spawn_ranks(about, argv);
  }
  run(about, [&] { return install(options->where); }, *options);
  return 0;
}

/// Calls `start` and prints its failure as one line.
/// Returns: the exit code.
template <class Start>
int reported(const description& about, const Start& start) try {
  prepare_process();
  const int code = start();
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return code;
  fail_to_print();
} catch (const failure& f) {
  say_error("{}: {}\n", about.name, f.what());
  write_error_file(variables, f.what(), false);
  return f.code;
} catch (const std::exception& e) {
  const failure f = unexpected(e);
  say_error("{}: {}\n", about.name, f.what());
  return f.code;
}

}  // namespace

int program_main(const description& about, std::function<std::unique_ptr<engine>()> install, int argc,
                 char** argv) {
  return reported(about, [&] { return run_in_threads(about, install, argc, argv); });
}

int program_main(const description& about, install_at install, int argc, char** argv) {
  return reported(about, [&] { return run_where_launched(about, install, argc, argv); });
}

void end_process(int code) {
  std::fflush(nullptr);
  std::_Exit(code);
}

}  // namespace rankc::runtime
