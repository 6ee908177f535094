// SPDX-License-Identifier: Apache-2.0
// Checkpoints of every optimizer: the file has its state in the state's own type, and a run continues with
// the same bits, on another layout too.
#include <doctest/doctest.h>

#include <rankc/trainer/checkpoint.hpp>
#include <rankc/trainer/safetensors.hpp>

#include <filesystem>

#include "../exit_with.hpp"
#include "run.hpp"

namespace checkpoint_test {

namespace {

namespace fs = std::filesystem;
using rankc::runtime::region;
using element = rankc::runtime::safetensors_reader::element;

struct folder {
  fs::path path = fs::temp_directory_path() / ("rankc_optimizer_" + std::to_string(getpid()));
  folder() {
    fs::remove_all(path);
    fs::create_directories(path);
  }
  ~folder() { fs::remove_all(path); }
};

tensors moments(run& r) {
  tensors all;
  if (r.about.moments > 0) all = r.tensors(region::first_moment);
  if (r.about.moments > 1)
    for (auto& [name, values] : r.tensors(region::second_moment)) all["v." + name] = values;
  return all;
}

}  // namespace

TEST_CASE("a run goes on from its checkpoint with the same bits") {
  int saved = 0;
  for (const registered& program : host_registry) {
    if (program.layout != "shard4") continue;
    CAPTURE(program.job);
    const folder here;
    run r(program, "arith", 0.01);
    r.step();
    r.step();
    const rankc::runtime::run_state state{.step = 2,
                                          .samples = 0,
                                          .init = "",
                                          .data = "",
                                          .train = r.about.train,
                                          .plan_hash = r.about.plan_hash};
    const fs::path at = rankc::runtime::save_checkpoint(*r.engine, state, here.path);
    const auto saved_by = rankc::runtime::read_run_state(r.about, at / "run.json").optimizer;
    REQUIRE(saved_by);
    const bool own = program.job == "adagrad" || program.job == "lion";
    const std::string built_in = r.about.moments == 2 ? "adamw" : "sgd";
    CHECK(saved_by->name == (own ? program.job : built_in));
    using number = std::pair<std::string, double>;
    const std::vector<number> numbers{{"eps", 1e-6}, {"lr_decay", 0.25}};
    CHECK((saved_by->hyperparameters == (program.job == "adagrad" ? numbers : std::vector<number>{})));
    std::size_t kept = 0;
    for (int rank = 0; rank < 4; ++rank) {
      const rankc::runtime::safetensors_reader file(at / rankc::runtime::file_of_rank(rank));
      for (const auto& [name, tensor] : file.tensors()) {
        const bool moment = name.starts_with("m.") || name.starts_with("v.");
        CHECK(tensor.type == (moment && r.about.bf16_moments ? element::bf16 : element::f64));
        kept += moment;
      }
    }
    CHECK(kept ==
          4 * static_cast<std::size_t>(r.about.moments) * rankc::runtime::global_parameters(r.about).size());
    for (const registered& other : host_registry) {
      if (other.job != program.job || (other.layout != "shard4" && other.layout != "one")) continue;
      CAPTURE(other.layout);
      run again(other, "arith", 0.01);
      rankc::runtime::load_checkpoint(*again.engine, at);
      CHECK((again.tensors(region::weights) == r.tensors(region::weights)));
      CHECK((moments(again) == moments(r)));
      ++saved;
    }
    run again(program, "arith", 0.01);
    rankc::runtime::load_checkpoint(*again.engine, at);
    again.steps = r.steps;
    again.step();
    r.step();
    CHECK((again.tensors(region::weights) == r.tensors(region::weights)));
    CHECK((moments(again) == moments(r)));
  }
  CHECK(saved == expected_of(saved, 26));
}

TEST_CASE("a checkpoint without a moment that the optimizer has is refused") {
  const auto find = [](const std::string& job) -> const registered& {
    return *std::find_if(host_registry.begin(), host_registry.end(),
                         [&](const registered& p) { return p.job == job && p.layout == "one"; });
  };
  const folder here;
  run r(find("sgd"));
  r.step();
  const rankc::runtime::run_state state{
      .step = 1, .samples = 0, .init = "", .data = "", .train = r.about.train, .plan_hash = 0};
  const fs::path at = rankc::runtime::save_checkpoint(*r.engine, state, here.path);
  run adamw(find("adamw"));
  const auto refused = rankc::test::exit_of([&] { rankc::runtime::load_checkpoint(*adamw.engine, at); });
  CHECK(refused.message.id == 6630);
  CHECK(refused.message.arguments.at(1).starts_with("missing: v."));
}

}  // namespace checkpoint_test
