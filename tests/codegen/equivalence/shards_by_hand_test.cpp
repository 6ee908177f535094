// SPDX-License-Identifier: Apache-2.0
// Sharded parameters: handmade programs are accepted as they are, and refused with one fault.
#include <doctest/doctest.h>

#include <rankc/codegen/certificate.hpp>
#include <rankc/codegen/prove.hpp>
#include <rankc/codegen/verify.hpp>

#include "placed.hpp"
#include "shards_by_hand.hpp"

namespace shards_by_hand_test {

using namespace equivalence_tests;
using rankc::codegen::access;  // unistd.h has a function of this name

namespace {

std::string reason(const program_by_hand& x) { return reason(x, model_of_two()); }
placed why(const program_by_hand& x) { return placed_of(reason(x)); }

}  // namespace

TEST_CASE("shards by hand compute their model, and their certificate says so") {
  for (const shards& s : {shards{}, shards{.of = 4}, shards{.replicas = 2}, shards{.of = 4, .present = 2}}) {
    const program_by_hand x = sharded_by_hand(s);
    CHECK(reason(x) == "");
    const verdict order = prove(x.p);
    REQUIRE_MESSAGE(order.ok, order.reasons.at(0));
    const std::string text = certificate({{x.p, order}}, model_of_two());
    CHECK(verify(text) == "");
    const certified c = read_certificate(text);
    CHECK(check_equivalence(c.steps[0].program, c.steps[0].verdict, c.model).holds);
  }
}

TEST_CASE("a gather is missing, of other rows, or over other ranks") {
  program_by_hand x = sharded_by_hand();
  for (int r = 0; r < 2; ++r) find(x, r, "all_gather") = {};
  CHECK(why(x) == placed{"rank 0, embedding", {7671, {"10240", "10336"}}});
  x = sharded_by_hand({.of = 3});
  x.p.communicators[0].ranks = {0, 2, 1};
  CHECK(why(x) ==
        placed{"rank 0, embedding of table", {7425, {"words", "0", "table", "words 0..0, 2..2 and 1..1"}}});
  x = sharded_by_hand({.replicas = 2});
  for (int r = 0; r < 4; ++r) find(x, r, "all_gather").communicator = 2 + r % 2;
  CHECK(why(x) == placed{"rank 3, all_gather", {7642, {}}});
  x = sharded_by_hand({.of = 4, .present = 2});
  x.p.communicators[0].size = 3;
  CHECK(why(x) == placed{"rank 0, all_gather", {7589, {"96", "3", "24"}}});
}

TEST_CASE("a gather's tensors are in another order on one rank") {
  program_by_hand x = sharded_by_hand();
  op& o = find(x, 1, "all_gather");
  std::swap(o.reads[0], o.reads[1]);
  std::swap(o.writes[0], o.writes[1]);
  CHECK(why(x) == placed{"rank 1, all_gather", {7493, {}}});
}

TEST_CASE("a gather writes over the rank's own shard alone, where it belongs") {
  for (const bool belongs : {true, false}) {
    program_by_hand x = sharded_by_hand();
    for (int r = 0; r < 2; ++r) {
      const access own = find(x, r, "all_gather").reads[0], all = find(x, r, "all_gather").writes[0];
      const std::size_t shard = belongs ? r : 1 - r;
      for (op& o : x.p.ranks[static_cast<std::size_t>(r)].ops)
        for (auto* accesses : {&o.reads, &o.writes})
          for (access& a : *accesses)
            if (a.value == all.value) {
              a.begin = 4096 + own.begin - shard * (own.end - own.begin);
              a.end = a.begin + all.end - all.begin;
            } else {
              a.begin += 4096;
              a.end += 4096;
            }
    }
    // The gather may write there. But the optimizer's kernel also updates the bytes behind so small a shard.
    const placed behind{"", {7277, {"0", "all_gather", "4096", "4192"}}};
    CHECK(why(x) == (belongs ? behind : placed{"rank 0, all_gather", {7590, {}}}));
  }
}

TEST_CASE("a shard is updated from a gradient that is reduced over no ranks") {
  program_by_hand x = sharded_by_hand();
  for (int r = 0; r < 2; ++r) {
    std::vector<op>& ops = x.p.ranks[static_cast<std::size_t>(r)].ops;
    for (int k = 0; k < 2; ++k) {
      op &both = find(x, r, "reduce_scatter", k), own;
      own.name = own.row = "copy";
      own.reads = {both.reads[0]};
      own.writes = {both.writes[0]};
      const tensor_shape rows{{2, words}, 2};
      own.views = {{.port = "y", .written = true, .accesses = {0, 1}, .shape = rows, .stride = words},
                   {.port = "x",
                    .accesses = {0, 1},
                    .offset = 48 * static_cast<std::size_t>(r),
                    .shape = rows,
                    .stride = words}};
      both.reads.erase(both.reads.begin());
      both.writes.erase(both.writes.begin());
      both.bytes = both.writes[0].end - both.writes[0].begin;
      ops.insert(ops.begin() + (&both - ops.data()), own);
    }
    std::vector<int>& places = x.order.position[static_cast<std::size_t>(r)];
    for (int k = 0; k < 2; ++k) places.push_back(static_cast<int>(places.size()));
  }
  CHECK(why(x) == placed{"rank 0, sum_squares",
                         {7402,
                          {"the gradient of table", "tokens 4..7 and 12..15", "embedding_grad", "tokens 4..7",
                           "1", "0"}}});
}

TEST_CASE("a gradient lacks a microbatch, or has it twice") {
  program_by_hand x = sharded_by_hand();
  for (int r = 0; r < 2; ++r) find(x, r, "add").reads[0].value = find(x, r, "add").reads[1].value;
  CHECK(why(x) == placed{"rank 0, sum_squares",
                         {7400,
                          {"the gradient of table", "tokens 0..7 of the gradient of table", "add", "0",
                           "tokens 0..3", "reduce_scatter"}}});
  x = sharded_by_hand();
  for (int r = 0; r < 2; ++r) {
    op& add = find(x, r, "add");
    find(x, r, "sum_squares").reads[0] = add.reads[0];
    find(x, r, "adamw").reads[1] = add.reads[0];
  }
  CHECK(why(x) == placed{"rank 0, sum_squares",
                         {7401, {"the gradient of table", "tokens 8..15", "0", "add", "tokens 8..11"}}});
  x = sharded_by_hand();
  for (int r = 0; r < 2; ++r) {
    op& more = find(x, r, "add");
    more.name = "all_reduce";
    more.kind = op_kind::collective;
    more.communicator = 0;
    more.row = {};
    more.views.clear();
    more.reads.pop_back();
    more.bytes = more.reads[0].end - more.reads[0].begin;
  }
  CHECK(why(x) == placed{"rank 1, all_reduce", {7487, {}}});
}

TEST_CASE("gradients and norms are summed over copies, or not over replicas") {
  program_by_hand x = sharded_by_hand({.replicas = 2});
  for (int r = 0; r < 4; ++r) find(x, r, "all_reduce").communicator = r / 2;
  CHECK(why(x) == placed{"rank 1, all_reduce", {7487, {}}});
  x = sharded_by_hand({.replicas = 2});
  for (int r = 0; r < 4; ++r) find(x, r, "all_reduce", 4).communicator = 2 + r % 2;
  CHECK(why(x) == placed{"rank 2, all_reduce", {7500, {"features 0..1"}}});
  x = sharded_by_hand({.replicas = 2});
  for (int r = 0; r < 4; ++r)
    for (const char* row : {"sum_squares", "adamw"})
      for (access& a : find(x, r, row).reads)
        if (a.value == find(x, r, "all_reduce").writes[0].value)
          a.value = find(x, r, "all_reduce").reads[0].value;
  CHECK(why(x) == placed{"rank 0, sum_squares",
                         {7402,
                          {"the gradient of table", "tokens 4..7 and 12..15", "embedding_grad", "tokens 4..5",
                           "2", "0"}}});
  x = sharded_by_hand();
  find(x, 1, "adamw").reads[4].value = find(x, 1, "sum_squares").writes[0].value;
  CHECK(why(x) ==
        placed{"rank 1, adamw", {7405, {"the norm", "features 0..1 of the squares of a gradient"}}});
}

TEST_CASE("rows past the end of a gradient are not zeros") {
  program_by_hand x = sharded_by_hand();
  find(x, 1, "reduce_scatter").reads[0].value = find(x, 1, "clear", 1).reads[0].value;
  CHECK(why(x) == placed{"rank 1, reduce_scatter", {7485, {"3", "12"}}});
  x = sharded_by_hand();
  find(x, 0, "clear", 1).views[0].offset -= 24;
  CHECK(why(x) == placed{"rank 0, clear of the gradient of table", {7678, {}}});
  x = sharded_by_hand();
  find(x, 0, "bias_grad", 1).views[0].offset = 8;
  CHECK(why(x) == placed{"rank 1, reduce_scatter", {7485, {"1", "4"}}});
  x = sharded_by_hand();
  find(x, 1, "adamw", 1).reads[1].value =
      find(x, 1, "adamw", 1).reads[2].value;  // the first moment, which is zero
  CHECK(why(x) == placed{"rank 1, adamw",
                         {7470,
                          {"the gradient of shift", "a value that does not occur in the model",
                           "the gradient of shift"}}});
}

TEST_CASE("a shard that is all past the end is updated with something else than zeros") {
  program_by_hand x = sharded_by_hand({.of = 4});
  find(x, 3, "adamw", 1).reads[1].value = find(x, 3, "cross_entropy").writes[0].value;
  CHECK(why(x) == placed{"rank 3, adamw", {7474, {"the loss"}}});
}

TEST_CASE("what ranks hold of a parameter tiles it") {
  specification model = model_by_hand();
  model.layers[0].values.push_back({{3, 4}});
  model.layers[0].parameters.push_back({"spare", 7, false});
  model.uses[0].parameters.push_back("spare");
  const auto reason_of = [&](const std::vector<box_range>& first, const std::vector<box_range>& second) {
    program_by_hand x = two_ranks_by_hand();
    for (int r = 0; r < 2; ++r) {
      std::vector<op>& ops = x.p.ranks[static_cast<std::size_t>(r)].ops;
      const holding h{.kind = holding_kind::weight, .name = "spare", .box = r == 0 ? first : second};
      const access a{1 << 20, (1 << 20) + static_cast<std::size_t>(8 * h.box[0].count * h.box[1].count),
                     500 + r, element_type::f64};
      ops.front().writes.push_back(a);
      ops.back().reads.push_back(a);
      ops.front().holds.push_back(h);
      ops.back().holds.push_back(h);
    }
    const equivalence e = check_equivalence(x.p, x.order, model);
    return e.holds ? "" : e.reasons.at(0);
  };
  CHECK(reason_of({{0, 2}, {0, 4}}, {{2, 2}, {0, 4}}) == "");
  CHECK(reason_of({{0, 3}, {0, 2}}, {{0, 3}, {2, 2}}) == "");
  CHECK(placed_of(reason_of({{0, 2}, {0, 4}}, {{0, 2}, {0, 4}})) ==
        placed{"parameter spare", {7624, {"features 2..2", "0"}}});
  CHECK(placed_of(reason_of({{0, 2}, {0, 4}}, {{1, 2}, {0, 4}})) ==
        placed{"parameter spare",
               {7625, {"0", "elements 0..1 of 3 x 0..3 of 4", "1", "elements 1..2 of 3 x 0..3 of 4"}}});
  CHECK(placed_of(reason_of({{0, 2}, {0, 2}}, {{2, 1}, {2, 2}})) ==
        placed{"parameter spare", {7626, {"6", "12"}}});
  CHECK(reason_of({{0, 3}, {0, 4}}, {{3, 1}, {0, 4}}) == "");  // the second shard is entirely past the end
  CHECK(placed_of(reason_of({{0, 3}, {0, 4}}, {{3, 2}, {0, 4}})) ==
        placed{"rank 1, begin", {7463, {"the weight of spare", "2", "3", "0", "3"}}});
  CHECK(placed_of(reason_of({{0, 3}, {0, 2}}, {{0, 3}, {2, 3}})) ==
        placed{"rank 1, begin", {7463, {"the weight of spare", "3", "2", "1", "4"}}});
}

TEST_CASE("what ranks hold along two axes tiles it, with all ranks in the program or two along each axis") {
  specification model = model_of_two();
  model.layers[0].values.push_back({{3, 4}});
  model.layers[0].parameters.push_back({"spare", 9, false});
  model.uses[0].parameters.push_back("spare");
  using boxes = std::vector<std::vector<box_range>>;  // replica 0's shards, then replica 1's
  const auto reason_of = [&](const shards& s, const boxes& held) {
    program_by_hand x = sharded_by_hand(s);
    for (std::size_t r = 0; r < x.p.ranks.size(); ++r) {
      std::vector<op>& ops = x.p.ranks[r].ops;
      const holding h{.kind = holding_kind::weight, .name = "spare", .box = held.at(r)};
      const access a{1 << 20, (1 << 20) + static_cast<std::size_t>(8 * h.box[0].count * h.box[1].count),
                     5000 + static_cast<int>(r), element_type::f64};
      ops.front().writes.push_back(a);
      ops.back().reads.push_back(a);
      ops.front().holds.push_back(h);
      ops.back().holds.push_back(h);
    }
    const equivalence e = check_equivalence(x.p, x.order, model);
    return e.holds ? "" : e.reasons.at(0);
  };
  const shards two{.replicas = 2}, four_of_which_two{.replicas = 2, .of = 4, .present = 2};
  const boxes quarters{{{0, 2}, {0, 2}}, {{2, 2}, {0, 2}}, {{0, 2}, {2, 2}}, {{2, 2}, {2, 2}}};
  CHECK(reason_of(two, quarters) == "");
  CHECK(placed_of(reason_of(two, {quarters[0], quarters[1], quarters[2], quarters[2]})) ==
        placed{"parameter spare", {7626, {"2", "12"}}});
  const boxes rows{{{0, 1}, {0, 2}},
                   {{1, 1}, {0, 2}},
                   {{0, 1}, {2, 2}},
                   {{1, 1}, {2, 2}}};  // the fourth shard has no elements
  CHECK(reason_of(four_of_which_two, rows) == "");
  CHECK(placed_of(reason_of(four_of_which_two, {rows[0], rows[1], rows[2], rows[0]})) ==
        placed{"parameter spare", {7623, {"3", "4"}}});
  CHECK(placed_of(reason_of(four_of_which_two, {rows[0], rows[1], rows[2], {{2, 1}, {2, 2}}})) ==
        placed{"parameter spare", {7622, {"3", "elements 2..2 of 3 x 2..3 of 4", "0"}}});
  CHECK(placed_of(reason_of(four_of_which_two, {rows[0], rows[0], rows[2], rows[2]})) ==
        placed{"parameter spare", {7624, {"features 1..2", "0"}}});
  CHECK(placed_of(reason_of(four_of_which_two, {rows[0], rows[1], rows[0], rows[1]})) ==
        placed{"parameter spare", {7624, {"features 2..3", "1"}}});
  CHECK(placed_of(reason_of(four_of_which_two, quarters)) ==
        placed{"parameter spare", {7640, {"4", "features 0..7", "3"}}});
  CHECK(placed_of(reason_of(four_of_which_two, {rows[0], rows[3], rows[2], rows[3]})) ==
        placed{"parameter spare",
               {7620, {"0", "elements 0..0 of 3 x 0..1 of 4", "1", "elements 1..1 of 3 x 2..3 of 4"}}});
  const boxes halves{{{0, 1}, {0, 1}}, {{1, 1}, {0, 1}}, {{0, 1}, {2, 1}}, {{1, 1}, {2, 1}}};
  CHECK(placed_of(reason_of(four_of_which_two, halves)) ==
        placed{"parameter spare", {7624, {"features 1..1 and 3..3", "1"}}});
}

}  // namespace shards_by_hand_test
