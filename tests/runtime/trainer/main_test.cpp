// SPDX-License-Identifier: Apache-2.0
// The program from a user's view: command lines in; exit codes, lines and files out.
#include <rankc/trainer/data.hpp>
#include <rankc/trainer/parameters.hpp>
#include <rankc/trainer/time_table.hpp>

#include "../../said.hpp"
#include "fake_run.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>

using namespace rankc::runtime;
using rankc::test::said, rankc::test::said_in;

TEST_CASE("describe, version and help start nothing") {
  const fake_program program(2, 1, 2);
  const outcome text = run(program, {"describe"}), json = run(program, {"describe", "--json"}),
                version = run(program, {"--version"}), help = run(program, {"train", "--help"});
  CHECK(text.code == 0);
  CHECK(text.out == "a fake plan\n");
  CHECK(json.out == "{\"fake\":1}\n");
  CHECK(version.code == 0);
  CHECK(version.out.starts_with("fake (rankc "));
  CHECK(version.out.find("plan 0000000000abcdef") != std::string::npos);
  CHECK(help.code == 0);
  CHECK(help.out.find("--lr-schedule") != std::string::npos);
  CHECK(text.installs + json.installs + version.installs + help.installs == 0);
}

TEST_CASE("train reports each step") {
  const scratch files;
  const fake_program program(2, 2, 2);
  const std::string file = files.path("m.jsonl");
  const outcome done =
      run(program, {"train", "--steps", "5", "--metrics", file, "--data", "rand:9", "--lr", "0.5"});
  CHECK_MESSAGE(done.code == 0, done.err);
  CHECK(done.err == "");
  CHECK(done.out.starts_with(
      "fake: 8 ranks (pp 2, dp 2, tp 2), 2152 parameters, 32 tokens per step, f64\n"
      "weights: hash:1\ndata: random tokens, seed 9\n"
      "learning rate: 0.5, 3 steps of warm-up, cosine to 0.001 over 10 steps\nstep 1/5  loss "));
  CHECK(std::count(done.out.begin(), done.out.end(), '\n') == 4 + 5 + 2);
  const auto lines = lines_of(file);
  REQUIRE(lines.size() == 5);
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(lines[i].size() == 9);
    CHECK(lines[i]["step"] == i + 1);
    CHECK(lines[i]["tokens"] == 32 * (i + 1));
    CHECK(lines[i]["grad_norm"] == 2 * lines[i]["loss"].get<double>());
    CHECK(lines[i]["step_ms"] > 0);
    CHECK(lines[i]["tokens_per_s"].get<double>() * lines[i]["step_ms"].get<double>() ==
          doctest::Approx(32e3));
    CHECK(lines[i]["mfu"].is_null());
    CHECK(lines[i]["peak_bytes"] == 1003);
  }
  CHECK(lines[0]["lr"] == 0.5 / 3);
  CHECK(lines[2]["lr"] == 0.5);
}

TEST_CASE("--trace times the last step, and changes nothing else") {
  const scratch files;
  const fake_program program(2, 1, 2);
  const std::string file = files.path("t.json"), timed = files.path("a"), plain = files.path("b");
  const outcome done = run(program, {"train", "--steps", "3", "--trace", file, "--metrics", timed});
  CHECK_MESSAGE(done.code == 0, done.err);
  CHECK(done.out.find("\ntrace of step 3 in " + file + "\ndone: ") != std::string::npos);
  CHECK(run(program, {"train", "--steps", "3", "--metrics", plain}).code == 0);
  CHECK(losses_of(timed) == losses_of(plain));
  const auto trace = nlohmann::json::parse(contents(file));
  CHECK(trace["otherData"] == nlohmann::json{{"plan", "fake"}, {"times", "measured"}, {"step", 3}});
  std::vector<nlohmann::json> timed_events, names;
  for (const auto& e : trace["traceEvents"]) (e["ph"] == "X" ? timed_events : names).push_back(e);
  REQUIRE(timed_events.size() == 2 * 4);
  CHECK(timed_events[6] ==
        nlohmann::json{{"name", "0F0"}, {"ph", "X"}, {"pid", 3}, {"tid", 0}, {"ts", 1.5}, {"dur", 1.5}});
  CHECK(timed_events[7]["name"] == "F0: stage 0 -> 1");
  CHECK(timed_events[7]["tid"] == 2);
  REQUIRE(names.size() == 3 * 4);
  CHECK(names[9]["args"]["name"] == "rank 3: pp 1, dp 0, tp 1 (measured)");
  CHECK(names[11]["args"]["name"] == "to_next");
  const std::string nowhere = files.path("no/t.json");
  const outcome refused = run(program, {"train", "--steps", "3", "--trace", nowhere});
  CHECK(refused.code == 1);
  CHECK(refused.installs == 0);
  CHECK(said_in(refused.err) == said{5005, {nowhere, "No such file or directory"}});
}

