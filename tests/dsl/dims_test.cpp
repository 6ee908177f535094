// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <rankc/rules/values/dims.hpp>

namespace dims_test {

using namespace rankc;

namespace {

constexpr int first_refusal(parallel_dims d) {
  report out;
  check_dims(out, d);
  return out.empty() ? 0 : out.front().id;
}

static_assert(resolve({.world = 64, .dp_replicate = infer, .tp = 4, .pp = 2}).dp_replicate == 8);
static_assert(resolve({.world = 64, .dp_replicate = 2, .tp = infer, .pp = 2}).tp == 16);
static_assert(resolve({.world = 64, .dp_replicate = 2, .tp = 2, .pp = infer}).pp == 16);
static_assert(resolve({.world = 6, .tp = 4, .pp = infer}).pp == infer,
              "what cannot be inferred stays as it is");
static_assert(resolve({.world = 8, .dp_replicate = 2, .tp = 4}).dp_replicate == 2);

static_assert(first_refusal({}) == 0);
static_assert(
    first_refusal({.world = 8, .dp_replicate = infer, .tp = 2, .pp = 2, .sequence_parallel = true}) == 0);
static_assert(first_refusal({.world = 8, .dp_shard = infer, .tp = 8}) == 0,
              "a degree of 1 of an axis that is not lowered");
static_assert(first_refusal({.world = 2147483647, .tp = 65536, .pp = 65536}) == 101,
              "products beyond int are compared");
static_assert(first_refusal({.world = -8, .tp = 2}) == 104);
static_assert(first_refusal({.world = 2, .tp = infer, .sequence_parallel = true}) == 0);
static_assert(first_refusal({.world = 1, .tp = infer, .sequence_parallel = true}) == 106);

}  // namespace

TEST_CASE("a mesh is legal exactly where its degrees multiply to the world") {
  for (int world = 1; world <= 24; ++world)
    for (int dp = 1; dp <= 6; ++dp)
      for (int tp = 1; tp <= 6; ++tp)
        for (int pp = 1; pp <= 6; ++pp) {
          const parallel_dims d{.world = world, .dp_replicate = dp, .tp = tp, .pp = pp};
          CHECK(first_refusal(d) == (dp * tp * pp == world ? 0 : 101));
          parallel_dims inferred = d;
          inferred.dp_replicate = infer;
          CHECK(first_refusal(inferred) == (world % (tp * pp) == 0 ? 0 : 102));
          if (world % (tp * pp) == 0) CHECK(resolve(inferred).dp_replicate == world / (tp * pp));
        }
}

}  // namespace dims_test
