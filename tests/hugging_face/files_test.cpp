// SPDX-License-Identifier: Apache-2.0
// Folders as transformers writes them: an exported model is read again with the same bits, and a folder that
// does not fit a plan is refused with every difference.
#include <rankc/trainer/export.hpp>
#include <rankc/trainer/safetensors.hpp>
#include <set>

#include "../exit_with.hpp"
#include "../lora/peft_folder.hpp"
#include "command.hpp"
#include "folders.hpp"

namespace files_test {

using namespace hugging_face;
using namespace rankc::runtime;
using rankc::test::exit_of, rankc::test::exit_with;

namespace {

exit_with refused(const std::string& program, const fs::path& folder) {
  run r(program_of(program, "one"));
  const tensors before = r.tensors(region::weights);
  const exit_with said = exit_of([&] { load_weights(*r.engine, folder); });
  CHECK((r.tensors(region::weights) == before));
  return said;
}

/// Keep `count` positions, whose weights no rank has.
void keep_positions(tensors& all, std::size_t count) {
  for (auto& [name, values] : all)
    if (name.ends_with("wpe.weight")) values.resize(count);
}

}  // namespace

TEST_CASE(
    "what is exported has the tensors that were read, and is read again with the same bits on any layout") {
  for (const std::string model : {"gpt2", "gpt2_sharded", "llama_gqa", "qwen3", "qwen3_moe_norm", "mixtral"})
    for (const char* layout : {"one", "tp2_pp2", "shards"})
      for (const std::size_t file_bytes : {std::size_t{5'000'000'000}, std::size_t{60'000}}) {
        CAPTURE(model);
        CAPTURE(layout);
        CAPTURE(file_bytes);
        const scratch files;
        run from = start(program_of(model, layout), folder_of(model), "arith:1");
        const fs::path out = files.path("exported");
        CHECK(export_weights(from.about, save(from, files), out,
                             {.format = export_format::hugging_face, .file_bytes = file_bytes}) == out);
        CHECK(fs::exists(out / "model.safetensors.index.json") == (file_bytes < 100'000));
        if (fs::exists(out / "model.safetensors.index.json")) {
          const json index = read_json(out / "model.safetensors.index.json");
          for (const auto& [name, file] : index["weight_map"].items())
            CHECK(safetensors_reader(out / file.get<std::string>()).tensors().contains(name));
          CHECK(index["weight_map"].size() == tensors_of(out).size());
        }
        tensors expected = tensors_of(folder_of(model)), found = tensors_of(out);
        if (model == "gpt2_sharded")
          for (const auto& [name, values] : tensors(expected)) {
            expected["transformer." + name] = values;
            expected.erase(name);
          }
        keep_positions(expected, 32 * 32);
        CHECK((found == expected));
        from.step();
        fs::remove_all(out);
        export_weights(from.about, save(from, files), out,
                       {.format = export_format::hugging_face, .file_bytes = file_bytes});
        const tensors trained = from.tensors(region::weights);
        for (const char* other : {"one", "dp2_tp2"}) {
          run to = start(program_of(model, other), out, "arith:1");
          CHECK((to.tensors(region::weights) == trained));
        }
      }
}

TEST_CASE("configs of transformers 4 and 5 are read, and buffers and heads that are tied are skipped") {
  const scratch files;
  for (const std::string model :
       {"gpt2", "gpt2_sharded", "llama_gqa", "qwen3", "llama_rope_llama3", "qwen3_moe_nonorm",
        "qwen3_moe_mlp_only", "qwen3_moe_sparse_step", "mixtral"}) {
    CAPTURE(model);
    run one = start(program_of(model, "one"), folder_of(model), "arith:1"),
        other = start(program_of(model, "one"), changed(files, model, {}, "config_v4.json"), "arith:1");
    CHECK((one.tensors(region::weights) == other.tensors(region::weights)));
  }
  const fs::path folder = changed(files, "gpt2", {});
  const tensors given = tensors_of(folder);
  add_tensors(folder,
              {{"transformer.h.0.attn.bias", {1, 1, 48, 48}, dtype::f32},
               {"transformer.h.1.attn.masked_bias", {}, dtype::f32},
               {"lm_head.weight", {128, 32}, dtype::f32}},
              joined(std::vector<double>(48 * 48 + 1, 7), given.at("transformer.wte.weight")));
  run one = start(program_of("gpt2", "one"), folder_of("gpt2"), "arith:1"),
      other = start(program_of("gpt2", "one"), folder, "arith:1");
  CHECK((one.tensors(region::weights) == other.tensors(region::weights)));
}

TEST_CASE("a head that differs from the table of tokens that the plan ties it to is refused") {
  const auto refused_head = [](const std::string& model, const std::string& table,
                               std::size_t changed_element, const std::vector<std::size_t>& shape) {
    CAPTURE(model);
    const scratch files;
    const fs::path folder = changed(files, model, {});
    std::vector<double> head = tensors_of(folder).at(table);
    head.resize(shape[0] * shape[1]);
    if (changed_element < head.size()) head[changed_element] *= 2;
    add_tensors(folder, {{"lm_head.weight", shape, dtype::f32}}, head);
    return refused(model, folder) ==
           exit_with{1, {6551, {folder, "lm_head.weight", table, "hf_" + model + "_one_host"}}};
  };
  CHECK(refused_head("gpt2", "transformer.wte.weight", 0, {128, 32}));
  CHECK(refused_head("gpt2", "transformer.wte.weight", 128 * 32 - 1, {128, 32}));
  CHECK(refused_head("gpt2", "transformer.wte.weight", 128 * 32, {127, 32}));
  CHECK(refused_head("llama_tied_bf16", "model.embed_tokens.weight", 77, {192, 32}));
}

TEST_CASE(
    "files in bf16 of a model with a tied head are read exactly, and norms that add another number are "
    "refused") {
  const scratch files;
  const fs::path folder = folder_of("llama_tied_bf16");
  const fs::path other = changed(files, "llama_tied_bf16", {{"rms_norm_eps", 1e-5}});
  CHECK(refused("llama_tied_bf16", other) == exit_with{1,
                                                       {6538,
                                                        {other / "config.json", "hf_llama_tied_bf16_one_host",
                                                         "rms_norm_eps is 1e-05, expected 1e-06"}}});
  const tensors expected = tensors_of(folder);
  CHECK(expected.size() == 2 + 2 * 9);
  for (const char* layout : {"one", "tp2_pp2", "shards", "dp2_tp2"}) {
    run r = start(program_of("llama_tied_bf16", layout), folder, "arith:1");
    const tensors found = r.tensors(region::weights);
    CHECK(found.size() == expected.size());
    CHECK(found.at("wte") == expected.at("model.embed_tokens.weight"));
    for (const auto& [ours, theirs] : {std::pair("wq", "self_attn.q_proj"),
                                       {"wk", "self_attn.k_proj"},
                                       {"wv", "self_attn.v_proj"},
                                       {"wo", "self_attn.o_proj"},
                                       {"w1", "mlp.gate_proj"},
                                       {"w3", "mlp.up_proj"},
                                       {"w2", "mlp.down_proj"},
                                       {"norm1", "input_layernorm"},
                                       {"norm2", "post_attention_layernorm"}}) {
      CAPTURE(ours);
      CHECK(found.at(std::string("layers.1.") + ours) ==
            expected.at(std::string("model.layers.1.") + theirs + ".weight"));
    }
  }
}

TEST_CASE("another model is refused with all that differs, and no rank is touched") {
  const scratch files;
  const auto differences = [&](const std::string& program, const std::string& model, const json& changes) {
    const exit_with said = refused(program, changed(files, model, changes));
    REQUIRE(said.message.arguments.size() == 3);
    const std::string list = said.message.arguments[2];
    const exit_with expected{
        1, {6538, {files.path("changed/config.json"), "hf_" + program + "_one_host", list}}};
    CHECK(said == expected);
    return list;
  };
  CHECK(refused("gpt2", changed(files, "llama_gqa", {})) ==
        exit_with{1, {6537, {files.path("changed/config.json"), "\"llama\"", "hf_gpt2_one_host", "gpt2"}}});
  CHECK(differences("gpt2", "gpt2",
                    {{"n_layer", 3},
                     {"n_head", 8},
                     {"n_inner", 64},
                     {"n_positions", 16},
                     {"layer_norm_epsilon", 1e-6},
                     {"activation_function", "relu"}}) ==
        "n_layer is 3, expected 2; n_head is 8, expected 4; n_inner is 64, expected 128; activation_function "
        "is "
        "\"relu\", expected \"gelu_new\"; layer_norm_epsilon is 1e-06, expected 1e-05; n_positions is 16, "
        "expected at least 32");
  CHECK(differences("llama_gqa", "llama_gqa",
                    {{"rope_parameters", {{"rope_type", "llama3"}, {"rope_theta", 500000.0}}},
                     {"tie_word_embeddings", true},
                     {"head_dim", 16}}) ==
        "rope_theta is 500000.0, expected 10000.0; rope_type is \"llama3\", expected \"default\"; "
        "tie_word_embeddings is true, expected false; head_dim is 16, expected 8");
  CHECK(differences("llama_gqa", "llama_gqa",
                    {{"rms_norm_eps", nullptr}, {"num_key_value_heads", nullptr}, {"vocab_size", 100}}) ==
        "vocab_size is 100, expected 128; rms_norm_eps is 1e-06, expected 1e-05; num_key_value_heads is 4, "
        "expected 2");
  CHECK(differences("qwen3", "qwen3",
                    {{"head_dim", nullptr},
                     {"use_sliding_window", true},
                     {"num_key_value_heads", nullptr},
                     {"attention_bias", true}}) ==
        "attention_bias is true, expected false; num_key_value_heads is 4, expected 2; head_dim is 128, "
        "expected 16; use_sliding_window is true, expected false");
  CHECK(refused("no_family", folder_of("gpt2")) == exit_with{1, {6535, {"hf_no_family_one_host"}}});
  CHECK(differences("qwen3_moe_mlp_only", "qwen3_moe_mlp_only",
                    {{"num_local_experts", 16},
                     {"num_experts_per_tok", nullptr},
                     {"norm_topk_prob", nullptr},
                     {"mlp_only_layers", {1}},
                     {"intermediate_size", 64}}) ==
        "intermediate_size is 64, expected 48; num_experts is 16, expected 8; num_experts_per_tok is 8, "
        "expected 2; norm_topk_prob is false, expected true; mlp_only_layers is [1], expected [0]");
  CHECK(
      differences("mixtral", "mixtral",
                  {{"num_local_experts", 4}, {"sliding_window", 32}, {"router_jitter_noise", 0.5}}) ==
      "num_local_experts is 4, expected 8; sliding_window is 32, expected null; router_jitter_noise is 0.5, "
      "expected 0.0");
}

TEST_CASE(
    "how rotary positions are slowed is read, exported where both versions look, and another way is "
    "refused") {
  const scratch files;
  run from = start(program_of("llama_rope_llama3", "one"), folder_of("llama_rope_llama3"), "arith:1");
  const fs::path out = files.path("exported");
  export_weights(from.about, save(from, files), out, {.format = export_format::hugging_face});
  const json found = read_json(out / "config.json"),
             theirs = read_json(folder_of("llama_rope_llama3") / "config.json");
  CHECK(found["rope_parameters"] == theirs["rope_parameters"]);
  CHECK(found["rope_scaling"] == theirs["rope_parameters"]);
  CHECK_FALSE(found.contains("factor"));
  run again = start(program_of("llama_rope_llama3", "one"), out, "arith:1");
  CHECK((again.tensors(region::weights) == from.tensors(region::weights)));

  const auto differences = [&](const json& rope) {
    const exit_with said =
        refused("llama_rope_llama3", changed(files, "llama_rope_llama3", {{"rope_parameters", rope}}));
    CHECK(said.code == 1);
    CHECK(said.message.id == 6538);
    return said.message.arguments.at(2);
  };
  json other = theirs["rope_parameters"];
  other.update({{"factor", 4.0}, {"high_freq_factor", 2.0}, {"original_max_position_embeddings", 32}});
  CHECK(differences(other) ==
        "factor is 4.0, expected 8.0; high_freq_factor is 2.0, expected 4.0; "
        "original_max_position_embeddings is 32, expected 16");
  CHECK(
      differences({{"rope_theta", 10000.0}, {"rope_type", "linear"}, {"factor", 8.0}}) ==
      "rope_type is \"linear\", expected \"llama3\"; low_freq_factor is null, expected 1.0; high_freq_factor "
      "is null, expected 4.0; original_max_position_embeddings is null, expected 16");
}

TEST_CASE("tensors that are missing, too many or of another shape are listed by their names") {
  const scratch files;
  const fs::path folder = changed(files, "gpt2_sharded", {});
  fs::remove(folder / "model-00003-of-00003.safetensors");
  CHECK(refused("gpt2_sharded", folder) ==
        exit_with{1, {6585, {folder / "model-00003-of-00003.safetensors", "No such file or directory"}}});
  safetensors_writer out(folder / "model-00003-of-00003.safetensors",
                         {{"ln_f.weight", {31}, dtype::f32},
                          {"h.2.ln_1.weight", {1}, dtype::f32},
                          {"h.1.mlp.c_fc.weight", {32, 128}, dtype::f32}},
                         {});
  out.append(std::vector<double>(32 + 32 * 128).data(), 32 + 32 * 128);
  out.close();
  CHECK(refused("gpt2_sharded", folder) ==
        exit_with{1,
                  {6630,
                   {folder,
                    "missing: h.1.mlp.c_fc.bias, h.1.mlp.c_proj.bias, h.1.mlp.c_proj.weight, ln_f.bias; "
                    "unexpected: h.2.ln_1.weight; wrong shape: ln_f.weight [31] instead of [32]"}}});
}

TEST_CASE("an export takes the place of an earlier one of another layout or format, and of no other model") {
  const scratch files;
  run from = start(program_of("gpt2", "one"), folder_of("gpt2"), "arith:1");
  const fs::path out = files.path("exported"), saved = save(from, files);
  const tensors expected = tensors_of(folder_of("gpt2"));
  const auto names = [&] {
    std::set<std::string> all;
    for (const auto& entry : fs::directory_iterator(out)) all.insert(entry.path().filename().string());
    return all;
  };
  const auto write = [&](std::size_t file_bytes) {
    export_weights(from.about, saved, out, {.format = export_format::hugging_face, .file_bytes = file_bytes});
    tensors found = tensors_of(out);
    keep_positions(found, 32 * 32);
    return found.size() == expected.size();
  };
  const std::set<std::string> one{"config.json", "model.safetensors"};
  CHECK(write(5'000'000'000));
  CHECK(names() == one);
  CHECK(write(60'000));
  CHECK(names().size() > 4);
  CHECK_FALSE(names().contains("model.safetensors"));
  const std::size_t many = names().size();
  CHECK(write(30'000));
  CHECK(names().size() > many);
  CHECK(write(5'000'000'000));
  CHECK(names() == one);
  export_weights(from.about, saved, out);
  CHECK(names() == std::set<std::string>{"model.safetensors"});
  CHECK(write(60'000));
  const std::string own = contents(out / "config.json");
  const auto with = [&](const std::string& from, const std::string& to) {
    return std::string(own).replace(own.find(from), from.size(), to);
  };
  for (const std::string& text :
       {with("\"eos_token_id\": null", "\"eos_token_id\": 0"),
        with("\"bos_token_id\": null", "\"bos_token_id\": 0"), with("\n}", ",\n  \"pad_token_id\": 0\n}"),
        own + "\n", std::string("{}")}) {
    files.write("exported/config.json", text);
    CHECK(exit_of([&] { write(5'000'000'000); }) == exit_with{2, {6525, {out, "config.json"}}});
    CHECK(contents(out / "config.json") == text);
    CHECK(names().size() == many);
  }
  for (const char* name : {"model.safetensors", "model-00001-of-00002.safetensors"}) {
    fs::remove_all(out);
    fs::create_directories(out);
    fs::copy(folder_of("gpt2") / "model.safetensors", out / name);
    CHECK(exit_of([&] { write(5'000'000'000); }) == exit_with{2, {6525, {out, name}}});
  }
}

TEST_CASE("a head of its own is exported") {
  const scratch files;
  run untied(program_of("gpt2_untied", "one"));
  const fs::path out = files.path("exported");
  export_weights(untied.about, save(untied, files), out, {.format = export_format::hugging_face});
  CHECK(tensors_of(out).at("lm_head.weight") == untied.tensors(region::weights).at("lm_head"));
  CHECK(read_json(out / "config.json")["tie_word_embeddings"] == false);
  CHECK(read_json(out / "config.json")["n_inner"] == 48);
  run again = start(program_of("gpt2_untied", "one"), out, "arith:1");
  CHECK((again.tensors(region::weights) == untied.tensors(region::weights)));
}

TEST_CASE("LoRA adapters are exported merged into dense weights, and for PEFT beside the folder's weights") {
  for (const std::string model : {"gpt2", "qwen3"}) {
    CAPTURE(model);
    const scratch files;
    const fs::path out = files.path("exported");
    run adapted(program_of(model, "adapted"), "arith", 1e-2);
    CHECK(load_weights(*adapted.engine, folder_of(model)).size() == 8);
    for (int n = 0; n < 3; ++n) adapted.step();
    const fs::path saved = save(adapted, files, folder_of(model).string());
    export_weights(adapted.about, saved, out, {.merge = true, .format = export_format::hugging_face});
    export_weights(adapted.about, saved, files.path("adapter"), {.format = export_format::hugging_face});
    peft_folder peft(files.path("adapter"));
    CHECK(peft.check(tensors_in(folder_of(model) / "model.safetensors"),
                     tensors_in(out / "model.safetensors")) == std::pair(std::size_t{4}, std::size_t{0}));
    CHECK(peft.config["base_model_name_or_path"] == fs::weakly_canonical(folder_of(model)).string());
    run dense = start(program_of(model, "one"), out, "arith:1234");
    dense.steps = adapted.steps;
    dense.load();
    adapted.load();
    CHECK(std::abs(dense.engine->evaluate() - adapted.engine->evaluate()) <= 1e-12);
  }
}

TEST_CASE("the commands: train from a folder of theirs, export to one, eval it") {
  const scratch files;
  const auto call = [](const std::string& layout, const std::vector<std::string>& words) {
    return command(program_of("llama_gqa", layout), words);
  };
  const auto loss = [](const std::string& said) {
    return std::stod(said.substr(said.find("eval: loss ") + 11));
  };
  const std::string theirs = folder_of("llama_gqa").string(), saved = files.path("saved"),
                    out = files.path("out");
  const json expected = read_json(folder_of("llama_gqa") / "expected.json");
  const std::string rand = "rand:" + std::to_string(expected["seed"].get<int>());
  CHECK(std::abs(loss(call("tp2_pp2", {"eval", "--init", theirs, "--data", rand, "--steps", "1"})) -
                 expected["eval"]["loss"].get<double>()) <= 1e-10);
  CHECK(call("tp2_pp2", {"train", "--steps", "3", "--init", theirs, "--save", saved}).starts_with("0 "));
  CHECK(call("one", {"export", "--load", saved, "--format", "huggingface", "--out", out}) ==
        "0 exported " + out + "\n");
  CHECK(loss(call("one", {"eval", "--init", out, "--data", rand})) ==
        loss(call("one", {"eval", "--load", saved, "--data", rand})));
  testing::capture err(stderr);
  CHECK(call("one", {"export", "--load", saved, "--format", "gguf", "--out", out}) == "2 ");
  const std::string told = err.end();
  CHECK(told.starts_with("hf_llama_gqa_one_host: RC"));
  CHECK(rankc::test::said_in(told) == rankc::test::said{6028, {"gguf"}});
}

}  // namespace files_test
