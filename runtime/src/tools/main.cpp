// SPDX-License-Identifier: Apache-2.0
#include <rankc/runtime/tools/main.hpp>

#include <rankc/runtime/tools/command_line.hpp>
#include <rankc/runtime/tools/export.hpp>
#include <rankc/runtime/tools/generate.hpp>
#include <rankc/runtime/tools/launch.hpp>
#include <rankc/runtime/tools/trainer.hpp>

#include <fmt/format.h>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string_view>

namespace rankc::runtime {
namespace {

using install_at = std::function<std::unique_ptr<engine>(const placement&)>;

void run(const description& about, const install_engine& install, const options& o) {
  switch (o.run) {
    case options::command::train:
      return train(about, install, o);
    case options::command::evaluate:
      return evaluate(about, install, o);
    case options::command::generate:
      return generate(about, install, o);
    case options::command::export_weights:
      fmt::print("exported {}\n", export_weights(about, o.load, o.out, o.merge).string());
      return;
    case options::command::describe: {
      const std::string_view text = o.json ? about.json : about.text;
      fmt::print("{}{}", text, text.ends_with('\n') ? "" : "\n");
    }
  }
}

int run_in_threads(const description& about, const install_engine& install, int argc, char** argv) {
  const auto options = parse_command_line(about, argc, argv);
  if (!options) return 0;
  if (options->starts()) {
    if (options->processes)
      throw failure(
          2, "--launch processes: is not in this version; legal is threads (all ranks in one process)");
    refuse_launchers();
  }
  run(about, install, *options);
  return 0;
}

int run_where_launched(const description& about, const install_at& install, int argc, char** argv) {
  auto options = parse_command_line(about, argc, argv);
  if (!options) return 0;
  if (options->starts()) {
    if (const auto where = launched_placement(about)) {
      options->where = *where;
      end_as_victim_on_sigterm();
    } else if (options->processes) {
      return launch_processes(about, argv);
    }
  }
  run(
      about, [&] { return install(options->where); }, *options);
  return 0;
}

/// The exit code of `start`, whose failures become a line each.
template <class Start>
int reported(const description& about, const Start& start) try {
  const int code = start();
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return code;
  throw failure(1, fmt::format("standard output cannot be written: {}", std::strerror(errno)));
} catch (const failure& f) {
  fmt::print(stderr, "{}: {}\n", about.name, f.what());
  return f.code;
} catch (const std::exception& e) {
  fmt::print(stderr, "{}: {}\n", about.name, e.what());
  return 70;
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
