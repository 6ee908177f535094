// SPDX-License-Identifier: Apache-2.0
// Programs whose sequences consist of documents: attention and positions within documents are separate terms,
// and starts of other tokens, or no starts, are refused.
#include <doctest/doctest.h>

#include <rankc/plan/make_plan.hpp>
#include <rankc/rankc.hpp>

#include <functional>

#include "refused.hpp"

namespace documents_test {

using namespace equivalence_tests;

namespace {

using rankc::cp_attention;
using rankc::parallel_dims;

rankc::plan_data planned(const auto& model, const parallel_dims& dims, int rows = 2, bool packed = true) {
  using namespace rankc;
  const int replicas = dims.dp_replicate * dims.dp_shard;
  return make_plan("documents", model, dims, schedules::gpipe{2},
                   training{.seq = 16,
                            .global_batch = 2 * rows * replicas,
                            .precision = f32,
                            .end_of_document = packed ? 3 : -1},
                   clusters::h200<256>);
}
constexpr rankc::models::llama llama{
    .layers = 2, .hidden = 16, .heads = 4, .kv_heads = 4, .ffn = 24, .vocab = 32, .theta = 10000};
constexpr rankc::models::gpt2 gpt{.layers = 2, .hidden = 16, .heads = 4, .ffn = 24, .vocab = 32};

/// Five placements: whole sequences on replicas; gathered keys with parts of chunks over tp; a ring; heads
/// exchanged; heads exchanged in a ring of groups.
const subject& of_one() {
  static const subject s(planned(gpt, {.world = 2, .dp_replicate = 2}), target::host);
  return s;
}
const subject& of_chunks() {
  static const subject s(planned(gpt, {.world = 4, .cp = 2, .tp = 2, .sequence_parallel = true}),
                         target::host);
  return s;
}
const subject& of_ring() {
  static const subject s(planned(llama, {.world = 2, .cp = 2, .cp_attention = cp_attention::ring}),
                         target::cuda, dtype::bf16);
  return s;
}
const subject& of_heads() {
  static const subject s(planned(gpt, {.world = 4, .cp = 4, .ulysses = 4}), target::host);
  return s;
}
const subject& of_groups() {
  static const subject s(
      planned(llama, {.world = 4, .cp = 4, .ulysses = 2, .cp_attention = cp_attention::ring}), target::host);
  return s;
}

std::vector<holding*> starts_held(subject& s, int rank) {
  std::vector<holding*> all;
  for (holding& h : s.p.ranks[static_cast<std::size_t>(rank)].ops.front().holds)
    if (h.kind == holding_kind::starts) all.push_back(&h);
  return all;
}

}  // namespace

TEST_CASE("programs of documents compute the model, whole, gathered, around rings and by heads") {
  for (const subject* s : {&of_one(), &of_chunks(), &of_ring(), &of_heads(), &of_groups()})
    CHECK(s->reason() == "");
}

TEST_CASE("starts of another microbatch, of another replica, or in another order are refused") {
  for (const subject* sound : {&of_one(), &of_chunks(), &of_ring(), &of_heads(), &of_groups()}) {
    check_refused(*sound, 7452,
                  [](subject& s) { std::swap(starts_held(s, 0).at(0)->box, starts_held(s, 0).at(1)->box); });
    check_refused(*sound, 7452, [](subject& s) { starts_held(s, 0).at(0)->box[0].first += 16; });
    check_refused(*sound, 7452, [](subject& s) {  // its two sequences in reverse order
      holding& h = *starts_held(s, 0).at(0);
      const std::int64_t first = h.box[0].first;
      h.box = {{first + 16, 16}, {first, 16}};
    });
  }
  check_refused(of_one(), said{7452, {"tokens 32..63", "tokens 0..31"}}, [](subject& s) {
    for (std::size_t m = 0; m < 2; ++m) std::swap(starts_held(s, 0).at(m)->box, starts_held(s, 1).at(m)->box);
  });
  // The starts are in the order of a rank's chunks, as its tokens are.
  check_refused(of_chunks(), said{7452, {"tokens 0..3 and 28..31", "tokens 0..3 and 12..15"}},
                [](subject& s) {
                  starts_held(s, 0).at(0)->box = {{0, 4}, {12, 4}, {16, 4}, {28, 4}, {4, 8}, {20, 8}};
                });
}

TEST_CASE("ids or targets in the place of starts are refused") {
  for (const subject* sound : {&of_one(), &of_chunks(), &of_ring(), &of_heads(), &of_groups()})
    for (const holding_kind kind : {holding_kind::ids, holding_kind::targets}) {
      const said why = check_refused(*sound, 7433, [&](subject& s) {
        for (holding* h : starts_held(s, 0)) h->kind = kind;
      });
      CHECK(why.arguments.at(0).starts_with("document_"));
    }
}

TEST_CASE("attention that is not told of documents is another term") {
  const auto untold = [](subject& s, const std::string& row) {
    for (op* o : s.find_all("0", "document_" + row)) {
      o->row = o->function = row;
      o->views.pop_back();  // starts are the last operand
      if (row.starts_with("position")) o->rows = 0;
    }
  };
  for (const auto& [sound, row] : {std::pair(&of_one(), "attention"),
                                   {&of_chunks(), "chunk_attention"},
                                   {&of_ring(), "ring_attention"},
                                   {&of_heads(), "attention"},
                                   {&of_one(), "position"}})
    for (const char* which : {"", "_grad"}) {
      CAPTURE(row);
      CAPTURE(which);
      const std::string untold_row = std::string(row) + which;
      // Position's gradient is a sum; the model does not have that, either.
      const int id = untold_row == "position" ? 7690 : 7433;
      check_refused(*sound, id, [&](subject& s) { untold(s, untold_row); });
    }
  // The model of whole sequences does not accept a program with documents.
  subject s = of_one();
  s.model = subject(planned(gpt, {.world = 2, .dp_replicate = 2}, 2, false), target::host).model;
  CHECK(placed_of(s.reason()) ==
        placed{"rank 0, 0F0: embedding: document_position of wpe",
               {7433, {"document_position", "embedding: embedding, wpe, the starts of documents"}}});
}

TEST_CASE("an op that takes its tokens for another rank's, or its sequences for others, is refused") {
  const auto told = [](const char* row, const std::function<void(op&)>& change) {
    return [=](subject& s) { change(*s.find_all("0", row).at(0)); };
  };
  for (const char* row : {"document_attention", "document_attention_grad"}) {
    check_refused(of_one(), said{7441, {"2", "8", "32"}}, told(row, [](op& o) { o.seq = 8; }));
    check_refused(of_one(), told(row, [](op& o) {
                    o.rows = 4;
                    o.seq = 8;
                  }));
    check_refused(of_heads(), told(row, [](op& o) {
                    o.rows = 1;
                    o.seq = 32;
                  }));
  }
  check_refused(of_chunks(), said{7452, {"tokens 4..11 and 20..27", "tokens 0..3, 12..19 and 28..31"}},
                told("document_chunk_attention", [](op& o) { subject::port(o, "q").first += 16; }));
  check_refused(of_chunks(), said{7452, {"tokens 16..19 and 28..31", "tokens 0..3 and 12..15"}},
                told("document_chunk_position", [](op& o) { subject::port(o, "x").first += 8; }));
  check_refused(of_chunks(), said{7452, {"tokens 16..19 and 28..31", "tokens 0..3 and 12..15"}},
                told("document_chunk_position_grad", [](op& o) { subject::port(o, "dy").first += 8; }));
  check_refused(of_ring(), said{7443, {"tokens 0..3, 12..19 and 28..31", "tokens 4..11 and 20..27"}},
                told("document_ring_attention", [](op& o) { o.number = 1 - o.number; }));
  check_refused(of_groups(), said{7452, {"tokens 4..11 and 20..27", "tokens 0..3, 12..19 and 28..31"}},
                told("document_ring_attention_grad", [](op& o) { subject::port(o, "q").first += 16; }));
}

}  // namespace documents_test
