// SPDX-License-Identifier: Apache-2.0
// Tensors that move to other bytes, or are read in part. Each program passed all other checks and was wrong.
#include <doctest/doctest.h>

#include <rankc/plan/make_plan.hpp>
#include <rankc/rankc.hpp>
#include <rankc/runtime/hashed_call.hpp>

#include <algorithm>
#include <stdexcept>

#include "../../example_plans.hpp"
#include "certificate/hash_places.hpp"
#include "plans.hpp"
#include "refused.hpp"

namespace places_test {

using namespace equivalence_tests;

namespace {

/// Tensors of 18 or more elements, whose padding the optimizer's kernel also updates; reductions are in bf16.
rankc::plan_data odd_gpt() {
  using namespace rankc;
  return make_plan("odd_gpt", models::gpt2{.layers = 2, .hidden = 18, .heads = 3, .ffn = 20, .vocab = 22},
                   parallel_dims{.world = 2, .pp = 2}, schedules::one_f_one_b{2},
                   training{.seq = 8, .global_batch = 4, .precision = bf16, .reductions = bf16},
                   clusters::h200<1>);
}
rankc::plan_data experts() {
  using namespace rankc;
  const models::qwen3_moe model{.layers = 1,
                                .hidden = 16,
                                .heads = 4,
                                .kv_heads = 2,
                                .head_dim = 4,
                                .experts = 4,
                                .top_k = 2,
                                .expert_ffn = 8,
                                .vocab = 32};
  return make_plan("experts", model, parallel_dims{.world = 1}, schedules::gpipe{1},
                   training{.seq = 8, .global_batch = 4, .precision = f32}, clusters::cpu);
}
const subject& trained() {
  static const subject made(odd_gpt(), target::cuda, dtype::bf16);
  return made;
}
const subject& evaluated() {
  static const subject made(odd_gpt(), target::cuda, dtype::bf16, true);
  return made;
}

/// Move a tensor: redirect all accesses of a rank to exactly its bytes.
void move(rank_program& r, std::size_t begin, std::size_t end, std::size_t to) {
  for (op& o : r.ops)
    for (auto* accesses : {&o.reads, &o.writes})
      for (rankc::codegen::access& a : *accesses)
        if (a.begin == begin && a.end == end) {
          a.begin = to;
          a.end = to + (end - begin);
        }
}

/// Give a value of a rank another address and size.
void give_bytes(rank_program& r, int value, std::size_t begin, std::size_t bytes) {
  for (op& o : r.ops)
    for (auto* accesses : {&o.reads, &o.writes})
      for (rankc::codegen::access& a : *accesses)
        if (a.value == value) {
          a.begin = begin;
          a.end = begin + bytes;
        }
}

/// A tensor that a rank holds at the start or at the end of its step.
rankc::codegen::access held(const rank_program& r, holding_kind kind, const std::string& name = "") {
  const auto look = [&](const op& o, const auto& accesses) -> const rankc::codegen::access* {
    for (std::size_t i = 0; i < o.holds.size(); ++i)
      if (o.holds[i].kind == kind && (name.empty() || o.holds[i].name == name)) return &accesses[i];
    return nullptr;
  };
  if (const auto* begun = look(r.ops.front(), r.ops.front().writes)) return *begun;
  if (const auto* left = look(r.ops.back(), r.ops.back().reads)) return *left;
  throw std::logic_error("the rank has no such tensor");
}

/// A tensor of a kind, held at the start, that does not fill its last block of elements.
rankc::codegen::access with_tail(const rank_program& r, holding_kind kind) {
  const op& begun = r.ops.front();
  for (std::size_t i = 0; i < begun.holds.size(); ++i) {
    const rankc::codegen::access& a = begun.writes[i];
    if (begun.holds[i].kind == kind &&
        (a.end - a.begin) % (rankc::runtime::elements_apart * element_size(a.type)) != 0)
      return a;
  }
  throw std::logic_error("the rank has no such tensor");
}

/// Grow an arena. Returns: where the new bytes begin.
std::size_t grow(rank_program& r, std::size_t bytes) {
  const std::size_t begin = (r.arena_bytes + 255) / 256 * 256;
  r.arena_bytes = begin + bytes;
  return begin;
}

rank_program& last_rank(subject& s) { return s.p.ranks.back(); }

/// Move the last rank's loss right behind a tensor.
void put_loss_behind(subject& s, const rankc::codegen::access& tensor) {
  const rankc::codegen::access loss = held(last_rank(s), holding_kind::loss);
  move(last_rank(s), loss.begin, loss.end, (tensor.end + 3) / 4 * 4);
}

}  // namespace

TEST_CASE("programs to change are accepted as they are") {
  CHECK(trained().reason() == "");
  CHECK(evaluated().reason() == "");
}

TEST_CASE("the loss lies behind a tensor, where the optimizer's kernel writes") {
  for (const holding_kind kind :
       {holding_kind::weight, holding_kind::working_copy, holding_kind::first_moment})
    check_refused(trained(), 7277, [&](subject& s) { put_loss_behind(s, with_tail(last_rank(s), kind)); });
}

TEST_CASE("evaluation writes behind a gradient of training") {
  subject evaluation = evaluated();
  const subject& training = trained();
  REQUIRE(check_steps({kept_by(training.p), kept_by(evaluation.p)}, training.model).holds);
  const auto norm_op = std::find_if(training.p.ranks.back().ops.begin(), training.p.ranks.back().ops.end(),
                                    [](const op& o) { return o.row == "sum_squares"; });
  REQUIRE(norm_op != training.p.ranks.back().ops.end());
  const op& norm = *norm_op;
  const auto gradient = std::find_if(norm.reads.begin(), norm.reads.end(), [](const auto& a) {
    return (a.end - a.begin) % (rankc::runtime::elements_apart * element_size(a.type)) != 0;
  });
  REQUIRE(gradient != norm.reads.end());
  put_loss_behind(evaluation, *gradient);
  CHECK(evaluation.reason() == "");
  const equivalence together = check_steps({kept_by(training.p), kept_by(evaluation.p)}, training.model);
  REQUIRE(together.reasons.size() == 1);
  CHECK(rankc::test::said_in(together.reasons.front()).id == 7759);
}

TEST_CASE("the last tensor of the optimizer ends with the arena, and its kernel does not") {
  check_refused(trained(), 7757, [](subject& s) {
    rank_program& r = last_rank(s);
    const rankc::codegen::access moment = with_tail(r, holding_kind::second_moment);
    move(r, moment.begin, moment.end, grow(r, moment.end - moment.begin));
  });
}

TEST_CASE("a working copy lies where the optimizer's kernel does not write it") {
  check_refused(trained(), 7758, [](subject& s) {
    rank_program& r = last_rank(s);
    const rankc::codegen::access copy = held(r, holding_kind::working_copy);
    move(r, copy.begin, copy.end, grow(r, 2 * (copy.end - copy.begin) + 256));
  });
}

TEST_CASE("a gradient of f32 is added to as f64") {
  static const subject sound(small_llama(), target::host);
  check_refused(sound, 7755, [](subject& s) {
    rank_program& r = s.p.ranks[0];
    const auto adds = std::find_if(r.ops.begin(), r.ops.end(), [](const op& o) {
      return o.row == "linear_dw" && !o.writes.empty() && o.writes[0].replaces >= 0;
    });
    REQUIRE(adds != r.ops.end());
    const rankc::codegen::access sum = adds->reads[static_cast<std::size_t>(adds->writes[0].replaces)];
    const std::size_t bytes = 2 * (sum.end - sum.begin), begin = grow(r, bytes);
    give_bytes(r, sum.value, begin, bytes);
    adds->writes[0].begin = begin;
    adds->writes[0].end = begin + bytes;
    adds->writes[0].type = element_type::f64;
  });
}

TEST_CASE("a result begins elsewhere than the operand by which its kernel is told") {
  static const subject sound(examples::plan("gpt_dp2_tp2_pp2"), target::cuda, dtype::bf16);
  check_refused(sound, 7756, [](subject& s) {
    for (std::size_t r = 0; r < s.p.ranks.size(); ++r)
      for (op* o : s.find(static_cast<int>(r), "", "softmax_grad")) {
        view& dlogits = subject::port(*o, "dlogits");
        dlogits.first = dlogits.first == 0 ? dlogits.shape[1] : 0;
      }
  });
}

TEST_CASE("tokens are dispatched by a part of the places of an arrangement") {
  static const subject sound(experts(), target::host);
  CHECK(sound.reason() == "");
  check_refused(sound, 7760, [](subject& s) {
    rank_program& r = s.p.ranks[0];
    const rankc::codegen::access places = subject::read_of(*s.find(0, "", "dispatch").at(0), "places");
    const std::size_t bytes = 2 * (places.end - places.begin);
    give_bytes(r, places.value, grow(r, bytes), bytes);
  });
}

/// The first two microbatches of an input of a rank lie at each other's place.
void exchange_microbatches(rank_program& r, holding_kind kind) {
  const op& begun = r.ops.front();
  std::vector<rankc::codegen::access> at;
  for (std::size_t i = 0; i < begun.holds.size(); ++i)
    if (begun.holds[i].kind == kind) at.push_back(begun.writes[i]);
  const std::size_t bytes = at.at(0).end - at[0].begin;
  give_bytes(r, at[0].value, at.at(1).begin, bytes);
  give_bytes(r, at[1].value, at[0].begin, bytes);
}

TEST_CASE("the microbatches of an input lie in another order than the loader fills") {
  const auto exchanged = [](std::size_t rank, holding_kind kind) {
    return [=](subject& s) { exchange_microbatches(s.p.ranks.at(rank), kind); };
  };
  check_refused(trained(), 7795, exchanged(0, holding_kind::ids));
  check_refused(trained(), 7795, exchanged(1, holding_kind::targets));
  check_refused(evaluated(), 7795, exchanged(0, holding_kind::ids));
}

TEST_CASE("the hash of a declared input has its first byte, in whatever order its microbatches are listed") {
  const auto hash_of = [](std::initializer_list<std::size_t> places) {
    rankc::codegen::op begin;
    begin.kind = rankc::codegen::op_kind::begin;
    for (const std::size_t place : places) {
      begin.holds.push_back({.kind = holding_kind::input, .name = "features"});
      begin.writes.push_back({.begin = place, .end = place + 256});
    }
    rank_program p;
    p.ops = {begin};
    return rankc::codegen::hashed_places_of(p, {}, 0).inputs;
  };
  CHECK(hash_of({512, 256}) == hash_of({256, 512}));
  CHECK(hash_of({512, 256}) != hash_of({512, 768}));
}

TEST_CASE("a rank begins with the rows that the loader gives to another rank") {
  check_refused(subject(small_llama(), target::host), 7802, [](subject& s) {
    for (const std::size_t tp : {0u, 1u}) {
      op &first = s.p.ranks.at(tp).ops.front(), &second = s.p.ranks.at(2 + tp).ops.front();  // dp 0, dp 1
      for (std::size_t i = 0; i < first.holds.size(); ++i)
        if (is_input(first.holds[i].kind)) std::swap(first.holds[i].box, second.holds[i].box);
    }
  });
}

/// Lets a rank begin with equally large microbatches of an input that no op reads.
void begin_with(subject& s, holding_kind kind, const std::vector<rankc::codegen::box_range>& microbatches) {
  rank_program& r = s.p.ranks[0];
  const auto bytes = static_cast<std::size_t>(4 * microbatches[0].count);
  std::size_t at = grow(r, bytes * microbatches.size());
  for (const rankc::codegen::box_range& rows : microbatches) {
    r.ops.front().writes.push_back({at, at + bytes, s.new_value(), element_type::i32});
    r.ops.front().holds.push_back({.kind = kind, .box = {rows}});
    at += bytes;
  }
}

TEST_CASE("inputs have as many microbatches as others, and rows that divide a step") {
  const subject sound(small_llama(), target::host);  // 2 microbatches of 2 replicas share 32 tokens
  const auto begins = [&](const std::vector<rankc::codegen::box_range>& microbatches) {
    return fault(sound, [&](subject& s) { begin_with(s, holding_kind::starts, microbatches); });
  };
  CHECK(begins({{0, 8}, {16, 8}}) == "");
  CHECK(placed_of(begins({{0, 8}})).what.id == 7800);
  CHECK(placed_of(begins({{0, 8}, {12, 8}})).what ==
        said{7801, {"0", "the starts", "0", "0", "12", "16", "2", "32"}});
  CHECK(placed_of(begins({{0, 5}, {16, 5}})).what == said{7803, {"0", "5", "the starts", "2", "2", "32"}});
}

/// At the end of a rank's step, sum losses over pp; the rank's addend is `own`.
void sum_losses(subject& s, int rank, const rankc::codegen::access& own, bool in_bf16) {
  rank_program& r = s.p.ranks[static_cast<std::size_t>(rank)];
  op sum = *s.find(rank, "gradient norm over pp").at(0);
  const std::size_t last = r.ops.size() - 2;
  sum.name = "loss over pp";
  sum.in_bf16 = in_bf16;
  sum.waits = {static_cast<int>(last)};
  sum.reads = {own};
  sum.writes = {own};
  sum.writes[0].value = s.new_value();
  sum.writes[0].replaces = 0;
  sum.operands = {own.begin};
  for (rankc::codegen::access& left : r.ops.back().reads)
    if (left.value == own.value) left.value = sum.writes[0].value;
  s.insert_after(rank, &r.ops[last], sum);
}

TEST_CASE("the loss is sent in bf16, and the first rank adds a zero to it") {
  const auto summed = [](subject& s, bool in_bf16) {
    rank_program& first = s.p.ranks.front();
    const std::size_t begin = grow(first, 4);
    op zero;
    zero.name = "zero loss";
    zero.row = "clear";
    zero.writes = {{begin, begin + 4, s.new_value(), element_type::f32}};
    zero.operands = {begin};
    zero.views = {{.port = "y", .written = true, .accesses = {0, 1}}};
    zero.views[0].shape.push_back(1);
    s.insert_after(0, &first.ops[first.ops.size() - 2], zero);
    sum_losses(s, 0, zero.writes[0], in_bf16);
    sum_losses(s, 1, held(last_rank(s), holding_kind::loss), in_bf16);
    s.order = prove(s.p);
  };
  CHECK(fault(trained(), [&](subject& s) { summed(s, false); }) == "");
  check_refused(trained(), 7524, [&](subject& s) { summed(s, true); });
}

}  // namespace places_test
