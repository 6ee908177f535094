// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/checkpoint.hpp>

#include <rankc/trainer/export.hpp>
#include <rankc/trainer/hash.hpp>
#include <rankc/trainer/parameters.hpp>
#include <rankc/trainer/safetensors.hpp>

#include "../../exit_with.hpp"
#include "../../slowness.hpp"
#include "checkpoints.hpp"
#include "processes.hpp"
#include "scratch.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <chrono>
#include <map>
#include <thread>

using namespace rankc::runtime;
using rankc::test::exit_of, rankc::test::exit_with, rankc::test::said, rankc::test::said_in;
using namespace std::chrono_literals;
namespace fs = std::filesystem;

TEST_CASE("a checkpoint loads equal into every layout") {
  const scratch files;
  const fake_program program(2, 2, 2);
  fake_engine e(program);
  fill_engine(e);
  const fs::path folder = save_checkpoint(e, example_state(program.about, 100), files.path());
  CHECK(folder == fs::path(files.path("step_000100")));
  CHECK(contents(files.path("latest")) == "step_000100\n");
  CHECK(find_checkpoint(files.path()) == folder);
  CHECK(find_checkpoint(folder) == folder);
  for (const auto& [pp, dp, tp] : {std::array{2, 2, 2}, {1, 1, 1}, {1, 4, 1}, {2, 1, 4}}) {
    const fake_program other(pp, dp, tp);
    fake_engine to(other);
    load_checkpoint(to, folder);
    CHECK(contents_of(to) == contents_of(e));
    for (std::size_t rank = 1; rank < other.ranks.size(); ++rank)  // replicas hold the same values
      if (other.ranks[rank].pp == 0 && other.ranks[rank].tp == 0)
        CHECK(to.of(rank, region::first_moment) == to.of(0, region::first_moment));
  }
}

TEST_CASE(
    "a checkpoint of a pipeline that runs both ways is that of any other, and loads into both holders") {
  const scratch files;
  fake_program both(2, 1, 2);
  both.mirror();
  const fake_program one(1, 1, 1);
  fake_engine from(both), to(one), back(both);
  fill_engine(from);
  const fs::path folder = save_checkpoint(from, example_state(both.about, 7), files.path());
  load_checkpoint(to, folder);
  CHECK(contents_of(to) == contents_of(from));
  const fs::path again = save_checkpoint(to, example_state(one.about, 8), files.path());
  load_checkpoint(back, again);
  for (std::size_t rank = 0; rank < both.ranks.size(); ++rank)
    for (const region w : {region::weights, region::first_moment, region::second_moment})
      CHECK(back.of(rank, w) == from.of(rank, w));
}

TEST_CASE("a program with forwards alone takes a checkpoint's weights, and asks for no moments") {
  const scratch files;
  const fake_program program(1, 1, 2);
  fake_engine e(program);
  fill_engine(e);
  const fs::path folder = save_checkpoint(e, example_state(program.about, 5), files.path());
  fake_program alone(1, 1, 2);
  alone.about.trains = false;
  fake_engine to(alone);
  load_checkpoint(to, folder);
  for (std::size_t rank = 0; rank < 2; ++rank)
    CHECK(to.of(rank, region::weights) == e.of(rank, region::weights));
}

