// SPDX-License-Identifier: Apache-2.0
#include <rankc/runtime/tools/main.hpp>

#include <rankc/runtime/tools/command_line.hpp>
#include <rankc/runtime/tools/trainer.hpp>

#include <fmt/format.h>
#include <cstdio>
#include <exception>
#include <string_view>

namespace rankc::runtime {
namespace {

void run(const description& about, const install_engine& install, int argc, char** argv) {
  const auto options = parse_command_line(about, argc, argv);
  if (!options) return;
  switch (options->run) {
    case options::command::train:
      return train(about, install, *options);
    case options::command::evaluate:
      return evaluate(about, install, *options);
    case options::command::describe: {
      const std::string_view text = options->json ? about.json : about.text;
      fmt::print("{}{}", text, text.ends_with('\n') ? "" : "\n");
    }
  }
}

}  // namespace

int program_main(const description& about, std::function<std::unique_ptr<engine>()> install, int argc,
                 char** argv) try {
  run(about, install, argc, argv);
  return 0;
} catch (const failure& f) {
  fmt::print(stderr, "{}: {}\n", about.name, f.what());
  return f.code;
} catch (const std::exception& e) {
  fmt::print(stderr, "{}: {}\n", about.name, e.what());
  return 70;
}

}  // namespace rankc::runtime
