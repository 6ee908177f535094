// SPDX-License-Identifier: Apache-2.0
// A run from its user's view: the number of steps, held-out data, curves, stopping, and the end.
#include <rankc/trainer/beginning.hpp>
#include <rankc/trainer/console.hpp>
#include <rankc/trainer/data.hpp>
#include <rankc/trainer/parameters.hpp>
#include <rankc/trainer/tensorboard.hpp>

#include "../../exit_with.hpp"
#include "fake_losses.hpp"
#include "fake_run.hpp"
#include "token_files.hpp"

#include <doctest/doctest.h>
#include <unistd.h>
#include <csignal>
#include <cstring>

using namespace rankc::runtime;
using rankc::test::exit_with, rankc::test::said, rankc::test::said_in;

namespace {

/// The lines of a text that begin with `start`.
std::vector<std::string> lines_with(const std::string& text, const std::string& start) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(start)) lines.push_back(line);
  return lines;
}

std::string line_with(const std::string& text, const std::string& start) {
  const auto lines = lines_with(text, start);
  return lines.empty() ? "" : lines.front();
}

}  // namespace

TEST_CASE("--steps are all steps of a run, also of one that is resumed") {
  const scratch files;
  const fake_program program(1, 1, 1);
  const std::string save = files.path("s"), metrics = files.path("m");
  REQUIRE(run(program, {"train", "--steps", "6", "--save", save, "--save-every", "4", "--metrics",
                        files.path("whole")})
              .code == 0);
  const outcome nothing = run(program, {"train", "--steps", "6", "--load", save});
  CHECK(nothing.code == 0);
  CHECK(nothing.installs == 0);
  CHECK(nothing.out ==
        "nothing to do: " + save +
            "/step_000006 is of step 6, and the run has 6 in all; --steps N with a larger N goes on\n");
  const std::string middle = save + "/step_000004";
  REQUIRE(run(program, {"train", "--load", middle, "--metrics", metrics}).code ==
          0);  // the run's remaining steps
  CHECK(lines_of(metrics).back()["step"] == 6);
  CHECK(losses_of(metrics).back() == losses_of(files.path("whole")).back());
}

TEST_CASE("a step in which no label counts is noted, and later steps and checkpoints leave it out") {
  const scratch files;
  const fake_program program(1, 1, 1);
  const std::string save = files.path("s");
  std::vector<step_input> inputs;
  const auto skips = [&](fake_engine& e) {
    e.skipped_at = 3;
    e.inputs = &inputs;
  };
  const std::string metrics = files.path("m"), curves = files.path("t");
  const outcome first = run(program,
                            {"train", "--steps", "6", "--save", save, "--save-every", "4", "--metrics",
                             metrics, "--tensorboard", curves},
                            skips);
  REQUIRE(first.code == 0);
  CHECK(lines_of(metrics).at(2)["loss"].is_null());
  CHECK(lines_of(metrics).at(3)["loss"].is_number());
  const std::string events = contents(std::filesystem::directory_iterator(curves)->path());
  const auto count_of = [&](const std::string& tag) {
    int count = 0;
    for (std::size_t at = 0; (at = events.find(tag + "\x15", at)) != events.npos; ++at) ++count;
    return count;
  };
  CHECK(count_of("loss") == 5);
  CHECK(count_of("grad_norm") == 5);
  CHECK(count_of("lr") == 6);
  CHECK(
      first.out.find("note: RC6174: step 3 has no label that counts in the loss, so it changed nothing\n") !=
      std::string::npos);
  const auto json_of = [&](const char* step) { return nlohmann::json::parse(contents(save + step)); };
  CHECK(json_of("/step_000004/run.json").at("skipped") == 1);
  REQUIRE(run(program, {"train", "--load", save + "/step_000004"}, skips).code == 0);
  std::vector<std::int64_t> skipped;
  for (const step_input& in : inputs) skipped.push_back(in.skipped);
  CHECK(skipped == std::vector<std::int64_t>{0, 0, 0, 1, 1, 1, 1, 1});
}

TEST_CASE("held-out data without labels that count costs a note, and the run goes on and saves") {
  const scratch files;
  fake_program program(1, 1, 1);
  program.about.ignored_label = -100;
  std::vector<std::uint16_t> tokens(200, 7);
  const std::string data = llm_c(files, "t.bin", tokens),
                    held = llm_c(files, "h.bin", {tokens.begin(), tokens.end() - 1});
  files.write("h.mask", mask(199, [](std::uint64_t) { return true; }));
  const std::string save = files.path("s"), metrics = files.path("m");
  const outcome done =
      run(program, {"train", "--steps", "2", "--data", data, "--eval-data", held, "--eval-every", "1",
                    "--eval-batches", "3", "--save", save, "--metrics", metrics});
  REQUIRE_MESSAGE(done.code == 0, done.err);
  CHECK(lines_with(done.out,
                   "note: RC6176: no held-out loss is measured at step 1, because no label of the "
                   "first 3 batches of the held-out data counts")
            .size() == 1);
  CHECK(lines_with(done.out, "note: RC6176").size() == 2);
  for (const auto& line : lines_of(metrics)) CHECK_FALSE(line.contains("eval_loss"));
  CHECK(std::filesystem::exists(save + "/step_000002"));
  const outcome eval = run(program, {"eval", "--load", save, "--data", held});
  CHECK(eval.code == 1);
  CHECK(eval.err.find("RC6175: the ") != std::string::npos);
}