TEST_CASE("each rank has a file of what it alone holds, and the index says where everything lies") {
  const scratch files;
  const fake_program program(2, 2, 2, dtype::f32);
  fake_engine e(program);
  fill_engine(e);
  const fs::path folder = save_checkpoint(e, example_state(program.about, 3), files.path());
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  CHECK(names == std::vector<std::string>{"COMMIT", "index.json", "rank_00000.safetensors",
                                          "rank_00001.safetensors", "rank_00004.safetensors",
                                          "rank_00005.safetensors", "run.json"});  // no replicas
  const auto held = [&](int rank) {
    const safetensors_reader in(folder / file_of_rank(rank));
    CHECK(in.metadata().at("step") == "3");
    std::string text;
    for (const auto& [name, tensor] : in.tensors()) {
      text += name + shape_text(tensor.shape) + " ";
      CHECK(tensor.type == safetensors_reader::element::f32);
    }
    return text;
  };
  CHECK(held(0) ==
        "layers.0.norm1[8] m.layers.0.norm1[8] m.wte[128, 8] v.layers.0.norm1[8] v.wte[128, 8] wte[128, 8] ");
  CHECK(held(1) == "m.wte[128, 8] v.wte[128, 8] wte[128, 8] ");
  CHECK(held(5) ==
        "layers.1.b1[16] layers.1.wo[8, 4] m.layers.1.b1[16] m.layers.1.wo[8, 4] v.layers.1.b1[16] "
        "v.layers.1.wo[8, 4] ");
  const auto index = nlohmann::json::parse(contents(folder / "index.json"));
  CHECK(index["tensors"].size() == 12);
  CHECK(index["tensors"]["m.layers.1.wo"] ==
        nlohmann::json::parse(R"({"region": "first moment", "dtype": "F32", "shape": [8, 8], "pieces": [
                               {"file": "rank_00004.safetensors", "offset": [0, 0], "extent": [8, 4]},
                               {"file": "rank_00005.safetensors", "offset": [0, 4], "extent": [8, 4]}]})"));
  CHECK(index["tensors"]["layers.1.b1"]["pieces"][1]["offset"] == nlohmann::json({16}));
  const auto run = nlohmann::json::parse(contents(folder / "run.json"));
  CHECK(run["plan"] == "fake");
  CHECK(run["plan_hash"] == "0000000000abcdef");
  CHECK(run["step"] == 3);
  CHECK(run["samples"] == 24);
  CHECK(run["data"] == "arith:5");
  CHECK(run["layout"]["tp"] == 2);
  CHECK(run["optimizer"]["moments"] == 2);
}

TEST_CASE("tables whose ranks hold an element twice, or not at all, are refused before anything is written") {
  const scratch files;
  for (const int shift : {-1, 0, 1}) {
    fake_program program(1, 1, 2);
    fake_engine e(program);
    std::vector<global_parameter> all = global_parameters(program.about);
    all[0].sources[1].row += static_cast<std::size_t>(shift);
    const exit_with expected = shift == 0 ? exit_with{} : exit_with{70, {6512, {"wte"}}};
    CHECK(exit_of([&] { saved_tensors(program.about, all); }) == expected);
  }
  using areas = std::vector<area>;
  CHECK(covers(areas{{0, 4, 0, 6}}, 4, 6));
  CHECK(covers(areas{{2, 2, 0, 3}, {0, 2, 0, 3}, {0, 4, 3, 3}}, 4, 6));
  CHECK_FALSE(covers(areas{{0, 4, 0, 5}}, 4, 6));
  CHECK_FALSE(covers(areas{{0, 2, 0, 6}, {1, 3, 0, 6}}, 4, 6));  // an element twice
  CHECK_FALSE(covers(areas{{0, 2, 0, 6}, {3, 1, 0, 6}}, 4, 6));  // a hole
  CHECK_FALSE(covers(areas{{0, 2, 0, 6}, {2, 2, 0, 6}, {0, 4, 0, 6}}, 4, 6));
  CHECK_FALSE(covers(areas{{0, 2, 0, 6}, {2, 3, 0, 6}}, 4, 6));  // past the end
}

