// SPDX-License-Identifier: Apache-2.0
// --save into a folder that has checkpoints: those of another run are refused, those of the same run give a
// note.
#include "../../exit_with.hpp"
#include "fake_run.hpp"

#include <doctest/doctest.h>

using namespace rankc::runtime;
using rankc::test::exit_with, rankc::test::said, rankc::test::said_in;

namespace {

using words = std::vector<std::string>;

outcome train(const fake_program& program, const std::string& save, words more) {
  more.insert(more.begin(), {"train", "--save", save});
  return run(program, more);
}

std::map<std::string, std::string> files_in(const std::string& folder) {
  std::map<std::string, std::string> found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) found[entry.path().string()] = contents(entry.path().string());
  return found;
}

}  // namespace

TEST_CASE("a run with another plan, data, start, length or recipe does not save beside an earlier one") {
  const scratch files;
  const fake_program program(1, 1, 1);
  fake_program other(1, 1, 1);
  other.about.plan_hash += 1;
  const std::string save = files.path("s");
  REQUIRE(train(program, save, {"--steps", "4", "--save-every", "2"}).code == 0);
  const auto before = files_in(save);
  const auto check_refused = [&](const fake_program& p, const words& more) {
    CAPTURE(more.back());
    const outcome o = train(p, save, more);
    CHECK(o.code == 2);
    CHECK(o.installs == 0);
    CHECK(std::count(o.err.begin(), o.err.end(), '\n') == 1);
    CHECK(said_in(o.err).id == 6532);
    CHECK(o.err.find(save + " has checkpoints of another run: plan fake, step 4 of 4, saved 20") !=
          o.err.npos);
    CHECK(o.err.find(" UTC; ") != o.err.npos);
    CHECK(o.err.ends_with("--load " + save + "\n"));
    CHECK(files_in(save) == before);
  };
  check_refused(other, {"--steps", "4"});
  for (const words& more : {words{"--steps", "6"},
                            {"--steps", "4", "--init", "hash:2"},
                            {"--steps", "4", "--data", "rand:3"},
                            {"--steps", "4", "--lr", "0.5"},
                            {"--steps", "4", "--wd", "0.5"},
                            {"--steps", "4", "--clip", "0.5"},
                            {"--steps", "4", "--lr-schedule", "constant"}})
    check_refused(program, more);
  const std::string apart = files.path("t");
  REQUIRE(train(program, apart, {"--steps", "3", "--lr", "0.5"}).code == 0);
  check_refused(program, {"--steps", "6", "--load", apart});
}

TEST_CASE("the same command starts again, with a note, and a resumed run goes on in its folder") {
  const scratch files;
  const fake_program program(1, 1, 1);
  const std::string save = files.path("s");
  const words command{"--steps", "4", "--save-every", "2"};
  const outcome first = train(program, save, command);
  const auto before = files_in(save);
  CHECK(first.out.find("note: RC6534") == first.out.npos);
  const outcome again = train(program, save, command);
  CHECK(again.code == 0);
  CHECK(again.out.find(
            "note: RC6534: " + save +
            " has checkpoints of this same run up to step 4; this start replaces them from step 1 on; "
            "--load " +
            save + " continues that run instead\n") != again.out.npos);
  CHECK(files_in(save) == before);
  for (const std::string& load : {save, save + "/step_000002", save + "/step_000002/"}) {
    CAPTURE(load);
    const outcome resumed = train(program, save, {"--load", load, "--steps", "6", "--lr", "0.25"});
    CHECK(resumed.code == 0);
    CHECK(resumed.out.find("note: RC6534") == resumed.out.npos);
    std::filesystem::remove_all(save + "/step_000006");
  }
}

TEST_CASE("a run does not save beside a checkpoint whose run.json cannot be read") {
  const scratch files;
  const fake_program program(1, 1, 1);
  const std::string save = files.path("s");
  REQUIRE(train(program, save, {"--steps", "2"}).code == 0);
  files.write("s/step_000002/run.json", "{}\n");
  const outcome refused = train(program, save, {"--steps", "2"});
  CHECK(refused.code == 2);
  CHECK(said_in(refused.err).id == 6533);
}

TEST_CASE("checkpoints and a model do not share a folder, and --init does not choose between them") {
  const scratch files;
  const fake_program program(1, 1, 1);
  const std::string save = files.path("s"), model = files.path("m"), file = model + "/model.safetensors";
  REQUIRE(train(program, save, {"--steps", "2"}).code == 0);
  REQUIRE(run(program, {"export", "--load", save, "--out", model}).code == 0);
  const auto refusal = [&](const outcome& o, int code) {
    CHECK(o.code == code);
    CHECK(o.installs == 0);
    return said_in(o.err);
  };
  const std::string checkpoint = save + "/step_000002";
  for (const std::string& out : {save, checkpoint})
    CHECK(refusal(run(program, {"export", "--load", save, "--out", out}), 2) == said{6325, {out}});
  CHECK(refusal(train(program, model, {"--steps", "1", "--init", model}), 2) ==
        said{6323, {model, "model.safetensors", model}});
  CHECK_FALSE(std::filesystem::exists(model + "/step_000001"));

  std::filesystem::copy_file(file, save + "/model.safetensors");
  const outcome both = run(program, {"eval", "--steps", "1", "--init", save});
  CHECK(both.code == 1);
  CHECK(said_in(both.err) == said{6324, {save, "model.safetensors", checkpoint}});
  for (const std::string& one : {checkpoint, save + "/model.safetensors", model})
    CHECK(run(program, {"eval", "--steps", "1", "--init", one}).code == 0);
}
