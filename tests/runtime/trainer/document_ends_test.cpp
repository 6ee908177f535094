// SPDX-License-Identifier: Apache-2.0
// The note for a plan with documents whose data lacks the end token.
#include <document_ends.hpp>

#include "../../said.hpp"
#include "fake_run.hpp"
#include "token_files.hpp"

#include <doctest/doctest.h>
#include <algorithm>
#include <set>

using namespace rankc::runtime;
using rankc::test::said, rankc::test::said_in;

namespace {

std::vector<std::string> notes_for(int end, const std::string& data) {
  const fake_program program(1, 1, 1);
  description about = program.about;
  about.end_of_document = end;
  return notes_on_documents(about, open_sources(parse_data_spec(data), 65536));
}

}  // namespace

TEST_CASE(
    "Megatron's sequences end with the token, wherever else it may be; else the borders are the index's") {
  const std::string path = std::string(RANKC_DATA_ORACLES) + "/megatron_uint16";
  const token_stream tokens(path, 65536);
  REQUIRE(tokens.has_sequences());
  std::vector<std::int32_t> all(tokens.size());
  tokens.copy(0, all.size(), all.data());
  std::set<int> ends;
  for (const token_piece& p : tokens.pieces())
    if (p.count > 0) ends.insert(all[p.first + p.count - 1]);
  const auto inside = std::find_if(all.begin(), all.end(), [&](int token) { return !ends.contains(token); });
  REQUIRE(inside != all.end());
  for (const int end : ends) CHECK(notes_for(end, path).empty());
  CHECK(notes_for(-1, path).empty());
  const auto notes = notes_for(*inside, path);
  REQUIRE(notes.size() == 1);
  CHECK(said_in(notes[0]) == said{6271, {std::to_string(*inside), path, std::to_string(tokens.documents())}});
}

TEST_CASE("an index of one document does not replace the token") {
  const scratch files;
  const std::string path = megatron<std::uint16_t>(files, "m", 8, {{1, 2, 3}, {4, 5, 6}}, {0, 2});
  const auto notes = notes_for(9, path);
  REQUIRE(notes.size() == 1);
  CHECK(said_in(notes[0]) == said{6199, {"9", path, "at the ends of its first 1024 sequences"}});
}

TEST_CASE("other files have the token somewhere, and each source without it has a note before the run") {
  const scratch files;
  const std::string letters(100, 'a');
  const std::string with = files.write("with.txt", letters + "\n" + letters),
                    without = files.write("without.txt", letters);
  CHECK(notes_for('\n', with).empty());
  CHECK(notes_for('\n', "arith:1").empty());
  fake_program program(1, 1, 1);
  program.about.end_of_document = '\n';
  const outcome done = run(program, {"train", "--steps", "1", "--data", with + ":0.5," + without + ":0.5"});
  CHECK(done.code == 0);
  CHECK(done.out.find("note: RC6199: the plan's end_of_document, token 10, does not occur in " + without +
                      " (in its first 2^20 tokens)") != std::string::npos);
  CHECK(done.out.find("does not occur in " + with) == std::string::npos);
  const std::string note = "note: RC6199: the plan's end_of_document, token 10, does not occur in " + without;
  CHECK(run(program, {"eval", "--steps", "1", "--data", without}).out.find(note) != std::string::npos);
  CHECK(run(program, {"train", "--steps", "1", "--data", with, "--eval-every", "1", "--eval-data", without})
            .out.find(note) != std::string::npos);
}
