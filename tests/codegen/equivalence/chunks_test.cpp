// SPDX-License-Identifier: Apache-2.0
// Programs whose ranks shard sequences: each exchange of keys, values and their gradients is needed, and an
// op's chunk attributes must match the tokens of its operands.
#include <doctest/doctest.h>

#include <rankc/plan/make_plan.hpp>
#include <rankc/rankc.hpp>

#include <algorithm>
#include <functional>
#include <set>

#include "refused.hpp"

namespace chunks_test {

using namespace equivalence_tests;

namespace {

using rankc::cp_weights;
using rankc::parallel_dims;

rankc::plan_data planned(const auto& model, const parallel_dims& dims, int rows = 1) {
  using namespace rankc;
  const int replicas = dims.dp_replicate * dims.dp_shard;
  return make_plan("chunks", model, dims, schedules::gpipe{2},
                   training{.seq = 16, .global_batch = 2 * rows * replicas, .precision = f32},
                   clusters::h200<256>);
}
constexpr rankc::models::llama llama{
    .layers = 2, .hidden = 16, .heads = 4, .kv_heads = 2, .ffn = 24, .vocab = 32, .theta = 10000};
constexpr rankc::models::gpt2 gpt{.layers = 2, .hidden = 16, .heads = 2, .ffn = 24, .vocab = 32};

constexpr rankc::models::gpt2 wide{.layers = 2, .hidden = 64, .heads = 2, .ffn = 128, .vocab = 64};

constexpr rankc::models::llama models_of_heads{
    .layers = 2, .hidden = 16, .heads = 8, .kv_heads = 4, .ffn = 24, .vocab = 32, .theta = 10000};

/// of_llama: rotary positions and replicas of the weights. of_gpt: learned positions, sharded weights, and
/// microbatches of two sequences.
const subject& of_llama() {
  static const subject s(
      planned(llama, {.world = 4, .dp_replicate = 2, .cp = 2, .cp_weights = cp_weights::replicate}),
      target::host);
  return s;
}
const subject& of_gpt() {
  static const subject s(planned(gpt, {.world = 8, .cp = 4, .tp = 2, .sequence_parallel = true}, 2),
                         target::host);
  return s;
}

/// of_heads: heads are exchanged, with microbatches of two sequences and tp. of_four: sharded weights, cp 4.
const subject& of_heads() {
  static const subject s(planned(models_of_heads, {.world = 4, .cp = 2, .tp = 2, .ulysses = 2}, 2),
                         target::host);
  return s;
}
const subject& of_four() {
  static const subject s(
      planned(models_of_heads, {.world = 4, .cp = 4, .ulysses = 4, .cp_weights = cp_weights::replicate}),
      target::cuda, dtype::bf16);
  return s;
}

}  // namespace

TEST_CASE("ranks that share out sequences compute the model, on worlds of which some stand for all too") {
  CHECK(of_llama().reason() == "");
  CHECK(of_gpt().reason() == "");
  int some = 0;
  for (const cp_weights by : {cp_weights::shard, cp_weights::replicate})
    for (const bool evaluates : {false, true}) {
      const subject s(planned(wide, {.world = 192,
                                     .dp_replicate = 6,
                                     .dp_shard = 4,
                                     .cp = 4,
                                     .tp = 2,
                                     .sequence_parallel = true,
                                     .cp_weights = by}),
                      target::cuda, dtype::bf16, evaluates);
      CHECK(s.reason() == "");
      some += static_cast<int>(s.p.ranks.size()) < s.p.world;
    }
  CHECK(some == 4);
}

TEST_CASE("each collective over cp is needed: keys, values, and in backward the gradients of both") {
  for (const subject* sound : {&of_llama(), &of_gpt()}) {
    std::set<std::string> names;
    for (const op& o : sound->p.ranks[0].ops)
      if (o.kind == op_kind::collective &&
          (o.name.ends_with("all_gather of k") || o.name.find("all_gather of v") != o.name.npos ||
           o.name.find("all_gather of k") != o.name.npos ||
           o.name.find("reduce_scatter of d_") != o.name.npos))
        if (sound->p.communicators[static_cast<std::size_t>(o.communicator)].name.starts_with("cp "))
          names.insert(o.name);
    CHECK(names.size() == 4);
    for (const std::string& name : names)
      for (std::size_t n = 0; n < 4; ++n) {  // in each layer and microbatch
        CAPTURE(name);
        CAPTURE(n);
        // Each rank keeps its local tensor: a gather becomes copies of it, and a sum becomes its part of the
        // local addend.
        CHECK(fault(*sound, [&](subject& s) {
                for (int r = 0; r < static_cast<int>(s.p.ranks.size()); ++r)
                  s.leave_out(r, *s.find(r, name).at(n));
              }) != "");
        // Each rank gathers where it should reduce-scatter, or the reverse.
        CHECK(fault(*sound, [&](subject& s) {
                for (op* o : s.find_all(name, "", n))
                  o->does = o->does == collective_kind::all_gather ? collective_kind::reduce_scatter
                                                                   : collective_kind::all_gather;
              }) != "");
      }
  }
}

TEST_CASE("gradients, norm and loss are summed over the ranks of cp") {
  const auto leave_out = [](const char* name) {
    return [=](subject& s) {
      for (int r = 0; r < static_cast<int>(s.p.ranks.size()); ++r)
        for (op* o : s.find(r, name)) s.leave_out(r, *o);
    };
  };
  check_refused(of_llama(),
                said{7402,
                     {"the gradient of layers.1.norm1", "tokens 4..11, 16..31, 36..43 and 48..63",
                      "0B0: layers.1: rms_norm_dw", "tokens 4..11", "1", "0"}},
                leave_out("gradients of layers.1 over dp"));
  check_refused(of_llama(),
                said{7402,
                     {"the loss", "tokens 4..11, 16..31, 36..43 and 48..63", "0F0: head: cross_entropy",
                      "tokens 4..11", "1", "0"}},
                leave_out("loss over dp"));
  check_refused(of_gpt(),
                said{7402,
                     {"the loss", "tokens 2..13, 18..29, 34..45 and 50..61", "0F0: head: cross_entropy",
                      "tokens 2..3, 12..13, 18..19 and 28..29", "2", "0"}},
                leave_out("loss over shard"));
  check_refused(
      of_gpt(),
      said{7405,
           {"the norm",
            "features 2..7 and 10..15 of the squares of a gradient; features 3..11 and 15..23 of the squares "
            "of a gradient; features 4..15 and 20..31 of the squares of a gradient; features 4..15 of the "
            "squares of a gradient"}},
      leave_out("gradient norm over shard"));
  check_refused(of_gpt(), leave_out("gradients of layers.1 over shard"));
}

TEST_CASE("an op that takes its chunks for another rank's, or for those of other sequences, is refused") {
  const auto first_of = [](const char* row, const char* port, std::int64_t by) {
    return [=](subject& s) { subject::port(*s.find_all("0", row).at(0), port).first += by; };
  };
  check_refused(of_llama(), said{7442, {"tokens 0..3 and 12..15", "tokens 4..11"}},
                first_of("chunk_attention", "q", 8));
  check_refused(of_llama(), said{7438, {"4", "8", "16"}}, first_of("chunk_attention", "q", 4));
  check_refused(of_llama(), said{7442, {"tokens 0..3 and 12..15", "tokens 4..11"}},
                first_of("chunk_attention_grad", "q", 8));
  check_refused(of_gpt(), said{7437, {"tokens 0..1 and 14..15", "2", "16"}},
                first_of("chunk_position", "x", 8));
  check_refused(of_gpt(), said{7437, {"tokens 0..1 and 14..15", "2", "16"}},
                first_of("chunk_position_grad", "dy", 8));
  const auto told = [](const char* row, void (*change)(op&)) {
    return [=](subject& s) { change(*s.find_all("0", row).at(0)); };
  };
  check_refused(of_llama(), said{7436, {"16", "3"}}, told("chunk_attention", [](op& o) { o.number = 3; }));
  check_refused(of_llama(), said{7444, {"1", "16", "4", "8", "16"}},
                told("chunk_attention", [](op& o) { o.number = 4; }));
  check_refused(of_llama(), said{7444, {"1", "8", "2", "8", "16"}},
                told("chunk_attention", [](op& o) { o.seq = 8; }));
  check_refused(of_gpt(), said{7437, {"tokens 0..1 and 14..15", "2", "16"}},
                told("chunk_position", [](op& o) { o.number = 2; }));
}

TEST_CASE("chunks on the wrong rank, keys that are another's, and turns by other positions are refused") {
  const auto held = [](subject& s, int rank, holding_kind kind) -> holding& {
    for (holding& h : s.p.ranks[static_cast<std::size_t>(rank)].ops.front().holds)
      if (h.kind == kind) return h;
    throw std::logic_error("it is not held");
  };
  // Contiguous parts instead of two chunks; and the two ranks' chunks exchanged, with and without targets.
  check_refused(of_llama(), said{7437, {"tokens 0..7", "12", "16"}},
                [&](subject& s) { held(s, 0, holding_kind::ids).box = {{0, 8}}; });
  const auto change_over = [&](subject& s, std::initializer_list<holding_kind> kinds) {
    for (const holding_kind k : kinds) std::swap(held(s, 0, k).box, held(s, 1, k).box);
  };
  check_refused(of_llama(), said{7414, {"targets", "tokens 4..11", "64", "tokens 0..3 and 12..15", "64"}},
                [&](subject& s) { change_over(s, {holding_kind::targets}); });
  check_refused(of_llama(), said{7437, {"tokens 4..11", "0", "16"}},
                [&](subject& s) { change_over(s, {holding_kind::ids, holding_kind::targets}); });
  check_refused(of_llama(), said{7437, {"tokens 0..3 and 12..15", "4", "16"}},
                [&](subject& s) { change_over(s, {holding_kind::rotary}); });
  check_refused(of_llama(),
                said{7433, {"chunk_attention", "layers.0: rope, layers.0: linear, layers.0: rope"}},
                [](subject& s) {
                  op& o = *s.find_all("0", "chunk_attention").at(0);
                  std::swap(subject::read_of(o, "k"), subject::read_of(o, "v"));
                });
}

TEST_CASE("ranks that exchange heads compute the model, on worlds of which some stand for all too") {
  CHECK(of_heads().reason() == "");
  CHECK(of_four().reason() == "");
  constexpr rankc::models::llama heads{
      .layers = 2, .hidden = 64, .heads = 8, .kv_heads = 8, .ffn = 128, .vocab = 64, .theta = 10000};
  for (const cp_weights by : {cp_weights::shard, cp_weights::replicate}) {
    const subject s(planned(heads, {.world = 192,
                                    .dp_replicate = 6,
                                    .dp_shard = 4,
                                    .cp = 4,
                                    .tp = 2,
                                    .ulysses = 4,
                                    .sequence_parallel = true,
                                    .cp_weights = by}),
                    target::cuda, dtype::bf16);
    CHECK(s.reason() == "");
    CHECK(static_cast<int>(s.p.ranks.size()) < s.p.world);
  }
}

TEST_CASE(
    "each exchange of heads is needed, of forward and of backward, and each is of its own sequences and "
    "members") {
  for (const subject* sound : {&of_heads(), &of_four()}) {
    std::set<std::string> names;
    for (const op& o : sound->p.ranks[0].ops)
      if (o.kind == op_kind::collective && o.does == collective_kind::all_to_all) names.insert(o.name);
    CHECK(names.size() == 8);  // q, k, v, o and their gradients
    for (const std::string& name : names)
      for (std::size_t n = 0; n < 4; ++n) {  // in each layer and microbatch
        CAPTURE(name);
        CAPTURE(n);
        const auto changed = [&](const std::function<void(op&)>& change) {
          return fault(*sound, [&](subject& s) {
            for (op* o : s.find_all(name, "", n)) change(*o);
          });
        };
        // Each rank's local tensor stays in place, under the name of the exchange's result.
        CHECK(fault(*sound, [&](subject& s) {
                for (int r = 0; r < static_cast<int>(s.p.ranks.size()); ++r)
                  s.leave_out(r, *s.find(r, name).at(n));
              }) != "");
        CHECK(changed([](op& o) { o.seq = 8; }) != "");
        CHECK(changed([](op& o) { o.seq = 12; }) != "");
        CHECK(changed([](op& o) { o.does = collective_kind::all_reduce; }) != "");
        // One rank alone exchanges other sequences or other rows.
        CHECK(fault(*sound, [&](subject& s) { s.find(0, name).at(n)->seq = 8; }) != "");
        CHECK(fault(*sound, [&](subject& s) {
                std::swap(s.find(0, name).at(n)->views[0].shape, s.find(0, name).at(n)->views[1].shape);
              }) != "");
      }
  }
}

TEST_CASE("members that exchange in another order than their tokens lie are refused") {
  const auto exchange_ranks = [](subject& s) {
    for (auto& c : s.p.communicators)
      if (c.name.starts_with("cp ")) std::swap(c.ranks[0], c.ranks[1]);
  };
  CHECK(fault(of_heads(), exchange_ranks) != "");
  CHECK(fault(of_four(), exchange_ranks) != "");
  // The scratch overlaps the exchanged tensor, or is too small.
  const auto first = [](subject& s) -> op& {
    for (op& o : s.p.ranks[0].ops)
      if (o.kind == op_kind::collective && o.does == collective_kind::all_to_all) return o;
    throw std::logic_error("nothing is exchanged");
  };
  check_refused(of_four(), said{7586, {}}, [&](subject& s) {
    op& o = first(s);
    o.writes[1].begin = o.reads[0].begin;
    o.writes[1].end = o.reads[0].end;
  });
  check_refused(of_four(), said{7587, {"126", "128"}}, [&](subject& s) { first(s).writes[1].end -= 2; });
}

}  // namespace chunks_test
