// SPDX-License-Identifier: Apache-2.0
#include "search_flags.hpp"

namespace rankc::tool {

search_flags::search_flags(CLI::App& command) {
  const auto text = [&](const char* flag, const char* field, const char* help) {
    command.add_option_function<std::string>(flag, [this, field](const std::string& given) { line_[field] = given; }, help);
  };
  const auto whole = [&](const char* flag, const char* field, const char* help) {
    command.add_option_function<int>(flag, [this, field](int given) { line_[field] = given; }, help)->type_name("N");
  };
  text("--cost-model", "cost_model", "transformer_perf");
  text("--model", "model", "gpt3, gpt3_1T or vit_era5");
  text("--strategy", "strategy", "1d, 2d (SUMMA) or seqp (sequence-parallel)");
  text("--system", "system", "A100, H200, B200 or B200-next");
  whole("--nvs", "nvs", "GPUs of an NVLink domain; default: the system's");
  whole("--gpus", "n_gpus", "GPUs");
  whole("--global-batch", "global_batch_size", "sequences of a step");
  command
      .add_option_function<double>(
          "--capacity", [this](double given) { line_["capacity_gb"] = given; }, "memory of a GPU; default: the system's")
      ->type_name("GB");
  whole("--top", "top", "plans to show; default: 10");
  command.add_flag_callback("--corrected", [this] { line_["corrected"] = true; }, "without the model's known defects");
}

}  // namespace rankc::tool
