// SPDX-License-Identifier: Apache-2.0
// The tokens that a resumed run trains on, for each change of plan, options and files between two runs.
#include "../../exit_with.hpp"
#include "fake_run.hpp"
#include "run_json.hpp"
#include "token_files.hpp"

#include <doctest/doctest.h>
#include <map>
#include <random>
#include <set>

using namespace rankc::runtime;
using rankc::test::exit_with, rankc::test::said, rankc::test::said_in;

namespace {

using numbers = std::vector<int>;

constexpr int tokens_below = 8192;
constexpr int per_step = 8;

/// A run, and the first token of each sample that it trains on.
struct watched : outcome {
  numbers firsts;
};

watched watch(const fake_program& program, std::vector<std::string> words) {
  words.insert(words.begin(), "train");
  std::vector<numbers> steps;
  watched w{run(program, words, [&](fake_engine& e) { e.firsts = &steps; }), {}};
  for (const numbers& step : steps) w.firsts.insert(w.firsts.end(), step.begin(), step.end());
  return w;
}

/// The same for a run that must succeed.
watched trained(const fake_program& program, const std::vector<std::string>& words) {
  watched w = watch(program, words);
  REQUIRE_MESSAGE(w.code == 0, w.err);
  return w;
}

struct seq_program : fake_program {
  explicit seq_program(int seq, int vocab_ = tokens_below) : fake_program(1, 1, 1, dtype::f64, vocab_) {
    about.seq = seq;
  }
};

/// The numbers first, first + by, first + 2 by, ...
numbers from(int first, int by, int count) {
  numbers out;
  for (int i = 0; i < count; ++i) out.push_back(first + i * by);
  return out;
}

numbers between(const numbers& all, int low, int high) {
  numbers out;
  for (const int x : all)
    if (x >= low && x < high) out.push_back(x);
  return out;
}

exit_with refusal(const outcome& o, int id = 0) {
  CHECK(o.installs == 0);
  return {o.code, said_in(o.err, id)};
}

bool has(const outcome& o, const std::string& text) { return o.out.find(text) != o.out.npos; }

}  // namespace

TEST_CASE("a new seq goes on at the next token") {
  const scratch files;
  const seq_program shorter(4), longer(8);
  const std::string t = counting(files, "t.bin", 0, 401), save = files.path("s"), metrics = files.path("m");
  trained(shorter, {"--steps", "3", "--data", t, "--save", save});
  const watched second =
      trained(longer, {"--load", save, "--steps", "4", "--save", save, "--metrics", metrics});
  CHECK(second.firsts == from(96, 8, per_step));
  CHECK(said_in(second.out, 6181) == said{6181, {t, "96", "8", "4"}});
  CHECK(lines_of(metrics).back()["tokens"] == 160);
  CHECK(has(second, "; 0.40 epochs; loss"));
  const watched third =
      trained(shorter, {"--load", save, "--steps", "12", "--save", save, "--metrics", metrics});
  numbers expected = from(160, 4, 60);  // the end of the epoch: 100 windows of 4 tokens
  for (const int x : from(0, 4, 4)) expected.push_back(x);
  CHECK(third.firsts == expected);
  CHECK(lines_of(metrics).back()["tokens"] == 416);
  // A run that was stopped in the second phase continues there.
  const watched later = trained(shorter, {"--load", save, "--steps", "13"});
  CHECK(later.firsts == from(16, 4, per_step));
  CHECK(said_in(later.out, 6181).id == 0);
}

TEST_CASE("a new seq in a mixture: each source goes on at its next token") {
  const scratch files;
  const seq_program shorter(4), longer(8);
  const std::string a = counting(files, "a.bin", 0, 2001), b = counting(files, "b.bin", 4000, 2001),
                    save = files.path("s");
  const watched first =
      trained(shorter, {"--steps", "3", "--data", a + ":0.7," + b + ":0.3", "--save", save});
  const numbers of_a = between(first.firsts, 0, 4000), of_b = between(first.firsts, 4000, tokens_below);
  REQUIRE(of_a.size() + of_b.size() == 24);
  const watched second = trained(longer, {"--load", save, "--steps", "5"});
  const numbers next_a = between(second.firsts, 0, 4000), next_b = between(second.firsts, 4000, tokens_below);
  CHECK(next_a == from(of_a.back() + 4, 8, static_cast<int>(next_a.size())));
  CHECK(next_b == from(of_b.back() + 4, 8, static_cast<int>(next_b.size())));
}

