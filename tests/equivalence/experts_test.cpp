// SPDX-License-Identifier: Apache-2.0
// Programs with experts: the choice, the slots and their offsets belong together, and each exchange is needed.
#include <doctest/doctest.h>

#include <rankc/make_plan.hpp>
#include <rankc/rankc.hpp>

#include <functional>
#include <set>

#include "subject.hpp"

using namespace equivalence_tests;

namespace {

using rankc::parallel_dims;

rankc::plan_data planned(const parallel_dims& dims, int layers = 2) {
  using namespace rankc;
  const models::qwen3_moe model{.layers = layers, .hidden = 16, .heads = 2, .kv_heads = 2, .head_dim = 8, .experts = 4, .top_k = 2,
                                .expert_ffn = 8, .vocab = 32};
  const int ranks = dims.dp_replicate * dims.dp_shard;
  return make_plan("experts", model, dims, schedules::gpipe{2}, training{.seq = 8, .global_batch = 4 * ranks, .precision = f32},
                   clusters::h200<256>);
}

const subject& of_replicas() {
  static const subject s(planned({.world = 4, .dp_replicate = 2, .tp = 2}), target::host);
  return s;
}
const subject& of_shards() {
  static const subject s(planned({.world = 8, .dp_shard = 2, .cp = 2, .tp = 2, .sequence_parallel = true}), target::cuda, dtype::bf16);
  return s;
}

std::string fault(const subject& sound, const std::function<void(subject&)>& change) {
  subject s = sound;
  change(s);
  return s.reason();
}
void check_refused(const subject& sound, const std::string& expected, const std::function<void(subject&)>& change) {
  const std::string why = fault(sound, change);
  CHECK_MESSAGE((!why.empty() && why.find(expected) != why.npos), "expected \"" << expected << "\", found \"" << why << "\"");
}

/// An operand of a layer's op in a microbatch's forward is that of another layer, or of another microbatch.
auto swapped(const char* row, const char* port, const char* of, const char* with, std::size_t n = 0) {
  return [=](subject& s) {
    for (int r = 0; r < static_cast<int>(s.p.ranks.size()); ++r) {
      const access& other = subject::read_of(*s.find(r, with, row).at(n), port);
      access& own = subject::read_of(*s.find(r, of, row).at(n), port);
      own.value = other.value, own.begin = other.begin, own.end = other.end;
    }
  };
}

}  // namespace

TEST_CASE("programs with experts compute the model, on worlds of which some stand for all too") {
  CHECK(of_replicas().reason() == "");
  CHECK(of_shards().reason() == "");
  int some = 0;
  for (const bool evaluates : {false, true}) {
    const subject s(planned({.world = 192, .dp_replicate = 6, .dp_shard = 4, .cp = 4, .tp = 2, .sequence_parallel = true,
                             .cp_weights = rankc::cp_weights::replicate}),
                    target::cuda, dtype::bf16, evaluates);
    CHECK(s.reason() == "");
    some += static_cast<int>(s.p.ranks.size()) < s.p.world;
  }
  CHECK(some == 2);
}

TEST_CASE("each collective over tp is needed") {
  for (const subject* sound : {&of_replicas(), &of_shards()}) {
    std::set<std::string> names;
    for (const op& o : sound->p.ranks[0].ops)
      if (o.kind == op_kind::collective && o.name.find("layers.1") == o.name.npos && o.function != "all_reduce_max" &&
          sound->p.communicators[static_cast<std::size_t>(o.communicator)].name.starts_with("tp "))
        names.insert(o.name);
    CHECK(names.size() >= 6);
    for (const std::string& name : names) {
      CAPTURE(name);
      CHECK(fault(*sound, [&](subject& s) {
              for (int r = 0; r < static_cast<int>(s.p.ranks.size()); ++r) s.leave_out(r, *s.find(r, name).at(0));
            }) != "");
    }
  }
}

TEST_CASE("slots, offsets and places of another choice, or of other tokens, are refused") {
  for (const subject* sound : {&of_replicas(), &of_shards()}) {
    check_refused(*sound, "in another order", swapped("expert_up", "offsets", "F0: layers.1", "F0: layers.0"));
    check_refused(*sound, "in another order", swapped("expert_down", "x", "F1: layers.1", "F1: layers.0"));
    check_refused(*sound, "in another order", swapped("combine", "places", "F0: layers.1", "F0: layers.0"));
    check_refused(*sound, "in another order", swapped("expert_dw", "offsets", "B0: layers.0", "B0: layers.1"));
    check_refused(*sound, "expected tokens", swapped("dispatch", "places", "F1: layers.0", "F0: layers.0"));
    check_refused(*sound, "the slots are of tokens", swapped("expert_up", "offsets", "F1: layers.0", "F0: layers.0", 1));
    check_refused(*sound, "expected tokens", swapped("combine", "weights", "F1: layers.0", "F0: layers.0"));
    check_refused(*sound, "", swapped("expert_up", "w", "F1: layers.1", "F1: layers.0"));
    check_refused(*sound, "", swapped("combine_grad", "weights", "B0: layers.0", "B0: layers.1"));
    check_refused(*sound, "", swapped("softmax_top_grad", "chosen", "B0: layers.0", "B0: layers.1"));
  }
}

TEST_CASE("offsets are no places, some of the slots are no slots of some tokens, and weights add up to what the model says") {
  check_refused(of_replicas(), "does not say where slots of tokens lie", [](subject& s) {
    for (int r = 0; r < 4; ++r)
      subject::read_of(*s.find(r, "F0: layers.0", "dispatch").at(0), "places").value =
          subject::read_of(*s.find(r, "F0: layers.0", "arrange").at(0), "chosen").value;
  });
  check_refused(of_replicas(), "", [](subject& s) {
    for (int r = 0; r < 4; ++r)
      for (op* o : s.find(r, "F0: layers.0", "swiglu"))
        for (view& v : o->views) v.shape = {v.shape[0] / 2, v.shape[1]};
  });
  check_refused(of_replicas(), "", [](subject& s) {
    for (int r = 0; r < 4; ++r) s.find(r, "F0: layers.0", "normalize").at(0)->number = 2;
  });
  check_refused(of_replicas(), "", [](subject& s) {
    for (int r = 0; r < 4; ++r) s.find(r, "F0: layers.0", "softmax_top").at(0)->row = "sigmoid_top";
  });
}