TEST_CASE("run.json returns the run, and any change to it is seen") {
  const scratch files;
  const fake_program program(1, 1, 1);
  run_state state = example_state(program.about, 41);
  state.train.lr = 0.1 + 0.2;
  state.train.weight_decay = 0.123;
  state.train.clip = 4.5;
  state.train.warmup_steps = 17;
  state.train.decay_steps = 29;
  state.train.min_lr = 0.0625;
  const std::string file = files.path("run.json");
  write_run_state(state, program.about, file);
  const run_state back = read_run_state(program.about, file);
  CHECK(back.step == 41);
  CHECK(back.samples == 328);
  CHECK(back.init == "hash:1");
  CHECK(back.data == "arith:5");
  CHECK(back.train.lr == 0.1 + 0.2);
  CHECK(back.train.weight_decay == 0.123);
  CHECK(back.train.clip == 4.5);
  CHECK(back.train.warmup_steps == 17);
  CHECK(back.train.decay_steps == 29);
  CHECK(back.train.min_lr == 0.0625);
  CHECK(back.plan_hash == program.about.plan_hash);
  const std::string whole = contents(file);
  for (std::size_t i = 0; i < whole.size(); ++i)
    for (const int flip : {1, 2, 16}) {
      std::string bytes = whole;
      bytes[i] = static_cast<char>(bytes[i] ^ flip);
      files.write("run.json", bytes);
      const exit_with seen = exit_of([&] {
        const run_state s = read_run_state(program.about, file);
        REQUIRE(s.step == 41);  // only white space differs
        REQUIRE(s.samples == 328);
        REQUIRE(s.train.lr == state.train.lr);
      });
      const int id = seen.message.id;  // its checksum, invalid JSON, or a duplicate key
      REQUIRE((seen == exit_with{} || (seen.code == 65 && (id == 6555 || id == 6596 || id == 6594))));
    }
}

TEST_CASE("saving again replaces, and nothing unfinished stays") {
  const scratch files;
  const fake_program program(1, 1, 1);
  fake_engine e(program);
  fill_engine(e);
  save_checkpoint(e, example_state(program.about, 1), files.path());
  e.of(0, region::weights)[0] = 42;
  for (const char* left : {".step_000001.unfinished/rank_00000.safetensors", ".step_000007.unfinished/x",
                           ".step_000003.removed/x"})
    files.write(left, "left by a crash");
  const fs::path folder = save_checkpoint(e, example_state(program.about, 1), files.path());
  save_checkpoint(e, example_state(program.about, 2), files.path());
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(files.path()))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  CHECK(names == std::vector<std::string>{"latest", "step_000001", "step_000002"});
  fake_engine to(program);
  load_checkpoint(to, folder);
  CHECK(to.of(0, region::weights)[0] == 42);
}

TEST_CASE("a save that fails leaves the previous checkpoint as it was") {
  struct broken : fake_engine {
    using fake_engine::fake_engine;
    void read(int rank, region w, std::size_t first, std::size_t count, double* to) override {
      if (w == region::second_moment) throw failure::reported(70, "rank 0: gone");
      fake_engine::read(rank, w, first, count, to);
    }
  };
  const scratch files;
  const fake_program program(1, 1, 1);
  fake_engine good(program);
  fill_engine(good);
  const fs::path folder = save_checkpoint(good, example_state(program.about, 1), files.path());
  broken bad(program);
  for (const int step : {1, 2})
    CHECK(refusal_of([&] { save_checkpoint(bad, example_state(program.about, step), files.path()); }) ==
          "70: rank 0: gone");
  CHECK(find_checkpoint(files.path()) == folder);
  CHECK_FALSE(fs::exists(files.path("step_000002")));
  fake_engine to(program);
  load_checkpoint(to, folder);
  CHECK(contents_of(to) == contents_of(good));
}

