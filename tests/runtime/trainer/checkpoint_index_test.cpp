// SPDX-License-Identifier: Apache-2.0
// Checkpoints from an untrusted source: every checksum is right, but names or values are wrong.
#include <rankc/trainer/checkpoint.hpp>

#include "../../exit_with.hpp"
#include "checkpoints.hpp"
#include "scratch.hpp"

#include <doctest/doctest.h>
#include <json/json_checksum.hpp>
#include <sys/stat.h>
#include <functional>

namespace checkpoint_index_test {

using namespace rankc::runtime;
using nlohmann::ordered_json;
using rankc::test::exit_of, rankc::test::exit_with, rankc::test::said, rankc::test::said_in;
namespace fs = std::filesystem;

namespace {

/// A checkpoint of one rank, and forged versions of its files.
class forged {
 public:
  forged() {
    fake_engine e(program_);
    fill_engine(e);
    folder_ = save_checkpoint(e, example_state(program_.about, 1), files_.path());
    index_ = ordered_json::parse(contents(folder_ / "index.json"));
  }

  const scratch& files() const { return files_; }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  /// Replaces a file's text, and its line in COMMIT.
  void replace(const std::string& name, const std::string& text) const {
    std::string lines = contents(path("COMMIT"));
    const std::size_t end = lines.find(" " + name + "\n");
    REQUIRE(end != lines.npos);
    lines.replace(end - 16, 16, checksum::of(text));
    files_.write("step_000001/COMMIT", lines);
    files_.write("step_000001/" + name, text);
  }

  /// The refusal of an index after `change`.
  exit_with with(const std::function<void(ordered_json&)>& change) const {
    ordered_json root = index_;
    change(root);
    root["checksum"] = checksum_of(root);
    replace("index.json", root.dump(1) + "\n");
    return loaded();
  }
  exit_with with_wte(const std::function<void(ordered_json&)>& change) const {
    return with([&](ordered_json& root) { change(root["tensors"]["wte"]); });
  }

  exit_with loaded() const {
    fake_engine to(program_);
    return exit_of([&] { load_checkpoint(to, folder_); });
  }

  open_checkpoint newest() const { return open_newest(program_.about, files_.path()); }
  void save(std::int64_t step) const {
    fake_engine e(program_);
    fill_engine(e);
    save_checkpoint(e, example_state(program_.about, step), files_.path());
  }

