// SPDX-License-Identifier: Apache-2.0
// Programs of documents, lowered: their certificates, their memory, and where documents begin.
#include <doctest/doctest.h>

#include <rankc/codegen/certificate.hpp>
#include <rankc/codegen/equivalence.hpp>
#include <rankc/codegen/lowered.hpp>
#include <rankc/codegen/verify.hpp>
#include <rankc/runtime/chunks.hpp>
#include <rankc/runtime/documents.hpp>

#include <algorithm>
#include <vector>

#include "../families/check_lowered.hpp"
#include "../some_of.hpp"
#include "plans.hpp"

namespace lowering_test {

using namespace rankc::codegen;

TEST_CASE("certificates are accepted, for either target; with starts of another place they are not") {
  int programs = 0, changed = 0, with_documents = 0;
  const std::vector<split_plan> all = documents::plans(), some = rankc::test::some_of(all);
  REQUIRE(all.size() == RANKC_PLANS);
  for (const split_plan& p : some) {
    with_documents += p.plan.recipe.has_documents();
    CAPTURE(p.job);
    CAPTURE(p.layout);
    for (const target t : {target::host, target::cuda}) {
      const lowered l = lower(p.plan, t == target::host ? dtype::f64 : dtype::bf16, t);
      check_arenas(l);
      for (program q : {expand_train(l), expand_evaluate(l)}) {
        const verdict order = prove(q);
        const std::string text = certificate({{q, order}}, specify(p.plan));
        CHECK(verify(text) == "");
        certified read = read_certificate(text);
        const auto is_model = [&] {
          return check_equivalence(read.steps.at(0).program, read.steps[0].verdict, read.model).holds;
        };
        CHECK(is_model());
        ++programs;
        CHECK((text.find("\"starts\"") != text.npos) == p.plan.recipe.has_documents());
        if (!p.plan.recipe.has_documents()) continue;
        for (holding& h : read.steps[0].program.ranks[0].ops.front().holds)
          if (h.kind == holding_kind::starts) h.box[0].first += 1;
        CHECK(!is_model());
        ++changed;
      }
    }
  }
  CHECK(programs == 4 * static_cast<int>(some.size()));
  CHECK(changed == 4 * with_documents);
  CHECK(with_documents > 0);
}

TEST_CASE("a document begins after the token that ends one, and with the sequence") {
  using rankc::runtime::find_starts;
  const std::vector<std::int32_t> tokens{1, 9, 2, 3, 9, 9, 4, 5,  // the second 9 is a whole document
                                         9, 1, 1, 1, 1, 1, 1, 9, 1, 2, 3, 4, 5, 6, 7, 8};
  std::vector<std::int32_t> starts(tokens.size(), -1);
  find_starts(tokens.data(), 3, 8, 9, starts.data());
  CHECK(starts ==
        std::vector<std::int32_t>{0, 0, 2, 2, 2, 5, 6, 6, 0, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0});
}

TEST_CASE("how many of a rank's tokens lie before a position") {
  using rankc::runtime::chunks;
  for (const int ranks : {1, 2, 3, 4})
    for (int rank = 0; rank < ranks; ++rank) {
      const chunks has{24, ranks, rank};
      for (int position = 0; position <= 24; ++position) {
        int before = 0;
        for (int place = 0; place < has.count(); ++place) before += has.position(place) < position;
        CHECK(has.count_before(position) == before);
      }
    }
}

}  // namespace lowering_test
