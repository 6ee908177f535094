// SPDX-License-Identifier: Apache-2.0
#include <rankc/runtime/tools/checkpoint.hpp>

#include <rankc/runtime/tools/hash.hpp>
#include <rankc/runtime/tools/parameters.hpp>
#include <rankc/runtime/tools/safetensors.hpp>

#include "checkpoints.hpp"
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
    const run_state state = read_run_state(other.about, folder / "run.json");
    load_checkpoint(to, state, folder);
    CHECK(contents_of(to) == contents_of(e));
    for (std::size_t rank = 1; rank < other.ranks.size(); ++rank)  // replicas hold the same
      if (other.ranks[rank].pp == 0 && other.ranks[rank].tp == 0)
        CHECK(to.of(rank, region::first_moment) == to.of(0, region::first_moment));
  }
}

TEST_CASE("a checkpoint of a pipeline that runs both ways is that of any other, and loads into both holders") {
  const scratch files;
  fake_program both(2, 1, 2);
  both.mirror();
  const fake_program one(1, 1, 1);
  fake_engine from(both), to(one), back(both);
  fill_engine(from);
  const fs::path folder = save_checkpoint(from, example_state(both.about, 7), files.path());
  load_checkpoint(to, read_run_state(one.about, folder / "run.json"), folder);
  CHECK(contents_of(to) == contents_of(from));
  const fs::path again = save_checkpoint(to, example_state(one.about, 8), files.path());
  load_checkpoint(back, read_run_state(both.about, again / "run.json"), again);
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
  fs::remove(folder / "optimizer.safetensors");
  fake_program alone(1, 1, 2);
  alone.about.trains = false;
  fake_engine to(alone);
  load_checkpoint(to, read_run_state(alone.about, folder / "run.json"), folder);
  for (std::size_t rank = 0; rank < 2; ++rank) CHECK(to.of(rank, region::weights) == e.of(rank, region::weights));
}

TEST_CASE("the files hold whole tensors under their names, without copies") {
  const scratch files;
  const fake_program program(2, 1, 2, dtype::f32);
  fake_engine e(program);
  fill_engine(e);
  const fs::path folder = save_checkpoint(e, example_state(program.about, 3), files.path());
  const safetensors_reader model(folder / "model.safetensors"), optimizer(folder / "optimizer.safetensors");
  std::vector<std::string> names;
  for (const auto& [name, tensor] : model.tensors()) {
    names.push_back(name + shape_text(tensor.shape));
    CHECK(tensor.type == safetensors_reader::element::f32);
  }
  CHECK(names ==
        std::vector<std::string>{"layers.0.norm1[8]", "layers.1.b1[32]", "layers.1.wo[8, 8]", "wte[256, 8]"});
  CHECK(optimizer.tensors().size() == 8);
  CHECK(optimizer.tensors().contains("m.wte"));
  CHECK(optimizer.tensors().contains("v.layers.1.b1"));
  const auto run = nlohmann::json::parse(contents(folder / "run.json"));
  CHECK(run["plan"] == "fake");
  CHECK(run["plan_hash"] == "0000000000abcdef");
  CHECK(run["step"] == 3);
  CHECK(run["samples"] == 24);
  CHECK(run["data"] == "arith:5");
  CHECK(run["layout"]["tp"] == 2);
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
      const std::string text = refusal_of([&] {
        const run_state s = read_run_state(program.about, file);
        REQUIRE(s.step == 41);  // a change of white space
        REQUIRE(s.samples == 328);
        REQUIRE(s.train.lr == state.train.lr);
      });
      REQUIRE((text == "nothing was thrown" ||
               text == "65: " + file + ": is damaged: it does not match its own checksum"));
    }
}

TEST_CASE("saving again replaces, and nothing unfinished stays") {
  const scratch files;
  const fake_program program(1, 1, 1);
  fake_engine e(program);
  fill_engine(e);
  save_checkpoint(e, example_state(program.about, 1), files.path());
  e.of(0, region::weights)[0] = 42;
  files.write(".step_000001.unfinished/model.safetensors", "left by a crash");
  const fs::path folder = save_checkpoint(e, example_state(program.about, 1), files.path());
  save_checkpoint(e, example_state(program.about, 2), files.path());
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(files.path()))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  CHECK(names == std::vector<std::string>{"latest", "step_000001", "step_000002"});
  fake_engine to(program);
  load_checkpoint(to, read_run_state(program.about, folder / "run.json"), folder);
  CHECK(to.of(0, region::weights)[0] == 42);
}

