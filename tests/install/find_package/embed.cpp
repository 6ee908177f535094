// SPDX-License-Identifier: Apache-2.0
// Embeds a step: this program links gpt_program, gives it memory, weights and batches, and trains. It prints
// its own output.
#include <gpt_program/program.hpp>
#include <rankc/runtime/host/embedded.hpp>

#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

using namespace rankc::runtime;

namespace {

void need(const status& s) {
  if (s.ok()) return;
  std::printf("code %d: %s\n", s.code, s.text);
  std::exit(1);
}

/// Memory of the application.
class counted_memory final : public std::pmr::memory_resource {
 public:
  std::size_t bytes = 0;

 private:
  void* do_allocate(std::size_t n, std::size_t alignment) override {
    bytes += n;
    return std::pmr::new_delete_resource()->allocate(n, alignment);
  }
  void do_deallocate(void* p, std::size_t n, std::size_t alignment) override {
    bytes -= n;
    std::pmr::new_delete_resource()->deallocate(p, n, alignment);
  }
  bool do_is_equal(const memory_resource& other) const noexcept override { return this == &other; }
};

void fill_weights(embedded& rank) {
  std::mt19937 bits(1);
  for (const parameter& p : gpt::about.layouts[0].parameters) {
    std::normal_distribution<double> random(0, p.std);
    std::vector<double> values(static_cast<std::size_t>(p.rows) * p.cols, p.init == fill::ones ? 1 : 0);
    if (p.init == fill::uniform)
      for (double& x : values) x = random(bits);
    need(rank.write(region::weights, p.element, values));
  }
}

}  // namespace

int main() {
  counted_memory memory;
  {
    embedded rank;
    need(rankc::host::embed(
        gpt::program, {.memory = &memory, .log = [](const char* line) { std::printf("log: %s\n", line); }},
        rank));
    fill_weights(rank);

    std::vector<std::int32_t> tokens(gpt::about.tokens_of_microbatch()), next(tokens.size());
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      tokens[i] = static_cast<int>(i) % gpt::about.vocab;
      next[i] = static_cast<int>(i + 1) % gpt::about.vocab;
    }
    need(rank.set_batch(0, tokens, next));
    tokens[7] = gpt::about.vocab;
    if (rank.set_batch(0, tokens, next).code != 1) return 1;  // refused, with a line in the log

    const recipe& r = gpt::about.train;
    for (int step = 1; step <= 20; ++step) {
      step_output out;
      need(rank.step({r.lr, r.weight_decay, r.clip, r.beta1, r.beta2, r.eps, step}, out));
      std::printf("step %d  loss %.6f\n", step, out.loss);
    }
    std::printf("%zu bytes\n", memory.bytes);
  }
  return memory.bytes == 0 ? 0 : 1;
}