TEST_CASE("a run is told how it ended and what may come next") {
  const scratch files;
  const fake_program program(1, 1, 1);
  const outcome plain = run(program, {"train", "--steps", "3"});
  const std::string done = line_with(plain.out, "done: ");
  CHECK(done.starts_with("done: step 3 of 3 in 0 s, "));
  CHECK(done.find(" tokens/s; loss ") != std::string::npos);
  CHECK(done.ends_with(" nats per token"));
  CHECK(
      plain.out.ends_with("next: nothing is saved; --save DIR keeps the weights, and --eval-every N shows "
                          "the loss of data held out\n"));
  const std::string save = files.path("s"), text = files.write("t.md", text_of(400));
  const outcome saved =
      run(program, {"train", "--steps", "3", "--save", save, "--data", text, "--eval-fraction", "0.1"});
  CHECK(saved.out.ends_with("next: fake train --load " + save + " --save " + save +
                            " --steps 6 goes on; fake eval --load " + save + " --data FILE\n"));
  fake_program writes(1, 1, 1);
  writes.leave_logits();
  CHECK(run(writes, {"train", "--steps", "1", "--save", files.path("w")})
            .out.ends_with(" goes on; fake generate --load " + files.path("w") +
                           " --prompt TEXT shows what it has learned\n"));
  CHECK(line_with(saved.out, "done: ").find("; 0.27 epochs; loss ") !=
        std::string::npos);  // 24 of 89 samples
  CHECK(line_with(saved.out, "done: ").find(", held-out loss ") != std::string::npos);
}

TEST_CASE("the held-out loss is of the same batches each time, and changes nothing") {
  const scratch files;
  const fake_program program(2, 2, 1);
  const std::string text = files.write("t.txt", text_of(801)), a = files.path("a"), b = files.path("b");
  // The last 20 of 200 samples are held out; a batch has 8.
  const outcome watched = run(program, {"train", "--steps", "5", "--data", text, "--eval-every", "2",
                                        "--eval-fraction", "0.1", "--metrics", a});
  REQUIRE_MESSAGE(watched.code == 0, watched.err);
  CHECK(watched.out.find("held-out data: the last 20 samples of it\n") != std::string::npos);
  REQUIRE(run(program, {"train", "--steps", "5", "--data", text, "--metrics", b}).code == 0);
  CHECK(losses_of(a) == losses_of(b));
  const auto lines = lines_of(a);
  for (const std::size_t i : {0, 2}) {
    CHECK_FALSE(lines[i].contains("eval_loss"));
    CHECK(lines[i].size() == 9);
  }
  for (const std::size_t i : {1, 3, 4}) CHECK(lines[i].contains("eval_loss"));
  CHECK(lines_with(watched.out, "step 2/5")[0].find("  held-out loss ") != std::string::npos);
  const outcome frozen = run(program, {"train", "--steps", "1", "--data", text, "--eval-fraction", "0.1",
                                       "--lr", "0", "--lr-schedule", "constant", "--metrics", a});
  REQUIRE(frozen.code == 0);
  CHECK(lines_of(a)[0]["eval_loss"].get<double>() ==
        doctest::Approx(mean_loss_of(program, text, 180, 200)).epsilon(1e-13));
  REQUIRE(run(program, {"train", "--steps", "1", "--data", text, "--eval-fraction", "0.1", "--lr", "0",
                        "--lr-schedule", "constant", "--metrics", b, "--eval-batches", "2"})
              .code == 0);
  CHECK(lines_of(b)[0]["eval_loss"].get<double>() ==
        doctest::Approx(mean_loss_of(program, text, 180, 196)).epsilon(1e-13));
}