TEST_CASE("killed at any moment of a save, the newest checkpoint is whole") {
  const fake_program program(2, 1, 2);
  fake_engine e(program);
  fill_engine(e);
  const auto expected = contents_of(e);
  for (std::uint64_t round = 0; round < 12; ++round) {
    const scratch files;
    const auto start = std::chrono::steady_clock::now();
    save_checkpoint(e, example_state(program.about, 1), files.path());
    const auto one_save = std::chrono::steady_clock::now() - start;
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      for (int step = 2;; ++step) save_checkpoint(e, example_state(program.about, step), files.path());
    }
    while (contents(files.path("latest")) == "step_000001\n" &&
           std::chrono::steady_clock::now() - start < rankc::test::scaled(60))
      std::this_thread::sleep_for(100us);
    std::this_thread::sleep_for(one_save * (splitmix64(round) % 1000) / 250);  // up to four saves
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    const fs::path folder = find_checkpoint(files.path());
    const run_state state = read_run_state(program.about, folder / "run.json");
    CHECK(state.step > 1);
    REQUIRE(folder.filename() == fs::path(contents(files.path("latest")).substr(0, 11)));
    fake_engine to(program);
    load_checkpoint(to, folder);
    REQUIRE(contents_of(to) == expected);
  }
}

TEST_CASE("folders without a checkpoint are refused") {
  const scratch files;
  const std::string folder = files.path(), none = files.path("none");
  CHECK(exit_of([&] { find_checkpoint(none); }) == exit_with{65, {6501, {none}}});
  const exit_with nothing{65, {6502, {folder, "step_", "COMMIT"}}};
  CHECK(exit_of([&] { find_checkpoint(folder); }) == nothing);
  files.write("latest", "step_000009\n");
  files.write("step_000009/run.json", "{}");  // without COMMIT it is no checkpoint
  CHECK(exit_of([&] { find_checkpoint(folder); }) == nothing);
  const std::string blocked = files.write("file", "");
  CHECK(exit_of([&] { prepare_save(blocked); }) == exit_with{65, {5005, {blocked, "Not a directory"}}});
}

TEST_CASE(
    "of several checkpoints the one that latest names is the first choice, then those before it, then those "
    "after it") {
  const scratch files;
  const auto order = [&](const std::string& latest) {
    files.write("latest", latest + "\n");
    std::string steps;
    for (const fs::path& folder : find_checkpoints(files.path()))
      steps += folder.filename().string().substr(5) + " ";
    return steps;
  };
  for (const char* name :
       {"step_000004", "step_000010", "step_000002", "step_1000000", ".step_000007.unfinished", "other"})
    files.write(std::string(name) + "/COMMIT", "");
  CHECK(order("step_000004") == "000004 000002 1000000 000010 ");
  CHECK(order("step_1000000") == "1000000 000010 000004 000002 ");
  CHECK(order("step_000009") == "000004 000002 1000000 000010 ");
  CHECK(order("") == "1000000 000010 000004 000002 ");
  CHECK(order("../elsewhere") == "1000000 000010 000004 000002 ");
  CHECK(find_checkpoint(files.path("step_000002")) == files.path("step_000002"));
}