TEST_CASE(
    "a step gets the recipe's numbers, the command line's where they are given, and the metrics the largest "
    "arena") {
  const scratch files;
  fake_program program(2, 1, 1);
  program.about.train.decay_steps = 0;
  program.layouts[0].arena_bytes = 5000;
  const auto inputs_of = [&](std::vector<std::string> words) {
    std::vector<step_input> inputs;
    words.insert(words.begin(), {"train", "--steps", "2", "--metrics", files.path("m")});
    const outcome done = run(program, words, [&](fake_engine& e) { e.inputs = &inputs; });
    CHECK_MESSAGE(done.code == 0, done.err);
    REQUIRE(inputs.size() == 2);
    return inputs;
  };
  const auto fields = [](const step_input& i) {
    return std::vector<double>{
        i.lr, i.weight_decay, i.clip, i.beta1, i.beta2, i.eps, static_cast<double>(i.step)};
  };
  const auto plain = inputs_of({});
  CHECK(fields(plain[0]) == std::vector<double>{1e-2 / 3, 0.1, 1, 0.9, 0.95, 1e-8, 1});
  CHECK(fields(plain[1]) == std::vector<double>{1e-2 * 2 / 3, 0.1, 1, 0.9, 0.95, 1e-8, 2});
  const auto given = inputs_of({"--lr", "0.5", "--lr-schedule", "constant", "--wd", "0.25", "--clip", "3"});
  CHECK(fields(given[1]) == std::vector<double>{0.5, 0.25, 3, 0.9, 0.95, 1e-8, 2});
  CHECK(lines_of(files.path("m")).back()["peak_bytes"] == 5000);
}

TEST_CASE("a schedule given to a resumed run decays until its last step") {
  const scratch files;
  fake_program program(1, 1, 1);
  program.about.train.decay_steps = program.about.train.warmup_steps = 0;
  REQUIRE(run(program, {"train", "--steps", "4", "--save", files.path()}).code == 0);
  const outcome done =
      run(program, {"train", "--steps", "10", "--load", files.path(), "--lr-schedule", "cosine"});
  CHECK(done.out.find("learning rate: 0.01, cosine to 0.001 over 10 steps\n") != std::string::npos);
}

TEST_CASE("a metrics file that cannot be written is told once, and training goes on") {
  const fake_program program(1, 1, 1);
  const outcome done = run(program, {"train", "--steps", "3", "--metrics", "/dev/full"});
  CHECK(done.code == 0);
  CHECK(said_in(done.err) ==
        said{5005, {"/dev/full", "No space left on device; training continues without it from step 1 on"}});
}

TEST_CASE("mfu counts the flops of all ranks' peak") {
  const scratch files;
  fake_program program(1, 2, 1);
  program.about.peak_flops = 1e12;
  const std::string file = files.path("m.jsonl");
  CHECK(run(program, {"train", "--steps", "1", "--metrics", file}).code == 0);
  const auto line = lines_of(file).at(0);
  CHECK(line["mfu"].get<double>() == doctest::Approx(line["tokens_per_s"].get<double>() * 1e6 / 2e12));
}

