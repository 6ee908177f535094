// SPDX-License-Identifier: Apache-2.0
// Log-probabilities of given continuations. The fake engine's logits are 3, 2, 1 for the three tokens after
// the last.
#include <rankc/trainer/score.hpp>

#include "../../exit_with.hpp"
#include "fake_run.hpp"

#include <doctest/doctest.h>
#include <cmath>

using namespace rankc::runtime;
using rankc::test::exit_with, rankc::test::said_in;

namespace {

/// The log-probability of the token `ahead` of the last one.
double logprob(int ahead) { return 4 - ahead - std::log(std::exp(3.0) + std::exp(2.0) + std::exp(1.0)); }

struct scored {
  const char* request;
  double logprob;
  bool greedy;
  int tokens;
};

/// More than one batch of any layout below.
const std::vector<scored> cases{
    {R"({"context": [65], "continuation": [66]})", logprob(1), true, 1},
    {R"({"context": [65], "continuation": [67]})", logprob(2), false, 1},
    {R"({"context": [1, 2], "continuation": [3, 4, 7]})", 2 * logprob(1) + logprob(3), false, 3},
    {R"({"continuation": [201, 202, 203, 204], "context": [200], "more": "is not read"})", 4 * logprob(1),
     true, 4},
    {R"({"context": [9, 9, 9, 9, 9, 9, 20], "continuation": [21, 23]})", logprob(1) + logprob(2), false, 2},
    {R"({"context": [255], "continuation": [0]})", logprob(1), true, 1},
    {R"({"context": [30, 31, 32], "continuation": [33]})", logprob(1), true, 1},
    {R"({"context": [30, 31, 32], "continuation": [35, 36]})", logprob(3) + logprob(1), false, 2},
    {R"({"context": [0], "continuation": [1]})", logprob(1), true, 1},
};

std::string all_requests() {
  std::string text;
  for (const scored& each : cases) text += std::string(each.request) + "\n\n";
  return text;
}

}  // namespace

TEST_CASE("score answers in order, the same in every layout") {
  const scratch files;
  fake_program one(1, 1, 1), many(2, 2, 2), tp(1, 1, 4);
  for (fake_program* p : {&one, &many, &tp}) p->leave_logits();
  const std::string save = files.path("s"), requests = files.write("r.jsonl", all_requests());
  REQUIRE(run(one, {"train", "--steps", "1", "--save", save}).code == 0);
  for (const fake_program* p : {&one, &many, &tp}) {
    const outcome done = run(*p, {"score", "--load", save, "--requests", requests});
    REQUIRE_MESSAGE(done.code == 0, done.err);
    std::istringstream lines(done.out);
    for (const scored& expected : cases) {
      CAPTURE(expected.request);
      std::string line;
      REQUIRE(std::getline(lines, line));
      const auto answer = nlohmann::json::parse(line);
      CHECK(answer["logprob"].get<double>() == doctest::Approx(expected.logprob).epsilon(1e-12));
      CHECK(answer["greedy"] == expected.greedy);
      CHECK(answer["tokens"] == expected.tokens);
      CHECK(answer.size() == 3);
    }
    CHECK(lines.peek() == EOF);
    CHECK(done.err.find("scored 9 requests in ") != std::string::npos);
  }
}

TEST_CASE("what score cannot answer is refused by file and line") {
  const scratch files;
  fake_program program(1, 1, 1);
  const fake_program without(1, 1, 1);
  program.leave_logits();
  const std::string save = files.path("s");
  REQUIRE(run(program, {"train", "--steps", "1", "--save", save}).code == 0);
  const auto says = [&](const fake_program& p, const std::string& text) {
    const outcome done = run(p, {"score", "--load", save, "--requests", files.write("r", text)});
    CHECK(done.installs == 0);
    CHECK(done.out == "");
    return exit_with{done.code, said_in(done.err)};
  };
  const std::string good = R"({"context": [1], "continuation": [2]})", second = files.path("r") + ", line 2";
  const auto says_of_second = [&](const std::string& line) {
    return says(program, good + "\n" + line + "\n" + good);
  };
  CHECK(says(without, good) == exit_with{1, {6065, {"fake"}}});
  CHECK(says(program, "\n \n") == exit_with{1, {6203, {files.path("r")}}});
  CHECK(says_of_second(R"({"context": [], "continuation": [2]})") ==
        exit_with{1, {6200, {second, "context"}}});
  CHECK(says_of_second(R"({"context": [1], "continuation": []})") ==
        exit_with{1, {6200, {second, "continuation"}}});
  CHECK(says_of_second(R"({"context": [256], "continuation": [2]})") ==
        exit_with{1, {6201, {second, "context", "256", "255"}}});
  CHECK(says_of_second(R"({"context": [1], "continuation": [1, 2, 3, 4, 5]})") ==
        exit_with{1, {6202, {second, "5", "4"}}});
  CHECK(says_of_second(R"({"context": [1], "continuation": [-2]})").message.id == 6589);
  CHECK(says_of_second(R"({"context": [1]})").message.id == 6589);
  CHECK(says_of_second(R"([1, 2])").message.id == 6589);
  CHECK(says_of_second(R"({"context": [1], "continuation": [2)").message.id == 6596);
  CHECK(says_of_second(R"({"context": [1], "context": [1], "continuation": [2]})").message.id == 6594);
  CHECK(run(program, {"score", "--load", save}).code == 2);
  CHECK(run(program, {"score", "--requests", "r"}).code == 2);
  CHECK(run(program, {"score", "--load", save, "--requests", ""}).code == 2);
  CHECK(run(program, {"score", "--load", save, "--requests", files.path("none")}).code == 1);
}
