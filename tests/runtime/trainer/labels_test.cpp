// SPDX-License-Identifier: Apache-2.0
// Labels that the loss ignores, from a mask next to a token file and from files of labels.
#include <rankc/trainer/data.hpp>
#include <packed_examples.hpp>

#include "../../exit_with.hpp"
#include "fake_run.hpp"
#include "token_files.hpp"

#include <doctest/doctest.h>
#include <array>

using namespace rankc::runtime;
using rankc::test::exit_of, rankc::test::exit_with, rankc::test::said, rankc::test::said_in;

namespace {

using numbers = std::vector<std::int32_t>;
constexpr std::int32_t ignored = -100;

bool is_third(std::uint64_t i) { return i % 3 == 0; }

/// The targets of a sample.
numbers targets_of(const dataset& data, std::uint64_t s, int seq, data_part which = data_part::trained) {
  numbers tokens(static_cast<std::size_t>(seq)), targets(tokens.size());
  data.sample(s, tokens.data(), targets.data(), which);
  return targets;
}

dataset open(const std::string& file, int seq, const sample_order& order = {},
             const std::string& labels = {}) {
  std::vector<opened_source> sources = open_sources(parse_data_spec(file, labels), 65536, ignored);
  const std::vector orders(sources.size(), order);
  return dataset(std::move(sources), 65536, seq, orders, {});
}

/// The targets of counting()'s window at `first`, with every third token ignored.
numbers masked_window(int first, int seq) {
  numbers out;
  for (int i = first + 1; i <= first + seq; ++i) out.push_back(i % 3 == 0 ? ignored : i);
  return out;
}

}  // namespace

TEST_CASE("a target is ignored where the mask ignores the token after") {
  const scratch files;
  const std::string file = counting(files, "t.bin", 0, 101);
  files.write("t.mask", mask(101, is_third));
  const dataset data = open(file, 5);
  for (int s = 0; s < 20; ++s)
    CHECK(targets_of(data, static_cast<std::uint64_t>(s), 5) == masked_window(5 * s, 5));
  CHECK(data.text().ends_with("t.bin: 101 tokens, of which 67 are labels"));
}

TEST_CASE("drawn orders, held-out parts, folders and mixtures keep the mask beside its tokens") {
  const scratch files;
  counting(files, "d/a.bin", 0, 50);
  counting(files, "d/b.bin", 50, 51);
  files.write("d/a.mask", mask(50, is_third));
  files.write("d/b.mask", mask(51, [](std::uint64_t i) { return is_third(i + 50); }));
  const auto check = [](const dataset& data, data_part which, std::uint64_t samples) {
    for (std::uint64_t s = 0; s < samples; ++s) {
      numbers tokens(5), targets(5);
      data.sample(s, tokens.data(), targets.data(), which);
      CHECK(targets == masked_window(tokens[0], 5));
    }
  };
  const dataset data = open(files.path("d"), 5, {parse_shuffle("3"), 0.2});
  check(data, data_part::trained, 16);
  check(data, data_part::held_out, 4);
  CHECK(data.sources()[0].text().find("skipped") == std::string::npos);
  check(open(files.path("d/a.bin") + ":0.5," + files.path("d/b.bin") + ":0.5", 5), data_part::trained, 18);
  std::filesystem::remove(files.path("d/b.mask"));  // all of its tokens are then labels
  CHECK(targets_of(open(files.path("d"), 5), 15, 5) == numbers{76, 77, 78, 79, 80});
}

TEST_CASE("a damaged mask is refused by name") {
  const scratch files;
  const std::string file = counting(files, "t.bin", 0, 101), name = files.path("t.mask"),
                    good = mask(101, is_third);
  const auto refused = [&](const std::string& bytes) {
    files.write("t.mask", bytes);
    return exit_of([&] { open(file, 5); });
  };
  CHECK(refused("RANKCMS") == exit_with{1, {6210, {name, "24"}}});
  CHECK(refused("X" + good.substr(1)) == exit_with{1, {6210, {name, "24"}}});
  std::string version = good;
  version[8] = 2;
  CHECK(refused(version) == exit_with{1, {6211, {name, "2", "1"}}});
  CHECK(refused(good.substr(0, 124)) == exit_with{1, {6212, {name, file, "101", "100", "101"}}});
  CHECK(refused(good + '\1') == exit_with{1, {6212, {name, file, "101", "102", "101"}}});
  CHECK(refused(header_of(100) + good.substr(24)) == exit_with{1, {6212, {name, file, "100", "101", "101"}}});
  std::string byte = good;
  byte[24 + 17] = '\xff';
  CHECK(refused(byte) == exit_with{1, {6213, {name, "255", "17"}}});
}

