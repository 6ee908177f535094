// SPDX-License-Identifier: Apache-2.0
// The position of a rank, stored by one thread and read by another.
#include <rankc/runtime/progress.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <iterator>
#include <string>
#include <thread>

using namespace rankc::runtime;

TEST_CASE("a position has the last name that was stored, up to 15 letters of it") {
  progress_words words;
  CHECK(position_of(words).action.empty());
  words.name("1B3");
  CHECK(position_of(words).action == "1B3");
  words.name("a name of more letters");
  CHECK(position_of(words).action == "a name of more ");
  words.begin_step(4);
  CHECK(position_of(words).text() == "in step 4, op 0");
}

TEST_CASE("a position changes with each name") {
  progress_words words;
  words.name("0F0");
  const rank_position before = position_of(words);
  CHECK(position_of(words).moved == before.moved);
  words.name("0F0");
  CHECK(position_of(words).moved != before.moved);
}

TEST_CASE("a name is read whole while another thread stores names") {
  const std::string names[]{std::string(15, 'a'), std::string(15, 'b')};
  progress_words words;
  words.name(names[0].c_str());
  std::atomic<bool> over = false;
  std::thread writer([&] {
    for (std::size_t i = 0; !over; ++i) words.name(names[i % std::size(names)].c_str());
  });
  std::string broken;
  for (int reads = 0; reads < 5'000'000 && broken.empty(); ++reads)
    if (const std::string read = position_of(words).action; read != names[0] && read != names[1])
      broken = read;
  over = true;
  writer.join();
  CHECK(broken == "");
}
