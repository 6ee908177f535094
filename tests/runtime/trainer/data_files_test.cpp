// SPDX-License-Identifier: Apache-2.0
// The files below a data folder: links to files are read, checkpoints are not, and all skipped files are
// listed.
#include <rankc/trainer/data_files.hpp>
#include <rankc/trainer/token_file.hpp>

#include "../../exit_with.hpp"
#include "fake_run.hpp"
#include "token_files.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

using namespace rankc::runtime;
namespace fs = std::filesystem;

namespace {

/// A data folder, and another one that its links lead to.
struct linked_folders {
  scratch files;
  std::string data = files.path("data"), other = files.path("other");

  linked_folders() { fs::create_directories(data); }
  void link(const std::string& to, const std::string& name) const {
    fs::create_symlink(to, data + "/" + name);
  }
  std::vector<std::string> read() const {
    std::vector<std::string> names;
    for (const fs::path& file : find_data_files(data).files) names.push_back(file.lexically_relative(data));
    return names;
  }
  /// The reasons for the skipped files, by name.
  std::vector<std::string> skipped() const {
    std::vector<std::string> reasons;
    for (const std::string& text : find_data_files(data).skipped)
      reasons.push_back(text.substr(data.size() + 1));
    return reasons;
  }
};

}  // namespace

TEST_CASE("links to files outside of a folder are read, all others are listed") {
  const linked_folders of;
  of.files.write("other/a.txt", "AAAA");
  of.files.write("data/b.txt", "BBBB");
  of.link("../other/a.txt", "a.txt");
  of.link("b.txt", "c.txt");
  of.link("../other", "folder");
  of.link("../nothing", "gone.txt");
  REQUIRE(mkfifo((of.data + "/pipe").c_str(), 0600) == 0);
  CHECK(of.read() == std::vector<std::string>{"a.txt", "b.txt"});
  CHECK(of.skipped() == std::vector<std::string>{"c.txt (a link to a file of the folder)",
                                                 "folder (a link to a folder)",
                                                 "gone.txt (a link to nothing)", "pipe (no regular file)"});
}

TEST_CASE("a folder of links to token files holds their tokens") {
  const linked_folders of;
  counting(of.files, "other/a.bin", 0, 100);
  counting(of.files, "other/b.bin", 100, 100);
  of.link("../other/a.bin", "a.bin");
  of.link("../other/b.bin", "b.bin");
  const token_stream stream(of.data, 500);
  CHECK(stream.size() == 200);
  CHECK(stream.skipped().empty());
}

TEST_CASE("a link to a token file has the mask and the index along the link") {
  const linked_folders of;
  counting(of.files, "other/a.bin", 0, 10);
  of.files.write("other/a.mask", mask(10, [](std::uint64_t i) { return i < 4; }));
  of.link("../other/a.bin", "first.bin");
  of.link("first.bin", "second.bin");
  CHECK(token_stream(of.data + "/second.bin", 500).labels() == 6);
  of.files.write("data/first.mask", mask(10, [](std::uint64_t i) { return i < 7; }));
  CHECK(token_stream(of.data + "/second.bin", 500).labels() == 3);
  megatron<std::uint16_t>(of.files, "other/m", 8, {{1, 2}, {3}});
  of.link("../other/m.bin", "m.bin");
  CHECK(token_stream(of.data + "/m.bin", 500).size() == 3);
  CHECK(token_stream(of.data, 500).size() == 10 + 3 + 10);
}

TEST_CASE("a link to nothing with the name of a mask or an index is refused") {
  const linked_folders of;
  counting(of.files, "data/a.bin", 0, 10);
  for (const std::string name : {"a.mask", "a.idx"}) {
    of.link("gone", name);
    CHECK(rankc::test::exit_of([&] { token_stream(of.data + "/a.bin", 500); }) ==
          rankc::test::exit_with{1, {6101, {of.data + "/" + name, "No such file or directory"}}});
    fs::remove(of.data + "/" + name);
  }
}