TEST_CASE("what a step takes is told beside what was predicted, where that is known") {
  const scratch files;
  fake_program program(1, 1, 1);
  const std::string file = files.path("m.jsonl");
  CHECK(run(program, {"train", "--steps", "3"}).out.find("predicted") == std::string::npos);
  static constexpr predicted_action actions[]{{"0F", 0.5}, {"0B", 1}, {"STEP", 0.25}};
  program.about.predicted = {1.25, actions};
  const outcome done = run(program, {"train", "--steps", "3", "--metrics", file});
  std::vector<double> took;
  for (const auto& line : lines_of(file)) {
    took.push_back(line["step_ms"]);
    CHECK(line["predicted_ms"] == 1.25);
  }
  std::sort(took.begin(), took.end());
  CHECK(done.out.find(fmt::format("\nstep      {:>12.2f}{:>12.2f}{:>+10.1f} %\n", took[1], 1.25,
                                  100 * (1.25 / took[1] - 1))) != std::string::npos);
}

TEST_CASE("of a step that was timed the table has its actions on average") {
  fake_program program(1, 1, 1);
  static constexpr predicted_action actions[]{{"0F", 2}, {"10F", 1}, {"0B", 4}, {"STEP", 1}};
  program.about.predicted = {100, actions};
  program.about.peak_flops = 1e12;
  const traced times[]{{0, 0, "0F0", 0, 1000},       {0, 0, "0F11", 5000, 8000},
                       {0, 0, "10F0", 0, 500},       {0, 1, "F0: stage 0 -> 1", 0, 9000},
                       {0, 0, "0STEP", 9000, 11000}, {0, 0, "loss", 0, 7000}};
  const double tokens = static_cast<double>(program.about.global_batch()) * program.about.seq;
  CHECK(time_table(program.about, {90, 80, 300}, times) ==
        std::vector<std::string>{"ms            measured   predicted",
                                 "step             90.00      100.00     +11.1 %",
                                 "0F                2.00        2.00      +0.0 %",
                                 "10F               0.50        1.00    +100.0 %",
                                 "STEP              2.00        1.00     -50.0 %",
                                 fmt::format("tokens/s  {:>12.0f}{:>12.0f}", tokens / 0.09, tokens / 0.1),
                                 fmt::format("mfu, %    {:>12.1f}{:>12.1f}",
                                             100 * tokens / 0.09 * program.about.flops_per_token / 1e12,
                                             100 * tokens / 0.1 * program.about.flops_per_token / 1e12)});
  program.about.predicted = {};
  CHECK(time_table(program.about, {90}, times).empty());
}

TEST_CASE("the same run in another layout gives the same losses") {
  const scratch files;
  const fake_program one(1, 1, 1), many(2, 4, 2);
  CHECK(run(one, {"train", "--steps", "6", "--seed", "4", "--metrics", files.path("a")}).code == 0);
  CHECK(run(many, {"train", "--steps", "6", "--init", "hash:4", "--metrics", files.path("b")}).code == 0);
  CHECK(losses_of(files.path("a")) == losses_of(files.path("b")));
  CHECK(run(many, {"train", "--steps", "6", "--init", "hash:5", "--metrics", files.path("c")}).code == 0);
  CHECK(losses_of(files.path("a")) != losses_of(files.path("c")));
}