TEST_CASE("a new seq of a drawn order begins a new order, and says so") {
  const scratch files;
  const seq_program shorter(4), longer(8);
  const std::string t = counting(files, "t.bin", 0, 401), save = files.path("s");
  trained(shorter, {"--steps", "3", "--data", t, "--save", save, "--shuffle", "7"});
  const watched second = trained(longer, {"--load", save, "--steps", "9"});
  CHECK(said_in(second.out, 6182) == said{6182, {t, "seq is 8 and was 4", "96"}});
  CHECK(std::set<int>(second.firsts.begin(), second.firsts.end()).size() == 48);
  CHECK(second.firsts == trained(longer, {"--steps", "6", "--data", t, "--shuffle", "7"}).firsts);
}

TEST_CASE("the held-out part keeps its beginning under another seq") {
  const scratch files;
  const seq_program shorter(4), longer(16);
  const std::string t = counting(files, "t.bin", 0, 401), save = files.path("s");
  trained(shorter, {"--steps", "3", "--data", t, "--save", save, "--eval-fraction", "0.11"});
  const watched second = trained(longer, {"--load", save, "--steps", "12"});
  CHECK(has(second, "held-out data: the last 2 samples of it\n"));  // from token 356 on
  for (const int token : second.firsts) CHECK(token + 16 <= 356);
}

TEST_CASE("new data begins at its beginning, and known data goes on") {
  const scratch files;
  const seq_program program(4);
  const std::string a = counting(files, "a.bin", 0, 2001), b = counting(files, "b.bin", 4000, 2001),
                    save = files.path("s"), both = files.path("both");
  trained(program, {"--steps", "3", "--data", a, "--save", save});
  const watched other = trained(program, {"--load", save, "--steps", "4", "--data", b, "--save", save});
  CHECK(other.firsts == from(4000, 4, per_step));
  CHECK(said_in(other.out, 6183) == said{6183, {b}});
  CHECK(said_in(other.out, 6184) == said{6184, {a, "96"}});
  const watched back = trained(program, {"--load", save, "--steps", "5", "--data", a});
  CHECK(back.firsts == from(96, 4, per_step));
  CHECK(said_in(back.out, 6185) == said{6185, {a, "96", "1", "0"}});
  const watched mixed = trained(program, {"--load", save + "/step_000003", "--steps", "8", "--save", both,
                                          "--data", a + ":0.7," + b + ":0.3"});
  const numbers of_a = between(mixed.firsts, 0, 4000), of_b = between(mixed.firsts, 4000, tokens_below);
  CHECK(of_a == from(96, 4, 28));
  CHECK(of_b == from(4000, 4, 12));
  const watched turned =
      trained(program, {"--load", both, "--steps", "13", "--data", b + ":0.7," + a + ":0.3"});
  CHECK(between(turned.firsts, 0, 4000) == from(96 + 28 * 4, 4, 12));
  CHECK(between(turned.firsts, 4000, tokens_below) == from(4000 + 12 * 4, 4, 28));
  CHECK(said_in(turned.out, 6185) == said{6185, {b, "48", "0.7", "0.3"}});
  // A renamed file is the same data.
  std::filesystem::rename(a, files.path("moved.bin"));
  const watched moved =
      trained(program, {"--load", save + "/step_000003", "--steps", "4", "--data", files.path("moved.bin")});
  CHECK(moved.firsts == from(96, 4, per_step));
  CHECK_FALSE(has(moved, "RC618"));
}