TEST_CASE("held-out data of its own, a default share of it, and what a checkpoint remembers") {
  const scratch files;
  const fake_program program(1, 1, 1);
  const std::string text = files.write("t.txt", text_of(801)), other = files.write("o.txt", text_of(100)),
                    save = files.path("s");
  const outcome apart = run(program, {"train", "--steps", "2", "--data", text, "--eval-data", other, "--save",
                                      save, "--shuffle", "5"});
  CHECK(apart.out.find("held-out data: " + other + ": 100 tokens") != std::string::npos);
  CHECK(apart.out.find("data: " + text + ": 801 tokens; byte entropy") != std::string::npos);
  const outcome share = run(program, {"train", "--steps", "2", "--data", text, "--eval-every", "1"});
  CHECK(share.out.find("held-out data: the last 10 samples of it\n") != std::string::npos);
  const std::string whole = files.path("whole"), parts = files.path("parts");
  REQUIRE(
      run(program, {"train", "--steps", "4", "--data", text, "--shuffle", "5", "--metrics", whole}).code ==
      0);
  const outcome resumed = run(program, {"train", "--load", save, "--steps", "4", "--metrics", parts});
  CHECK(resumed.out.find("held-out data: " + other) != std::string::npos);
  CHECK(losses_of(parts).back() == losses_of(whole).back());  // the shuffled order continues where it was
  const outcome contradicted = run(program, {"train", "--eval-data", other, "--eval-fraction", "0.1"});
  CHECK(contradicted.err.starts_with("fake: RC"));
  CHECK(exit_with{contradicted.code, said_in(contradicted.err)} == exit_with{2, {6024, {other}}});
}

TEST_CASE("how much data there is, is said") {
  const scratch files;
  const fake_program program(1, 1, 1);
  const std::string text = files.write("t.txt", text_of(21));  // 5 samples; a batch has 8
  const outcome small = run(program, {"train", "--steps", "10", "--data", text});
  CHECK(line_with(small.out, "data: ").ends_with("; 10 steps are 16.00 epochs"));
  CHECK(small.out.find(
            "note: the data is through after 5 samples, and a batch has 8: it has some of them twice\n") !=
        std::string::npos);
  const outcome drawn = run(program, {"train", "--steps", "1", "--data", "rand:1"});
  CHECK(line_with(drawn.out, "data: ") == "data: random tokens, seed 1");
  CHECK(drawn.out.find("note:") == std::string::npos);
}

TEST_CASE("what a program wants known is said before it runs") {
  fake_program program(1, 1, 1);
  program.about.note = "bf16 is f32 here";
  CHECK(run(program, {"train", "--steps", "1"})
            .out.find("tokens per step, f64\nnote: bf16 is f32 here\nweights: ") != std::string::npos);
}

TEST_CASE("signals that ask a run to stop finish the step, save, and end with 128 and their number") {
  const fake_program program(1, 1, 1);
  for (const auto& [signal, name] : {std::pair{SIGTERM, "SIGTERM"},
                                     {SIGINT, "SIGINT"},
                                     {SIGHUP, "SIGHUP"},
                                     {SIGUSR1, "SIGUSR1"},
                                     {SIGXCPU, "SIGXCPU"}}) {
    const scratch files;
    const std::string save = files.path("s"), parts = files.path("parts"), whole = files.path("whole");
    const auto interrupt = [sig = signal](fake_engine& e) {
      e.signal_at = 3;
      e.signal = sig;
      e.signals = 2;  // simultaneous signals count as one
    };
    const outcome stopped =
        run(program, {"train", "--steps", "5", "--save", save, "--metrics", parts}, interrupt);
    CHECK(stopped.code == 128 + signal);
    CHECK(stopped.err.starts_with("fake: RC"));
    CHECK(said_in(stopped.err) == said{6169, {name, "3", "5", save}});
    CHECK(stopped.out.ends_with("\nsaved " + save + "/step_000003\n"));
    REQUIRE(run(program, {"train", "--load", save, "--metrics", parts}).code == 0);
    REQUIRE(run(program, {"train", "--steps", "5", "--metrics", whole}).code == 0);
    CHECK(losses_of(parts) == losses_of(whole));
    const outcome lost = run(program, {"train", "--steps", "5"}, interrupt);
    CHECK(lost.code == 128 + signal);
    CHECK(said_in(lost.err) == said{6168, {name, "3", "5"}});
  }
  const fake_program last(1, 1, 1);  // a signal in the last step leaves nothing to stop
  CHECK(run(last, {"train", "--steps", "3"}, [](fake_engine& e) {
          e.signal_at = 3;
          e.signal = SIGTERM;
        }).code == 0);
}

TEST_CASE("empty names are refused by each option that takes one") {
  const fake_program program(1, 1, 1);
  for (const char* option : {"--save", "--load", "--init", "--metrics", "--data", "--trace", "--tensorboard",
                             "--shuffle", "--eval-data"}) {
    const outcome refused = run(program, {"train", "--steps", "1", option, ""});
    CHECK(refused.installs == 0);
    CHECK(refused.err.starts_with("fake: RC"));
    CHECK(exit_with{refused.code, said_in(refused.err)} == exit_with{2, {6020, {option}}});
  }
}

