// SPDX-License-Identifier: Apache-2.0
// A program that no pass has made: accepted as it is, refused with one op changed.
#include <doctest/doctest.h>

#include "by_hand.hpp"

namespace by_hand_test {

using namespace equivalence_tests;
using rankc::codegen::access;  // and not that of unistd.h

namespace {

std::string reason(const program_by_hand& x) { return reason(x, model_by_hand()); }

}  // namespace

TEST_CASE("a program by hand computes its model") {
  const program_by_hand x = two_ranks_by_hand();
  const equivalence e = check_equivalence(x.p, x.order, model_by_hand());
  CHECK_MESSAGE(e.holds, reason(x));
  REQUIRE(e.claims.size() == 5);
  CHECK(e.claims[0] == "the loss that 2 ranks leave is the model's, over all 8 tokens");
}

TEST_CASE("the second microbatch overwrites the first") {
  program_by_hand x = two_ranks_by_hand();
  find(x, 0, "embedding_grad", 1).views[0].adds = false;
  CHECK(reason(x) ==
        "sum_squares: the gradient of table: tokens 0..1 missing (rank 0): embedding_grad writes over tokens "
        "0..1, which "
        "embedding_grad had made (rank 0)");
}

TEST_CASE("a gradient is not reduced") {
  program_by_hand x = two_ranks_by_hand();
  for (int r = 0; r < 2; ++r) {
    op& sum = find(x, r, "all_reduce");
    for (access& a : find(x, r, "adamw").reads)
      if (a.value == sum.writes[0].value) a.value = sum.reads[0].value;
  }
  CHECK(reason(x) ==
        "adamw: the gradient of table: tokens 2..3 and 6..7 missing (rank 0): embedding_grad makes tokens "
        "2..3 on rank 1; "
        "nothing adds them up with those of rank 0");
}

TEST_CASE("both ranks have the same tokens") {
  program_by_hand x = two_ranks_by_hand();
  x.p.ranks[1].ops[0].holds = x.p.ranks[0].ops[0].holds;
  CHECK(reason(x) == "all_reduce: tokens 0..1 and 4..5 are in the sum twice (rank 1)");
}

TEST_CASE("a microbatch has the targets of another") {
  program_by_hand x = two_ranks_by_hand();
  find(x, 1, "exp_sums").reads[2] = find(x, 1, "exp_sums", 1).reads[2];
  CHECK(reason(x) ==
        "exp_sums: targets has tokens 6..7 of 8; expected tokens 2..3 of 8, as another operand has (rank 1)");
}

TEST_CASE("the loss is of another scale, the gradient is not") {
  program_by_hand x = two_ranks_by_hand();
  find(x, 1, "cross_entropy").number = 0.25;
  CHECK(reason(x) ==
        "cross_entropy: it makes cross_entropy of net: exp_sums, which the model computes nowhere (rank 1)");
}

TEST_CASE("an update reads the norm of another rank's shard, or none") {
  program_by_hand x = two_ranks_by_hand();
  find(x, 0, "adamw").reads.back().value = find(x, 0, "cross_entropy", 1).writes[0].value;
  CHECK(reason(x).find("adamw: the norm: ") == 0);
}

TEST_CASE("a rank begins with a part of the table") {
  program_by_hand x = two_ranks_by_hand();
  x.p.ranks[0].ops[0].holds[0].box[0].count = 2;
  CHECK(reason(x) == "begin: it is 72 bytes for elements 0..1 of 3 x 0..2 of 3 (rank 0)");
}

TEST_CASE("results lie over operands only where their kernel allows it") {
  program_by_hand x = two_ranks_by_hand();
  op& o = find(x, 0, "embedding_grad", 1);
  o.writes[0].begin = o.reads[1].begin;
  o.writes[0].end = o.writes[0].begin + 72;
  CHECK(reason(x) == "embedding_grad of the gradient of table: dtable is written where dy lies (rank 0)");
}

TEST_CASE("an op reads what nothing has written") {
  program_by_hand x = two_ranks_by_hand();
  find(x, 0, "row_max").reads[0].value = 9999;
  CHECK(reason(x) == "row_max: it reads what nothing is known to have written (rank 0)");
}

TEST_CASE("rows lie apart, or a result is added, where the kernel does not know of it") {
  program_by_hand x = two_ranks_by_hand();
  find(x, 0, "row_max").views[1].stride = 6;
  CHECK(reason(x) == "row_max: logits has rows 6 apart; expected 3, its width (rank 0)");
  x = two_ranks_by_hand();
  find(x, 0, "embedding").views[0].adds = true;
  CHECK(reason(x) == "embedding of table: y is added to what is there; its kernel overwrites (rank 0)");
}

TEST_CASE("a step leaves weights and moments where the next begins with them") {
  program_by_hand x = two_ranks_by_hand();
  for (op* o : {&find(x, 1, "adamw"), &find(x, 1, "end")})
    for (auto* accesses : {&o->reads, &o->writes})
      for (access& a : *accesses)
        if (a.value == find(x, 1, "adamw").writes[0].value) {
          a.begin += 1 << 14;
          a.end += 1 << 14;
        }
  const access& now = find(x, 1, "end").reads[0];
  CHECK(reason(x).starts_with("end: the weight of table is left in bytes " + std::to_string(now.begin)));
  x = two_ranks_by_hand();
  std::swap(find(x, 0, "end").holds[1].kind, find(x, 0, "end").holds[2].kind);
  CHECK(reason(x) != "");
  x = two_ranks_by_hand();
  find(x, 0, "adamw").views[0].stride = 4;
  CHECK(reason(x) == "adamw: weight is given in part (rank 0)");
}

TEST_CASE("a gradient is rounded before it is of all tokens") {
  program_by_hand x = two_ranks_by_hand();
  op &reduction = find(x, 1, "all_reduce"), rounding;
  rounding.name = rounding.row = "copy";
  const tensor_shape table{{words, words}, 2};
  rounding.views = {{.port = "y", .written = true, .accesses = {0, 1}, .shape = table, .stride = words},
                    {.port = "x", .accesses = {0, 1}, .shape = table, .stride = words}};
  rounding.reads = reduction.reads;
  rounding.writes = {{1 << 14, (1 << 14) + 18, 7000, element_type::bf16}};
  reduction.reads = rounding.writes;
  std::vector<op>& ops = x.p.ranks[1].ops;
  x.order.position[1].push_back(static_cast<int>(ops.size()));
  ops.insert(ops.begin() + (&reduction - ops.data()), rounding);
  CHECK(reason(x) ==
        "copy of the gradient of table: a sum over tokens is kept in bf16; expected f32 or f64 (rank 1)");
}

TEST_CASE("a part of a parameter is on no rank") {
  specification model = model_by_hand();
  model.layers[0].values.push_back({{4}});
  model.layers[0].parameters.push_back({"spare", 7, false});
  model.uses[0].parameters.push_back("spare");
  for (const std::int64_t count : {2, 1}) {
    program_by_hand x = two_ranks_by_hand();
    for (int r = 0; r < 2; ++r) {
      std::vector<op>& ops = x.p.ranks[static_cast<std::size_t>(r)].ops;
      const holding h{.kind = holding_kind::weight, .name = "spare", .box = {{2 * r, r == 0 ? 2 : count}}};
      const auto bytes = static_cast<std::size_t>(8 * h.box[0].count);
      const access a{1 << 20, (1 << 20) + bytes, 500 + r, element_type::f64};
      ops.front().writes.push_back(a);
      ops.front().holds.push_back(h);
      ops.back().reads.push_back(a);
      ops.back().holds.push_back(h);
    }
    const equivalence e = check_equivalence(x.p, x.order, model);
    CHECK(e.holds == (count == 2));
    if (count == 1) CHECK(e.reasons.at(0) == "spare: features 3..3 missing on all ranks");
  }
}

TEST_CASE("a program or a model that names what it has not is refused") {
  program_by_hand x = two_ranks_by_hand();
  find(x, 0, "embedding_grad", 1).writes[0].replaces = 7;
  CHECK(reason(x) == "an op names an operand that it has not");
  x = two_ranks_by_hand();
  find(x, 0, "row_max").views[1].stride = 0;
  CHECK(reason(x) == "row_max: logits has no elements (rank 0)");
  x = two_ranks_by_hand();
  specification model = model_by_hand();
  model.layers[0].ops[0].in[1] = 70;
  CHECK(check_equivalence(x.p, x.order, model).reasons.at(0) == "net: the model names what it has not");
  CHECK(check_equivalence(x.p, x.order, {}).reasons.at(0) == "the model has no layers");
}

}  // namespace by_hand_test