TEST_CASE("a resumed run continues the interrupted one bit for bit") {
  for (const dtype type : {dtype::f64, dtype::f32}) {
    const scratch files;
    const fake_program program(2, 2, 2, type), other(1, 1, 4, type);
    const std::string whole = files.path("whole"), parts = files.path("parts"), save = files.path("save");
    const std::vector<std::string> settings = {"--data", "rand:3",        "--lr",
                                               "0.02",   "--lr-schedule", "cosine:2:20:0.001"};
    const auto train = [&](const fake_program& p, std::vector<std::string> words, bool with_settings) {
      words.insert(words.begin(), "train");
      if (with_settings) words.insert(words.end(), settings.begin(), settings.end());
      const outcome done = run(p, words);
      REQUIRE_MESSAGE(done.code == 0, done.err);
      return done.out;
    };
    train(program, {"--steps", "9", "--metrics", whole}, true);
    CHECK(train(program, {"--steps", "4", "--metrics", parts, "--save", save}, true)
              .find("\nsaved " + save + "/step_000004\ndone: ") != std::string::npos);
    train(program, {"--steps", "7", "--metrics", parts, "--load", save, "--save", save}, false);
    train(other, {"--steps", "9", "--metrics", parts, "--load", save}, false);
    CHECK(losses_of(parts) == losses_of(whole));
    CHECK(lines_of(parts).back()["step"] == 9);
    CHECK(lines_of(parts).back()["lr"] == lines_of(whole).back()["lr"]);
    CHECK(lines_of(parts).back()["tokens"] == lines_of(whole).back()["tokens"]);
  }
}

TEST_CASE("checkpoints are written every N steps and at the end, once each") {
  const scratch files;
  const fake_program program(1, 1, 1);
  const auto saved = [&](const char* steps) {
    const std::string folder = files.path(steps);
    REQUIRE(run(program, {"train", "--steps", steps, "--save", folder, "--save-every", "2"}).code == 0);
    std::string names;
    for (const char* name : {"step_000001", "step_000002", "step_000003", "step_000004", "step_000005"})
      names += std::filesystem::exists(folder + "/" + name + "/run.json") ? '1' : '0';
    return names + " " + contents(folder + "/latest");
  };
  CHECK(saved("5") == "01011 step_000005\n");
  CHECK(saved("4") == "01010 step_000004\n");
}

TEST_CASE("a save that fails is told and training goes on; the last one gives the exit code") {
  const scratch files;
  const fake_program program(1, 1, 1);
  files.write("latest/in_the_way", "");  // a folder, which no file can replace
  const outcome done = run(program, {"train", "--steps", "5", "--save", files.path(), "--save-every", "2",
                                     "--metrics", files.path("m")});
  CHECK(done.code == 65);
  CHECK(lines_of(files.path("m")).size() == 5);
  CHECK(done.out.find("saved") == done.out.npos);
  for (const char* step : {"2", "4", "5"})
    CHECK(done.err.find(say("RC6625: the checkpoint of step {} was not saved: {}", step,
                            say("RC5005: {} cannot be written: {}", files.path("latest"),
                                "Is a directory"))) != done.err.npos);
  CHECK(done.err.find("; training goes on, and the next save tries again\n") != done.err.npos);
  CHECK(said_in(done.err, 6167) == said{6167, {files.path()}});
  const std::size_t last_line = done.err.rfind('\n', done.err.size() - 2) + 1;
  CHECK(done.err.substr(last_line).starts_with("fake: RC6167: "));
}

TEST_CASE(
    "--load says which checkpoint it takes where the newest is damaged, and --keep lets the newest stay") {
  const scratch files;
  const fake_program program(1, 1, 1);
  REQUIRE(run(program, {"train", "--steps", "6", "--save", files.path(), "--save-every", "2", "--keep", "2"})
              .code == 0);
  CHECK_FALSE(std::filesystem::exists(files.path("step_000002")));
  files.write("step_000006/rank_00000.safetensors", "gone");
  const outcome done = run(program, {"train", "--steps", "5", "--load", files.path()});
  CHECK(done.code == 0);
  CHECK(done.out.starts_with("note: RC6504: "));
  CHECK(said_in(done.out, 6504).arguments.at(0) == files.path("step_000004"));
  CHECK(said_in(done.out, 6600) == said{6600, {files.path("step_000006/rank_00000.safetensors"), "4"}});
  CHECK(done.out.find("step 5/5") != done.out.npos);
  CHECK(run(program, {"train", "--steps", "7", "--load", files.path("step_000006")}).code == 65);
}