TEST_CASE("through any changes of seq and mixture each source is read token after token") {
  const std::vector<std::string> mixtures{"A", "B:1,A:1", "A:0.7,B:0.3", "C:2,A:1,B:5", "B", "C:0.2,B:0.8"};
  for (const unsigned seed : {1u, 2u, 3u}) {
    const scratch files;
    const seq_program programs[]{seq_program(4), seq_program(8), seq_program(6)};
    const std::string save = files.path("s");
    std::map<char, std::string> paths;
    for (const char name : {'A', 'B', 'C'}) {
      const std::string file(1, name);
      paths[name] = counting(files, file + ".bin", 2700 * (name - 'A'), 2700);
    }
    std::map<int, int> next{{0, 0}, {1, 2700}, {2, 5400}};  // the next token of each source
    std::mt19937 random(seed);
    for (int round = 1; round <= 16; ++round) {
      std::string spec;
      for (const char c : mixtures[random() % mixtures.size()])
        spec += paths.contains(c) ? paths[c] : std::string(1, c);
      const seq_program& program = programs[random() % 3];
      std::vector<std::string> words{"--steps", std::to_string(2 * round), "--save", save, "--data", spec};
      if (round > 1) words.insert(words.end(), {"--load", save});
      CAPTURE(seed);
      CAPTURE(spec);
      for (const int first : trained(program, words).firsts) {
        REQUIRE(first == next[first / 2700]);
        next[first / 2700] += program.about.seq;
      }
    }
  }
}

TEST_CASE("an order that is given on resume begins at its beginning, and the same one goes on") {
  const scratch files;
  const seq_program program(4);
  const std::string t = counting(files, "t.bin", 0, 401), save = files.path("s");
  trained(program, {"--steps", "3", "--data", t, "--save", save, "--shuffle", "1"});
  const watched same = trained(program, {"--load", save, "--steps", "5", "--shuffle", "1"});
  CHECK_FALSE(has(same, "RC618"));
  const watched whole = trained(program, {"--steps", "5", "--data", t, "--shuffle", "1"});
  CHECK(same.firsts == numbers(whole.firsts.begin() + 24, whole.firsts.end()));
  const watched other = trained(program, {"--load", save, "--steps", "5", "--shuffle", "9"});
  CHECK(other.firsts == trained(program, {"--steps", "2", "--data", t, "--shuffle", "9"}).firsts);
  CHECK(said_in(other.out, 6182) == said{6182, {t, "--shuffle is 9 and was 1", "96"}});
}

TEST_CASE("what has been trained on cannot be held out on resume") {
  const scratch files;
  const seq_program program(4);
  const std::string t = counting(files, "t.bin", 0, 401), o = counting(files, "o.bin", 4000, 201),
                    save = files.path("s"), split = files.path("split");
  const numbers whole = trained(program, {"--steps", "5", "--data", t, "--shuffle", "1"}).firsts;
  trained(program, {"--steps", "3", "--data", t, "--shuffle", "1", "--save", save});
  CHECK(refusal(watch(program, {"--load", save, "--steps", "5", "--eval-every", "2"})) ==
        exit_with{2, {6187, {"--eval-every 2", t}}});
  CHECK(refusal(watch(program, {"--load", save, "--steps", "5", "--eval-fraction", "0.1"})) ==
        exit_with{2, {6187, {"--eval-fraction 0.1", t}}});
  const watched apart =
      trained(program, {"--load", save, "--steps", "5", "--eval-every", "2", "--eval-data", o});
  CHECK(apart.firsts == numbers(whole.begin() + 24, whole.end()));
  CHECK(refusal(watch(program, {"--load", save, "--steps", "5", "--eval-data", t})) ==
        exit_with{2, {6189, {t, t}}});
  std::filesystem::copy_file(t, files.path("copy.bin"));
  CHECK(refusal(watch(program, {"--steps", "5", "--data", t, "--eval-data", files.path("copy.bin")})) ==
        exit_with{2, {6189, {files.path("copy.bin"), files.path("copy.bin")}}});
  CHECK(refusal(watch(program, {"--steps", "5", "--data", "rand:3", "--eval-data", "rand:3"})) ==
        exit_with{2, {6189, {"rand:3", "rand:3"}}});

  const numbers held =
      trained(program, {"--steps", "5", "--data", t, "--shuffle", "1", "--eval-fraction", "0.1"}).firsts;
  trained(program,
          {"--steps", "3", "--data", t, "--shuffle", "1", "--eval-fraction", "0.1", "--save", split});
  const numbers rest(held.begin() + 24, held.end());
  for (const char* other : {"0.3", "0"})
    CHECK(refusal(watch(program, {"--load", split, "--steps", "5", "--eval-fraction", other})) ==
          exit_with{2, {6188, {other, "0.1"}}});
  CHECK(trained(program, {"--load", split, "--steps", "5", "--eval-fraction", "0.1"}).firsts == rest);
  const watched both = trained(program, {"--load", split, "--steps", "5", "--eval-data", o});
  CHECK(both.firsts == rest);
  CHECK(has(both, "held-out data: " + o));
}

