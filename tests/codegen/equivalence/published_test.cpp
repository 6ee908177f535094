// SPDX-License-Identifier: Apache-2.0
// Faults of other systems, and earlier faults of rankc, each in a lowered program and refused with a message.
// Sources: TV: the 14 of TrainVerify (SOSP 2025); EN: Entangle (ASPLOS 2026); D: plans that an earlier rankc
// lowered wrongly. PUBLISHED.md lists the cases of the two catalogues, which catalogues_test.cpp plants.
#include <doctest/doctest.h>

#include "published.hpp"

namespace published_test {

using namespace equivalence_tests;
using rankc::codegen::access;

namespace {

/// A bucket's reduction reads its gradients before the last microbatch adds to them.
void reduce_early(subject& s) {
  each_rank(s, [&](int r) {
    op* reduction = s.find(r, "gradients of layers.0 over dp").at(0);
    for (access& a : reduction->reads)
      for (op* o : s.find(r, "0B1: layers.0"))
        for (const access& w : o->writes)
          if (w.value == a.value && w.replaces >= 0)
            a.value = o->reads[static_cast<std::size_t>(w.replaces)].value;
  });
}

void place_output_over_input(subject& s) {
  op& o = *s.find(0, "0F0: layers.0: linear", "linear").at(0);
  const access& x = subject::read_of(o, "x");
  access& y = o.writes[0];
  y.end = x.begin + (y.end - y.begin);
  y.begin = x.begin;
}

const std::vector<published_case> of_other_systems{
    {"TV 1, EN 7: an all-reduce of activations is missing", llama, 7428, "without features 8..15",
     [](subject& s) { leave_out(s, "all_reduce of o_proj", 1); }},
    {"TV 2: an all-reduce is missing, and its result is read", llama, 7671, "which nothing has written",
     [](subject& s) {
       each_rank(s,
                 [&](int r) { s.find(r, "all_reduce of down").at(0)->writes[0].value = s.new_value() + r; });
     }},
    {"TV 3: an all-gather in place of an all-reduce", llama, 7589, "all_reduce of o_proj",
     [](subject& s) { replace(s, "all_reduce of o_proj", collective_kind::all_gather); }},
    {"TV 4: an all-reduce in place of an all-gather", gpt, 7501, "all_gather of n1",
     [](subject& s) { replace(s, "all_gather of n1", collective_kind::all_reduce); }},
    {"TV 5: a reduction in backward is missing", llama, 7427, "rms_norm_grad_add of layers.1.norm1",
     [](subject& s) { leave_out(s, "all_reduce of d_h2"); }},
    {"TV 6: a message between the wrong ranks", gpt, 7543, "F0: stage 0 -> 1",
     [](subject& s) {
       for (const int r : {0, 1})
         for (op* o : s.find(r, "stage 0 -> 1")) o->peer ^= 1;
     }},
    {"TV 7, 12: another constant on one rank", llama, 7433, "rank 3, 0B0: head: softmax_grad",
     [](subject& s) { s.find(3, "softmax_grad", "softmax_grad").at(0)->number *= 2; }},
    {"TV 8, 13, EN 6, D13: another constant on all ranks", llama, 7433, "0B0: head: softmax_grad",
     [](subject& s) { multiply(s, "softmax_grad", 2); }},
    {"TV 9, D2: another exponent, that of the rotary positions", llama, 7433, "the op computes rope",
     [](subject& s) {
       for (rank_program& r : s.p.ranks)
         for (holding& h : r.ops[0].holds) h.theta = h.theta > 0 ? 500000 : 0;
     }},
    {"TV 10: backward reads another gradient", llama_on_host, 7690, "the gradient of layers.1.w1",
     [](subject& s) {
       // The gradients of gate and up.
       std::vector<op*> of = s.find(0, "0B0: layers.1: linear_dw", "linear_dw");
       subject::read_of(*of.at(1), "dy").value = subject::read_of(*of.at(2), "dy").value;
     }},
    {"TV 11: rotary backward swaps its results", llama_on_host, 7672, "0B0: layers.1: rope_grad",
     [](subject& s) {
       std::vector<op*> of = s.find(0, "0B0: layers.1: rope_grad", "rope_grad");
       std::swap(subject::read_of(*of.at(0), "dy").value, subject::read_of(*of.at(1), "dy").value);
     }},
    {"TV 14, Megatron PR 7186: a reduction before the last microbatch", llama, 7400,
     "\"gradients of layers.0 over dp\" of rank 0 writes over", reduce_early},
    {"EN: positions begin elsewhere under sequence parallelism", gpt, 7437, "as positions from 64 on",
     [](subject& s) {
       for (op* o : s.find_all("embedding: position", "position"))
         for (const char* port : {"x", "y"}) subject::port(*o, port).first += 64;
     }},
    {"EN 9, Megatron 1446: a norm's gradient is not summed over tp", gpt, 7402, "the gradient of wpe lacks",
     [](subject& s) { leave_out(s, "gradients of replicated parameters of pipeline rank 0 over tp"); }},
    {"Megatron PR 6099: the norm counts copies", gpt, 7470, "the sum of the gradients' squares",
     [](subject& s) { retarget(s, "gradient norm over pp", "gradient norm over tp"); }},
    {"Megatron 844: the gradient of tied weights lacks one use", gpt, 7692, "embedding: embedding_grad",
     [](subject& s) { leave_out(s, "between first and last"); }},
    {"D1: the first use's gradient is overwritten", gpt, 7400, "the gradient of layers.0.w2 lacks",
     [](subject& s) {
       for (op* o : s.find_all("layers.0: linear_dw", "linear_dw", 6)) subject::port(*o, "dw").adds = false;
     }},
    {"D3: a dim of another size", llama, 7554, "tensor w has 128 elements",
     [](subject& s) {
       view& w = subject::port(*s.find(0, "0F0: layers.0: linear", "linear").at(0), "w");
       w.shape.dim[0] /= 2;
     }},
    {"D4: a gradient beside a residual is dropped", gpt, 7690, "0B0: layers.0: add",
     [](subject& s) {
       for (op* o : s.find_all("0B0: layers.0: add", "add"))
         subject::read_of(*o, "a").value = subject::read_of(*o, "b").value;
     }},
    {"of before: no gradient is reduced", gpt, 7402, "no op adds them to those of rank",
     [](subject& s) {
       each_rank(s, [&](int r) {
         for (op* o : s.find(r, "gradients of")) s.leave_out(r, *o);
       });
     }},
    {"of before: the result of a product lies over its operand", gpt, 7576, "result y overlaps tensor x",
     place_output_over_input},
    {"of before: a collective of fewer bytes", gpt, 7582, "over dp",
     [](subject& s) {
       for (op* o : s.find_all("over dp")) o->bytes /= 2;
     }},
    {"of before: an op that touches nothing", gpt, 7577, "0F0: layers.0: gelu", [](subject& s) {
       for (op* o : s.find(0, "layers.0: gelu", "gelu")) {
         o->reads.clear();
         o->writes.clear();
       }
     }}};

}  // namespace

TEST_CASE("published faults are refused by their names") { check_cases(of_other_systems); }

}  // namespace published_test
