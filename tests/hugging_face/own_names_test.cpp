// SPDX-License-Identifier: Apache-2.0
// A user's model that declares its own names is read from a folder with these names and written again with
// the same bits. Contradictory names are refused with a message.
#include <rankc/trainer/export.hpp>

#include "../exit_with.hpp"
#include "../lora/peft_folder.hpp"
#include "folders.hpp"

namespace own_names_test {

using namespace hugging_face;
using namespace rankc::runtime;
using rankc::test::exit_of, rankc::test::exit_with;

namespace {

constexpr std::size_t tokens = 33, positions = 40, hidden = 16, pairs = 8, ffn = 48;

std::vector<safetensors_writer::tensor> tensors_of_model(const std::string& prefix) {
  std::vector<safetensors_writer::tensor> all{{prefix + "words.weight", {tokens, hidden}, dtype::f64},
                                              {prefix + "places.weight", {positions, hidden}, dtype::f64},
                                              {prefix + "last.gain", {hidden}, dtype::f64}};
  for (const std::string& layer : {prefix + "0.", prefix + "1."}) {
    all.push_back({layer + "first.gain", {hidden}, dtype::f64});
    all.push_back({layer + "mix.qkv.weight", {hidden + 2 * pairs, hidden}, dtype::f64});
    all.push_back({layer + "mix.out.weight", {hidden, hidden}, dtype::f64});
    all.push_back({layer + "second.gain", {hidden}, dtype::f64});
    all.push_back({layer + "wide.gate_up.weight", {hidden, 2 * ffn}, dtype::f64});
    all.push_back({layer + "wide.down.weight", {ffn, hidden}, dtype::f64});
  }
  return all;
}

/// Write a folder of the model. Its config lacks values that follow from others, and has some that the plan
/// does not use.
fs::path folder_of_own(const scratch& files, const json& changes = json::object(),
                       const std::string& prefix = "trunk.") {
  json config{{"model_type", "own"},
              {"depth", 2},
              {"width", 16},
              {"n_heads", 4},
              {"pairs", 2},
              {"tokens", tokens},
              {"context", 40},
              {"gate", "silu"},
              {"color", "blue"},
              {"eos_token_id", 7},
              {"unused", {1, {{"deep", nullptr}}}}};
  config.update(changes);
  files.write("own/config.json", config.dump());
  const auto all = tensors_of_model(prefix);
  const fs::path weights = fs::path(files.path("own")) / "model.safetensors";
  fs::remove(weights);
  safetensors_writer out(weights, all, {});
  double n = 0;
  for (const safetensors_writer::tensor& t : all) {
    std::vector<double> values(t.count());
    for (double& value : values) value = std::sin(++n);
    out.append(values.data(), values.size());
  }
  out.close();
  return files.path("own");
}

/// An area of a row-major matrix, or the same transposed.
std::vector<double> part(const std::vector<double>& all, std::size_t columns, const rankc::runtime::area& of,
                         bool transposed = false) {
  std::vector<double> values;
  for (std::size_t i = 0; i < (transposed ? of.columns : of.rows); ++i)
    for (std::size_t j = 0; j < (transposed ? of.rows : of.columns); ++j) {
      const std::size_t row = of.row + (transposed ? j : i), column = of.column + (transposed ? i : j);
      values.push_back(all.at(row * columns + column));
    }
  return values;
}

json exported(run& r, const scratch& files, const std::string& init,
              const export_options& how = {.format = export_format::hugging_face}) {
  fs::remove_all(files.path("exported"));
  export_weights(r.about, save(r, files, init), files.path("exported"), how);
  return read_json(fs::path(files.path("exported")) / "config.json");
}

}  // namespace

TEST_CASE("a model's own names: each tensor of the plan has its part of the folder's") {
  for (const char* layout : {"one", "tp2_pp2"}) {
    CAPTURE(layout);
    const scratch files;
    const tensors theirs = tensors_of(folder_of_own(files));
    run r(program_of("own", layout));
    load_weights(*r.engine, files.path("own"));
    const tensors ours = r.tensors(region::weights);
    const std::vector<double>& qkv = theirs.at("trunk.1.mix.qkv.weight");
    CHECK(ours.at("layers.1.wq") == part(qkv, hidden, {0, hidden, 0, hidden}));
    CHECK(ours.at("layers.1.wk") == part(qkv, hidden, {hidden, pairs, 0, hidden}));
    CHECK(ours.at("layers.1.wv") == part(qkv, hidden, {hidden + pairs, pairs, 0, hidden}));
    const std::vector<double>& wide = theirs.at("trunk.0.wide.gate_up.weight");
    CHECK(ours.at("layers.0.w1") == part(wide, 2 * ffn, {0, hidden, 0, ffn}, true));
    CHECK(ours.at("layers.0.w3") == part(wide, 2 * ffn, {0, hidden, ffn, ffn}, true));
    CHECK(ours.at("layers.0.w2") ==
          part(theirs.at("trunk.0.wide.down.weight"), hidden, {0, ffn, 0, hidden}, true));
    CHECK(ours.at("layers.0.norm2") == theirs.at("trunk.0.second.gain"));
    std::vector<double> words = theirs.at("trunk.words.weight");
    words.resize(words.size() + hidden);  // one more row pads the vocabulary
    CHECK(ours.at("words") == words);
  }
}

TEST_CASE("a model's own names: an export has the folder's tensors and values with the same bits") {
  for (const char* layout : {"one", "tp2_pp2"}) {
    CAPTURE(layout);
    const scratch files;
    const fs::path folder = folder_of_own(files);
    run r(program_of("own", layout));
    load_weights(*r.engine, folder);
    json config = exported(r, files, folder), expected = read_json(folder / "config.json");
    CHECK((tensors_of(files.path("exported")) == tensors_of(folder)));
    const safetensors_reader found(fs::path(files.path("exported")) / "model.safetensors"),
        given(folder / "model.safetensors");
    for (const auto& [name, t] : given.tensors()) CHECK(found.tensors().at(name).shape == t.shape);
    for (const auto& [key, value] : expected.items()) CHECK(config.at(key) == value);
    CHECK(config["architectures"] == json{"OwnForCausalLM"});

    r.step();
    config = exported(r, files, "hash:1");
    for (const auto& [key, value] : {std::pair<std::string, json>{"model_type", "own"},
                                     {"depth", 2},
                                     {"width", 16},
                                     {"query_heads", 4},
                                     {"pairs", 2},
                                     {"mlp_width", 48},
                                     {"tokens", 33},
                                     {"context", 32},
                                     {"dropout", 0.0}})
      CHECK(config.at(key) == value);
    run again(program_of("own", "one"));
    load_weights(*again.engine, files.path("exported"));
    tensors trained = r.tensors(region::weights), read = again.tensors(region::weights);
    for (tensors* all : {&trained, &read}) all->at("words").resize(tokens * hidden);
    CHECK((read == trained));
  }
}

TEST_CASE("a model's own names: files of the base model alone, buffers and a repeated table are read") {
  const scratch files, base;
  const fs::path folder = folder_of_own(files);
  add_tensors(folder,
              {{"trunk.0.mix.mask", {3}, dtype::f64}, {"readout.weight", {tokens, hidden}, dtype::f32}},
              joined({1, 2, 3}, tensors_of(folder).at("trunk.words.weight")));
  run more(program_of("own", "one")), fewer(program_of("own", "one"));
  load_weights(*more.engine, folder);
  load_weights(*fewer.engine, folder_of_own(base, json::object(), ""));
  const fs::path exact = folder_of_own(files);
  run r(program_of("own", "one"));
  load_weights(*r.engine, exact);
  CHECK((fewer.tensors(region::weights) == r.tensors(region::weights)));
  const tensors rounded = more.tensors(region::weights);  // add_tensors writes f32
  for (const auto& [name, values] : r.tensors(region::weights)) {
    const std::vector<double>& others = rounded.at(name);
    REQUIRE(others.size() == values.size());
    for (std::size_t i = 0; i < values.size(); ++i) CHECK(others[i] == static_cast<float>(values[i]));
  }
}

TEST_CASE("a model's own names: a folder of another size is refused with every difference") {
  const auto refused = [](const json& changes) {
    const scratch files;
    const fs::path folder = folder_of_own(files, changes);
    run r(program_of("own", "one"));
    const exit_with said = exit_of([&] { load_weights(*r.engine, folder); });
    CHECK(said.code == 1);
    return said.message.arguments.back();
  };
  CHECK(
      refused({{"depth", 3}, {"n_heads", 8}, {"pairs", nullptr}, {"gate", nullptr}, {"tokens", 32}}) ==
      "tokens is 32, expected 33 or 34; depth is 3, expected 2; query_heads is 8, expected 4; pairs is null, "
      "expected 2");
  CHECK(refused({{"width", 32}, {"context", 8}}) ==
        "width is 32, expected 16; mlp_width is 96, expected 48; context is 8, expected at least 32");
}

TEST_CASE("adapters of parts of unequal sizes are one adapter of the tensor that joins them") {
  const scratch files;
  const fs::path folder = folder_of_own(files);
  run adapted(program_of("own", "adapted"), "arith", 1e-2);
  load_weights(*adapted.engine, folder);
  for (int n = 0; n < 3; ++n) adapted.step();
  exported(adapted, files, folder, {.merge = true, .format = export_format::hugging_face});
  const auto merged = tensors_in(fs::path(files.path("exported")) / "model.safetensors");
  export_weights(adapted.about, files.path("saved"), files.path("adapter"),
                 {.format = export_format::hugging_face});
  CHECK(peft_folder(files.path("adapter")).check(tensors_in(folder / "model.safetensors"), merged) ==
        std::pair(std::size_t{2}, std::size_t{0}));
}

TEST_CASE("rows of names that contradict each other, and parts that the plan lacks, are refused") {
  const scratch files;
  run r(program_of("own", "one"));
  save(r, files);
  const auto refused = [&](const auto& change) {
    json root = json::parse(r.about.json);
    change(root["hugging_face"]["tensors"]);
    const std::string text = root.dump();
    description about = r.about;
    about.json = text.c_str();
    const exit_with said = exit_of([&] {
      export_weights(about, files.path("saved"), files.path("exported"),
                     {.format = export_format::hugging_face});
    });
    CHECK(said.code == 1);
    CHECK_FALSE(fs::exists(files.path("exported")));
    return said.message;
  };
  const auto why = [&](const auto& change) {
    const auto message = refused(change);
    CHECK(message.id == 6547);
    return message.arguments.at(1) + ": " + message.arguments.at(3);
  };
  CHECK(why([](json& t) { t[2]["theirs"] = "trunk.@.gain"; }) ==
        "norm: is of experts (@), but `experts` is 0");
  CHECK(why([](json& t) { t[4]["theirs"] = "first.gain"; }) ==
        "layers.#.norm1: has the number of a layer (#) in one name only");
  CHECK(why([](json& t) { t[5]["ours"] = "layers.#.norm1"; }) ==
        "layers.#.norm1: is the second for this tensor");
  CHECK(why([](json& t) { t[6]["transposed"] = true; }) ==
        "layers.#.wk: differs in `transposed` or `rows` from another part of the same tensor");
  CHECK(why([](json& t) { t[1]["transposed"] = true; }) ==
        "wpe: has the rows of positions, which cannot be transposed");
  CHECK(refused([](json& t) { t[7]["ours"] = "layers.#.other"; }) ==
        rankc::test::said{6546,
                          {"hf_own_one_host", "trunk.0.mix.qkv.weight", "layers.0.wq", "layers.0.other"}});
  CHECK(refused([](json& t) { t.erase(8); }) ==
        rankc::test::said{6545, {"hf_own_one_host", "layers.0.wo", "own"}});
}

TEST_CASE("an export of a model that declares no names is refused") {
  const scratch files;
  run r(program_of("no_family", "one"));
  CHECK(exit_of([&] { exported(r, files, ""); }) == exit_with{1, {6535, {"hf_no_family_one_host"}}});
  CHECK_FALSE(fs::exists(files.path("exported")));
}

}  // namespace own_names_test