TEST_CASE("made data can be held out at any time, and how often it is measured is kept") {
  const scratch files;
  const seq_program program(4);
  const std::string save = files.path("s"), metrics = files.path("m");
  trained(program, {"--steps", "2", "--data", "rand:3", "--save", save});
  trained(program, {"--load", save, "--steps", "6", "--save", save, "--eval-every", "2", "--eval-batches",
                    "3", "--metrics", metrics});
  CHECK(lines_of(metrics)[1].contains("eval_loss"));
  trained(program, {"--load", save, "--steps", "10", "--metrics", metrics});
  CHECK_FALSE(lines_of(metrics)[4].contains("eval_loss"));
  CHECK(lines_of(metrics)[5].contains("eval_loss"));
}

TEST_CASE("a held-out part that is shorter than a sample of the new seq is not measured") {
  const scratch files;
  const seq_program shorter(4), longer(32);
  const std::string t = counting(files, "t.bin", 0, 401), save = files.path("s");
  trained(shorter, {"--steps", "3", "--data", t, "--save", save, "--eval-fraction", "0.05"});
  const watched second = trained(longer, {"--load", save, "--steps", "4"});
  CHECK(said_in(second.out, 6198) == said{6198, {t, "32"}});
  CHECK_FALSE(has(second, "  held-out loss "));
  const seq_program longest(390);
  CHECK(refusal(watch(longest, {"--load", save, "--steps", "4"})) == exit_with{1, {6139, {t, "380", "390"}}});
}

TEST_CASE("a new seq of random tokens repeats none of them") {
  const scratch files;
  const seq_program shorter(4), longer(8);
  const std::string save = files.path("s");
  trained(shorter, {"--steps", "3", "--data", "rand:3", "--save", save});  // 24 samples of 5 numbers
  const watched second = trained(longer, {"--load", save, "--steps", "4"});
  const watched whole = trained(longer, {"--steps", "3", "--data", "rand:3"});
  CHECK(second.firsts ==
        numbers(whole.firsts.begin() + 14, whole.firsts.begin() + 22));  // from number 126 on
}

TEST_CASE("Megatron's order is kept on resume, with more steps too") {
  const scratch files;
  const seq_program program(4, 50000), longer(8, 50000);
  const std::string data = std::string(RANKC_DATA_ORACLES) + "/megatron_uint16", save = files.path("s");
  trained(program, {"--steps", "2", "--data", data, "--save", save, "--shuffle", "megatron:1"});
  const watched same = trained(program, {"--load", save, "--steps", "6"});
  CHECK(trained(program, {"--load", save, "--steps", "6", "--shuffle", "megatron:1"}).firsts == same.firsts);
  CHECK_FALSE(has(same, "RC618"));
  const watched other = trained(program, {"--load", save, "--steps", "6", "--shuffle", "megatron:2"});
  CHECK(said_in(other.out, 6182) ==
        said{6182, {data, "--shuffle is megatron:2:48 and was megatron:1:16", "64"}});
  const watched second = trained(longer, {"--load", save, "--steps", "6"});
  CHECK(said_in(second.out, 6182) == said{6182, {data, "seq is 8 and was 4", "64"}});
  CHECK(refusal(
            watch(program, {"--steps", "9223372036854775807", "--data", data, "--shuffle", "megatron:1"})) ==
        exit_with{2, {6060, {"megatron:1", "268435455", "8", "9223372036854775807"}}});
}