TEST_CASE("a plan that changed since the save is noted") {
  const scratch files;
  fake_program program(1, 1, 1);
  REQUIRE(run(program, {"train", "--steps", "1", "--save", files.path()}).code == 0);
  program.about.plan_hash = 5;
  const outcome done = run(program, {"train", "--steps", "2", "--load", files.path()});
  CHECK(done.code == 0);
  CHECK(done.out.starts_with("note: " + files.path("step_000001") +
                             " was saved by plan 0000000000abcdef, and this is 0000000000000005"));
}

TEST_CASE("eval prints the mean loss and trains nothing") {
  const scratch files;
  const fake_program program(1, 1, 1);
  const outcome three = run(program, {"eval", "--steps", "3", "--data", "rand:3"});
  CHECK(three.code == 0);
  fake_engine e(program);
  initialise(e, 1);
  const dataset data(parse_data_spec("rand:3"), 256, 4);
  double sum = 0;
  for (std::uint64_t batch = 0; batch < 3; ++batch) {
    set_batch(e, data, batch * 8);
    sum += e.evaluate();
  }
  char expected[100];
  std::snprintf(expected, sizeof expected, "eval: loss %.12f nats per token over 24 samples of 4 tokens\n",
                sum / 3);
  CHECK(three.out.ends_with(expected));
  REQUIRE(run(program, {"train", "--steps", "2", "--save", files.path(), "--data", "rand:3"}).code == 0);
  const outcome loaded = run(program, {"eval", "--steps", "3", "--load", files.path()});
  CHECK(loaded.code == 0);
  CHECK_FALSE(loaded.out.ends_with(expected));
  const outcome weights = run(program, {"eval", "--steps", "3", "--init", files.path(), "--data", "rand:3"});
  CHECK(weights.out.substr(weights.out.find("eval:")) == loaded.out.substr(loaded.out.find("eval:")));
}

TEST_CASE("a plan with forwards alone evaluates, and says so where it is to train") {
  const scratch files;
  const fake_program program(2, 1, 2);
  fake_program alone(2, 1, 2);
  alone.about.trains = false;
  const outcome refused = run(alone, {"train", "--steps", "2", "--save", files.path("s")});
  CHECK(refused.code == 1);
  CHECK(refused.err.starts_with("fake: RC"));
  CHECK(said_in(refused.err) == said{5007, {"fake"}});
  CHECK(refused.out == "");
  CHECK(refused.installs == 0);
  CHECK_FALSE(std::filesystem::exists(files.path("s")));
  CHECK(run(alone, {"describe", "--measured"}).err == refused.err);
  REQUIRE(run(program, {"train", "--steps", "2", "--save", files.path("s")}).code == 0);
  for (const char* from : {"--load", "--init"}) {
    const outcome trained = run(program, {"eval", from, files.path("s")});
    const outcome forwards = run(alone, {"eval", from, files.path("s")});
    CHECK_MESSAGE(forwards.code == 0, forwards.err);
    CHECK(forwards.out == trained.out);
  }
}