TEST_CASE("standard output that is full: describe fails, training goes on and says so") {
  const scratch files;
  const fake_program program(1, 1, 1);
  const auto into_full = [&](std::vector<std::string> words) {
    std::fflush(stdout);
    const int before = dup(STDOUT_FILENO);
    REQUIRE(std::freopen("/dev/full", "w", stdout) != nullptr);
    std::vector<char*> argv;
    words.insert(words.begin(), "fake");
    for (std::string& word : words) argv.push_back(word.data());
    testing::capture err(stderr);
    const int code = program_main(
        program.about, [&] { return std::make_unique<fake_engine>(program); }, static_cast<int>(argv.size()),
        argv.data());
    const std::string told = err.end();
    std::fflush(stdout);
    dup2(before, STDOUT_FILENO);
    close(before);
    std::clearerr(stdout);
    return std::to_string(code) + " " + told;
  };
  const std::string described = into_full({"describe"}),
                    trained = into_full({"train", "--steps", "3", "--metrics", files.path("m")});
  CHECK(described.starts_with("1 fake: RC"));
  CHECK(said_in(described) == said{6041, {"No space left on device"}});
  CHECK(trained.starts_with("0 RC"));
  CHECK(said_in(trained) == said{6040, {"No space left on device"}});
  CHECK(lines_of(files.path("m")).size() == 3);
}

TEST_CASE("durations and the line of a terminal") {
  CHECK(duration_text(0.4) == "0 s");
  CHECK(duration_text(59.4) == "59 s");
  CHECK(duration_text(59.6) == "1 min 00 s");
  CHECK(duration_text(3725) == "1 h 02 min");
  CHECK(duration_text(100 * 3600) == "100 h 00 min");
  CHECK(progress_text(37, 300, 5.5, 125) == "step 37/300  12 %  loss 5.500000  ETA 2 min 05 s");
  testing::capture out(stdout);
  {
    console terminal(true, true);
    terminal.progress("first");
    terminal.progress("too soon");
    terminal.line("a line");
  }
  {
    console log(true, false);
    log.progress("never");
    log.line("plain");
  }
  console(false, true).line("nothing");
  CHECK(out.end() == "first\r\033[Ka line\nplain\n");
}

TEST_CASE("event files have the frames and fields that TensorBoard reads") {
  const scratch files;
  const fake_program program(1, 1, 1);
  REQUIRE(run(program, {"train", "--steps", "3", "--eval-fraction", "0.1", "--data",
                        files.write("t.txt", text_of(400)), "--tensorboard", files.path("tb"), "--metrics",
                        files.path("m")})
              .code == 0);
  CHECK(masked_crc32c("123456789") ==
        ((0xE3069283u >> 15 | 0xE3069283u << 17) + 0xA282EAD8u));  // the check value of CRC-32C
  const auto file = *std::filesystem::directory_iterator(files.path("tb"));
  CHECK(file.path().filename().string().starts_with("events.out.tfevents."));
  const std::string bytes = contents(file.path());
  std::vector<std::string> records;
  for (std::size_t at = 0; at < bytes.size();) {
    std::uint64_t length;
    std::uint32_t sum;
    REQUIRE(at + 12 <= bytes.size());
    std::memcpy(&length, bytes.data() + at, 8);
    std::memcpy(&sum, bytes.data() + at + 8, 4);
    CHECK(sum == masked_crc32c(bytes.substr(at, 8)));
    REQUIRE(at + 16 + length <= bytes.size());
    records.push_back(bytes.substr(at + 12, length));
    std::memcpy(&sum, bytes.data() + at + 12 + length, 4);
    CHECK(sum == masked_crc32c(records.back()));
    at += 16 + length;
  }
  REQUIRE(records.size() == 4);
  CHECK(records[0].substr(9) ==
        "\x1a\x0d"
        "brain.Event:2");
  const auto lines = lines_of(files.path("m"));
  for (std::size_t step = 1; step <= 3; ++step) {
    const std::string& r = records[step];
    CHECK(r[0] == 0x09);  // wall_time
    CHECK(r[9] == 0x10);  // step
    CHECK(r[10] == static_cast<char>(step));
    const auto value_of = [&](const std::string& tag) -> std::optional<float> {
      const std::size_t at = r.find("\x0a" + std::string(1, static_cast<char>(tag.size())) + tag + "\x15");
      if (at == std::string::npos) return std::nullopt;
      float value;
      std::memcpy(&value, r.data() + at + 3 + tag.size(), 4);
      return value;
    };
    CHECK(value_of("loss") == lines[step - 1]["loss"].get<float>());
    CHECK(value_of("grad_norm") == lines[step - 1]["grad_norm"].get<float>());
    CHECK(value_of("lr") == lines[step - 1]["lr"].get<float>());
    CHECK(value_of("eval_loss").has_value() == (step == 3));
  }
}
