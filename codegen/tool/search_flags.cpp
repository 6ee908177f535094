// SPDX-License-Identifier: Apache-2.0
#include "search_flags.hpp"

#include "model_families.hpp"

#include <fmt/ranges.h>

namespace rankc::tool {

void search_flags::add_models(CLI::App& command) {
  CLI::Option* const name =
      text(command, "--model", line_, "model",
           "gpt3, gpt3_1T or vit_era5; of rankc: gpt2-124m, gpt2-1.5b, llama3-8b, llama3-70b, llama3-405b, "
           "mixtral-8x7b, qwen3-30b-a3b");
  const auto size = [&](const char* flag, const char* field, const char* help) {
    whole(command, flag, sizes_, field, help)->excludes(name)->group("A model by its sizes");
  };
  text(command, "--family", sizes_, "family",
       fmt::format("one of {}; default: llama", fmt::join(names_of(model_families()), ", ")).c_str())
      ->excludes(name)
      ->group("A model by its sizes");
  size("--layers", "layers", "transformer layers");
  size("--hidden", "hidden", "width of the residual stream");
  size("--heads", "heads", "query heads");
  size("--kv-heads", "kv_heads", "key and value heads; not of gpt2");
  size("--head-dim", "head_dim", "width of a head; of qwen3 and qwen3_moe");
  size("--ffn", "ffn", "width of the MLP; not of qwen3_moe and mixtral");
  size("--vocab", "vocab", "tokens of the vocabulary");
  size("--experts", "experts", "experts of a layer; of qwen3_moe and mixtral");
  size("--top-k", "top_k", "experts of a token; of qwen3_moe and mixtral");
  size("--expert-ffn", "expert_ffn", "width of an expert; of qwen3_moe and mixtral");
}

CLI::Option* search_flags::text(CLI::App& command, const char* flag, json& into, const char* field,
                                const char* help) {
  return command.add_option_function<std::string>(
      flag, [&into, field](const std::string& given) { into[field] = given; }, help);
}
CLI::Option* search_flags::whole(CLI::App& command, const char* flag, json& into, const char* field,
                                 const char* help) {
  return command.add_option_function<int>(
                    flag, [&into, field](int given) { into[field] = given; }, help)
      ->type_name("N");
}

search_flags::search_flags(CLI::App& command) {
  text(command, "--cost-model", line_, "cost_model",
       "transformer_perf or rankc; default: rankc where a cluster or sizes of a model are given");
  add_models(command);
  text(command, "--strategy", line_, "strategy", "1d, 2d (SUMMA) or seqp (sequence-parallel)");
  text(command, "--system", line_, "system", "A100, H200, B200 or B200-next");
  whole(command, "--nvs", line_, "nvs", "GPUs of an NVLink domain; default: the system's");
  text(command, "--cluster", line_, "cluster", "h200, h100, a100, b200 or gb200, of rankc");
  whole(command, "--gpus", line_, "gpus", "GPUs");
  whole(command, "--seq", recipe_, "seq", "tokens of a sequence, of rankc");
  whole(command, "--global-batch", recipe_, "global_batch", "sequences of a step");
  command.add_option("--emit", files_.header, "write the fastest plan as a header, of rankc")
      ->type_name("FILE");
  command.add_option("--html", files_.page, "write what is found as a page, of rankc")->type_name("FILE");
  command
      .add_option_function<double>(
          "--capacity", [this](double given) { line_["capacity_gb"] = given; },
          "memory of a GPU; default: the system's")
      ->type_name("GB");
  whole(command, "--top", line_, "top", "plans to show; default: 10");
  command.add_flag_callback(
      "--corrected", [this] { line_["corrected"] = true; }, "without the model's known defects");
  command.add_flag("--json", as_json_, "print the answer as a JSON line; default: a table");
}

std::optional<json> search_flags::line() const {
  if (line_.empty() && sizes_.empty() && recipe_.empty()) return {};
  json line = line_;
  if (!sizes_.empty()) line["model"] = sizes_;
  if (!line.contains("cost_model") && (line.contains("cluster") || !sizes_.empty()))
    line["cost_model"] = "rankc";
  if (asks_rankc(line)) {
    line["recipe"] = recipe_;
    return line;
  }
  const auto rename = [&](const char* from, const json& of, const char* to) {
    if (of.contains(from)) line[to] = of[from];
  };
  rename("gpus", line_, "n_gpus");
  rename("global_batch", recipe_, "global_batch_size");
  rename("seq", recipe_, "seq");  // the published model refuses it
  line.erase("gpus");
  return line;
}

}  // namespace rankc::tool