TEST_CASE("files that have changed since the checkpoint are refused, or read as new data") {
  const scratch files;
  const seq_program program(4);
  const std::string t = counting(files, "t.bin", 0, 401), o = counting(files, "o.bin", 4000, 201),
                    save = files.path("s"), at = save + "/step_000003";
  trained(program, {"--steps", "3", "--data", t, "--eval-data", o, "--save", save});
  counting(files, "o.bin", 4001, 201);
  const watched other = trained(program, {"--load", save, "--steps", "4"});
  CHECK(said_in(other.out, 6190) == said{6190, {o, o + " has other bytes"}});
  CHECK(other.firsts == from(96, 4, per_step));
  counting(files, "t.bin", 0, 501);
  const std::string grown = t + " has 2026 bytes, and had 1826";
  CHECK(refusal(watch(program, {"--load", save, "--steps", "4"})) == exit_with{1, {6180, {t, at, grown, t}}});
  const watched again = trained(program, {"--load", save, "--steps", "4", "--data", t});
  CHECK(again.firsts == from(0, 4, per_step));
  CHECK(said_in(again.out, 6182) == said{6182, {t, grown, "96"}});
}

TEST_CASE("a part of changed data is not reported as held out") {
  const scratch files;
  const seq_program program(4);
  counting(files, "d/b.bin", 1000, 201);
  const std::string d = files.path("d"), save = files.path("s"), at = save + "/step_000003";
  trained(program, {"--steps", "3", "--data", d, "--save", save, "--eval-fraction", "0.1"});
  const std::string added = counting(files, "d/a.bin", 0, 201);
  CHECK(refusal(watch(program, {"--load", save, "--steps", "4"})) ==
        exit_with{1, {6180, {d, at, added + " is new", d}}});
  const watched again = trained(program, {"--load", save, "--steps", "4", "--data", d});
  CHECK(said_in(again.out, 6191) == said{6191, {d}});
  CHECK_FALSE(has(again, "held-out data:"));
  CHECK_FALSE(has(again, "  held-out loss "));
  CHECK(refusal(watch(program, {"--load", save, "--steps", "4", "--data", d, "--eval-every", "1"})) ==
        exit_with{2, {6187, {"--eval-every 1", d}}});
  std::filesystem::remove(added);
  std::filesystem::remove(d + "/b.bin");
  CHECK(said_in(watch(program, {"--load", save, "--steps", "4"}).err) ==
        said{6180, {d, at, d + "/b.bin is gone", d}});
}

TEST_CASE("run.json of older versions is resumed, with a note of what cannot be checked") {
  const scratch files;
  const seq_program program(4), longer(8);
  const std::string a = counting(files, "a.bin", 0, 2001), b = counting(files, "b.bin", 4000, 2001),
                    spec = a + ":0.7," + b + ":0.3", save = files.path("s"), metrics = files.path("m");
  const numbers whole = trained(program, {"--steps", "5", "--data", spec}).firsts;
  trained(program, {"--steps", "3", "--data", spec, "--save", save, "--eval-fraction", "0.1"});
  make_run_json_old(save + "/step_000003");
  const watched same = trained(program, {"--load", save, "--steps", "5", "--metrics", metrics});
  CHECK(same.firsts == numbers(whole.begin() + 24, whole.end()));
  CHECK(said_in(same.out, 6186) == said{6186, {save + "/step_000003", spec}});
  CHECK(lines_of(metrics).back()["tokens"] == 160);
  const watched other = trained(longer, {"--load", save, "--steps", "5"});
  CHECK(between(other.firsts, 0, 4000).front() ==
        4 * static_cast<int>(between({whole.begin(), whole.begin() + 24}, 0, 4000).size()));
  CHECK(said_in(watch(program, {"--load", save, "--steps", "5", "--eval-fraction", "0.2"}).err) ==
        said{6188, {"0.2", "0.1"}});
}

