// SPDX-License-Identifier: Apache-2.0
// Token files written by Megatron and llm.c, and Megatron's order of their samples (tests/oracles/data).
#include <rankc/trainer/data.hpp>
#include <rankc/trainer/megatron_index.hpp>

#include "../../exit_with.hpp"
#include "scratch.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <algorithm>
#include <cstring>
#include <numeric>

using namespace rankc::runtime;
using nlohmann::json;
using rankc::test::exit_of, rankc::test::exit_with, rankc::test::said;

namespace {

const std::string folder = RANKC_DATA_ORACLES;

json expected() { return json::parse(contents(folder + "/expected.json")); }

std::vector<std::int32_t> all_of(const token_stream& stream) {
  std::vector<std::int32_t> tokens(stream.size());
  stream.copy(0, tokens.size(), tokens.data());
  return tokens;
}

}  // namespace

TEST_CASE("numpy's RandomState") {
  const json of = expected();
  for (const json& c : of["numpy_randomstate"]) {
    numpy_random random(c["seed"].get<std::uint32_t>());
    for (const json& drawn : c["first_uint32"]) CHECK(random.next() == drawn.get<std::uint32_t>());
    for (const json& shuffled : c["shuffle_of_arange"]) {
      std::vector<int> values(shuffled.size());
      std::iota(values.begin(), values.end(), 0);
      numpy_random again(c["seed"].get<std::uint32_t>());
      again.shuffle(std::span(values));
      CHECK(values == shuffled.get<std::vector<int>>());
    }
  }
}

TEST_CASE("Megatron's index and the sequences it names") {
  const json of = expected();
  for (const char* name : {"megatron_uint16", "megatron_int32"}) {
    const json& e = of[name];
    const std::string bin = folder + "/" + e["bin"].get<std::string>(),
                      idx = folder + "/" + e["idx"].get<std::string>();
    const megatron_index index = read_megatron_index(idx, std::filesystem::file_size(bin));
    CHECK(index.type == (e["dtype"] == "uint16" ? token_type::u16 : token_type::i32));
    CHECK(index.lengths == e["sequence_lengths"].get<std::vector<std::int32_t>>());
    CHECK(index.pointers == e["sequence_pointers"].get<std::vector<std::int64_t>>());
    CHECK(index.documents == e["document_indices"].get<std::vector<std::int64_t>>());
    const int vocab = e["vocab"];
    for (const std::string& path : {bin, idx, folder + "/" + name}) {  // Megatron's users omit the extension
      const token_stream stream(path, vocab);
      const auto sequences = e["sequences"].get<std::vector<std::vector<std::int32_t>>>();
      REQUIRE(stream.pieces().size() == sequences.size());
      std::vector<std::int32_t> end_to_end;
      for (std::size_t s = 0; s < sequences.size(); ++s) {
        std::vector<std::int32_t> tokens(stream.pieces()[s].count);
        stream.copy(stream.pieces()[s], 0, tokens.size(), tokens.data());
        CHECK(tokens == sequences[s]);
        end_to_end.insert(end_to_end.end(), sequences[s].begin(), sequences[s].end());
      }
      CHECK(all_of(stream) == end_to_end);
    }
    const auto given = e["documents_given"].get<std::vector<std::vector<int>>>();
    REQUIRE(given.size() + 1 == index.documents.size());
    for (std::size_t d = 0; d < given.size(); ++d) {
      const std::vector<int> lengths(index.lengths.begin() + index.documents[d],
                                     index.lengths.begin() + index.documents[d + 1]);
      CHECK(lengths == given[d]);
    }
  }
}

TEST_CASE("GPTDataset's order and samples") {
  const json of = expected();
  std::size_t cases = 0;
  for (const json& c : of["gpt_dataset"]) {
    CAPTURE(c["case"].get<std::string>());
    const json& e = of[c["of"].get<std::string>()];
    const auto lengths = e["sequence_lengths"].get<std::vector<std::int32_t>>();
    const bool extra = c["add_extra_token"];
    const std::int64_t seq = c["seq"], samples = c["num_samples_requested"].is_null()
                                                     ? 0
                                                     : c["num_samples_requested"].get<std::int64_t>();
    const megatron_order order = order_of_megatron(lengths, seq, c["seed"], samples, extra);
    CHECK(order.epochs == c["epochs"].get<int>());
    CHECK(order.samples() == c["samples"].get<std::uint64_t>());
    CHECK(order.sequences == c["document_index"].get<std::vector<std::int32_t>>());
    CHECK(order.shuffle == c["shuffle_index"].get<std::vector<std::uint32_t>>());
    std::vector<megatron_order::sample_start> starts;
    for (const json& place : c["sample_index"]) starts.push_back({place[0], place[1]});
    CHECK(order.starts == starts);
    ++cases;
    if (!extra) continue;  // a run needs the token after each sample
    const std::string spec = "megatron:" + std::to_string(c["seed"].get<std::uint32_t>()) +
                             (samples > 0 ? ":" + std::to_string(samples) : "");
    const dataset data(parse_data_spec(folder + "/" + c["of"].get<std::string>()), e["vocab"],
                       static_cast<int>(seq), {parse_shuffle(spec)});
    CHECK(data.epoch(data_part::trained) == order.samples());
    for (std::size_t i = 0; i < c["texts"].size(); ++i) {
      std::vector<std::int32_t> tokens(static_cast<std::size_t>(seq)), targets(tokens.size());
      data.sample(i, tokens.data(), targets.data());
      tokens.push_back(targets.back());
      CHECK(tokens == c["texts"][i].get<std::vector<std::int32_t>>());
      if (i > 0) continue;
      tokens.pop_back();
      CHECK(tokens == c["item0"]["tokens"].get<std::vector<std::int32_t>>());
      CHECK(targets == c["item0"]["labels"].get<std::vector<std::int32_t>>());
    }
  }
  CHECK(cases == of["gpt_dataset"].size());
  CHECK(cases >= 4);
}

