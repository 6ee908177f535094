// SPDX-License-Identifier: Apache-2.0
// Programs with router losses: a loss takes its operands from a single microbatch, and from all of its
// tokens.
#include <doctest/doctest.h>

#include <rankc/plan/make_plan.hpp>
#include <rankc/rankc.hpp>
#include <rankc/schedules/zero_bubble_v.hpp>

#include <functional>
#include <set>

#include "refused.hpp"
#include "small_experts.hpp"

namespace balance_test {

using namespace equivalence_tests;
using rankc::codegen::access;

namespace {

using rankc::parallel_dims, rankc::router_losses;

rankc::plan_data planned(const parallel_dims& dims, const router_losses& losses, const auto& schedule) {
  using namespace rankc;
  models::qwen3_moe model = small_experts(4, 4);
  model.router_losses = losses;
  const int ranks = dims.dp_replicate * dims.dp_shard;
  return make_plan("balanced", model, dims, schedule,
                   training{.seq = 8, .global_batch = 4 * ranks, .precision = f32}, clusters::h200<256>);
}
constexpr router_losses both{.balance = 0.01, .z = 0.001},
    each{.balance = 0.01, .over = router_losses::each_layer}, local{.balance = 0.01, .local = true};
constexpr rankc::schedules::gpipe two{2};

const subject& of_stages() {
  static const subject s(planned({.world = 4, .dp_replicate = 2, .pp = 2}, both, two), target::host);
  return s;
}
const subject& of_shards() {
  static const subject s(
      planned({.world = 8, .dp_shard = 2, .cp = 2, .tp = 2, .sequence_parallel = true}, both, two),
      target::cuda, dtype::bf16);
  return s;
}

/// On all ranks that have it, an op reads another op's operand.
auto swapped(const char* row, const char* port, const char* of, const char* with) {
  return [=](subject& s) {
    int swaps = 0;
    for (int r = 0; r < static_cast<int>(s.p.ranks.size()); ++r) {
      const auto own = s.find(r, of, row), other = s.find(r, with, row);
      if (own.empty() || other.empty()) continue;
      const access from = subject::read_of(*other.at(0), port);
      access& to = subject::read_of(*own.at(0), port);
      to.value = from.value;
      to.begin = from.begin;
      to.end = from.end;
      ++swaps;
    }
    CHECK(swaps > 0);
  };
}

}  // namespace

TEST_CASE("programs with losses of routers compute the model, on worlds of which some stand for all too") {
  CHECK(of_stages().reason() == "");
  CHECK(of_shards().reason() == "");
  const parallel_dims zbv{.world = 8, .dp_shard = 2, .tp = 2, .pp = 2, .sequence_parallel = true};
  CHECK(subject(planned(zbv, each, rankc::schedules::zero_bubble_v{4}), target::host).reason() == "");
  CHECK(subject(planned(zbv, local, rankc::schedules::zero_bubble_v{4}), target::host).reason() == "");
  CHECK(subject(planned({.world = 8, .dp_replicate = 2, .dp_shard = 2, .cp = 2}, local, two), target::cuda,
                dtype::bf16)
            .reason() == "");
  int some = 0;
  for (const bool evaluates : {false, true}) {
    const subject s(planned({.world = 192,
                             .dp_replicate = 6,
                             .dp_shard = 4,
                             .cp = 4,
                             .tp = 2,
                             .sequence_parallel = true,
                             .cp_weights = rankc::cp_weights::replicate},
                            both, two),
                    target::cuda, dtype::bf16, evaluates);
    CHECK(s.reason() == "");
    some += static_cast<int>(s.p.ranks.size()) < s.p.world;
  }
  CHECK(some == 2);
}

TEST_CASE("each sum of choices over the ranks of the batch, and over tp, is needed") {
  for (const subject* sound : {&of_stages(), &of_shards()}) {
    std::set<std::string> names;
    for (const rank_program& r : sound->p.ranks)
      for (const op& o : r.ops)
        if (o.kind == op_kind::collective && o.name.starts_with("head: all_reduce of") &&
            (o.name.ends_with("statistics") || o.name.find(" over ") != o.name.npos))
          names.insert(o.name);
    CHECK(names.size() == (sound == &of_stages() ? 1 : 2));
    for (const std::string& name : names) {
      CAPTURE(name);
      CHECK(fault(*sound, [&](subject& s) {
              for (int r = 0; r < static_cast<int>(s.p.ranks.size()); ++r)
                for (op* o : s.find(r, name)) s.leave_out(r, *o);
            }) != "");
    }
  }
}

TEST_CASE("a loss of another microbatch's choices, or of a layer's statistics twice, is refused") {
  for (const subject* sound : {&of_stages(), &of_shards()}) {
    const said why = check_refused(*sound, 7414, swapped("balance_loss", "whole", "F1: head", "F0: head"));
    CHECK(why.arguments.at(3).starts_with("groups"));
    check_refused(*sound, swapped("push", "own", "F0: layers.1", "F0: layers.0"));
    check_refused(*sound, swapped("push", "s", "F1: layers.1", "F0: layers.1"));
    check_refused(*sound, swapped("softmax_statistics", "logits", "F1: layers.0", "F0: layers.0"));
    check_refused(*sound, swapped("softmax_statistics", "chosen", "F1: layers.0", "F0: layers.0"));
    check_refused(*sound, swapped("softmax_statistics_grad", "down", "B1: layers.0", "B0: layers.0"));
    check_refused(*sound, swapped("balance_loss_grad", "whole", "B1: head", "B0: head"));
  }
}

TEST_CASE("a balance of the parts of a rank, of other groups, or with another coefficient is refused") {
  for (const subject* sound : {&of_stages(), &of_shards()}) {
    check_refused(*sound, change_all("balance_loss", [](op& o) {  // the choices of the rank alone
      const access own = subject::read_of(o, "s");
      access& whole = subject::read_of(o, "whole");
      whole.value = own.value;
      whole.begin = own.begin;
      whole.end = own.end;
    }));
    check_refused(*sound, change_all("softmax_statistics", [](op& o) { o.seq /= 2; }));
    check_refused(*sound, change_all("balance_loss", [](op& o) { o.number *= 2; }));
    check_refused(*sound, change_all("balance_loss", [](op& o) { o.row = "layer_balance_loss"; }));
    check_refused(*sound, change_all("softmax_statistics", [](op& o) { o.row = "sigmoid_statistics"; }));
    check_refused(*sound,
                  change_all("softmax_statistics_grad", [](op& o) { o.row = "sigmoid_statistics_grad"; }));
  }
}

TEST_CASE("statistics of fewer layers are carried than the model has, or fewer sums of an expert") {
  // `less`: columns
  const auto narrowed = [](const char* row, const char* port, std::int64_t less) {
    return [=](subject& s) {
      op& o = *s.find(0, "0F0", row).at(0);
      view& v = subject::port(o, port);
      access& a = o.writes.at(static_cast<std::size_t>(v.accesses.first));
      a.end -= static_cast<std::size_t>(v.shape[0] * less) * element_size(a.type);
      v.stride = v.shape.dim[1] -= less;
      if (!o.given.empty()) o.given[0] -= 1;
    };
  };
  const std::int64_t experts = 4, sums = 3;
  CHECK(check_refused(of_stages(), 7785, narrowed("push", "y", sums * experts)).arguments.at(0) == "y");
  CHECK(check_refused(of_stages(), 7785, narrowed("softmax_statistics", "own", experts)).arguments.at(0) ==
        "own");
}

TEST_CASE("a message without the statistics, or with another's, is refused") {
  const auto changed = [](auto change) {
    return [=](subject& s) {
      for (rank_program& r : s.p.ranks)
        for (op& o : r.ops)
          if (o.kind == op_kind::send && o.name.starts_with("F1")) change(s, r, o);
    };
  };
  check_refused(of_stages(), said{7517, {"1", "2"}},
                changed([](subject&, rank_program&, op& o) { o.reads.pop_back(); }));
  check_refused(of_stages(), changed([](subject&, rank_program& r, op& o) {
                  for (const op& other : r.ops)
                    if (other.kind == op_kind::send && other.name.starts_with("F0"))
                      o.reads[1] = other.reads[1];
                }));
}

}  // namespace balance_test
