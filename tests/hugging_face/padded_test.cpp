// SPDX-License-Identifier: Apache-2.0
// Rows that pad a vocabulary are zero if a folder or a checkpoint lacks them, and are left out if the plan or
// the folder is not padded.
#include <rankc/trainer/export.hpp>
#include <rankc/trainer/generate.hpp>

#include "../exit_with.hpp"
#include "folders.hpp"

namespace padded_test {

using namespace hugging_face;
using namespace rankc::runtime;
using rankc::test::exit_of, rankc::test::exit_with, rankc::test::said, rankc::test::said_in;

namespace {

json exported(run& r, const scratch& files, const std::string& init) {
  const fs::path out = files.path("exported");
  fs::remove_all(out);
  export_weights(r.about, save(r, files, init), out, {.format = export_format::hugging_face});
  return read_json(out / "config.json");
}

/// The largest difference of two models' next logits. The loss does not compare: padding rows count in its
/// softmax.
double difference(run& a, run& b) {
  const std::vector<std::int32_t> tokens{3, 1, 4, 1, 5, 9, 2, 6};
  const std::vector<double> one = next_logits(*a.engine, tokens), other = next_logits(*b.engine, tokens);
  REQUIRE(one.size() == 128);
  REQUIRE(other.size() == 128);
  double most = 0;
  for (std::size_t i = 0; i < one.size(); ++i) most = std::max(most, std::abs(one[i] - other[i]));
  return most;
}

/// Whether a matrix with 32 columns is zero from row `first` on.
bool are_zero(const std::vector<double>& values, std::size_t first) {
  REQUIRE(values.size() > 32 * first);
  return std::all_of(values.begin() + static_cast<std::ptrdiff_t>(32 * first), values.end(),
                     [](double value) { return value == 0; });
}

}  // namespace

TEST_CASE("a padded plan begins with a folder of the tokenizer's size, and exports that size") {
  for (const auto& [model, layout, table, rows] : {std::tuple{"gpt2", "one", "wte", 132},
                                                   {"gpt2", "tp2", "wte", 132},
                                                   {"llama_gqa", "tp2", "lm_head", 130}}) {
    CAPTURE(model);
    CAPTURE(layout);
    const scratch files;
    run plain = start(program_of(model, "one"), folder_of(model), "arith:1"),
        padded(program_of(std::string(model) + "_padded", layout));
    std::vector<std::string> notes;
    load_weights(*padded.engine, folder_of(model), {}, &notes);
    REQUIRE(notes.size() == 1);
    CHECK(said_in(notes[0]) == said{6640, {folder_of(model), "128", std::to_string(rows), "128"}});
    const std::vector<double> weights = padded.tensors(region::weights).at(table);
    CHECK(weights.size() == static_cast<std::size_t>(32 * rows));
    CHECK(are_zero(weights, 128));
    CHECK(difference(padded, plain) <= 1e-12);
    for (const std::string& init : {folder_of(model).string(), std::string("hash:1")}) {
      CHECK(exported(padded, files, init)["vocab_size"] == 128);
      tensors expected = tensors_of(folder_of(model)), found = tensors_of(files.path("exported"));
      for (tensors* all : {&expected, &found}) all->erase("transformer.wpe.weight");
      CHECK((found == expected));
    }
    padded.step();
    exported(padded, files, folder_of(model));
    run back = start(program_of(model, "one"), files.path("exported"), "arith:1");
    CHECK(difference(back, padded) <= 1e-12);
    CHECK(difference(back, plain) > 1e-6);
  }
}

TEST_CASE("the softmax of a padded plan counts each row of padding, which is zero, as a logit of 0") {
  run plain = start(program_of("gpt2", "one"), folder_of("gpt2"), "arith:1"),
      padded = start(program_of("gpt2_padded", "one"), folder_of("gpt2"), "arith:1");
  for (run* r : {&plain, &padded}) r->load();
  const double without = plain.engine->evaluate(), with = padded.engine->evaluate();
  const auto seq = static_cast<std::size_t>(plain.about.seq);
  std::vector<std::int32_t> tokens(seq), targets(seq);
  std::vector<double> logits(128);
  double expected = 0;
  for (std::size_t row = 0; row < 4; ++row) {
    plain.data.sample(row, tokens.data(), targets.data());
    for (std::size_t n = 0; n < seq; ++n) {
      plain.engine->logits(0, row * seq + n, logits.data());
      double sum = 132 - 128;
      for (const double logit : logits) sum += std::exp(logit);
      expected +=
          (std::log(sum) - logits[static_cast<std::size_t>(targets[n])]) / static_cast<double>(4 * seq);
    }
  }
  CHECK(std::abs(with - expected) <= 1e-12);
  CHECK(with - without > 1e-3);
}

TEST_CASE("a masked plan has the losses, gradients and files of the unpadded model") {
  for (const auto& [model, layout] :
       {std::pair{"gpt2", "one"}, {"gpt2", "dp2_tp2"}, {"llama_gqa", "tp2_pp2"}}) {
    CAPTURE(model);
    CAPTURE(layout);
    const scratch files;
    run plain = start(program_of(model, "one"), folder_of(model), "arith:1"),
        masked(program_of(std::string(model) + "_masked", layout), "arith", 1e-2);
    masked.data = dataset(parse_data_spec("arith:1"), 128, masked.about.seq);
    load_weights(*masked.engine, folder_of(model));
    exported(masked, files, folder_of(model));
    tensors given = tensors_of(folder_of(model)), found = tensors_of(files.path("exported"));
    CHECK((found == given));
    for (run* r : {&plain, &masked}) r->load();
    CHECK(std::abs(plain.engine->evaluate() - masked.engine->evaluate()) <= 1e-12);
    for (int step = 0; step < 10; ++step) {
      const auto one = plain.step(), other = masked.step();
      CHECK(std::abs(one.loss - other.loss) <= 1e-10);
      CHECK(std::abs(one.grad_norm - other.grad_norm) <= 1e-9);
      if (step > 0) continue;
      tensors gradients = masked.tensors(region::gradients);
      for (const auto& [name, expected] : plain.tensors(region::gradients)) {
        CAPTURE(name);
        std::vector<double>& values = gradients.at(name);
        for (std::size_t i = expected.size(); i < values.size(); ++i) CHECK(values[i] == 0);
        values.resize(expected.size());
        double most = 0;
        for (std::size_t i = 0; i < values.size(); ++i)
          most = std::max(most, std::abs(values[i] - expected[i]));
        CHECK(most <= 1e-9);
      }
    }
    CHECK(difference(plain, masked) <= 1e-9);
    CHECK(exported(masked, files, folder_of(model))["vocab_size"] == 128);
  }
}

TEST_CASE("a folder that is padded as the plan is keeps its rows of padding") {
  const scratch files;
  run padded = start(program_of("gpt2_padded", "one"), folder_of("gpt2"), "arith:1");
  exported(padded, files, folder_of("gpt2"));
  const fs::path folder = files.path("exported");
  json config = read_json(folder / "config.json");
  config["vocab_size"] = 132;
  files.write("exported/config.json", config.dump());
  tensors all = tensors_of(folder);
  all["transformer.wte.weight"].resize(132 * 32, 0.5);
  const safetensors_reader in(folder / "model.safetensors");
  std::vector<safetensors_writer::tensor> shapes;
  for (const auto& [name, t] : in.tensors()) {
    shapes.push_back({name, t.shape, dtype::f64});
    if (name == "transformer.wte.weight") shapes.back().shape = {132, 32};
  }
  fs::remove(folder / "model.safetensors");
  safetensors_writer out(folder / "model.safetensors", shapes, {});
  for (const auto& t : shapes) out.append(all.at(t.name).data(), all.at(t.name).size());
  out.close();
  fs::rename(folder, files.path("source"));
  run again = start(program_of("gpt2_padded", "tp2"), files.path("source"), "arith:1");
  CHECK(again.tensors(region::weights).at("wte").back() == 0.5);
  CHECK(exported(again, files, files.path("source"))["vocab_size"] == 132);
  CHECK((tensors_of(files.path("exported")) == all));
}

TEST_CASE("a checkpoint loads into a plan that pads the same tokens otherwise, moments too") {
  const scratch files;
  run plain = start(program_of("gpt2", "one"), folder_of("gpt2"), "arith:1"),
      padded(program_of("gpt2_padded", "tp2")), back(program_of("gpt2", "tp2_pp2"));
  plain.step();
  const open_checkpoint from = open_newest(padded.about, save(plain, files));
  REQUIRE(from.notes.size() == 1);
  CHECK(said_in(from.notes[0]) == said{6640, {from.folder, "128", "132", "128"}});
  load_checkpoint(*padded.engine, from);
  CHECK(are_zero(padded.tensors(region::weights).at("wte"), 128));
  CHECK(are_zero(padded.tensors(region::first_moment).at("wte"), 128));
  const open_checkpoint to = open_newest(back.about, save(padded, files));
  REQUIRE(to.notes.size() == 1);
  CHECK(said_in(to.notes[0]) == said{6641, {to.folder, "132", "128"}});
  load_checkpoint(*back.engine, to);
  for (const region r : {region::weights, region::first_moment, region::second_moment})
    CHECK((back.tensors(r) == plain.tensors(r)));
}

TEST_CASE("a vocabulary of other tokens is refused, whatever its padding") {
  const scratch files;
  run other = start(program_of("gpt2_sharded", "one"), folder_of("gpt2_sharded"), "arith:1"),
      padded(program_of("gpt2_padded", "one"));
  const exit_with said = exit_of([&] { load_checkpoint(*padded.engine, save(other, files)); });
  CHECK(said.code == 65);
  CHECK(said.message.id == 6630);
  CHECK(said.message.arguments.at(1).ends_with("wte [160, 32] instead of [132, 32]"));
  const fs::path folder = changed(files, "gpt2", {{"vocab_size", 130}});
  CHECK(exit_of([&] { load_weights(*padded.engine, folder); }) ==
        exit_with{
            1,
            {6538,
             {folder / "config.json", "hf_gpt2_padded_one_host", "vocab_size is 130, expected 128 or 132"}}});
}

}  // namespace padded_test