TEST_CASE("a plan that ignores no label refuses a mask, unless every token is a label") {
  const scratch files;
  const std::string file = counting(files, "t.bin", 0, 101),
                    name = files.write("t.mask", mask(101, is_third));
  CHECK(exit_of([&] { open_sources(parse_data_spec(file), 65536); }) == exit_with{1, {6219, {name}}});
  const outcome refused = run(fake_program(1, 1, 1), {"train", "--steps", "1", "--data", file});
  CHECK(refused.code == 1);
  CHECK(refused.installs == 0);
  CHECK(said_in(refused.err) == said{6219, {name}});
  fake_program masked(1, 1, 1);
  masked.about.ignored_label = ignored;
  const outcome done = run(masked, {"train", "--steps", "1", "--data", file});
  CHECK(done.code == 0);
  CHECK(done.out.find("t.bin: 101 tokens, of which 67 are labels") != std::string::npos);
  files.write("t.mask", mask(101, [](std::uint64_t) { return false; }));
  CHECK(run(fake_program(1, 1, 1), {"train", "--steps", "1", "--data", file}).code == 0);
}

TEST_CASE("a changed mask is a change of the data") {
  const scratch files;
  const std::string file = counting(files, "t.bin", 0, 101), save = files.path("s");
  const auto every = [](std::uint64_t) { return false; };
  files.write("t.mask", mask(101, every));
  const fake_program program(1, 1, 1);
  REQUIRE(run(program, {"train", "--steps", "1", "--data", file, "--save", save}).code == 0);
  CHECK(run(program, {"train", "--steps", "2", "--load", save}).code == 0);
  const std::string name = files.write("t.mask", mask(101, every, 7));
  const outcome refused = run(program, {"train", "--steps", "2", "--load", save});
  CHECK(refused.code == 1);
  CHECK(said_in(refused.err, 6180).arguments.at(2) == name + " has other bytes");
  std::filesystem::remove(name);
  CHECK(said_in(run(program, {"train", "--steps", "2", "--load", save}).err, 6180).arguments.at(2) ==
        name + " is gone");
}

TEST_CASE("labels of Megatron's files replace tokens as targets") {
  const scratch files;
  const std::string tokens = megatron<std::uint16_t>(files, "t", 8, {{1, 2, 3, 4}, {5, 6}, {7, 8, 9}}),
                    labels = megatron<std::int32_t>(files, "l", 4,
                                                    {{-100, 20, 30, -100}, {50, 60}, {70, -100, 90}});
  const dataset data = open(tokens, 4, {}, labels);
  CHECK(targets_of(data, 0, 4) == numbers{20, 30, -100, 50});
  CHECK(targets_of(data, 1, 4) == numbers{60, 70, -100, 90});
  CHECK(data.text().find(", with the labels of " + labels) != std::string::npos);
  const dataset drawn = open(tokens, 4, {parse_shuffle("megatron:1"), 0}, labels);
  const numbers all_tokens{1, 2, 3, 4, 5, 6, 7, 8, 9}, all_labels{-100, 20, 30, -100, 50, 60, 70, -100, 90};
  for (std::uint64_t s = 0; s < *drawn.epoch(data_part::trained); ++s) {
    numbers read(4), targets(4);
    drawn.sample(s, read.data(), targets.data());
    for (std::size_t i = 0; i + 1 < read.size(); ++i)
      CHECK(targets[i] == all_labels[static_cast<std::size_t>(read[i + 1] - 1)]);
  }
}

TEST_CASE("labels that do not fit are refused") {
  const scratch files;
  const std::vector<std::vector<std::uint16_t>> three{{1, 2, 3, 4}, {5, 6}, {7, 8, 9}};
  const std::string tokens = megatron(files, "t", 8, three), plain = counting(files, "p.bin", 0, 9);
  const auto refused = [&](const std::string& labels, const std::string& data = {}) {
    return exit_of([&] { open(data.empty() ? tokens : data, 4, {}, labels); });
  };
  const auto labels = [&](const std::vector<std::vector<std::int32_t>>& sequences) {
    return megatron(files, "l", 4, sequences);
  };
  CHECK(refused(labels({{1, 2, 3, 4}, {5}, {7, 8, 9}})) ==
        exit_with{1, {6221, {files.path("l"), "1", "1", tokens, "2"}}});
  CHECK(refused(labels({{1, 2, 3, 4}, {5, 6}})) ==
        exit_with{1, {6221, {files.path("l"), "0", "2", tokens, "3"}}});
  CHECK(refused(plain) == exit_with{1, {6220, {plain, tokens}}});
  CHECK(refused(tokens, plain) == exit_with{1, {6220, {tokens, plain}}});
  const std::string outside = labels({{1, 2, 3, 4}, {5, -1}, {7, 8, 9}}), bin = files.path("l.bin");
  CHECK(refused(outside) == exit_with{1, {6216, {bin, "-1", "5", "20", "65535", "-100"}}});
  CHECK(exit_of([&] { open_sources(parse_data_spec(tokens, outside), 65536); }) ==
        exit_with{1, {6217, {bin, "-1", "5", "20", "65535"}}});
  CHECK(exit_of([&] { parse_data_spec("arith:1", outside); }) == exit_with{2, {6218, {outside, "arith:1"}}});
  const std::string two = plain + ":0.5," + plain + ":0.5";
  CHECK(exit_of([&] { parse_data_spec(two, outside); }) == exit_with{2, {6218, {outside, two}}});
  const std::string of_megatron = files.write("t.mask", mask(9, is_third));
  CHECK(refused(tokens) == exit_with{1, {6215, {of_megatron}}});
}

