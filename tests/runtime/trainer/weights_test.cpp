// SPDX-License-Identifier: Apache-2.0
// Weights of labels, from a file next to a token file and from arrays.
#include <rankc/runtime/label_weights.hpp>
#include <rankc/trainer/data.hpp>

#include "../../exit_with.hpp"
#include "fake_run.hpp"
#include "token_files.hpp"

#include <doctest/doctest.h>
#include <cmath>
#include <limits>

namespace weights_test {

using namespace rankc::runtime;
using rankc::test::exit_of, rankc::test::exit_with, rankc::test::said, rankc::test::said_in;

namespace {

/// A program whose labels have weights.
struct weighing_program : fake_program {
  weighing_program() : fake_program(1, 1, 1) {
    about.token_weights = true;
    layouts.front().inputs = inputs;
  }
  const input_row inputs[1]{{.name = "weights", .where = {}}};
};

/// The weight of a token that counting() wrote.
float weight_of(std::int32_t token) { return 0.5F * static_cast<float>(token % 4); }

/// The weights of tokens `first`, `first` + 1, ...
std::string weights_from(int first, int count) {
  std::string bytes;
  for (int token = first; token < first + count; ++token) bytes += bytes_of(weight_of(token));
  return bytes;
}

dataset open(const weighing_program& program, const std::string& data, const sample_order& order = {}) {
  std::vector<opened_source> sources = open_sources(parse_data_spec(data), program.about);
  const std::vector orders(sources.size(), order);
  return dataset(std::move(sources), program.about.vocab_used, program.about.seq, orders, {});
}

/// Checks that each target of some samples has its weight.
void check_samples(const dataset& data, data_part which, std::uint64_t samples, int seq) {
  const auto size = static_cast<std::size_t>(seq);
  for (std::uint64_t s = 0; s < samples; ++s) {
    std::vector<std::int32_t> tokens(size), targets(size);
    std::vector<double> weights(size, -1);
    double* const inputs[]{weights.data()};
    data.sample(s, {tokens.data(), targets.data(), inputs}, which);
    for (std::size_t i = 0; i < size; ++i) {
      CHECK(targets[i] == tokens[i] + 1);
      CHECK(weights[i] == static_cast<double>(weight_of(targets[i])));
    }
  }
}

}  // namespace

TEST_CASE("each target has the weight of its token, in every order, part, folder and mixture") {
  const scratch files;
  const weighing_program program;
  const int seq = program.about.seq;
  counting(files, "d/a.bin", 0, 50);
  counting(files, "d/b.bin", 50, 51);
  files.write("d/a.weights", weights_from(0, 50));
  files.write("d/b.weights", weights_from(50, 51));
  const dataset folder = open(program, files.path("d"));
  check_samples(folder, data_part::trained, 100 / static_cast<std::uint64_t>(seq), seq);
  CHECK(folder.text().ends_with(": 101 tokens in 2 files, each with a weight"));
  const dataset drawn = open(program, files.path("d"), {parse_shuffle("3"), 0.2});
  check_samples(drawn, data_part::trained, 10, seq);
  check_samples(drawn, data_part::held_out, 3, seq);
  check_samples(open(program, files.path("d/a.bin") + ":0.5," + files.path("d/b.bin") + ":0.5"),
                data_part::trained, 10, seq);
}

TEST_CASE("a damaged weights file is refused with its file, position and value") {
  const scratch files;
  const weighing_program program;
  const std::string file = counting(files, "t.bin", 0, 101), name = files.path("t.weights"),
                    good = weights_from(0, 101);
  const auto refused = [&](const std::string& bytes) {
    files.write("t.weights", bytes);
    return exit_of([&] { open(program, file); });
  };
  CHECK(refused(good.substr(1)) == exit_with{1, {6264, {name, "403", file, "101", "404"}}});
  CHECK(refused(good + '\0') == exit_with{1, {6264, {name, "405", file, "101", "404"}}});
  for (const float wrong : {-1.0F, 1e-31F, 1e31F, std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN()}) {
    const exit_with found = refused(good.substr(0, 68) + bytes_of(wrong) + good.substr(72));
    CHECK(found == exit_with{1,
                             {6265,
                              {name, found.message.arguments.at(1), "17", found.message.arguments.at(3),
                               found.message.arguments.at(4)}}});
  }
}

TEST_CASE("data has weights if the plan's labels have weights, and only then") {
  const scratch files;
  const weighing_program weighing;
  const fake_program plain(1, 1, 1);
  const std::string file = counting(files, "t.bin", 0, 101),
                    text = files.write("t.txt", std::string(99, 'x'));
  for (const std::string& data : {file, text, std::string("rand:3")}) {
    const outcome refused = run(weighing, {"train", "--steps", "1", "--data", data});
    CHECK(refused.code == 1);
    CHECK(refused.installs == 0);
    CHECK(said_in(refused.err) == said{6267, {"fake", data}});
  }
  const std::string name = files.write("t.weights", weights_from(0, 101));
  const outcome done = run(weighing, {"train", "--steps", "1", "--data", file});
  CHECK(done.code == 0);
  CHECK(done.out.find("t.bin: 101 tokens, each with a weight") != std::string::npos);
  CHECK(said_in(run(plain, {"train", "--steps", "1", "--data", file}).err) == said{6268, {name}});
}

TEST_CASE("weights beside a file of Megatron are refused") {
  const scratch files;
  const weighing_program program;
  const std::string prefix = megatron<std::uint16_t>(files, "t", 8, {{1, 2, 3}, {4, 5, 6}}),
                    name = files.write("t.weights", weights_from(0, 6));
  CHECK(exit_of([&] { open(program, prefix + ".bin"); }) == exit_with{1, {6266, {name}}});
}

TEST_CASE("changed weights are a change of the data") {
  const scratch files;
  const weighing_program program;
  const std::string file = counting(files, "t.bin", 0, 101), save = files.path("s");
  files.write("t.weights", weights_from(0, 101));
  REQUIRE(run(program, {"train", "--steps", "1", "--data", file, "--save", save}).code == 0);
  CHECK(run(program, {"train", "--steps", "2", "--load", save}).code == 0);
  const std::string name = files.write("t.weights", weights_from(1, 101));
  const outcome refused = run(program, {"train", "--steps", "2", "--load", save});
  CHECK(refused.code == 1);
  CHECK(said_in(refused.err, 6180).arguments.at(2) == name + " has other bytes");
}

}  // namespace weights_test
