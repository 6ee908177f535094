// SPDX-License-Identifier: Apache-2.0
// Bugs of other systems, and rankc's own of before, each as a fault in a lowered program: all are refused.
// Sources: TV: the 14 of TrainVerify (SOSP 2025); EN: Entangle (ASPLOS 2026); M: findings of Megatron-LM's
// issue 7452; D: plans that an earlier rankc lowered wrongly. Those of experts and of loading are of programs
// that are not lowered yet; of context parallelism none is here.
#include <doctest/doctest.h>

#include <functional>
#include <string>

#include "plans.hpp"
#include "subject.hpp"

namespace published_test {

using namespace equivalence_tests;

namespace {

enum class base {
  gpt,
  llama,
  llama_on_host
};  // by dp 2, tp 2 with sequence parallelism and pp 2; by dp 2 and tp 2

struct bug {
  std::string name;
  base of;
  std::function<void(subject&)> plant;
};

void each_rank(subject& s, const std::function<void(int)>& change) {
  for (int r = 0; r < static_cast<int>(s.p.ranks.size()); ++r) change(r);
}

/// On all ranks, the n-th op of a name is left out; what it would have written is what it read.
void leave_out(subject& s, const char* name, std::size_t n = 0) {
  each_rank(s, [&](int r) {
    if (const std::vector<op*> here = s.find(r, name); n < here.size()) s.leave_out(r, *here[n]);
  });
}

void replace(subject& s, const char* name, collective_kind by) {
  for (op* o : s.find_all(name)) o->does = by;
}

void multiply(subject& s, const char* row, double factor, bool one_rank) {
  for (op* o : s.find_all(row, row)) {
    o->number *= factor;
    if (one_rank) return;
  }
}

/// Sums of gradients over the communicator of another axis.
void retarget(subject& s, const char* name, const char* to) {
  each_rank(s, [&](int r) {
    const int other = s.find(r, to)[0]->communicator;
    for (op* o : s.find(r, name)) o->communicator = other;
  });
}

/// What a bucket's reduction reads is what there was before the last microbatch.
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

const bug bugs[]{
    {"TV 1, EN 7: an all-reduce of activations is missing", base::llama,
     [](subject& s) { leave_out(s, "all_reduce of o_proj", 1); }},
    {"TV 2: and what it would have written is not there", base::llama,
     [](subject& s) {
       each_rank(s,
                 [&](int r) { s.find(r, "all_reduce of down").at(0)->writes[0].value = s.new_value() + r; });
     }},
    {"TV 3: all_gather in place of all_reduce", base::llama,
     [](subject& s) { replace(s, "all_reduce of o_proj", collective_kind::all_gather); }},
    {"TV 4: all_reduce in place of all_gather", base::gpt,
     [](subject& s) { replace(s, "all_gather of n1", collective_kind::all_reduce); }},
    {"TV 5: a reduction in backward is missing", base::llama,
     [](subject& s) { leave_out(s, "all_reduce of d_h2"); }},
    {"TV 6: a message between the wrong ranks", base::gpt,
     [](subject& s) {
       for (const int r : {0, 1})
         for (op* o : s.find(r, "stage 0 -> 1")) o->peer ^= 1;
     }},
    {"TV 7, 12: another constant on one rank", base::llama,
     [](subject& s) { multiply(s, "softmax_grad", 2, true); }},
    {"TV 8, 13, EN 6, M 3, M 9, D13: another constant on all ranks", base::llama,
     [](subject& s) { multiply(s, "softmax_grad", 2, false); }},
    {"TV 9, D2: another exponent, that of the rotary positions", base::llama,
     [](subject& s) {
       each_rank(s, [&](int r) {
         for (holding& h : s.p.ranks[static_cast<std::size_t>(r)].ops[0].holds)
           h.theta = h.theta > 0 ? 500000 : 0;
       });
     }},
    {"TV 10: backward reads another gradient", base::llama_on_host,
     [](subject& s) {
       std::vector<op*> of = s.find(0, "0B0: layers.1: linear_dw", "linear_dw");  // of gate and up
       subject::read_of(*of.at(1), "dy").value = subject::read_of(*of.at(2), "dy").value;
     }},
    {"TV 11: rotary backward swaps its results", base::llama_on_host,
     [](subject& s) {
       std::vector<op*> of = s.find(0, "0B0: layers.1: rope_grad", "rope_grad");
       std::swap(subject::read_of(*of.at(0), "dy").value, subject::read_of(*of.at(1), "dy").value);
     }},
    {"TV 14, Megatron PR 7186: a reduction before the last microbatch", base::llama, reduce_early},
    {"EN: rotary or learned positions begin elsewhere under sequence parallelism", base::gpt,
     [](subject& s) {
       for (op* o : s.find_all("embedding: position", "position"))
         for (const char* port : {"x", "y"}) subject::port(*o, port).first += 64;
     }},
    {"EN 9, M 11, Megatron 1446: a norm's gradient is not summed over tp", base::gpt,
     [](subject& s) { leave_out(s, "gradients of replicated parameters of pipeline rank 0 over tp"); }},
    {"M 2: the loss counts a shard of the vocabulary twice", base::llama,
     [](subject& s) { retarget(s, "all_reduce of exp_sums_out", "over dp"); }},
    {"M 4, 5, 6, 7, 13: sums over another group", base::llama,
     [](subject& s) { retarget(s, "over dp", "all_reduce of o_proj"); }},
    {"M 8, Megatron PR 6099: the norm counts copies", base::gpt,
     [](subject& s) { retarget(s, "gradient norm over pp", "gradient norm over tp"); }},
    {"M 10: a sum over ranks is read as the rank's own", base::llama,
     [](subject& s) {
       op& reduced = *s.find(0, "all_reduce of d_h1").at(0);
       op& product = *s.find(0, "0B0: layers.1: linear_dx", "linear_dx").at(0);
       for (access& a : product.reads)
         a.value = a.value == reduced.reads[0].value ? reduced.writes[0].value : a.value;
       for (op* o : s.find(0, "layers.0: linear_dw", "linear_dw"))
         subject::read_of(*o, "dy").value = reduced.writes[0].value;
     }},
    {"Megatron 844: the gradient of tied weights lacks one use", base::gpt,
     [](subject& s) { leave_out(s, "between first and last"); }},
    {"D1: the first use's gradient is overwritten", base::gpt,
     [](subject& s) {
       for (op* o : s.find_all("layers.0: linear_dw", "linear_dw", 6)) subject::port(*o, "dw").adds = false;
     }},
    {"D3: a dim of another size", base::llama,
     [](subject& s) {
       view& w = subject::port(*s.find(0, "0F0: layers.0: linear", "linear").at(0), "w");
       w.shape.dim[0] /= 2;
     }},
    {"D4: a gradient beside a residual is dropped", base::gpt,
     [](subject& s) {
       for (op* o : s.find_all("0B0: layers.0: add", "add"))
         subject::read_of(*o, "a").value = subject::read_of(*o, "b").value;
     }},
    {"of before: no gradient is reduced", base::gpt,
     [](subject& s) {
       for (int n = 0; n < 8; ++n) leave_out(s, "gradients of", n);
     }},
    {"of before: the result of a product lies over its operand", base::gpt, place_output_over_input},
    {"of before: a collective of fewer bytes", base::gpt,
     [](subject& s) {
       for (op* o : s.find_all("over dp")) o->bytes /= 2;
     }},
    {"of before: ops that touch nothing", base::gpt, [](subject& s) {
       for (op* o : s.find(0, "layers.0: gelu", "gelu")) {
         o->reads.clear();
         o->writes.clear();
       }
     }}};

}  // namespace

TEST_CASE("published bugs are refused, each in a program that is accepted without it") {
  const subject sound[]{subject(eight_ranks(), target::host),
                        subject(small_llama(), target::cuda, dtype::bf16),
                        subject(small_llama(), target::host, dtype::f64)};
  for (const subject& s : sound) REQUIRE(s.reason() == "");
  for (const bug& b : bugs) {
    subject s = sound[static_cast<int>(b.of)];
    b.plant(s);
    CHECK_MESSAGE(s.reason() != "", "accepted: " << b.name);
  }
}

}  // namespace published_test