 private:
  scratch files_;
  fake_program program_{1, 1, 1};
  fs::path folder_;
  ordered_json index_;
};

}  // namespace

TEST_CASE("an index names files of its own folder, whatever other file would match") {
  const forged f;
  CHECK(f.loaded() == exit_with{});
  fs::copy_file(f.path("rank_00000.safetensors"), f.files().path("rank_00000.safetensors"));
  for (const std::string& name : {std::string("../rank_00000.safetensors"), f.path("rank_00000.safetensors"),
                                  std::string("/etc/passwd"), std::string("..")}) {
    const exit_with seen = f.with_wte([&](ordered_json& wte) { wte["pieces"][0]["file"] = name; });
    CHECK(seen == exit_with{65, {6588, {f.path("index.json"), name}}});
  }
}

TEST_CASE("a value of an index that has another type or range is named") {
  const forged f;
  const auto refused = [&](const char* key, const char* found, const char* expected) {
    return exit_with{65, {6589, {f.path("index.json"), std::string("tensors.wte.") + key, found, expected}}};
  };
  const char *text = "a text", *numbers = "a list of whole numbers that are not negative";
  CHECK(f.with_wte([](ordered_json& t) { t["region"] = 1; }) == refused("region", "1", text));
  CHECK(f.with_wte([](ordered_json& t) { t.erase("dtype"); }) == refused("dtype", "null", text));
  CHECK(f.with_wte([](ordered_json& t) { t["shape"] = "8"; }) == refused("shape", "\"8\"", numbers));
  CHECK(f.with_wte([](ordered_json& t) { t["shape"] = {-8}; }) == refused("shape", "[-8]", numbers));
  const char* dims = "one or two numbers whose product fits into 63 bits";
  CHECK(f.with_wte([](ordered_json& t) { t["shape"] = ordered_json::array(); }) ==
        refused("shape", "[]", dims));
  CHECK(f.with_wte([](ordered_json& t) { t["shape"] = {1, 2, 3}; }) == refused("shape", "[1, 2, 3]", dims));
  CHECK(f.with_wte([](ordered_json& t) { t["shape"] = {std::uint64_t{1} << 40, std::uint64_t{1} << 40}; }) ==
        refused("shape", "[1099511627776, 1099511627776]", dims));
  CHECK(f.with_wte([](ordered_json& t) { t["pieces"] = 3; }) == refused("pieces", "3", "a list"));
  CHECK(f.with_wte([](ordered_json& t) { t["pieces"][0]["file"] = nullptr; }) ==
        refused("file", "null", text));
  CHECK(f.with_wte([](ordered_json& t) { t["pieces"][0]["offset"] = {0}; }) ==
        refused("offset", "[0]", "as many numbers as the shape has"));
  CHECK(f.with_wte([](ordered_json& t) { t["pieces"][0]["extent"] = {~std::uint64_t{0}, 8}; }) ==
        refused("extent", "[18446744073709551615, 8]", "a part of the shape [256, 8]"));
  CHECK(f.with([](ordered_json& root) { root["tensors"] = {1}; }) ==
        exit_with{65, {6589, {f.path("index.json"), "tensors", "[1]", "an object"}}});
}

TEST_CASE("deep JSON, and JSON with a key twice, is refused in any file of a checkpoint") {
  const forged f;
  const std::string deep = "{\"a\":" + std::string(200'000, '[') + std::string(200'000, ']') + "}";
  for (const char* name : {"index.json", "run.json"}) {
    const std::string whole = contents(f.path(name));
    f.replace(name, deep);
    CHECK(f.loaded() == exit_with{65, {6592, {f.path(name), "32"}}});
    f.replace(name, "{\"a\":1,\"a\":2}");
    CHECK(f.loaded() == exit_with{65, {6594, {f.path(name), "a"}}});
    f.replace(name, whole);
  }
  CHECK(f.loaded() == exit_with{});
}

TEST_CASE(
    "a FIFO or a folder in the place of any file of a checkpoint is refused, and another one is taken") {
  for (const char* name : {"COMMIT", "index.json", "run.json", "rank_00000.safetensors"})
    for (const bool is_fifo : {true, false}) {
      CAPTURE(name);
      CAPTURE(is_fifo);
      const forged f;
      f.save(2);
      const std::string at = f.files().path(std::string("step_000002/") + name);
      fs::remove(at);
      if (is_fifo) REQUIRE(mkfifo(at.c_str(), 0600) == 0);
      else fs::create_directory(at);
      const open_checkpoint taken = f.newest();
      CHECK(taken.state.step == 1);
      REQUIRE(taken.notes.size() == 1);
      CHECK(said_in(taken.notes[0], 6585).arguments ==
            std::vector<std::string>{
                at, is_fifo ? "it is a FIFO, not a regular file" : "it is a folder, not a regular file"});
    }
}

TEST_CASE("a `latest` that cannot be read, or is no name, costs a note") {
  const forged f;
  const std::string latest = f.files().path("latest");
  const auto note = [&] {
    const open_checkpoint taken = f.newest();
    CHECK(taken.state.step == 1);
    REQUIRE(taken.notes.size() == 1);
    CHECK(said_in(taken.notes[0]).id == 6506);
    return taken.notes[0];
  };
  fs::remove(latest);
  REQUIRE(mkfifo(latest.c_str(), 0600) == 0);
  CHECK(note().find("it is a FIFO") != std::string::npos);
  fs::remove(latest);
  f.files().write("latest", std::string(5000, 'x'));
  CHECK(note().find("has 5000 bytes") != std::string::npos);
}

TEST_CASE(
    "loops of links and names that are too long are sentences, and a loop in a folder is no checkpoint") {
  const forged f;
  const std::string loop = f.files().path("step_000009"), longest = f.files().path(std::string(300, 'n'));
  fs::create_symlink("step_000009", loop);
  CHECK(f.newest().state.step == 1);
  CHECK(f.newest().notes.empty());
  CHECK(exit_of([&] { find_checkpoint(loop); }) ==
        exit_with{65, {6585, {loop, "Too many levels of symbolic links"}}});
  CHECK(exit_of([&] { find_checkpoint(longest); }) == exit_with{65, {6585, {longest, "File name too long"}}});
  f.save(2);
  CHECK(f.newest().state.step == 2);
}

}  // namespace checkpoint_index_test
