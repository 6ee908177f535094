// SPDX-License-Identifier: Apache-2.0
// Embedding a step: this program links gpt_program, gives it weights and a batch, and trains.
#include <gpt_program/program.hpp>

#include <cstdio>
#include <random>
#include <vector>

int main() {
  using namespace rankc::runtime;
  const auto engine = rankc::host::install(gpt::program);

  std::mt19937 bits(1);
  for (const parameter& p : gpt::about.layouts[0].parameters) {
    std::normal_distribution<double> random(0, p.std);
    std::vector<double> values(static_cast<std::size_t>(p.rows) * p.cols, p.init == fill::ones ? 1 : 0);
    if (p.init == fill::uniform)
      for (double& x : values) x = random(bits);
    engine->write(0, region::weights, p.element, values.size(), values.data());
  }

  std::vector<std::int32_t> tokens(gpt::about.rows * gpt::about.seq), next(tokens.size());
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    tokens[i] = static_cast<int>(i) % gpt::about.vocab;
    next[i] = static_cast<int>(i + 1) % gpt::about.vocab;
  }
  engine->set_batch(0, 0, tokens.data(), next.data());

  const recipe& r = gpt::about.train;
  for (int step = 1; step <= 20; ++step) {
    const step_output out = engine->step({r.lr, r.weight_decay, r.clip, r.beta1, r.beta2, r.eps, step});
    std::printf("step %d  loss %.6f\n", step, out.loss);
  }
}
