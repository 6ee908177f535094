// SPDX-License-Identifier: Apache-2.0
// Runs the memory tests if there are two GPUs, or says "skipped" (77). With --hold first, it is a process of
// a program's ranks: it runs steps of each kind, writes a byte to stdout, and keeps its resources until stdin
// ends.
#include "../../run_tests.hpp"
#include "run.hpp"

#include <rankc/launch/session.hpp>

#include <cuda_runtime_api.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <iostream>
#include <optional>

namespace {

/// Shapes: words: the plan's job and layout, rank (-1: all), device, and the port where two processes meet
/// ("" for one process).
int hold_program(const std::vector<std::string>& words) try {
  const int rank = std::stoi(words.at(2)), device = std::stoi(words.at(3));
  for (const registered& program : cuda_registry) {
    if (program.job != words.at(0) || program.layout != words.at(1) || program.type != "bf16") continue;
    std::optional<rankc::runtime::session> job;
    if (const std::string& port = words.at(4); !port.empty()) {
      const rankc::runtime::launched place{.family = "this test",
                                           .rank = rank,
                                           .world = 2,
                                           .local_rank = device,
                                           .local_size = 2,
                                           .node = 0,
                                           .host = "127.0.0.1",
                                           .port = std::stoi(port),
                                           .job = "memory",
                                           .warning = {}};
      job.emplace(*program.about, place, [](const char* name) -> const char* { return std::getenv(name); });
    }
    auto engine =
        program.install(job ? job->where() : rankc::runtime::placement{.rank = rank, .device = device});
    const rankc::runtime::step_input input{
        .lr = 1e-4, .weight_decay = 0, .clip = 1, .beta1 = 0.9, .beta2 = 0.95, .eps = 1e-8, .step = 1};
    engine->step(input);
    engine->evaluate();
    std::vector<rankc::runtime::traced> times;
    engine->traced_step(input, times);
    char byte = 'r';
    if (write(STDOUT_FILENO, &byte, 1) != 1) return 1;
    while (read(STDIN_FILENO, &byte, 1) > 0) {
    }
    engine.reset();
    if (job) job->leave();
    return 0;
  }
  std::cerr << "no such program\n";
  return 2;
} catch (const std::exception& e) {
  std::cerr << e.what() << "\n";
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string(argv[1]) == "--hold") return hold_program({argv + 2, argv + argc});
  int devices = 0;
  if (cudaGetDeviceCount(&devices) != cudaSuccess) devices = 0;
  if (devices < 2) {
    std::cout << "skipped: these tests need 2 GPUs, and there are " << devices << "\n";
    return 77;
  }
  doctest::Context context(argc, argv);
  return run_tests(context);
}
