// SPDX-License-Identifier: Apache-2.0
// Expected values: published ones for the hashes; for weights, the definition at the head of the PyTorch
// baseline evaluated in Python with exact integers.
#include <rankc/trainer/hash.hpp>

#include <doctest/doctest.h>
#include <vector>

using namespace rankc::runtime;

TEST_CASE("fnv1a64 and splitmix64 have their published values") {
  static_assert(fnv1a64("") == 0xcbf29ce484222325);
  static_assert(fnv1a64("a") == 0xaf63dc4c8601ec8c);
  static_assert(fnv1a64("foobar") == 0x85944171f73967e8);
  static_assert(splitmix64(0) == 0xe220a8397b1dcdaf);
  static_assert(splitmix64(1) == 0x910a2dec89025cc1);
  static_assert(splitmix64(~std::uint64_t{0}) == 0xe4d971771b652c20);
  CHECK(splitmix64(1234) == 0xbb0cf61b2f181cdb);
}

TEST_CASE("first weights equal the baseline's") {
  std::vector<double> w(3);
  hash_uniform("wte", 0.02, 1, 0, 3, w.data());
  CHECK(w == std::vector{0x1.c13d6ep-6, -0x1.bc10eap-6, 0x1.626c48p-6});
  hash_uniform("layers.3.wo", 0.02 / 2.8284271247461903, 7, 0, 3, w.data());
  CHECK(w == std::vector{-0x1.f77548p-8, -0x1.ce595ep-8, -0x1.4446cep-7});
}

TEST_CASE("an element depends on its index alone, past 32 bits too") {
  double w = 0;
  hash_uniform("wte", 0.02, 1, 12345678901, 1, &w);
  CHECK(w == -0x1.f1ae7p-8);
  std::vector<double> whole(1000), part(300);
  hash_uniform("wq", 0.02, 9, 0, whole.size(), whole.data());
  hash_uniform("wq", 0.02, 9, 450, part.size(), part.data());
  CHECK(std::vector(whole.begin() + 450, whole.begin() + 750) == part);
}
