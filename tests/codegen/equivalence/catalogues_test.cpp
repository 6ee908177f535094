// SPDX-License-Identifier: Apache-2.0
// Two published catalogues of faults. Each case is planted in a lowered program and refused by its name.
// V: the 35 of NJUDeepEngine/llm-infra-verifier (fafd60d); M: the 13 of NVIDIA/Megatron-LM issue 7452.
// PUBLISHED.md has the cases that are refused elsewhere, or whose feature rankc does not lower.
#include <doctest/doctest.h>

#include <rankc/plan/make_plan.hpp>
#include <rankc/rankc.hpp>

#include <set>

#include "../../attention/models.hpp"
#include "plans.hpp"
#include "published.hpp"
#include "small_experts.hpp"

namespace catalogues_test {

using namespace equivalence_tests;
using rankc::codegen::access;

namespace {

using rankc::parallel_dims;

constexpr rankc::models::llama two_layers{
    .layers = 2, .hidden = 16, .heads = 4, .kv_heads = 2, .ffn = 24, .vocab = 32, .theta = 10000};

subject on_host(const auto& model, const parallel_dims& dims, const auto& schedule, rankc::training recipe) {
  recipe.precision = rankc::f32;
  return {rankc::make_plan("catalogue", model, dims, schedule, recipe, rankc::clusters::h200<256>),
          target::host};
}

/// Ring attention over three ranks.
const subject& ring() {
  static const subject s =
      on_host(two_layers, {.world = 3, .cp = 3, .cp_attention = rankc::cp_attention::ring},
              rankc::schedules::gpipe{1}, {.seq = 24, .global_batch = 1});
  return s;
}
/// Packed documents on two stages.
const subject& packed() {
  static const subject s = on_host(two_layers, {.world = 2, .pp = 2}, rankc::schedules::one_f_one_b{2},
                                   {.seq = 16, .global_batch = 4, .end_of_document = 3});
  return s;
}
/// Four shards of weights, not all of which divide by four.
const subject& padded() {
  static const subject s(sharded_gpt(), target::host);
  return s;
}
/// Full recomputation.
const subject& repeating() {
  static const subject s =
      on_host(two_layers, {.world = 4, .dp_replicate = 2, .tp = 2, .sequence_parallel = true},
              rankc::schedules::gpipe{2}, {.seq = 8, .global_batch = 4, .recompute = {.full = true}});
  return s;
}
/// Routers with a loss.
const subject& balanced() {
  static const subject s = [] {
    rankc::models::qwen3_moe model = small_experts(2, 4);
    model.router_losses = {.balance = 0.01};
    return on_host(model, {.world = 4, .dp_shard = 2, .tp = 2, .sequence_parallel = true},
                   rankc::schedules::gpipe{2}, {.seq = 8, .global_batch = 8});
  }();
  return s;
}

/// Layers with attention sinks, by tp.
const subject& sunk() {
  static const subject s =
      on_host(attention_family::alternating{.first = {.window = 5, .sinks = true}, .second = {.sinks = true}},
              {.world = 2, .tp = 2}, rankc::schedules::gpipe{1}, {.seq = 16, .global_batch = 2});
  return s;
}
/// Labels are ignored, and cp ranks shard sequences.
const subject& masked() {
  static const subject s = on_host(two_layers, {.world = 2, .cp = 2}, rankc::schedules::gpipe{2},
                                   {.seq = 16, .global_batch = 4, .ignored_label = -100});
  return s;
}

/// Remove the gradients of parameters whose names end with `parameter` from the norm.
void leave_out_of_norm(subject& s, const char* parameter) {
  each_rank(s, [&](int r) {
    rank_program& program = s.p.ranks[static_cast<std::size_t>(r)];
    std::set<int> gone;
    for (const op& o : program.ops)
      for (std::size_t i = 0; o.row == "adamw" && i + 1 < o.views.size(); ++i) {
        const auto& weight = o.reads[static_cast<std::size_t>(o.views[i].accesses.first)];
        const op& begin = program.ops.front();
        for (std::size_t w = 0; !o.views[i].written && w < begin.writes.size(); ++w)
          if (begin.writes[w].value == weight.value && begin.holds[w].kind == holding_kind::weight &&
              begin.holds[w].name.ends_with(parameter))
            gone.insert(o.reads[static_cast<std::size_t>(o.views[i + 1].accesses.first)].value);
      }
    for (op& o : program.ops)
      if (o.row == "sum_squares")
        std::erase_if(o.views, [&](const view& v) {
          return !v.written && gone.contains(o.reads[static_cast<std::size_t>(v.accesses.first)].value);
        });
    CHECK(gone.size() == 4);
  });
}

op& first(subject& s, int rank, const char* name, const char* row = "") {
  return *s.find(rank, name, row).at(0);
}

/// Move a value of a rank to the bytes of another.
void place_over(subject& s, int rank, const access& own, const access& other) {
  const int value = own.value;
  const std::size_t begin = other.begin, end = other.end;
  for (op& o : s.p.ranks.at(static_cast<std::size_t>(rank)).ops)
    for (auto* all : {&o.reads, &o.writes})
      for (access& a : *all)
        if (a.value == value) {
          a.begin = begin;
          a.end = end;
        }
}

/// Run a collective twice in a row.
void repeat(subject& s, const char* name) {
  each_rank(s, [&](int r) {
    op* once = &first(s, r, name);
    op again = *once;
    again.reads[0].value = once->writes[0].value;
    again.writes[0].value = s.new_value();
    for (op& o : s.p.ranks[static_cast<std::size_t>(r)].ops)
      for (access& a : o.reads)
        if (a.value == once->writes[0].value) a.value = again.writes[0].value;
    s.insert_after(r, once, again);
  });
}

/// Make every reader of the first gather's result read the rank's own shard.
void skip_gather(subject& s, const char* name) {
  each_rank(s, [&](int r) {
    const op& gather = first(s, r, name);
    const int whole = gather.writes[0].value;
    const access shard = gather.reads[0];
    for (op& o : s.p.ranks[static_cast<std::size_t>(r)].ops)
      for (view& v : o.views) {
        if (v.written || v.accesses.count == 0) continue;
        access& a = o.reads[static_cast<std::size_t>(v.accesses.first)];
        if (a.value != whole) continue;
        read_instead(a, shard);
        v.shape.dim[0] /= 2;
      }
  });
}

/// Cast a GEMM's result to fp8.
void cast_to_fp8(subject& s, const char* product) {
  const int value = first(s, 0, product, "linear").writes.at(0).value;
  for (op& o : s.p.ranks[0].ops)
    for (auto* all : {&o.reads, &o.writes})
      for (access& a : *all)
        if (a.value == value) {
          a.type = element_type::e4m3;
          a.end = a.begin + (a.end - a.begin) / 2;
        }
}

const std::vector<published_case> verifier_cases{
    {"V B1a, C3, RB1a, pytorch 144359: a row-parallel product without its all-reduce", llama, 7428,
     "operand x is layers.0: add without features 12..23 of layers.0: linear",
     [](subject& s) { leave_out(s, "all_reduce of down"); }},
    {"V B1b, C5, RB1b, pytorch 144359: a nonlinear op before the all-reduce", llama, 7428,
     "the op is not linear in it, so it needs the complete value",
     [](subject& s) { leave_out(s, "all_reduce of o_proj"); }},
    {"V B1c, RB2a, Megatron 4092: starts of documents of other tokens on a later stage", packed, 7452,
     "rank 1, 1F0: layers.1: document_attention",
     [](subject& s) {
       for (holding& h : s.p.ranks[1].ops.front().holds)
         if (h.kind == holding_kind::starts) h.box[0].first ^= 32;
     }},
    {"V B2a, pytorch 173041: rows that are not contiguous", gpt, 7565,
     "tensor x has rows 128 elements apart; expected 64",
     [](subject& s) {
       for (op* o : s.find_all("0F0: layers.0: linear", "linear", 3)) subject::port(*o, "x").stride *= 2;
     }},
    {"V B2b, pytorch 175690: a gathered dim with its padding", padded, 7552, "tensor w does not fit into",
     [](subject& s) {
       for (op* o : s.find_all("0F0: layers.0: linear", "linear")) subject::port(*o, "w").shape.dim[0] += 1;
     }},
    {"V B2c, pytorch 139681: a shard of the sequence taken for all of it", gpt, 7552,
     "tensor x does not fit into the 16384 elements",
     [](subject& s) {
       each_rank(s, [&](int r) {
         if (s.find(r, "0F0: layers.0: linear", "linear").empty()) return;
         read_instead(subject::read_of(first(s, r, "0F0: layers.0: linear", "linear"), "x"),
                      first(s, r, "all_gather of n1").reads[0]);
       });
     }},
    {"V B3a, tilelang 2035: an all-reduce of what is reduced", llama, 7690,
     "a sum or a multiple of layers.0: linear", [](subject& s) { repeat(s, "all_reduce of o_proj"); }},
    {"V B3c, pytorch 140227: an all-gather along another dim", gpt, 7642,
     "all_gather of n2: RC7642: the members of the collective have parts of different values",
     [](subject& s) {
       each_rank(s, [&](int r) {
         read_instead(first(s, r, "all_gather of n2").reads[0], first(s, r, "F0: layers.", "bias").writes[0]);
       });
     }},
    {"V B4a, TileKernels 2: a gradient of weights without its all-reduce", gpt, 7402,
     "the gradient of layers.3.wq lacks", [](subject& s) { leave_out(s, "over dp"); }},
    {"V B4b, pytorch 144359: an all-gather in place of a reduce-scatter in backward", gpt, 7582,
     "reduce_scatter of d_h2",
     [](subject& s) { replace(s, "reduce_scatter of d_h2", collective_kind::all_gather); }},
    {"V B6a, Megatron 4382: a part of ring attention is not merged", ring, 7428,
     "layers.0: attention without positions 8..15",
     [](subject& s) {
       each_rank(s, [&](int r) { s.leave_out(r, first(s, r, "0F0: layers.0", "merge_attention")); });
     }},
    {"V B6b, Megatron 4382: a ring runs the other way", ring, 7443, "the op expects those of tokens 8..15",
     [](subject& s) {
       for (rank_program& r : s.p.ranks)
         for (op& o : r.ops)
           if (o.does == collective_kind::shift) o.does = collective_kind::shift_back;
     }},
    {"V RB1c: a column-parallel product without its gather", gpt, 7680, "expected 256",
     [](subject& s) { skip_gather(s, "all_gather of n1"); }},
    {"V RB6b, triton 9991: a result stored in fewer bits", llama, 7570, "tensor y is in e4m3",
     [](subject& s) { cast_to_fp8(s, "0F0: layers.0: linear"); }}};

const std::vector<published_case> verifier_proofs{
    {"V B3b, Megatron 4092: a send without a receive", gpt, 7062, "has no partner",
     [](subject& s) { s.leave_out(0, first(s, 0, "F3: stage 0 -> 1")); }},
    {"V B4c, Megatron 4092: a message of backward goes forward", gpt, 7062, "B0: stage 1 -> 0",
     [](subject& s) {
       op& o = first(s, 0, "B0: stage 1 -> 0");
       o.kind = op_kind::send;
       o.reads = o.writes;
       o.writes.clear();
     }},
    {"V B5a, Megatron 3952: an activation is overwritten before its backward", gpt, 7070,
     "to get the result of op \"0F0: layers.0: gelu\", but they may hold",
     [](subject& s) {
       place_over(s, 0, first(s, 0, "0F1: layers.0: gelu", "gelu").writes.at(0),
                  first(s, 0, "0F0: layers.0: gelu", "gelu").writes.at(0));
     }},
    {"V B5b, Megatron 1525: an op of backward before its forward", gpt, 7070, "1B0: head: exp_sums_grad",
     [](subject& s) {
       std::swap(first(s, 4, "1B0: head: exp_sums_grad"), first(s, 4, "1F0: head: exp_sums", "exp_sums"));
     }},
    {"V C4, RB4a: the norm does not wait for a sum of gradients", gpt, 7068,
     "before op \"gradients of layers.1 over dp\" has written them",
     [](subject& s) { first(s, 0, "norm of sharded gradients").waits.clear(); }},
    {"V RB2b, Megatron 1525: a receive from a rank that does not send", gpt, 7016, "has peer 1",
     [](subject& s) { first(s, 4, "F0: stage 0 -> 1").peer = 1; }},
    {"V RB4b: two messages that are under way at once have one buffer", gpt, 7069,
     "op \"F1: stage 0 -> 1\" may write", [](subject& s) {
       place_over(s, 4, first(s, 4, "F1: stage 0 -> 1").writes.at(0),
                  first(s, 4, "F0: stage 0 -> 1").writes.at(0));
     }}};

const std::vector<published_case> megatron_cases{
    {"M 1: a statistic of a shard of the words enters the loss", llama, 7428,
     "operand sums is head: exp_sums without words 16..31",
     [](subject& s) { leave_out(s, "all_reduce of exp_sums"); }},
    {"M 2: a shard of the logits taken for other words", llama, 7425,
     "the call gives words the first index 0; operand logits has words 16..31",
     [](subject& s) {
       for (const int r : {1, 3})
         for (view& v : first(s, r, "0F0: head: exp_sums", "exp_sums").views) v.first = 0;
     }},
    {"M 3: a replica divides its loss by its own count of tokens", llama, 7433,
     "rank 2, 0F0: head: cross_entropy",
     [](subject& s) {
       for (const int r : {2, 3}) first(s, r, "0F0: head: cross_entropy").number *= 2;
     }},
    {"M 4: what backward repeats is gathered over another group", repeating, 7437,
     "0B0: layers.1: rope: RC7437: the op uses tokens 0..3 and 8..11",
     [](subject& s) { retarget(s, "all_gather of n1 again", "over dp"); }},
    {"M 5: a gather of tokens over another group", gpt, 7501, "reduce_scatter of o_proj",
     [](subject& s) { retarget(s, "all_gather of n1", "over dp"); }},
    {"M 6: the sum of a loss over words runs over another group", llama, 7501, "all_reduce of exp_sums",
     [](subject& s) { retarget(s, "all_reduce of exp_sums", "over dp"); }},
    {"M 7: embeddings scattered over another group", gpt, 7501, "reduce_scatter of embedded",
     [](subject& s) { retarget(s, "reduce_scatter of embedded", "over dp"); }},
    {"M 8: the norm lacks the gradients of other ranks' shards", gpt, 7405,
     "the norm lacks features 64..127 of the squares of a gradient",
     [](subject& s) { leave_out(s, "gradient norm over tp"); }},
    {"M 8: the norm lacks the gradients of attention sinks", sunk, 7791,
     "the norm lacks the gradient of layers.0.sinks", [](subject& s) { leave_out_of_norm(s, ".sinks"); }},
    {"M 9: ranks of a context divide their loss by their own count of labels", masked, 7428,
     "operand count is head: count_labels without tokens",
     [](subject& s) { leave_out(s, "number of labels"); }},
    {"M 9: a masked step without labels is not skipped", masked, 7792,
     "the norm lacks the term that makes ranks skip a step without labels",
     [](subject& s) { leave_out(s, "no labels"); }},
    {"M 9: ranks of a context divide their loss by their own count of tokens", ring, 7433,
     "0F0: head: cross_entropy", [](subject& s) { multiply(s, "cross_entropy", 3); }},
    {"M 10: a count of all ranks is read as the rank's own", balanced, 7500,
     "the sum counts groups 0..0 twice",
     [](subject& s) {
       for (op* o : s.find_all("0F0: head: balance_loss", "balance_loss"))
         read_instead(subject::read_of(*o, "s"), subject::read_of(*o, "whole"));
     }},
    {"M 11: the gradient of a norm's weight is not summed over tp", gpt, 7402,
     "no op adds them to those of rank",
     [](subject& s) { leave_out(s, "gradients of replicated parameters of pipeline rank 0 over tp"); }},
    {"M 12: a stage's weights have the names of another stage's", gpt, 7433,
     "rank 4, 1F0: layers.2: layer_norm of layers.0.norm1",
     [](subject& s) {
       for (int r = 4; r < 8; ++r)
         for (op* o : {&s.p.ranks[static_cast<std::size_t>(r)].ops.front(),
                       &s.p.ranks[static_cast<std::size_t>(r)].ops.back()})
           for (holding& h : o->holds)
             if (h.name.starts_with("layers.")) h.name[7] = static_cast<char>(h.name[7] - 2);
     }},
    {"M 13: sums of gradients over another group", llama, 7500, "the sum counts ",
     [](subject& s) { retarget(s, "over dp", "all_reduce of o_proj"); }}};

}  // namespace

TEST_CASE("V C1, C2, C7, C8: the catalogue's sound programs are accepted") {
  CHECK(gpt().reason() == "");
  CHECK(llama().reason() == "");
}

TEST_CASE("the cases of llm-infra-verifier are refused by their names") {
  check_cases(verifier_cases);
  check_proofs(verifier_proofs);
}

TEST_CASE("the findings of Megatron-LM 7452 are refused by their names") { check_cases(megatron_cases); }

}  // namespace catalogues_test
