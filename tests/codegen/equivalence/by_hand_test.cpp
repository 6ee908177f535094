// SPDX-License-Identifier: Apache-2.0
// A handmade program: accepted as it is, refused with one op changed.
#include <doctest/doctest.h>

#include "by_hand.hpp"
#include "placed.hpp"

namespace by_hand_test {

using namespace equivalence_tests;
using rankc::codegen::access;  // unistd.h has a function of this name

namespace {

std::string reason(const program_by_hand& x) { return reason(x, model_by_hand()); }
placed why(const program_by_hand& x) { return placed_of(reason(x)); }

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
  CHECK(why(x) == placed{"rank 0, sum_squares",
                         {7400,
                          {"the gradient of table", "tokens 0..1", "embedding_grad", "0", "tokens 0..1",
                           "embedding_grad"}}});
}

TEST_CASE("a gradient is not reduced") {
  program_by_hand x = two_ranks_by_hand();
  for (int r = 0; r < 2; ++r) {
    op& sum = find(x, r, "all_reduce");
    for (access& a : find(x, r, "adamw").reads)
      if (a.value == sum.writes[0].value) a.value = sum.reads[0].value;
  }
  CHECK(why(x) == placed{"rank 0, adamw",
                         {7402,
                          {"the gradient of table", "tokens 2..3 and 6..7", "embedding_grad", "tokens 2..3",
                           "1", "0"}}});
}

TEST_CASE("no op makes the gradient of a microbatch") {
  program_by_hand x = two_ranks_by_hand();
  op &first = find(x, 1, "embedding_grad"), &second = find(x, 1, "embedding_grad", 1);
  for (access& a : find(x, 1, "all_reduce").reads)
    if (a.value == second.writes[0].value) a.value = first.writes[0].value;
  rank_program& rank = x.p.ranks[1];
  rank.ops.erase(rank.ops.begin() + (&second - rank.ops.data()));
  x.order.position[1].erase(x.order.position[1].begin() + (&second - rank.ops.data()));
  CHECK(why(x) == placed{"rank 0, sum_squares",
                         {7403, {"the gradient of table", "tokens 6..7", "embedding_grad", "0"}}});
}

TEST_CASE("both ranks have the same tokens") {
  program_by_hand x = two_ranks_by_hand();
  x.p.ranks[1].ops[0].holds = x.p.ranks[0].ops[0].holds;
  CHECK(why(x) == placed{"rank 1, all_reduce", {7500, {"tokens 0..1 and 4..5"}}});
}

TEST_CASE("a microbatch has the targets of another") {
  program_by_hand x = two_ranks_by_hand();
  find(x, 1, "exp_sums").reads[2] = find(x, 1, "exp_sums", 1).reads[2];
  CHECK(why(x) == placed{"rank 1, exp_sums", {7414, {"targets", "tokens 6..7", "8", "tokens 2..3", "8"}}});
}

TEST_CASE("the loss is of another scale, the gradient is not") {
  program_by_hand x = two_ranks_by_hand();
  find(x, 1, "cross_entropy").number = 0.25;
  CHECK(why(x) == placed{"rank 1, cross_entropy", {7433, {"cross_entropy", "net: exp_sums"}}});
}

TEST_CASE("an update reads the norm of another rank's shard, or none") {
  program_by_hand x = two_ranks_by_hand();
  find(x, 0, "adamw").reads.back().value = find(x, 0, "cross_entropy", 1).writes[0].value;
  CHECK(why(x) ==
        placed{"rank 0, adamw",
               {7402, {"the norm", "tokens 2..3 and 6..7", "cross_entropy", "tokens 2..3", "1", "0"}}});
}

TEST_CASE("a rank begins with a part of the table") {
  program_by_hand x = two_ranks_by_hand();
  x.p.ranks[0].ops[0].holds[0].box[0].count = 2;
  CHECK(why(x) ==
        placed{"rank 0, begin", {7460, {"the weight of table", "72", "elements 0..1 of 3 x 0..2 of 3"}}});
}

TEST_CASE("results lie over operands only where their kernel allows it") {
  program_by_hand x = two_ranks_by_hand();
  op& o = find(x, 0, "embedding_grad", 1);
  o.writes[0].begin = o.reads[1].begin;
  o.writes[0].end = o.writes[0].begin + 72;
  CHECK(why(x) == placed{"rank 0, embedding_grad of the gradient of table", {7576, {"dtable", "dy"}}});
}

TEST_CASE("an op reads what nothing has written") {
  program_by_hand x = two_ranks_by_hand();
  find(x, 0, "row_max").reads[0].value = 9999;
  CHECK(why(x) == placed{"rank 0, row_max", {7671, {"7168", "7216"}}});
}

TEST_CASE("rows lie apart, or a result is added, where the kernel does not know of it") {
  program_by_hand x = two_ranks_by_hand();
  find(x, 0, "row_max").views[1].stride = 6;
  CHECK(why(x) == placed{"rank 0, row_max", {7565, {"logits", "6", "3"}}});
  x = two_ranks_by_hand();
  find(x, 0, "embedding").views[0].adds = true;
  CHECK(why(x) == placed{"rank 0, embedding of table", {7568, {"y"}}});
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
  CHECK(why(x) == placed{"rank 1, end",
                         {7467,
                          {"the weight of table", std::to_string(now.begin), std::to_string(now.end),
                           "elements 0..2 of 3 x 0..2 of 3"}}});
  x = two_ranks_by_hand();
  std::swap(find(x, 0, "end").holds[1].kind, find(x, 0, "end").holds[2].kind);
  CHECK(reason(x) != "");
  x = two_ranks_by_hand();
  find(x, 0, "adamw").views[0].stride = 4;
  CHECK(why(x) == placed{"rank 0, adamw", {7581, {"weight"}}});
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
  CHECK(why(x) == placed{"rank 1, copy of the gradient of table", {7673, {"bf16"}}});
}

TEST_CASE("a sum that is doubled and never reduced does not fill the memory") {
  program_by_hand x = two_ranks_by_hand();
  const tensor_shape table{{words, words}, 2};
  for (int r = 0; r < 2; ++r) {
    op& reduction = find(x, r, "all_reduce");
    std::vector<op> doublings;
    for (int i = 0; i < 40; ++i) {
      op& o = doublings.emplace_back();
      o.name = o.row = "add";
      o.views = {{.port = "y", .written = true, .accesses = {0, 1}, .shape = table, .stride = words},
                 {.port = "a", .accesses = {0, 1}, .shape = table, .stride = words},
                 {.port = "b", .accesses = {1, 1}, .shape = table, .stride = words}};
      const access given = i == 0 ? reduction.reads[0] : doublings[doublings.size() - 2].writes[0];
      o.reads = {given, given};
      const std::size_t begin = (1 << 14) + 72 * static_cast<std::size_t>(i);
      o.writes = {{begin, begin + 72, 7000 + 100 * r + i, element_type::f64}};
    }
    std::vector<op>& ops = x.p.ranks[static_cast<std::size_t>(r)].ops;
    ops.insert(ops.begin() + (&reduction - ops.data()), doublings.begin(), doublings.end());
    std::vector<int>& places = x.order.position[static_cast<std::size_t>(r)];
    while (places.size() < ops.size()) places.push_back(static_cast<int>(places.size()));
  }
  CHECK(why(x) == placed{"rank 0, add", {7748, {"2048", "1027"}}});
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
    if (count == 1)
      CHECK(placed_of(e.reasons.at(0)) == placed{"parameter spare", {7624, {"features 3..3", "0"}}});
  }
}

TEST_CASE("a program or a model that names what it has not is refused") {
  program_by_hand x = two_ranks_by_hand();
  find(x, 0, "embedding_grad", 1).writes[0].replaces = 7;
  CHECK(why(x) == placed{"", {7456, {}}});
  x = two_ranks_by_hand();
  find(x, 0, "row_max").views[1].stride = 0;
  CHECK(why(x) == placed{"rank 0, row_max", {7578, {"logits"}}});
  x = two_ranks_by_hand();
  specification model = model_by_hand();
  model.layers[0].ops[0].in[1] = 70;
  CHECK(placed_of(check_equivalence(x.p, x.order, model).reasons.at(0)) ==
        placed{"", {7600, {"net", "70", "7"}}});
  CHECK(placed_of(check_equivalence(x.p, x.order, {}).reasons.at(0)) == placed{"", {7601, {}}});
}

}  // namespace by_hand_test