TEST_CASE("a save that fails leaves the previous checkpoint as it was") {
  struct broken : fake_engine {
    using fake_engine::fake_engine;
    void read(int rank, region w, std::size_t first, std::size_t count, double* to) override {
      if (w == region::second_moment) throw failure(70, "rank 0: gone");
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
  load_checkpoint(to, read_run_state(program.about, folder / "run.json"), folder);
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
    while (contents(files.path("latest")) == "step_000001\n" && std::chrono::steady_clock::now() - start < 60s)
      std::this_thread::sleep_for(100us);
    std::this_thread::sleep_for(one_save * (splitmix64(round) % 1000) / 250);  // up to four saves
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    const fs::path folder = find_checkpoint(files.path());
    const run_state state = read_run_state(program.about, folder / "run.json");
    CHECK(state.step > 1);
    REQUIRE(folder.filename() == fs::path(contents(files.path("latest")).substr(0, 11)));
    fake_engine to(program);
    load_checkpoint(to, state, folder);
    REQUIRE(contents_of(to) == expected);
  }
}

TEST_CASE("folders without a whole checkpoint are refused") {
  const scratch files;
  const std::string folder = files.path(), none = files.path("none");
  CHECK(refusal_of([&] { find_checkpoint(none); }) == "65: " + none + ": there is no such folder");
  CHECK(refusal_of([&] { find_checkpoint(folder); }) ==
        "65: " + folder + ": holds no checkpoint: neither run.json nor latest is there");
  const std::string latest = files.write("latest", "step_000009\n");
  CHECK(refusal_of([&] { find_checkpoint(folder); }) ==
        "65: " + latest +
            ": names 'step_000009', where there is no checkpoint; there is no other one either");
  files.write("step_000004/run.json", "{}");
  CHECK(refusal_of([&] { find_checkpoint(folder); }) ==
        "65: " + latest +
            ": names 'step_000009', where there is no checkpoint; "
            "legal are " +
            files.path("step_000004"));
  files.write("in/latest", "../elsewhere\n");
  files.write("elsewhere/run.json", "{}");
  CHECK(refusal_of([&] { find_checkpoint(files.path("in")); }) ==
        "65: " + files.path("in/latest") + ": names '../elsewhere', where there is no checkpoint; there is no other one either");
  const std::string blocked = files.write("file", "");
  CHECK(refusal_of([&] { prepare_save(blocked); }).starts_with("65: " + blocked));
}

TEST_CASE("a folder that cannot be written is refused before training") {
  const scratch files;
  fs::create_directory(files.path("kept"));
  fs::permissions(files.path(), fs::perms(0755));
  fs::permissions(files.path("kept"), fs::perms(0555));
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    if (getuid() == 0 && setuid(65534) != 0) _exit(2);  // root may write everywhere
    const std::string said = refusal_of([&] { prepare_save(files.path("kept")); });
    _exit(said == "65: " + files.path("kept") + ": cannot be written: Permission denied" ? 0 : 1);
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
  safetensors_writer out(file, {{"wte", {250, 8}}, {"lm_head", {2}}, {"layers.1.wo", {8, 8}}}, dtype::f32,
                         {});
  const std::vector<double> zeros(2000 + 2 + 64);
  out.append(zeros.data(), zeros.size());
  out.close();
  CHECK(
      refusal_of([&] { load_weights(e, file); }) ==
      "1: " + file +
          ": does not hold this model's tensors: it lacks layers.0.norm1, layers.1.b1; it has, unexpectedly, "
          "lm_head; it has other shapes: wte [250, 8] instead of [256, 8]");
  CHECK(e.of(0, region::weights)[0] == fake_engine::untouched);
  std::vector<safetensors_writer::tensor> many;
  for (int i = 100; i < 130; ++i) many.push_back({std::string("t").append(std::to_string(i)), {0}});
  safetensors_writer(file, many, dtype::f32, {}).close();
  CHECK(refusal_of([&] { load_weights(e, file); }).find("t118, t119 and 10 more") != std::string::npos);
}

TEST_CASE("damage to a checkpoint is a checkpoint error and touches no rank") {
  const scratch files;
  const fake_program program(1, 1, 1);
  fake_engine e(program);
  fill_engine(e);
  const fs::path folder = save_checkpoint(e, example_state(program.about, 5), files.path());
  const run_state state = read_run_state(program.about, folder / "run.json");
  const std::string optimizer = (folder / "optimizer.safetensors").string(), whole = contents(optimizer);
  const auto refused = [&] {
    fake_engine to(program);
    const std::string text = refusal_of([&] { load_checkpoint(to, state, folder); });
    CHECK(to.of(0, region::weights)[0] == fake_engine::untouched);
    return text;
  };
  std::string flipped = whole;
  flipped[whole.size() - 5] ^= 4;
  files.write("step_000005/optimizer.safetensors", flipped);
  CHECK(refused().find("65: " + optimizer + ": its checksum is ") == 0);
  files.write("step_000005/optimizer.safetensors", whole.substr(0, whole.size() - 5));
  CHECK(refused().find("65: " + optimizer + ": tensor v.layers.1.b1: lies at bytes ") == 0);
  fs::remove(optimizer);
  CHECK(refused() == "65: " + optimizer + ": cannot be read: No such file or directory");
  const fs::path later = save_checkpoint(e, example_state(program.about, 6), files.path());
  fs::copy_file(later / "optimizer.safetensors", optimizer);
  CHECK(refused() == "65: " + optimizer + ": is of step 6, but run.json beside it is of step 5");
}

TEST_CASE("weights load from a file, a folder and a checkpoint") {
  const scratch files;
  const fake_program program(1, 1, 2);
  fake_engine e(program);
  fill_engine(e);
  const fs::path folder = save_checkpoint(e, example_state(program.about, 5), files.path());
  fs::create_directory(files.path("plain"));
  fs::copy_file(folder / "model.safetensors", files.path("plain/model.safetensors"));
  for (const fs::path& from :
       {folder / "model.safetensors", folder, fs::path(files.path()), fs::path(files.path("plain"))}) {
    fake_engine to(program);
    load_weights(to, from);
    CHECK(to.of(1, region::weights) == e.of(1, region::weights));
    CHECK(to.of(1, region::first_moment)[0] == 0);
  }
}