TEST_CASE("run.json with places that cannot be is refused") {
  const scratch files;
  const seq_program program(4);
  const std::string t = counting(files, "t.bin", 0, 401), save = files.path("s"), at = save + "/step_000003";
  trained(program, {"--steps", "3", "--data", t, "--save", save});
  const std::string before = contents(at + "/run.json"), commit = contents(at + "/COMMIT");
  const auto edited = [&](const char* pointer, const nlohmann::json& value) {
    files.write("s/step_000003/run.json", before);
    files.write("s/step_000003/COMMIT", commit);
    edit_run_json(at, [&](nlohmann::ordered_json& root) {
      root[nlohmann::ordered_json::json_pointer(pointer)] = value;
    });
    return watch(program, {"--load", at, "--steps", "4"});
  };
  CHECK(edited("/read/sources/0/held_from", 100).code == 0);
  CHECK(said_in(edited("/read/sources/0/held_from", 500).err) == said{6140, {"500", t, "401"}});
  CHECK(said_in(edited("/read/sources/0/first_token", 500).err) == said{6140, {"500", t, "401"}});
  for (const auto& [pointer, value] : {std::pair{"/layout/seq", nlohmann::json(0)},
                                       {"/eval_batches", nlohmann::json(0)},
                                       {"/read/since_sample", nlohmann::json(25)},
                                       {"/read/sources", nlohmann::json::array()},
                                       {"/read/sources/0/share", nlohmann::json(0)},
                                       {"/read/sources/0/tokens", nlohmann::json("many")},
                                       {"/read/gaps", nlohmann::json::array({1})},
                                       {"/step", nlohmann::json(2.5)},
                                       {"/step", nlohmann::json(-1)},
                                       {"/samples", nlohmann::json(2e45)},
                                       {"/tokens", nlohmann::json(-1)},
                                       {"/init", nlohmann::json(1)},
                                       {"/data", nlohmann::json({{"escaped", "a%zz"}})},
                                       {"/plan_hash", nlohmann::json("seven")},
                                       {"/layout", nlohmann::json("wide")},
                                       {"/recipe/warmup_steps", nlohmann::json(1e10)},
                                       {"/plan_recipe/nesterov", nlohmann::json(1)},
                                       {"/read/sources/0/seq", nlohmann::json(1ull << 40)},
                                       {"/read/sources/0/files/0/bytes", nlohmann::json(-7)},
                                       {"/plan_recipe/lr", nlohmann::json("high")}}) {
    CAPTURE(pointer);
    const watched refused = edited(pointer, value);
    CHECK(refused.code == 65);
    CHECK(said_in(refused.err).id == 6556);
    CHECK(refused.err.find("json.exception") == std::string::npos);
  }
}

TEST_CASE("run.json says what has been read") {
  const scratch files;
  const seq_program program(4);
  const std::string a = counting(files, "a.bin", 0, 2001), b = counting(files, "b.bin", 4000, 201),
                    save = files.path("s");
  trained(program, {"--steps", "5", "--data", a + ":0.7," + b + ":0.3", "--save", save});
  const auto root = nlohmann::json::parse(contents(save + "/step_000005/run.json"));
  CHECK(root["tokens"] == 160);
  const nlohmann::json& sources = root["read"]["sources"];
  REQUIRE(sources.size() == 2);
  CHECK(sources[0]["source"] == a);
  CHECK(sources[0]["share"] == 0.7);
  CHECK(sources[0]["samples"] == 28);
  CHECK(sources[0]["tokens"] == 112);
  CHECK(sources[1]["tokens"] == 48);
  CHECK(sources[1]["files"][0]["path"] == b);
  CHECK(sources[1]["files"][0]["bytes"] == 1024 + 402);
  CHECK(sources[1]["files"][0]["hash"].get<std::string>().size() == 16);
}