TEST_CASE("a folder that cannot be written is refused before training") {
  const scratch files;
  fs::create_directory(files.path("kept"));
  fs::permissions(files.path(), fs::perms(0755));
  fs::permissions(files.path("kept"), fs::perms(0555));
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    if (getuid() == 0 && setuid(65534) != 0) _exit(2);  // root can write everywhere
    const exit_with expected{65, {5005, {files.path("kept"), "Permission denied"}}};
    _exit(exit_of([&] { prepare_save(files.path("kept")); }) == expected ? 0 : 1);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("tensors of another model are listed, before a rank is touched") {
  const scratch files;
  const fake_program program(1, 1, 1);
  fake_engine e(program);
  const std::string file = files.path("other.safetensors");
  safetensors_writer out(
      file,
      {{"wte", {250, 8}, dtype::f32}, {"lm_head", {2}, dtype::f32}, {"layers.1.wo", {8, 8}, dtype::f32}}, {});
  const std::vector<double> zeros(2000 + 2 + 64);
  out.append(zeros.data(), zeros.size());
  out.close();
  CHECK(exit_of([&] { load_weights(e, file); }) ==
        exit_with{1,
                  {6630,
                   {file,
                    "missing: layers.0.norm1, layers.1.b1; unexpected: lm_head; wrong shape: wte [250, 8] "
                    "instead of [256, 8]"}}});
  CHECK(e.of(0, region::weights)[0] == fake_engine::untouched);
  std::vector<safetensors_writer::tensor> many;
  for (int i = 100; i < 130; ++i)
    many.push_back({std::string("t").append(std::to_string(i)), {0}, dtype::f32});
  fs::remove(file);
  safetensors_writer(file, many, {}).close();
  const exit_with shortened = exit_of([&] { load_weights(e, file); });
  CHECK(shortened.message.id == 6630);
  CHECK(shortened.message.arguments.at(1).find("t118, t119 and 10 more") != std::string::npos);
}

TEST_CASE("damage to a checkpoint is a checkpoint error that names the tensor, and touches no rank") {
  const scratch files;
  const fake_program program(1, 1, 2);
  fake_engine e(program);
  fill_engine(e);
  const fs::path folder = save_checkpoint(e, example_state(program.about, 5), files.path());
  const std::string rank = (folder / "rank_00001.safetensors").string(), whole = contents(rank);
  const auto refused = [&] {
    fake_engine to(program);
    const exit_with seen = exit_of([&] { load_checkpoint(to, folder); });
    CHECK((to.of(0, region::weights)[0] == fake_engine::untouched) == (seen.code != 0));
    return seen;
  };
  std::string flipped = whole;
  flipped[whole.size() - 5] ^= 4;
  files.write("step_000005/rank_00001.safetensors", flipped);
  const safetensors_reader of(folder / "rank_00001.safetensors");
  const std::string checksum = of.tensors().at("v.layers.1.b1").checksum;
  const exit_with changed = refused();
  REQUIRE(changed.message.arguments.size() == 4);
  const std::string found = changed.message.arguments[2];
  CHECK(found != checksum);
  CHECK(changed == exit_with{65, {6615, {rank, "v.layers.1.b1", found, checksum}}});
  files.write("step_000005/rank_00001.safetensors", whole.substr(0, whole.size() - 5));
  const exit_with cut = refused();
  REQUIRE(cut.message.arguments.size() == 5);
  CHECK(cut.code == 65);
  CHECK(cut.message.id == 6608);
  CHECK(cut.message.arguments[0] == rank);
  CHECK(cut.message.arguments[1] == "v.layers.1.b1");
  fs::remove(rank);
  CHECK(refused() == exit_with{65, {6585, {rank, "No such file or directory"}}});
  const fs::path later = save_checkpoint(e, example_state(program.about, 6), files.path());
  fs::copy_file(later / "rank_00001.safetensors", rank);
  const exit_with of_other_save = refused();
  CHECK(of_other_save.code == 65);
  CHECK(of_other_save.message.id == 6576);
  CHECK(of_other_save.message.arguments.at(0) == rank);
  files.write("step_000005/rank_00001.safetensors", whole);
  CHECK(refused() == exit_with{});
}

TEST_CASE("any byte of any file of a checkpoint that changes is seen, or changes nothing") {
  const scratch files;
  const fake_program program(2, 1, 2, dtype::f64, 8);
  fake_engine e(program);
  fill_engine(e);
  const fs::path folder = save_checkpoint(e, example_state(program.about, 5), files.path());
  const auto expected = contents_of(e);
  int seen = 0, tried = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    const std::string name = "step_000005/" + entry.path().filename().string(),
                      whole = contents(entry.path());
    for (std::uint64_t i = 0; i < 150; ++i) {
      std::string bytes = whole;
      const std::uint64_t random = splitmix64(i);
      bytes[random % bytes.size()] ^= static_cast<char>(1 + (random >> 32) % 255);
      if (i % 10 == 9) bytes.resize(random % bytes.size());
      files.write(name, bytes);
      fake_engine to(program);
      ++tried;
      const int code = exit_of([&] { load_checkpoint(to, folder); }).code;
      if (code == 0) {
        REQUIRE(contents_of(to) == expected);
      } else {
        REQUIRE(code == 65);
        REQUIRE(to.of(0, region::weights)[0] == fake_engine::untouched);
        ++seen;
      }
    }
    files.write(name, whole);
  }
  CHECK(tried == 150 * 7);
  CHECK(seen > tried - 20);  // white space in COMMIT
}