TEST_CASE("llm.c's two forms") {
  const json of = expected();
  for (const char* name : {"llmc_gpt2_v1.bin", "llmc_llama3_v7.bin"}) {
    const json& e = of[name];
    const std::vector<std::int32_t> tokens = all_of(token_stream(folder + "/" + name, 128256));
    CHECK(tokens.size() == e["tokens"].get<std::size_t>());
    CHECK(std::accumulate(tokens.begin(), tokens.end(), std::int64_t{0}) == e["sum"].get<std::int64_t>());
    CHECK(std::vector(tokens.begin(), tokens.begin() + 16) == e["first"].get<std::vector<std::int32_t>>());
    CHECK(std::vector(tokens.end() - 16, tokens.end()) == e["last"].get<std::vector<std::int32_t>>());
    CHECK(std::count_if(tokens.begin(), tokens.end(), [](int t) { return t > 65535; }) ==
          e["over_65535"].get<int>());
  }
}

TEST_CASE("a damaged index is refused by name, and says what is wrong") {
  const scratch files;
  const std::string idx = contents(folder + "/megatron_uint16.idx"),
                    bin = contents(folder + "/megatron_uint16.bin");
  const std::string file = files.write("d.bin", bin);
  const auto refused = [&](std::string bytes) {
    files.write("d.idx", bytes);
    exit_with found = exit_of([&] { token_stream(file, 50000); });
    CHECK(found.code == 1);
    std::vector<std::string>& arguments = found.message.arguments;
    REQUIRE_FALSE(arguments.empty());
    CHECK(arguments.front() == files.path("d.idx"));
    arguments.erase(arguments.begin());
    return found.message;
  };
  const auto with = [&](std::size_t at, auto value) {
    std::string bytes = idx;
    std::memcpy(bytes.data() + at, &value, sizeof value);
    return bytes;
  };
  CHECK(refused("MMIDIDX") == said{6111, {"34"}});
  CHECK(refused(with(0, 'X')) == said{6111, {"34"}});
  CHECK(refused(with(9, std::uint64_t{2})) == said{6112, {"2"}});
  CHECK(refused(with(17, std::uint8_t{7})) == said{6110, {"7"}});
  CHECK(refused(idx.substr(0, 240)) == said{6113, {"10", "11", "240"}});
  CHECK(refused(idx + "x") == said{6114, {"10", "11", "243"}});
  CHECK(refused(with(18, ~std::uint64_t{0})) == said{6113, {"18446744073709551615", "11", "242"}});
  CHECK(refused(with(34, std::int32_t{-1})) == said{6115, {"0", "-1", "2", "0", "410"}});
  CHECK(refused(with(34, std::int32_t{1000})) == said{6115, {"0", "1000", "2", "0", "410"}});
  CHECK(refused(with(74, std::int64_t{400})) == said{6115, {"0", "23", "2", "400", "410"}});
  files.write("d.idx", idx + std::string(10, '\0'));  // the modes of a multimodal file
  CHECK(token_stream(file, 50000).size() == 205);
  const exit_with outside = exit_of([&] { token_stream(file, 48452); });
  CHECK(outside.message.id == 6157);
  CHECK(outside.message.arguments.at(1).starts_with("48"));
}

TEST_CASE("Megatron's order is of sequences, and keeps the last of them for evaluation") {
  const auto open = [](const std::string& data, const std::string& shuffle, double held_out = 0) {
    return dataset(parse_data_spec(data), 128256, 16, {parse_shuffle(shuffle), held_out});
  };
  const std::string path = folder + "/megatron_uint16";
  const std::string llm_c = folder + "/llmc_gpt2_v1.bin";
  CHECK(exit_of([&] { open(llm_c, "megatron:1"); }) == exit_with{2, {6136, {llm_c}}});
  CHECK(exit_of([&] { open("arith:1", "7"); }) == exit_with{2, {6050, {}}});
  const dataset data = open(path, "megatron:3", 0.2);  // two of ten: 50 and 5 tokens
  CHECK(data.epoch(data_part::held_out) == 3);
  CHECK(data.epoch(data_part::trained) == (150 - 1) / 16);
  const json sequences = expected()["megatron_uint16"]["sequences"];
  std::vector<std::int32_t> tokens(16), targets(16);
  data.sample(1, tokens.data(), targets.data(), data_part::held_out);
  const auto last_but_one = sequences[8].get<std::vector<std::int32_t>>();
  CHECK(tokens == std::vector(last_but_one.begin() + 16, last_but_one.begin() + 32));
}