TEST_CASE("a run reads the labels that --labels names, and keeps their name") {
  const scratch files;
  const std::vector<std::vector<std::uint16_t>> sequences(4, std::vector<std::uint16_t>(20, 1));
  const std::string tokens = megatron(files, "t", 8, sequences), save = files.path("s"),
                    labels = megatron<std::int32_t>(files, "l", 4, {4, std::vector<std::int32_t>(20, 2)});
  const fake_program program(1, 1, 1);
  const auto with_labels = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words{"train", "--labels", labels};
    words.insert(words.end(), more.begin(), more.end());
    return run(program, words);
  };
  CHECK(said_in(with_labels({}).err) == said{6224, {labels}});
  REQUIRE(with_labels({"--data", tokens, "--steps", "1", "--save", save}).code == 0);
  const outcome resumed = run(program, {"train", "--load", save, "--steps", "2"});
  CHECK(resumed.code == 0);
  CHECK(resumed.out.find(", with the labels of " + labels) != std::string::npos);
  megatron<std::int32_t>(files, "l", 4, {4, std::vector<std::int32_t>(20, 3)});
  const outcome changed = run(program, {"train", "--load", save, "--steps", "2"});
  CHECK(said_in(changed.err, 6180).arguments.at(2) == labels + ".bin has other bytes");
  CHECK(said_in(changed.err, 6180).arguments.at(3) == tokens + " --labels " + labels);
  const outcome without = run(program, {"train", "--load", save, "--steps", "2", "--data", tokens});
  CHECK(without.code == 0);
  CHECK(said_in(without.out, 6291) == said{6291, {tokens, labels}});
  const outcome with = with_labels({"--load", save, "--steps", "2", "--data", tokens});
  CHECK(with.code == 0);
  CHECK(with.out.find("RC6291") == std::string::npos);
}

TEST_CASE("equal masks, indexes and labels do not make other tokens trained data") {
  const scratch files;
  fake_program program(1, 1, 1);
  program.about.ignored_label = ignored;
  const auto train = [&](std::vector<std::string> words) {
    words.insert(words.begin(), "train");
    return run(program, words);
  };
  const std::string a = counting(files, "a.bin", 0, 81), b = counting(files, "b.bin", 1, 81);
  for (const char* const name : {"a.mask", "b.mask"}) files.write(name, mask(81, is_third));
  const auto sequences = [](std::uint16_t token) {
    return std::vector<std::vector<std::uint16_t>>(4, std::vector<std::uint16_t>(20, token));
  };
  const std::string m = megatron(files, "m", 8, sequences(1)), n = megatron(files, "n", 8, sequences(2)),
                    labels = megatron(files, "l", 8, sequences(3));
  for (const auto& [trained, other, bin] : {std::array{a, b, a}, std::array{m, n, m + ".bin"}}) {
    CHECK(train({"--steps", "1", "--data", trained, "--eval-data", other}).code == 0);
    CHECK(said_in(train({"--steps", "1", "--data", trained, "--eval-data", trained}).err) ==
          said{6189, {trained, bin}});
  }
  const auto refusal_on_resume = [&](const std::string& first, const std::string& then,
                                     std::vector<std::string> more) {
    const scratch saves;
    std::vector<std::string> words{"--steps", "1", "--data", first, "--save", saves.path("s")};
    words.insert(words.end(), more.begin(), more.end());
    REQUIRE(train(words).code == 0);
    more.insert(more.begin(),
                {"--load", saves.path("s"), "--steps", "2", "--data", then, "--eval-fraction", "0.2"});
    return train(more);
  };
  CHECK(refusal_on_resume(a, b, {}).code == 0);
  CHECK(refusal_on_resume(m, n, {"--labels", labels}).code == 0);
  CHECK(said_in(refusal_on_resume(m, m, {"--labels", labels}).err).id == 6187);
}

