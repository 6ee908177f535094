// SPDX-License-Identifier: Apache-2.0
// Programs with experts: choice, slots and offsets belong together, and each exchange is needed.
#include <doctest/doctest.h>

#include <rankc/plan/make_plan.hpp>
#include <rankc/rankc.hpp>
#include <rankc/contract/fp8.hpp>

#include <algorithm>
#include <functional>
#include <set>

#include "plans.hpp"
#include "refused.hpp"
#include "small_experts.hpp"

namespace experts_test {

using namespace equivalence_tests;
using rankc::codegen::access;

namespace {

using rankc::parallel_dims;

rankc::plan_data planned(const parallel_dims& dims, int experts = 4, int limited_group = 0) {
  using namespace rankc;
  models::qwen3_moe model = small_experts(2, experts);
  model.capacity = limited_group ? 1.0 : 0.0;
  model.capacity_group = limited_group;
  const int ranks = dims.dp_replicate * dims.dp_shard;
  return make_plan("experts", model, dims, schedules::gpipe{2},
                   training{.seq = 8, .global_batch = 4 * ranks, .precision = f32}, clusters::h200<256>);
}

const subject& of_replicas() {
  static const subject s(planned({.world = 4, .dp_replicate = 2, .tp = 2}), target::host);
  return s;
}
const subject& of_shards() {
  static const subject s(planned({.world = 8, .dp_shard = 2, .cp = 2, .tp = 2, .sequence_parallel = true}),
                         target::cuda, dtype::bf16);
  return s;
}

/// Each rank of ep has other experts, and their gradients are summed over replicas.
const subject& of_spread_experts() {
  static const subject s(
      planned({.world = 8, .dp_replicate = 2, .cp = 2, .tp = 2, .ep = 4, .sequence_parallel = true}),
      target::host);
  return s;
}
/// Two ranks shard the same experts.
const subject& of_shared_experts() {
  static const subject s(
      planned({.world = 8, .dp_shard = 2, .cp = 2, .tp = 2, .ep = 4, .sequence_parallel = true}),
      target::cuda, dtype::bf16);
  return s;
}

/// Two etp ranks shard the columns of experts.
const subject& of_columns() {
  static const subject s(
      planned(
          {.world = 8, .dp_replicate = 2, .cp = 2, .tp = 2, .ep = 2, .etp = 2, .sequence_parallel = true}),
      target::cuda, dtype::bf16);
  return s;
}

/// Experts that take one pick from every two positions.
const subject& of_limited_experts() {
  static const subject s(
      planned({.world = 8, .dp_shard = 2, .cp = 2, .tp = 2, .ep = 4, .sequence_parallel = true}, 4, 2),
      target::cuda, dtype::bf16);
  return s;
}

/// In a microbatch's forward, a layer's op reads the operand of another layer, or of another microbatch.
auto swapped(const char* row, const char* port, const char* of, const char* with, std::size_t n = 0) {
  return [=](subject& s) {
    for (int r = 0; r < static_cast<int>(s.p.ranks.size()); ++r) {
      const access& other = subject::read_of(*s.find(r, with, row).at(n), port);
      access& own = subject::read_of(*s.find(r, of, row).at(n), port);
      own.value = other.value;
      own.begin = other.begin;
      own.end = other.end;
    }
  };
}

/// The names of the collectives of layer 0 and outside layers, on communicators with this prefix.
std::set<std::string> collectives(const subject& sound, const std::string& communicator) {
  std::set<std::string> names;
  for (const op& o : sound.p.ranks[0].ops)
    if (o.kind == op_kind::collective && o.name.find("layers.1") == o.name.npos &&
        o.function != "all_reduce_max" &&
        sound.p.communicators[static_cast<std::size_t>(o.communicator)].name.starts_with(communicator))
      names.insert(o.name);
  return names;
}

}  // namespace

TEST_CASE("programs with experts compute the model, on worlds of which some stand for all too") {
  CHECK(of_replicas().reason() == "");
  CHECK(of_shards().reason() == "");
  int some = 0;
  for (const bool evaluates : {false, true}) {
    const subject s(planned({.world = 192,
                             .dp_replicate = 6,
                             .dp_shard = 4,
                             .cp = 4,
                             .tp = 2,
                             .sequence_parallel = true,
                             .cp_weights = rankc::cp_weights::replicate}),
                    target::cuda, dtype::bf16, evaluates);
    CHECK(s.reason() == "");
    some += static_cast<int>(s.p.ranks.size()) < s.p.world;
  }
  CHECK(some == 2);
}

TEST_CASE(
    "programs with experts on ranks of their own compute the model, on worlds of which some stand for all "
    "too") {
  CHECK(of_spread_experts().reason() == "");
  CHECK(of_shared_experts().reason() == "");
  CHECK(of_columns().reason() == "");
  for (const bool evaluates : {false, true})
    for (const auto& [ep, etp] : {std::pair(8, 1), {4, 2}}) {
      const subject s(planned({.world = 128,
                               .dp_replicate = 8,
                               .dp_shard = 4,
                               .cp = 2,
                               .tp = 2,
                               .ep = ep,
                               .etp = etp,
                               .sequence_parallel = true},
                              16),
                      target::cuda, dtype::bf16, evaluates);
      CHECK(s.reason() == "");
      CHECK(static_cast<int>(s.p.ranks.size()) < s.p.world);
    }
  const subject of_replicas(planned({.world = 128,
                                     .dp_replicate = 8,
                                     .dp_shard = 4,
                                     .cp = 2,
                                     .tp = 2,
                                     .ep = 8,
                                     .sequence_parallel = true,
                                     .expert_layout = rankc::expert_layout::folded_over_replicas},
                                    16),
                            target::cuda, dtype::bf16);
  CHECK(of_replicas.reason() == "");
  CHECK(static_cast<int>(of_replicas.p.ranks.size()) == of_replicas.p.world);
  const subject of_same_tokens(planned({.world = 128,
                                        .dp_replicate = 8,
                                        .dp_shard = 2,
                                        .tp = 2,
                                        .ep = 4,
                                        .sequence_parallel = true,
                                        .expert_layout = rankc::expert_layout::independent},
                                       8),
                               target::cuda, dtype::bf16);
  CHECK(of_same_tokens.reason() == "");
  CHECK(of_same_tokens.p.ranks.size() == 32);
}

TEST_CASE("each gathering and each sum over etp is needed, on each rank and in each microbatch") {
  const subject& sound = of_columns();
  const std::set<std::string> all = collectives(sound, "etp ");
  CHECK(all.size() == 5);  // offsets, slots, and results' sums; gradients of sums and of slots
  for (const std::string& name : all)
    for (const std::size_t n : {std::size_t{0}, std::size_t{3}}) {  // layers 0 and 1, and two microbatches
      CAPTURE(name);
      CHECK(fault(sound, [&](subject& s) {
              for (int r = 0; r < static_cast<int>(s.p.ranks.size()); ++r)
                s.leave_out(r, *s.find(r, name).at(n));
            }) != "");
      CHECK(fault(sound, [&](subject& s) { s.leave_out(1, *s.find(1, name).at(n)); }) != "");
    }
  const std::set<std::string> sums = collectives(sound, "dp ");
  CHECK(sums.count("gradients of layers.0 experts over dp") == 1);
}

TEST_CASE("slots that were gathered in another order than their offsets are refused") {
  const subject& sound = of_columns();
  check_refused(sound, said{7412, {"x"}}, [](subject& s) {  // offsets of slabs with other rows
    for (int r = 0; r < static_cast<int>(s.p.ranks.size()); ++r)
      for (op* o : s.find(r, "gather_offsets")) o->rows /= 2;
  });
  check_refused(sound, said{7646, {}}, [](subject& s) {  // the slots of another layer
    const access other = s.find(1, "gather_slots of received").at(0)->reads[0];
    access& own = s.find(1, "gather_slots of received").at(1)->reads[0];
    own.value = other.value;
    own.begin = other.begin;
    own.end = other.end;
  });
}

TEST_CASE(
    "each exchange over ep is needed, on each rank and in each microbatch, and each sum over replicas") {
  for (const subject* sound : {&of_spread_experts(), &of_shared_experts()}) {
    const std::set<std::string> exchanges = collectives(*sound, "ep ");
    CHECK(exchanges.size() ==
          5);  // forward sends offsets, slots and results; backward the gradients of results and of slots
    for (const std::string& name : exchanges)
      for (const std::size_t n : {std::size_t{0}, std::size_t{3}}) {  // layers 0 and 1, and two microbatches
        CAPTURE(name);
        CHECK(fault(*sound, [&](subject& s) {
                for (int r = 0; r < static_cast<int>(s.p.ranks.size()); ++r)
                  s.leave_out(r, *s.find(r, name).at(n));
              }) != "");
        CHECK(fault(*sound, [&](subject& s) { s.leave_out(1, *s.find(1, name).at(n)); }) != "");
      }
    std::set<std::string> sums;
    for (const char* over : {"dp ", "efsdp ", "gathering of experts "}) sums.merge(collectives(*sound, over));
    CHECK(sums.count(sound == &of_spread_experts() ? "gradients of layers.0 experts over dp"
                                                   : "gradients of layers.0 experts over efsdp") == 1);
    CHECK(sums.size() >= 2);
    for (const std::string& name : sums) {
      CAPTURE(name);
      CHECK(fault(*sound, [&](subject& s) {
              for (int r = 0; r < static_cast<int>(s.p.ranks.size()); ++r)
                s.leave_out(r, *s.find(r, name).at(0));
            }) != "");
    }
  }
}

TEST_CASE("experts' gradients that are summed over the wrong ranks, or once too often, are refused") {
  for (const char* over : {"ep ", "shard ", "tp "})  // ranks of these groups have different experts
    check_refused(of_spread_experts(), [&](subject& s) {
      for (int r = 0; r < 8; ++r)
        for (std::size_t c = 0; c < s.p.communicators.size(); ++c) {
          const std::vector<int>& ranks = s.p.communicators[c].ranks;
          if (s.p.communicators[c].name.starts_with(over) &&
              std::find(ranks.begin(), ranks.end(), r) != ranks.end())
            s.find(r, "gradients of layers.0 experts over dp").at(0)->communicator = static_cast<int>(c);
        }
    });
  check_refused(of_spread_experts(), [](subject& s) {
    for (int r = 0; r < 8; ++r) {
      op& sum = *s.find(r, "gradients of layers.0 experts over dp").at(0);
      op again = sum;
      for (std::size_t i = 0; i < again.writes.size(); ++i)
        sum.writes[i].value = again.reads[i].value = s.new_value() + static_cast<int>(i);
      s.insert_after(r, &sum, again);
    }
  });
}

TEST_CASE("slots and offsets that were exchanged otherwise than each other are refused") {
  for (const subject* sound : {&of_spread_experts(), &of_shared_experts()}) {
    check_refused(*sound, 7412, swapped("expert_up", "offsets", "F0: layers.1", "F0: layers.0"));
    check_refused(*sound, 7412, swapped("expert_down", "x", "F1: layers.1", "F1: layers.0"));
    check_refused(*sound, 7657, swapped("expert_up", "offsets", "F1: layers.0", "F0: layers.0", 1));
    check_refused(*sound, swapped("expert_up", "w", "F1: layers.1", "F1: layers.0"));
    const auto exchanged = [&](const char* name, const char* port, std::size_t of, std::size_t with) {
      return [=](subject& s) {
        for (int r = 0; r < static_cast<int>(s.p.ranks.size()); ++r) {
          const access other = subject::read_of(*s.find(r, name).at(with), port);
          access& own = subject::read_of(*s.find(r, name).at(of), port);
          own.value = other.value;
          own.begin = other.begin;
          own.end = other.end;
        }
      };
    };
    check_refused(*sound, 7661, exchanged("to_experts of rows", "offsets", 1, 0));
    check_refused(*sound, 7663, exchanged("from_experts of down", "received", 1, 0));
    check_refused(*sound, 7657, exchanged("to_experts of rows", "offsets", 2, 0));
    check_refused(*sound, [](subject& s) {  // segments of the local slots in place of the received ones
      for (int r = 0; r < static_cast<int>(s.p.ranks.size()); ++r) {
        const access own = s.find(r, "share_offsets").at(0)->reads[0];
        access& of = subject::read_of(*s.find(r, "F0: layers.0", "expert_up").at(0), "offsets");
        of.value = own.value;
        of.begin = own.begin;
        of.end = own.end;
      }
    });
    check_refused(*sound, 7596, [](subject& s) {  // slabs too small for the picks that tokens may have
      for (int r = 0; r < static_cast<int>(s.p.ranks.size()); ++r)
        for (op* o : s.find(r, "to_experts of rows")) o->rows /= 2;
    });
    check_refused(*sound, said{7596, {"6", "4"}},
                  [](subject& s) { s.find(0, "to_experts of rows").at(0)->rows += 2; });
  }
}

TEST_CASE("each collective over tp is needed") {
  for (const subject* sound : {&of_replicas(), &of_shards()}) {
    const std::set<std::string> names = collectives(*sound, "tp ");
    CHECK(names.size() >= 6);
    for (const std::string& name : names) {
      CAPTURE(name);
      CHECK(fault(*sound, [&](subject& s) {
              for (int r = 0; r < static_cast<int>(s.p.ranks.size()); ++r)
                s.leave_out(r, *s.find(r, name).at(0));
            }) != "");
    }
  }
}

TEST_CASE("slots, offsets and places of another choice, or of other tokens, are refused") {
  for (const subject* sound : {&of_replicas(), &of_shards()}) {
    check_refused(*sound, 7412, swapped("expert_up", "offsets", "F0: layers.1", "F0: layers.0"));
    check_refused(*sound, 7412, swapped("expert_down", "x", "F1: layers.1", "F1: layers.0"));
    check_refused(*sound, 7412, swapped("combine", "places", "F0: layers.1", "F0: layers.0"));
    check_refused(*sound, 7412, swapped("expert_dw", "offsets", "B0: layers.0", "B0: layers.1"));
    const said of_dispatch =
        check_refused(*sound, 7414, swapped("dispatch", "places", "F1: layers.0", "F0: layers.0"));
    CHECK(of_dispatch.arguments.at(3).starts_with("tokens"));
    check_refused(*sound, 7657, swapped("expert_up", "offsets", "F1: layers.0", "F0: layers.0", 1));
    const said of_combine =
        check_refused(*sound, 7414, swapped("combine", "weights", "F1: layers.0", "F0: layers.0"));
    CHECK(of_combine.arguments.at(3).starts_with("tokens"));
    check_refused(*sound, swapped("expert_up", "w", "F1: layers.1", "F1: layers.0"));
    check_refused(*sound, swapped("combine_grad", "weights", "B0: layers.0", "B0: layers.1"));
    check_refused(*sound, swapped("softmax_top_grad", "chosen", "B0: layers.0", "B0: layers.1"));
  }
}

TEST_CASE(
    "offsets are no places, some of the slots are no slots of some tokens, and weights add up to what the "
    "model says") {
  check_refused(of_replicas(), said{7416, {"places"}}, [](subject& s) {
    for (int r = 0; r < 4; ++r)
      subject::read_of(*s.find(r, "F0: layers.0", "dispatch").at(0), "places").value =
          subject::read_of(*s.find(r, "F0: layers.0", "arrange").at(0), "chosen").value;
  });
  check_refused(of_replicas(), [](subject& s) {
    for (int r = 0; r < 4; ++r)
      for (op* o : s.find(r, "F0: layers.0", "swiglu"))
        for (view& v : o->views) v.shape = {{v.shape[0] / 2, v.shape[1]}};
  });
  check_refused(of_replicas(), [](subject& s) {
    for (int r = 0; r < 4; ++r) s.find(r, "F0: layers.0", "normalize").at(0)->number = 2;
  });
  check_refused(of_replicas(), [](subject& s) {
    for (int r = 0; r < 4; ++r) s.find(r, "F0: layers.0", "softmax_top").at(0)->row = "sigmoid_top";
  });
}

TEST_CASE("what experts take of a choice is the model's, and slabs have room for it") {
  const subject& sound = of_limited_experts();
  CHECK(sound.reason() == "");
  CHECK(subject(planned({.world = 2, .tp = 2, .sequence_parallel = true}, 4, 2), target::host).reason() ==
        "");
  check_refused(sound, change_all("arrange_limited", [](op& o) { o.number = 2; }));
  check_refused(sound, change_all("arrange_limited", [](op& o) {
                  o.seq = 4;
                  o.rows /= 2;
                }));
  check_refused(sound, change_all("arrange_limited", [](op& o) { o.row = "arrange"; }));
  check_refused(sound, said{7441, {"1", "2", "4"}},
                change_all("arrange_limited", [](op& o) { o.rows /= 2; }));
  check_refused(sound, said{7412, {"x"}}, swapped("expert_up", "offsets", "F0: layers.1", "F0: layers.0"));
  check_refused(sound, said{7412, {"slots"}}, swapped("combine", "places", "F0: layers.1", "F0: layers.0"));
  // Slabs too small for the picks that experts take.
  check_refused(sound, said{7596, {"1", "4"}}, [](subject& s) {
    for (int r = 0; r < static_cast<int>(s.p.ranks.size()); ++r)
      for (op* o : s.find(r, "to_experts of rows")) o->rows /= 2;
  });
  check_refused(sound, [](subject& s) { s.find(0, "F0: layers.0", "arrange_limited").at(0)->number = 2; });
}

TEST_CASE("no op sums over slots, of which some may have no token, unless it is told of them") {
  struct port {
    const char* name;
    bool written;
    int dims;
  };
  const std::pair<const char*, std::vector<port>> sums[]{
      {"bias_grad", {{"db", true, 1}, {"dy", false, 2}}},
      {"linear_dw", {{"dw", true, 2}, {"dy", false, 2}, {"x", false, 2}}},
      {"linear_dw_bias", {{"dw", true, 2}, {"db", true, 1}, {"dy", false, 2}, {"x", false, 2}}}};
  for (const subject* sound : {&of_replicas(), &of_shared_experts(), &of_limited_experts()})
    for (const auto& [row, ports] : sums) {
      CAPTURE(row);
      subject s = *sound;
      const op& dispatch = *s.find(0, "layers.1", "dispatch").at(0);
      const view& slots = dispatch.views.at(0);
      const std::int64_t width = slots.shape[1];
      op o{.kind = op_kind::compute,
           .name = "sums",
           .stream = dispatch.stream,
           .waits = {},
           .reads = {},
           .writes = {}};
      o.row = row;
      o.reads = {dispatch.writes.at(0)};
      for (const port& p : ports) {
        view v = slots;
        v.unit = 1;
        v.port = p.name;
        v.written = p.written;
        v.accesses.first = p.written ? static_cast<int>(o.writes.size()) : 0;
        if (p.written) {
          v.shape = p.dims == 1 ? tensor_shape{{width}, 1} : tensor_shape{{width, width}, 2};
          v.stride = p.dims == 1 ? 1 : width;
          const std::size_t at = (1 << 24) + (o.writes.size() << 20),
                            bytes = static_cast<std::size_t>(4 * width * (p.dims == 1 ? 1 : width));
          o.writes.push_back(
              {at, at + bytes, s.new_value() + static_cast<int>(o.writes.size()), element_type::f32});
        }
        o.views.push_back(v);
      }
      s.insert_after(0, &dispatch, o);
      CHECK(placed_of(s.reason()).what == said{7735, {}});
    }
}

TEST_CASE("slots are not rounded to eight bits with one scale for all") {
  subject s = of_replicas();
  for (specification::op& o : s.model.layers.back().ops)  // the head's GEMMs, which come later, are in fp8
    if (o.row == "linear") o.operands = specification::rounding::fp8;
  const op& dispatch = *s.find(0, "layers.1", "dispatch").at(0);
  view q = dispatch.views.at(0);
  q.unit = 1;
  view x = q;
  q.port = "q";
  x.port = "x";
  x.written = false;
  const auto rows = static_cast<std::size_t>(x.shape[0]), columns = static_cast<std::size_t>(x.shape[1]);
  op o{.kind = op_kind::compute,
       .name = "rounds",
       .stream = dispatch.stream,
       .waits = {},
       .reads = {},
       .writes = {}};
  o.row = "to_e4m3";
  o.reads = {dispatch.writes.at(0)};
  o.writes = {{1 << 24, (1 << 24) + rankc::runtime::fp8_bytes(rows, columns, false), s.new_value(),
               element_type::e4m3}};
  o.views = {q, x};
  s.insert_after(0, &dispatch, o);
  CHECK(placed_of(s.reason()).what == said{7742, {"e4m3"}});
}

}  // namespace experts_test
