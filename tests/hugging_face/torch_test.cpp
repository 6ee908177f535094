// SPDX-License-Identifier: Apache-2.0
// Models of the Qwen3 family train as PyTorch does in float64: losses of 25 steps, including the experts'
// balance loss.
#include <rankc/trainer/hash.hpp>

#include "models.hpp"

namespace torch_test {

using namespace hugging_face;

namespace {

struct line {
  std::string args;
  std::vector<double> losses;
};
std::vector<line> read_lines() {
  std::ifstream in(RANKC_TEST_ORACLES "/training/torch_losses_moe.jsonl");
  std::vector<line> all;
  for (std::string text; std::getline(in, text);) {
    const json j = json::parse(text);
    all.push_back({j.at("args"), j.at("losses")});
  }
  return all;
}

/// The name of an expert matrix in Mixtral's files.
std::string torch_name_of(const std::string& matrix) {
  if (matrix == "gate") return "w1";
  return matrix == "up" ? "w3" : "w2";
}

/// Load experts as PyTorch draws them: a matrix for each expert, drawn by its name. Gate and up are (ffn,
/// hidden), down is (hidden, ffn).
void give_experts(run& r, int experts) {
  for (const auto& p : rankc::runtime::global_parameters(r.about)) {
    const auto at = p.name.find("experts.");
    if (at == p.name.npos) continue;
    const std::string which = p.name.substr(at + 8);
    const std::string theirs = torch_name_of(which);
    const std::size_t hidden = p.rows / static_cast<std::size_t>(experts), ffn = p.columns;
    std::vector<double> all, one(hidden * ffn);
    for (int e = 0; e < experts; ++e) {
      rankc::runtime::hash_uniform(p.name.substr(0, at) + "experts." + std::to_string(e) + "." + theirs,
                                   p.std, 1, 0, one.size(), one.data());
      for (std::size_t c = 0; c < hidden; ++c)
        for (std::size_t f = 0; f < ffn; ++f)
          all.push_back(theirs == "w2" ? one[c * ffn + f] : one[f * hidden + c]);
    }
    rankc::runtime::write(
        *r.engine, p, rankc::runtime::region::weights, [&](std::size_t first, std::span<double> values) {
          std::copy_n(all.begin() + static_cast<std::ptrdiff_t>(first), values.size(), values.begin());
        });
  }
}

}  // namespace

TEST_CASE("losses of 25 steps are PyTorch's") {
  const std::vector<line> lines = read_lines();
  REQUIRE(lines.size() == 6);
  int programs = 0;
  double worst = 0;
  for (const registered& program : host_registry) {
    if (!program.job.starts_with("torch_")) continue;
    CAPTURE(program.job);
    CAPTURE(program.layout);
    const line& expected = lines.at(static_cast<std::size_t>(program.job.back() - '0'));
    const auto says = [&](const char* words) { return expected.args.find(words) != expected.args.npos; };
    REQUIRE(program.job.starts_with(says("tiny-moe") ? "torch_moe" : "torch_qwen3"));
    REQUIRE(expected.losses.size() == 25);
    // Without clipping, on random tokens, an error of 1e-14 in one weight moves the loss by 2e-13 in step 14
    // and by 2e-6 in step 25.
    const std::size_t steps = says("--clip 0 --data rand") ? 14 : 25;
    run r(program, says("--data rand") ? "rand" : "arith", says("--lr 3e-3") ? 3e-3 : 3e-4);
    give_experts(r, 8);
    for (std::size_t n = 0; n < steps; ++n) {
      const double off = std::abs(r.step().loss - expected.losses[n]);
      CHECK(off <= 1e-9);
      worst = std::max(worst, off);
    }
    ++programs;
  }
  CHECK(programs == 9);
  MESSAGE(programs << " programs, largest difference of a loss " << worst);
}

}  // namespace torch_test
