// SPDX-License-Identifier: Apache-2.0
// Programs whose ranks pass keys and values around a ring: every query meets every key once, each gradient of
// a key returns once, and faults on the way are refused.
#include <doctest/doctest.h>

#include <functional>
#include <utility>

#include "refused.hpp"
#include "ring_plans.hpp"

namespace rings_test {

using namespace equivalence_tests;
using rankc::codegen::access;

namespace {

using rankc::cp_weights;

constexpr rankc::models::llama llama{
    .layers = 1, .hidden = 16, .heads = 4, .kv_heads = 2, .ffn = 24, .vocab = 32, .theta = 10000};
constexpr rankc::models::gpt2 gpt{.layers = 1, .hidden = 16, .heads = 2, .ffn = 24, .vocab = 32};

/// of_two: a ring of two with tp and microbatches of two sequences. of_three: with replicas. of_four:
/// backward recomputes attention.
const subject& of_two() {
  static const subject s(ring_plan(gpt, {.world = 4, .cp = 2, .tp = 2, .sequence_parallel = true}, 2, 16),
                         target::host);
  return s;
}
const subject& of_three() {
  static const subject s(ring_plan(llama, {.world = 3, .cp = 3, .cp_weights = cp_weights::replicate}, 1, 24),
                         target::cuda, dtype::bf16);
  return s;
}
const subject& of_four() {
  static const subject s(ring_plan(llama, {.world = 4, .cp = 4}, 2, 16, {.attention = true}), target::host);
  return s;
}

/// The n-th shift of each rank, in forward and backward order.
std::vector<op*> shifts(subject& s, std::size_t n) {
  std::vector<op*> all;
  for (rank_program& r : s.p.ranks) {
    std::size_t left = n;
    for (op& o : r.ops)
      if (o.kind == op_kind::collective && is_shift(o.does) && left-- == 0) all.push_back(&o);
  }
  return all;
}
std::size_t count_shifts(const subject& s) {
  std::size_t n = 0;
  for (const op& o : s.p.ranks[0].ops) n += o.kind == op_kind::collective && is_shift(o.does);
  return n;
}
void leave_out(subject& s, std::size_t n) {
  const std::vector<op*> all = shifts(s, n);
  for (std::size_t r = 0; r < all.size(); ++r) s.leave_out(static_cast<int>(r), *all[r]);
}

}  // namespace

TEST_CASE("ranks that hand keys and values on compute the model, on worlds of which some stand for all too") {
  CHECK(of_two().reason() == "");
  CHECK(of_three().reason() == "");
  CHECK(of_four().reason() == "");
  constexpr rankc::models::gpt2 wide{.layers = 2, .hidden = 64, .heads = 2, .ffn = 128, .vocab = 64};
  for (const cp_weights by : {cp_weights::shard, cp_weights::replicate}) {
    const subject s(ring_plan(wide,
                              {.world = 192,
                               .dp_replicate = 6,
                               .dp_shard = 4,
                               .cp = 4,
                               .tp = 2,
                               .sequence_parallel = true,
                               .cp_weights = by},
                              1, 16),
                    target::cuda, dtype::bf16);
    CHECK(s.reason() == "");
    CHECK(static_cast<int>(s.p.ranks.size()) < s.p.world);
  }
}

TEST_CASE(
    "shifts: (c - 1) of forward, 2 (c - 1) of backward, and (c - 1) more where that repeats attention") {
  CHECK(count_shifts(of_two()) == 3);
  CHECK(count_shifts(of_three()) == 6);
  CHECK(count_shifts(of_four()) == 12);
}

TEST_CASE("each shift is needed, goes one way, and is of all its members") {
  for (const subject* sound : {&of_two(), &of_three(), &of_four()})
    for (std::size_t n = 0; n < count_shifts(*sound); ++n) {
      CAPTURE(n);
      // Each rank keeps its local keys and values.
      CHECK(fault(*sound, [&](subject& s) { leave_out(s, n); }) != "");
      // In a ring of two, both directions are the same.
      const std::string other_way = fault(*sound, [&](subject& s) {
        for (op* o : shifts(s, n))
          o->does = o->does == collective_kind::shift ? collective_kind::shift_back : collective_kind::shift;
      });
      CHECK((other_way == "") == (sound == &of_two()));
      CHECK(fault(*sound, [&](subject& s) { shifts(s, n)[0]->does = collective_kind::all_reduce; }) != "");
      // Keys arrive as values, and values as keys.
      CHECK(fault(*sound, [&](subject& s) {
              for (op* o : shifts(s, n)) std::swap(o->reads[0], o->reads[1]);
            }) != "");
    }
}

TEST_CASE("a step that takes its keys for those of another, or its queries, is refused") {
  const auto told = [](const char* row, std::size_t n, const std::function<void(op&)>& change) {
    return [=](subject& s) { change(*s.find(0, "0", row).at(n)); };
  };
  for (const char* row : {"ring_attention", "ring_attention_grad"}) {
    check_refused(of_three(), said{7443, {"tokens 8..15", "tokens 4..7 and 16..19"}},
                  told(row, 1, [](op& o) { o.number = o.number == 1 ? 2 : 1; }));
    check_refused(of_three(), said{7442, {"tokens 0..3 and 20..23", "tokens 4..7 and 16..19"}},
                  told(row, 0, [](op& o) { subject::port(o, "q").first += 8; }));
    check_refused(of_three(), said{7438, {"4", "8", "24"}},
                  told(row, 0, [](op& o) { subject::port(o, "q").first += 4; }));
    check_refused(of_three(), said{7449, {"3", "2"}}, told(row, 0, [](op& o) { o.number = 3; }));
    check_refused(of_three(), said{7449, {"0.5", "2"}}, told(row, 0, [](op& o) { o.number = 0.5; }));
    check_refused(of_three(), said{7448, {"8", "8", "1", "20"}}, told(row, 0, [](op& o) { o.seq = 20; }));
    check_refused(of_four(), told(row, 0, [](op& o) {
                    o.rows = 1;
                    o.seq = 32;
                  }));
  }
}

TEST_CASE("a part that is merged twice, not at all, or by another's log-sum-exp is refused") {
  const auto merge = [](subject& s, std::size_t n) -> op& {
    return *s.find(0, "0F0", "merge_attention").at(n);
  };
  check_refused(of_three(), said{7510, {"positions 8..15"}}, [&](subject& s) {
    op &first = merge(s, 0), &second = merge(s, 1);
    subject::read_of(second, "o_more") = subject::read_of(first, "o_more");
    subject::read_of(second, "lse_more") = subject::read_of(first, "lse_more");
  });
  check_refused(of_three(), said{7508, {"positions 0..3 and 20..23", "positions 8..15"}}, [&](subject& s) {
    op& o = merge(s, 0);
    subject::read_of(o, "lse_more") = subject::read_of(o, "lse_before");
  });
  // Ranks 1 and 2 have keys of which the first queries of rank 0 see none.
  check_refused(of_three(), said{7804, {"positions 0..3 and 20..23"}}, [&](subject& s) {
    op &first = merge(s, 0), &second = merge(s, 1);
    for (const auto& [before, more] : {std::pair("o_before", "o_more"), {"lse_before", "lse_more"}})
      subject::read_of(second, before) = subject::read_of(first, more);
    for (access& w : second.writes) w.replaces = -1;
  });
  // Without the merge, one part of two is left.
  check_refused(of_two(), said{7428, {"x", "layers.0: attention", "positions 4..11"}}, [&](subject& s) {
    for (int r = 0; r < static_cast<int>(s.p.ranks.size()); ++r)
      s.leave_out(r, *s.find(r, "0F0", "merge_attention").at(0));
  });
  // Two parts of a softmax must not be added.
  check_refused(of_two(), said{7502, {"a softmax"}}, [&](subject& s) {
    op& o = merge(s, 0);
    o.row = "add";
    o.function = "add";
    o.views = {subject::port(o, "o"), subject::port(o, "o_before"), subject::port(o, "o_more")};
    o.views[0].port = "y";
    o.views[1].port = "a";
    o.views[2].port = "b";
    o.rows = o.seq = 0;
    for (view& v : o.views) v.unit = 1;
  });
  check_refused(of_two(), said{7446, {"tokens 0..3, 12..19 and 28..31", "2", "8"}},
                [&](subject& s) { merge(s, 0).seq /= 2; });
  // Log-sum-exps are stored sequence by sequence, so half a sequence's are at other indices.
  check_refused(of_two(), said{7786, {"lse_before", "8", "16"}}, [&](subject& s) { merge(s, 0).rows = 1; });
  check_refused(of_two(), said{7786, {"lse_before", "8", "4"}}, [&](subject& s) {
    merge(s, 0).rows *= 2;
    merge(s, 0).seq /= 2;
  });
  check_refused(of_three(), said{7447, {"lse_before", "24", "48"}},
                [&](subject& s) { merge(s, 0).seq *= 2; });
}

TEST_CASE("each part of a gradient is added once") {
  for (const subject* sound : {&of_two(), &of_three(), &of_four()}) {
    std::size_t parts = 0;
    for (const op& o : sound->p.ranks[0].ops) parts += o.row == "ring_attention_grad";
    for (std::size_t n = 0; n < parts; ++n)
      for (const char* port : {"dq", "dk", "dv"}) {
        CAPTURE(n);
        CAPTURE(port);
        // Another part from the same rank takes its place.
        CHECK(
            fault(*sound, [&](subject& s) {
              const std::vector<op*> all = s.find(0, "0", "ring_attention_grad");
              const auto written = [&](std::size_t i) -> access& {
                return all[i]->writes[static_cast<std::size_t>(subject::port(*all[i], port).accesses.first)];
              };
              const int gone = written(n).value, instead = written((n + 1) % parts).value;
              for (op& o : s.p.ranks[0].ops)
                for (access& a : o.reads)
                  if (a.value == gone) a.value = instead;
            }) != "");
      }
  }
}

}  // namespace rings_test
