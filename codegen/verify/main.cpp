// SPDX-License-Identifier: Apache-2.0
// `rankc-verify`: checks a certificate without the generator that wrote it.
#include <rankc/runtime/write_signals.hpp>
#include <rankc/version.hpp>

#include <CLI/CLI.hpp>
#include <command_line.hpp>
#include <empty_values.hpp>
#include <iostream>

#include "../certificate/document.hpp"
#include "report.hpp"

int main(int argc, char** argv) {
  using namespace rankc::codegen;
  rankc::runtime::fail_writes_without_signals();
  CLI::App app{"rankc-verify: check a certificate: 0 proven, 1 refused, 3 not compared with a model."};
  app.name("rankc-verify");
  app.failure_message([](const CLI::App*, const CLI::Error& e) { return usage_error(e); });
  app.set_version_flag("--version", std::string("rankc-verify ") + rankc::version);
  std::string file;
  std::optional<std::uint64_t> seed;
  bool shows_format = false;
  CLI::Option* shows =
      app.add_flag("--format", shows_format, "print the fields of a certificate, and check none");
  app.add_option("file", file, "a certificate that a plan's generator wrote")->excludes(shows);
  app.add_option("--seed", seed, "repeat a check with the seed that it printed (default: a new seed)");
  try {
    app.parse(argc, argv);
    refuse_empty_values(app);
    if (file.empty() && !shows_format) throw CLI::RequiredError("file");
  } catch (const CLI::ParseError& e) {
    const bool is_answered = app.exit(e) == 0;
    if (!is_answered) std::cerr << app.help();
    return is_answered ? 0 : 2;
  }
  int code = 0;
  if (shows_format) std::cout << schema::describe();
  else code = report(file, seed, std::cout, std::cerr);
  if (std::cout.flush()) return code;
  std::cerr << "error: " << output_error() << "\n";
  return 1;
}
