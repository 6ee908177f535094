// SPDX-License-Identifier: Apache-2.0
// A process takes the GPUs of its own ranks, and leaves the others alone: CUDA gives each thread GPU 0 until it names
// another, and a context there takes half a GiB.
#include "../tables.hpp"
#include "fake_cuda.hpp"

#include <doctest/doctest.h>

#include <string>
#include <thread>

namespace rankc::cuda::test {
namespace {

void step_of(rank& r) {
  begin(r, "F0");
  all_reduce<float>(r, stream::compute, role::dp, {0, "loss"}, loss_at, 1);
}

constexpr step_input input{.lr = 0, .weight_decay = 0, .clip = 0, .beta1 = 0, .beta2 = 0, .eps = 1, .step = 1};

/// All that can be asked of an engine, each call from a thread that has not named a GPU; and its end.
void use(std::unique_ptr<engine> e) {
  const std::vector<std::int32_t> ids(n_rows * n_seq);
  std::vector<double> values(parameters);
  std::vector<traced> times;
  const auto on_a_thread = [](auto work) { std::thread(work).join(); };
  on_a_thread([&] { e->set_batch(0, 0, ids.data(), ids.data()); });
  on_a_thread([&] { e->step(input); });
  on_a_thread([&] { e->evaluate(); });
  on_a_thread([&] { e->traced_step(input, times); });
  for (int rank = 0; rank < e->about().world(); ++rank) {
    on_a_thread([&] { e->read(rank, region::weights, 0, parameters, values.data()); });
    on_a_thread([&] { e->write(rank, region::weights, 0, parameters, values.data()); });
  }
  on_a_thread([&] { e.reset(); });
}

struct data_parallel : tables {
  data_parallel() : tables(1, 2) {
    connect("dp", {0, 1}, {role::dp, role::dp});
    about.type = dtype::bf16;  // a write refreshes the working copy, by a kernel
  }
};
void (*const body[])(rank&) = {step_of};

TEST_CASE("a rank with a process of its own has a context on its own GPU alone") {
  data_parallel t;
  for (const int own : {0, 1}) {
    CAPTURE(own);
    take_contexts();
    std::unique_ptr<engine> e;
    std::thread([&] {
      e = install({.about = t.about, .train = body, .evaluate = body},
                  {.rank = own, .device = own, .meeting = "127.0.0.1:1"});
    }).join();
    CHECK(take_contexts() == std::to_string(own));
    use(std::move(e));
    CHECK(take_contexts() == std::to_string(own));
  }
}

TEST_CASE("ranks that are threads have a GPU each") {
  data_parallel t;
  take_contexts();
  std::unique_ptr<engine> e = install({.about = t.about, .train = body, .evaluate = body});
  CHECK(take_contexts() == "0 1");
  use(std::move(e));
  CHECK(take_contexts() == "0 1");
}

}  // namespace
}  // namespace rankc::cuda::test
