// SPDX-License-Identifier: Apache-2.0
// Folders from strangers: values of other types, position scalings with additional keys, and names that lead
// outside the folder.
#include "../exit_with.hpp"
#include "folders.hpp"

#include <sys/stat.h>

namespace configs_test {

using namespace hugging_face;
using namespace rankc::runtime;
using rankc::test::exit_of, rankc::test::exit_with;

namespace {

exit_with loaded(const std::string& model, const fs::path& folder) {
  run r(program_of(model, "one"));
  return exit_of([&] { load_weights(*r.engine, folder); });
}

/// The differences for which a changed config is refused; empty if it is accepted.
std::string differences(const std::string& model, const json& changes) {
  const scratch files;
  const exit_with said = loaded(model, changed(files, model, changes));
  if (said.code == 0) return "";
  CHECK(said.code == 1);
  REQUIRE(said.message.id == 6538);
  return said.message.arguments.at(2);
}

/// The refusal of a config with this text.
exit_with with_text(const std::string& model, const std::string& text) {
  const scratch files;
  const fs::path folder = changed(files, model, {});
  files.write("changed/config.json", text);
  exit_with said = loaded(model, folder);
  REQUIRE(said.message.arguments.at(0) == folder / "config.json");
  said.message.arguments.erase(said.message.arguments.begin());
  return said;
}

}  // namespace

TEST_CASE("values of another type or range are listed as differences, those that others follow from too") {
  CHECK(differences("gpt2", {{"n_embd", "32"}}) ==
        "n_embd is \"32\", expected 32; n_inner is null, expected 128");
  CHECK(differences("gpt2", {{"n_embd", 2'000'000'000}}) ==
        "n_embd is 2000000000, expected 32; n_inner is 8000000000, expected 128");
  CHECK(differences("gpt2", {{"n_embd", -32}}) ==
        "n_embd is -32, expected 32; n_inner is null, expected 128");
  CHECK(differences("gpt2", {{"n_positions", 1e300}}) == "n_positions is 1e+300, expected at least 32");
  CHECK(differences("gpt2", {{"n_positions", "48"}}) == "n_positions is \"48\", expected at least 32");
  CHECK(differences("gpt2", {{"vocab_size", {128}}}) == "vocab_size is [128], expected 128");
  CHECK(differences("llama_gqa", {{"hidden_size", {32}}, {"head_dim", nullptr}}) ==
        "hidden_size is [32], expected 32; head_dim is null, expected 8");
  CHECK(differences("llama_gqa", {{"num_attention_heads", 0}, {"head_dim", nullptr}}) ==
        "num_attention_heads is 0, expected 4; head_dim is null, expected 8");
  CHECK(differences("gpt2", {{"n_layer", std::string(500, 'x')}}) ==
        "n_layer is \"" + std::string(76, 'x') + "..., expected 2");
}

TEST_CASE("a config that is no JSON, is nested deeply or has a key twice is refused by its file") {
  CHECK(with_text("gpt2", "{\"model_type\": ") == exit_with{1, {6596, {"byte 16 is unexpected"}}});
  CHECK(with_text("gpt2", "{\"n_layer\": " + std::string(200'000, '[')) == exit_with{1, {6592, {"32"}}});
  CHECK(with_text("gpt2", "{\"n_layer\": 2, \"n_layer\": 3}") == exit_with{1, {6594, {"n_layer"}}});
  CHECK(with_text("gpt2", "[]") == exit_with{1, {6536, {}}});
  CHECK(with_text("gpt2", "{}").message.id == 6537);
}

TEST_CASE("keys that transformers ignores with a scaling of positions are no difference; no object is one") {
  const auto rope = [](const json& value) { return differences("llama_gqa", {{"rope_parameters", value}}); };
  CHECK(rope({{"rope_type", "default"}, {"rope_theta", 10000.0}, {"factor", 1.0}}) == "");
  CHECK(rope({{"rope_type", "default"},
              {"rope_theta", 10000.0},
              {"low_freq_factor", 1.0},
              {"high_freq_factor", 4.0},
              {"original_max_position_embeddings", 16}}) == "");
  CHECK(rope({{"rope_type", "linear"}, {"rope_theta", 10000.0}, {"factor", 2.0}}) ==
        "rope_type is \"linear\", expected \"default\"");
  CHECK(rope({1}) == "rope_parameters is [1], expected an object");
  CHECK(rope("x") == "rope_parameters is \"x\", expected an object");
  CHECK(differences("llama_gqa", {{"rope_scaling", 3}}) == "rope_scaling is 3, expected an object");
  CHECK(differences("llama_gqa", {{"rope_scaling", nullptr}}) == "");
}

TEST_CASE("null for the key-value heads of a Mixtral means those of the queries") {
  CHECK(differences("mixtral", {{"num_key_value_heads", nullptr}}) == "num_key_value_heads is 4, expected 2");
  const scratch files;
  json config = read_json(folder_of("mixtral") / "config.json");
  config.erase("num_key_value_heads");
  files.write("changed/config.json", config.dump());
  CHECK(loaded("mixtral", files.path("changed")).message.arguments.at(2) ==
        "num_key_value_heads is 8, expected 2");
}

TEST_CASE("an index names files of its own folder") {
  const scratch files;
  const fs::path folder = changed(files, "gpt2_sharded", {}), index = folder / "model.safetensors.index.json";
  const std::string shard = "model-00001-of-00003.safetensors";
  fs::copy(folder / shard, files.path(shard));
  fs::remove(folder / shard);
  const std::string text = contents(index);
  const auto naming = [&](const json& name) {
    json root = json::parse(text);
    for (auto& [tensor, file] : root["weight_map"].items())
      if (file == shard) file = name;
    files.write("changed/model.safetensors.index.json", root.dump());
    return loaded("gpt2_sharded", folder);
  };
  for (const std::string& name : {"../" + shard, files.path(shard), std::string("/etc/passwd")})
    CHECK(naming(name) == exit_with{1, {6588, {index, name}}});
  CHECK(naming(3).message.id == 6589);
  REQUIRE(mkfifo((folder / "fifo").c_str(), 0600) == 0);
  CHECK(naming("fifo") == exit_with{1, {6585, {folder / "fifo", "it is a FIFO, not a regular file"}}});
  fs::create_symlink(files.path(shard), folder / "link");
  CHECK(naming("link") == exit_with{});
  files.write("changed/model.safetensors.index.json", "{\"weight_map\": [1]}");
  CHECK(loaded("gpt2_sharded", folder) == exit_with{1, {6589, {index, "weight_map", "[1]", "an object"}}});
}

}  // namespace configs_test