TEST_CASE("usage errors: code 2, one line, nothing started") {
  const scratch files;
  const fake_program program(1, 1, 1);
  const std::vector<std::vector<std::string>> wrong = {
      {},
      {"fly"},
      {"train", "--fast"},
      {"train", "extra"},
      {"train", "--steps"},
      {"train", "--steps", "0"},
      {"train", "--steps", "-3"},
      {"train", "--steps", "1.5"},
      {"train", "--lr", "nan"},
      {"train", "--lr", "-1"},
      {"train", "--lr", "fast"},
      {"train", "--lr", "1e-4"},  // below the recipe's floor
      {"train", "--wd", "inf"},
      {"train", "--clip", "-0.5"},
      {"train", "--seed", "x"},
      {"train", "--seed", "-1"},
      {"train", "--seed", "2", "--init", "hash:1"},
      {"train", "--seed", "2", "--init", "a.safetensors"},
      {"train", "--init", "hash:"},
      {"train", "--init", "hash:1", "--load", files.path()},
      {"train", "--seed", "1", "--load", files.path()},
      {"train", "--data", "arith"},
      {"train", "--data", "nowhere"},
      {"train", "--lr-schedule", "linear"},
      {"train", "--save-every", "3"},
      {"train", "--save", files.path(), "--save-every", "0"},
      {"train", "--save", files.path(), "--keep", "0"},
      {"train", "--keep", "3"},
      {"train", "--launch", "fork"},
      {"train", "--launch", "processes"},
      {"train", "--peers", "none"},
      {"train", "--trace"},
      {"eval", "--lr", "1"},
      {"eval", "--trace", "t.json"},
      {"describe", "--steps", "1"},
      {"describe", "--data", "rand:1"},  // starts no ranks
      {"describe", "--measured", "--data", "nowhere"},
  };
  for (const auto& words : wrong) {
    const outcome refused = run(program, words);
    const std::string line = words.empty() ? "" : words.back();
    CAPTURE(line);
    CAPTURE(refused.err);
    CHECK(refused.code == 2);
    CHECK(refused.err.starts_with("fake: "));
    CHECK(std::count(refused.err.begin(), refused.err.end(), '\n') == 1);
    CHECK(refused.out == "");
    CHECK(refused.installs == 0);
  }
  CHECK(said_in(run(program, {"fly"}).err) == said{6026, {"A subcommand is required"}});
  CHECK(said_in(run(program, {"train", "--launch", "processes"}).err) == said{6096, {}});
  CHECK(said_in(run(program, {"train", "--steps", "0"}).err) ==
        said{6027, {"--steps: '0' must be a whole number >= 1"}});
  CHECK(run(program, {"train", "--steps", "1", "--launch", "threads"}).code == 0);
  CHECK(run(program, {"train", "--steps", "1", "--seed", "2", "--init", "hash:2"}).code == 0);
}

TEST_CASE("a learning rate below the recipe's floor needs a schedule without it") {
  const fake_program program(1, 1, 1);  // decays to 1e-3
  const auto says = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"train", "--steps", "1"});
    const outcome done = run(program, words);
    const auto at = done.out.find("learning rate: ");
    return std::to_string(done.code) + " " +
           (done.code ? done.err : done.out.substr(at, done.out.find('\n', at) - at));
  };
  const std::string below = says({"--lr", "1e-4"});
  CHECK(below.starts_with("2 fake: RC"));
  CHECK(said_in(below) == said{6000, {"0.0001", "0.001", "warmup:3,cosine:10:0.001"}});
  CHECK(says({"--lr", "1e-4", "--lr-schedule", "constant"}) == "0 learning rate: 0.0001");
  CHECK(says({"--lr", "1e-4", "--lr-schedule", "cosine:2:8:1e-5"}) ==
        "0 learning rate: 0.0001, 2 steps of warm-up, cosine to 1e-05 over 8 steps");
  CHECK(says({"--lr", "1e-3"}) ==
        "0 learning rate: 0.001, 3 steps of warm-up, cosine to 0.001 over 10 steps");
}

TEST_CASE("a launcher with several processes is refused") {
  const fake_program program(1, 1, 1);
  setenv("WORLD_SIZE", "8", 1);
  const outcome refused = run(program, {"train", "--steps", "1"});
  setenv("WORLD_SIZE", "1", 1);
  const outcome alone = run(program, {"train", "--steps", "1"});
  unsetenv("WORLD_SIZE");
  CHECK(refused.code == 2);
  CHECK(refused.err.starts_with("fake: RC"));
  CHECK(said_in(refused.err) == said{6097, {"WORLD_SIZE", "8"}});
  CHECK(alone.code == 0);
}

