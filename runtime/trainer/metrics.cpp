// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/metrics.hpp>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace rankc::runtime {

std::string json_line(const step_metrics& m) {
  nlohmann::ordered_json line = {{"step", m.step},
                                 {"loss", m.loss},
                                 {"grad_norm", m.grad_norm},
                                 {"lr", m.lr},
                                 {"tokens", m.tokens},
                                 {"step_ms", m.step_ms},
                                 {"tokens_per_s", m.tokens_per_s},
                                 {"mfu", nullptr},
                                 {"peak_bytes", m.peak_bytes}};
  if (m.is_skipped) {
    line["loss"] = line["grad_norm"] = nullptr;
    line["skipped"] = true;
  }
  if (m.mfu) line["mfu"] = *m.mfu;
  if (m.predicted_ms) line["predicted_ms"] = *m.predicted_ms;
  if (m.eval_loss) line["eval_loss"] = *m.eval_loss;
  if (m.routers) {
    line["balance_loss"] = m.routers->balance;
    line["expert_load"] = m.routers->load;
  }
  if (m.routers && !m.routers->dropped.empty()) line["dropped"] = m.routers->dropped;
  return line.dump();
}

std::string console_line(const step_metrics& m, std::int64_t last_step) {
  const int width = static_cast<int>(fmt::formatted_size("{}", last_step));
  const auto mfu = m.mfu ? fmt::format("  mfu {:5.1f} %", 100 * *m.mfu) : "";
  const auto number = [&](double value, int columns, int decimals) {
    return m.is_skipped ? fmt::format("{:>{}}", "-", columns)
                        : fmt::format("{:{}.{}f}", value, columns, decimals);
  };
  const auto held_out = m.eval_loss ? fmt::format("  held-out loss {:9.6f}", *m.eval_loss) : "";
  return fmt::format("step {:{}}/{}  loss {}  grad norm {}  lr {:.3e}  {:9.2f} ms  {:9.0f} tokens/s{}{}",
                     m.step, width, last_step, number(m.loss, 9, 6), number(m.grad_norm, 8, 4), m.lr,
                     m.step_ms, m.tokens_per_s, mfu, held_out);
}

bool is_shown(std::int64_t step, std::int64_t first_step, std::int64_t last_step) {
  const std::int64_t every = (last_step - first_step + 20) / 20;
  return step == first_step || step == last_step || step % every == 0;
}

}  // namespace rankc::runtime