TEST_CASE("compressed data is refused, and left out of a folder") {
  const scratch files;
  const std::string zip = files.write("d/a.gz", "\x1f\x8b\x08\x08 text"),
                    zstd = files.write("a.txt", "\x28\xb5\x2f\xfd");
  CHECK(exit_of([&] { open(zip, 4); }) == exit_with{1, {6214, {zip, "gzip", zip}}});
  CHECK(exit_of([&] { open(zstd, 4); }) == exit_with{1, {6214, {zstd, "zstd", zstd}}});
  files.write("d/b", "plain text");
  CHECK(token_stream(files.path("d"), 256).skipped() == std::vector<std::string>{zip + " (compressed)"});
}

TEST_CASE("packed examples that a plan would cut or join cost a note") {
  const scratch files;
  const std::string file = counting(files, "t.bin", 0, 101);
  files.write("t.mask", mask(101, is_third, 10));
  const fake_program program(1, 1, 1);
  description about = program.about;
  const auto notes = [&] {
    return notes_on_packing(about, open_sources(parse_data_spec(file), 65536, ignored));
  };
  about.seq = 10;
  about.end_of_document = 0;
  CHECK(notes().empty());
  about.seq = 5;
  REQUIRE(notes().size() == 1);
  CHECK(said_in(notes()[0]) == said{6222, {file, "10", "5", "5"}});
  about.seq = 10;
  about.end_of_document = -1;
  REQUIRE(notes().size() == 1);
  CHECK(said_in(notes()[0]) == said{6223, {file}});
  fake_program masked(1, 1, 1);
  masked.about.ignored_label = ignored;
  masked.about.end_of_document = 0;
  const std::string seq = std::to_string(masked.about.seq);
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"train", "--steps", "1", "--data", file},
        {"train", "--steps", "1", "--data", "rand:1", "--eval-data", file},
        {"eval", "--init", "hash:1", "--data", file}}) {
    const outcome done = run(masked, words);
    CHECK_MESSAGE(done.code == 0, done.err);
    CHECK(said_in(done.out, 6222) == said{6222, {file, "10", seq, seq}});
  }
}

TEST_CASE("windows of several packed files are the sequences of the files") {
  const scratch files;
  const auto write = [&](const std::string& name, int first, std::uint64_t tokens, std::uint32_t length) {
    const std::string file = counting(files, "d/" + name + ".bin", first, static_cast<int>(tokens));
    files.write("d/" + name + ".mask",
                mask(tokens, [&](std::uint64_t i) { return i + 1 == tokens; }, length));
    return file;
  };
  write("a", 0, 21, 10);
  write("b", 100, 1, 10);  // not a whole sequence
  write("c", 200, 11, 10);
  write("d", 300, 11, 10);
  description about = fake_program(1, 1, 1).about;
  about.seq = 10;
  about.end_of_document = 0;
  const std::string folder = files.path("d"), pattern = folder + "/*.bin";
  const auto notes = [&] {
    return notes_on_packing(about, open_sources(parse_data_spec(folder), 65536, ignored));
  };
  for (const std::string& spec : {folder, pattern}) {
    const dataset data = open(spec, 10);
    CHECK(*data.epoch(data_part::trained) == 4);
    CHECK(data.text().find(": 41 tokens in 4 files, of which 40 are labels") != std::string::npos);
    for (std::uint64_t s = 0; s < 4; ++s) {
      numbers tokens(10), targets(10);
      data.sample(s, tokens.data(), targets.data(), data_part::trained);
      const std::int32_t first = std::array{0, 10, 200, 300}[s];
      CHECK(tokens.front() == first);
      CHECK(tokens.back() == first + 9);
      CHECK(targets.front() == first + 1);
    }
    CHECK(targets_of(data, 3, 10).back() == ignored);
  }
  CHECK(notes().empty());
  const std::string other = write("c", 200, 8, 7), shifted = files.path("d/d.bin");
  REQUIRE(notes().size() == 2);
  CHECK(said_in(notes()[0]) == said{6222, {other, "7", "10", "10"}});
  CHECK(said_in(notes()[1]) == said{6290, {shifted, "10", "27", "10"}});
}

TEST_CASE("a packed file without the target after its last sequence keeps all tokens") {
  const scratch files;
  counting(files, "d/a.bin", 0, 20);
  counting(files, "d/b.bin", 20, 11);
  counting(files, "d/c.bin", 31, 11);
  files.write("d/a.mask", mask(20, is_third, 10));
  files.write("d/b.mask", mask(11, [](std::uint64_t i) { return i == 0; }, 10));  // its last token is a label
  const dataset data = open(files.path("d"), 5);
  CHECK(data.text().find(": 42 tokens in 3 files") != std::string::npos);
}