TEST_CASE("names may be as long as the file system allows, and lists of sources longer") {
  const linked_folders of;
  const std::string name = std::string(251, 'n') + ".bin";  // .mask makes it longer than 255
  counting(of.files, "data/" + name, 0, 10);
  CHECK(token_stream(of.data + "/" + name, 500).size() == 10);
  CHECK(token_stream(of.data, 500).size() == 10);
  std::string list = "arith:1:0.5";
  for (int i = 1; i < 40; ++i) list += ",arith:1:0.5";
  CHECK(parse_data_spec(list).sources.size() == 40);
}

TEST_CASE("a pattern leaves out the masks and indexes of its token files") {
  const linked_folders of;
  counting(of.files, "data/a.bin", 0, 10);
  of.files.write("data/a.mask", mask(10, [](std::uint64_t i) { return i < 4; }));
  megatron<std::uint16_t>(of.files, "data/m", 8, {{1, 2}, {3}});
  CHECK(token_stream(of.data + "/*", 500).size() == 13);
  CHECK(token_stream(of.data + "/*", 500).labels() == 9);
  CHECK(rankc::test::exit_of([&] { token_stream(of.data + "/*.mask", 500); }).code == 1);
}

TEST_CASE("other files that a run writes into its data folder are not data either") {
  const linked_folders of;
  of.files.write("data/t.txt", std::string(2000, 'a'));
  of.files.write("data/own.jsonl", "{\"step\": 1, \"text\": \"of a walk\"}\n");
  const fake_program program(1, 1, 1);
  const std::string save = of.files.path("s"), metrics = of.data + "/m.jsonl",
                    trace = of.data + "/trace.json";
  const std::vector<std::string> outputs{"--metrics", metrics, "--trace",       trace,
                                         "--save",    save,    "--tensorboard", of.data + "/curves"};
  const auto train = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "train");
    words.insert(words.end(), outputs.begin(), outputs.end());
    const outcome done = run(program, words);
    CHECK_MESSAGE(done.code == 0, done.err);
  };
  train({"--steps", "2", "--data", of.data});
  REQUIRE(run(program, {"export", "--load", save, "--out", of.data + "/model"}).code == 0);
  of.files.write("data/model/config.json", "{}");
  train({"--steps", "4", "--load", save});
  std::vector<std::string> read = of.read();
  std::erase_if(read, [](const std::string& name) { return name.starts_with("curves/"); });  // binary
  CHECK(read == std::vector<std::string>{"own.jsonl", "t.txt"});
  CHECK(of.skipped() ==
        std::vector<std::string>{"m.jsonl (metrics)", "model (a model)", "trace.json (a trace)"});
}

TEST_CASE("checkpoints inside a data folder are not data") {
  const linked_folders of;
  std::string text;
  for (int i = 0; i < 2000; ++i) text += static_cast<char>('a' + i % 23);
  of.files.write("data/t.txt", text);
  of.files.write("data/latest", "news of today");  // a text file with the same name
  const fake_program program(1, 1, 1);
  const std::string save = of.data + "/runs", metrics = of.files.path("m"), whole = of.files.path("w");
  REQUIRE(run(program, {"train", "--steps", "3", "--data", of.data, "--save", save}).code == 0);
  CHECK(of.read() == std::vector<std::string>{"latest", "t.txt"});
  CHECK(of.skipped() == std::vector<std::string>{"runs/.lock (of checkpoints)",
                                                 "runs/latest (of checkpoints)",
                                                 "runs/step_000003 (a checkpoint)"});
  const outcome resumed = run(program, {"train", "--steps", "6", "--load", save, "--metrics", metrics});
  CHECK_MESSAGE(resumed.code == 0, resumed.err);
  CHECK(resumed.out.find(": 2013 tokens in 2 files") != std::string::npos);
  REQUIRE(run(program, {"train", "--steps", "6", "--data", of.data, "--metrics", whole}).code == 0);
  CHECK(losses_of(metrics).back() == losses_of(whole).back());
}
