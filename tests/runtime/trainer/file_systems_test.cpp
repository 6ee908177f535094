// SPDX-License-Identifier: Apache-2.0
// File systems without locks, or without flushes of folders: a run still saves, and notes name the missing
// guarantee.
#include <rankc/trainer/checkpoint.hpp>
#include <rankc/trainer/export.hpp>
#include <rankc/trainer/saver.hpp>

#include "../../exit_with.hpp"
#include "checkpoints.hpp"
#include "file_calls.hpp"
#include "scratch.hpp"

#include <doctest/doctest.h>

using namespace rankc::runtime;
using rankc::test::exit_of, rankc::test::exit_with, rankc::test::said, rankc::test::said_in;
using testing::file_calls;
namespace fs = std::filesystem;

namespace {

/// Saves from a run. Returns: its notes.
std::vector<std::string> saved(const std::string& folder, std::int64_t step) {
  const fake_program program(1, 1, 1);
  fake_engine e(program);
  fill_engine(e);
  saver saves(program.about, folder, 0, {});
  saves.begin(e, example_state(program.about, step));
  CHECK(saves.finish());
  const auto news = saves.news();
  REQUIRE(news.size() == 1);
  CHECK_MESSAGE(news[0].saved, news[0].line);
  CHECK(open_newest(program.about, folder).state.step == step);
  return saves.notes();
}

}  // namespace

TEST_CASE("a run on a file system with locks and flushes has no notes") {
  const scratch files;
  CHECK(saved(files.path(), 1).empty());
}

TEST_CASE("without locks a run saves, and a note says that a second run is not noticed") {
  for (const int error : {ENOSYS, ENOLCK, EOPNOTSUPP}) {
    CAPTURE(error);
    const scratch files;
    file_calls calls(files.path());
    calls.locks = false;
    calls.lock_error = error;
    const auto notes = saved(files.path(), 1);
    REQUIRE(notes.size() == 1);
    CHECK(said_in(notes[0]) == said{6530, {files.path()}});
  }
}

TEST_CASE("where folders cannot be flushed a run saves, and a note says what a failing machine may lose") {
  for (const int error : {EINVAL, ENOSYS, EOPNOTSUPP}) {
    CAPTURE(error);
    const scratch files;
    file_calls calls(files.path());
    calls.folder_error = error;
    for (const std::int64_t step : {1, 2}) {
      const auto notes = saved(files.path(), step);
      REQUIRE(notes.size() == 1);
      CHECK(said_in(notes[0]) == said{6636, {files.path()}});
    }
  }
}

TEST_CASE("an export into a folder that cannot be flushed has the same note") {
  const scratch files;
  const fake_program program(1, 1, 1);
  saved(files.path("s"), 1);
  file_calls calls(files.path());
  calls.folder_error = EINVAL;
  std::vector<std::string> notes;
  export_weights(program.about, files.path("s"), files.path("out"), {}, &notes);
  REQUIRE(notes.size() == 1);
  CHECK(said_in(notes[0]) == said{6636, {files.path("out")}});
  CHECK(fs::exists(files.path("out/model.safetensors")));
}

TEST_CASE("a folder that cannot be flushed because the disk fails is an error") {
  const scratch files;
  file_calls calls(files.path());
  calls.folder_error = EIO;
  CHECK(exit_of([&] { prepare_save(files.path()); }) ==
        exit_with{65, {5005, {files.path(), "Input/output error"}}});
}

TEST_CASE("the folders above a new folder of saves are on disk before a checkpoint is") {
  const scratch files;
  file_calls calls(files.path());
  prepare_save(files.path("a/b"));
  CHECK(calls.seen == std::vector<std::string>{"flush a", "flush .", "flush a/b"});
}
