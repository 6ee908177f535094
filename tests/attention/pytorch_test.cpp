// SPDX-License-Identifier: Apache-2.0
// Decoders with windows, with attention sinks, and with value heads of another size than key heads, compute
// the same as PyTorch in float64, alone and split.
#include <cmath>

#include "transformers_oracle.hpp"

namespace attention_pytorch_test {

namespace {

using rankc::runtime::region;

std::vector<double> read(const rankc::runtime::safetensors_reader& file, const std::string& name) {
  std::vector<double> values(file.tensors().at(name).count);
  file.read(name, 0, values.size(), values.data());
  return values;
}

void check_near(const std::vector<double>& got, const std::vector<double>& expected, double tolerance) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    CAPTURE(i);
    CHECK(std::abs(got[i] - expected[i]) <= tolerance);
  }
}

/// Compares the programs of a job with the files of an oracle. Returns the number of programs.
int check_programs(std::string_view job, const std::string& folder) {
  const nlohmann::json expected = read_json(folder + "expected.json");
  const rankc::runtime::safetensors_reader gradients(folder + "gradients.safetensors"),
      logits(folder + "logits.safetensors");
  int programs = 0;
  for (const registered& program : host_registry) {
    if (program.job != job) continue;
    CAPTURE(program.layout);
    run r(program);
    load_weights_of(folder, r, [](const std::string& name) { return name; });
    transformers_oracle::set_batch(r, expected["rows"]);
    CHECK(std::abs(r.engine->evaluate() - expected["loss"].get<double>()) <= 1e-13);
    if (r.about.world() == 1) {
      const std::vector<double> all = read(logits, "logits");
      for (std::size_t token = 0; token < 16; ++token) {
        std::vector<double> row(16);
        r.engine->logits(0, token, row.data());
        const auto begin = all.begin() + static_cast<std::ptrdiff_t>(16 * token);
        check_near(row, {begin, begin + 16}, 1e-13);
      }
    }
    r.update();
    for (const auto& [name, gradient] : r.tensors(region::gradients)) {
      CAPTURE(name);
      check_near(gradient, read(gradients, name), 1e-14);
    }
    ++programs;
  }
  return programs;
}

}  // namespace

TEST_CASE(
    "logits, the loss and every gradient of a decoder with windows of 1, 2, 3 and 5 are those of PyTorch") {
  CHECK(check_programs("windows_oracle", RANKC_TEST_ORACLES "/windows/") >= 2);
}

TEST_CASE("logits, the loss and every gradient of a decoder with sinks are those of PyTorch") {
  CHECK(check_programs("sunk_oracle", RANKC_TEST_ORACLES "/sinks/") >= 2);
}

TEST_CASE("logits, the loss and every gradient of a decoder with other value heads are those of PyTorch") {
  CHECK(check_programs("values_oracle", RANKC_TEST_ORACLES "/value_heads/") >= 2);
}

}  // namespace attention_pytorch_test
