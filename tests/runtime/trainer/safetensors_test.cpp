// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/safetensors.hpp>

#include <rankc/trainer/hash.hpp>

#include "../../exit_with.hpp"
#include "scratch.hpp"

#include <doctest/doctest.h>
#include <cmath>
#include <cstring>
#include <map>

using namespace rankc::runtime;
using rankc::test::exit_of, rankc::test::exit_with, rankc::test::said;

namespace {

/// The bytes of a file from header text and data.
std::string file_of(const std::string& header, const std::string& data) {
  const std::uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + data;
}

template <class T>
std::string bytes_of(std::initializer_list<T> values) {
  return {reinterpret_cast<const char*>(values.begin()), values.size() * sizeof(T)};
}

std::map<std::string, std::vector<double>> all_of(const std::string& file) {
  safetensors_reader in(file);
  in.check();
  std::map<std::string, std::vector<double>> values;
  for (const auto& [name, tensor] : in.tensors()) {
    values[name].resize(tensor.count);
    in.read(name, 0, tensor.count, values[name].data());
  }
  return values;
}

std::string write_example(const scratch& files, dtype type = dtype::f32) {
  const std::string path = files.path("example.safetensors");
  std::filesystem::remove(path);
  safetensors_writer out(path,
                         {{"wte", {3, 5}, type}, {"norm", {5}, type}, {"none", {0}, type}, {"one", {}, type}},
                         {{"step", "12"}});
  std::vector<double> values(21);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 0.1 * static_cast<double>(i) - 1;
  out.append(values.data(), 7);  // the split into appends has no effect
  out.append(values.data() + 7, 14);
  out.close();
  return path;
}

}  // namespace

TEST_CASE("what is written is read") {
  const scratch files;
  for (const dtype type : {dtype::f32, dtype::f64}) {
    const std::string path = write_example(files, type);
    safetensors_reader in(path);
    CHECK(in.metadata().at("step") == "12");
    CHECK(in.tensors().at("wte").shape == std::vector<std::size_t>{3, 5});
    CHECK(in.tensors().at("one").shape.empty());
    const auto values = all_of(path);
    for (std::size_t i = 0; i < 15; ++i) {
      const double value = 0.1 * static_cast<double>(i) - 1;
      CHECK(values.at("wte")[i] ==
            (type == dtype::f32 ? static_cast<double>(static_cast<float>(value)) : value));
    }
    double middle = 0;
    in.read("norm", 3, 1, &middle);
    CHECK(middle == values.at("norm")[3]);
    // Tensors are stored in the given order. The data starts at a multiple of 8, as other readers expect.
    CHECK(in.tensors().at("wte").offset % 8 == 0);
    CHECK(in.tensors().at("wte").offset < in.tensors().at("norm").offset);
  }
}

TEST_CASE("a file is not closed with tensors missing") {
  const scratch files;
  const std::string path = files.path("short.safetensors");
  safetensors_writer out(path, {{"a", {4}, dtype::f32}}, {});
  const double value = 1;
  out.append(&value, 1);
  CHECK(exit_of([&] { out.close(); }) == exit_with{65, {6620, {path, "12"}}});
  CHECK(exit_of([&] { safetensors_writer(files.path("no/x"), {}, {}); }) ==
        exit_with{65, {5005, {files.path("no/x"), "No such file or directory"}}});
}

TEST_CASE("tensors of several types lie in one file, given as values or as they are stored") {
  const scratch files;
  const std::string by_value = files.path("by_value"), stored = files.path("stored");
  const std::vector<safetensors_writer::tensor> tensors{
      {"d", {2}, dtype::f64}, {"f", {1, 2}, dtype::f32}, {"b", {3}, dtype::bf16}};
  const std::vector<double> values{0.1, -2, 0.5, 1e-3, 1, 0x1.01p0, -3};
  safetensors_writer one(by_value, tensors, {}), other(stored, tensors, {});
  one.append(values.data(), values.size());
  std::vector<unsigned char> bytes(16 + 8 + 6);
  encode(values.data(), 2, dtype::f64, bytes.data());
  encode(values.data() + 2, 2, dtype::f32, bytes.data() + 16);
  encode(values.data() + 4, 3, dtype::bf16, bytes.data() + 24);
  other.append_stored(bytes.data(), 20);
  other.append_stored(bytes.data() + 20, 10);
  CHECK(one.close() == other.close());
  CHECK(contents(by_value) == contents(stored));
  const auto found = all_of(by_value);
  CHECK(found.at("d") == std::vector<double>{0.1, -2});
  CHECK(found.at("f") == std::vector<double>{0.5, static_cast<double>(1e-3f)});
  CHECK(found.at("b") == std::vector<double>{1, 1, -3});  // rounded to even
}

