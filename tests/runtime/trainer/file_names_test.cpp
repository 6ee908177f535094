// SPDX-License-Identifier: Apache-2.0
// File names on command lines: any bytes, and paths of files that are not regular. Each is used, or refused
// with one sentence that names the option's file, and no command blocks.
#include "fake_run.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <algorithm>

namespace file_names_test {

using namespace rankc::runtime;
namespace fs = std::filesystem;

namespace {

/// Paths that cannot be read as a file.
std::vector<std::string> unreadable(const scratch& files) {
  const std::string fifo = files.path("fifo"), loop = files.path("loop");
  REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  fs::create_symlink("loop", loop);
  files.write("file", "x");
  return {fifo,
          loop,
          files.path("file") + "/below",
          files.path("none"),
          files.path(std::string(300, 'n')),
          files.path(std::string(5000, '/') + "n"),
          "/dev/zero",
          "/dev/tty"};
}

/// Checks that a command line is refused with one sentence that has an id.
void check_refused(const fake_program& program, const std::vector<std::string>& words) {
  CAPTURE(words.at(words.size() - 2) + " " + words.back().substr(0, 300));
  const outcome done = run(program, words);
  CHECK((done.code == 1 || done.code == 2 || done.code == 65));
  CHECK(done.err.starts_with("fake: RC"));  // a long name is cut, and so may be the sentence
  CHECK_FALSE(done.err.starts_with("fake: RC6095"));
  CHECK(std::count(done.err.begin(), done.err.end(), '\n') == 1);
  for (const char* word : {"json.exception", "filesystem error", "basic_", "vector::", "what()"})
    CHECK(done.err.find(word) == std::string::npos);
}

}  // namespace

TEST_CASE("a file to read that is a FIFO, a device, a loop, missing or too long is refused by every option") {
  const scratch files;
  fake_program program(1, 1, 1);
  program.leave_logits();
  const std::string save = files.path("s");
  REQUIRE(run(program, {"train", "--steps", "1", "--save", save}).code == 0);
  for (const std::string& path : unreadable(files)) {
    check_refused(program, {"train", "--steps", "1", "--data", path});
    check_refused(program, {"train", "--steps", "1", "--eval-data", path});
    check_refused(program, {"train", "--steps", "1", "--init", path});
    check_refused(program, {"train", "--steps", "1", "--load", path});
    check_refused(program, {"eval", "--init", path});
    check_refused(program, {"export", "--load", path, "--out", files.path("out")});
    check_refused(program, {"train", "--steps", "1", "--data", "arrays:" + path});
    check_refused(program, {"train", "--steps", "1", "--data", "arith:1:0.5," + path + ":0.5"});
    check_refused(program, {"generate", "--load", save, "--prompt-tokens", path});
    check_refused(program, {"generate", "--load", save, "--prompt", "a", "--tokenizer", path});
    check_refused(program, {"score", "--load", save, "--requests", path});
    check_refused(program, {"export", "--load", save, "--out", files.path("out"), "--format", "huggingface",
                            "--source", path});
  }
}

TEST_CASE("a file beside a token file that is a FIFO, a device, a loop or missing is refused") {
  const scratch files;
  fake_program program(1, 1, 1);
  const std::string tokens = counting(files, "a.bin", 0, 200);
  REQUIRE(run(program, {"train", "--steps", "1", "--data", tokens}).code == 0);
  for (const std::string& path : unreadable(files)) {
    if (path.size() > 250) continue;  // a link stands for a name of this length at most
    for (const char* const beside : {"a.idx", "a.mask", "a.weights"}) {
      fs::create_symlink(path, files.path(beside));
      check_refused(program, {"train", "--steps", "1", "--data", tokens});
      fs::remove(files.path(beside));
    }
  }
}

TEST_CASE("a file or folder to write that cannot be made is refused by every option") {
  const scratch files;
  const fake_program program(1, 1, 1);
  const std::string save = files.path("s");
  REQUIRE(run(program, {"train", "--steps", "1", "--save", save}).code == 0);
  for (const std::string& path : unreadable(files)) {
    if (path == files.path("none")) continue;
    check_refused(program, {"train", "--steps", "1", "--save", path});
    check_refused(program, {"train", "--steps", "1", "--tensorboard", path});
    check_refused(program, {"export", "--load", save, "--out", path});
    if (path.starts_with("/dev")) continue;  // metrics may go to a device
    check_refused(program, {"train", "--steps", "1", "--metrics", path});
    check_refused(program, {"train", "--steps", "1", "--trace", path});
  }
}

TEST_CASE("names that are no UTF-8 or hold control characters can be written, read and printed") {
  for (const std::string name : {"caf\xe9", "a\x1b]0;title\x07", "two\nlines", "-dash", "a b*?[1]"}) {
    CAPTURE(name);
    const scratch files;
    const fake_program program(1, 1, 1);
    const std::string save = files.path(name), metrics = files.path(name + ".jsonl"),
                      trace = files.path(name + ".json"), board = files.path(name + ".board"),
                      out = files.path(name + ".out");
    const outcome done = run(program, {"train", "--steps", "2", "--save", save, "--metrics", metrics,
                                       "--trace", trace, "--tensorboard", board});
    CHECK_MESSAGE(done.code == 0, done.err);
    CHECK(fs::exists(save + "/step_000002/COMMIT"));
    CHECK(lines_of(metrics).size() == 2);
    CHECK(fs::exists(trace));
    CHECK(fs::exists(board));
    CHECK(run(program, {"train", "--steps", "3", "--load", save, "--save", save}).code == 0);
    const outcome exported = run(program, {"export", "--load", save, "--out", out});
    CHECK_MESSAGE(exported.code == 0, exported.err);
    CHECK(fs::exists(out + "/model.safetensors"));
    for (const std::string& printed : {done.out, exported.out})
      for (const char c : printed) CHECK((static_cast<unsigned char>(c) >= 0x20 || c == '\n'));
    CHECK(done.out.find("\xe9") == std::string::npos);
    CHECK(std::count(exported.out.begin(), exported.out.end(), '\n') == 1);
  }
}

}  // namespace file_names_test
