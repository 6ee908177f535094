// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/command_line.hpp>

#include "chat/chat_form.hpp"
#include <rankc/runtime/failure.hpp>
#include <rankc/runtime/named_inputs.hpp>
#include <rankc/trainer/data.hpp>
#include <rankc/runtime/parse.hpp>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <cmath>
#include <cstdlib>

namespace rankc::runtime {
namespace {

constexpr const char hash_prefix[] = "hash:";

CLI::Validator whole_number(std::int64_t least) {
  return CLI::Validator(
      [least](const std::string& text) {
        const auto n = parse_number<std::int64_t>(text);
        return n && *n >= least ? "" : fmt::format("'{}' must be a whole number >= {}", text, least);
      },
      "N");
}

CLI::Validator seed() {
  return CLI::Validator(
      [](const std::string& text) {
        return parse_number<std::uint64_t>(text)
                   ? ""
                   : fmt::format("'{}' must be a whole number from 0 to 2^64 - 1", text);
      },
      "S");
}

CLI::Validator non_negative() {
  return CLI::Validator(
      [](const std::string& text) {
        const auto x = parse_number<double>(text);
        return x && std::isfinite(*x) && *x >= 0 ? ""
                                                 : fmt::format("'{}' must be a finite number >= 0", text);
      },
      "X");
}

CLI::Validator share() {
  return CLI::Validator(
      [](const std::string& text) {
        const auto x = parse_number<double>(text);
        return x && *x >= 0 && *x < 1 ? "" : fmt::format("'{}' must be a share from 0 to below 1", text);
      },
      "X");
}

/// Options that are checked after parsing, or become part of another option.
struct raw_options {
  std::string format = "safetensors", peers = "on", inject;
  std::optional<std::uint64_t> seed;
  std::int64_t train_steps = 0, eval_steps = 0;
};

[[noreturn]] void refuse_empty(const std::string& option) {
  throw failure(2, "RC6020: {} is given an empty text; fill it in, or leave the option out", option);
}

/// An option that takes a name. An empty text, as from an unset shell variable, is refused.
template <class Value>
CLI::Option* add_name(CLI::App& app, const std::string& name, Value& value, const std::string& help) {
  return app.add_option_function<std::string>(
      name,
      [name, &value](const std::string& text) {
        if (text.empty()) refuse_empty(name);
        value = text;
      },
      help);
}

void add_options_of_both(CLI::App& app, options& o, raw_options& raw) {
  add_name(app, "--init", o.init,
           "hash:SEED, FILE.safetensors, or a folder: with model.safetensors, of Hugging Face, or a "
           "checkpoint (default hash:1)");
  app.add_option("--seed", raw.seed, "the same as --init hash:S")->check(seed());
  add_name(app, "--data", o.data,
           "a text file, whose bytes are tokens; FILE.bin of llm.c, or of Megatron with its .idx; a folder "
           "of these, links to files included, or a quoted pattern; A:0.7,B:0.3 by weights; arith:SEED, "
           "rand:SEED (default arith:1234); arrays:DIR, a folder with a file NAME.npy for each input of a "
           "model that declares inputs. FILE.mask next to FILE.bin marks the tokens that are labels, "
           "and FILE.weights has their weights");
  add_name(app, "--labels", o.labels,
           "PREFIX.bin and PREFIX.idx of Megatron: a label for each token of --data, which replaces that "
           "token where it is a target; the plan's .ignored_label is ignored (default: the tokens)");
  add_name(app, "--load", o.load,
           "continue from this checkpoint, with its data and recipe where not given here: each source "
           "continues at its next token, new data begins at its beginning, and a note says what changes");
  add_name(app, "--launch", o.launch,
           "threads: all ranks in this process; processes: one process per rank, on this machine (default: "
           "one rank per process that torchrun, mpirun or srun has started, else threads)");
  add_name(app, "--products", o.where.products,
           "the file with the fastest cuBLASLt algorithm of each GEMM on a GPU: read at the start; newly "
           "timed GEMMs are added; none: time all (default ~/.cache/rankc/products.tsv)");
  app.add_option("--peers", raw.peers,
                 "off: only NCCL moves data between the GPUs of one process; on: copy engines and "
                 "peer-memory kernels do, too (default on)");
  app.add_option("--inject", raw.inject,
                 "a fault on purpose, in test builds: "
                 "rank=R,op=N|after|save[,step=S],kill|stop|exit|abort|throw|delay=2s|"
                 "drop|corrupt|nan|flip");
}

void add_options_of_training(CLI::App& app, options& o) {
  app.add_option("--lr", o.lr, "learning rate (default: the plan's)")->check(non_negative());
  app.add_option(
      "--lr-schedule", o.schedule,
      "constant | cosine[:WARMUP[:DECAY_STEPS[:MIN_LR]]] | wsd:WARMUP:STABLE:DECAY[:MIN_LR] | pieces: "
      "warmup:20,constant:300,linear:80:0 (default: the plan's)");
  app.add_option("--wd", o.weight_decay, "weight decay (default: the plan's)")->check(non_negative());
  app.add_option("--clip", o.clip, "largest gradient norm; 0: any (default: the plan's)")
      ->check(non_negative());
  add_name(
      app, "--shuffle", o.shuffle,
      "order of the windows of files: none, one after the other (default); SEED, drawn for each epoch by a "
      "counter-based generator (Philox); megatron:SEED[:SAMPLES], the order of Megatron's GPTDataset");
  add_name(app, "--eval-data", o.eval_data,
           "held-out data, in the form of --data: the run must not train on it");
  app.add_option(
         "--eval-fraction", o.eval_fraction,
         "or hold out this share of the end of --data (default 0.05 with --eval-every). A resumed run "
         "keeps its share")
      ->check(share());
  app.add_option("--eval-every", o.eval_every,
                 "measure the held-out loss after every N steps, and at the end")
      ->check(whole_number(1));
  app.add_option("--eval-batches", o.eval_batches, "of at most N batches (default 10)")
      ->check(whole_number(1));
  app.add_option_function<std::string>(
      "--skip-batches", [&o](const std::string& text) { o.skipped = parse_step_range(text); },
      "A:B, leave out the batches of steps A to B: step A trains on the batch after them. For a run that "
      "continues from a checkpoint before a NaN or a spike of the loss");
  add_name(app, "--metrics", o.metrics, "one JSON object a step into this file");
  add_name(app, "--tensorboard", o.tensorboard, "event files for TensorBoard into this folder");
  add_name(app, "--trace", o.trace,
           "time the last step, and write what each rank did into this file, for Perfetto and for "
           "the generator's timeline --measured");
  app.add_option("--check-replicas", o.check_replicas,
                 "after every N steps compare, bit for bit, the weights and moments that several ranks hold")
      ->check(whole_number(1));
  auto* save = add_name(app, "--save", o.save,
                        "write a checkpoint into this folder at the end, and where a signal stops the run; "
                        "a folder with another run's checkpoints is refused");
  app.add_option("--save-every", o.save_every, "and after every N steps")
      ->check(whole_number(1))
      ->needs(save);
  app.add_option("--keep", o.keep, "keep only the newest N checkpoints (default: all)")
      ->check(whole_number(1))
      ->needs(save);
}

void add_options_of_measuring(CLI::App& app, options& o, raw_options& raw) {
  CLI::Option* const measured = app.add_flag("--measured", o.measured,
                                             "start it, take some steps, and print what each call took, what "
                                             "it does, and the least that the plan's GPU takes for that");
  const std::size_t others = app.get_options().size();
  add_options_of_both(app, o, raw);
  const std::vector<CLI::Option*> all = app.get_options({});
  for (std::size_t i = others; i < all.size(); ++i) all[i]->needs(measured);
}

void add_options_of_generation(CLI::App& app, options& o) {
  add_name(app, "--load", o.load, "the checkpoint")->required();
  auto* prompt =
      app.add_option("--prompt", o.prompt, "text that the model continues (default: a line break)");
  add_name(app, "--prompt-tokens", o.prompt_tokens,
           "or the tokens in this file, as numbers; the continuation is printed as numbers too")
      ->excludes(prompt);
  add_name(
      app, "--tokenizer", o.tokenizer,
      "a tokenizer.json or its folder, by which text becomes tokens and tokens text; bytes: a text's bytes "
      "are its tokens (default: the tokenizer.json of the Hugging Face folder that the run began with, "
      "else bytes)")
      ->excludes("--prompt-tokens");
  CLI::Option* const chat = add_name(app, "--chat", o.chat,
                                     "the prompt is a user's message: write it by the chat template of a "
                                     "family, and end with the assistant's turn: " +
                                         chat_form_names());
  chat->needs(prompt);
  add_name(app, "--date", o.date, "the date that the template gpt-oss states, such as 2025-08-05")
      ->needs(chat);
  app.add_option("--tokens", o.tokens, "to generate (default 200)")->check(whole_number(1));
  app.add_option("--temperature", o.temperature,
                 "0: always the likeliest token; 1: the model's distribution (default 0.8)")
      ->check(non_negative());
  app.add_option("--top-k", o.top_k, "draw from the K likeliest tokens (default: from all)")
      ->check(whole_number(1));
  app.add_option("--seed", o.sampling_seed,
                 "of the random draws: the same text for the same seed (default 1)")
      ->check(seed());
}

void add_options_of_scoring(CLI::App& app, options& o) {
  add_name(app, "--load", o.load, "the checkpoint")->required();
  add_name(app, "--requests", o.requests,
           "lines of JSON, {\"context\": [ids], \"continuation\": [ids]}; each is answered by a line "
           "{\"logprob\": nats, \"greedy\": whether each token is the likeliest, \"tokens\": their number}")
      ->required();
}

void add_options_of_export(CLI::App& app, options& o, raw_options& raw) {
  add_name(app, "--load", o.load, "the checkpoint")->required();
  add_name(app, "--out", o.out, "the folder to write model.safetensors into")->required();
  app.add_option("--format", raw.format,
                 "safetensors: tensors by the plan's names (default); huggingface: config.json and tensors "
                 "as transformers has them; for a plan with lora, without --merge, adapter_config.json and "
                 "adapters as PEFT has them");
  add_name(
      app, "--source", o.exported.source,
      "with --format huggingface: the folder that the run began with, where it is now, or none for an export "
      "of the plan alone (default: the folder that the checkpoint names)");
  app.add_flag("--merge", o.exported.merge,
               "add LoRA adapters to their weights: the tensors are those of the plan without lora");
}

void check(options& o, const raw_options& raw) {
  if (!o.launch.empty() && o.launch != "threads" && o.launch != "processes")
    throw failure(2, "RC6021: --launch {} is unknown; give threads or processes", o.launch);
  if (raw.peers != "on" && raw.peers != "off")
    throw failure(2, "RC6031: --peers {} is unknown; give on or off", raw.peers);
  o.where.maps_peers = raw.peers == "on";
  if (!o.load.empty() && (!o.init.empty() || raw.seed))
    throw failure(2, "RC6022: --load {} loads the weights; leave out --init and --seed", o.load);
  if (raw.seed) {
    if (!o.init.empty() && hash_seed(o.init) != raw.seed)
      throw failure(2, "RC6023: --seed {} contradicts --init {}; give one of them", *raw.seed, o.init);
    o.init = hash_prefix + std::to_string(*raw.seed);
  }
  if (o.init.empty() && o.load.empty()) o.init = "hash:1";
  hash_seed(o.init);
  if (o.labels && !o.data)
    throw failure(2, "RC6224: --labels {} needs --data with the tokens of these labels", *o.labels);
  if (o.data) parse_data_spec(*o.data, o.labels.value_or(""));
  if (o.eval_data) parse_data_spec(*o.eval_data);
  if (o.shuffle) parse_shuffle(*o.shuffle);
  if (o.eval_data && o.eval_fraction)
    throw failure(2, "RC6024: --eval-data {} is the held-out data; leave out --eval-fraction", *o.eval_data);
}

}  // namespace

std::optional<std::uint64_t> hash_seed(const std::string& init) {
  if (!init.starts_with(hash_prefix)) return std::nullopt;
  const auto seed = parse_number<std::uint64_t>(std::string_view(init).substr(sizeof hash_prefix - 1));
  if (!seed)
    throw failure(
        2, "RC6025: --init {} has no valid seed; give a whole number from 0 to 2^64 - 1, as in hash:1", init);
  return seed;
}

namespace {

/// Errors: failure (2) for a command that supplies only tokens, if the model declares inputs.
void refuse_declared_inputs(const description& about, const char* command) {
  const std::vector<input_row> inputs = declared_inputs_of(about);
  if (inputs.empty()) return;
  throw failure(
      2,
      "RC6091: the plan {} takes the inputs {}, and {} gives a model tokens only; run eval, or embed "
      "the program",
      about.name, names_of(inputs), command);
}

/// The commands of a program. Their `parsed` tells which was given.
struct given_commands {
  CLI::App *train, *eval, *generate, *score, *describe, *export_weights;

