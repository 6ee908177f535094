// SPDX-License-Identifier: Apache-2.0
// The data that `eval` evaluates: all of it, each sample once, and for a run its held-out part.
#include <rankc/trainer/main.hpp>

#include "../../../runtime/trainer/mean_loss.hpp"
#include "../../exit_with.hpp"
#include "fake_losses.hpp"
#include "fake_run.hpp"

#include <doctest/doctest.h>
#include <algorithm>
#include <filesystem>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

using namespace rankc::runtime;
using rankc::test::exit_with, rankc::test::said_in;

namespace {

std::string evaluated(const fake_program& program, std::vector<std::string> words) {
  words.insert(words.begin(), "eval");
  const outcome done = run(program, words);
  CHECK_MESSAGE(done.code == 0, done.err);
  return done.out;
}

/// The text from `before` to the end of its line.
std::string rest_after(const std::string& out, const std::string& before) {
  const std::size_t at = out.find(before);
  REQUIRE_MESSAGE(at != out.npos, out);
  const std::size_t begin = at + before.size();
  return out.substr(begin, out.find('\n', begin) - begin);
}

double loss_in(const std::string& out, const std::string& before = "eval: loss ") {
  return std::stod(rest_after(out, before));
}

doctest::Approx about(double loss) { return doctest::Approx(loss).epsilon(1e-10); }

}  // namespace

TEST_CASE("eval measures each sample of its data once, whatever a batch has") {
  const scratch files;
  const fake_program one(1, 1, 1), many(2, 2, 2);  // a batch of `many` has 8 samples
  for (const int samples : {1, 5, 7, 8, 9, 16, 23}) {
    CAPTURE(samples);
    const auto n = static_cast<std::uint64_t>(samples);
    const std::string text = files.write("t.txt", text_of(4 * samples + 2));
    for (const fake_program* p : {&one, &many}) {
      const std::string out = evaluated(*p, {"--data", text});
      CHECK(loss_in(out) == about(mean_loss_of(*p, text, 0, n)));
      CHECK(rest_after(out, " nats per token") ==
            " over all " + std::to_string(samples) + " samples of 4 tokens");
      const std::string some = evaluated(*p, {"--data", text, "--steps", "1"});
      CHECK(loss_in(some) == about(mean_loss_of(*p, text, 0, std::min<std::uint64_t>(n, 8))));
      if (samples > 8) CHECK(rest_after(some, " nats per token") == " over 8 samples of 4 tokens");
    }
  }
  CHECK(rest_after(evaluated(one, {"--data", "rand:1"}), " nats per token") ==
        " over 80 samples of 4 tokens");
}

TEST_CASE("eval measures each of several sources whole, and their mean by shares") {
  const scratch files;
  const fake_program program(1, 1, 1);
  const std::string a = files.write("a.txt", text_of(50)), b = files.write("b.txt", text_of(22));
  const std::string out = evaluated(program, {"--data", a + ":3," + b + ":1"});
  const double of_a = mean_loss_of(program, a, 0, 12), of_b = mean_loss_of(program, b, 0, 5);
  CHECK(loss_in(out, a + ": loss ") == about(of_a));
  CHECK(loss_in(out, b + ": loss ") == about(of_b));
  CHECK(loss_in(out) == about(0.75 * of_a + 0.25 * of_b));
}

TEST_CASE("eval of a run measures what the run holds out, and other data in its order") {
  const scratch files;
  const fake_program program(1, 1, 1);
  const std::string text = files.write("t.txt", text_of(801)), other = files.write("o.txt", text_of(100)),
                    held = files.path("h.txt"), one = files.write("one.txt", text_of(5));
  int number = 0;
  for (const std::vector<std::string>& held_out :
       {std::vector<std::string>{"--eval-fraction", "0.3"}, {"--eval-data", held}}) {
    const std::string save = files.path("s" + std::to_string(number++)), metrics = files.path("m");
    files.write("h.txt", text_of(60));
    std::vector<std::string> words{"train",    "--steps",   "2",    "--data",    text, "--lr",
                                   "0",        "--save",    save,   "--shuffle", "1",  "--lr-schedule",
                                   "constant", "--metrics", metrics};
    words.insert(words.end(), held_out.begin(), held_out.end());
    REQUIRE(run(program, words).code == 0);
    const std::string of_run = evaluated(program, {"--load", save});
    CHECK(loss_in(of_run) == about(held_out.front() == "--eval-data"
                                       ? mean_loss_of(program, held, 0, 14)
                                       : mean_loss_of(program, text, 140, 200)));
    CHECK(of_run.find("\ndata: held out of ") != of_run.npos);
    CHECK(of_run.find("RC6172") == of_run.npos);
    CHECK(loss_in(of_run) == about(lines_of(metrics)[1]["eval_loss"].get<double>()));
    std::filesystem::remove(held);
    for (const std::string& data : {other, one, std::string("arith:1")}) {
      CAPTURE(data);
      const std::string loaded = evaluated(program, {"--load", save, "--data", data});
      CHECK(loss_in(loaded) == loss_in(evaluated(program, {"--data", data})));
      CHECK(loaded.find("RC6172") == loaded.npos);
    }
  }
  // The held-out part begins at the token that the run had, even if the plan has another seq.
  const std::string save = files.path("s0");
  fake_program shorter(1, 1, 1);
  shorter.about.seq = 2;
  const std::string of_shorter = evaluated(shorter, {"--load", save});
  CHECK(rest_after(of_shorter, " nats per token") == " over all 120 samples of 2 tokens");
  files.write("t.txt", text_of(900));
  const outcome changed = run(program, {"eval", "--load", save});
  CHECK(changed.code == 1);
  CHECK(said_in(changed.err).id == 6180);
}

