// SPDX-License-Identifier: Apache-2.0
// RC401 at run time: the changes that its message offers. rejects/memory.cpp has a refusal at compile time,
// which takes seconds for each plan.
#include <doctest/doctest.h>

#include <rankc/peak_bytes.hpp>
#include <rankc/rankc.hpp>
#include <rankc/schedules/portfolio.hpp>

#include <string>

namespace peak_bytes_test {

using namespace rankc;

namespace {

constexpr models::gpt2 byte_model{.layers = 8, .hidden = 1024, .heads = 16, .ffn = 4096, .vocab = 256};
constexpr models::gpt2 large_head{.layers = 8, .hidden = 1024, .heads = 16, .ffn = 4096, .vocab = 32768};

/// The sentence of RC401; empty if the plan fits.
/// Units: `memory` in bytes per GPU.
std::string refusal(const auto& model, const parallel_dims& dims, const auto& schedule, int global_batch,
                    long long memory) {
  const report out = diagnose_memory(plan{.model = model,
                                          .dims = dims,
                                          .schedule = schedule,
                                          .recipe = training{.seq = 1024, .global_batch = global_batch},
                                          .cluster = cluster{1, 8, memory, 1e14, 1e11, 1e10}});
  if (out.empty()) return "";
  REQUIRE(out.size() == 1);
  CHECK(out.front().id == 401);
  return std::string(out.front().text.view());
}

constexpr long long enough = 141'000'000'000;

constexpr auto one_row(int heads, long long memory) {
  return plan{.model = models::gpt2{.layers = 1, .hidden = 16, .heads = heads, .ffn = 16, .vocab = 16},
              .dims = {},
              .schedule = schedules::gpipe{1},
              .recipe = training{.seq = 4, .global_batch = 1},
              .cluster = cluster{1, 1, memory, 1e14, 1e11, 1e10}};
}
constexpr plan small_enough = one_row(2, enough), too_large = one_row(2, 1), of_no_size = one_row(2, 0),
               broken = one_row(3, 0);
static_assert(valid<small_enough> && fits<small_enough>);
static_assert(valid<too_large> && !fits<too_large>);
static_assert(valid<of_no_size> && fits<of_no_size>, "without a size of memory nothing is counted");
static_assert(!valid<broken> && !fits<broken>, "a plan that breaks another rule does not fit unnoticed");

// Only a schedule whose type has one stage per rank may be replaced by 1F1B.
static_assert(detail::may_be_one_f_one_b<schedules::gpipe>);
static_assert(!detail::may_be_one_f_one_b<schedules::one_f_one_b>);
static_assert(!detail::may_be_one_f_one_b<schedules::listed>);

}  // namespace

TEST_CASE("RC401: where no other change fits, a larger tp is offered") {
  const parallel_dims dims{.world = 2, .dp_replicate = infer, .tp = 1};
  const schedules::one_f_one_b one_row{.microbatches = 16};
  CHECK(refusal(byte_model, dims, one_row, 32, 3'800'000'000) ==
        "the ranks of pipeline rank 0 need 4.3 GB, and there are 3.8 GB: take tp=2");
  CHECK(refusal(byte_model, dims, one_row, 32, enough) == "");
}

TEST_CASE("RC401: 1F1B is offered to GPipe, which holds the activations of all microbatches") {
  const parallel_dims dims{.world = 2, .pp = 2};
  const schedules::gpipe holds_all{.microbatches = 16};
  CHECK(refusal(byte_model, dims, holds_all, 16, 5'000'000'000) ==
        "the ranks of pipeline rank 1 need 6.9 GB, and there are 5.0 GB: take schedules::one_f_one_b{16}, or "
        "recompute={.full = true}");
  CHECK(refusal(byte_model, dims, holds_all, 16, enough) == "");
}

TEST_CASE("RC401: even stages are offered where the split by cost puts more layers on a rank") {
  const parallel_dims dims{.world = 2, .pp = 2};
  const schedules::one_f_one_b schedule{.microbatches = 2};
  CHECK(refusal(large_head, dims, schedule, 2, 5'700'000'000) ==
        "the ranks of pipeline rank 0 need 5.9 GB, and there are 5.7 GB: take stage_layers{4, 4}, or "
        "recompute={.full = true}");
  CHECK(refusal(large_head, dims, schedule, 2, enough) == "");
}

}  // namespace peak_bytes_test
