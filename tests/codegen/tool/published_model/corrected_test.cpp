// SPDX-License-Identifier: Apache-2.0
// The corrections one by one: their results against other derivations, and the cases in which they change the
// best plan.
#include <doctest/doctest.h>

#include <algorithm>

#include "oracle.hpp"

using namespace oracle;

namespace {

struct found {
  plan best;
  double t = 0, mem = 0;
};

found best_of(const problem& q) {
  const ranked_plan r = fastest(q);
  return {r.plan, r.t, cost_of_step(q.on, q.by, r.plan, q.global_batch).mem};
}

std::vector<plan> plans_of(const problem& q) {
  std::vector<plan> all;
  visit_plans(
      q, [&](const placement& p, int mbs, int nb, const step_estimate&) { all.push_back(p.with(mbs, nb)); });
  std::sort(all.begin(), all.end());
  return all;
}

/// When the last GEMM ends: each panel is transferred while the one before it is multiplied.
double end_of_products(int panels, double transfer, double product) {
  double arrived = 0, done = 0;
  for (int i = 0; i < panels; ++i) {
    arrived = std::max(arrived, i < 2 ? 0 : done - product) +
              transfer;  // one buffer receives while the GEMM reads the other
    done = std::max(done, arrived) + product;
  }
  return done;
}

}  // namespace

TEST_CASE("D1, the width of 2D layer norms: the best plan of vit_era5 keeps less") {
  problem q{{vit_era5, b200.with_domain(8)}, strategy::tp2d, 64, 4096};
  CHECK(best_of(q).mem == doctest::Approx(174.6).epsilon(1e-3));
  q.on.fix.norm_width = true;
  CHECK(best_of(q).mem == doctest::Approx(133.7).epsilon(1e-3));
}

TEST_CASE("D2, hops between domains: other plans and placements win") {
  problem q{{gpt3_1T, b200.with_domain(8)}, strategy::tp1d, 1024, 4096};
  CHECK(best_of(q).best == plan{.dp = 4, .tp1 = 2, .pp = 128, .nv_tp1 = 2, .nv_dp = 2, .nv_pp = 2});
  CHECK(best_of(q).t == doctest::Approx(30.13).epsilon(1e-4));
  q.on.fix = {.norm_width = true, .slow_hops = true};
  CHECK(best_of(q).best == plan{.dp = 8, .tp1 = 2, .pp = 64, .nv_tp1 = 2, .nv_dp = 2, .nv_pp = 2});
  CHECK(best_of(q).t == doctest::Approx(30.57).epsilon(1e-4));
  q.on.fix.slowest_hop = true;  // pipelines across many domains lose more
  CHECK(best_of(q).best == plan{.dp = 16, .tp1 = 4, .pp = 16, .nv_tp1 = 4, .nv_dp = 2});
  CHECK(best_of(q).t > 30.57);

  problem wide{{gpt3_1T, b200.with_domain(64)}, strategy::tp1d, 1024, 4096};
  const auto placement_of = [](const plan& p) { return std::array{p.nv_tp1, p.nv_dp, p.nv_pp}; };
  CHECK(placement_of(best_of(wide).best) == std::array{2, 8, 4});
  wide.on.fix = {.norm_width = true, .slow_hops = true};
  CHECK(placement_of(best_of(wide).best) == std::array{2, 4, 8});

  problem seqp{{gpt3_1T, b200.with_domain(8)}, strategy::seqp, 512, 4096};
  CHECK(best_of(seqp).t == doctest::Approx(56.4).epsilon(1e-3));
  seqp.on.fix = {.norm_width = true, .slow_hops = true};
  CHECK(best_of(seqp).t == doctest::Approx(57.4).epsilon(1e-3));
}

TEST_CASE("D3: an all-reduce is a reduce-scatter and an all-gather") {
  setting on{gpt3, h200.with_domain(8)};
  for (const group ranks : {group{8, 1}, group{8, 8}, group{64, 8}, group{6, 2}}) {
    const double volume = 0.25;
    const auto time = [&](collective kind) { return collective_time(on, kind, ranks).of(volume); };
    on.fix.all_reduce = false;
    CHECK(time(collective::all_reduce) < 2 * time(collective::sharded));
    on.fix.all_reduce = true;
    CHECK(same(time(collective::all_reduce), 2 * time(collective::sharded)));
  }
}

TEST_CASE("D4: SUMMA ends when its last panel is multiplied") {
  setting on{gpt3, a100};
  for (const int panels : {1, 2, 8, 64}) {
    for (const double product : {0.001, 0.02, 0.5, 3.0}) {
      CAPTURE(panels);
      CAPTURE(product);
      const double computing = panels * product, end = end_of_products(panels, 1.0 / panels, product);
      on.fix.summa_pipeline = true;
      CHECK(same(computing + exposed_transfers(on, panels, 1.0 / panels, computing), end));
      on.fix.summa_pipeline = false;
      const double theirs = computing + exposed_transfers(on, panels, 1.0 / panels, computing);
      CHECK((theirs > end * (1 + 1e-9)) == (product < 1.0 / panels));  // too long if GEMMs wait for panels
    }
  }
}

TEST_CASE("D5: panels pass through memory") {
  setting on{gpt3, a100};
  const op theirs = linear_summa(on, "", 1024, 4096, 8192, 4, 2, 8);
  on.fix.summa_panels = true;
  const op ours = linear_summa(on, "", 1024, 4096, 8192, 4, 2, 8),
           alone = linear_summa(on, "", 1024, 4096, 8192, 1, 1, 8);
  const double panels = (1024.0 * 4096 + 4096.0 * 8192 / 4) * element;
  CHECK(same(ours.forward.bytes, theirs.forward.bytes + panels));
  CHECK(same(ours.backward.bytes, theirs.backward.bytes + 2 * panels));
  CHECK(same(alone.forward.bytes, linear_summa({gpt3, a100}, "", 1024, 4096, 8192, 1, 1, 8).forward.bytes));
}

