// SPDX-License-Identifier: Apache-2.0
// Files of LoRA training: started from a dense model, resumed, and merged into a dense model again.
#include <doctest/doctest.h>
#include <rankc/trainer/checkpoint.hpp>
#include <rankc/trainer/export.hpp>

#include "../exit_with.hpp"
#include "../runtime/trainer/scratch.hpp"
#include "between_layouts.hpp"
#include "command.hpp"
#include "weights.hpp"

namespace files_test {

using namespace rankc::runtime;
using rankc::test::exit_of, rankc::test::exit_with;

namespace {

run start(const std::string& job, const std::string& layout) {
  return run(*find_program(job, layout), "arith", 1e-3);
}

std::filesystem::path save(run& r, const scratch& files, const std::string& folder) {
  const run_state state{.step = r.steps,
                        .samples = 0,
                        .init = "hash:1",
                        .data = "arith:1234",
                        .train = r.about.train,
                        .plan_hash = r.about.plan_hash};
  return save_checkpoint(*r.engine, state, files.path(folder));
}
void load(run& r, const std::filesystem::path& folder) {
  const open_checkpoint from = open_newest(r.about, folder);
  load_checkpoint(*r.engine, from);
  r.steps = from.state.step;
}

}  // namespace

TEST_CASE("merged weights give the dense plan the loss of the adapted one") {
  for (const auto& [job, layout] :
       {std::pair("gpt2", "tp2_pp2"), {"gpt2", "shards"}, {"llama", "sp"}, {"gated", "pp2"}}) {
    CAPTURE(job);
    const scratch files;
    run adapted = start(job, layout), dense = start(std::string(job) + "_dense", "one");
    for (int n = 0; n < 4; ++n) adapted.step();
    const std::filesystem::path from = save(adapted, files, "saved");
    export_weights(adapted.about, from, files.path("merged"), {.merge = true});
    CHECK(load_weights(*dense.engine, files.path("merged")).empty());
    adapted.steps = 0;  // take the same batches as the dense run
    adapted.load();
    dense.load();
    const double loss = adapted.engine->evaluate(), before = dense.engine->evaluate();
    CHECK(std::abs(loss - before) <= 1e-12);
    CHECK(std::abs(dense.step().loss - start(std::string(job) + "_dense", "one").step().loss) >
          1e-4);  // the weights differ from those of hash:1
    export_weights(adapted.about, from, files.path("as_it_is"));
    run again = start(job, "one");
    CHECK(load_weights(*again.engine, files.path("as_it_is")).empty());
    again.load();
    CHECK(std::abs(again.engine->evaluate() - adapted.engine->evaluate()) <= 1e-12);
  }
}

TEST_CASE("a dense model's file starts what is adapted, and what is beside it starts as by hash:1") {
  const scratch files;
  run dense = start("gpt2_dense", "one"), adapted = start("gpt2", "eight"), by_hash = start("gpt2", "one");
  dense.step();
  const std::filesystem::path from = save(dense, files, "dense");
  const std::vector<std::string> started = load_weights(*adapted.engine, from);
  CHECK(started.size() == 2 * 5 * 4);
  CHECK(std::count(started.begin(), started.end(), "layers.3.w2.lora_a") == 1);
  const tensors found = adapted.tensors(region::weights), of_dense = dense.tensors(region::weights),
                of_hash = by_hash.tensors(region::weights);
  for (const auto& [name, values] : found) {
    CAPTURE(name);
    CHECK((values == (of_dense.count(name) ? of_dense.at(name) : of_hash.at(name))));
    if (name.ends_with(".lora_b")) CHECK(largest({{name, values}}) == 0);
    if (name.ends_with(".lora_a")) {
      // The bound depends on the number of inputs.
      const double most = 1 / std::sqrt(name.find(".w2.") != name.npos ? 24.0 : 16.0);
      CHECK(largest({{name, values}}) <= most);
      CHECK(largest({{name, values}}) > 0.8 * most);
    }
  }
  dense.load();
  adapted.steps = dense.steps;
  adapted.load();
  CHECK(std::abs(adapted.engine->evaluate() - dense.engine->evaluate()) <= 1e-13);
}

TEST_CASE(
    "a resumed run goes on as the other does, on any layout, and a dense checkpoint does not resume one") {
  const scratch files;
  run r = start("llama", "tp2"), other = start("llama", "hybrid"), dense = start("llama_dense", "one");
  for (int n = 0; n < 3; ++n) r.step();
  load(other, save(r, files, "saved"));
  for (int n = 0; n < 2; ++n) CHECK(std::abs(r.step().loss - other.step().loss) <= 1e-12);
  dense.step();
  const std::filesystem::path of_dense = save(dense, files, "dense");
  const exit_with lacks = exit_of([&] { load(r, of_dense); });
  CHECK(lacks.message.id == 6630);
  CHECK(lacks.message.arguments.at(1).starts_with("missing: "));
  CHECK(lacks.message.arguments.at(1).find("lm_head.lora_b") != std::string::npos);
  CHECK(exit_of([&] { export_weights(r.about, of_dense, files.path("out"), {.merge = true}); }).code == 65);
  CHECK(exit_of([&] { export_weights(dense.about, of_dense, files.path("out"), {.merge = true}); }) ==
        exit_with{1, {6520, {dense.about.name}}});
}

TEST_CASE(
    "checkpoints of what is trained beside weights, and of what is frozen, load into any layout bit for "
    "bit") {
  using between_layouts::programs_of, between_layouts::save_and_load;
  const std::vector<std::string> layouts{"one", "tp2_pp2", "eight", "hybrid", "zbv"};
  save_and_load(programs_of("gpt2", layouts), 5);
  save_and_load(programs_of("frozen", layouts), 5);
}

TEST_CASE("the commands: train from a dense file, export, eval") {
  const scratch files;
  const auto loss = [](const std::string& said) {
    return std::stod(said.substr(said.find("eval: loss ") + 11));
  };
  const registered &adapted = *find_program("gpt2", "tp2"), &dense = *find_program("gpt2_dense", "one");
  const std::string base = files.path("base"), saved = files.path("saved"), merged = files.path("merged");
  CHECK(command(dense, {"train", "--steps", "2", "--save", base}).starts_with("0 "));
  const std::string trained =
      command(adapted, {"train", "--steps", "3", "--lr", "0.01", "--init", base, "--save", saved});
  CHECK(
      trained.find("note: " + base +
                   " has no LoRA adapters; 40 parameters of lora start with the values of --init hash:1, ") !=
      std::string::npos);
  CHECK(command(adapted, {"export", "--load", saved, "--merge", "--out", merged}) ==
        "0 exported " + merged + "/model.safetensors\n");
  const double expected = loss(command(adapted, {"eval", "--load", saved})),
               found = loss(command(dense, {"eval", "--init", merged}));
  CHECK(std::abs(found - expected) <= 1e-12);
  CHECK(std::abs(found - loss(command(dense, {"eval", "--init", base}))) > 1e-6);
}

}  // namespace files_test
