// SPDX-License-Identifier: Apache-2.0
#include "tokens.hpp"

#include <fmt/format.h>
#include <read_file.hpp>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <ostream>
#include <stdexcept>

#ifdef RANKC_SENTENCEPIECE
#include <sentencepiece_processor.h>
#endif

namespace rankc::tool {

namespace {

/// What makes tokens of a text, and how many it knows.
struct tokenizer {
  std::function<std::vector<int>(const std::string&)> encode;
  std::string name;
  int vocab;
};

tokenizer of_bytes() {
  return {[](const std::string& text) {
            const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
            return std::vector<int>(bytes, bytes + text.size());
          },
          "bytes", 256};
}

#ifdef RANKC_SENTENCEPIECE
tokenizer of_model(const std::filesystem::path& model, bool ends) {
  const auto processor = std::make_shared<sentencepiece::SentencePieceProcessor>();
  if (const auto status = processor->Load(model.string()); !status.ok())
    throw runtime::failure(1, "RC8110: {} is not a model of SentencePiece that can be read: {}", model,
                           status.ToString());
  const int end = processor->eos_id();
  if (ends && end < 0)
    throw runtime::failure(1, "RC8111: the model {} has no end-of-sentence token; leave out --eos", model);
  return {[=](const std::string& text) {
            std::vector<int> ids;
            if (const auto status = processor->Encode(text, &ids); !status.ok())
              throw runtime::failure(1, "RC8112: SentencePiece cannot encode a text: {}", status.ToString());
            if (ends) ids.push_back(end);
            return ids;
          },
          model.string(), processor->GetPieceSize()};
}
#else
tokenizer of_model(const std::filesystem::path& model, bool) {
  throw runtime::failure(
      1,
      "RC8113: --model {} needs SentencePiece, and this rankc was built without it; install "
      "libsentencepiece-dev and build it again, or leave --model out for bytes",
      model);
}
#endif

/// Tokens of one width, in a buffer that is written.
template <class T>
void append(std::ostream& out, const std::vector<int>& ids) {
  const std::vector<T> narrow(ids.begin(), ids.end());
  out.write(reinterpret_cast<const char*>(narrow.data()),
            static_cast<std::streamsize>(narrow.size() * sizeof(T)));
}

std::size_t write_tokens(const tokens_options& o, const tokenizer& by) {
  const bool wide = by.vocab > 65536;
  std::ofstream out(o.out, std::ios::binary);
  std::array<std::int32_t, 256> header{wide ? 20240801 : 20240520, wide ? 7 : 1};
  const auto write_header = [&] { out.write(reinterpret_cast<const char*>(header.data()), sizeof header); };
  write_header();
  std::size_t count = 0;
  for (const auto& file : o.files) {
    const std::vector<int> ids = by.encode(codegen::read_file(file));
    count += ids.size();
    if (count > std::numeric_limits<std::int32_t>::max())
      throw runtime::failure(1,
                             "RC8114: {} would hold more than the 2^31 - 1 tokens that its header can count; "
                             "write several files",
                             o.out);
    (wide ? append<std::uint32_t> : append<std::uint16_t>)(out, ids);
  }
  header[2] = static_cast<std::int32_t>(count);
  out.seekp(0);
  write_header();
  if (!out.flush())
    throw std::runtime_error(fmt::format("{}: cannot be written: {}", o.out.string(), std::strerror(errno)));
  return count;
}

}  // namespace

int tokens(const tokens_options& o, std::ostream& out, std::ostream& errors) {
  bool begun = false;
  try {
    if (o.out.extension() != ".bin")
      throw runtime::failure(1, "RC8115: --out {} does not end in .bin, by which --data knows a token file",
                             o.out);
    if (o.ends && o.model.empty())
      throw runtime::failure(
          1, "RC8116: --eos needs --model, because bytes have no end-of-sentence token; leave out --eos");
    const tokenizer by = o.model.empty() ? of_bytes() : of_model(o.model, o.ends);
    begun = !std::filesystem::exists(o.out) || std::filesystem::is_regular_file(o.out);
    const std::size_t count = write_tokens(o, by);
    out << fmt::format("{}: {} tokens of {} files by {}, for a plan with vocab {} or more\n", o.out.string(),
                       count, o.files.size(), by.name, by.vocab);
    return 0;
  } catch (const std::exception& e) {
    std::error_code none;
    if (begun) std::filesystem::remove(o.out, none);
    errors << "error: " << e.what() << "\n";
    return 1;
  }
}

}  // namespace rankc::tool
