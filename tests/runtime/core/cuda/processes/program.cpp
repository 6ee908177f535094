// SPDX-License-Identifier: Apache-2.0
// A program of two data-parallel ranks with the trainer's command line, like a generated one, for the test
// with ranks as threads and as processes. FAIL_AT_RANK=r stops that rank: HOW=throw or signal in install,
// HOW=fault by a fault of its GPU in the first step.
#include "../failures/fault.hpp"
#include "../tables.hpp"

#include <rankc/trainer/main.hpp>

#include <csignal>
#include <cstdlib>
#include <string>

namespace rankc::runtime::cuda::test {
namespace {

void fail_where_asked(rank& r) {
  const char *at = std::getenv("FAIL_AT_RANK"), *how = std::getenv("HOW");
  if (at == nullptr || how == nullptr || r.alone || std::to_string(r.index) != at) return;
  if (std::string(how) == "fault") return fault_if_asked(r);
  if (std::string(how) == "signal") std::raise(SIGKILL);
  throw failure::reported(70, "rank " + std::to_string(r.index) + ", install: fails on purpose");
}

/// Loss
/// w
/// ^2 summed over the ranks, with gradient w from every rank.
void train_step(rank& r) {
  begin(r[compute], "F0");
  fail_where_asked(r);
  sum_squares<float>(r[compute], loss_at, weights, all_parameters, false);
  all_reduce<float>(r[compute], over::dp, {0, "loss"}, loss_at, 1);
  clear<float>(r[compute], gradients, parameters);
  add<float>(r[compute], gradients, gradients, weights, parameters);
  all_reduce<float>(r[compute], over::dp, {1, "gradients"}, gradients, parameters);
  begin(r[compute], "update");
  sum_squares<float>(r[compute], norm_at, gradients, all_parameters, false);
  adamw<float>(r[compute], weights, gradients, first_moment, second_moment, norm_at, all_parameters);
}
void evaluate_step(rank& r) {
  begin(r[compute], "F0");
  sum_squares<float>(r[compute], loss_at, weights, all_parameters, false);
}

}  // namespace
}  // namespace rankc::runtime::cuda::test

int main(int argc, char** argv) {
  using namespace rankc::cuda::test;
  using namespace rankc::runtime;
  using namespace rankc::cuda;
  tables t(1, 2);
  t.connect("dp", {0, 1}, {compute, compute}, over::dp);
  const parameter w{.name = "w",
                    .rows = parameters,
                    .cols = 1,
                    .shard_dim = -1,
                    .element = 0,
                    .init = fill::uniform,
                    .std = 0.5,
                    .matrix = false,
                    .copy = false};
  t.layouts[0].parameters = {&w, 1};
  t.about.train = {.lr = 0.01,
                   .weight_decay = 0.1,
                   .clip = 1,
                   .beta1 = 0.9,
                   .beta2 = 0.95,
                   .eps = 1e-8,
                   .warmup_steps = 0,
                   .decay_steps = 0,
                   .min_lr = 0};
  void (*const train[])(rank&) = {train_step};
  void (*const evaluate[])(rank&) = {evaluate_step};
  return rankc::runtime::program_main(
      t.about,
      [&](const rankc::runtime::placement& where) {
        return install({.about = t.about, .train = train, .evaluate = evaluate}, where);
      },
      argc, argv);
}
