// SPDX-License-Identifier: Apache-2.0
// Experts with a capacity: programs compute the definition, which is written again for whole tensors
// (fuzz/reference.cpp), drop the same picks on all layouts, report their number, and take less memory.
#include <doctest/doctest.h>

#include <rankc/codegen/lowered.hpp>
#include <rankc/rankc.hpp>
#include <rankc/trainer/router_metrics.hpp>

#include <emit/emit.hpp>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <string>

#include "../../runtime/trainer/mean_loss.hpp"
#include "../fuzz/reference.hpp"
#include "plans.hpp"
#include "run.hpp"

namespace capacity_test {

namespace {

using rankc::runtime::region;

fuzz::batch first_batch(const run& r) {
  const auto seq = static_cast<std::size_t>(r.about.seq),
             all = seq * static_cast<std::size_t>(r.about.global_batch());
  fuzz::batch b{std::vector<std::int32_t>(all), std::vector<std::int32_t>(all)};
  for (std::size_t i = 0; i * seq < all; ++i)
    r.data.sample(i, b.tokens.data() + i * seq, b.targets.data() + i * seq);
  return b;
}
std::int64_t sum(const std::vector<std::int64_t>& v) {
  return std::accumulate(v.begin(), v.end(), std::int64_t{0});
}

}  // namespace

TEST_CASE("the loss is the definition's, and all layouts drop and count its picks") {
  std::map<std::string, rankc::plan_data> ones;
  for (split_plan& p : experts::plans())
    if (p.layout == "one") ones[p.job] = std::move(p.plan);
  std::map<std::string, std::vector<std::int64_t>> dropped;
  int of_losses = 0, counted = 0;
  for (const registered& program : host_registry) {
    if (!program.job.starts_with("capacity")) continue;
    CAPTURE(program.job);
    CAPTURE(program.layout);
    run r(program);
    const bool adds_losses = program.job == "capacity_losses";
    fuzz::reference_result want;
    if (!adds_losses)
      want = fuzz::evaluate_reference(ones.at(program.job), r.tensors(region::weights), first_batch(r));
    const double loss = r.step().loss;
    if (!adds_losses) {
      CHECK(std::abs(loss - want.loss) <= 1e-12 * want.loss);
      CHECK(sum(want.dropped) > 20);
      ++of_losses;
    }
    const auto routers = rankc::runtime::read_routers(*r.engine);
    REQUIRE(routers.has_value() == (program.job != "capacity_own"));  // this model does not declare routers()
    if (!routers) continue;
    REQUIRE(routers->dropped.size() == 4);
    const auto [first, is_new] = dropped.try_emplace(program.job, routers->dropped);
    CHECK(routers->dropped == first->second);
    CHECK(routers->load.size() == 4);
    if (!adds_losses) CHECK(routers->dropped == want.dropped);
    CHECK(sum(routers->dropped) > 0);
    ++counted;
  }
  CHECK(of_losses == expected_of(of_losses, 20));
  CHECK(counted == expected_of(counted, 20));
  for (const auto& [family, of_layers] : dropped)
    MESSAGE(family << ": " << sum(of_layers) << " of " << 4 * 96 * 2 << " picks are dropped");
}

TEST_CASE("an evaluation has the definition's loss of labels and dropped picks, without losses of routers") {
  std::map<std::string, rankc::plan_data> ones;
  for (split_plan& p : experts::plans())
    if (p.layout == "one") ones[p.job] = std::move(p.plan);
  int with_losses = 0;
  for (const registered& program : host_registry) {
    if (!program.job.starts_with("capacity") || program.job == "capacity_own") continue;
    CAPTURE(program.job);
    CAPTURE(program.layout);
    run r(program);
    r.load();
    const auto want =
        fuzz::evaluate_reference(ones.at(program.job), r.tensors(region::weights), first_batch(r));
    const auto found = rankc::runtime::evaluate_apart(*r.engine);
    CHECK(std::abs(found.labels - want.loss) <= 1e-12 * want.loss);
    CHECK(found.dropped == static_cast<double>(sum(want.dropped)));
    CHECK((found.routers > 0.01) == (program.job == "capacity_losses"));
    with_losses += program.job == "capacity_losses";
  }
  CHECK(with_losses > 0);
}

TEST_CASE(
    "a step whose picks do not fit is applied by no rank where the plan says so, and says how many they "
    "are") {
  int programs = 0;
  for (const registered& program : host_registry) {
    if (program.job != "overflow") continue;
    CAPTURE(program.layout);
    run r(program, "arith", 1e-2);
    const auto layer_sums = [&] { return sum(rankc::runtime::read_routers(*r.engine).value().dropped); };
    CHECK(std::isfinite(r.step().grad_norm));
    CHECK(layer_sums() == 0);
    CHECK(rankc::runtime::overflow_of(*r.engine).empty());
    for (const auto& p :
         rankc::runtime::global_parameters(r.about))  // equal scores send every token to expert 0
      if (p.name.ends_with("router"))
        rankc::runtime::write(*r.engine, p, region::weights, [](std::size_t, std::span<double> out) {
          std::fill(out.begin(), out.end(), 0.0);
        });
    const tensors before = r.tensors(region::weights);
    const auto out = r.step();
    CHECK_FALSE(std::isfinite(out.loss));
    CHECK_FALSE(std::isfinite(out.grad_norm));
    CHECK(r.tensors(region::weights) == before);
    CHECK(rankc::runtime::overflow_of(*r.engine) ==
          "96 picks found their expert full (of each layer with experts: 24, 24, 24, 24), and the plan says "
          "overflow=fail");
    ++programs;
  }
  CHECK(programs == expected_of(programs, 4));
}

TEST_CASE("a capacity takes memory from slabs, and describe says how many picks an expert takes") {
  using namespace rankc;
  std::map<double, std::size_t> bytes;
  for (const double capacity : {0.0, 1.0, 1.25, 100.0}) {
    const plan_data p = experts::plan_of_capacity(capacity);
    REQUIRE(p.diagnostics.empty());
    const auto l = codegen::lower(p, codegen::dtype::bf16, codegen::target::cuda);
    bytes[capacity] = l.ranks[0].arena.bytes;
    const std::string text = codegen::describe_text(l);
    CHECK((text.find("capacity: 1.25, an expert takes at most 10 picks of each 32 positions of a sequence") !=
           text.npos) == (capacity == 1.25));
    CHECK((text.find("capacity: ") != text.npos) == (capacity > 0));
  }
  // A rank sends a slab for each of 8 ranks, with the picks of 2 sequences of 64 tokens each: up to 2 of a
  // token's 4 picks, or 10 of each group of 32 for each of 2 experts.
  MESSAGE("arena: " << bytes[0] << " bytes without a capacity, " << bytes[1.25] << " with 1.25, " << bytes[1]
                    << " with 1");
  CHECK(bytes[1] < bytes[1.25]);
  CHECK(bytes[1.25] < bytes[0]);
  CHECK(bytes[100] >= bytes[0]);
  CHECK(bytes[100] < bytes[0] + 16384);  // counts, and their arrangement
}

}  // namespace capacity_test