TEST_CASE("D6: sequences divide into equal shards") {
  problem q{{vit_era5, b200.with_domain(64)}, strategy::seqp, 512, 4096};
  const auto unequal = [&](const plan& p) { return q.on.model.l % (p.tp1 * p.tp2) != 0; };
  std::vector<plan> equal = plans_of(q);
  CHECK(std::erase_if(equal, unequal) > 0);
  q.on.fix.whole_shards = true;
  CHECK(plans_of(q) == equal);
}

TEST_CASE("D7: FLOPs do not depend on the GPU") {
  const auto flops = [](const gpu_system& gpu, corrections fix) {
    return cost_of_step({gpt3, gpu, fix}, strategy::tp1d, {.tp1 = 8, .pp = 8}, 64).flops_per_gpu;
  };
  CHECK(flops(a100, faithful) < flops(h200, faithful));
  CHECK(flops(a100, corrected) == flops(h200, corrected));
  CHECK(flops(a100, corrected) < flops(a100, faithful));
}

TEST_CASE("D8: seqp with one sequence shard is 1d, and what a bias makes is written") {
  const double rows = 128, width = 64;
  CHECK(same(bias({gpt3, a100, corrected}, "", rows, width).forward.bytes,
             (2 * rows * width + width) * element));
  const auto seconds = [](strategy by, corrections fix) {
    const setting on{gpt3, h200.with_domain(8), fix};
    return cost_of_step(on, by, {.dp = 2, .tp1 = 8, .pp = 4, .nv_tp1 = 8}, 64).t;
  };
  CHECK(seconds(strategy::seqp, faithful) != seconds(strategy::tp1d, faithful));
  CHECK(seconds(strategy::seqp, corrected) == seconds(strategy::tp1d, corrected));
}

TEST_CASE("D9: domains need not be full, but no axis has room for more") {
  constexpr corrections partial{.partial_domains = true};
  for (const auto& [domain, gpus] :
       {group{72, 128}, group{72, 512}, group{8, 12}, group{8, 72}, group{64, 96}}) {
    CAPTURE(domain);
    CAPTURE(gpus);
    const problem q{{gpt3, b200.with_domain(domain), partial}, strategy::tp1d, gpus, 2304};
    const std::vector<plan> plans = plans_of(q);
    CHECK(!plans.empty());
    for (const plan& p : plans) {
      const int used = p.nv_tp1 * p.nv_dp * p.nv_pp;
      CHECK(used <= domain);
      for (const int left : {p.tp1 / p.nv_tp1, p.dp / p.nv_dp, p.pp / p.nv_pp}) {
        int least = 2;  // smallest divisor of the ranks in other domains
        while (least <= left && left % least != 0) ++least;
        if (left > 1) CHECK(used * least > domain);
      }
    }
  }
  CHECK(plans_of({{gpt3, b200.with_domain(72)}, strategy::tp1d, 128, 2304}).empty());
  // If full domains are possible, the candidates are the Python's.
  for (const strategy by : {strategy::tp1d, strategy::tp2d, strategy::seqp}) {
    CHECK(plans_of({{gpt3, b200.with_domain(8), partial}, by, 64, 2048}) ==
          plans_of({{gpt3, b200.with_domain(8)}, by, 64, 2048}));
  }
}

TEST_CASE("D12: parts of a layer's time sum to it") {
  const auto difference = [](corrections fix) {
    const setting on{gpt3, a100, fix};
    const layer_cost c = work_of_layer(on, {.tp1 = 4}, attention_form::recomputed)
                             .with_collectives(on, times_of_axes(on, {4, 4}, {}));
    return c.forward + c.backward - (c.compute + c.memory + c.communication);
  };
  CHECK(difference(faithful) > 1e-5);
  CHECK(std::abs(difference(corrected)) < 1e-12);
}

TEST_CASE("all corrections: the best plans differ where they should") {
  struct comparison {
    problem of;
    plan faithful, corrected;
  };
  const comparison all[] = {
      {{{gpt3_1T, b200.with_domain(8)}, strategy::tp1d, 1024, 4096},
       {.dp = 4, .tp1 = 2, .pp = 128, .nv_tp1 = 2, .nv_dp = 2, .nv_pp = 2},
       {.dp = 16, .tp1 = 4, .pp = 16, .nv_tp1 = 4, .nv_dp = 2}},
      {{{gpt3, h200.with_domain(8)}, strategy::seqp, 512, 2048},
       {.dp = 32, .tp2 = 2, .pp = 8, .nv_tp2 = 2, .nv_dp = 4},
       {.dp = 32, .tp2 = 2, .pp = 8, .nv_tp2 = 2, .nv_dp = 4}},
      {{{gpt3, b200.with_domain(8)}, strategy::tp2d, 512, 2048},
       {.dp = 32, .tp1 = 2, .pp = 8, .nb = 16, .nv_tp1 = 2, .nv_dp = 4},
       {.dp = 64, .tp1 = 2, .pp = 4, .nb = 16, .nv_tp1 = 2, .nv_dp = 4}},
  };
  for (const comparison& c : all) {
    CHECK(best_of(c.of).best == c.faithful);
    problem q = c.of;
    q.on.fix = corrected;
    CHECK(best_of(q).best == c.corrected);
  }
}
