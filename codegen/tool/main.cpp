// SPDX-License-Identifier: Apache-2.0
// The command line of `rankc`: the commands that need no compiled plan.
#include <rankc/runtime/write_signals.hpp>
#include <rankc/version.hpp>

#include <command_line.hpp>
#include <empty_values.hpp>

#include <unistd.h>
#include <CLI/CLI.hpp>
#include <iostream>

#include "beside.hpp"
#include "calibrate.hpp"
#include "check.hpp"
#include "commands.hpp"
#include "dims.hpp"
#include "dims_flags.hpp"
#include "plan_request.hpp"
#include "schedule.hpp"
#include "search.hpp"
#include "search_flags.hpp"
#include "tokens.hpp"
#include "tokens_flags.hpp"

static int run(int argc, char** argv) {
  using namespace rankc::tool;
  using rankc::runtime::say;
  rankc::runtime::fail_writes_without_signals();
  CLI::App app{"rankc: dims, schedules, searches, certificates and rules, without a plan."};
  app.name("rankc");
  app.require_subcommand(1);
  app.failure_message([](const CLI::App*, const CLI::Error& e) { return rankc::codegen::usage_error(e); });
  app.set_version_flag("--version", std::string("rankc ") + rankc::version);
  bool checks = false;
  std::string folder, name, file, id;
  CLI::App* dims = app.add_subcommand(
      "dims",
      "axes, groups and communicators of parallel dims: a page for flags, or an answer to each JSON line");
  const dims_flags flags(*dims);
  dims->footer(
      "Examples:\n"
      "  rankc dims --world 64 --tp 4 --pp 2 --dp-shard infer\n"
      "  echo '{\"world\":8,\"tp\":2,\"dp_shard\":\"infer\",\"groups\":true}' | rankc dims");
  CLI::App* schedule =
      app.add_subcommand("schedule", "answer JSON lines: the order, the messages and the costs of schedules");
  schedule->add_flag("--check", checks, "the lines hold programs; answer whether they can run");
  schedule->footer(
      "Examples:\n"
      "  echo '{\"schedule\":\"zero_bubble_v\",\"pp\":4,\"stages_per_rank\":2,\"microbatches\":8}' | rankc "
      "schedule\n"
      "  echo '{\"ranks\":[[\"0F0\",\"0B0\"],[\"1F0\",\"1B0\"]]}' | rankc schedule --check");
  CLI::App* searching =
      app.add_subcommand("search", "the fastest plans by a cost model, for flags or for each JSON line");
  const search_flags searched(*searching);
  searching->footer(
      "Examples:\n"
      "  rankc search --model llama3-8b --cluster h200 --gpus 8 --seq 8192 --global-batch 32 --emit "
      "plan.hpp\n"
      "  rankc search --layers 24 --hidden 2048 --heads 16 --kv-heads 8 --ffn 5632 --vocab 32000 --cluster "
      "h100 --gpus 8 --seq 4096 --global-batch 64\n"
      "  rankc search --model gpt3_1T --strategy 1d --system B200 --nvs 8 --gpus 1024 --global-batch 4096\n"
      "  echo '{\"model\":\"gpt3\",\"strategy\":\"seqp\",\"system\":\"H200\",\"nvs\":8,\"n_gpus\":512,"
      "\"global_batch_size\":2048}' | rankc search\n"
      "  echo '{\"cost_model\":\"rankc\",\"model\":\"llama3-8b\",\"cluster\":\"h200\",\"gpus\":8,\"recipe\":{"
      "\"seq\":8192,\"global_batch\":32}}' | rankc search");
  CLI::App* calibrating = app.add_subcommand(
      "calibrate", "constants of a GPU, from the times of kernels that rankc-calibrate wrote");
  calibrating->add_option("file", file, "JSON lines; on a machine with the GPU: rankc-calibrate > FILE")
      ->required();
  CLI::App* starting = app.add_subcommand("init", "write a starter project");
  starting->add_option("folder", folder, "where to; made if needed")->required();
  starting->add_option("--name", name, "name of the program; default: the folder's");
  CLI::App* verifying = app.add_subcommand(
      "verify",
      "check a certificate that a plan's generator wrote: 0 proven, 1 refused, 3 not compared with a model");
  verifying->add_option("file", file, "the certificate")->required();
  std::optional<std::uint64_t> seed;
  verifying->add_option("--seed", seed, "repeat a check with the seed that it printed (default: a new seed)");
  CLI::App* explaining = app.add_subcommand("explain", "print the long form of a rule, or list all");
  explaining->add_option("rule", id, "such as RC201, rc201 or 201");
  tokens_options tokenizing;
  CLI::App* making = app.add_subcommand("tokens", "write a token file of text or conversations, for --data");
  add_tokens_options(*making, tokenizing);
  const auto is_named = [&](const CLI::App* command) { return command->get_name() == argv[1]; };
  if (argc > 1 && argv[1][0] != '-' && app.get_subcommands(is_named).empty()) {
    const std::string text = say("RC8050: {} is not a command of rankc", argv[1]);
    std::cerr << "error: " << rankc::runtime::error_line(text) << "\n" << app.help();
    return 2;
  }
  try {
    app.parse(argc, argv);
    rankc::codegen::refuse_empty_values(app);
  } catch (const CLI::ParseError& e) {
    const bool answered = app.exit(e) == 0;
    if (!answered) std::cerr << app.help();
    return answered ? 0 : 2;
  }

  const auto written = [](int code) {
    if (std::cout.flush()) return code;
    std::cerr << "error: " << rankc::codegen::output_error() << "\n";
    return 1;
  };
  if (*starting) return written(init(folder, name, std::cout, std::cerr));
  if (*calibrating) return written(calibrate(file, std::cout, std::cerr));
  if (*verifying) {
    std::vector<std::string> arguments{"--", file};
    if (seed) arguments = {"--seed", std::to_string(*seed), "--", file};
    return become("rankc-verify", arguments, std::cerr);
  }
  if (*explaining) return written(explain(id, std::cout, std::cerr));
  if (*making) return written(tokens(tokenizing, std::cout, std::cerr));
  if (const auto line = flags.line()) return written(show_dims(*line, std::cout, std::cerr));
  if (const auto line = searched.line()) {
    const bool on_terminal = isatty(STDERR_FILENO);
    if (searched.files().any() && !asks_rankc(*line)) {
      std::cerr << "error: " << say("RC8051: --emit and --html need --cost-model rankc") << "\n";
      return 2;
    }
    if (searched.files().any()) return written(write_plans(*line, searched.files(), std::cerr, on_terminal));
    if (!searched.as_json()) return written(show_search(*line, std::cout, std::cerr, on_terminal));
    std::cout << answer_line(line->dump(), answer_search) << "\n";
    return written(0);
  }
  if (*dims && isatty(STDIN_FILENO))
    std::cerr
        << R"(rankc dims reads lines such as {"world":8,"tp":2,"dp_shard":"infer"}; or give flags: --world 8 --tp 2)"
        << "\n";
  if (*searching && isatty(STDIN_FILENO))
    std::cerr << "rankc search reads lines such as that of its --help; or give flags: --model gpt3 "
                 "--strategy 1d --system H200 --gpus 64 "
                 "--global-batch 2048\n";
  std::ios::sync_with_stdio(false);
  answerer answer = checks ? answer_check : answer_schedule;
  if (*dims) answer = answer_dims;
  else if (*searching) answer = answer_search;
  answer_lines(std::cin, std::cout, answer);
  return written(0);
}

int main(int argc, char** argv) try { return run(argc, argv); } catch (const std::exception& e) {
  std::cerr << "error: " << rankc::codegen::sentence_of(e) << "\n";
  return rankc::codegen::exit_code_of(e);
}