TEST_CASE("user errors: code 1 and the file") {
  const scratch files;
  const fake_program program(1, 1, 1), narrow(1, 1, 1, dtype::f64, 100);
  const std::string none = files.path("none.txt"), weights = files.path("none.safetensors"),
                    text = files.write("t.txt", "hello world"), metrics = files.path("no/m.jsonl"),
                    broken = files.write("broken.safetensors", "abc");
  const auto refused = [](const fake_program& p, const std::vector<std::string>& words, int code,
                          const said& expected) {
    const outcome result = run(p, words);
    CHECK(result.code == code);
    CHECK(result.err.starts_with("fake: RC"));
    CHECK(std::count(result.err.begin(), result.err.end(), '\n') == 1);
    CHECK(said_in(result.err) == expected);
    return result;
  };
  const auto says = [&](const std::vector<std::string>& words, int code, const said& expected) {
    return refused(program, words, code, expected);
  };
  CHECK(says({"train", "--data", none}, 1, {6101, {none, "No such file or directory"}}).installs == 0);
  refused(narrow, {"train", "--data", text}, 1, {6149, {text, "100"}});
  says({"train", "--init", weights}, 1, {6585, {weights, "No such file or directory"}});
  says({"eval", "--init", broken}, 1, {6600, {broken, "3"}});
  says({"train", "--metrics", metrics}, 1, {5005, {metrics, "No such file or directory"}});
  CHECK(says({"train", "--load", files.path()}, 65, {6502, {files.path(), "step_", "COMMIT"}}).installs == 0);
  CHECK(says({"train", "--save", text}, 65, {5005, {text, "Not a directory"}}).installs == 0);
}

TEST_CASE("a damaged checkpoint is code 65") {
  const scratch files;
  const fake_program program(1, 1, 1);
  REQUIRE(run(program, {"train", "--steps", "1", "--save", files.path()}).code == 0);
  const std::string model = files.path("step_000001/rank_00000.safetensors");
  std::string bytes = contents(model);
  bytes[bytes.size() / 6] ^= 1;  // inside a weight
  files.write("step_000001/rank_00000.safetensors", bytes);
  const outcome refused = run(program, {"train", "--load", files.path(), "--steps", "2"});
  CHECK(refused.code == 65);
  CHECK(refused.err.starts_with("fake: RC6615: "));
  CHECK(said_in(refused.err).arguments.at(0) == model);
  CHECK(said_in(refused.err).arguments.at(1) == "wte");
  CHECK(run(program, {"train", "--init", files.path()}).code == 1);  // as plain weights
}

TEST_CASE("failures of the ranks keep their code and their words") {
  const scratch files;
  const fake_program program(1, 1, 1);
  const auto break_at = [](int code) {
    return [code](fake_engine& e) {
      e.fail_at = 3;
      e.exit_code = code;
    };
  };
  for (const int code : {70, 77}) {
    const outcome failed = run(program, {"train", "--steps", "5"}, break_at(code));
    CHECK(failed.code == code);
    CHECK(failed.err == "fake: rank 1, step 3, 1F0: broken\n");
  }
  const std::string metrics = files.path("m");
  const outcome nan = run(program, {"train", "--steps", "5", "--save", files.path("s"), "--metrics", metrics},
                          [](fake_engine& e) { e.nan_at = 4; });
  CHECK(nan.code == 70);
  CHECK(nan.err.starts_with("fake: RC656"));
  CHECK(said_in(nan.err).arguments.at(0) == "4");
  CHECK(said_in(nan.err).arguments.at(1) == "nan");
  CHECK(std::count(nan.err.begin(), nan.err.end(), '\n') == 1);
  CHECK(lines_of(metrics).size() == 3);
  CHECK_FALSE(std::filesystem::exists(files.path("s/latest")));
  const outcome infinite =
      run(program, {"train", "--steps", "5"}, [](fake_engine& e) { e.infinite_norm_at = 2; });
  CHECK(infinite.code == 70);
  const said without_norm = said_in(infinite.err, 6565);
  CHECK(without_norm.arguments.at(0) == "2");
  CHECK(without_norm.arguments.at(2) == "inf");
  const outcome evaluated = run(program, {"eval"}, [](fake_engine& e) { e.nan_in_evaluation = true; });
  CHECK(evaluated.code == 70);
  CHECK(evaluated.err.starts_with("fake: RC"));
  CHECK(said_in(evaluated.err) == said{6170, {"1", "nan"}});
  CHECK(evaluated.out.find("eval:") == std::string::npos);
}
