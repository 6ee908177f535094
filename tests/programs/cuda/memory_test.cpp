// SPDX-License-Identifier: Apache-2.0
// The memory that a program's processes really take on each GPU, from their contexts to their communicators,
// against the plan's count. This process has its own contexts before it begins to measure.
#include "plans.hpp"

#include <cuda_runtime_api.h>
#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <rankc/codegen/lowered.hpp>
#include <rankc/memory/opened.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>

namespace {

constexpr int gpus = 2;
constexpr std::size_t mib = std::size_t{1} << 20;

std::size_t free_memory(int device) {
  std::size_t free = 0, total = 0;
  REQUIRE(cudaSetDevice(device) == cudaSuccess);
  REQUIRE(cudaMemGetInfo(&free, &total) == cudaSuccess);
  return free;
}

/// A child of this executable with pipes to its stdin and from its stdout.
struct child {
  explicit child(std::vector<std::string> words) {
    words.insert(words.begin(), {"memory_test", "--hold"});
    std::vector<char*> arguments;
    for (std::string& w : words) arguments.push_back(w.data());
    arguments.push_back(nullptr);
    int in[2], out[2];
    REQUIRE(pipe2(in, O_CLOEXEC) == 0);
    REQUIRE(pipe2(out, O_CLOEXEC) == 0);
    process = fork();
    REQUIRE(process >= 0);
    if (process == 0) {
      dup2(in[0], STDIN_FILENO);
      dup2(out[1], STDOUT_FILENO);
      execv("/proc/self/exe", arguments.data());
      _exit(127);
    }
    close(in[0]);
    close(out[1]);
    end = in[1];
    ready = out[0];
  }
  child(const child&) = delete;
  /// Let the child end. Processes of one program end together.
  void release() {
    if (end >= 0) close(end);
    end = -1;
  }
  ~child() {
    release();
    int status = 0;
    waitpid(process, &status, 0);
    close(ready);
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0);
  }
  bool is_ready() const {
    pollfd p{ready, POLLIN, 0};
    return poll(&p, 1, 0) > 0;
  }
  pid_t process;
  int end, ready;
};

/// The most memory that the children use on each GPU until all are ready.
std::vector<std::size_t> most_taken(const std::vector<std::vector<std::string>>& all) {
  std::vector<std::size_t> before, most(gpus);
  for (int d = 0; d < gpus; ++d) before.push_back(free_memory(d));
  std::vector<std::unique_ptr<child>> children;
  for (const auto& words : all) children.push_back(std::make_unique<child>(words));
  for (bool ready = false; !ready; usleep(2000)) {
    ready = std::all_of(children.begin(), children.end(), [](const auto& c) { return c->is_ready(); });
    for (int d = 0; d < gpus; ++d)
      if (const std::size_t now = free_memory(d); now < before[d])
        most[d] = std::max(most[d], before[d] - now);
  }
  for (const auto& c : children) c->release();
  return most;
}

/// The bytes that the plan counts for a rank: its arena, and the bound for everything else.
struct counted {
  std::size_t arena, beside;
};
std::vector<counted> count(const std::string& layout, rankc::cuda::edges_by by) {
  const auto shape = std::find_if(std::begin(programs::layouts), std::end(programs::layouts),
                                  [&](const auto& l) { return layout == l.name; });
  const rankc::plan_data plan = programs::make(programs::jobs[1], *shape, true);
  const rankc::codegen::lowered l =
      rankc::codegen::lower(plan, rankc::runtime::dtype::bf16, rankc::codegen::target::cuda);
  const rankc::layout mesh(plan.dims);
  std::vector<counted> ranks;
  for (int rank = 0; rank < plan.dims.world; ++rank) {
    const auto& r = l.ranks[static_cast<std::size_t>(mesh.at(rank)[rankc::axis::pp])];
    const bool ties = std::any_of(r.links.begin(), r.links.end(),
                                  [](const auto& k) { return k.over == rankc::runtime::over::tied; });
    ranks.push_back(
        {r.arena.bytes, rankc::cuda::bytes_beside_arena(rankc::opened_by(mesh, plan.actions, r.index, ties),
                                                        by, plan.dims.world)});
    if (by == rankc::cuda::edges_by::nccl)
      CHECK(ranks.back().beside == rankc::codegen::bytes_beside_arena(l, r));
  }
  return ranks;
}

bool map_each_other() {
  int there = 0, back = 0;
  return cudaDeviceCanAccessPeer(&there, 0, 1) == cudaSuccess &&
         cudaDeviceCanAccessPeer(&back, 1, 0) == cudaSuccess && there && back;
}

}  // namespace

TEST_CASE("a rank takes no more of its GPU than the plan counts, launched either way") {
  REQUIRE(std::string(programs::jobs[1].name) == "gpt2_8");
  for (const std::string layout : {"dp2", "tp2_sp", "pp2_1f1b", "pp2_zbv", "pp2_dual", "pp2_dual_v"})
    for (const bool processes : {false, true}) {
      CAPTURE(layout);
      CAPTURE(processes);
      using rankc::cuda::edges_by;
      const auto ranks = count(layout, !processes && map_each_other() ? edges_by::mapped : edges_by::nccl);
      REQUIRE(ranks.size() == gpus);
      const std::string port = std::to_string(20000 + getpid() % 20000);
      const auto taken =
          processes ? most_taken({{"gpt2_8", layout, "0", "0", port}, {"gpt2_8", layout, "1", "1", port}})
                    : most_taken({{"gpt2_8", layout, "-1", "0", ""}});
      for (int d = 0; d < gpus; ++d) {
        CHECK(taken[d] >= ranks[d].arena);
        CHECK(taken[d] <= ranks[d].arena + ranks[d].beside);
        const std::string launch = processes ? "processes" : "threads";
        MESSAGE(layout << ", " << launch << ", GPU " << d << ": " << (taken[d] - ranks[d].arena) / mib
                       << " MiB beside the arena, counted " << ranks[d].beside / mib);
      }
    }
}

TEST_CASE("a rank on GPU 1 takes nothing of GPU 0") {
  const auto taken = most_taken({{"gpt2_8", "one", "0", "1", ""}});
  MESSAGE("taken of GPU 0: " << taken[0] / mib << " MiB, of GPU 1: " << taken[1] / mib);
  CHECK(taken[0] < 64 * mib);  // a CUDA context takes half a GiB
  CHECK(taken[1] >= 256 * mib);
}