TEST_CASE("where the newest checkpoint is damaged the one before it is taken, and that is said") {
  const scratch files;
  const fake_program program(1, 1, 1);
  fake_engine e(program);
  fill_engine(e);
  for (const int step : {1, 2, 3}) {
    e.of(0, region::weights)[0] = step;
    save_checkpoint(e, example_state(program.about, step), files.path());
  }
  const auto taken = [&] {
    fake_engine to(program);
    const open_checkpoint from = open_newest(program.about, files.path());
    load_checkpoint(to, from);
    CHECK(to.of(0, region::weights)[0] == static_cast<double>(from.state.step));
    CHECK(from.notes.size() == static_cast<std::size_t>(3 - from.state.step));
    for (const std::string& note : from.notes)
      CHECK(said_in(note, 6504).arguments.at(0) == from.folder.string());
    return from.state.step;
  };
  CHECK(taken() == 3);
  for (const int step : {3, 2}) {
    const std::string name = "step_00000" + std::to_string(step) + "/rank_00000.safetensors";
    std::string bytes = contents(files.path(name));
    bytes[bytes.size() - 9] ^= 1;
    files.write(name, bytes);
    CHECK(taken() == step - 1);
    const exit_with damaged =
        exit_of([&] { load_checkpoint(e, files.path("step_00000" + std::to_string(step))); });
    CHECK(damaged.code == 65);
    CHECK(damaged.message.id == 6615);
    CHECK(damaged.message.arguments.at(0) == files.path(name));
  }
  files.write("step_000001/run.json", "{}");
  const exit_with all_damaged = exit_of([&] { taken(); });
  CHECK(all_damaged.code == 65);
  CHECK(all_damaged.message.id == 6505);
  CHECK(all_damaged.message.arguments.at(0) == "3");
  CHECK(all_damaged.message.arguments.at(1) == files.path());
  CHECK(said_in(all_damaged.message.arguments.at(2)).id == 6615);
}

TEST_CASE("where latest names what is none, that is said") {
  const scratch files;
  const fake_program program(1, 1, 1);
  fake_engine e(program);
  fill_engine(e);
  for (const int step : {1, 2}) save_checkpoint(e, example_state(program.about, step), files.path());
  fs::remove(files.path("step_000002/COMMIT"));
  const open_checkpoint from = open_newest(program.about, files.path());
  CHECK(from.state.step == 1);
  REQUIRE(from.notes.size() == 1);
  CHECK(said_in(from.notes[0]) ==
        said{6500, {files.path("latest"), "step_000002", files.path("step_000001")}});
}

