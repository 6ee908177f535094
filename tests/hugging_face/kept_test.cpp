// SPDX-License-Identifier: Apache-2.0
// A run that begins with a Hugging Face folder exports the content that its plan does not hold: later
// positions, tokens, other values of config.json, and the files of the tokenizer.
#include <rankc/trainer/export.hpp>

#include "../exit_with.hpp"
#include "command.hpp"
#include "folders.hpp"

namespace kept_test {

using namespace hugging_face;
using namespace rankc::runtime;
using rankc::test::exit_of, rankc::test::exit_with, rankc::test::said, rankc::test::said_in;

namespace {

const export_options as_folder{.format = export_format::hugging_face};

/// Export a run of a program that began with a folder.
json exported(run& r, const scratch& files, const std::string& init, const std::string& source = "") {
  const fs::path out = files.path("exported");
  fs::remove_all(out);
  export_options how = as_folder;
  how.source = source;
  export_weights(r.about, save(r, files, init), out, how);
  return read_json(out / "config.json");
}

/// A config without the keys that an export sets.
json without_own_keys(json config) {
  for (const char* key : {"architectures", "dtype", "torch_dtype", "rankc_checksum"}) config.erase(key);
  return config;
}

}  // namespace

TEST_CASE("an export has every value of the folder's config, and every tensor with all its rows") {
  for (const std::string model : {"gpt2", "gpt2_sharded", "llama_gqa", "qwen3", "qwen3_moe_norm", "mixtral"})
    for (const char* layout : {"one", "tp2_pp2"}) {
      CAPTURE(model);
      CAPTURE(layout);
      const scratch files;
      run r = start(program_of(model, layout), folder_of(model), "arith:1");
      const json config = exported(r, files, folder_of(model));
      CHECK(without_own_keys(config) == without_own_keys(read_json(folder_of(model) / "config.json")));
      CHECK(config["dtype"] == "float64");
      CHECK(config["torch_dtype"] == "float64");
      tensors expected = tensors_of(folder_of(model));
      if (model == "gpt2_sharded")
        for (const auto& [name, values] : tensors(expected)) {
          expected["transformer." + name] = values;
          expected.erase(name);
        }
      CHECK((tensors_of(files.path("exported")) == expected));
      run again = start(program_of(model, "one"), files.path("exported"), "arith:1");
      CHECK((again.tensors(region::weights) == r.tensors(region::weights)));
    }
}

TEST_CASE("positions that the plan does not train stay as they are, and those that it trains do not") {
  const scratch files;
  run r = start(program_of("gpt2", "one"), folder_of("gpt2"), "arith:1");
  r.step();
  CHECK(exported(r, files, folder_of("gpt2"))["n_positions"] == 48);
  const std::vector<double> before = tensors_of(folder_of("gpt2")).at("transformer.wpe.weight"),
                            after = tensors_of(files.path("exported")).at("transformer.wpe.weight");
  REQUIRE(after.size() == 48 * 32);
  CHECK(std::equal(after.begin() + 32 * 32, after.end(), before.begin() + 32 * 32));
  CHECK(std::equal(after.begin(), after.begin() + 32 * 32, r.tensors(region::weights).at("wpe").begin()));
  CHECK(after[0] != before[0]);
}

TEST_CASE("a scaling of positions keeps the limits that it was made for") {
  const scratch files;
  run r = start(program_of("llama_rope_llama3", "one"), folder_of("llama_rope_llama3"), "arith:1");
  const json expected = read_json(folder_of("llama_rope_llama3") / "config.json"),
             config = exported(r, files, folder_of("llama_rope_llama3"));
  CHECK(config["max_position_embeddings"] == expected["max_position_embeddings"]);
  CHECK(config["max_position_embeddings"] > config["rope_parameters"]["original_max_position_embeddings"]);
}

TEST_CASE("the end token is the folder's, or the plan's where the folder has none") {
  const scratch files;
  const auto end_of = [&](const std::string& layout, const json& changes) {
    const fs::path folder = changed(files, "llama_tied_bf16", changes);
    run r = start(program_of("packed_llama_tied_bf16", layout), folder, "arith:1");
    return exported(r, files, folder)["eos_token_id"];
  };
  CHECK(end_of("0", {}) == 0);
  CHECK(end_of("0", {{"eos_token_id", {3, 5}}}) == json{3, 5});
  CHECK(end_of("0", {{"eos_token_id", nullptr}}) == 109);
  CHECK(end_of("1", {{"eos_token_id", nullptr}}) == 172);
  run r(program_of("packed_llama_tied_bf16", "0"));
  CHECK(exported(r, files, "hash:1")["eos_token_id"] == 109);
  CHECK(exported(r, files, "hash:1")["bos_token_id"].is_null());
}

TEST_CASE("a plan alone exports the values that it has, and no dropout") {
  const scratch files;
  run r(program_of("gpt2", "one"));
  const json config = exported(r, files, "hash:1");
  CHECK(config["n_positions"] == 32);
  CHECK(config["eos_token_id"].is_null());
  for (const char* key : {"attn_pdrop", "embd_pdrop", "resid_pdrop"}) CHECK(config.at(key) == 0.0);
}

TEST_CASE(
    "a balance loss is exported as transformers trains with it, and another one in a folder is a note") {
  const scratch files;
  for (const auto& [model, balance] : {std::pair{"mixtral", 0.02}, {"qwen3_moe_nonorm", 0.05}}) {
    CAPTURE(model);
    run r(program_of(model, "one"));
    const json config = exported(r, files, "hash:1");
    CHECK(config["router_aux_loss_coef"] == balance);
    CHECK(config["output_router_logits"] == true);
  }
  run r(program_of("mixtral", "one"));
  const auto notes = [&](const json& changes) {
    std::vector<std::string> notes;
    load_weights(*r.engine, changed(files, "mixtral", changes), {}, &notes);
    return notes;
  };
  CHECK(notes({}).empty());
  CHECK(notes({{"router_aux_loss_coef", 0.5}, {"output_router_logits", false}}).empty());
  const std::vector<std::string> other = notes({{"router_aux_loss_coef", 0.5}});
  REQUIRE(other.size() == 1);
  CHECK(said_in(other[0]) == said{6642,
                                  {files.path("changed/config.json"), "router_aux_loss_coef", "0.5",
                                   "hf_mixtral_one_host", "0.02"}});
  const fs::path folder = changed(files, "mixtral", {{"router_aux_loss_coef", 0.5}});
  CHECK(exported(r, files, folder)["router_aux_loss_coef"] == 0.02);
  run dense(program_of("llama_gqa", "one"));
  CHECK_FALSE(exported(dense, files, "hash:1").contains("output_router_logits"));
}

TEST_CASE("the files of the tokenizer and of generation are copied, through links too, and no others") {
  const scratch files;
  const fs::path folder = changed(files, "gpt2", {});
  files.write("blobs/vocabulary", "{\"a\":0}");
  fs::create_symlink("../blobs/vocabulary", folder / "vocab.json");
  files.write("changed/merges.txt", "#version: 0.2\n");
  files.write("changed/generation_config.json", "{\"eos_token_id\": 0}");
  files.write("changed/training_args.bin", "x");
  run r = start(program_of("gpt2", "one"), folder, "arith:1");
  const fs::path out = files.path("exported");
  exported(r, files, folder);
  for (const char* name : {"vocab.json", "merges.txt", "generation_config.json"}) {
    CHECK(contents(out / name) == contents(folder / name));
    CHECK(fs::symlink_status(out / name).type() == fs::file_type::regular);
  }
  CHECK_FALSE(fs::exists(out / "training_args.bin"));
  CHECK_FALSE(fs::exists(out / "expected.json"));
  const auto again = [&] {
    return exit_of([&] { export_weights(r.about, files.path("saved"), out, as_folder); });
  };
  CHECK(again() == exit_with{});
  files.write("exported/merges.txt", "another model's");
  CHECK(again() == exit_with{2, {6525, {out, "merges.txt"}}});
  CHECK(contents(out / "merges.txt") == "another model's");
}

TEST_CASE("a folder of links into other folders, as the hub's cache has it, is read") {
  const scratch files;
  fs::create_directories(files.path("snapshot"));
  for (const auto& entry : fs::directory_iterator(folder_of("gpt2_sharded")))
    fs::create_symlink(fs::canonical(entry.path()),
                       fs::path(files.path("snapshot")) / entry.path().filename());
  run one = start(program_of("gpt2_sharded", "one"), folder_of("gpt2_sharded"), "arith:1"),
      other = start(program_of("gpt2_sharded", "one"), files.path("snapshot"), "arith:1");
  CHECK((one.tensors(region::weights) == other.tensors(region::weights)));
}

TEST_CASE("a folder that is gone is refused, unless the command names its place or goes without it") {
  const scratch files;
  const std::string folder = changed(files, "gpt2", {}), moved = files.path("moved");
  run r = start(program_of("gpt2", "one"), folder, "arith:1");
  fs::rename(folder, moved);
  const auto with = [&](const std::string& source) {
    return exit_of([&] { exported(r, files, folder, source); });
  };
  CHECK(with("") == exit_with{1, {6522, {folder}}});
  CHECK_FALSE(fs::exists(files.path("exported")));
  CHECK(with(files.path()) == exit_with{1, {6521, {files.path(), "config.json"}}});
  CHECK(with(folder_of("llama_gqa")).message.id == 6537);
  CHECK(exported(r, files, folder, moved)["n_positions"] == 48);
  CHECK(exported(r, files, folder, "none")["n_positions"] == 32);
}

TEST_CASE("a run that begins with another run's checkpoint exports what that run's folder holds") {
  const scratch files, second;
  run r = start(program_of("gpt2", "one"), folder_of("gpt2"), "arith:1");
  save(r, files, folder_of("gpt2"));
  const std::string base = files.path("saved");
  CHECK(exported(r, second, base)["n_positions"] == 48);
  CHECK(exported(r, second, base + "/step_000001")["n_positions"] == 48);
  save(r, files, base);  // the checkpoint now begins with itself
  CHECK(exit_of([&] { exported(r, second, base); }).message.id == 6523);
}

TEST_CASE("the command takes --source") {
  const scratch files;
  const auto call = [](const std::vector<std::string>& words) {
    return command(program_of("gpt2", "one"), words);
  };
  const std::string folder = changed(files, "gpt2", {}), saved = files.path("s"), out = files.path("out");
  CHECK(call({"train", "--steps", "1", "--init", folder, "--save", saved}).starts_with("0 "));
  const std::vector<std::string> exports{"export", "--load", saved, "--format", "huggingface", "--out", out};
  CHECK(call(exports) == "0 exported " + out + "\n");
  CHECK(read_json(out + "/config.json")["n_positions"] == 48);
  std::vector<std::string> alone = exports;
  alone.insert(alone.end(), {"--source", "none"});
  CHECK(call(alone) == "0 exported " + out + "\n");
  CHECK(read_json(out + "/config.json")["n_positions"] == 32);
  testing::capture err(stderr);
  CHECK(call({"export", "--load", saved, "--out", out, "--source", folder}) == "2 ");
  CHECK(said_in(err.end()) == said{6029, {folder}});
}

TEST_CASE("a folder whose files have fewer positions than its config states is refused") {
  const scratch files;
  const fs::path folder = changed(files, "gpt2", {});
  run r = start(program_of("gpt2", "one"), folder, "arith:1");
  json config = read_json(folder / "config.json");
  config["n_positions"] = 64;
  files.write("changed/config.json", config.dump());
  CHECK(exit_of([&] { exported(r, files, folder); }) ==
        exit_with{1, {6526, {folder, "transformer.wpe.weight", "64", "config.json"}}});
}

}  // namespace kept_test
