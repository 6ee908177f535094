// SPDX-License-Identifier: Apache-2.0
#include <rankc/trainer/safetensors.hpp>

#include <rankc/trainer/hash.hpp>

#include "scratch.hpp"

#include <doctest/doctest.h>
#include <cmath>
#include <cstring>
#include <map>

using namespace rankc::runtime;

namespace {

/// A file by hand: header text and data.
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
  out.append(values.data(), 7);  // where appends are cut does not matter
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
    // Tensors lie in the given order, and the data starts at a multiple of 8, as other readers like it.
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
  CHECK(refusal_of([&] { out.close(); }) == "65: " + path + ": 12 bytes of its tensors were never given");
  CHECK(refusal_of([&] { safetensors_writer(files.path("no/x"), {}, {}); }) ==
        "65: " + files.path("no/x") + ": cannot be written: No such file or directory");
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
  CHECK(found.at("b") == std::vector<double>{1, 1, -3});  // to even
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
  CHECK(refusal_of([&] { in.read("mask", 0, 1, &value); }) ==
        "1: " + path + ": tensor mask: is no floating point; read are F32, F64, BF16 and F16");
}

TEST_CASE("every fault of a file is named") {
  const scratch files;
  const auto refused = [&](const std::string& bytes) {
    const std::string path = files.write("x.safetensors", bytes);
    const std::string text = refusal_of([&] { all_of(path); }), prefix = "1: " + path + ": ";
    REQUIRE_MESSAGE(text.starts_with(prefix), text);
    return text.substr(prefix.size());
  };
  const auto one = [](const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return R"({"a":{"dtype":)" + dtype + R"(,"shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
  };
  const std::string eight(8, '\0');
  CHECK(refused("abc") == "holds 3 bytes, fewer than the 8 that a safetensors file starts with");
  CHECK(refused(file_of("{}", "").substr(0, 9)) ==
        "its header should have 2 bytes, but 1 follow, and 100000000 are the limit; the file is truncated or "
        "no "
        "safetensors file");
  CHECK(refused(std::string(100, '\xff')).starts_with("its header should have 18446744073709551615 bytes"));
  const std::string large = files.write("large.safetensors", std::string("\x01\xe1\xf5\x05\0\0\0\0", 8));
  std::filesystem::resize_file(large, 8 + 100'000'001);  // a hole, which takes no space
  CHECK(refusal_of([&] { safetensors_reader in(large); }) ==
        "1: " + large +
            ": its header should have 100000001 bytes, but 100000001 follow, and 100000000 are the limit; "
            "the file is "
            "truncated or no safetensors file");
  CHECK(refused(file_of("[1]", "")) == "its header is no JSON object; the file is damaged");
  CHECK(refused(file_of("{\"a\":", "")) == "its header is no JSON object; the file is damaged");
  CHECK(refused(file_of(R"({"a":3})", "")) == "tensor a: has no dtype");
  CHECK(refused(file_of(one("\"I64\"", "[1]", "[0,8]"), eight)) ==
        "tensor a: is no floating point; read are F32, F64, BF16 and F16");
  CHECK(refused(file_of(one("\"C64\"", "[1]", "[0,8]"), eight)) ==
        "tensor a: has dtype C64; read are F32, F64, BF16 and F16");
  CHECK(refused(file_of(one("\"F32\"", "[-2]", "[0,8]"), eight)) ==
        "tensor a: has no shape of whole numbers");
  CHECK(refused(file_of(one("\"F32\"", "2", "[0,8]"), eight)) == "tensor a: has no shape of whole numbers");
  CHECK(refused(file_of(one("\"F32\"", "[2]", "[8]"), eight)) == "tensor a: has no two data_offsets");
  CHECK(refused(file_of(one("\"F32\"", "[2]", "[0,8]"), eight.substr(1))) ==
        "tensor a: lies at bytes 0 to 8, but the file has 7 bytes of data; it is truncated or damaged");
  CHECK(
      refused(file_of(one("\"F32\"", "[2]", "[8,0]"), eight)).starts_with("tensor a: lies at bytes 8 to 0,"));
  CHECK(refused(file_of(one("\"F32\"", "[3]", "[0,8]"), eight)) ==
        "tensor a: has shape [3] of F32, which is not the size of its 8 bytes");
  CHECK(refused(file_of(one("\"F32\"", "[4611686018427387906]", "[0,8]"), eight)) ==
        "tensor a: has shape [4611686018427387906] of F32, which is not the size of its 8 bytes");
  CHECK(
      refused(file_of(one("\"F32\"", "[4294967296,4294967296,2]", "[0,8]"), eight)).find("is not the size") !=
      std::string::npos);
  CHECK(refused(file_of(one("\"F32\"", "[1]", "[4,8]"), eight)) ==
        "its tensors overlap or leave a hole at byte 0 of the data; the file is damaged");
  CHECK(refused(file_of(one("\"F32\"", "[1]", "[0,4]"), eight)) ==
        "its tensors take 4 bytes, but 8 bytes of data follow the header");
  CHECK(refused(file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
                        R"("b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})",
                        eight)) ==
        "its tensors overlap or leave a hole at byte 4 of the data; the file is damaged");
  CHECK(refused(file_of(one("\"F32\"", "[2]", "[0,8]"), bytes_of<float>({1, NAN}))) ==
        "tensor a: element 1 is nan, but weights must be finite");
  CHECK(refusal_of([&] { safetensors_reader(files.path("none")); }) ==
        "1: " + files.path("none") + ": cannot be read: No such file or directory");
}

namespace {

/// Give `whole` in damaged forms to `visit`: random bytes changed, some of them cut too, every prefix, one
/// byte more. Returns their number.
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
      REQUIRE(std::string(f.what()).starts_with(path + ": "));
      ++refused;
    }
    REQUIRE(values == expected);
  });
  CHECK(tried == 751 + static_cast<int>(whole.size()));
  CHECK(refused > tried - 10);  // a change in the checksum's own key goes unseen, and harms nothing
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
  CHECK(refused > 500);  // every prefix, and what the header shows
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
  checksum longer;  // zeros at the end count
  longer.add(text + std::string(1, '\0'));
  CHECK(longer.text() != whole.text());
}
