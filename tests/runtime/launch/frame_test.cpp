// SPDX-License-Identifier: Apache-2.0
#include <rankc/launch/frame.hpp>

#include <doctest/doctest.h>
#include <fmt/format.h>
#include <set>
#include <utility>
#include <vector>

namespace frame_test {

using namespace rankc::runtime;

namespace {

const mac_key one = key_of_job("one", "job"), other = key_of_job("other", "job");

/// A reader's answer to some bytes.
std::string answer(frame_reader& reader, std::string_view bytes) {
  reader.add(bytes);
  try {
    return reader.next() ? "a frame" : "not yet";
  } catch (const not_a_frame&) {
    return "refused";
  }
}

}  // namespace

TEST_CASE("frames are found in what arrives in pieces of any size") {
  frame_writer writer(one);
  std::string bytes = writer.encode(frame_kind::gather, "first");
  bytes += writer.encode(frame_kind::bye);
  bytes += writer.encode(frame_kind::alive, std::string(3000, 'x'));
  for (const std::size_t piece : {1, 7, 24, 4000}) {
    frame_reader reader(one);
    std::vector<frame> found;
    for (std::size_t i = 0; i < bytes.size(); i += piece) {
      reader.add(std::string_view(bytes).substr(i, piece));
      while (auto f = reader.next()) found.push_back(*f);
    }
    REQUIRE(found.size() == 3);
    CHECK(found[0].kind == frame_kind::gather);
    CHECK(found[0].body == "first");
    CHECK(found[1].body.empty());
    CHECK(found[2].body == std::string(3000, 'x'));
  }
}

TEST_CASE("other bytes, a changed bit anywhere and a length above the limit are refused") {
  frame_reader junk(one);
  CHECK(answer(junk, "G") == "refused");
  const std::string good = frame_writer(one).encode(frame_kind::hello, "some body");
  std::size_t refused = 0;
  for (std::size_t bit = 0; bit < 8 * good.size(); ++bit) {
    std::string bad = good;
    bad[bit / 8] = static_cast<char>(bad[bit / 8] ^ (1 << bit % 8));
    frame_reader reader(one);
    refused += answer(reader, bad) != "a frame";  // "not yet" means a longer frame, whose rest does not come
  }
  CHECK(refused == 8 * good.size());
  frame_reader small(one);
  small.allow(8);
  CHECK(answer(small, good) == "refused");
  frame_reader large(one);
  large.allow(9);
  CHECK(large.room() == good.size());
  CHECK(answer(large, good) == "a frame");
}

TEST_CASE("a frame counts once, in its order, with its key") {
  frame_writer writer(one);
  const std::string first = writer.encode(frame_kind::bye), second = writer.encode(frame_kind::bye);
  frame_reader reader(one), late(one), stranger(other), renewed(other);
  CHECK(answer(reader, first) == "a frame");
  CHECK(answer(reader, first) == "refused");
  CHECK(answer(late, second) == "refused");
  CHECK(answer(stranger, first) == "refused");
  CHECK(answer(renewed, frame_writer(other).encode(frame_kind::bye)) == "a frame");
  renewed.use(one);
  CHECK(answer(renewed, first) == "a frame");
}

TEST_CASE("keys differ by secret, job, direction, connection and purpose") {
  const std::string a(nonce_bytes, 'a'), b(nonce_bytes, 'b');
  const mac_key job = key_of_job("secret", "job");
  std::set<mac_key> all{key_of_job("other", "job"), key_of_job("secret", "jo"), opening_key(job),
                        answer_key(job, a), answer_key(job, b)};
  for (const auto& [rank, coordinator] : {std::pair(a, b), {b, a}, {a, a}}) {
    const connection_keys keys = keys_of_connection(job, rank, coordinator);
    all.insert({keys.to_coordinator, keys.to_rank});
  }
  CHECK(all.size() == 11);
  CHECK(random_nonce() != random_nonce());
}

TEST_CASE("the code is HMAC-SHA-256") {
  // Source: RFC 4231, test case 2.
  const mac_key code = mac_of("Jefe", "what do ya want for nothing?");
  std::string digits;
  for (const unsigned char byte : code) digits += fmt::format("{:02x}", byte);
  CHECK(digits == "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
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
