// SPDX-License-Identifier: Apache-2.0
// The programs for GPUs against PyTorch and against the host: losses, every element of every gradient,
// repeated runs.
#include "losses.hpp"

#include <cuda_runtime_api.h>
#include <rankc/contract/device_memory.hpp>

#include <sstream>

#include "calls.hpp"
#include "traces.hpp"

namespace {

using rankc::runtime::region;

template <class Check>
void for_each_program(int gpus, const std::string& type, Check check) {
  int seen = 0;
  for (const registered& program : cuda_registry) {
    if (program.type != type || program.about->world() != gpus) continue;
    CAPTURE(program.job);
    CAPTURE(program.layout);
    check(program);
    ++seen;
  }
  CHECK(seen > 0);
}

void reproduce_losses(int gpus) {
  loss_difference worst;
  for_each_program(gpus, "f32", [&](const registered& program) {
    const loss_difference d = difference_of_losses(program);
    CHECK(d.early <= 2e-5);
    CHECK(d.late <= 5e-4);
    worst = {std::max(worst.early, d.early), std::max(worst.late, d.late)};
  });
  MESSAGE("f32, " << gpus << " GPUs: largest difference " << worst.early << " in the first 5 steps, "
                  << worst.late << " after");
}

/// The gradients of a first step; `host`: on one rank in f64.
tensors first_gradients(const registered& program) {
  run r = start(program);
  r.step();
  return r.tensors(region::gradients);
}
const tensors& host_gradients(const std::string& job) {
  static std::map<std::string, tensors> known;
  if (known.count(job) == 0)
    for (const registered& program : host_registry)
      if (program.job == job && program.layout == "one" && program.type == "f64")
        known[job] = first_gradients(program);
  REQUIRE(known.count(job) == 1);
  return known[job];
}

/// Largest error of an element, relative to the largest element of its tensor; and of a tensor, as a ratio of
/// norms. A key's bias has no gradient in exact arithmetic: its errors are measured against the query's.
struct gradient_difference {
  double element = 0, tensor = 0;
};
gradient_difference difference(const tensors& wanted, const tensors& got) {
  REQUIRE(wanted.size() == got.size());
  gradient_difference worst;
  for (const auto& [name, values] : wanted) {
    CAPTURE(name);
    REQUIRE(got.count(name) == 1);
    const std::vector<double>& others = got.at(name);
    REQUIRE(values.size() == others.size());
    std::string scale = name;
    if (const auto at = scale.find("wk.bias"); at != scale.npos) scale[at + 1] = 'q';
    double largest = 0, square = 0, error = 0, error_square = 0;
    for (double v : wanted.at(scale)) {
      largest = std::max(largest, std::abs(v));
      square += v * v;
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double off = std::abs(values[i] - others[i]);
      error = off <= error ? error : off;
      error_square += off * off;
    }
    REQUIRE(largest > 0);
    const double element = error / largest, tensor = std::sqrt(error_square / square);
    worst.element = element <= worst.element ? worst.element : element;
    worst.tensor = tensor <= worst.tensor ? worst.tensor : tensor;
  }
  return worst;
}

void compare_gradients(int gpus, const std::string& type, double element, double tensor) {
  gradient_difference worst;
  for_each_program(gpus, type, [&](const registered& program) {
    const gradient_difference d = difference(host_gradients(program.job), first_gradients(program));
    CHECK(d.element <= element);
    CHECK(d.tensor <= tensor);
    worst = {std::max(worst.element, d.element), std::max(worst.tensor, d.tensor)};
  });
  MESSAGE(type << ", " << gpus << " GPUs: gradients differ from the host's f64 by " << worst.element
               << " (element), " << worst.tensor << " (tensor)");
}

/// The GPU memory that a rank may use outside the arena and the CUDA context: workspaces, graphs and
/// communicators.
std::size_t beside_the_arena(const rankc::runtime::description& about, const rankc::runtime::rank_row& rank) {
  const auto lanes = about.layouts[rank.pp].lanes;
  const auto computing =
      std::count_if(lanes.begin(), lanes.end(), [](const auto& lane) { return lane.computes; });
  return (std::size_t{64} << 20) + rankc::cuda::workspace_bytes * static_cast<std::size_t>(computing) +
         rankc::cuda::communicator_bytes * rank.links.size();
}

std::size_t free_memory(int device) {
  std::size_t free = 0, total = 0;
  REQUIRE(cudaSetDevice(device) == cudaSuccess);
  REQUIRE(cudaMemGetInfo(&free, &total) == cudaSuccess);
  return free;
}

/// Losses, norms and weights after three steps.
std::pair<std::vector<double>, tensors> three_steps(const registered& program) {
  run r = start(program);
  std::vector<double> seen;
  for (int n = 0; n < 3; ++n) {
    const auto out = r.step();
    seen.push_back(out.loss);
    seen.push_back(out.grad_norm);
  }
  return {seen, r.tensors(region::weights)};
}

/// The number of a rank's actions on other computing lanes, and how many of them ran while an action ran on
/// lane 0.
struct actions_beside {
  int all = 0, overlapping = 0;
};
actions_beside count_overlaps(const rankc::runtime::layout& where,
                              const std::vector<rankc::runtime::traced>& did, int rank) {
  actions_beside counted;
  for (const auto& b : did) {
    if (b.rank != rank || b.lane == 0 || !where.lanes[static_cast<std::size_t>(b.lane)].computes) continue;
    ++counted.all;
    counted.overlapping += std::any_of(did.begin(), did.end(), [&](const auto& c) {
      return c.rank == rank && c.lane == 0 && c.begin < b.end && b.begin < c.end;
    });
  }
  return counted;
}

/// A rank's actions with their times. Units: microseconds since the step began.
std::string times_of(const std::vector<rankc::runtime::traced>& did, int rank) {
  std::ostringstream text;
  for (const auto& t : did)
    if (t.rank == rank) text << " lane " << t.lane << ' ' << t.name << ' ' << t.begin << '-' << t.end << ';';
  return text.str();
}

/// Check that actions overlap. If a rank has a single pair of actions, these may run one after the other: a
/// rank that begins a step earlier than its peer, by more than a tiny action takes, waits for the peer's
/// message. The peer's pair overlaps then.
void check_overlaps(const registered& program, const std::vector<rankc::runtime::traced>& did) {
  int ranks = 0, ranks_that_overlap = 0;
  for (int rank = 0; rank < program.about->world(); ++rank) {
    const rankc::runtime::layout& where = program.about->layouts[program.about->ranks[rank].pp];
    if (where.lanes.size() <= 2 || !where.lanes[2].computes) continue;
    ++ranks;
    const actions_beside seen = count_overlaps(where, did, rank);
    CHECK(seen.all > 0);
    if (seen.all > 1) CHECK_MESSAGE(seen.overlapping > 0, times_of(did, rank));
    ranks_that_overlap += seen.overlapping > 0;
  }
  if (ranks > 0) CHECK(ranks_that_overlap > 0);
}

void check_all(int gpus) {
  SUBCASE("f32 losses are PyTorch's to 2e-5 in the first five steps and 5e-4 after") {
    reproduce_losses(gpus);
  }
  SUBCASE("f32 gradients are the host's") { compare_gradients(gpus, "f32", 1e-5, 1e-5); }
  SUBCASE("bf16 gradients are the host's to bf16's rounding") { compare_gradients(gpus, "bf16", 5e-2, 2e-2); }
  SUBCASE("a deterministic plan gives the same bits again, in the memory that was planned") {
    for_each_program(gpus, "bf16", [&](const registered& program) {
      REQUIRE(program.about->deterministic);
      CHECK(three_steps(program) == three_steps(program));
      std::vector<std::size_t> before;
      for (int rank = 0; rank < gpus; ++rank) before.push_back(free_memory(rank));
      run r = start(program);
      r.step();
      for (int rank = 0; rank < gpus; ++rank) {
        const std::size_t planned = program.about->layouts[program.about->ranks[rank].pp].arena_bytes;
        const std::size_t taken = before[rank] - free_memory(rank);
        CHECK(r.engine->arena_bytes(rank) == planned);
        CHECK(taken >= planned);
        CHECK(taken <= planned + beside_the_arena(*program.about, program.about->ranks[rank]));
      }
    });
  }
  SUBCASE("a timed step has every action of every rank in order, and changes no bit") {
    for_each_program(gpus, "bf16", [&](const registered& program) {
      run timed = start(program), plain = start(program);
      timed.step();
      plain.step();
      std::vector<rankc::runtime::traced> did;
      const auto out = traced_step(timed, did), same = plain.step();
      CHECK(out.loss == same.loss);
      CHECK(out.grad_norm == same.grad_norm);
      check_times(program, did);
      check_overlaps(program, did);
      CHECK(timed.step().loss == plain.step().loss);
      CHECK(step_by_calls(timed, true).loss == plain.step().loss);
      CHECK(traced_step(timed, did).loss == plain.step().loss);
    });
  }
  SUBCASE("an evaluation leaves weights alone and gives the loss that a step would") {
    for_each_program(gpus, "f32", [&](const registered& program) {
      if (program.job != "gpt2_16") return;
      run r = start(program);
      r.step();
      const tensors before = r.tensors(region::weights);
      r.load();
      const double loss = r.engine->evaluate();
      CHECK(r.tensors(region::weights) == before);
      CHECK(loss == r.step().loss);
    });
  }
}

}  // namespace

TEST_CASE("1 GPU") { check_all(1); }
TEST_CASE("2 GPUs") { check_all(2); }
TEST_CASE("4 GPUs") { check_all(4); }