TEST_CASE("half precision is converted exactly") {
  const scratch files;
  const std::string path = files.write(
      "half.safetensors", file_of(R"({"h":{"dtype":"F16","shape":[7],"data_offsets":[0,14]},)"
                                  R"("b":{"dtype":"BF16","shape":[3],"data_offsets":[14,20]}})",
                                  bytes_of<std::uint16_t>({0x3c00, 0xc000, 0x3555, 0x7bff, 0x0001, 0x8400,
                                                           0x8000, 0x3f80, 0xc040, 0x0080})));
  const auto values = all_of(path);
  CHECK(values.at("h") == std::vector<double>{1, -2, 0x1.554p-2, 65504, 0x1p-24, -0x1p-14, 0});
  CHECK(values.at("b") == std::vector<double>{1, -3, 0x1p-126});
}

TEST_CASE("what is no floating point may lie beside weights, and is not read") {
  const scratch files;
  const std::string path = files.write(
      "masked",
      file_of(
          R"({"mask":{"dtype":"BOOL","shape":[2,2],"data_offsets":[0,4]},"w":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
          std::string(4, '\1') + bytes_of<float>({2.5f})));
  const safetensors_reader in(path);
  double value = 0;
  in.check("w");
  in.read("w", 0, 1, &value);
  CHECK(value == 2.5);
  CHECK(exit_of([&] { in.read("mask", 0, 1, &value); }) == exit_with{1, {6613, {path, "mask"}}});
}

TEST_CASE("every fault of a file is named") {
  const scratch files;
  const auto refused = [&](const std::string& bytes) {
    const std::string path = files.write("x.safetensors", bytes);
    exit_with seen = exit_of([&] { all_of(path); });
    REQUIRE(seen.code == 1);
    REQUIRE(seen.message.arguments.at(0) == path);
    seen.message.arguments.erase(seen.message.arguments.begin());
    return seen.message;
  };
  const auto one = [](const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return R"({"a":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
  };
  const std::string eight(8, '\0');
  CHECK(refused("abc") == said{6600, {"3"}});
  CHECK(refused(file_of("{}", "").substr(0, 9)) == said{6602, {"2", "1"}});
  CHECK(refused(std::string(100, '\xff')) == said{6601, {"18446744073709551615", "100000000"}});
  const std::string large = files.write("large.safetensors", std::string("\x01\xe1\xf5\x05\0\0\0\0", 8));
  std::filesystem::resize_file(large, 8 + 100'000'001);  // a sparse file, which takes no space
  CHECK(exit_of([&] { safetensors_reader in(large); }) ==
        exit_with{1, {6601, {large, "100000001", "100000000"}}});
  CHECK(refused(file_of("[1]", "")) == said{6603, {}});
  CHECK(refused(file_of(R"({"a":3})", "")) == said{6604, {"a"}});
  CHECK(refused(file_of(one("\"I64\"", "[1]", "[0,8]"), eight)) == said{6613, {"a"}});
  CHECK(refused(file_of(one("\"C64\"", "[1]", "[0,8]"), eight)) == said{6605, {"a", "C64"}});
  CHECK(refused(file_of(one("\"F32\"", "[-2]", "[0,8]"), eight)) == said{6606, {"a"}});
  CHECK(refused(file_of(one("\"F32\"", "2", "[0,8]"), eight)) == said{6606, {"a"}});
  CHECK(refused(file_of(one("\"F32\"", "[2]", "[8]"), eight)) == said{6607, {"a"}});
  CHECK(refused(file_of(one("\"F32\"", "[2]", "[0,8]"), eight.substr(1))) ==
        said{6608, {"a", "0", "8", "7"}});
  CHECK(refused(file_of(one("\"F32\"", "[2]", "[8,0]"), eight)) == said{6608, {"a", "8", "0", "8"}});
  CHECK(refused(file_of(one("\"F32\"", "[3]", "[0,8]"), eight)) == said{6609, {"a", "[3]", "F32", "8"}});
  CHECK(refused(file_of(one("\"F32\"", "[4611686018427387906]", "[0,8]"), eight)) ==
        said{6609, {"a", "[4611686018427387906]", "F32", "8"}});
  CHECK(refused(file_of(one("\"F32\"", "[4294967296,4294967296,2]", "[0,8]"), eight)) ==
        said{6609, {"a", "[4294967296, 4294967296, 2]", "F32", "8"}});
  CHECK(refused(file_of(one("\"F32\"", "[1]", "[4,8]"), eight)) == said{6610, {"0"}});
  CHECK(refused(file_of(one("\"F32\"", "[1]", "[0,4]"), eight)) == said{6611, {"4", "8"}});
  CHECK(refused(file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                        R"("b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
                        eight)) == said{6610, {"4"}});
  CHECK(refused(file_of(one("\"F32\"", "[2]", "[0,8]"), bytes_of<float>({1, NAN}))) ==
        said{6614, {"1", "a", "nan"}});
  const std::string path = files.path("x.safetensors");
  const auto header = [&](const std::string& text) {
    files.write("x.safetensors", file_of(text, ""));
    return exit_of([&] { safetensors_reader in(path); });
  };
  const std::string name = "the header of " + path;
  CHECK(header("{\"a\":") == exit_with{1, {6596, {name, "byte 6 is unexpected"}}});
  CHECK(header("{\"a\":{},\"a\":{}}") == exit_with{1, {6594, {name, "a"}}});
  CHECK(header(std::string(1'000'000, '[')) == exit_with{1, {6592, {name, "32"}}});
  CHECK(exit_of([&] { safetensors_reader(files.path("none")); }) ==
        exit_with{1, {6585, {files.path("none"), "No such file or directory"}}});
}

