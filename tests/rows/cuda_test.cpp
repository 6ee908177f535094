// SPDX-License-Identifier: Apache-2.0
// Every claim of the facts against CUDA's kernels, and these kernels against the host's in double precision.
#include "cuda_machine.hpp"
#include "host_machine.hpp"
#include "laws.hpp"

#include <doctest/doctest.h>

namespace rankc::test::rows {
namespace {

template <class F>
void each_case(F f) {
  cuda_machine<float> f32;
  cuda_machine<cuda::bf16> bf16;
  for (machine* on : {static_cast<machine*>(&f32), static_cast<machine*>(&bf16)})
    for (const row& r : rows())
      for (const setting& s : settings(r)) f(*on, r, s);
}

/// Check that a row's kernel gives the host kernel's results for the same numbers.
void check_same(machine& on, machine& host, const row& r, const setting& s) {
  const operands o = random_operands(on, r, s, 20);
  const operands got = on.run(r, s, o), want = host.run(r, s, o);
  for (std::size_t p = 0; p < r.results(); ++p) {
    INFO(on.name() << " " << r.op->name << " is not the host's: " << r.is->ports[p].name);
    CHECK(deviation(got[p], want[p]) <= on.tolerance());
  }
}

TEST_CASE("every row has a kernel") {
  each_case([](machine& on, const row& r, const setting&) {
    INFO(on.name() << " " << r.op->name);
    CHECK(on.has(r));
  });
}
TEST_CASE("rows are the host's") {
  host_machine<double> host;
  each_case([&](machine& on, const row& r, const setting& s) {
    if (host.has(r)) check_same(on, host, r, s);
  });
}
TEST_CASE("definitions") {
  each_case([](machine& on, const row& r, const setting& s) {
    if (r.is_defined_by_others()) check_definition(on, r, s);
  });
}
TEST_CASE("parts of axes") {
  each_case([](machine& on, const row& r, const setting& s) {
    if (!r.is_defined_by_others()) check_parts(on, r, s);
  });
}
TEST_CASE("linear operands, and those left out") { each_case(check_operands); }
TEST_CASE("sums, multiples, zeros") { each_case(check_values); }
TEST_CASE("in place") { each_case(check_in_place); }
TEST_CASE("adding") { each_case(check_adding); }
TEST_CASE("parts around a ring") {
  cuda_machine<float> f32;
  cuda_machine<cuda::bf16> bf16;
  for (machine* on : {static_cast<machine*>(&f32), static_cast<machine*>(&bf16)}) check_ring(*on);
}
TEST_CASE("operands of eight bits") {
  cuda_machine<float> f32;
  cuda_machine<cuda::bf16> bf16;
  for (machine* on : {static_cast<machine*>(&f32), static_cast<machine*>(&bf16)}) check_fp8(*on);
}
TEST_CASE("slots of tokens") {
  cuda_machine<float> f32;
  cuda_machine<cuda::bf16> bf16;
  for (machine* on : {static_cast<machine*>(&f32), static_cast<machine*>(&bf16)}) check_slots(*on);
}
TEST_CASE("chunks of sequences") {
  cuda_machine<float> f32;
  cuda_machine<cuda::bf16> bf16;
  for (machine* on : {static_cast<machine*>(&f32), static_cast<machine*>(&bf16)})
    for (const row& r : chunk_rows()) check_chunks(*on, r);
}
TEST_CASE("the loss does not depend on the shift") {
  each_case([](machine& on, const row& r, const setting& s) {
    if (r.op == &ops::exp_sums) check_shift(on, s);
  });
}

}  // namespace
}  // namespace rankc::test::rows