TEST_CASE("eval of a run that holds nothing out says that the run trains on the data") {
  const scratch files;
  const fake_program program(1, 1, 1);
  const std::string text = files.write("t.txt", text_of(101)), save = files.path("s");
  REQUIRE(run(program, {"train", "--steps", "1", "--data", text, "--save", save, "--shuffle", "3", "--lr",
                        "0", "--lr-schedule", "constant"})
              .code == 0);
  const std::string out = evaluated(program, {"--load", save});
  CHECK(out.find("note: RC6172: this is the loss of " + text + ", which the run trains on") != out.npos);
  CHECK(loss_in(out) == about(mean_loss_of(program, text, 0, 25)));
}

TEST_CASE("eval measures labels alone, and prints router losses and dropped picks apart") {
  const scratch files;
  fake_program one(1, 1, 1), many(2, 2, 2);
  for (fake_program* p : {&one, &many}) {
    p->add_routers();
    for (const int samples : {8, 11, 16, 23}) {
      CAPTURE(samples);
      const std::string text = files.write("t.txt", text_of(4 * samples + 2));
      const dataset data(parse_data_spec(text), 256, 4);
      const auto mean_token = [&](int s) {
        std::vector<std::int32_t> tokens(4), targets(4);
        data.sample(static_cast<std::uint64_t>(std::min(s, samples - 1)), tokens.data(), targets.data());
        return std::pair(std::accumulate(tokens.begin(), tokens.end(), 0.0) / 4, tokens[0] % 3);
      };
      double routers = 0;
      int dropped = 0;
      for (int first = 0; first < samples; first += 8) {
        double sum = 0;  // over the whole batch: the last one has copies of the last sample
        for (int s = first; s < first + 8; ++s) sum += mean_token(s).first;
        routers += std::min(8, samples - first) * (0.5 * 1.1 + 0.25 * sum / 8) / samples;
      }
      for (int s = 0; s < samples; ++s) dropped += mean_token(s).second;
      const std::string out = evaluated(*p, {"--data", text});
      CHECK(loss_in(out) == about(mean_loss_of(*p, text, 0, static_cast<std::uint64_t>(samples))));
      CHECK(loss_in(out, " of 4 tokens, without router losses of ") == about(routers));
      CHECK(rest_after(out, "without router losses of ")
                .ends_with("; " + std::to_string(dropped) + " picks found their expert full"));
    }
  }
}

TEST_CASE("processes without the router statistics have the losses of the one that has them") {
  struct elsewhere : fake_engine {
    using fake_engine::fake_engine;
    bool holds(int) const override { return false; }
  };
  fake_program program(2, 2, 2);
  program.add_routers();
  fake_engine one(program);
  elsewhere other(program);
  std::string told;
  placement first{.rank = 0}, second{.rank = 1};
  first.exchange = [&](const std::string&, const std::string& mine) {
    return std::vector<std::string>{"", told = mine};
  };
  second.exchange = [&](const std::string&, const std::string& mine) {
    CHECK(mine == "");
    return std::vector<std::string>{mine, told};
  };
  const dataset data(parse_data_spec("arith:7"), 256, program.about.seq);
  for (engine* e : {static_cast<engine*>(&one), static_cast<engine*>(&other)}) set_batch(*e, data, 0);
  const evaluated_loss apart = evaluate_apart(one), here = evaluate_apart(one, first),
                       there = evaluate_apart(other, second);
  CHECK(apart.routers > 0.5);
  CHECK(apart.dropped > 0);
  for (const evaluated_loss& loss : {here, there}) {
    CHECK(loss.labels == apart.labels);
    CHECK(loss.routers == apart.routers);
    CHECK(loss.dropped == apart.dropped);
  }
}

TEST_CASE("held-out losses are without router losses, unless the program does not keep the statistics") {
  const scratch files;
  fake_program program(1, 1, 1);
  const std::string text = files.write("t.txt", text_of(801)), metrics = files.path("m");
  const auto train = [&] {
    const outcome done = run(program, {"train", "--steps", "1", "--data", text, "--lr", "0", "--lr-schedule",
                                       "constant", "--eval-fraction", "0.3", "--metrics", metrics});
    CHECK_MESSAGE(done.code == 0, done.err);
    return done.out;
  };
  program.add_routers();
  CHECK(train().find("RC6272") == std::string::npos);
  const double alone = mean_loss_of(program, text, 140, 200);
  CHECK(lines_of(metrics).back()["eval_loss"].get<double>() == about(alone));
  program.layouts.back().routers.rows = 0;
  CHECK(train().find(
            "note: RC6272: evaluated losses are those of labels plus the router losses of the plan fake: ") !=
        std::string::npos);
  CHECK(lines_of(metrics).back()["eval_loss"].get<double>() > alone + 0.5);
  CHECK(evaluated(program, {"--data", text}).find("note: RC6272: ") != std::string::npos);
}
