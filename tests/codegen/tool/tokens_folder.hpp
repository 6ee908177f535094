// SPDX-License-Identifier: Apache-2.0
// Runs `rankc tokens` in a temporary folder, and reads the files that it writes.
#pragma once
#include "../../said.hpp"
#include "../../scratch_folder.hpp"

#include <doctest/doctest.h>
#include <token_mask_format.hpp>
#include <tokens.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace rankc::tool::tokens_test {

namespace fs = std::filesystem;
using ids = std::vector<int>;

struct result {
  int code;
  std::string out, errors;
};

/// A folder with the inputs and the output of `rankc tokens`.
struct folder {
  scratch_folder scratch;
  fs::path out = scratch.path / "t.bin";

  fs::path write(const char* name, const std::string& text) const {
    std::ofstream(scratch.path / name, std::ios::binary) << text;
    return scratch.path / name;
  }
  result run(tokens_options o) const {
    o.out = out;
    std::ostringstream printed, errors;
    const int code = tokens(o, printed, errors);
    return {code, printed.str(), errors.str()};
  }
  /// The written tokens, which have 16 bits.
  ids written() const {
    std::ifstream in(out, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    ids all;
    for (std::size_t at = 1024; at < bytes.size(); at += 2) {
      std::uint16_t token;
      std::memcpy(&token, bytes.data() + at, 2);
      all.push_back(token);
    }
    return all;
  }
  /// The bytes of the mask after its header.
  std::string mask() const {
    std::ifstream in(scratch.path / "t.mask", std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(in), {}};
    return bytes.substr(std::min(bytes.size(), sizeof(runtime::token_mask_header)));
  }
  /// The mask as digits.
  std::string labels() const {
    std::string digits;
    for (const char byte : mask()) digits += static_cast<char>('0' + byte);
    return digits;
  }
  std::string text() const {
    std::string all;
    for (const int id : written()) all += static_cast<char>(id);
    return all;
  }
  test::said refused(const tokens_options& o, int code = 1) const {
    const result r = run(o);
    CHECK(r.code == code);
    CHECK(r.out == "");
    CHECK(r.errors.starts_with("error: RC"));
    return test::said_in(r.errors);
  }
};

}  // namespace rankc::tool::tokens_test
