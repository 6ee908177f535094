// SPDX-License-Identifier: Apache-2.0
#include "search_flags.hpp"

namespace rankc::tool {

search_flags::search_flags(CLI::App& command) {
  const auto text = [&](const char* flag, const char* field, const char* help) {
    command.add_option_function<std::string>(
        flag, [this, field](const std::string& given) { line_[field] = given; }, help);
  };
  const auto whole = [&](const char* flag, const char* field, const char* help) {
    command.add_option_function<int>(
               flag, [this, field](int given) { line_[field] = given; }, help)
        ->type_name("N");
  };
  text("--cost-model", "cost_model", "transformer_perf or rankc; default: the first");
  text("--model", "model",
       "gpt3, gpt3_1T or vit_era5; of rankc: gpt2-124m, gpt2-1.5b, llama3-8b, llama3-70b, llama3-405b, "
       "mixtral-8x7b, qwen3-30b-a3b");
  text("--strategy", "strategy", "1d, 2d (SUMMA) or seqp (sequence-parallel)");
  text("--system", "system", "A100, H200, B200 or B200-next");
  whole("--nvs", "nvs", "GPUs of an NVLink domain; default: the system's");
  text("--cluster", "cluster", "h200, h100, a100, b200 or gb200, of rankc");
  command
      .add_option_function<int>(
          "--gpus", [this](int given) { line_["n_gpus"] = line_["gpus"] = given; }, "GPUs")
      ->type_name("N");
  command
      .add_option_function<int>(
          "--seq", [this](int given) { line_["recipe"]["seq"] = given; }, "tokens of a sequence, of rankc")
      ->type_name("N");
  command
      .add_option_function<int>(
          "--global-batch",
          [this](int given) { line_["global_batch_size"] = line_["recipe"]["global_batch"] = given; },
          "sequences of a step")
      ->type_name("N");
  command.add_option("--emit", files_.header, "write the fastest plan as a header, of rankc")
      ->type_name("FILE");
  command.add_option("--html", files_.page, "write what is found as a page, of rankc")->type_name("FILE");
  command
      .add_option_function<double>(
          "--capacity", [this](double given) { line_["capacity_gb"] = given; },
          "memory of a GPU; default: the system's")
      ->type_name("GB");
  whole("--top", "top", "plans to show; default: 10");
  command.add_flag_callback(
      "--corrected", [this] { line_["corrected"] = true; }, "without the model's known defects");
}

std::optional<json> search_flags::line() const {
  if (line_.empty()) return {};
  json line = line_;
  const bool of_rankc = line.value("cost_model", json()) == "rankc";
  for (const char* of_other : {"n_gpus", "global_batch_size"})
    if (of_rankc) line.erase(of_other);
  for (const char* own : {"gpus", "recipe"})
    if (!of_rankc) line.erase(own);
  return line;
}

}  // namespace rankc::tool
