// SPDX-License-Identifier: Apache-2.0
// The commands of the encoders' plans: describe, train, eval and export. Each unsupported command gives one
// error sentence.
#include "../extremes/bounded_run.hpp"
#include "../runtime/trainer/scratch.hpp"
#include "../said.hpp"
#include "../slowness.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace {

using nlohmann::json;
using rankc::runtime::contents, rankc::runtime::scratch;
using rankc::test::said, rankc::test::said_in;
using words = std::vector<std::string>;

constexpr int samples = 64;

template <class T>
void write_npy(const scratch& files, const std::string& name, const std::string& type,
               const std::vector<int>& shape, const std::function<T(int)>& value) {
  int count = 1;
  std::string text;
  for (const int n : shape) {
    count *= n;
    text += std::to_string(n) + ", ";
  }
  std::string header = "{'descr': '" + type + "', 'fortran_order': False, 'shape': (" + text + "), }\n";
  std::string bytes = std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0' + header;
  for (int i = 0; i < count; ++i) {
    const T one = value(i);
    bytes.append(reinterpret_cast<const char*>(&one), sizeof one);
  }
  files.write(name, bytes);
}

/// A plan of dsl/plans, with data for it.
struct encoder {
  const char *program, *name, *inputs, *second;
  scratch files{};

  rankc::test::bounded_run try_it(words all) const {
    all.insert(all.begin(), program);
    const auto limit = rankc::test::scaled(60);
    return rankc::test::run_bounded(all, files.path(), limit, limit);
  }
  std::string run(const words& all) const {
    const auto done = try_it(all);
    REQUIRE_MESSAGE(done.code == 0, done.err);
    return done.out;
  }
  void check_refused(const words& all, const said& expected) const {
    const auto done = try_it(all);
    CHECK((done.code == 1 || done.code == 2));
    CHECK(said_in(done.err) == expected);
  }
};

float wave(int i) { return std::sin(0.37f * static_cast<float>(i)); }

void check_commands(const encoder& e) {
  const json about = json::parse(e.run({"describe", "--json"}));
  REQUIRE(about["inputs"].size() == 2);
  CHECK(about["inputs"][0]["name"] == e.inputs);
  CHECK(about["inputs"][1]["name"] == e.second);
  CHECK(e.run({"describe"}).find(e.inputs) != std::string::npos);
  const std::string trained =
      e.run({"train", "--data", "arrays:data", "--steps", "4", "--save", "save", "--shuffle", "1"});
  CHECK(trained.find("done: step 4 of 4") != std::string::npos);
  const std::string of_run = e.run({"eval", "--load", "save", "--data", "arrays:data"});
  CHECK(of_run.find("eval: loss ") != std::string::npos);
  CHECK(of_run.find(" over all 64 samples") != std::string::npos);
  CHECK(of_run.find("nats") == std::string::npos);

  e.run({"export", "--load", "save", "--out", "out"});
  const std::string file = contents(e.files.path("out/model.safetensors"));
  std::uint64_t size = 0;
  REQUIRE(file.size() > sizeof size);
  std::memcpy(&size, file.data(), sizeof size);
  const json tensors = json::parse(file.substr(sizeof size, size));
  std::int64_t elements = 0;
  for (const auto& [name, tensor] : tensors.items()) {
    if (name == "__metadata__") continue;
    CHECK(tensor["dtype"] == "F32");
    std::int64_t count = 1;
    for (const std::int64_t n : tensor["shape"]) count *= n;
    elements += count;
  }
  CHECK(elements == about["parameters"].get<std::int64_t>());

  e.check_refused({"export", "--load", "save", "--format", "huggingface", "--out", "hf"}, {6535, {e.name}});
  const std::string both = std::string(e.inputs) + ", " + e.second;
  e.check_refused({"generate", "--load", "save", "--prompt", "a"}, {6091, {e.name, both, "generate"}});
  e.files.write("requests.jsonl", "{\"context\": [1], \"continuation\": [2]}\n");
  e.check_refused({"score", "--load", "save", "--requests", "requests.jsonl"},
                  {6091, {e.name, both, "score"}});
}

}  // namespace

TEST_CASE("the commands of the vision transformer") {
  const encoder e{VIT, "vit", "patches", "labels"};
  write_npy<float>(e.files, "data/patches.npy", "<f4", {samples, 16, 16}, wave);
  write_npy<std::int32_t>(e.files, "data/labels.npy", "<i4", {samples}, [](int i) { return i % 4; });
  check_commands(e);
}

TEST_CASE("the commands of the regression encoder") {
  const encoder e{REGRESSION, "regression", "features", "target_values"};
  write_npy<float>(e.files, "data/features.npy", "<f4", {samples, 16, 8}, wave);
  write_npy<float>(e.files, "data/target_values.npy", "<f4", {samples, 2}, wave);
  check_commands(e);
}
