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

namespace rankc::tool {
namespace {

using runtime::say;

/// The commands of `rankc`, in the order of its help, and the values of their options.
struct command_line {
  explicit command_line(CLI::App& app);

  CLI::App &dims, &schedule, &searching, &calibrating, &starting, &verifying, &explaining, &making;
  dims_flags of_dims;
  search_flags of_search;
  tokens_options of_tokens;
  bool checks = false;
  std::string folder, name, file, id;
  std::optional<std::uint64_t> seed;
};

command_line::command_line(CLI::App& app)
    : dims(*app.add_subcommand("dims",
                               "axes, groups and communicators of parallel dims: a page for flags, or an "
                               "answer to each JSON line")),
      schedule(*app.add_subcommand("schedule",
                                   "answer JSON lines: the order, the messages and the costs of schedules")),
      searching(*app.add_subcommand("search",
                                    "the fastest plans by a cost model, for flags or for each JSON line")),
      calibrating(*app.add_subcommand(
          "calibrate", "constants of a GPU, from the times of kernels that rankc-calibrate wrote")),
      starting(*app.add_subcommand("init", "write a starter project")),
      verifying(*app.add_subcommand("verify",
                                    "check a certificate that a plan's generator wrote: 0 proven, 1 "
                                    "refused, 3 not compared with a model")),
      explaining(*app.add_subcommand("explain", "print the long form of a rule, or list all")),
      making(*app.add_subcommand("tokens", "write a token file of text or conversations, for --data")),
      of_dims(dims),
      of_search(searching) {
  schedule.add_flag("--check", checks, "the lines hold programs; answer whether they can run");
  calibrating.add_option("file", file, "JSON lines; on a machine with the GPU: rankc-calibrate > FILE")
      ->required();
  starting.add_option("folder", folder, "where to; made if needed")->required();
  starting.add_option("--name", name, "name of the program; default: the folder's");
  verifying.add_option("file", file, "the certificate")->required();
  verifying.add_option("--seed", seed, "repeat a check with the seed that it printed (default: a new seed)");
  explaining.add_option("rule", id, "such as RC201, rc201 or 201");
  add_tokens_options(making, of_tokens);
}

/// The examples below the help of the commands that read lines.
void add_examples(command_line& all) {
  all.dims.footer(
      "Examples:\n"
      "  rankc dims --world 64 --tp 4 --pp 2 --dp-shard infer\n"
      "  echo '{\"world\":8,\"tp\":2,\"dp_shard\":\"infer\",\"groups\":true}' | rankc dims");
  all.schedule.footer(
      "Examples:\n"
      "  echo '{\"schedule\":\"zero_bubble_v\",\"pp\":4,\"stages_per_rank\":2,\"microbatches\":8}' | rankc "
      "schedule\n"
      "  echo '{\"ranks\":[[\"0F0\",\"0B0\"],[\"1F0\",\"1B0\"]]}' | rankc schedule --check");
  all.searching.footer(
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
}

/// Parses the arguments. If they ask only for help, or are refused, prints the answer.
/// Returns: the exit code of that answer; nothing if a command is to run.
std::optional<int> parse(CLI::App& app, int argc, char** argv) {
  const auto is_named = [&](const CLI::App* command) { return command->get_name() == argv[1]; };
  if (argc > 1 && argv[1][0] != '-' && app.get_subcommands(is_named).empty()) {
    const std::string text = say("RC8050: {} is not a command of rankc", argv[1]);
    std::cerr << "error: " << runtime::error_line(text) << "\n" << app.help();
    return 2;
  }
  try {
    app.parse(argc, argv);
    codegen::refuse_empty_values(app);
  } catch (const CLI::ParseError& e) {
    const bool answered = app.exit(e) == 0;
    if (!answered) std::cerr << app.help();
    return answered ? 0 : 2;
  }
  return std::nullopt;
}

/// The exit code of a command that has written its output.
int written(int code) {
  if (std::cout.flush()) return code;
  std::cerr << "error: " << codegen::output_error() << "\n";
  return 1;
}

int verify(const command_line& all) {
  std::vector<std::string> arguments{"--", all.file};
  if (all.seed) arguments = {"--seed", std::to_string(*all.seed), "--", all.file};
  return become("rankc-verify", arguments, std::cerr);
}

/// Answers the line that the flags of `rankc search` make.
int search(const json& line, const search_flags& flags) {
  const bool on_terminal = isatty(STDERR_FILENO);
  if (flags.files().any() && !asks_rankc(line)) {
    std::cerr << "error: " << say("RC8051: --emit and --html need --cost-model rankc") << "\n";
    return 2;
  }
  if (flags.files().any()) return written(write_plans(line, flags.files(), std::cerr, on_terminal));
  if (!flags.as_json()) return written(show_search(line, std::cout, std::cerr, on_terminal));
  std::cout << answer_line(line.dump(), answer_search) << "\n";
  return written(0);
}

/// Answers the lines of standard input. On a terminal, says first what it reads.
int answer_input(const command_line& all) {
  if (all.dims && isatty(STDIN_FILENO))
    std::cerr
        << R"(rankc dims reads lines such as {"world":8,"tp":2,"dp_shard":"infer"}; or give flags: --world 8 --tp 2)"
        << "\n";
  if (all.searching && isatty(STDIN_FILENO))
    std::cerr << "rankc search reads lines such as that of its --help; or give flags: --model gpt3 "
                 "--strategy 1d --system H200 --gpus 64 "
                 "--global-batch 2048\n";
  std::ios::sync_with_stdio(false);
  answerer answer = all.checks ? answer_check : answer_schedule;
  if (all.dims) answer = answer_dims;
  else if (all.searching) answer = answer_search;
  answer_lines(std::cin, std::cout, answer);
  return written(0);
}

/// Runs the command that was given.
int run(const command_line& all) {
  if (all.starting) return written(init(all.folder, all.name, std::cout, std::cerr));
  if (all.calibrating) return written(calibrate(all.file, std::cout, std::cerr));
  if (all.verifying) return verify(all);
  if (all.explaining) return written(explain(all.id, std::cout, std::cerr));
  if (all.making) return written(tokens(all.of_tokens, std::cout, std::cerr));
  if (const auto line = all.of_dims.line()) return written(show_dims(*line, std::cout, std::cerr));
  if (const auto line = all.of_search.line()) return search(*line, all.of_search);
  return answer_input(all);
}

}  // namespace
}  // namespace rankc::tool

int main(int argc, char** argv) try {
  rankc::runtime::fail_writes_without_signals();
  CLI::App app{"rankc: dims, schedules, searches, certificates and rules, without a plan."};
  app.name("rankc");
  app.require_subcommand(1);
  app.failure_message([](const CLI::App*, const CLI::Error& e) { return rankc::codegen::usage_error(e); });
  app.set_version_flag("--version", std::string("rankc ") + rankc::version);
  rankc::tool::command_line all(app);
  add_examples(all);
  if (const auto answered = rankc::tool::parse(app, argc, argv)) return *answered;
  return run(all);
} catch (const std::exception& e) {
  std::cerr << "error: " << rankc::codegen::sentence_of(e) << "\n";
  return rankc::codegen::exit_code_of(e);
}
