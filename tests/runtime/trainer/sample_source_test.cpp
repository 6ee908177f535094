// SPDX-License-Identifier: Apache-2.0
// The order of samples: shuffled orders, mixtures, held-out parts, and reading ahead.
#include <rankc/trainer/data.hpp>
#include <rankc/trainer/permutation.hpp>

#include "../../exit_with.hpp"
#include "fake_engine.hpp"
#include "token_files.hpp"

#include <doctest/doctest.h>
#include <cstring>
#include <numeric>
#include <set>

using namespace rankc::runtime;
using rankc::test::exit_of, rankc::test::exit_with;

namespace {

/// The first token of some samples.
std::vector<int> firsts(const dataset& data, std::uint64_t from, std::uint64_t count, int seq,
                        data_part which = data_part::trained) {
  std::vector<int> out;
  std::vector<std::int32_t> tokens(static_cast<std::size_t>(seq)), targets(tokens.size());
  for (std::uint64_t s = from; s < from + count; ++s) {
    data.sample(s, tokens.data(), targets.data(), which);
    out.push_back(tokens[0]);
  }
  return out;
}

}  // namespace

TEST_CASE("a drawn order is a permutation, another one for each seed and epoch") {
  for (const std::uint64_t n : {1, 2, 3, 4, 5, 15, 16, 17, 255, 1000}) {
    std::set<std::uint64_t> seen;
    for (std::uint64_t i = 0; i < n; ++i) seen.insert(permuted(i, n, 7, 0));
    CHECK(seen.size() == n);
    CHECK(*seen.rbegin() == n - 1);
  }
  const auto order = [](std::uint64_t seed, std::uint64_t epoch) {
    std::vector<std::uint64_t> all(1000);
    for (std::uint64_t i = 0; i < 1000; ++i) all[i] = permuted(i, 1000, seed, epoch);
    return all;
  };
  CHECK(order(7, 0) == order(7, 0));
  CHECK(order(7, 0) != order(7, 1));
  CHECK(order(7, 0) != order(8, 0));
  CHECK(order(7, 0) != order(7 + (std::uint64_t{1} << 32), 0));
  // In a random order, about one place of all keeps its sample, and about half of the neighbours rise.
  int stays = 0, rises = 0;
  const auto drawn = order(7, 0);
  for (std::uint64_t i = 0; i < 1000; ++i) {
    stays += drawn[i] == i;
    rises += i > 0 && drawn[i] > drawn[i - 1];
  }
  CHECK(stays < 6);
  CHECK(std::abs(rises - 500) < 60);
}

TEST_CASE("--shuffle draws the windows of each epoch") {
  const scratch files;
  const std::string file = counting(files, "t.bin", 0, 401);
  const auto open = [&](const char* shuffle) {
    return dataset(parse_data_spec(file), 500, 4, {parse_shuffle(shuffle)});
  };
  const std::vector<int> plain = firsts(open("none"), 0, 100, 4), first = firsts(open("5"), 0, 100, 4),
                         second = firsts(open("5"), 100, 100, 4);
  CHECK(plain == firsts(open(""), 0, 100, 4));
  CHECK(std::is_sorted(plain.begin(), plain.end()));
  CHECK(first != plain);
  CHECK(first != second);
  for (const auto& epoch : {first, second})
    CHECK(std::set<int>(epoch.begin(), epoch.end()) == std::set<int>(plain.begin(), plain.end()));
  for (const char* wrong : {"x", "-1", "1.5", "megatron", "megatron:", "megatron:4294967296", "megatron:1:0",
                            "megatron:1:x", "megatron:1:2147483648", "megatron:1:18446744073709551615"})
    CHECK(exit_of([&] { parse_shuffle(wrong); }) == exit_with{2, {6059, {wrong}}});
}

TEST_CASE("sources take turns by their weights, each in its own order") {
  const scratch files;
  const std::string a = counting(files, "a.bin", 0, 401), b = counting(files, "b.bin", 1000, 81);
  const dataset mixed(parse_data_spec(a + ":0.7," + b + ":0.3"), 2000, 4);
  int of_b = 0;
  std::vector<int> seen_a, seen_b;
  for (const int token : firsts(mixed, 0, 1000, 4)) {
    (token >= 1000 ? seen_b : seen_a).push_back(token);
    of_b += token >= 1000;
    const double share = 0.3 * static_cast<double>(seen_a.size() + seen_b.size());
    CHECK(std::abs(of_b - share) <= 1);
  }
  CHECK(seen_a == firsts(dataset(parse_data_spec(a), 2000, 4), 0, seen_a.size(), 4));
  CHECK(seen_b == firsts(dataset(parse_data_spec(b), 2000, 4), 0, seen_b.size(), 4));
  // After the end of the pattern, each source continues where it was.
  std::size_t before = 0;
  for (const int token : firsts(mixed, 0, 65536, 4)) before += token >= 1000;
  std::vector<int> after;
  for (const int token : firsts(mixed, 65536, 100, 4))
    if (token >= 1000) after.push_back(token);
  CHECK(after == firsts(dataset(parse_data_spec(b), 2000, 4), before, after.size(), 4));
  CHECK(mixed.text().starts_with("0.7 of " + a + ": 401 tokens + 0.3 of " + b));
  CHECK(mixed.epochs_text(1000) == "7.00 epochs of " + a + ", 15.00 of " + b);
  CHECK(mixed.epoch(data_part::trained) == 66);  // 20 / 0.3
  const dataset with_synthetic(parse_data_spec("arith:1:1," + b + ":3"), 2000, 4);
  CHECK(with_synthetic.epochs_text(40) == "1.50 epochs of " + b);
}