TEST_CASE("ranks of processes write their own files, and agree on what all have") {
  const fake_program program(2, 1, 2), other(1, 2, 2);
  const scratch files;
  processes together(4);
  fake_engine whole(program);
  fill_engine(whole);
  const auto save = [&](std::int64_t step, int cannot) {
    return together.run([&](const placement& where) {
      one_rank e(program, where.rank);
      fill_engine(e);
      const snapshot taken(e, example_state(program.about, step));
      return refusal_of([&] {
        if (where.rank != cannot) return void(write_checkpoint(program.about, taken, files.path(), where));
        placement blind = where;  // a process that cannot write its files
        blind.exchange = [&](const std::string& name, const std::string& mine) {
          return where.exchange(name, name.ends_with("files") ? "-65: no room" : mine);
        };
        write_checkpoint(program.about, taken, files.path(), blind);
      });
    });
  };
  CHECK(save(1, -1) == std::vector<std::string>(4, "nothing was thrown"));
  fake_engine to(other);
  load_checkpoint(to, files.path());
  CHECK(contents_of(to) == contents_of(whole));
  // If one process cannot write, the save fails in all processes.
  for (const std::string& said : save(2, 3)) CHECK(said.starts_with("65: "));
  CHECK(find_checkpoint(files.path()) == files.path("step_000001"));
  CHECK_FALSE(fs::exists(files.path(".step_000002.unfinished")));
  // A rank reads only its own shards, so another rank's file may be missing.
  CHECK(save(3, -1) == std::vector<std::string>(4, "nothing was thrown"));
  const auto steps = [&] {
    std::vector<std::string> all = together.run([&](const placement& where) {
      one_rank e(program, where.rank);
      const open_checkpoint from = open_newest(program.about, files.path(), where);
      load_checkpoint(e, from);
      for (const region w : {region::weights, region::first_moment, region::second_moment})
        for (const parameter& p :
             program.layouts[static_cast<std::size_t>(program.ranks[static_cast<std::size_t>(where.rank)].pp)]
                 .parameters)
          for (std::size_t i = p.element; i < p.element + static_cast<std::size_t>(p.rows * p.cols); ++i)
            if (e.of(static_cast<std::size_t>(where.rank), w)[i] !=
                whole.of(static_cast<std::size_t>(where.rank), w)[i])
              return std::string("other values");
      return std::to_string(from.state.step);
    });
    return all;
  };
  CHECK(steps() == std::vector<std::string>(4, "3"));
  fs::remove(files.path("step_000003/rank_00002.safetensors"));  // so all ranks load the previous one
  CHECK(steps() == std::vector<std::string>(4, "1"));
}

TEST_CASE("processes that have no way to agree write nothing") {
  const fake_program program(1, 1, 2);
  const scratch files;
  one_rank e(program, 0);
  const snapshot taken(e, example_state(program.about, 1));
  placement where;
  where.rank = 0;
  CHECK(exit_of([&] { write_checkpoint(program.about, taken, files.path(), where); }) ==
        exit_with{65, {6635, {files.path("step_000001")}}});
}

TEST_CASE("of older checkpoints as many stay as asked for, and never is the newest removed") {
  const scratch files;
  const fake_program program(1, 1, 1);
  fake_engine e(program);
  fill_engine(e);
  const auto save = [&](std::int64_t step, int keep) {
    write_checkpoint(program.about, snapshot(e, example_state(program.about, step)), files.path(), {}, keep);
    std::string names;
    for (const fs::path& folder : find_checkpoints(files.path()))
      names += folder.filename().string().substr(10) + " ";
    return names;
  };
  CHECK(save(1, 2) == "1 ");
  CHECK(save(2, 2) == "2 1 ");
  CHECK(save(3, 2) == "3 2 ");
  CHECK(save(4, 1) == "4 ");
  CHECK(save(2, 1) == "2 4 ");  // a restarted run: later checkpoints stay
  CHECK(save(3, 0) == "3 2 4 ");
  CHECK(save(3, 1) == "3 4 ");
  for (const auto& entry : fs::directory_iterator(files.path()))
    CHECK_FALSE(entry.path().filename().string().starts_with("."));
}

TEST_CASE("weights load from a file, a folder and a checkpoint") {
  const scratch files;
  const fake_program program(1, 1, 2);
  fake_engine e(program);
  fill_engine(e);
  const fs::path folder = save_checkpoint(e, example_state(program.about, 5), files.path());
  fs::create_directory(files.path("plain"));
  export_weights(program.about, folder, files.path("plain"));
  for (const fs::path& from : {fs::path(files.path("plain/model.safetensors")), folder,
                               fs::path(files.path()), fs::path(files.path("plain"))}) {
    fake_engine to(program);
    load_weights(to, from);
    CHECK(to.of(1, region::weights) == e.of(1, region::weights));
    CHECK(to.of(1, region::first_moment)[0] == 0);
  }
}