TEST_CASE("--skip-batches leaves out the batches of some steps, once and for all") {
  const scratch files;
  const seq_program program(4);
  const std::string t = counting(files, "t.bin", 0, 2001), save = files.path("s"), more = files.path("more");
  trained(program, {"--steps", "2", "--data", t, "--save", save});
  const watched skipped = trained(program, {"--load", save, "--steps", "5", "--skip-batches", "4:5", "--save",
                                            more, "--save-every", "1"});
  CHECK(skipped.firsts == [] {
    numbers expected = from(64, 4, per_step);
    for (const int x : from(5 * 32, 4, 2 * per_step)) expected.push_back(x);
    return expected;
  }());
  CHECK(said_in(skipped.out, 6192) == said{6192, {"4", "5", "4"}});
  // A checkpoint before the gap does not know it; a later one does.
  for (const int step : {3, 4}) {
    const std::string at = more + "/step_00000" + std::to_string(step);
    CHECK(trained(program, {"--load", at, "--steps", "5"}).firsts ==
          numbers(skipped.firsts.begin() + per_step * (step - 2), skipped.firsts.end()));
  }
  // A second gap is counted in the steps after the first gap.
  CHECK(trained(program, {"--load", more + "/step_000003", "--steps", "5", "--skip-batches", "5:5"}).firsts ==
        [] {
          numbers expected = from(5 * 32, 4, per_step);
          for (const int x : from(7 * 32, 4, per_step)) expected.push_back(x);
          return expected;
        }());
  CHECK(refusal(watch(program, {"--load", more + "/step_000003", "--steps", "5", "--skip-batches", "3:4"})) ==
        exit_with{2, {6193, {"3:4", "3", "3", "4"}}});
  for (const char* wrong : {"4", "0:1", "5:4", "a:b", "4:5:6", "-1:2", ":", "1:99999999999999999999"})
    CHECK(refusal(watch(program, {"--steps", "5", "--skip-batches", wrong})) ==
          exit_with{2, {6030, {wrong}}});
}

TEST_CASE("a run goes on past a batch that leads to NaN") {
  const scratch files;
  const seq_program program(4);
  const std::string t = counting(files, "t.bin", 0, 2001), save = files.path("s");
  const outcome spoilt =
      run(program, {"train", "--steps", "6", "--data", t, "--save", save, "--save-every", "2"},
          [](fake_engine& e) { e.nan_at = 5; });
  REQUIRE(spoilt.code == 70);
  CHECK(spoilt.err.find("--skip-batches 5:5") != std::string::npos);
  const watched past = trained(program, {"--load", save, "--steps", "6", "--skip-batches", "5:5"});
  CHECK(past.firsts == from(5 * 32, 4, 2 * per_step));
}

TEST_CASE("new data ends a gap that has not been reached, and says so") {
  const scratch files;
  const seq_program program(4);
  const std::string a = counting(files, "a.bin", 0, 2001), b = counting(files, "b.bin", 4000, 2001),
                    save = files.path("s");
  trained(program, {"--steps", "3", "--data", a, "--save", save, "--skip-batches", "2:2"});
  const watched after =
      trained(program, {"--load", save, "--steps", "8", "--data", a + ":0.5," + b + ":0.5"});
  CHECK(between(after.firsts, 0, 4000) == from(4 * 32, 4, 20));
  CHECK(said_in(after.out, 6194).id == 0);
  const std::string ahead = files.path("ahead");
  trained(program, {"--steps", "3", "--data", a, "--save", ahead, "--skip-batches", "5:5"});
  const watched lost = trained(program, {"--load", ahead, "--steps", "5", "--data", b});
  CHECK(lost.firsts == from(4000, 4, 2 * per_step));
  CHECK(said_in(lost.out, 6194) == said{6194, {"5"}});
}