TEST_CASE("what is held out is the end of the files, and no sample of training is of it") {
  const scratch files;
  const std::string file = counting(files, "t.bin", 0, 401);
  for (const char* shuffle : {"none", "3"}) {
    const dataset data(parse_data_spec(file), 500, 4, {parse_shuffle(shuffle), 0.1});
    CHECK(data.epoch(data_part::trained) == 90);
    CHECK(data.epoch(data_part::held_out) == 10);
    for (const int token : firsts(data, 0, 300, 4)) CHECK(token < 360);
    CHECK(firsts(data, 0, 11, 4, data_part::held_out) ==
          std::vector<int>{360, 364, 368, 372, 376, 380, 384, 388, 392, 396, 360});
  }
  const dataset plain(parse_data_spec(file), 500, 4, {{}, 0.1});
  CHECK(firsts(plain, 0, 90, 4) == firsts(dataset(parse_data_spec(file), 500, 4), 0, 90, 4));
  CHECK(dataset(parse_data_spec(file), 500, 4, {{}, 1e-6}).epoch(data_part::held_out) == 1);
  CHECK(exit_of([&] { dataset(parse_data_spec(file), 500, 200, {{}, 0.9}); }) ==
        exit_with{1, {6138, {file, "2", "200", "0.9"}}});
  const dataset drawn(parse_data_spec("rand:1"), 500, 4);
  CHECK_FALSE(drawn.epoch(data_part::held_out));
  CHECK(firsts(drawn, 0, 5, 4, data_part::held_out) == firsts(drawn, std::uint64_t{1} << 40, 5, 4));
}

TEST_CASE("files by a pattern, and a folder with token files, are those in order") {
  const scratch files;
  counting(files, "shards/b_1.bin", 100, 50);
  counting(files, "shards/b_0.bin", 0, 50);
  files.write("shards/notes.txt", "about them");
  for (const char* name : {"shards/b_*.bin", "shards/b_?.bin", "shards"}) {
    const token_stream stream(files.path(name), 500);
    std::vector<std::int32_t> tokens(stream.size());
    stream.copy(0, tokens.size(), tokens.data());
    REQUIRE(tokens.size() == 100);
    CHECK(tokens[0] == 0);
    CHECK(tokens[49] == 49);
    CHECK(tokens[50] == 100);
    std::vector<std::int32_t> across(4);
    stream.copy(48, 4, across.data());
    CHECK(across == std::vector<std::int32_t>{48, 49, 100, 101});
  }
  CHECK(token_stream(files.path("shards"), 500).skipped() ==
        std::vector{files.path("shards/notes.txt") + " (no tokens)"});
  CHECK(exit_of([&] { token_stream(files.path("c_*.bin"), 500); }) ==
        exit_with{1, {6146, {files.path("c_*.bin")}}});
  CHECK(exit_of([&] { token_stream(files.path("shards/*"), 500); }) ==
        exit_with{1, {6150, {files.path("shards/notes.txt")}}});
  const std::string binary = files.write("picture.png", std::string("PNG\0x", 5));
  CHECK(exit_of([&] { token_stream(binary, 500); }) == exit_with{1, {6147, {binary, "3", binary}}});
  CHECK(token_stream(files.write("code.cpp", "int x;"), 256).size() == 6);
}

TEST_CASE("batches read ahead are those read one by one, and a bad token stops the step that needs it") {
  const fake_program program(1, 2, 1);
  const dataset data(parse_data_spec("rand:3"), 256, program.about.seq);
  batch_reader reader(program.about, data, 16);
  for (std::uint64_t first : {16, 24, 32}) {
    const batch ahead = reader.next(), here = read_batch(program.about, data, first);
    CHECK(ahead.tokens == here.tokens);
    CHECK(ahead.targets == here.targets);
  }
  const scratch files;
  const std::string file = counting(files, "t.bin", 0, 200);
  const dataset cut(parse_data_spec(file), 256, program.about.seq);
  {
    std::fstream out(file, std::ios::in | std::ios::out |
                               std::ios::binary);  // the file changes after it was opened and checked
    const std::uint16_t token = 300;
    out.seekp(1024 + 2 * 40);
    out.write(reinterpret_cast<const char*>(&token), 2);
  }
  batch_reader failing(program.about, cut, 0);
  failing.next();
  CHECK(exit_of([&] { failing.next(); }) == exit_with{1, {6157, {file, "300", "40", "1104", "255"}}});
}