namespace {

/// Calls `visit` with damaged forms of `whole`: random bytes changed, some of them also truncated, every
/// prefix, and one byte more. Returns their number.
template <class Visit>
int damage(const std::string& whole, const Visit& visit) {
  int count = 0;
  const auto give = [&](const std::string& bytes) {
    visit(bytes);
    ++count;
  };
  for (std::uint64_t i = 0; i < 500; ++i) {
    const std::uint64_t random = splitmix64(i);
    std::string bytes = whole;
    bytes[random % whole.size()] ^= static_cast<char>(1 + (random >> 32) % 255);
    give(bytes);
    if (i % 2) give(bytes.substr(0, (random >> 20) % whole.size()));
  }
  for (std::size_t length = 0; length < whole.size(); ++length) give(whole.substr(0, length));
  give(whole + "x");
  return count;
}

}  // namespace

TEST_CASE("a damaged file of ours reads equal or is refused") {
  const scratch files;
  const std::string whole = contents(write_example(files));
  const auto expected = all_of(files.path("example.safetensors"));
  int refused = 0;
  const int tried = damage(whole, [&](const std::string& bytes) {
    const std::string path = files.write("damaged.safetensors", bytes);
    auto values = expected;
    try {
      values = all_of(path);
    } catch (const failure& f) {
      REQUIRE(f.code == 1);
      REQUIRE(f.arguments.at(0).ends_with(path));
      ++refused;
    }
    REQUIRE(values == expected);
  });
  CHECK(tried == 751 + static_cast<int>(whole.size()));
  CHECK(refused > tried - 10);  // a change in the checksum's own key is not detected, and does no harm
}

TEST_CASE("a damaged file without a checksum is read within its bounds or refused") {
  const scratch files;
  std::string whole = contents(write_example(files));
  whole.replace(whole.find("xxh3"), 4, "none");
  int refused = 0;
  const int tried = damage(whole, [&](const std::string& bytes) {
    const std::string path = files.write("damaged.safetensors", bytes);
    try {
      for (const auto& [name, values] : all_of(path)) REQUIRE(values.size() <= 21);
    } catch (const failure& f) {
      REQUIRE(f.code == 1);
      ++refused;
    }
  });
  CHECK(refused > 500);  // every prefix, and damage that the header shows
  CHECK(refused < tried);
}

TEST_CASE("checksums do not depend on how bytes are cut, and see every byte") {
  std::string text(100, '\0');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(splitmix64(i));
  checksum whole;
  whole.add(text);
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    checksum parts;
    parts.add(text.substr(0, cut));
    parts.add(text.substr(cut, 3));
    parts.add(text.size() > cut + 3 ? text.substr(cut + 3) : "");
    CHECK(parts.text() == whole.text());
    checksum prefix;
    prefix.add(text.substr(0, cut));
    CHECK((prefix.text() == whole.text()) == (cut == text.size()));
  }
  checksum longer;  // trailing zeros change the checksum
  longer.add(text + std::string(1, '\0'));
  CHECK(longer.text() != whole.text());
}