TEST_CASE("paths that are no UTF-8 are saved and found again") {
  const scratch files;
  const seq_program program(4);
  const std::string name = "corp\xe9s%.bin", t = counting(files, name, 0, 2001),
                    o = counting(files, "held\xff.bin", 4000, 201), save = files.path("s");
  const watched first =
      trained(program, {"--steps", "4", "--data", t, "--eval-data", o, "--save", save, "--save-every", "2"});
  CHECK(first.err.empty());
  const watched second = trained(program, {"--load", save, "--steps", "5"});
  CHECK(second.firsts == from(128, 4, per_step));
  CHECK(has(second, "held-out data: " + files.path("held\\xff.bin")));
}

TEST_CASE("changes of a plan's recipe on resume are noted") {
  const scratch files;
  seq_program program(4);
  const std::string save = files.path("s");
  trained(program, {"--steps", "2", "--save", save, "--clip", "3"});
  CHECK_FALSE(has(trained(program, {"--load", save, "--steps", "3"}), "RC619"));
  program.about.train.lr = 0.5;
  program.about.train.clip = 7;
  program.about.train.beta2 = 0.5;
  program.about.train.warmup_steps = 4;
  const watched edited = trained(program, {"--load", save, "--steps", "3"});
  CHECK(has(edited,
            "RC6195: this run keeps the learning rate 0.01 of its checkpoint; the plan has 0.5 now: give "
            "--lr 0.5 to take it"));
  CHECK(has(edited,
            "RC6195: this run keeps the largest gradient norm 3 of its checkpoint; the plan has 7 now: give "
            "--clip 7 to take it"));
  CHECK(has(edited,
            "RC6195: this run keeps the schedule warmup:3,cosine:10:0.001 of its checkpoint; the plan has "
            "warmup:4,cosine:10:0.001 now: give --lr-schedule warmup:4,cosine:10:0.001 to take it"));
  CHECK(said_in(edited.out, 6196) == said{6196, {"beta2", "0.5", "0.95"}});
  CHECK_FALSE(has(edited, "weight decay"));
  CHECK_FALSE(
      has(trained(program, {"--load", save, "--steps", "3", "--lr", "0.5"}), "the learning rate 0.01"));
}

TEST_CASE("another optimizer, and another hyperparameter of a user's optimizer, are noted on resume") {
  const scratch files;
  seq_program program(4);
  const std::string save = files.path("s");
  program.about.json =
      R"({"optimizer": {"name": "own", "hyperparameters": {"lr_decay": 0.25, "eps": 1e-8}}})";
  trained(program, {"--steps", "2", "--save", save});
  CHECK_FALSE(has(trained(program, {"--load", save, "--steps", "3"}), "as in the plan"));
  program.about.json = R"({"optimizer": {"name": "own", "hyperparameters": {"lr_decay": 0.5, "eps": 1e-8}}})";
  const watched edited = trained(program, {"--load", save, "--steps", "3"});
  CHECK(said_in(edited.out, 6196) == said{6196, {"lr_decay", "0.5", "0.25"}});
  CHECK(said_in(edited.out, 6173).id == 0);
  program.about.json = R"({"optimizer": {"name": "adamw"}})";
  const watched other = trained(program, {"--load", save, "--steps", "3"});
  CHECK(said_in(other.out, 6173) == said{6173, {"adamw", "own", "adamw"}});
  CHECK(said_in(other.out, 6196).id == 0);
}

TEST_CASE("steps at the learning rate 0 are noted, and no such command is recommended") {
  const scratch files;
  const seq_program program(4);
  const std::string save = files.path("s");
  std::vector<std::string> words{"--steps", "10", "--lr-schedule", "cosine:2:8:0", "--save", save};
  const watched first = trained(program, words);
  CHECK(said_in(first.out, 6197).id == 0);
  CHECK(has(first, " --steps 20 --lr-schedule SCHEDULE goes on; "));
  const watched second = trained(program, {"--load", save, "--steps", "20"});
  CHECK(said_in(second.out, 6197) == said{6197, {"11", "20", "warmup:2,cosine:8:0"}});
  CHECK(said_in(trained(program, {"--steps", "4", "--lr", "0", "--lr-schedule", "constant"}).out, 6197).id ==
        0);
  CHECK_FALSE(has(trained(program, {"--steps", "4", "--save", files.path("c")}), "--lr-schedule"));
}
