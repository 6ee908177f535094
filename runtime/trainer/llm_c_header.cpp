// SPDX-License-Identifier: Apache-2.0
#include "llm_c_header.hpp"

#include "token_bytes.hpp"
#include <rankc/runtime/failure.hpp>

#include <array>
#include <cstring>
#include <string>

namespace rankc::runtime {
namespace {

constexpr std::int32_t evaluation_magic = 20240522;

}  // namespace

llm_c_header read_llm_c_header(const mapped_file& file) {
  const std::string& name = file.name();
  const std::string_view bytes = file.bytes();
  if (bytes.size() < llm_c_header_bytes)
    throw failure(1, "RC6151: {} holds {} bytes, but llm.c's header has {} (256 int32)", name, bytes.size(),
                  llm_c_header_bytes);
  std::array<std::int32_t, 3> header;
  std::memcpy(header.data(), bytes.data(), sizeof header);
  const auto [magic, version, count] = header;
  const llm_c_form* const form = llm_c_form_of(magic);
  if (magic == evaluation_magic)
    throw failure(
        1,
        "RC6152: {} begins with {}, as llm.c's files of questions for evaluation do; give a file of tokens",
        name, magic);
  if (form == nullptr)
    throw failure(1,
                  "RC6153: {} begins with {}, but llm.c's files begin with {} (uint16 tokens) or {} "
                  "(uint32); Megatron's need a .idx file of the same name in their folder",
                  name, magic, narrow_llm_c.magic, wide_llm_c.magic);
  if (version != form->version)
    throw failure(1, "RC6154: {} has version {}; of files that begin with {}, only version {} can be read",
                  name, version, magic, form->version);
  const std::size_t held = bytes.size() - llm_c_header_bytes, width = size_of(form->type);
  if (count < 0 || held < width * static_cast<std::size_t>(count))
    throw failure(1,
                  "RC6155: {} is truncated: its header counts {} tokens of {} bytes, but {} bytes follow it",
                  name, count, width, held);
  if (held > width * static_cast<std::size_t>(count))
    throw failure(
        1,
        "RC6156: {} is longer than it says: its header counts {} tokens of {} bytes, but {} bytes follow it",
        name, count, width, held);
  return {form->type, static_cast<std::uint64_t>(count)};
}

}  // namespace rankc::runtime
