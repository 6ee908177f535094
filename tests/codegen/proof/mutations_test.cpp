// SPDX-License-Identifier: Apache-2.0
#include "expect_sound.hpp"

#include "pipeline_program.hpp"
#include "random_program.hpp"
#include "../../said.hpp"

#include <doctest/doctest.h>

#include <iterator>
#include <string>

#include "../../some_of.hpp"

namespace mutations_test {

namespace {

using namespace rankc::codegen::testing;

constexpr pipeline_shape shapes[] = {
    {.pp = 1, .microbatches = 3},
    {.pp = 1, .tp = 2, .dp = 2, .microbatches = 2},
    {.pp = 2, .microbatches = 4, .one_f_one_b = false},
    {.pp = 2, .microbatches = 4},
    {.pp = 2, .tp = 2, .microbatches = 3},
    {.pp = 2, .dp = 2, .microbatches = 3, .layers = 1},
    {.pp = 3, .microbatches = 5},
    {.pp = 4, .microbatches = 6, .layers = 1},
    {.pp = 4, .microbatches = 4, .layers = 1, .one_f_one_b = false},
    {.pp = 4, .tp = 2, .dp = 2, .microbatches = 4, .layers = 2},
};

}  // namespace

TEST_CASE("a mutant of a pipeline is accepted when it is harmless, refused when it is not") {
  mutation_report sum;
  const int mutants = rankc::test::plants_all() ? 1200 : 200;  // for each shape
  for (unsigned s = 0; s < std::size(shapes); ++s)
    sum += run_mutations(pipeline_program(shapes[s]),
                         shapes[s].tp * shapes[s].dp == 4 ? mutants / 4 : mutants, s + 1);
  MESSAGE(to_text(sum));
  expect_sound_and_telling(sum);
  // Mutants that are refused without a wrong read: a declaration contradicts the other side or the rank
  // itself.
  for (const auto& text : sum.strict) {
    const int id = rankc::test::said_in(text).id;
    const bool declared = id == 7061 || id == 7028 || text.find("begin") != text.npos;
    CHECK_MESSAGE(declared, text);
  }
}

TEST_CASE("a random program is accepted when no interleaving harms it, refused when one does") {
  using rankc::test::some_of;
  mutation_report sum;
  for (unsigned seed = 0; seed < static_cast<unsigned>(some_of(30000)); ++seed)
    judge(random_program(seed), {"random", std::to_string(seed)}, seed, sum);
  MESSAGE(to_text(sum));
  expect_sound(sum);
  CHECK(sum.total.accepted > some_of(5000));
  CHECK(sum.total.harmful > some_of(5000));
  // The one rule that this model cannot show: NCCL requires each rank to order a communicator's ops.
  for (const auto& text : sum.strict) CHECK_MESSAGE(rankc::test::said_in(text).id == 7066, text);
}

}  // namespace mutations_test
