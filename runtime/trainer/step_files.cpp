// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/step_files.hpp>

#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rankc::runtime {

step_files::step_files(const options& o, const run_state& begins, console& say) {
  if (!o.speaks()) return;
  const auto after = o.load.empty() ? std::nullopt : std::optional(begins.step);
  if (!o.metrics.empty()) metrics_.emplace(o.metrics, after);
  if (metrics_)
    for (const std::string& note : metrics_->notes()) say.line("note: " + note);
  if (!o.tensorboard.empty()) tensorboard_.emplace(o.tensorboard, begins.step + 1);
  if (tensorboard_ && tensorboard_->had_curves() && o.load.empty())
    say.line("note: " + runtime::say("RC6128: --tensorboard {} has curves of an earlier run, and TensorBoard "
                                     "will show those of this run instead; give each run its own folder",
                                     o.tensorboard));
}

void step_files::write(const step_metrics& m) {
  if (metrics_) metrics_->write(m);
  if (!tensorboard_) return;
  std::vector<std::pair<std::string_view, double>> values;
  if (!m.is_skipped) values = {{"loss", m.loss}, {"grad_norm", m.grad_norm}};
  values.insert(values.end(), {{"lr", m.lr}, {"tokens_per_s", m.tokens_per_s}});
  if (m.eval_loss) values.emplace_back("eval_loss", *m.eval_loss);
  if (m.routers) values.emplace_back("balance_loss", m.routers->balance);
  if (m.routers && !m.routers->dropped.empty())
    values.emplace_back(
        "dropped", static_cast<double>(std::accumulate(m.routers->dropped.begin(), m.routers->dropped.end(),
                                                       std::int64_t{0})));
  tensorboard_->write(m.step, values);
}

}  // namespace rankc::runtime
