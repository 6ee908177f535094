// SPDX-License-Identifier: Apache-2.0
#include <rankc/launch/frame.hpp>

#include <doctest/doctest.h>
#include <vector>

namespace frame_test {

using namespace rankc::runtime;

TEST_CASE("frames are found in what arrives in pieces of any size") {
  const std::string bytes = encode({frame_kind::gather, 77, "first"}) + encode({frame_kind::bye, 78, ""}) +
                            encode({frame_kind::alive, 79, std::string(3000, 'x')});
  for (const std::size_t piece : {1, 7, 24, 4000}) {
    frame_reader reader;
    std::vector<frame> found;
    for (std::size_t i = 0; i < bytes.size(); i += piece) {
      reader.add(std::string_view(bytes).substr(i, piece));
      while (auto f = reader.next()) found.push_back(*f);
    }
    REQUIRE(found.size() == 3);
    CHECK(found[0].kind == frame_kind::gather);
    CHECK(found[0].job == 77);
    CHECK(found[0].body == "first");
    CHECK(found[1].body.empty());
    CHECK(found[2].body == std::string(3000, 'x'));
  }
}

TEST_CASE(
    "what is no frame is noticed: other bytes at once, a changed bit anywhere, a length above the limit") {
  frame_reader junk;
  junk.add("G");
  CHECK_THROWS_AS(junk.next(), not_a_frame);
  const std::string good = encode({frame_kind::hello, 5, "some body"});
  std::size_t refused = 0;
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    frame_reader reader;
    reader.add(bad);
    try {
      refused += !reader.next();  // a longer frame, which does not come
    } catch (const not_a_frame&) {
      ++refused;
    }
  }
  CHECK(refused == 8 * good.size());
  frame_reader small;
  small.allow(8);
  small.add(good);
  CHECK_THROWS_AS(small.next(), not_a_frame);
}

TEST_CASE("a body's fields come back, and one that ends early is noticed") {
  const std::string body =
      body_writer().add(std::uint64_t{42}).add("text").add("").add(~std::uint64_t{0}).take();
  body_reader whole(body);
  CHECK(whole.number() == 42);
  CHECK(whole.text() == "text");
  CHECK(whole.text() == "");
  CHECK(whole.number() == ~std::uint64_t{0});
  CHECK_THROWS_AS(whole.number(), not_a_frame);
  body_reader cut(std::string_view(body).substr(0, 18));
  cut.number();
  CHECK_THROWS_AS(cut.text(), not_a_frame);
}

}  // namespace frame_test