  options::command which() const {
    if (describe->parsed()) return options::command::describe;
    if (generate->parsed()) return options::command::generate;
    if (score->parsed()) return options::command::score;
    if (export_weights->parsed()) return options::command::export_weights;
    return eval->parsed() ? options::command::evaluate : options::command::train;
  }
};

given_commands add_commands(CLI::App& app, options& o, raw_options& raw) {
  const given_commands all{
      .train = app.add_subcommand("train", "train the model"),
      .eval = app.add_subcommand("eval",
                                 "print the mean loss over data: of --data, else of what the run holds out"),
      .generate = app.add_subcommand("generate", "print text from a checkpoint"),
      .score = app.add_subcommand("score", "print log-probabilities of given continuations"),
      .describe = app.add_subcommand(
          "describe", "print the plan without starting it, or the time of each call of a step"),
      .export_weights = app.add_subcommand(
          "export", "write a checkpoint's weights for other programs, without starting it")};
  all.train
      ->add_option("--steps", raw.train_steps,
                   "total steps of the run, those before a loaded checkpoint included (default 100, or the "
                   "checkpoint's last step)")
      ->check(whole_number(1));
  all.eval
      ->add_option("--steps", raw.eval_steps,
                   "measure at most N batches (default: each sample once; of data without an end 10 batches)")
      ->check(whole_number(1));
  for (CLI::App* command : {all.train, all.eval}) add_options_of_both(*command, o, raw);
  add_options_of_training(*all.train, o);
  all.describe->add_flag("--json", o.json, "as JSON");
  add_options_of_measuring(*all.describe, o, raw);
  add_options_of_export(*all.export_weights, o, raw);
  add_options_of_generation(*all.generate, o);
  add_options_of_scoring(*all.score, o);
  return all;
}

/// Returns: false if the arguments ask only for help or the version, which is then printed.
bool parse(CLI::App& app, int argc, const char* const* argv) {
  try {
    app.parse(argc, argv);
    return true;
  } catch (const CLI::Success& answer) {
    app.exit(answer);
    return false;
  } catch (const CLI::ParseError& e) {
    if (app.get_subcommands().empty())
      throw failure(2,
                    "RC6026: the command line is not valid: {}; give train, eval, generate, score, "
                    "describe, export, --version or --help",
                    e.what());
    throw failure(2, "RC6027: the command line is not valid: {}; see --help", e.what());
  }
}

void check_generation(const description& about, const options& o) {
  refuse_declared_inputs(about, "generate");
  if (o.prompt && o.prompt->empty()) refuse_empty("--prompt");
  if (!o.chat.empty()) check_chat_date(chat_form_of(o.chat), o.date);
}

void check_export(options& o, const raw_options& raw) {
  if (raw.format != "safetensors" && raw.format != "huggingface")
    throw failure(2, "RC6028: --format {} is unknown; give safetensors or huggingface", raw.format);
  if (raw.format == "huggingface") o.exported.format = export_format::hugging_face;
  else if (!o.exported.source.empty())
    throw failure(2, "RC6029: --source {} is only for --format huggingface; leave it out", o.exported.source);
}

}  // namespace

std::optional<options> parse_command_line(const description& about, int argc, const char* const* argv) {
  options o;
  raw_options raw;
  CLI::App app(fmt::format("The training program of plan {}: {} ranks.", about.name, about.world()));
  app.set_version_flag("--version",
                       fmt::format("{} (rankc {}, plan {:016x}, calls {:016x})", about.name, RANKC_VERSION,
                                   about.plan_hash, fingerprint_of(about.proven)));
  app.require_subcommand(1);
  const given_commands all = add_commands(app, o, raw);
  if (!parse(app, argc, argv)) return std::nullopt;
  o.run = all.which();
  if (o.run == options::command::generate) {
    check_generation(about, o);
    return o;
  }
  if (o.run == options::command::score) {
    refuse_declared_inputs(about, "score");
    return o;
  }
  if (o.run == options::command::export_weights) {
    check_export(o, raw);
    return o;
  }
  if (o.run == options::command::describe && !o.measured) return o;
  if (o.run != options::command::evaluate && !about.trains) throw forwards_alone(about);
  o.steps = all.train->parsed() ? raw.train_steps : raw.eval_steps;
  check(o, raw);
  if (!raw.inject.empty()) o.where.fault = parse_injection(raw.inject, about.world());
  return o;
}

}  // namespace rankc::runtime
